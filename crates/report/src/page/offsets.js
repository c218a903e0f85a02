// ---- offsets: which bytes of a file were read and written when, and by whom.
const offsets = document.getElementById("offset-plot");
if (offsets) (() => {
  const fileSelect = document.getElementById("offset-file"), colourSelect = document.getElementById("offset-colour");
  // The bars on each file, in order of start.
  const onFile = new Map();
  for (let i = 0; i < barCount; i++) {
    if (!isInFile(i) || !(callOf(i).isRead || callOf(i).isWrite)) continue;
    if (!onFile.has(col.file[i])) onFile.set(col.file[i], []);
    onFile.get(col.file[i]).push(i);
  }
  const files = [...onFile.keys()].sort((a, b) => a - b);
  for (const file of files) fileSelect.add(new Option(fileName(file), file));
  let drawn = [];

  const keep = keeper();
  const draw = () => {
    const file = +fileSelect.value, some = onFile.get(file) ?? [], height = 300, top = 8, below = 26;
    const { context: g, width } = fit(offsets, top + height + below), left = Math.max(gutter(width), 66);
    const x = (ns) => left + ((ns - view.from) * (width - left)) / (view.to - view.from);
    keep(g, [view.from, view.to, file, colourSelect.value], () => paint(g, x, { some, height, top, left, width }));
    g.save();
    g.beginPath(); g.rect(left, top, width - left, height); g.clip();
    veil(g, x, left, width, top, height);
    g.restore();
  };
  const paint = (g, x, { some, height, top, left, width }) => {
    let end = 1;
    for (const i of some) end = Math.max(end, col.place[i] + col.length[i]);
    const y = (offset) => top + height - (offset / end) * height, gap = binaryStep(end / 5);
    for (let k = 0; k * gap <= end; k++) {
      g.fillStyle = colours.grid; g.fillRect(left, Math.round(y(k * gap)), width - left, 1);
      g.fillStyle = colours.soft; g.textAlign = "right"; g.fillText(k ? bytes(k * gap) : "0", left - 10, y(k * gap));
    }
    axis(g, view.from, view.to, x, top + height, left, width);
    g.save();
    g.beginPath(); g.rect(left, top, width - left, height); g.clip();
    drawn = [];
    const byProcess = colourSelect.value === "process", palette = byProcess ? data.processes.map((_, process) => colourOfProcess(process)) : null;
    // Many calls fall on the same few pixels: the first of each box and colour is drawn; of thousands of colours, of each box.
    const taken = new Map();
    for (const i of some) {
      if (ends[i] < view.from || starts[i] > view.to || (state[i] & (SHOWN | OF_PROCESS)) !== (SHOWN | OF_PROCESS)) continue;
      const from = x(starts[i]), w = Math.max(1.5, x(ends[i]) - from), at = y(col.place[i] + col.length[i]), h = Math.max(1.5, y(col.place[i]) - at);
      const isOfFile = state[i] & OF_FILE;
      const colour = !isOfFile ? colours.ghost : byProcess ? palette[processOf[i]] : colours[callOf(i).op];
      // Ranks that do alike have alike boxes, too.
      const seen = Math.max(left, from), until = Math.min(width, from + w);
      const box = ((Math.round(seen) * 1024 + Math.round(at)) * 8192 + Math.round(until)) * 1024 + Math.round(h);
      if (byProcess ? taken.has(box) : taken.get(box) === colour) continue;
      taken.set(box, colour);
      g.fillStyle = colour;
      // Of several calls it is not known which of these bytes they moved.
      g.globalAlpha = col.events[i] > 1 && h > 3 ? 0.5 : 1;
      g.fillRect(from, at, w, h);
      drawn.push({ i, x: from, y: at, w, h });
    }
    g.restore();
  };
  const redraw = onceAFrame(draw);
  offsets.addEventListener("pointermove", (event) => {
    const box = offsets.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = -1, nearest = 6;
    for (const { i, x, y, w, h } of drawn) {
      const apart = Math.max(x - px, px - x - w, y - py, py - y - h, 0);
      if (apart < nearest) { nearest = apart; best = i; }
    }
    showTip(offsets, event, best < 0 ? null : tipLines(best));
  });
  offsets.addEventListener("pointerleave", (event) => showTip(offsets, event, null));
  // The reader's choice: chosen files come before it.
  let picked = files[0];
  fileSelect.addEventListener("change", () => { picked = +fileSelect.value; });
  for (const select of [fileSelect, colourSelect]) select.addEventListener("change", () => { redraw(); remember(); });
  fragment.push(
    ["offsets", () => picked !== files[0] && String(picked), (text) => { picked = fileSelect.value = onFile.has(+text) ? +text : files[0]; }],
    ["colour", () => colourSelect.value !== "op" && colourSelect.value, (text) => { colourSelect.value = text === "process" ? text : "op"; }],
  );
  redraws.push(draw);
  redrawView.push(redraw);
  listeners.quick.push(() => {
    const { files: chosen } = selection;
    fileSelect.value = (chosen && !chosen.has(picked) && files.find((file) => chosen.has(file))) || picked;
    redraw();
  });
})();

