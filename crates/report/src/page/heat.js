// ---- heat map: who was in I/O when.
const heat = document.getElementById("busy");
let cells = busy.cells;
// The same of the chosen calls: the part of each bin that they cover, of a row of one or more processes. A chosen time and
// chosen processes are only made to stand out: what was when does not depend on them.
const countsAll = () => !selection.files && !hidden.op.size && !hidden.layer.size;
const countCells = () => {
  if (countsAll()) return busy.cells;
  const rowOf = new Int32Array(data.processes.length).fill(-1), sizes = [];
  busy.first.forEach((first, row) => {
    const next = busy.first[row + 1] ?? data.process_count;
    rowOf.fill(row, first, next);
    sizes.push(Math.max(1, next - first));
  });
  const sums = new Float64Array(busy.cells.length), until = new Float64Array(data.processes.length);
  const shown = SHOWN | OF_FILE;
  for (let i = 0; i < barCount; i++) {
    const process = processOf[i], row = rowOf[process];
    if (row < 0 || callOf(i).isMessage || (state[i] & shown) !== shown) continue;
    // Several calls in one bar are taken to be spread evenly over it.
    const isOne = col.events[i] === 1, to = ends[i], part = isOne ? 1 : Math.min(1, col.time[i] / Math.max(1, col.elapsed[i]));
    let from = isOne ? Math.max(starts[i], until[process]) : starts[i];
    if (isOne) until[process] = Math.max(until[process], to);
    while (from < to) {
      const bin = Math.min(busy.bins - 1, Math.floor(from / busy.bin_ns)), end = Math.min(to, (bin + 1) * busy.bin_ns);
      sums[row * busy.bins + bin] += (end - from) * part;
      if (end <= from) break;
      from = end;
    }
  }
  for (let row = 0; row < busy.rows; row++) {
    const full = busy.bin_ns * sizes[row];
    for (let k = row * busy.bins; k < (row + 1) * busy.bins; k++) sums[k] = Math.min(255, (255 * sums[k]) / full);
  }
  return sums;
};
// Where the heat map is drawn, the row and bin that the keys are at, and the processes of a row.
let heatPlace = null, heatCell = null;
const ofRow = (row) => {
  const first = busy.first[row], next = busy.first[row + 1] ?? data.process_count;
  return Array.from({ length: next - first }, (_, k) => first + k);
};
// A pixel a cell, until the cells or the colours change.
let picture = { cells: null, colour: null, canvas: null };
const heatPicture = () => {
  if (picture.cells === cells && picture.colour === colours["heat-1"]) return picture.canvas;
  const image = new ImageData(busy.bins, busy.rows), low = rgb(colours["heat-0"]), high = rgb(colours["heat-1"]);
  for (let i = 0; i < cells.length; i++) {
    const part = cells[i] / 255;
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = low[c] + (high[c] - low[c]) * part;
    image.data[4 * i + 3] = 255;
  }
  const canvas = document.createElement("canvas");
  canvas.width = busy.bins; canvas.height = busy.rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
  picture = { cells, colour: colours["heat-1"], canvas };
  return canvas;
};
const drawHeat = () => {
  const rowHeight = Math.max(1, Math.min(16, Math.floor(300 / busy.rows))), plot = rowHeight * busy.rows, above = 6;
  const { context: g, width } = fit(heat, above + plot + 24), left = gutter(width);
  g.imageSmoothingEnabled = false;
  // The last bin may reach beyond the end of the job.
  const scale = (width - left) / total, x = (ns) => left + ns * scale, y = (row) => above + row * rowHeight;
  heatPlace = { left, width, above, rowHeight, plot };
  g.save();
  g.beginPath(); g.rect(left, above, width - left, plot); g.clip();
  g.drawImage(heatPicture(), left, above, busy.bins * busy.bin_ns * scale, plot);
  // Rows of processes that are not chosen become faint.
  if (selection.processes) {
    g.globalAlpha = 0.72;
    g.fillStyle = colours.panel;
    for (let row = 0; row < busy.rows; row++) if (!ofRow(row).some((process) => selection.processes.has(process))) g.fillRect(left, y(row), width - left, rowHeight);
    g.globalAlpha = 1;
  }
  veil(g, x, left, width, above, plot);
  const frame = (first, last, from, until, colour) => {
    const top = y(first), height = Math.max(5, y(last + 1) - top);
    g.strokeStyle = colour; g.lineWidth = 1.5;
    g.strokeRect(x(from) + 0.75, top - (height > y(last + 1) - top ? 2 : 0) + 0.75, Math.max(4, x(until) - x(from) - 1.5), height - 1.5);
  };
  for (const [first, last, from, until] of data.apart) frame(rowOfProcess(first), rowOfProcess(last), from, until, colours["warn-line"]);
  if (heatCell && document.activeElement === heat) {
    frame(heatCell.row, heatCell.row, heatCell.bin * busy.bin_ns, Math.min(total, (heatCell.bin + 1) * busy.bin_ns), colours.ink);
  }
  g.restore();
  g.fillStyle = colours.soft; g.textAlign = "right";
  const every = Math.ceil(14 / rowHeight);
  for (let row = 0; row < busy.rows; row += every) {
    g.fillText(fitted(g, data.processes[busy.first[row]], left - 12), left - 8, above + (row + 0.5) * rowHeight);
  }
  axis(g, 0, total, x, above + plot, left, width);
};
const rowOfProcess = (process) => {
  let row = busy.first.length - 1;
  while (row > 0 && busy.first[row] > process) row--;
  return row;
};
if (heat) {
  const redraw = onceAFrame(drawHeat);
  redraws.push(drawHeat);
  listeners.quick.push(redraw);
  listeners.slow.push(() => { cells = countCells(); drawHeat(); });
  const timeAt = (event) => {
    const { left, width } = heatPlace;
    return Math.max(0, Math.min(total, ((event.clientX - heat.getBoundingClientRect().left - left) * total) / (width - left)));
  };
  const cellAt = (event) => {
    const { above, rowHeight, plot, left } = heatPlace, box = heat.getBoundingClientRect(), y = event.clientY - box.top - above;
    if (y < 0 || y >= plot || event.clientX - box.left < left) return null;
    return { row: Math.floor(y / rowHeight), bin: Math.min(busy.bins - 1, Math.floor(timeAt(event) / busy.bin_ns)) };
  };
  const cellLines = ({ row, bin }) => {
    const of = ofRow(row), names = of.map((process) => data.processes[process]), title = document.createElement("b");
    title.textContent = of.length > 1 ? `${names[0]} to ${names.at(-1)}` : names[0];
    const from = bin * busy.bin_ns, until = Math.min(total, from + busy.bin_ns);
    const lines = [title, tipLine("time", `${(from / 1e9).toFixed(6)} to ${(until / 1e9).toFixed(6)} s`)];
    lines.push(tipLine("in I/O", percent(Math.min(1, (cells[row * busy.bins + bin] / 255) * (busy.bin_ns / (countsAll() ? busy.bin_ns : until - from))))));
    const here = ([first, last, begin, end]) => first <= of.at(-1) && last >= of[0] && begin < until && end > from;
    for (const words of new Set(data.apart.filter(here).map((entry) => entry[4]))) lines.push(tipLine("apart", words));
    return lines;
  };
  const chooseRow = (row) => {
    const of = ofRow(row), { processes } = selection;
    const isChosenRow = processes?.size === of.length && of.every((process) => processes.has(process));
    choose({ processes: isChosenRow ? null : new Set(of) });
  };
  let from = null, startX = 0;
  heat.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    heat.setPointerCapture(event.pointerId);
    from = timeAt(event);
    startX = event.clientX;
    showTip(heat, event, null);
  });
  heat.addEventListener("pointermove", (event) => {
    if (from !== null) {
      if (Math.abs(event.clientX - startX) > 2) chooseTime(from, timeAt(event));
      return;
    }
    const cell = cellAt(event);
    showTip(heat, event, cell && cellLines(cell));
  });
  heat.addEventListener("pointerup", (event) => {
    const cell = cellAt(event);
    if (from !== null && Math.abs(event.clientX - startX) <= 2 && cell) chooseRow(cell.row);
    from = null;
  });
  heat.addEventListener("pointercancel", () => { from = null; });
  heat.addEventListener("pointerleave", (event) => showTip(heat, event, null));
  heat.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { row, bin } = heatCell ?? { row: 0, bin: 0 };
    const move = (rows, bins) => () => {
      heatCell = {
        row: Math.max(0, Math.min(busy.rows - 1, row + rows)),
        bin: Math.max(0, Math.min(Math.ceil(total / busy.bin_ns) - 1, bin + bins)),
      };
      drawHeat();
      const box = heat.getBoundingClientRect(), { left, width, above, rowHeight } = heatPlace;
      const clientX = box.left + left + ((width - left) * heatCell.bin * busy.bin_ns) / total;
      showTip(heat, { clientX, clientY: box.top + above + heatCell.row * rowHeight }, cellLines(heatCell));
    };
    const keys = {
      ArrowLeft: move(0, -1), ArrowRight: move(0, 1), ArrowUp: move(-1, 0), ArrowDown: move(1, 0),
      Enter: () => chooseRow(row), c: () => chooseTime(bin * busy.bin_ns, (bin + 1) * busy.bin_ns),
      Escape: () => choose({ from: null, until: null, processes: null }),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  heat.addEventListener("blur", (event) => { showTip(heat, event, null); redraw(); });
}
