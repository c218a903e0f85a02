// ---- pointer and keys of the timeline.
const timeAt = (event) => {
  const { left, width } = layout;
  return view.from + ((event.clientX - timeline.getBoundingClientRect().left - left) * (view.to - view.from)) / (width - left);
};
const barAt = (event) => {
  const box = timeline.getBoundingClientRect(), y = event.clientY - box.top - TOP + scroll, ns = timeAt(event);
  const row = Math.floor(y / layout.height), inside = y - row * layout.height - layout.gap / 2;
  if (row < 0 || row >= layout.rows.length || event.clientX - box.left < layout.left || y - scroll > layout.plot || y < scroll) return -1;
  const lane = Object.keys(layout.places).find((lane) => inside >= layout.places[lane].y - 1 && inside <= layout.places[lane].y + layout.places[lane].h + 1);
  if (lane === undefined) return -1;
  const some = lanes[layout.rows[row] * each + +lane], slack = ((view.to - view.from) * 2) / (layout.width - layout.left);
  let best = -1;
  for (let k = firstReaching(some, ns - slack); k < some.size; k++) {
    const i = some.bars[k];
    if (starts[i] > ns + slack) break;
    if (ends[i] < ns - slack || !(state[i] & SHOWN)) continue;
    if (starts[i] <= ns || best < 0) best = i;
  }
  return best;
};
const markUnder = (event) => {
  const box = timeline.getBoundingClientRect();
  if (event.clientX - box.left < layout.left) return null;
  return markAt(event.clientY - box.top - MARKS_TOP, timeAt(event), ((view.to - view.from) * 2) / (layout.width - layout.left));
};
// Chooses the time between two, in whichever order they come.
const chooseTime = (one, other) => choose({ from: Math.max(0, Math.min(one, other)), until: Math.min(total, Math.max(one, other)) });
const chooseView = () => chooseTime(view.from, view.to);

if (timeline) {
  timeline.addEventListener("wheel", (event) => {
    const focused = document.activeElement === timeline, across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey || (focused && !event.shiftKey && !across)) {
      event.preventDefault();
      zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * (event.ctrlKey ? 0.008 : 0.003)), timeAt(event));
    } else if (event.shiftKey || across) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / (layout.width - layout.left));
    }
  }, { passive: false });

  // One pointer moves, or chooses a time; two zoom.
  const pointers = new Map();
  let brushedFrom = null, downAt = null;
  timeline.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    downAt = [event.clientX, event.clientY];
    pointers.set(event.pointerId, event);
    timeline.setPointerCapture(event.pointerId);
    brushedFrom = event.shiftKey ? timeAt(event) : null;
    showTip(timeline, event, null);
  });
  for (const end of ["pointerup", "pointercancel"]) timeline.addEventListener(end, (event) => pointers.delete(event.pointerId));
  // A click on a band chooses its time.
  timeline.addEventListener("pointerup", (event) => {
    if (event.shiftKey || !downAt || Math.hypot(event.clientX - downAt[0], event.clientY - downAt[1]) > 2) return;
    const mark = markUnder(event);
    if (mark) chooseTime(mark.one.start[mark.i], mark.one.end[mark.i]);
  });
  timeline.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      const i = barAt(event), mark = i < 0 ? markUnder(event) : null;
      showTip(timeline, event, i >= 0 ? tipLines(i) : mark && markLines(mark));
      return;
    }
    const others = [...pointers.values()].filter((other) => other.pointerId !== event.pointerId);
    if (others.length) {
      const apart = (a) => Math.max(8, Math.abs(a.clientX - others[0].clientX));
      zoom(apart(before) / apart(event), (timeAt(event) + timeAt(others[0])) / 2);
    } else if (brushedFrom !== null) {
      chooseTime(brushedFrom, timeAt(event));
    } else {
      scroll -= event.clientY - before.clientY;
      pan((before.clientX - event.clientX) / (layout.width - layout.left));
    }
    pointers.set(event.pointerId, event);
  });
  timeline.addEventListener("pointerleave", (event) => showTip(timeline, event, null));
  timeline.addEventListener("dblclick", (event) => zoom(0.4, timeAt(event)));
  timeline.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      ArrowUp: () => { scroll -= 60; redrawTimeline(); }, ArrowDown: () => { scroll += 60; redrawTimeline(); },
      "0": showWhole, c: chooseView, C: chooseView, Escape: () => choose({ from: null, until: null }),
      Home: () => show(0, view.to - view.from), End: () => show(total - (view.to - view.from), total),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  document.getElementById("choose").addEventListener("click", chooseView);
  document.getElementById("in").addEventListener("click", () => zoom(0.5));
  document.getElementById("out").addEventListener("click", () => zoom(2));
  document.getElementById("reset").addEventListener("click", () => { scroll = 0; showWhole(); });
  for (const kind of ["layer", "op"]) {
    for (const button of document.querySelectorAll(`[data-${kind}]`)) {
      const name = button.dataset[kind];
      button.addEventListener("click", () => toggleHidden(kind, name));
      listeners.quick.push(() => button.setAttribute("aria-pressed", !hidden[kind].has(name)));
    }
  }
}

