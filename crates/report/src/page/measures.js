// ---- measures: what calls amount to. They are counted here as the explanation counts them; `tables.js` compares
// the sums over all calls with the numbers that the page came with, and does not show for some calls what differs.

// Files that MPI-IO was used on, and those that the file system saw calls on.
const byMpiIo = new Set(), seenAtFiles = new Set();
for (let i = 0; i < barCount; i++) {
  if (callOf(i).layer === "mpi-io") byMpiIo.add(col.file[i]);
  if (callOf(i).isAtFiles && col.kind[i] !== 4) seenAtFiles.add(col.file[i]);
}

// Whether a view counts a call.
const countsIn = (level) => {
  const forIo = (i) => callOf(i).isMessage && isPhysical(i);
  switch (level) {
    case "files": return (i) => callOf(i).isAtFiles || forIo(i);
    case "mpi-files": return (i) => (["posix", "server"].includes(callOf(i).layer) && byMpiIo.has(col.file[i]) && col.kind[i] !== 4) || forIo(i);
    case "program": return (i) => !isPhysical(i) && !callOf(i).isMessage;
    default: return (i) => callOf(i).layer === level && !isPhysical(i);
  }
};

class Tally {
  calls = 0; failed = 0; time = 0; bytes = 0; asked = 0; requests = 0; reads = 0; writes = 0; read = 0; written = 0;
  opens = 0; others = 0; onFiles = 0; messages = 0; processes = new Set();
  // Time that calls cover, and that reads and writes cover, with what they move.
  busy = 0; until = 0; dataBusy = 0; dataUntil = 0; data = 0;

  add(i) {
    const { isRead, isWrite, isMessage, op } = callOf(i), events = col.events[i], bytes = moved[i];
    this.calls += events;
    this.failed += col.failed[i];
    this.time += col.time[i];
    this.bytes += bytes;
    this.asked += col.size[i];
    if (isRead) { this.reads += events; this.read += bytes; }
    if (isWrite) { this.writes += events; this.written += bytes; }
    if (isRead || isWrite) {
      this.requests += events;
      this.data += bytes;
      const from = Math.max(starts[i], this.dataUntil), to = inTurn[i];
      if (to > from) { this.dataUntil = to; this.dataBusy += to - from; }
    } else if (op === "open") this.opens += events;
    else if (!isMessage) this.others += events;
    this.cover(i);
  }

  cover(i) {
    const from = Math.max(starts[i], this.until), to = inTurn[i];
    if (to > from) { this.until = to; this.busy += to - from; }
  }
}
// The end of what a bar's calls take: of several from its start on, as if there were no pauses between them.
const inTurn = Float64Array.from(starts, (start, i) => start + Math.min(col.elapsed[i], col.time[i]));

const measures = {
  calls: (t) => count(t.calls),
  failed: (t) => (t.failed ? count(t.failed) : ""),
  time: (t) => time(t.time),
  mean: (t) => (t.calls ? time(t.time / t.calls) : ""),
  "per-process": (t) => time(t.time / Math.max(1, data.process_count)),
  bytes: (t) => (t.bytes ? bytes(t.bytes) : ""),
  asked: (t) => bytes(t.asked),
  rate: (t) => (t.data && t.dataBusy ? rate((t.data / t.dataBusy) * 1e9) : ""),
  requests: (t) => count(t.requests),
  read: (t) => (t.reads ? bytes(t.read) : ""),
  written: (t) => (t.writes ? bytes(t.written) : ""),
  opens: (t) => count(t.opens),
  others: (t) => count(t.others),
  processes: (t) => count(t.processes.size),
  busy: (t) => time(t.busy),
  "on-files": (t) => bytes(t.onFiles),
  messages: (t) => bytes(t.messages),
};

// How each kind of row is counted: a function that adds a bar to the tallies of the rows it belongs to. `rows` has a tally a key.
const counters = {
  operation: (rows, level) => {
    const counts = countsIn(level);
    return (i) => { if (counts(i)) rows.get(callOf(i).op)?.add(i); };
  },
  call: (rows) => (i) => rows.get(callOf(i).name)?.add(i),
  layer: (rows) => {
    const of = [false, true].map((physical) => calls.map(({ layer, op }) => rows.get(`${layer} ${physical} ${op}`)));
    return (i) => of[+isPhysical(i)][col.call[i]]?.add(i);
  },
  file: (rows) => {
    const of = data.files.map((_, k) => rows.get(String(k + 1)));
    return (i) => {
      const row = of[col.file[i] - 1];
      if (!row || col.kind[i] === 4) return;
      row.processes.add(processOf[i]);
      if (callOf(i).isMessage) return;
      if (seenAtFiles.has(col.file[i]) ? callOf(i).isAtFiles : !isPhysical(i)) row.add(i);
    };
  },
  process: (rows) => {
    const of = data.processes.map((_, k) => rows.get(String(k)));
    return (i) => {
      const row = of[processOf[i]], call = callOf(i);
      if (!row) return;
      if (call.isMessage) { row.messages += moved[i]; return; }
      if (call.isAtFiles && (call.isRead || call.isWrite)) row.onFiles += moved[i];
      if (!isPhysical(i)) row.add(i);
      else row.cover(i);
    };
  },
  // By the size that a call asks for; of several calls in one bar, by their mean.
  size: (rows) => {
    const classes = [...rows].map(([key, row]) => {
      const [level, op, from, to] = key.split(" ");
      return { counts: countsIn(level), op, from: +from, to: +to, row };
    });
    return (i) => {
      const { op, isRead, isWrite } = callOf(i);
      if (!isRead && !isWrite) return;
      const size = col.size[i] / col.events[i];
      for (const one of classes) if (one.op === op && size >= one.from && size <= one.to && one.counts(i)) one.row.add(i);
    };
  },
};

// The tallies of these keys over the chosen bars, and over all: those stay the same, and are counted once.
const tallies = (kind, level, keys, bars = chosenBars()) => {
  const rows = new Map(keys.map((key) => [key, new Tally()])), add = counters[kind](rows, level);
  for (let k = 0; k < bars.length; k++) add(bars[k]);
  return rows;
};
const ofAll = new Map();
const talliesOfAll = (kind, level, keys) => {
  const name = `${kind} ${level} ${keys}`;
  if (!ofAll.has(name)) ofAll.set(name, tallies(kind, level, keys, Uint32Array.from(starts, (_, i) => i)));
  return ofAll.get(name);
};

