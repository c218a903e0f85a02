// ---- bars: those of one row and layer, drawn.
const each = 4;
// In order of start, with the latest end so far: where to begin is a binary search.
const lanes = (() => {
  const sizes = new Uint32Array(data.rows.length * each), laneIndex = (i) => col.row[i] * each + callOf(i).lane;
  for (let i = 0; i < barCount; i++) sizes[laneIndex(i)]++;
  const made = Array.from(sizes, (size) => ({ size: 0, bars: new Uint32Array(size), latest: new Float64Array(size) }));
  for (let i = 0; i < barCount; i++) {
    const lane = made[laneIndex(i)], k = lane.size++;
    lane.bars[k] = i;
    lane.latest[k] = Math.max(ends[i], k ? lane.latest[k - 1] : 0);
  }
  return made;
})();
const firstReaching = (lane, ns) => {
  let low = 0, high = lane.latest.length;
  while (low < high) { const middle = (low + high) >> 1; if (lane.latest[middle] < ns) low = middle + 1; else high = middle; }
  return low;
};

const opOf = Uint8Array.from(calls, (call) => ops.indexOf(call.op));
// Parts of a collective call: late ranks, library, files. The work at the files has the colour itself.
const strengths = [0.3, 0.62, 1];
const isShaded = (i) => data.parts.length > 0 && col.events[i] === 1 && partsOf(i).some((ns) => ns > 0);
const partBoxes = (i, from, to, colour) => {
  const times = partsOf(i), sum = times.reduce((all, ns) => all + ns, 0);
  // Where the files were not seen, the rest is as strong as any other call.
  const strength = (part) => (part === times.length - 1 ? 1 : strengths[part]);
  let at = from;
  return times.map((ns, part) => [at, (at += ((to - from) * ns) / sum), shade(colour, strength(part))]);
};
const labelColour = (colour) => {
  const [r, g, b] = rgb(colour);
  return r * 0.299 + g * 0.587 + b * 0.114 > 135 ? "#15181b" : "#ffffff";
};

// Draws the bars of a lane: those of other files are faint, and lie behind; those of several calls lie behind those of one.
const drawLane = (g, lane, y, h, x, scale, left, right) => {
  const place = { y, h, x, scale, left, right };
  for (const wanted of selection.files ? [SHOWN, SHOWN | OF_FILE] : [SHOWN | OF_FILE]) {
    if (someMerged) drawMerged(g, lane, place, wanted);
    drawBars(g, lane, place, wanted);
  }
};
const colourOf = (op, wanted) => (wanted & OF_FILE ? colours[ops[op]] : colours.ghost);

// Bars of several calls overlap where a thread does different things by turns: each pixel gets the operation that took most of
// it, and equal neighbours are one box.
const someMerged = col.time !== col.elapsed;
// By pixel and operation, what a pixel's time in it is more than that of the pixel before.
// How many of its bars are open there, more than before: sums of rounded numbers do not come back to 0.
let steps = new Float32Array(0), begun = new Int32Array(0);
const sums = new Float64Array(ops.length), open = new Int32Array(ops.length);
const drawMerged = (g, lane, { y, h, x, scale, left, right }, wanted) => {
  const width = Math.ceil(right - left), ofOps = ops.length;
  if (steps.length < (width + 1) * ofOps) {
    steps = new Float32Array((width + 1) * ofOps);
    begun = new Int32Array(steps.length);
  }
  steps.fill(0);
  begun.fill(0);
  for (let k = firstReaching(lane, view.from); k < lane.size; k++) {
    const i = lane.bars[k];
    if (starts[i] > view.to) break;
    if (col.events[i] === 1 || (state[i] & (SHOWN | OF_FILE)) !== wanted) continue;
    const exact = x(starts[i]) - left, end = exact + Math.max(1, col.elapsed[i] * scale);
    if (end <= 0) continue;
    const from = Math.max(0, Math.floor(exact)), to = Math.min(width, Math.ceil(end)), op = opOf[col.call[i]], part = (col.time[i] + 1e-3) / (end - exact);
    steps[from * ofOps + op] += part;
    steps[to * ofOps + op] -= part;
    begun[from * ofOps + op]++;
    begun[to * ofOps + op]--;
  }
  sums.fill(0);
  open.fill(0);
  let run = -1, runFrom = 0;
  for (let pixel = 0; pixel <= width; pixel++) {
    let most = -1;
    for (let op = 0; op < ofOps; op++) {
      open[op] += begun[pixel * ofOps + op];
      sums[op] = open[op] ? sums[op] + steps[pixel * ofOps + op] : 0;
      if (open[op] && (most < 0 || sums[op] > sums[most])) most = op;
    }
    if (pixel === width) most = -1;
    if (most === run) continue;
    if (run >= 0) { g.fillStyle = colourOf(run, wanted); g.fillRect(left + runFrom, y, pixel - runFrom, h); }
    run = most;
    runFrom = pixel;
  }
};

