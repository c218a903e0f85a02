"""Opens a report in headless Chromium and Firefox, whichever are there, and does what a reader does: looks, zooms, filters,
sorts, searches, asks for a finding's calls, changes the theme, prints.

Fails if the page asks for anything but itself, if its script fails or complains, if it is wider than its window, or if what is
chosen is not what is drawn and counted. Prints how long drawing takes.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import browsers
from tree import pioscope, run

DRAWN = "document.getElementById('bars').toDataURL()"
# Zooms, moves and chooses times, and waits for what follows: the longest time without a frame, milliseconds, while moving and
# while choosing.
FRAMES = """(async () => {
  const press = (key) => document.getElementById('bars').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  let last = performance.now(), longest = 0, watching = true;
  const watch = (now) => { longest = Math.max(longest, now - last); last = now; if (watching) requestAnimationFrame(watch); };
  requestAnimationFrame(watch);
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  await wait(100);
  const found = [];
  for (const keys of [['+', '+', '+', 'ArrowRight', 'ArrowRight', '-', '-', '-', '0'], ['+', 'c', 'ArrowRight', 'c', 'Escape', '0']]) {
    longest = 0;
    for (const key of keys) { press(key); await wait(key === 'c' || key === 'Escape' ? 400 : 30); }
    found.push(longest);
  }
  watching = false;
  return found;
})()"""
# Presses a filter and presses it again: whether the first changed what is drawn, and the second brought all back.
FILTER = """(async () => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(document.getElementById('bars').toDataURL()))));
  const button = document.querySelectorAll('[data-%s]')[%d], before = await drawn();
  button.click();
  const without = await drawn();
  button.click();
  return [without !== before, await drawn() === before];
})()"""
# Moves the pointer over the timeline until a collective call with parts is under it: what is said of it.
HOVER = """(() => {
  const canvas = document.getElementById('bars'), tip = canvas.parentElement.querySelector('.tip'), box = canvas.getBoundingClientRect();
  for (let y = 30; y < box.height; y += 5) for (let x = 70; x < box.width; x += 4) {
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true }));
    if (!tip.hidden && tip.textContent.includes('waiting for late ranks')) return [...tip.querySelectorAll('div')].map((div) => div.textContent);
  }
  return [];
})()"""
# The shades that a write's parts have on the page's ground, and that are drawn nowhere.
SHADES = """(() => {
  const canvas = document.getElementById('bars'), style = getComputedStyle(document.documentElement), drawn = new Set();
  const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  for (let i = 0; i < pixels.length; i += 4) drawn.add(pixels.slice(i, i + 3).join());
  const rgb = (name) => [1, 3, 5].map((i) => parseInt(style.getPropertyValue('--' + name).trim().slice(i, i + 2), 16));
  const write = rgb('write'), ground = rgb('panel');
  const shades = [0.3, %s1].map((strength) => write.map((c, k) => Math.round(ground[k] + (c - ground[k]) * strength)).join());
  return shades.filter((shade) => !drawn.has(shade));
})()"""
# How much wider than the window the page is, and the buttons and legends that reach out of it.
OVERFLOW = """[document.scrollingElement.scrollWidth - document.documentElement.clientWidth,
  ...[...document.querySelectorAll('.timeline button, .timeline li, .tip, #filters button, #filters summary, .bar select')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))]"""
WIDTHS = [400, 800, 1400, 2000]
UNNAMED = """[...document.querySelectorAll('canvas, svg, button, input, select')].filter((e) => e.getAttribute('aria-hidden') !== 'true'
  && !e.getAttribute('aria-label') && !e.textContent.trim() && !e.labels?.length).map((e) => e.outerHTML.slice(0, 80))"""
# Contrast of words that are seen, as WCAG reckons it: those below 4.5 on the ground they have.
FAINT = """(() => {
  const parse = (colour) => (/rgba?\\(([^)]+)\\)/.exec(colour)?.[1].split(',').map(Number) ?? [0, 0, 0, 1]);
  const light = (rgb) => rgb.slice(0, 3).map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] !== 0) return c; } return [255, 255, 255]; };
  const faint = new Set();
  for (const e of document.querySelectorAll('p, dt, dd, th, td, li, h1, h2, h3, button, summary, caption, figcaption')) {
    if (!e.textContent.trim() || !e.offsetParent) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))], contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.add(`${e.tagName}.${e.className} ${contrast.toFixed(2)}`);
  }
  return [...faint];
})()"""
# The texts of all tables, row by row, as they are shown.
TABLES = """[...document.querySelectorAll('table')].map((table) => [...table.tBodies[0].rows].filter((row) => !row.hidden)
  .map((row) => [...row.cells].map((cell) => cell.textContent)))"""
# Clicks on each heading of each table of numbers of calls, twice: the tables that are then not in order.
SORT = """[...document.querySelectorAll('table[data-of]')].filter((table) => {
  const headings = [...table.tHead.rows[0].cells], column = headings.findIndex((th) => ['calls', 'requests'].includes(th.dataset.measure));
  const numbers = () => [...table.tBodies[0].rows].map((row) => +row.cells[column].textContent.replaceAll(',', ''));
  if (table.tBodies[0].rows.length < 2) return false;
  const before = numbers(), button = headings[column].querySelector('button');
  button.focus();
  button.click();
  const down = numbers(), told = headings[column].getAttribute('aria-sort');
  button.click();
  const up = numbers();
  button.click();
  const sorted = [...before].sort((a, b) => a - b);
  return document.activeElement !== button && table.checkVisibility() || told !== 'descending' || String(up) !== String(sorted)
    || String(down) !== String(sorted.reverse()) || String(numbers()) !== String(before);
}).map((table) => table.caption.textContent)"""
# Types a word into the first search box: the rows that are shown, and how many rows have the word.
SEARCH = """(() => {
  const box = document.querySelector('figure.table input[type=search]'), rows = [...box.closest('figure').querySelector('tbody').rows];
  const type = (text) => { box.value = text; box.dispatchEvent(new Event('input', { bubbles: true })); return rows.filter((row) => !row.hidden).length; };
  const word = rows.at(-1).textContent.slice(0, 12).toLowerCase(), have = rows.filter((row) => row.textContent.toLowerCase().includes(word)).length;
  return [type(word), have, type('no such word anywhere'), type(''), rows.length];
})()"""
# Of a long table, how many rows are seen at first, after a press of its button, and after another; and how many it has.
LONG = """(() => {
  const figure = document.querySelector('figure.long'), rows = [...figure.querySelector('tbody').rows], button = figure.querySelector('button.more');
  const seen = () => rows.filter((row) => getComputedStyle(row).display !== 'none').length;
  return [seen(), (button.click(), seen()), (button.click(), seen()), rows.length];
})()"""
PRESS = "document.getElementById('bars').dispatchEvent(new KeyboardEvent('keydown', { key: '%s', bubbles: true }))"
TOLD = "document.getElementById('chosen').textContent"
# Calls of the table of functions, of those rows that are shown.
COUNTED = """[...document.querySelector("table[data-of='call']").tBodies[0].rows].filter((row) => !row.hidden)
  .reduce((sum, row) => sum + +row.cells[2].textContent.replaceAll(',', ''), 0)"""
# Chooses a time in the strip below the timeline by dragging.
BRUSH = """(() => {
  const strip = document.getElementById('overview'), box = strip.getBoundingClientRect();
  const send = (type, part) => strip.dispatchEvent(new PointerEvent(type, { clientX: box.left + box.width * part, clientY: box.top + 9, pointerId: 7 }));
  strip.setPointerCapture = () => {};
  send('pointerdown', 0.45); send('pointermove', 0.6); send('pointermove', 0.7); send('pointerup', 0.7);
})()"""

HEAT_KEY = "(() => { const heat = document.getElementById('busy'); heat.focus(); heat.dispatchEvent(new KeyboardEvent('keydown', { key: '%s', bubbles: true })); })()"
# Points at the heat map: at a row, of a hundred; or drags over half of its time.
HEAT_POINT = """(() => {
  // The names of the rows are at the left, the axis is below.
  const heat = document.getElementById('busy'), box = heat.getBoundingClientRect(), width = box.width, left = 70;
  const send = (type, part, row) => heat.dispatchEvent(new PointerEvent(type, {
    clientX: box.left + left + (width - left) * part, clientY: box.top + 6 + ((box.height - 30) * row) / 100, pointerId: 8, bubbles: true }));
  heat.setPointerCapture = () => {};
  %s
})()"""
HEAT_CLICK = HEAT_POINT % "send('pointerdown', 0.5, 42.5); send('pointerup', 0.5, 42.5);"
HEAT_DRAG = HEAT_POINT % "send('pointerdown', 0.25, 5); send('pointermove', 0.5, 5); send('pointermove', 0.75, 5); send('pointerup', 0.75, 5);"


# What the bands of marks are: names, and how many each has.
MARKS = "JSON.parse(document.getElementById('data').textContent).marks.map((one) => one.name)"
# Points along a lane of bands until what is said begins as it should, and clicks there: what is said.
BAND = """(() => {
  const canvas = document.getElementById('bars'), box = canvas.getBoundingClientRect(), tip = canvas.parentElement.querySelector('.tip');
  canvas.setPointerCapture = () => {};
  for (let x = 75; x < box.width; x += 5) {
    const at = { clientX: box.left + x, clientY: box.top + 24 + 14 * %d + 6, pointerId: 5, bubbles: true };
    canvas.dispatchEvent(new PointerEvent('pointermove', at));
    if (tip.hidden || !tip.textContent.startsWith('%s')) continue;
    const said = tip.textContent;
    for (const type of %s) canvas.dispatchEvent(new PointerEvent(type, at));
    return said;
  }
  return '';
})()"""
# How many pixels of the timeline have each colour of the marks.
MARK_COLOURS = """(() => {
  const canvas = document.getElementById('bars'), style = getComputedStyle(document.documentElement);
  const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  return ['mark-0', 'mark-1', 'mark-line'].map((name) => {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(style.getPropertyValue('--' + name).trim().slice(i, i + 2), 16));
    let count = 0;
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i] === r && pixels[i + 1] === g && pixels[i + 2] === b) count++;
    return count;
  });
})()"""
TRAINING = """
import ctypes, os, time

