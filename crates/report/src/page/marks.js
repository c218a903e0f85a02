// ---- marks: what the program marked, bands above the rows; a lane a name.
const marks = data.marks.map((one) => {
  const times = (column) => Float64Array.from(decode(column), (value) => value * data.unit_ns);
  return { ...one, number: decode(one.number), count: decode(one.count), start: times(one.start), end: times(one.end), time: times(one.time) };
});
const MARK = 13, marksHeight = marks.length ? marks.length * (MARK + 1) + 4 : 0;
const markTop = (lane, top) => top + lane * (MARK + 1);
// The first that ends behind a time, if they are one behind the other.
const firstMark = ({ end }, ns) => {
  let low = 0, high = end.length;
  while (low < high) { const middle = (low + high) >> 1; if (end[middle] < ns) low = middle + 1; else high = middle; }
  return low;
};
const markTitle = ({ name, number, count: counts }, i) => (counts[i] > 1 ? `${count(counts[i])} × ${name}, from ${count(number[i])} on` : `${name} ${count(number[i])}`);

// Bands too narrow to be told apart are one, as strong as the part of its time that they take.
const drawMarks = (g, x, top, left, right) => {
  marks.forEach((one, lane) => {
    const y = markTop(lane, top);
    let from = 0, to = -1, covered = 0;
    const flush = () => {
      if (to < from) return;
      g.globalAlpha = 0.25 + 0.75 * Math.min(1, covered / Math.max(1, to - from));
      g.fillStyle = colours["mark-0"];
      g.fillRect(from, y, Math.max(1, to - from), MARK);
      g.globalAlpha = 1;
      to = -1; from = 0; covered = 0;
    };
    g.textAlign = "left";
    for (let i = firstMark(one, view.from); i < one.start.length && one.start[i] <= view.to; i++) {
      const x0 = Math.max(left, x(one.start[i])), x1 = Math.min(right, x(one.end[i])), wide = x1 - x0;
      if (wide < 3 || one.count[i] > 1) {
        if (to < from) from = x0; else if (x0 > to + 2) { flush(); from = x0; }
        to = Math.max(to, x1);
        covered += Math.max(0, wide) * (one.time[i] / Math.max(1, one.end[i] - one.start[i]));
        continue;
      }
      flush();
      g.fillStyle = colours[one.number[i] % 2 ? "mark-1" : "mark-0"];
      g.fillRect(x0, y, wide - 0.75, MARK);
      const label = String(one.number[i]);
      if (g.measureText(label).width > wide - 6) continue;
      g.fillStyle = colours.ink;
      const long = `${one.name} ${label}`;
      g.fillText(g.measureText(long).width < wide - 8 ? long : label, x0 + 3, y + MARK / 2 + 0.5);
    }
    flush();
  });
};
// Where the outermost ones begin and end, through all rows; none where they are too close.
const drawMarkLines = (g, x, top, height, left, right) => {
  const [one] = marks;
  if (!one) return;
  const ends = new Set();
  const first = firstMark(one, view.from);
  let last = -Infinity;
  for (let i = first; i < one.start.length && one.start[i] <= view.to; i++) {
    if (one.count[i] > 1) return;
    const at = Math.round(x(one.start[i]));
    if (at - last < 12) return;
    last = at;
    ends.add(at).add(Math.round(x(one.end[i])));
  }
  g.fillStyle = colours["mark-line"];
  for (const at of ends) if (at > left && at < right) g.fillRect(at, top, 1, height);
};
const markAt = (y, ns, slack) => {
  const lane = Math.floor(y / (MARK + 1)), one = marks[lane];
  if (!one || y < 0) return null;
  for (let i = firstMark(one, ns - slack); i < one.start.length && one.start[i] <= ns + slack; i++) {
    if (one.end[i] >= ns - slack) return { one, i };
  }
  return null;
};
const markLines = ({ one, i }) => {
  const title = document.createElement("b"), lines = [title];
  title.textContent = markTitle(one, i);
  if (one.process !== null) lines.push(tipLine("marked by", data.processes[one.process]));
  lines.push(tipLine("start", (one.start[i] / 1e9).toFixed(6) + " s"), tipLine("end", (one.end[i] / 1e9).toFixed(6) + " s"));
  lines.push(tipLine(one.count[i] > 1 ? "time in all" : "time", time(one.time[i])));
  return lines;
};

