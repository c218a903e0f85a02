// ---- canvas: what all drawings share.
const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const fit = (canvas, height) => {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, width };
};
// The picture that `paint` makes, kept as long as the key and the canvas are the same: choosing a time draws its ends over it.
const keeper = () => {
  const kept = document.createElement("canvas");
  let known = null;
  return (g, key, paint) => {
    const canvas = g.canvas, all = [...key, choices, canvas.width, canvas.height, root.classList.contains("dark")].join();
    if (all !== known) {
      paint();
      // One that is not shown has no size, and cannot be copied.
      if (!canvas.width || !canvas.height) return;
      kept.width = canvas.width; kept.height = canvas.height;
      kept.getContext("2d").drawImage(canvas, 0, 0);
      known = all;
      return;
    }
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(kept, 0, 0);
    g.restore();
  };
};
// Draws in the next frame, however often it is asked to.
const onceAFrame = (draw) => {
  let queued = false;
  return () => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); } };
};

// Room at the left for the names of rows, the same in all drawings over time; less where the page is narrow.
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = FONT;
const nameWidth = ["whole run", ...data.rows, ...data.marks.map(({ name }) => name)].reduce((most, name) => Math.max(most, ruler.measureText(name).width), 0);
const gutter = (width) => Math.ceil(Math.min(nameWidth + 14, width * 0.22, 170));
const fitted = (context, name, width) => {
  if (context.measureText(name).width <= width) return name;
  let length = name.length;
  while (length > 1 && context.measureText(name.slice(0, length) + "…").width > width) length--;
  return name.slice(0, length) + "…";
};

const step = (least) => {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((f) => f * power).find((s) => s >= least * 0.999999);
};
const binaryStep = (least) => 2 ** Math.ceil(Math.log2(Math.max(1, least)));
const axis = (context, from, to, x, top, left, right) => {
  const gap = step(((to - from) * 90) / (right - left));
  context.textAlign = "center";
  for (let k = Math.ceil(from / gap); k * gap <= to; k++) {
    const at = Math.round(x(k * gap)) + 0.5;
    context.fillStyle = colours.line;
    context.fillRect(at - 0.5, top + 16, 1, 5);
    context.fillStyle = colours.soft;
    const label = tick(k * gap, gap);
    if (at > left - 1 && at < right + 1) context.fillText(label, Math.min(at, right - context.measureText(label).width / 2), top + 8);
  }
  return gap;
};
// A tick needs as many digits as its distance to the next has.
const tick = (ns, gap) => {
  const [unit, name] = gap >= 1e8 || ns >= 1e10 ? [1e9, "s"] : gap >= 1e5 || ns >= 1e9 ? [1e6, "ms"] : gap >= 1e2 || ns >= 1e6 ? [1e3, "µs"] : [1, "ns"];
  if (ns === 0) return "0";
  return (ns / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(gap / unit) - 1e-9))) + " " + name;
};
// Makes faint what is outside the chosen time.
const veil = (context, x, left, right, top, height) => {
  if (selection.from === null) return;
  const from = Math.max(left, Math.min(right, x(selection.from))), until = Math.max(left, Math.min(right, x(selection.until)));
  context.save();
  context.globalAlpha = 0.72;
  context.fillStyle = colours.panel;
  context.fillRect(left, top, from - left, height);
  context.fillRect(until, top, right - until, height);
  context.globalAlpha = 1;
  context.fillStyle = colours.accent;
  for (const at of [from, until]) if (at > left && at < right) context.fillRect(at - 0.5, top, 1, height);
  context.restore();
};

// What is said of a bar, beside the pointer.
const tipLine = (name, value) => {
  const div = document.createElement("div"), label = document.createElement("span");
  label.textContent = name + " ";
  div.append(label, value);
  return div;
};
const partsOf = (i) => data.parts.map((_, part) => col["part" + part][i]);
const tipLines = (i) => {
  const call = callOf(i), many = col.events[i] > 1, flags = col.flags[i];
  const title = document.createElement("b");
  title.textContent = many ? `${count(col.events[i])} × ${call.name}` : call.name;
  const facts = [call.layer, flags & PHYSICAL && "caused by an upper layer", flags & COLLECTIVE && "collective", flags & ASYNC && "asynchronous",
    flags & UNFINISHED && "never returned"];
  const process = data.processes[processOf[i]], row = data.rows[col.row[i]];
  const lines = [title, tipLine((row === process ? process : `${process}, ${row}`) + " ·", facts.filter(Boolean).join(", "))];
  const line = (name, value) => lines.push(tipLine(name, value));
  if (col.file[i]) line("file", fileName(col.file[i]));
  if (col.other[i]) line(call.name === "symlink" ? "stands for" : "to", fileName(col.other[i]));
  if (col.kind[i] === 1) line("offset", `${bytes(col.place[i])} (${count(col.place[i])})`);
  if (col.kind[i] > 4) { line("server", String(col.kind[i] - 5)); line("first byte", count(col.place[i])); }
  if (col.kind[i] === 2) line("position in view", count(col.place[i]));
  if (col.kind[i] === 3) line("with rank", String(col.place[i]));
  if (col.size[i]) line(many ? "size in all" : "size", `${bytes(col.size[i])} (${count(col.size[i])})`);
  line("start", (starts[i] / 1e9).toFixed(6) + " s");
  line(many ? "from first to last" : "elapsed", time(col.elapsed[i]));
  if (many) line("in the calls", time(col.time[i]));
  if (partsOf(i).some((ns) => ns > 0)) data.parts.forEach((name, part) => line(name, time(partsOf(i)[part])));
  const result = col.result[i];
  if (result < 0 && !many) line("failed with error", String(-result));
  else if (col.failed[i]) line("failed", count(col.failed[i]));
  if (result > 0) line("moved", bytes(result) + (result !== col.size[i] ? " (less than asked for)" : ""));
  return lines;
};
const showTip = (canvas, event, lines) => {
  const tip = canvas.parentElement.querySelector(".tip");
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines);
  const box = canvas.parentElement.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  tip.style.left = Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth - 4)) + "px";
  tip.style.top = y + 18 + "px";
};

