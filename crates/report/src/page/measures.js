// ---- measures: what calls amount to. They are counted here as the explanation counts them; `live.js` and `figures.js` compare
// the sums over all calls with the numbers that the page came with, and do not show for some calls what differs.

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
    const { isRead, isWrite, isMessage, op } = callOf(i), events = col.events[i];
    this.calls += events;
    this.failed += col.failed[i];
    this.time += col.time[i];
    this.bytes += moved[i];
    this.asked += col.size[i];
    if (isRead) { this.reads += events; this.read += moved[i]; }
    if (isWrite) { this.writes += events; this.written += moved[i]; }
    if (isRead || isWrite) { this.requests += events; this.cover("dataBusy", "dataUntil", i); this.data += moved[i]; }
    else if (op === "open") this.opens += events;
    else if (!isMessage) this.others += events;
    this.cover("busy", "until", i);
  }

  // Of a bar of several calls, what they took: from its start on, as if there were no pauses between them.
  cover(sum, until, i) {
    const from = Math.max(starts[i], this[until]), to = starts[i] + Math.min(col.elapsed[i], col.time[i]);
    if (to > from) { this[until] = to; this[sum] += to - from; }
  }
}

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
  layer: (rows) => (i) => rows.get(`${callOf(i).layer} ${isPhysical(i)} ${callOf(i).op}`)?.add(i),
  file: (rows) => (i) => {
    const row = rows.get(String(col.file[i]));
    if (!row || col.kind[i] === 4) return;
    row.processes.add(processOf[i]);
    if (callOf(i).isMessage) return;
    if (seenAtFiles.has(col.file[i]) ? callOf(i).isAtFiles : !isPhysical(i)) row.add(i);
  },
  process: (rows) => (i) => {
    const row = rows.get(String(processOf[i])), call = callOf(i);
    if (!row) return;
    row.processes.add(processOf[i]);
    if (call.isMessage) { row.messages += moved[i]; return; }
    if (call.isAtFiles && (call.isRead || call.isWrite)) row.onFiles += moved[i];
    if (!isPhysical(i)) row.add(i);
    else row.cover("busy", "until", i);
  },
  // By the size that a call asks for; of several calls in one bar, by their mean.
  size: (rows) => {
    const classes = [...rows].map(([key, row]) => {
      const [level, op, from, to] = key.split(" ");
      return { counts: countsIn(level), op, from: +from, to: +to, row };
    });
    return (i) => {
      const call = callOf(i);
      if (!call.isRead && !call.isWrite) return;
      const size = col.size[i] / col.events[i];
      for (const { counts, op, from, to, row } of classes) {
        if (call.op === op && size >= from && size <= to && counts(i)) row.add(i);
      }
    };
  },
};

// The tallies of these keys over the bars for which `counts` holds.
const tallies = (kind, level, keys, counts = () => true) => {
  const rows = new Map(keys.map((key) => [key, new Tally()])), add = counters[kind](rows, level);
  for (let i = 0; i < barCount; i++) if (counts(i)) add(i);
  return rows;
};

