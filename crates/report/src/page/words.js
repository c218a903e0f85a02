// ---- words: numbers with units, as the tables have them, and back.
const digits = (x) => (x === 0 ? "0" : String(+x.toPrecision(4)));
const time = (ns) => {
  const a = Math.abs(ns), s = Math.round(ns / 1e9);
  if (a === 0) return "0 s";
  if (a < 999.95) return digits(ns) + " ns";
  if (a < 999.95e3) return digits(ns / 1e3) + " µs";
  if (a < 999.95e6) return digits(ns / 1e6) + " ms";
  if (a < 600e9) return digits(ns / 1e9) + " s";
  return a < 36e12 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
};
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const bytes = (n) => {
  let unit = 0;
  while (Math.abs(n) >= 1023.95 && unit < 6) { n /= 1024; unit++; }
  return digits(n) + " " + BYTE_UNITS[unit];
};
const rate = (bytesPerSecond) => bytes(bytesPerSecond) + "/s";
const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (part) => {
  const value = part * 100;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  return (value !== 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)) + " %";
};
const things = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

const factors = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, "": 1 };
BYTE_UNITS.forEach((unit, k) => { factors[unit] = 1024 ** k; });
// The number that a cell begins with, in one unit for times and one for bytes; null of a cell without one.
const amount = (text) => {
  const number = /^[≥<×~+\s]*(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([a-zµA-Z]*)/.exec(text);
  if (!number) return null;
  const value = +number[1].replaceAll(",", "") * (factors[number[2]] ?? 1);
  const rest = /^[\d.,]+ (?:min|h) (\d+) (s|min)$/.exec(text);
  return rest ? value + rest[1] * factors[rest[2]] : value;
};

