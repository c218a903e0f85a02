// ---- timeline: one row a thread, one lane a layer.
const timeline = document.getElementById("bars");
const MARKS_TOP = 24, TOP = 26 + marksHeight, BOTTOM = 6, weights = [11, 11, 8, 6];
let layout = null, scroll = 0;

const arrange = () => {
  const rows = data.rows.map((_, row) => row).filter((row) => !selection.processes || selection.processes.has(data.process_of_row[row]));
  const used = [0, 1, 2, 3].filter((lane) => calls.some((call) => call.lane === lane && !hidden.layer.has(call.layer)));
  const sum = used.reduce((all, lane) => all + weights[lane], 0) || 1;
  const zoomed = Math.max(0.45, Math.min(2.6, (400 / rows.length - 5) / sum));
  const gap = zoomed < 0.7 ? 2 : 5, places = {};
  let y = 0;
  for (const lane of used) { places[lane] = { y, h: Math.max(2, weights[lane] * zoomed) }; y += places[lane].h + (zoomed > 0.7 ? 1 : 0); }
  const height = y + gap, plot = Math.min(height * rows.length, 560);
  return { rows, places, height, gap, plot, deepest: Math.max(0, height * rows.length - plot) };
};

const keepTimeline = keeper();
const drawTimeline = () => {
  layout = arrange();
  scroll = Math.max(0, Math.min(layout.deepest, scroll));
  const { context: g, width } = fit(timeline, TOP + layout.plot + BOTTOM);
  const left = gutter(width), x = (ns) => left + ((ns - view.from) * (width - left)) / (view.to - view.from);
  Object.assign(layout, { left, width });
  keepTimeline(g, [view.from, view.to, scroll], () => paintRows(g, x));
  g.save();
  g.beginPath(); g.rect(left, TOP - marksHeight, width - left, layout.plot + marksHeight); g.clip();
  veil(g, x, left, width, TOP - marksHeight, layout.plot + marksHeight);
  g.restore();
};
const paintRows = (g, x) => {
  const { left, width } = layout, scale = (width - left) / (view.to - view.from);
  const gap = axis(g, view.from, view.to, x, 0, left, width);
  drawMarks(g, x, MARKS_TOP, left, width);
  g.fillStyle = colours.soft; g.textAlign = "right";
  marks.forEach(({ name }, lane) => g.fillText(fitted(g, name, left - 12), left - 10, markTop(lane, MARKS_TOP) + MARK / 2 + 0.5));
  const first = Math.floor(scroll / layout.height), last = Math.min(layout.rows.length - 1, Math.floor((scroll + layout.plot) / layout.height));
  const top = (row) => TOP + row * layout.height - scroll;
  g.save();
  // A little more than the rows: the first label may be taller than its row.
  g.beginPath(); g.rect(0, TOP - 5, width, layout.plot + 5); g.clip();
  for (let row = first; row <= last; row++) {
    if (row % 2) { g.fillStyle = colours.stripe; g.fillRect(0, top(row), width, layout.height); }
  }
  g.fillStyle = colours.grid;
  for (let k = Math.ceil(view.from / gap); k * gap <= view.to; k++) g.fillRect(Math.round(x(k * gap)), TOP, 1, layout.plot);
  g.fillStyle = colours.soft; g.textAlign = "right";
  // Where there is no room for a name at each row, there is one for each process.
  let labelled = -Infinity;
  for (let row = first; row <= last; row++) {
    const isFirst = row === 0 || data.process_of_row[layout.rows[row]] !== data.process_of_row[layout.rows[row - 1]];
    if (top(row) - labelled < 13 || (layout.height < 13 && !isFirst)) continue;
    labelled = top(row);
    g.fillText(fitted(g, data.rows[layout.rows[row]], left - 12), left - 10, labelled + (layout.height - layout.gap) / 2 + 1);
  }
  g.beginPath(); g.rect(left, TOP, width - left, layout.plot); g.clip();
  for (let row = first; row <= last; row++) {
    for (const lane in layout.places) {
      const { y, h } = layout.places[lane];
      drawLane(g, lanes[layout.rows[row] * each + +lane], top(row) + layout.gap / 2 + y, h, x, scale, left, width);
    }
  }
  drawMarkLines(g, x, TOP, layout.plot, left, width);
  g.restore();
  if (layout.deepest > 0) {
    g.fillStyle = colours.soft;
    const length = (layout.plot * layout.plot) / (layout.height * layout.rows.length);
    g.fillRect(width - 3, TOP + ((layout.plot - length) * scroll) / layout.deepest, 3, length);
  }
};
const redrawTimeline = onceAFrame(drawTimeline);
if (timeline) {
  redraws.push(drawTimeline);
  redrawView.push(redrawTimeline);
  listeners.quick.push(redrawTimeline);
}

