"use strict";
// The page's own script: theme, heat map, and the timeline. It draws what the page holds and loads nothing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // ---- data -------------------------------------------------------------------------------------------------------
  const arrays = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f32: Float32Array, f64: Float64Array };
  const decode = ([type, text]) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new arrays[type](bytes.buffer);
  };
  const col = {};
  for (const name in data.columns) col[name] = decode(data.columns[name]);
  const busy = { ...data.busy, cells: decode(data.busy.cells) };
  const total = Math.max(data.duration_ns, 1);

  // ---- words ------------------------------------------------------------------------------------------------------
  const digits = (x) => (x === 0 ? "0" : String(+x.toPrecision(4)));
  const time = (ns) => {
    const a = Math.abs(ns);
    if (a < 1e3) return digits(ns) + " ns";
    if (a < 1e6) return digits(ns / 1e3) + " µs";
    if (a < 1e9) return digits(ns / 1e6) + " ms";
    return digits(ns / 1e9) + " s";
  };
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = 0;
    while (Math.abs(n) >= 1024 && unit < 6) { n /= 1024; unit++; }
    return digits(n) + " " + units[unit];
  };
  const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

  // ---- theme ------------------------------------------------------------------------------------------------------
  const root = document.documentElement, themeButton = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const redraws = [];
  const NAMES = ["ink", "soft", "panel", "line", "grid", "stripe", "heat-0", "heat-1", "open", "close", "read", "write", "seek", "sync", "view",
    "metadata", "communication", "acknowledgement"];
  let colours = {};
  const setTheme = (dark) => {
    root.classList.toggle("dark", dark);
    themeButton.textContent = dark ? "Light" : "Dark";
    const style = getComputedStyle(root);
    colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    redraws.forEach((redraw) => redraw());
  };
  themeButton.addEventListener("click", () => setTheme(!root.classList.contains("dark")));
  prefersDark.addEventListener("change", (event) => setTheme(event.matches));
  let darkBeforePrint = false;
  addEventListener("beforeprint", () => { darkBeforePrint = root.classList.contains("dark"); setTheme(false); });
  addEventListener("afterprint", () => setTheme(darkBeforePrint));

  const fit = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
    context.textBaseline = "middle";
    return { context, width };
  };
  const step = (least) => {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((f) => f * power).find((s) => s >= least * 0.999999);
  };
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

  // ---- heat map ---------------------------------------------------------------------------------------------------
  const heat = document.getElementById("busy");
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const drawHeat = () => {
    const rowHeight = Math.max(1, Math.min(16, Math.floor(300 / busy.rows))), plot = rowHeight * busy.rows, left = 64, above = 6;
    const { context, width } = fit(heat, above + plot + 24);
    const image = new ImageData(busy.bins, busy.rows), low = rgb(colours["heat-0"]), high = rgb(colours["heat-1"]);
    for (let i = 0; i < busy.cells.length; i++) {
      const part = busy.cells[i] / 255;
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = low[c] + (high[c] - low[c]) * part;
      image.data[4 * i + 3] = 255;
    }
    const small = document.createElement("canvas");
    small.width = busy.bins; small.height = busy.rows;
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    // The last bin may reach beyond the end of the job.
    const scale = (width - left) / total;
    context.save();
    context.beginPath(); context.rect(left, above, width - left, plot); context.clip();
    context.drawImage(small, left, above, busy.bins * busy.bin_ns * scale, plot);
    context.restore();
    context.fillStyle = colours.soft; context.textAlign = "right";
    const every = Math.ceil(14 / rowHeight);
    for (let row = 0; row < busy.rows; row += every) context.fillText(data.rows[busy.first[row]], left - 8, above + (row + 0.5) * rowHeight);
    context.save(); context.translate(0, above + plot);
    axis(context, 0, total, (ns) => left + ns * scale, 6, left, width);
    context.restore();
  };
  if (heat) redraws.push(drawHeat);

  // ---- timeline ---------------------------------------------------------------------------------------------------
  const canvas = document.getElementById("bars");
  if (canvas) timeline();

  function timeline() {
    const tip = document.getElementById("tip");
    const laneOf = { hdf5: 0, pnetcdf: 0, "mpi-io": 1, posix: 2, stdio: 2, server: 2, message: 3 };
    const weights = [11, 11, 8, 6], each = weights.length;
    const n = col.start.length, rows = data.rows.length, left = 64, top = 26, bottom = 12;
    const shown = { layer: {}, op: {} };
    const calls = data.calls.map(([name, layer, op]) => ({ name, layer, op, lane: laneOf[layer] }));
    for (const call of calls) shown.layer[call.layer] = shown.op[call.op] = true;
    const startNs = (i) => col.start[i] * data.unit_ns, endNs = (i) => col.start[i] * data.unit_ns + col.elapsed[i];

    // Bars of each row and lane, in order of start, with the latest end so far: where to begin is a binary search.
    const sizes = new Uint32Array(rows * each), laneIndex = (i) => col.row[i] * each + calls[col.call[i]].lane;
    for (let i = 0; i < n; i++) sizes[laneIndex(i)]++;
    const lanes = Array.from(sizes, (size) => ({ size: 0, bars: new Uint32Array(size), starts: new Float64Array(size), latest: new Float64Array(size) }));
    for (let i = 0; i < n; i++) {
      const lane = lanes[laneIndex(i)], k = lane.size++;
      lane.bars[k] = i;
      lane.starts[k] = startNs(i);
      lane.latest[k] = Math.max(endNs(i), k ? lane.latest[k - 1] : 0);
    }
    const ops = [...new Set(calls.map((call) => call.op))];
    const opOf = Uint8Array.from(calls, (call) => ops.indexOf(call.op)), callShown = new Uint8Array(calls.length);
    const firstReaching = (lane, ns) => {
      let low = 0, high = lane.latest.length;
      while (low < high) { const middle = (low + high) >> 1; if (lane.latest[middle] < ns) low = middle + 1; else high = middle; }
      return low;
    };

    let from = 0, to = total, scroll = 0, layout = null, queued = false, width = 0;
    const smallest = Math.min(total, Math.max(20 * data.unit_ns, 100));

    const arrange = () => {
      const used = [0, 1, 2, 3].filter((lane) => calls.some((call) => call.lane === lane && shown.layer[call.layer]));
      const sum = used.reduce((all, lane) => all + weights[lane], 0) || 1;
      const zoomed = Math.max(0.45, Math.min(2.6, (400 / rows - 5) / sum));
      const gap = zoomed < 0.7 ? 2 : 5, places = {};
      let y = 0;
      for (const lane of used) { places[lane] = { y, h: Math.max(2, weights[lane] * zoomed) }; y += places[lane].h + (zoomed > 0.7 ? 1 : 0); }
      const row = y + gap, plot = Math.min(row * rows, 560);
      return { places, row, gap, plot, height: top + plot + bottom, deepest: Math.max(0, row * rows - plot) };
    };

    const draw = () => {
      queued = false;
      layout = arrange();
      calls.forEach((call, k) => { callShown[k] = shown.op[call.op] && shown.layer[call.layer] ? 1 : 0; });
      scroll = Math.max(0, Math.min(layout.deepest, scroll));
      const fitted = fit(canvas, layout.height), g = fitted.context;
      width = fitted.width;
      const scale = (width - left) / (to - from), x = (ns) => left + (ns - from) * scale;
      const gap = axis(g, from, to, x, 0, left, width);
      g.save();
      // A little more than the rows: the first label may be taller than its row.
      g.beginPath(); g.rect(0, top - 5, width, layout.plot + 5); g.clip();
      const firstRow = Math.floor(scroll / layout.row), lastRow = Math.min(rows - 1, Math.floor((scroll + layout.plot) / layout.row));
      for (let row = firstRow; row <= lastRow; row++) {
        if (row % 2) { g.fillStyle = colours.stripe; g.fillRect(0, top + row * layout.row - scroll, width, layout.row); }
      }
      g.fillStyle = colours.grid;
      for (let k = Math.ceil(from / gap); k * gap <= to; k++) g.fillRect(Math.round(x(k * gap)), top, 1, layout.plot);
      const labelEvery = Math.ceil(13 / layout.row);
      for (let row = firstRow; row <= lastRow; row++) {
        const y = top + row * layout.row - scroll;
        if (row % labelEvery === 0) {
          g.fillStyle = colours.soft; g.textAlign = "right";
          g.fillText(data.rows[row], left - 10, y + (layout.row - layout.gap) / 2 + 1);
        }
      }
      g.beginPath(); g.rect(left, top, width - left, layout.plot); g.clip();
      for (let row = firstRow; row <= lastRow; row++) {
        for (const lane in layout.places) drawLane(g, lanes[row * each + +lane], layout.places[lane], top + row * layout.row - scroll + layout.gap / 2, x, scale);
      }
      g.restore();
      if (to - from < total * 0.9999) {
        g.fillStyle = colours.line; g.fillRect(left, top + layout.plot + 6, width - left, 3);
        g.fillStyle = colours.soft;
        g.fillRect(left + ((width - left) * from) / total, top + layout.plot + 6, Math.max(6, ((width - left) * (to - from)) / total), 3);
      }
      if (layout.deepest > 0) {
        g.fillStyle = colours.soft;
        const length = (layout.plot * layout.plot) / (layout.row * rows);
        g.fillRect(width - 3, top + ((layout.plot - length) * scroll) / layout.deepest, 3, length);
      }
    };

    // Parts of a collective call: late ranks, library, files. The work at the files has the colour itself.
    const parts = data.parts.map((_, part) => col["part" + part]), strengths = [0.3, 0.62, 1];
    const partsOf = (i) => parts.map((part) => part[i]);
    const shaded = (i) => col.events[i] === 1 && parts.some((part) => part[i] > 0);
    const shade = (colour, strength) => {
      const ground = rgb(colours.panel);
      return "#" + rgb(colour).map((c, k) => Math.round(ground[k] + (c - ground[k]) * strength).toString(16).padStart(2, "0")).join("");
    };

    const inPixel = new Float64Array(ops.length);
    const drawLane = (g, lane, place, rowY, x, scale) => {
      const y = rowY + place.y, h = place.h;
      // Bars thinner than a pixel: each pixel gets the operation that took most of it; equal neighbours are one box.
      let pixel = -1, runOp = -1, runFrom = 0, runTo = 0;
      const flush = () => {
        if (runOp >= 0) { g.fillStyle = colours[ops[runOp]]; g.fillRect(runFrom, y, runTo - runFrom, h); }
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
      for (let k = firstReaching(lane, from); k < lane.size; k++) {
        const start = lane.starts[k];
        if (start > to) break;
        const i = lane.bars[k], call = col.call[i];
        if (!callShown[call]) continue;
        const elapsed = col.elapsed[i], exact = x(start), wide = elapsed * scale;
        if (exact + wide < left) continue;
        if (wide < 1) {
          const at = Math.max(left, Math.floor(exact));
          if (at !== pixel) { settle(); pixel = at; }
          inPixel[opOf[call]] += elapsed + 1e-3;
          continue;
        }
        settle();
        flush();
        const end = exact + wide - (wide > 4 ? 0.75 : 0), colour = colours[ops[opOf[call]]];
        // From where to where, and in which colour: the label goes into the longest of them.
        const boxes = wide > 3 && shaded(i) ? partBoxes(i, exact, end, colour) : [[exact, end, colour]];
        let longest = null;
        for (const [from, to, colour] of boxes) {
          const x0 = Math.max(left - 2, from), x1 = Math.min(width + 2, to);
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
    const partBoxes = (i, from, to, colour) => {
      const times = partsOf(i), sum = times.reduce((all, ns) => all + ns, 0);
      // Where the files were not seen, the rest is as strong as any other call.
      const strength = (part) => (part === times.length - 1 ? 1 : strengths[part]);
      let at = from;
      return times.map((ns, part) => [at, (at += ((to - from) * ns) / sum), shade(colour, strength(part))]);
    };
    const labelColour = (colour) => {
      const [r, b, c] = rgb(colour);
      return r * 0.299 + b * 0.587 + c * 0.114 > 135 ? "#15181b" : "#ffffff";
    };

    const redraw = () => { if (!queued) { queued = true; requestAnimationFrame(draw); } };
    const show = (newFrom, newTo) => {
      let span = Math.max(smallest, Math.min(total, newTo - newFrom));
      from = Math.max(0, Math.min(total - span, newFrom));
      to = from + span;
      tip.hidden = true;
      redraw();
      clearTimeout(show.later);
      show.later = setTimeout(remember, 250);
    };
    // The range is part of the address, so that it can be sent to somebody.
    const remember = () => {
      const whole = to - from > total * 0.9999;
      try { history.replaceState(null, "", whole ? location.pathname + location.search : `#t=${+(from / 1e9).toPrecision(9)}-${+(to / 1e9).toPrecision(9)}`); } catch { /* a page without an address */ }
    };
    const recall = () => {
      const found = /#t=([0-9.e+]+(?:e-\d+)?)-([0-9.e+]+(?:e-\d+)?)/.exec(location.hash);
      if (found && +found[2] > +found[1]) show(found[1] * 1e9, found[2] * 1e9);
    };
    const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
    const pan = (part) => show(from + (to - from) * part, to + (to - from) * part);
    const timeAt = (event) => from + ((event.clientX - canvas.getBoundingClientRect().left - left) * (to - from)) / (width - left);

    canvas.addEventListener("wheel", (event) => {
      const focused = document.activeElement === canvas;
      if (event.ctrlKey || event.metaKey || (focused && !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX))) {
        event.preventDefault();
        zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * (event.ctrlKey ? 0.008 : 0.003)), timeAt(event));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        pan((event.deltaX || event.deltaY) / (width - left));
      }
    }, { passive: false });

    // One pointer moves, two zoom.
    const pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); tip.hidden = true;
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) { hover(event); return; }
      const others = [...pointers.values()].filter((other) => other.pointerId !== event.pointerId);
      if (others.length) {
        const apart = (a) => Math.max(8, Math.abs(a.clientX - others[0].clientX));
        zoom(apart(before) / apart(event), (timeAt(event) + timeAt(others[0])) / 2);
      } else {
        scroll -= event.clientY - before.clientY;
        pan((before.clientX - event.clientX) / (width - left));
      }
      pointers.set(event.pointerId, event);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("dblclick", (event) => zoom(0.4, timeAt(event)));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
        ArrowUp: () => { scroll -= 60; redraw(); }, ArrowDown: () => { scroll += 60; redraw(); },
        "0": () => show(0, total), Escape: () => { tip.hidden = true; },
        Home: () => show(0, to - from), End: () => show(total - (to - from), total),
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    document.getElementById("in").addEventListener("click", () => zoom(0.5));
    document.getElementById("out").addEventListener("click", () => zoom(2));
    document.getElementById("reset").addEventListener("click", () => { scroll = 0; show(0, total); });
    for (const kind of ["layer", "op"]) {
      for (const button of document.querySelectorAll(`[data-${kind}]`)) {
        button.addEventListener("click", () => {
          const on = button.getAttribute("aria-pressed") !== "true";
          button.setAttribute("aria-pressed", on);
          shown[kind][button.dataset[kind]] = on;
          redraw();
        });
      }
    }

    // ---- what is under the pointer ---------------------------------------------------------------------------------
    const barAt = (event) => {
      const box = canvas.getBoundingClientRect(), y = event.clientY - box.top - top + scroll, ns = timeAt(event);
      const row = Math.floor(y / layout.row), inside = y - row * layout.row - layout.gap / 2;
      if (row < 0 || row >= rows || event.clientX - box.left < left || y - scroll > layout.plot || y < scroll) return -1;
      const lane = Object.keys(layout.places).find((lane) => inside >= layout.places[lane].y - 1 && inside <= layout.places[lane].y + layout.places[lane].h + 1);
      if (lane === undefined) return -1;
      const bars = lanes[row * each + +lane], slack = ((to - from) * 2) / (width - left);
      let best = -1;
      for (let k = firstReaching(bars, ns - slack); k < bars.size; k++) {
        const i = bars.bars[k];
        if (startNs(i) > ns + slack) break;
        if (endNs(i) < ns - slack || !callShown[col.call[i]]) continue;
        if (startNs(i) <= ns || best < 0) best = i;
      }
      return best;
    };
    const line = (name, value) => {
      const div = document.createElement("div"), span = document.createElement("span");
      span.textContent = name + " ";
      div.append(span, value);
      return div;
    };
    const hover = (event) => {
      const i = barAt(event);
      if (i < 0) { tip.hidden = true; return; }
      const call = calls[col.call[i]], many = col.events[i] > 1, flags = col.flags[i];
      const title = document.createElement("b");
      title.textContent = many ? `${count(col.events[i])} × ${call.name}` : call.name;
      const facts = [call.layer, flags & 1 && "caused by an upper layer", flags & 2 && "collective", flags & 4 && "asynchronous", flags & 16 && "never returned"];
      const lines = [title, line(data.rows[col.row[i]] + " ·", facts.filter(Boolean).join(", "))];
      if (col.file[i]) lines.push(line("file", data.files[col.file[i] - 1]));
      if (col.other[i]) lines.push(line(call.name === "symlink" ? "stands for" : "to", data.files[col.other[i] - 1]));
      if (col.kind[i] === 1) lines.push(line("offset", `${bytes(col.place[i])} (${count(col.place[i])})`));
      if (col.kind[i] >= 5) lines.push(line("server", String(col.kind[i] - 5)), line("first byte", count(col.place[i])));
      if (col.kind[i] === 2) lines.push(line("position in view", count(col.place[i])));
      if (col.kind[i] === 3) lines.push(line("with rank", String(col.place[i])));
      if (col.size[i]) lines.push(line("size", `${bytes(col.size[i])} (${count(col.size[i])})`));
      lines.push(line("start", (startNs(i) / 1e9).toFixed(6) + " s"), line(many ? "from first to last" : "elapsed", time(col.elapsed[i])));
      if (parts.some((part) => part[i] > 0)) data.parts.forEach((name, part) => lines.push(line(name, time(parts[part][i]))));
      const result = col.result[i];
      if (result < 0) lines.push(line("failed with error", String(-result)));
      else if (result > 0) lines.push(line("moved", bytes(result) + (result !== col.size[i] ? " (less than asked for)" : "")));
      tip.replaceChildren(...lines);
      tip.hidden = false;
      const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
      tip.style.left = Math.max(0, Math.min(px + 14, box.width - tip.offsetWidth - 4)) + "px";
      tip.style.top = py + 18 + "px";
    };

    redraws.push(draw);
    addEventListener("hashchange", recall);
    recall();
  }

  addEventListener("resize", () => redraws.forEach((redraw) => redraw()));
  setTheme(prefersDark.matches);
})();
