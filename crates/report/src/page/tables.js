// ---- tables: sorted by a click on a heading, searched by a box, counted anew for chosen calls.
const tables = [...document.querySelectorAll("figure.table table")].map((table) => {
  const rows = [...table.tBodies[0].rows];
  // A name that stands for the rows below it, too, is written into each: they may be torn apart.
  let name = "";
  for (const row of rows) {
    const cell = row.cells[0];
    if (cell.textContent) name = cell.textContent;
    else if (name) { cell.textContent = name; cell.className = "same"; }
  }
  return { table, rows, found: new Set(rows), counted: null, sort: null };
});

const showRows = ({ rows, found, counted }) => {
  for (const row of rows) row.hidden = !found.has(row) || (counted !== null && !counted.has(row));
};

const byAlphabet = new Intl.Collator("en", { numeric: true });
// Numbers the largest first, text by the alphabet; then the other way round, then as it was.
const sortRows = (entry) => {
  const { table, rows, sort } = entry;
  let order = rows;
  if (sort) {
    const { column, isNumber, up } = sort, sign = up ? 1 : -1;
    const value = new Map(rows.map((row) => [row, isNumber ? amount(row.cells[column].textContent) : row.cells[column].textContent]));
    const compare = (a, b) => (isNumber ? a - b : byAlphabet.compare(a, b));
    const missing = (v) => v === null || v === "";
    order = [...rows].sort((one, other) => {
      const [a, b] = [value.get(one), value.get(other)];
      return missing(a) || missing(b) ? missing(a) - missing(b) : sign * compare(a, b);
    });
  }
  table.tBodies[0].append(...order);
  [...table.tHead.rows[0].cells].forEach((th, column) => {
    if (sort?.column === column) th.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  });
};

for (const entry of tables) {
  const { table, rows } = entry, title = table.caption.textContent;
  [...table.tHead.rows[0].cells].forEach((th, column) => {
    if (rows.length < 2) return;
    const isNumber = th.classList.contains("n"), button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = th.textContent;
    button.addEventListener("click", () => {
      const same = entry.sort?.column === column, first = !isNumber;
      if (!same) entry.sort = { column, isNumber, up: first };
      else entry.sort = entry.sort.up === first ? { column, isNumber, up: !first } : null;
      sortRows(entry);
    });
    th.replaceChildren(button);
  });
  if (rows.length > 8) {
    const box = document.createElement("input"), told = document.createElement("span"), bar = document.createElement("div");
    Object.assign(box, { type: "search", placeholder: "Search", autocomplete: "off" });
    box.setAttribute("aria-label", `Search: ${title}`);
    told.setAttribute("role", "status");
    bar.className = "search";
    bar.append(box, told);
    table.closest("figure").prepend(bar);
    entry.search = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      entry.found = new Set(rows.filter((row) => words.every((word) => row.textContent.toLowerCase().includes(word))));
      told.textContent = words.length ? `${count(entry.found.size)} of ${things(rows.length, "row", "rows")}` : "";
      showRows(entry);
    };
    box.addEventListener("input", entry.search);
  }
}

// Of a long table, the first rows are shown, by page.css, until all are asked for.
for (const figure of document.querySelectorAll("figure.long")) {
  const button = document.createElement("button"), all = `All ${count(figure.querySelector("tbody").rows.length)} rows`;
  button.type = "button";
  button.className = "more";
  const shorten = () => { button.textContent = figure.classList.toggle("short") ? all : "First 40 rows"; };
  button.addEventListener("click", shorten);
  shorten();
  figure.querySelector(".scroll").after(button);
}

// ---- tables of chosen calls
const live = tables.filter(({ table }) => table.dataset.of).map((entry) => {
  const { table, rows } = entry;
  const columns = [...table.tHead.rows[0].cells].map((th) => th.dataset.measure);
  const texts = new Map(rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent)]));
  table.closest("figure").classList.add("live");
  const keys = rows.map((row) => row.dataset.key).filter(Boolean);
  return { ...entry, entry, columns, texts, sums: (count) => count(table.dataset.of, table.dataset.level, keys), known: null };
});

// Whether the page's own count of all calls is the number that came with it: only then it can count some of them.
const isKnown = (text, own) => {
  const [a, b] = [amount(text) ?? 0, amount(own) ?? 0];
  return Math.abs(a - b) <= 0.02 * Math.max(Math.abs(a), Math.abs(b));
};
const UNKNOWN = "–";
const countRows = (table) => {
  const { rows, columns, texts, sums, entry } = table;
  // Where nothing changes, nothing is laid out anew.
  const tell = (cell, text) => { if (cell.textContent !== text) cell.textContent = text; };
  const each = (write) => rows.forEach((row) => columns.forEach((measure, column) => { if (measure) write(row, column, measure); }));
  if (isWhole()) {
    each((row, column) => tell(row.cells[column], texts.get(row)[column]));
    entry.counted = null;
  } else {
    if (!table.known) {
      const all = sums(talliesOfAll);
      table.known = new Set();
      each((row, column, measure) => {
        const tally = all.get(row.dataset.key), text = measures[measure];
        if (tally && text && isKnown(texts.get(row)[column], text(tally))) table.known.add(row.cells[column]);
      });
    }
    const some = sums(tallies), occurs = (row) => {
      const tally = some.get(row.dataset.key);
      return !row.dataset.key || !tally || tally.calls > 0 || tally.busy > 0 || tally.onFiles > 0 || tally.messages > 0 || tally.processes.size > 0;
    };
    each((row, column, measure) => {
      const cell = row.cells[column], tally = some.get(row.dataset.key);
      tell(cell, table.known.has(cell) ? measures[measure](tally) : UNKNOWN);
    });
    entry.counted = new Set(rows.filter(occurs));
  }
  if (entry.sort) sortRows(entry);
  if (entry.search) entry.search();
  else showRows(entry);
};
listeners.slow.push(...live.map((table) => () => countRows(table)));

// A file or process in a table is chosen by a click on its name.
for (const { table, rows } of live) {
  const what = { file: "files", process: "processes" }[table.dataset.of];
  if (!what) continue;
  for (const row of rows) {
    if (!row.dataset.key) continue;
    const id = +row.dataset.key, button = document.createElement("button");
    button.type = "button";
    button.className = "pick";
    button.textContent = row.cells[0].textContent;
    button.addEventListener("click", () => toggle(what, id));
    row.cells[0].replaceChildren(button);
    listeners.quick.push(() => {
      const isPressed = String(Boolean(selection[what]?.has(id)));
      if (button.getAttribute("aria-pressed") !== isPressed) button.setAttribute("aria-pressed", isPressed);
    });
  }
}

