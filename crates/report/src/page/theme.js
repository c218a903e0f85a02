// ---- theme: light or dark, as the system is or as the reader wants it; light on paper.
const root = document.documentElement, themeButton = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const redraws = [];
const redrawAll = () => redraws.forEach((redraw) => redraw());
const NAMES = ["ink", "soft", "panel", "line", "grid", "stripe", "ghost", "accent", "heat-0", "heat-1", "open", "close", "read", "write", "seek",
  "sync", "view", "metadata", "communication", "acknowledgement", "warn-line", "mark-0", "mark-1", "mark-line"];
let colours = {};
const setTheme = (dark) => {
  root.classList.toggle("dark", dark);
  themeButton.textContent = dark ? "Light" : "Dark";
  const style = getComputedStyle(root);
  colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  redrawAll();
};
themeButton.addEventListener("click", () => setTheme(!root.classList.contains("dark")));
prefersDark.addEventListener("change", (event) => setTheme(event.matches));
let darkBeforePrint = false;
addEventListener("beforeprint", () => { darkBeforePrint = root.classList.contains("dark"); setTheme(false); });
addEventListener("afterprint", () => setTheme(darkBeforePrint));
addEventListener("resize", redrawAll);

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
// A colour on the page's ground, so strong.
const shade = (colour, strength) => {
  const ground = rgb(colours.panel);
  return "#" + rgb(colour).map((c, k) => Math.round(ground[k] + (c - ground[k]) * strength).toString(16).padStart(2, "0")).join("");
};
// Colours of processes: neighbours differ most, and all can be seen on either ground.
const colourOfProcess = (process) => {
  const hue = (process * 137.508) % 360;
  return `hsl(${hue.toFixed(0)} ${root.classList.contains("dark") ? "65% 62%" : "70% 38%"})`;
};

