// ---- filters: what is chosen, in words, and how to choose; the findings' buttons.
const filters = document.getElementById("filters");
const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const button = (text, properties, act) => {
  const made = element("button", { type: "button", ...properties }, text);
  made.addEventListener("click", act);
  return made;
};

// A list to choose from, with a box to search it.
const picker = (title, what, entries) => {
  const MOST = 200;
  const box = element("input", { type: "search", placeholder: "Search", autocomplete: "off", ariaLabel: `Search: ${title}` });
  const list = element("ul"), more = element("p", { className: "note" });
  const fill = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = entries.filter(([, name]) => words.every((word) => name.toLowerCase().includes(word)));
    list.replaceChildren(...found.slice(0, MOST).map(([id, name]) => {
      const check = element("input", { type: "checkbox", checked: Boolean(selection[what]?.has(id)) });
      check.addEventListener("change", () => toggle(what, id));
      return element("li", {}, element("label", {}, check, element("span", {}, name)));
    }));
    more.textContent = found.length > MOST ? `${count(found.length - MOST)} more: search for them.` : found.length ? "" : "None.";
  };
  box.addEventListener("input", fill);
  const details = element("details", { name: "filter" }, element("summary", {}, title), element("div", { className: "panel" }, box, list, more));
  details.addEventListener("toggle", () => { if (details.open) { fill(); box.focus(); } });
  details.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { details.open = false; details.firstElementChild.focus(); }
  });
  return details;
};
addEventListener("pointerdown", (event) => {
  for (const details of document.querySelectorAll("#filters details[open]")) if (!details.contains(event.target)) details.open = false;
});

if (filters) (() => {
  const files = data.files.map((name, k) => [k + 1, name]).filter(([number]) => usedFiles.has(number));
  const processes = data.processes.map((name, k) => [k, name]).filter(([process]) => usedProcesses.has(process));
  const everyProcess = data.rows.some((name) => name.startsWith("rank ")) ? "Ranks" : "Processes";
  const told = element("p", { role: "status", id: "chosen" }), chips = element("div", { className: "chips" });
  const clear = button("Show all", { id: "clear", hidden: true }, chooseAll);
  filters.append(told, picker("Files", "files", files), picker(everyProcess, "processes", processes), chips, clear);
  if (files.length < 2) filters.children[1].hidden = true;
  if (processes.length < 2) filters.querySelectorAll("details")[1].hidden = true;

  const all = col.events.reduce((sum, events) => sum + events, 0);
  const chip = (text, end) => {
    const made = button(text, { className: "chip" }, end);
    made.setAttribute("aria-label", `Not only ${text}`);
    made.title = text;
    return made;
  };
  const named = (ids, name, many) => (ids.size <= 2 ? [...ids].map(name).join(", ") : `${count(ids.size)} ${many}`);
  const shortName = (number) => fileName(number).split("/").pop() || fileName(number);
  listeners.quick.push(() => {
    const some = [], { finding, from, until } = selection;
    if (finding !== null) some.push(chip(`finding ${finding + 1}: ${data.findings[finding].title}`, chooseAll));
    if (selection.files) some.push(chip(named(selection.files, shortName, "files"), () => choose({ files: null })));
    if (selection.processes) {
      some.push(chip(named(selection.processes, (process) => data.processes[process], everyProcess.toLowerCase()), () => choose({ processes: null })));
    }
    for (const [kind, all] of [["op", ops], ["layer", layers]]) {
      const without = hidden[kind], left = all.filter((name) => !without.has(name));
      if (!without.size) continue;
      const text = left.length && left.length <= without.size ? left.join(", ") : `without ${[...without].join(", ")}`;
      some.push(chip(text, () => { without.clear(); choose({}); }));
    }
    if (from !== null) some.push(chip(`${time(from)} to ${time(until)}`, () => choose({ from: null, until: null })));
    if (from !== null) some.push(button("Zoom to it", {}, () => showAround(from, until)));
    chips.replaceChildren(...some);
    clear.hidden = isWhole();
    root.classList.toggle("filtered", !isWhole());
  });
  listeners.slow.push(() => {
    const some = chosenBars().reduce((sum, i) => sum + col.events[i], 0);
    told.textContent = isWhole() ? `All ${things(all, "call", "calls")}` : `${count(some)} of ${things(all, "call", "calls")}`;
  });

  for (const shown of document.querySelectorAll("[data-finding]")) {
    const number = +shown.dataset.finding;
    shown.addEventListener("click", () => {
      if (selection.finding === number) { chooseAll(); return; }
      const { from, until } = data.findings[number];
      chooseFinding(number);
      scroll = 0;
      showAround(from, until);
      document.getElementById("timeline").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      timeline.focus({ preventScroll: true });
    });
    listeners.quick.push(() => {
      shown.setAttribute("aria-pressed", selection.finding === number);
      shown.textContent = selection.finding === number ? "Show all calls again" : "Show its calls";
    });
  }
})();