recorder = ctypes.PyDLL(None)
recorder.pio_mark.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
out = os.open("out", os.O_WRONLY | os.O_CREAT)
for epoch in range(3):
    recorder.pio_mark(b"epoch", epoch)
    for step in range(3000):
        recorder.pio_mark(b"step", step)
        os.write(out, bytes(4096))
    time.sleep(0.05)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000, help="of the trace that is reported (default %(default)s)")
    parser.add_argument("--profile", default="debug", help="build of the command (default %(default)s)")
    parser.add_argument("--report", type=Path, help="a report that is there, instead of one of a generated trace")
    parser.add_argument("--screenshots", type=Path, help="folder to keep what was seen in")
    arguments = parser.parse_args()
    found, missing = browsers.installed()
    for name in missing:
        print(f"skipped: no {name} on the PATH")
    if not found:
        return
    with tempfile.TemporaryDirectory(prefix="pioscope-report-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        many = arguments.report or generated(arguments.events, arguments.profile, folder)
        others = None if arguments.report else [kind(arguments.profile, folder) for kind in (collective, threaded, crowd, marked)]
        with contextlib.ExitStack() as open_now, ThreadPoolExecutor() as at_once:
            pages = [open_now.enter_context(kind(path, folder / f"profile of {kind.__name__}")) for kind, path in found]
            for done in [at_once.submit(check_all, page, many.resolve(), others, arguments.screenshots) for page in pages]:
                done.result()


def check_all(page, many, others, screenshots):
    screenshots = screenshots and screenshots / type(page).__name__.lower()
    if screenshots:
        screenshots.mkdir(parents=True, exist_ok=True)
    try:
        check(page, many, screenshots)
        if others:
            check_parts(page, others[0], screenshots)
            check_choices(page, others[1], screenshots)
            check_crowd(page, others[2], screenshots)
            check_marks(page, others[3], screenshots)
        expect(page.complaints == [], f"the script does not complain: {page.complaints}")
    except SystemExit as wrong:
        sys.exit(f"{type(page).__name__}: {wrong}")


def generated(events, profile, folder):
    """The report of a run of many events: every rank writes and reads small pieces of one file in turn, on a machine."""
    trace, ranks = folder / "many.pio", 16
    # Each is written, and read back.
    segments = max(1, events // ranks // 2)
    command = pioscope(profile)
    run([command, "workload", "ior-hard", "--param", f"ranks={ranks}", "--param", f"segments={segments}", "-o", trace])
    run([command, "predict", trace, "--machine", "sp-argonne", "--strategy", "independent", "--output", folder])
    simulated = folder / "many-sp-argonne-independent.pio"
    report = folder / "many.html"
    run([command, "explain", simulated, "--html", report])
    return report


def collective(profile, folder):
    """The report of a run whose ranks write together, in two phases on a machine."""
    run([pioscope(profile), "workload", "collapse", "-o", folder / "together.pio"])
    run([pioscope(profile), "predict", folder / "together.pio", "--machine", "sp-argonne", "--strategy", "two-phase", "--output", folder])
    report = folder / "together.html"
    run([pioscope(profile), "explain", folder / "together-sp-argonne-two-phase.pio", "--html", report])
    return report


HOSTILE = """</script><script>document.title="broken"</script><img src=x onerror=document.title="broken">'&\u2028\u202e"""


def threaded(profile, folder):
    """The report of a run of ranks with threads, on files of which one has a name that would change the page."""
    lines = ["start_s,call,rank,thread,file,offset,size,elapsed_s"]
    for k in range(3000):
        rank, thread, call = k % 3, k // 3 % 2, ["pwrite", "pread"][k // 7 % 2]
        file = ["/data/one.dat", "/data/two.dat", f"/data/{HOSTILE}", *(f"/data/more-{n}" for n in range(9))][k // 11 % 12].replace('"', '""')
        lines.append(f'{k * 1e-4:.4f},{call},{rank},{thread},"{file}",{k * 37 % 5000 * 512},512,{5e-5 * (1 + k % 5):.6f}')
    (folder / "threaded.csv").write_text("\n".join(lines) + "\n")
    report = folder / "threaded.html"
    run([pioscope(profile), "explain", folder / "threaded.csv", "--html", report])
    return report


def crowd(profile, folder):
    """The report of a run of many ranks, on hosts of ten: one is slow for a while, and so is a host."""
    lines, ends = ["start_s,call,rank,host,file,offset,size,elapsed_s"], [0.0] * 100
    for step in range(40):
        for rank in range(100):
            is_slow = rank == 42 and 10 <= step < 20 or 70 <= rank < 80 and step >= 25
            start, elapsed = ends[rank], 0.01 if is_slow else 0.005
            lines.append(f"{start:.4f},pwrite,{rank},node{rank // 10},/data/shared.dat,{(step * 100 + rank) * 65536},65536,{elapsed}")
            ends[rank] = start + 0.01
    (folder / "crowd.csv").write_text("\n".join(lines) + "\n")
    report = folder / "crowd.html"
    run([pioscope(profile), "explain", folder / "crowd.csv", "--html", report])
    return report


def marked(profile, folder):
    """The report of a run of 3 epochs, each of 3,000 steps."""
    (folder / "training.py").write_text(TRAINING)
    trace, report = folder / "training.pio", folder / "training.html"
    run([pioscope(profile), "record", "-o", trace, "--", sys.executable, folder / "training.py"], cwd=folder)
    run([pioscope(profile), "explain", trace, "--html", report])
    return report


def check_marks(page, report, screenshots):
    """What the program marked is drawn above the rows, however much it is, named by the pointer, and chosen by a click."""
    page.requests.clear()
    page.resize(1400)
    page.open(report.as_uri())
    expect(page.value(MARKS) == ["epoch", "step"], f"the bands are named, outer ones first: {page.value(MARKS)}")
    counted = int(page.value(TOLD).split()[1].replace(",", ""))
    for number in range(3):
        page.value("document.getElementById('clear').click()")
        page.settle()
        said = page.value(BAND % (0, f"epoch {number}", ["pointerdown", "pointerup"]))
        expect("marked by " in said, f"the pointer names epoch {number}: {said}")
        page.settle()
        some = int(page.value(TOLD).split()[0].replace(",", ""))
        expect(3000 <= some < counted, f"a click chooses an epoch of {counted} calls: {page.value(TOLD)}")
    page.value("document.getElementById('clear').click()")
    for width in WIDTHS:
        page.resize(width)
        said = page.value(BAND % (1, "", []))
        expect("step" in said, f"the pointer names steps at a width of {width}: {said}")
        more, *out = page.value(OVERFLOW)
        expect(more <= 0 and not out, f"all fits a width of {width}: {more} {out}")
        page.value("document.querySelectorAll('.tip').forEach((tip) => { tip.hidden = true; })")
        for theme in ["light", "dark"]:
            set_theme(page, theme)
            keep(page, screenshots, f"marks-{theme}-{width}.png")
            even, odd, line = page.value(MARK_COLOURS)
            expect(min(even, odd) > 300 and line > 30, f"epochs are drawn by turns, and their ends, {theme}, {width}: {even, odd, line}")
    # Few are apart, and have their numbers.
    set_theme(page, "light")
    page.resize(1400)
    for _ in range(8):
        page.value("document.getElementById('in').click()")
    page.settle()
    keep(page, screenshots, "marks-near.png")
    expect_alone(page, report)


def check_crowd(page, report, screenshots):
    """Many ranks are shown over time before the timeline; who stands apart is named, and rows and times can be chosen."""
    page.requests.clear()
    page.resize(1400)
    page.open(report.as_uri())
    expect(page.value(LONG) == [40, 100, 40, 100], f"a long table begins with its first rows: {page.value(LONG)}")
    sections = page.value("[...document.querySelectorAll('main > section')].map((section) => section.id)")
    expect(sections.index("over-time") < sections.index("timeline"), f"the heat map comes before the timeline: {sections}")
    named = page.value("[...document.querySelectorAll('#over-time tbody tr')].map((row) => row.cells[0].textContent + ' ' + row.cells[1].textContent)")
    expect(named == ["all 10 node7", "42 node4"], f"those that stand apart are named: {named}")
    page.value(HEAT_KEY % "ArrowDown")
    said = page.value("document.querySelector('#over-time .tip').textContent")
    expect("rank 1" in said and "in I/O" in said, f"keys go from row to row: {said}")
    for act, what, calls in [(HEAT_KEY % "Enter", "a row", 40), (HEAT_CLICK, "rank 42", 40), (HEAT_DRAG, "half of the time", None)]:
        page.value("document.getElementById('clear').click()")
        page.settle()
        page.value(act)
        page.settle()
        some = int(page.value(TOLD).split()[0].replace(",", ""))
        expect(some == calls if calls else 1800 < some < 2300, f"the heat map chooses {what}: {page.value(TOLD)}")
    for width in WIDTHS:
        page.resize(width)
        more, *out = page.value(OVERFLOW)
        expect(more <= 0 and not out, f"all fits a width of {width}: {more} {out}")
        for theme in ["light", "dark"] if screenshots or width == 1400 else []:
            set_theme(page, theme)
            keep(page, screenshots, f"crowd-{theme}-{width}.png")
            expect(page.value(FAINT) == [], f"words can be read, {theme}: {page.value(FAINT)}")
    set_theme(page, "light")
    page.resize(1400)
    expect_alone(page, report)


def check_choices(page, report, screenshots):
    """What is chosen is chosen everywhere, and can be sent and undone."""
    page.requests.clear()
    page.resize(1400)
    page.open(report.as_uri())
    expect(page.value("document.title") != "broken" and page.value("document.images.length") == 0, "a name of a file stays text")
    rows = page.value("JSON.parse(document.getElementById('data').textContent).rows")
    expect(rows == ["rank 0", "thread 1", "rank 1", "thread 1", "rank 2", "thread 1"], f"threads have rows: {rows}")
    expect(page.value(SORT) == [], f"a click on a heading sorts: {page.value(SORT)}")
    shown, have, none, again, rows = page.value(SEARCH)
    expect(0 < shown == have < again == rows and none == 0, f"a search leaves the rows that match: {shown} {have} {none} {again} {rows}")

    whole, drawn = page.value(TABLES), page.value(DRAWN)
    # Chosen is all time that there is: nothing may change but what cannot be told of some calls.
    page.value(PRESS % "c")
    page.settle()
    told = page.value(TABLES)
    cells = [(a, b) for one, other in zip(whole, told) for row, mirror in zip(one, other) for a, b in zip(row, mirror)]
    expect(all(b in (a, "–") or near(a, b) for a, b in cells), f"of all calls the same is told: {[c for c in cells if c[0] != c[1]][:9]}")
    lost = sum(b == "–" and a not in ("–", "") for a, b in cells)
    expect(lost < len(cells) / 4, f"most is known of chosen calls, too: {lost} of {len(cells)}")

    chosen = {}
    for name, act in [("time", BRUSH), ("file", "document.querySelectorAll(\"table[data-of='file'] .pick\")[1].click()"),
                      ("process", "document.querySelector(\"table[data-of='process'] .pick\").click()"),
                      ("operation", "document.querySelector('[data-op]').click()"),
                      ("finding", "document.querySelector('[data-finding]').click()")]:
        page.value("document.getElementById('clear').click()")
        page.settle()
        page.value(act)
        page.settle()
        some, all_calls = [int(word.replace(",", "")) for word in page.value(TOLD).split() if word[0].isdigit()]
        expect(0 < some < all_calls == 3000, f"some calls are chosen by {name}: {page.value(TOLD)}")
        expect(page.value(COUNTED) == some, f"the tables count them: {page.value(COUNTED)} by {name}, of {some}")
        expect(page.value("document.querySelectorAll('svg.partly .chosen').length") > 0, f"figures show them, by {name}")
        expect(page.value(DRAWN) != drawn, f"the timeline shows them, by {name}")
        chosen[name] = (page.value("location.href"), some, page.value(TABLES))
    expect(page.value("document.querySelector('[data-finding]').getAttribute('aria-pressed')") == "true", "a finding's button is pressed")
    keep(page, screenshots, "finding.png")
    for width in WIDTHS:
        page.resize(width)
        more, *out = page.value(OVERFLOW)
        expect(more <= 0 and not out, f"all fits a width of {width} while a finding is shown: {more} {out}")
    page.resize(1400)
    for name, (address, some, tables) in chosen.items():
        page.open(address)
        expect(page.value(TABLES) == tables, f"an address keeps what is chosen by {name}: {address}")
    page.value("document.getElementById('clear').click()")
    page.value("document.getElementById('reset').click()")
    page.settle()
    expect(page.value(TABLES) == whole and page.value(DRAWN) == drawn, "all is there again")
    expect("#" not in page.value("location.href"), f"nothing is chosen: {page.value('location.href')}")

    before = page.value("document.getElementById('offset-plot').toDataURL()")
    page.value("(() => { const select = document.getElementById('offset-file'); select.selectedIndex = 1; select.dispatchEvent(new Event('change')); })()")
    page.settle()
    expect(page.value("document.getElementById('offset-plot').toDataURL()") != before, "another file has other offsets")
    if screenshots:
        page.print(screenshots / "print.pdf")
    expect_alone(page, report)


def near(one, other):
    """Whether two texts are the same number, but for its last digit."""
    numbers = [text.replace(",", "").split() for text in (one, other)]
    try:
        return numbers[0][1:] == numbers[1][1:] and abs(float(numbers[0][0]) / float(numbers[1][0]) - 1) < 2e-3
    except (ValueError, IndexError, ZeroDivisionError):
        return False


def check_parts(page, report, screenshots):
    """Collective calls are drawn in three shades, and the pointer names them; at any width, light and dark."""
    page.requests.clear()
    page.open(report.as_uri())
    parts = page.value("JSON.parse(document.getElementById('data').textContent).parts")
    expect(len(parts) > 1, "a trace with collective calls has their parts")
    legend = page.value("document.querySelector('.timeline ul.parts').textContent")
    expect(all(part in legend for part in parts), f"the legend names {parts}: {legend}")
    for width in WIDTHS:
        page.resize(width)
        said = page.value(HOVER)
        for part in parts:
            expect(any(line.startswith(part + " ") for line in said), f"the pointer names '{part}' at a width of {width}: {said}")
        more, *out = page.value(OVERFLOW)
        expect(more <= 0 and not out, f"all fits a width of {width}: {more} {out}")
        page.value("document.querySelectorAll('.tip').forEach((tip) => { tip.hidden = true; })")
        for theme in ["light", "dark"] if screenshots or width == 1400 else []:
            set_theme(page, theme)
            keep(page, screenshots, f"parts-{theme}-{width}.png")
            if width != 1400:
                continue
            missing = page.value(SHADES % ("0.62, " if len(parts) == 3 else ""))
            expect(missing == [], f"each part has its own shade, {theme}, {width}: {missing}")
            expect(page.value(FAINT) == [], f"words can be read, {theme}: {page.value(FAINT)}")
    page.resize(1400)


def set_theme(page, theme):
    if (theme == "dark") != page.value("document.documentElement.classList.contains('dark')"):
        page.value("document.getElementById('theme').click()")
    page.settle()


def check(page, report, screenshots):
    began = time.monotonic()
    page.open(report.as_uri())
    opened = time.monotonic() - began
    whole = page.value(DRAWN)
    moving, choosing = page.value(FRAMES)
    page.settle()
    expect(page.value(DRAWN) == whole, "zooming in, out and back draws what was there before")

    page.value("document.getElementById('in').click()")
    page.settle()
    expect(page.value(DRAWN) != whole, "zooming changes what is drawn")
    expect("#t=" in page.value("location.href"), "the range that is shown is part of the address")
    page.value("document.getElementById('reset').click()")
    page.settle()
    for kind in ["op", "layer"]:
        changes = [page.value(FILTER % (kind, index)) for index in range(page.value(f"document.querySelectorAll('[data-{kind}]').length"))]
        expect(all(back for _, back in changes), f"without a filter by {kind} all is there again")
        # What takes next to no time is not seen, and not missed.
        expect(any(changed for changed, _ in changes), f"filters by {kind} change what is drawn")
    expect(page.value(UNNAMED) == [], "figures and buttons say what they are to a screen reader")
    expect(page.value("document.getElementById('bars').tabIndex") == 0, "the timeline can be reached by keyboard")

    for theme in ["light", "dark"]:
        set_theme(page, theme)
        keep(page, screenshots, f"{theme}.png")
    set_theme(page, "light")
    if page.prefer("dark"):
        page.settle()
        expect(page.value("document.documentElement.classList.contains('dark')"), "the page is dark where the system is")
        page.prefer("light")
    expect_alone(page, report)
    size = report.stat().st_size / 1e6
    print(f"{type(page).__name__}: {report.name}, {size:.1f} MB, open in {opened:.2f} s, the longest time without a frame {moving:.0f} ms "
          f"while moving, {choosing:.0f} ms while choosing; all is as it should be")


def keep(page, screenshots, name):
    if screenshots:
        page.screenshot(screenshots / name)


def expect_alone(page, report):
    """Nothing but the page may be asked for. What browsers carry within themselves they name by its data."""
    asked = set(address.split("#")[0] for address in page.requests if not address.startswith("data:"))
    expect(asked <= {report.as_uri(), "about:blank"}, f"nothing but the page is asked for: {asked}")


def expect(holds, what):
    if not holds:
        sys.exit(f"the report is not right: {what}")


if __name__ == "__main__":
    main()
