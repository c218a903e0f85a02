// ---- data: what the page holds, one column a fact, one value a bar. A bar is a call, or several that lie close together.
const data = JSON.parse(document.getElementById("data").textContent);

const arrays = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f32: Float32Array, f64: Float64Array };
const decode = ([type, text, value]) => {
  if (type === "all") return new Float64Array(text).fill(value);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new arrays[type](bytes.buffer);
};
const col = {};
for (const name in data.columns) col[name] = decode(data.columns[name]);
// A bar of one call takes as long as it is, and covers what it moves.
col.time ||= col.elapsed;
col.length ||= col.size;
const busy = { ...data.busy, cells: decode(data.busy.cells) };
const total = Math.max(data.duration_ns, 1);
const barCount = col.start.length;

const PHYSICAL = 1, COLLECTIVE = 2, ASYNC = 4, UNFINISHED = 16;
const laneOf = { hdf5: 0, pnetcdf: 0, "mpi-io": 1, posix: 2, stdio: 2, server: 2, message: 3 };
const calls = data.calls.map(([name, layer, op]) => ({
  name, layer, op, lane: laneOf[layer],
  isMessage: layer === "message", isAtFiles: laneOf[layer] === 2, isRead: op === "read", isWrite: op === "write",
}));
const ops = [...new Set(calls.map((call) => call.op))], layers = [...new Set(calls.map((call) => call.layer))];

// In order of their starts.
const starts = Float64Array.from(col.start, (start) => start * data.unit_ns);
const ends = Float64Array.from(starts, (start, i) => start + col.elapsed[i]);
const processOf = Uint32Array.from(col.row, (row) => data.process_of_row[row]);
const usedProcesses = new Set(processOf), usedFiles = new Set([...col.file, ...col.other].filter((file) => file > 0));
const callOf = (i) => calls[col.call[i]];
const isPhysical = (i) => (col.flags[i] & PHYSICAL) !== 0;
const isInFile = (i) => col.file[i] > 0 && (col.kind[i] === 1 || col.kind[i] > 4);
const fileName = (number) => data.files[number - 1];
// Bytes that reads, writes and messages moved. A library's call that returns before its data move is taken at its word.
const moved = Float64Array.from(starts, (_, i) => {
  const { isRead, isWrite, isMessage, layer } = callOf(i);
  if (!isRead && !isWrite && !isMessage) return 0;
  return col.result[i] === 0 && col.flags[i] & ASYNC && layer !== "posix" ? col.size[i] : Math.max(0, col.result[i]);
});

