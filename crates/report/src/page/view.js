// ---- view: the time that the timeline and the offsets show.
const view = { from: 0, to: total };
const smallest = Math.min(total, Math.max(20 * data.unit_ns, 100));
const isWholeView = () => view.to - view.from > total * 0.9999;
const show = (from, to) => {
  const length = Math.max(smallest, Math.min(total, to - from));
  view.from = Math.max(0, Math.min(total - length, from));
  view.to = view.from + length;
  document.querySelectorAll(".tip").forEach((tip) => { tip.hidden = true; });
  redrawView.forEach((redraw) => redraw());
  remember();
};
const redrawView = [];
const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
const pan = (part) => show(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);
const showWhole = () => show(0, total);
// A time, with a little before and after it.
const showAround = (from, until) => { const more = (until - from) * 0.06; show(from - more, until + more); };
fragment.push(["t", () => !isWholeView() && span(view.from, view.to), (text) => {
  const range = readSpan(text);
  if (range && range[1] > range[0]) show(...range);
}]);

