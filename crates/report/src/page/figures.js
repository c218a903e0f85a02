// ---- figures: what the chosen calls amount to, drawn over what all do, which becomes faint. Their axes stay.
const SVG = document.getElementById("theme").ownerDocument.querySelector("svg")?.namespaceURI;
const keyed = (svg) => [...svg.querySelectorAll("[data-key]:not(.chosen)")];
const over = (svg, shape, attributes) => {
  const copy = shape.cloneNode(false);
  copy.classList.add("chosen");
  for (const name in attributes) copy.setAttribute(name, attributes[name]);
  svg.append(copy);
  return copy;
};
const withTip = (shape, text) => {
  const title = document.createElementNS(SVG, "title");
  title.textContent = text;
  shape.append(title);
};
// What the page's calls do not tell is not drawn as nothing.
const unknown = (svg, shape) => withTip(over(svg, shape, { width: 0 }), `${shape.dataset.key}: not known of some calls`);
// Bars of what some of all calls amount to: `of` is a tally's number, in words `say`.
const partOf = (all, some) => (all > 0 ? Math.min(1, some / all) : 0);
const wide = (shape) => +shape.getAttribute("width");

// What no operation accounts for, and the part of collective calls by which it is divided.
const partNames = ["late ranks", "MPI library", "other ranks at the files"];

const drawers = {
  time: (svg) => {
    const shapes = keyed(svg), keys = shapes.map((shape) => shape.dataset.key);
    const [all, some] = [talliesOfAll, tallies].map((count) => count("operation", svg.dataset.level, keys));
    for (const shape of shapes) {
      const { key } = shape.dataset, part = col["part" + partNames.indexOf(key)];
      const known = part ? part.some((ns) => ns > 0) : all.get(key).time > 0;
      if (wide(shape) > 0 && !known) { unknown(svg, shape); continue; }
      const chosen = part ? partOf(part.reduce((sum, ns) => sum + ns, 0), chosenBars().reduce((sum, i) => sum + part[i], 0))
        : partOf(all.get(key).time, some.get(key).time);
      withTip(over(svg, shape, { width: wide(shape) * chosen }), `${key}: ${percent(chosen)} of it in chosen calls`);
    }
  },
  sizes: (svg) => {
    const shapes = keyed(svg), keys = shapes.map((shape) => shape.dataset.key);
    const [all, some] = [talliesOfAll, tallies].map((count) => count("size", "", keys));
    for (const shape of shapes) {
      const { key } = shape.dataset, { calls } = some.get(key);
      if (!all.get(key).calls) { unknown(svg, shape); continue; }
      withTip(over(svg, shape, { width: wide(shape) * partOf(all.get(key).calls, calls) }), `${count(calls)} of chosen calls`);
    }
  },
  processes: (svg) => {
    const keys = data.processes.map((_, process) => String(process));
    const [all, some] = [talliesOfAll, tallies].map((count) => count("process", "", keys));
    const of = { io: (t) => t.busy, asked: (t) => t.read + t.written, issued: (t) => t.onFiles };
    for (const shape of keyed(svg)) {
      const [panel, from, to] = shape.dataset.key.split(" ");
      const sum = (tallies) => keys.slice(+from, +to).reduce((sum, key) => sum + of[panel](tallies.get(key)), 0);
      const height = +shape.getAttribute("height"), part = height * partOf(sum(all), sum(some));
      over(svg, shape, { height: part, y: +shape.getAttribute("y") + height - part });
    }
  },
  rate: (svg) => {
    const { level, binNs, zero, left, perNs, perRate } = svg.dataset, counts = countsIn(level), width = +binNs;
    const bins = Math.max(1, Math.ceil(total / width)), sums = { read: new Float64Array(bins), write: new Float64Array(bins) };
    for (const i of chosenBars()) {
      const sum = sums[callOf(i).op];
      if (!sum || !counts(i)) continue;
      const first = Math.min(bins - 1, Math.floor(starts[i] / width)), last = Math.min(bins - 1, Math.floor(ends[i] / width));
      for (let bin = first; bin <= last; bin++) {
        const inside = Math.min(ends[i], (bin + 1) * width) - Math.max(starts[i], bin * width);
        sum[bin] += first === last ? moved[i] : (moved[i] * inside) / (ends[i] - starts[i]);
      }
    }
    for (const shape of keyed(svg)) {
      const sign = shape.dataset.key === "write" ? -1 : 1, x = (ns) => (+left + Math.min(ns, total) * perNs).toFixed(1);
      let path = `M${left} ${zero}`;
      sums[shape.dataset.key].forEach((moved, bin) => {
        const y = (+zero + ((sign * moved) / width) * 1e9 * perRate).toFixed(1);
        path += `L${x(bin * width)} ${y}L${x((bin + 1) * width)} ${y}`;
      });
      over(svg, shape, { d: `${path}L${x(total)} ${zero}Z` });
    }
  },
};
const liveFigures = [...document.querySelectorAll("svg[data-bars]")];
for (const svg of liveFigures) svg.closest("figure").classList.add("live");
listeners.slow.push(...liveFigures.map((svg) => () => {
  svg.querySelectorAll(".chosen").forEach((shape) => shape.remove());
  svg.classList.toggle("partly", !isWhole());
  if (!isWhole()) drawers[svg.dataset.bars](svg);
}));

