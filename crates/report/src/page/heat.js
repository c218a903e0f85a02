// ---- heat map: who was in I/O when.
const heat = document.getElementById("busy");
let cells = busy.cells;
// The same of the chosen calls: the part of each bin that they cover, of a row of one or more processes.
const countCells = () => {
  if (isWhole()) return busy.cells;
  const rowOf = new Int32Array(data.processes.length).fill(-1), sizes = [];
  busy.first.forEach((first, row) => {
    const next = busy.first[row + 1] ?? data.process_count;
    rowOf.fill(row, first, next);
    sizes.push(Math.max(1, next - first));
  });
  const sums = new Float64Array(busy.cells.length), until = new Float64Array(data.processes.length);
  for (const i of chosenBars()) {
    const process = processOf[i], row = rowOf[process], to = inTurn[i];
    if (row < 0 || callOf(i).isMessage) continue;
    let from = Math.max(starts[i], until[process]);
    until[process] = Math.max(until[process], to);
    while (from < to) {
      const bin = Math.min(busy.bins - 1, Math.floor(from / busy.bin_ns)), end = Math.min(to, (bin + 1) * busy.bin_ns);
      sums[row * busy.bins + bin] += end - from;
      if (end <= from) break;
      from = end;
    }
  }
  return sums.map((sum, k) => Math.min(255, (255 * sum) / (busy.bin_ns * sizes[Math.floor(k / busy.bins)])));
};
const drawHeat = () => {
  const rowHeight = Math.max(1, Math.min(16, Math.floor(300 / busy.rows))), plot = rowHeight * busy.rows, above = 6;
  const { context: g, width } = fit(heat, above + plot + 24), left = gutter(width);
  const image = new ImageData(busy.bins, busy.rows), low = rgb(colours["heat-0"]), high = rgb(colours["heat-1"]);
  for (let i = 0; i < cells.length; i++) {
    const part = cells[i] / 255;
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = low[c] + (high[c] - low[c]) * part;
    image.data[4 * i + 3] = 255;
  }
  const small = document.createElement("canvas");
  small.width = busy.bins; small.height = busy.rows;
  small.getContext("2d").putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  // The last bin may reach beyond the end of the job.
  const scale = (width - left) / total;
  g.save();
  g.beginPath(); g.rect(left, above, width - left, plot); g.clip();
  g.drawImage(small, left, above, busy.bins * busy.bin_ns * scale, plot);
  veil(g, (ns) => left + ns * scale, left, width, above, plot);
  g.restore();
  g.fillStyle = colours.soft; g.textAlign = "right";
  const every = Math.ceil(14 / rowHeight);
  for (let row = 0; row < busy.rows; row += every) {
    g.fillText(fitted(g, data.processes[busy.first[row]], left - 12), left - 8, above + (row + 0.5) * rowHeight);
  }
  axis(g, 0, total, (ns) => left + ns * scale, above + plot, left, width);
};
if (heat) {
  redraws.push(drawHeat);
  listeners.slow.push(() => { cells = countCells(); drawHeat(); });
}