const inPixel = new Float64Array(ops.length);
const drawBars = (g, lane, { y, h, x, scale, left, right }, wanted) => {
  // Bars thinner than a pixel: each pixel gets the operation that took most of it; equal neighbours are one box.
  let pixel = -1, runOp = -1, runFrom = 0, runTo = 0;
  const flush = () => {
    if (runOp >= 0) { g.fillStyle = colourOf(runOp, wanted); g.fillRect(runFrom, y, runTo - runFrom, h); }
    runOp = -1;
  };
  const settle = () => {
    if (pixel < 0) return;
    let most = 0;
    for (let op = 1; op < inPixel.length; op++) if (inPixel[op] > inPixel[most]) most = op;
    inPixel.fill(0);
    if (runOp !== most || runTo !== pixel) { flush(); runOp = most; runFrom = pixel; }
    runTo = pixel + 1;
    pixel = -1;
  };
  g.textAlign = "left";
  for (let k = firstReaching(lane, view.from); k < lane.size; k++) {
    const i = lane.bars[k], start = starts[i], call = col.call[i];
    if (start > view.to) break;
    if (col.events[i] > 1 || (state[i] & (SHOWN | OF_FILE)) !== wanted) continue;
    const elapsed = col.elapsed[i], exact = x(start), wide = elapsed * scale;
    if (exact + wide < left) continue;
    if (wide < 1) {
      const at = Math.max(left, Math.floor(exact));
      if (at !== pixel) { settle(); pixel = at; }
      inPixel[opOf[call]] += col.time[i] + 1e-3;
      continue;
    }
    settle();
    flush();
    const end = exact + wide - (wide > 4 ? 0.75 : 0), colour = colourOf(opOf[call], wanted);
    // From where to where, and in which colour: the label goes into the longest of them.
    const boxes = wide > 3 && isShaded(i) && wanted & OF_FILE ? partBoxes(i, exact, end, colour) : [[exact, end, colour]];
    let longest = null;
    for (const [from, to, colour] of boxes) {
      const x0 = Math.max(left - 2, from), x1 = Math.min(right + 2, to);
      if (x1 <= x0) continue;
      g.fillStyle = colour;
      g.fillRect(x0, y, x1 - x0, h);
      if (!longest || x1 - x0 > longest.x1 - longest.x0) longest = { x0, x1, colour };
    }
    if (h >= 11 && longest && longest.x1 - longest.x0 > 46) {
      const { x0, x1, colour } = longest, text = calls[call].name.replace("MPI_File_", "");
      if (g.measureText(text).width < x1 - Math.max(x0, left) - 10) {
        g.fillStyle = labelColour(colour);
        g.fillText(text, Math.max(x0, left) + 5, y + h / 2 + 0.5);
      }
    }
  }
  settle();
  flush();
};

