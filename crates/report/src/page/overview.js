// ---- overview: the whole run in a strip below the timeline, what of it is shown, and what is chosen.
const overview = document.getElementById("overview");
// How many processes were in I/O, in equal spans of time.
const load = new Float64Array(Math.max(1, busy.bins));
for (let k = 0; k < busy.cells.length; k++) load[k % busy.bins] += busy.cells[k];
const drawOverview = () => {
  const height = 34, { context: g, width } = fit(overview, height + 4), left = gutter(width);
  const x = (ns) => left + ((width - left) * ns) / total, peak = Math.max(...load) || 1;
  g.fillStyle = colours.stripe; g.fillRect(left, 2, width - left, height);
  g.fillStyle = colours.view;
  load.forEach((value, bin) => {
    const from = x(bin * busy.bin_ns), to = Math.min(width, x((bin + 1) * busy.bin_ns)), h = (height * value) / peak;
    g.fillRect(from, 2 + height - h, Math.max(0.5, to - from), h);
  });
  veil(g, x, left, width, 2, height);
  if (!isWholeView()) {
    g.strokeStyle = colours.ink; g.lineWidth = 1.5;
    g.strokeRect(x(view.from) + 0.75, 1.75, Math.max(3, x(view.to) - x(view.from) - 1.5), height + 0.5);
  }
  g.fillStyle = colours.soft; g.textAlign = "right";
  g.fillText(fitted(g, "whole run", left - 12), left - 10, 2 + height / 2);
};
const redrawOverview = onceAFrame(drawOverview);
if (overview) {
  const at = (event) => {
    const box = overview.getBoundingClientRect(), left = gutter(box.width);
    return ((event.clientX - box.left - left) / (box.width - left)) * total;
  };
  let from = null, startX = 0;
  overview.addEventListener("pointerdown", (event) => { if (event.button) return; overview.setPointerCapture(event.pointerId); from = at(event); startX = event.clientX; });
  overview.addEventListener("pointermove", (event) => { if (from !== null && Math.abs(event.clientX - startX) > 2) chooseTime(from, at(event)); });
  overview.addEventListener("pointerup", (event) => {
    // A click without a drag moves what is shown there, and ends the choice.
    if (from !== null && Math.abs(event.clientX - startX) <= 2) {
      const half = (view.to - view.from) / 2;
      choose({ from: null, until: null });
      show(at(event) - half, at(event) + half);
    }
    from = null;
  });
  overview.addEventListener("pointercancel", () => { from = null; });
  // By keys: the chosen time, or at first the middle of the run, moves and becomes longer or shorter.
  overview.addEventListener("keydown", (event) => {
    const by = total / 50, { from, until } = selection.from === null ? { from: total * 0.4, until: total * 0.6 } : selection;
    const keys = {
      ArrowLeft: () => chooseTime(from - by, until - by), ArrowRight: () => chooseTime(from + by, until + by),
      "+": () => chooseTime(from - by, until + by), "-": () => chooseTime(Math.min(from + by, until), Math.max(until - by, from)),
      Enter: () => showAround(from, until), Escape: () => choose({ from: null, until: null }),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  redraws.push(drawOverview);
  redrawView.push(redrawOverview);
  listeners.quick.push(redrawOverview);
}

