// ---- selection: which calls are chosen, for all figures and tables at once.
const selection = { files: null, processes: null, from: null, until: null, finding: null };
const hidden = { op: new Set(), layer: new Set() };

// What is known of each bar: its operation and layer are shown, its file is chosen, its time is, its process is.
const SHOWN = 1, OF_FILE = 2, IN_TIME = 4, OF_PROCESS = 8, CHOSEN = 15;
const state = new Uint8Array(barCount).fill(CHOSEN);
const isChosen = (i) => state[i] === CHOSEN;
let chosenNow = null;
const chosenBars = () => {
  if (!chosenNow) {
    const bars = new Uint32Array(barCount);
    let some = 0;
    for (let i = 0; i < barCount; i++) if (isChosen(i)) bars[some++] = i;
    chosenNow = bars.subarray(0, some);
  }
  return chosenNow;
};
const isWhole = () => !selection.files && !selection.processes && selection.from === null && !hidden.op.size && !hidden.layer.size;

// `quick` ones draw, and are told at once; `slow` ones count, and are told when nothing has changed for a moment.
const listeners = { quick: [], slow: [] };
// How often what is chosen has changed in more than its time: of that a drawing over time shows no more than its ends.
let choices = 0, lastChoice = "";
const choose = (changes) => {
  if (changes.files !== undefined || changes.processes !== undefined) choices++;
  Object.assign(selection, { finding: null }, changes);
  const { files, processes, from, until } = selection, without = [...hidden.op, ...hidden.layer].join();
  if (without !== lastChoice) { lastChoice = without; choices++; }
  const isShown = Uint8Array.from(calls, (call) => (hidden.op.has(call.op) || hidden.layer.has(call.layer) ? 0 : SHOWN));
  for (let i = 0; i < barCount; i++) {
    state[i] = isShown[col.call[i]]
      | (!files || files.has(col.file[i]) || (col.other[i] && files.has(col.other[i])) ? OF_FILE : 0)
      | (from === null || (starts[i] <= until && ends[i] >= from) ? IN_TIME : 0)
      | (!processes || processes.has(processOf[i]) ? OF_PROCESS : 0);
  }
  chosenNow = null;
  document.body.setAttribute("aria-busy", "true");
  listeners.quick.forEach((listener) => listener());
  clearTimeout(choose.later);
  choose.later = setTimeout(() => countNext(listeners.slow), 120);
  // One after the other, with time to draw in between.
  const countNext = (left) => {
    if (!left.length) { document.body.removeAttribute("aria-busy"); return; }
    left[0]();
    choose.later = setTimeout(() => countNext(left.slice(1)));
  };
};
const chooseAll = () => {
  hidden.op.clear();
  hidden.layer.clear();
  choose({ files: null, processes: null, from: null, until: null });
};
// Adds a file or process to those chosen, or takes it from them: none means all.
const toggle = (what, id) => {
  const ids = new Set(selection[what]);
  if (!ids.delete(id)) ids.add(id);
  choose({ [what]: ids.size ? ids : null });
};
const toggleHidden = (kind, name) => {
  if (!hidden[kind].delete(name)) hidden[kind].add(name);
  choose({});
};
const chooseFinding = (number) => {
  const { files, processes, ops: only, from, until } = data.findings[number];
  // All that there are need not be chosen.
  const some = (ids, used) => (ids.length && [...used].some((id) => !ids.includes(id)) ? new Set(ids) : null);
  hidden.layer.clear();
  hidden.op = new Set(only.length ? ops.filter((op) => !only.includes(op)) : []);
  choose({ files: some(files, usedFiles), processes: some(processes, usedProcesses), from, until, finding: number });
};

// ---- the address: what is chosen and shown is its fragment, so that it can be sent to somebody. Each part is a name, how it is
// written (nothing if it is as at first), and how it is read.
const fragment = [];
const numbers = (text, least, most) => {
  const found = text.split(".").filter((n) => /^\d+$/.test(n)).map(Number).filter((n) => n >= least && n <= most);
  return found.length ? new Set(found) : null;
};
const seconds = (ns) => String(+(ns / 1e9).toPrecision(12));
const span = (from, until) => `${seconds(from)}-${seconds(until)}`;
const readSpan = (text) => {
  const found = /^([0-9.]+(?:e[-+]?\d+)?)-([0-9.]+(?:e[-+]?\d+)?)$/.exec(text);
  return found && +found[2] >= +found[1] ? [Math.min(total, found[1] * 1e9), Math.min(total, found[2] * 1e9)] : null;
};
fragment.push(
  ["files", () => selection.files && [...selection.files].join("."), (text) => ({ files: numbers(text, 1, data.files.length) })],
  ["processes", () => selection.processes && [...selection.processes].join("."), (text) => ({ processes: numbers(text, 0, data.processes.length - 1) })],
  ["time", () => selection.from !== null && span(selection.from, selection.until), (text) => {
    const [from, until] = readSpan(text) ?? [null, null];
    return { from, until };
  }],
  ["without", () => [...hidden.op].join("."), (text) => { hidden.op = new Set(text.split(".").filter((op) => ops.includes(op))); }],
  ["without-layers", () => [...hidden.layer].join("."), (text) => { hidden.layer = new Set(text.split(".").filter((layer) => layers.includes(layer))); }],
  ["finding", () => selection.finding !== null && String(selection.finding), (text) => ({ finding: /^\d+$/.test(text) && data.findings[+text] ? +text : null })],
);
const remember = () => {
  clearTimeout(remember.later);
  remember.later = setTimeout(() => {
    const parts = fragment.map(([name, write]) => [name, write()]).filter(([, value]) => value).map(([name, value]) => `${name}=${value}`);
    const address = parts.length ? "#" + parts.join("&") : location.pathname + location.search;
    try { history.replaceState(null, "", address); } catch { /* a page without an address */ }
  }, 250);
};
const recall = () => {
  const parts = new Map(location.hash.slice(1).split("&").map((part) => part.split("=")));
  // A section's address is none of a choice.
  if (location.hash.length > 1 && !fragment.some(([name]) => parts.has(name))) return;
  hidden.op.clear();
  hidden.layer.clear();
  const changes = { files: null, processes: null, from: null, until: null };
  for (const [name, , read] of fragment) if (parts.has(name)) Object.assign(changes, read(parts.get(name) ?? ""));
  choose(changes);
};
listeners.quick.push(remember);
addEventListener("hashchange", recall);

