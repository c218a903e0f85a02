"""Opens a report in headless Chromium and does what a reader does: looks, zooms, filters, changes the theme.

Fails if the page asks for anything but itself, if its script fails or complains, or if zooming or filtering does not change
what is drawn. Prints how long drawing takes, and keeps screenshots. Talks to the browser through two pipes (the DevTools
protocol), so that nothing but the browser is needed.
"""

import argparse
import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tree import pioscope, run

NAMES = ["chromium", "chromium-browser", "google-chrome"]
TIMEOUT_SECONDS = 60

DRAWN = "document.getElementById('bars').toDataURL()"
# Zooms in and out, and waits for each frame: the longest of them, milliseconds.
FRAMES = """(async () => {
  const press = (key) => document.getElementById('bars').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  let longest = 0;
  for (const key of ['+', '+', '+', 'ArrowRight', 'ArrowRight', '-', '-', '-', '0']) {
    press(key);
    const before = performance.now();
    await new Promise((done) => requestAnimationFrame(() => { setTimeout(done); }));
    longest = Math.max(longest, performance.now() - before);
  }
  return longest;
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
  const canvas = document.getElementById('bars'), tip = document.getElementById('tip'), box = canvas.getBoundingClientRect();
  for (let y = 30; y < box.height; y += 3) for (let x = 70; x < box.width; x += 3) {
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
OVERFLOW = """[document.scrollingElement.scrollWidth - innerWidth, ...[...document.querySelectorAll('.timeline button, .timeline li, #tip')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))]"""
WIDTHS = [360, 800, 1280, 1920]
UNNAMED = """[...document.querySelectorAll('canvas, svg, button')].filter(
  (e) => e.getAttribute('aria-hidden') !== 'true' && !e.getAttribute('aria-label') && !e.textContent.trim()).map((e) => e.outerHTML.slice(0, 80))"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000, help="of the trace that is reported (default %(default)s)")
    parser.add_argument("--profile", default="debug", help="build of the command (default %(default)s)")
    parser.add_argument("--report", type=Path, help="a report that is there, instead of one of a generated trace")
    parser.add_argument("--screenshots", type=Path, help="folder for what was seen")
    arguments = parser.parse_args()
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if not browser:
        print(f"skipped: no {' or '.join(NAMES)} on the PATH")
        return
    with tempfile.TemporaryDirectory(prefix="pioscope-report-", ignore_cleanup_errors=True) as folder:
        report = arguments.report or generated(arguments.events, arguments.profile, Path(folder))
        screenshots = arguments.screenshots or Path(folder)
        screenshots.mkdir(parents=True, exist_ok=True)
        with Page(browser, Path(folder, "profile")) as page:
            check(page, report.resolve(), screenshots)
            if not arguments.report:
                check_parts(page, collective(arguments.profile, Path(folder)), screenshots)


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


def check_parts(page, report, screenshots):
    """Collective calls are drawn in three shades, and the pointer names them; at any width, light and dark."""
    page.requests.clear()
    page.open(report.as_uri())
    parts = page.value("JSON.parse(document.getElementById('data').textContent).parts")
    expect(len(parts) > 1, "a trace with collective calls has their parts")
    legend = page.value("document.querySelector('.timeline ul.parts').textContent")
    expect(all(part in legend for part in parts), f"the legend names {parts}: {legend}")
    for width in WIDTHS:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=1600, deviceScaleFactor=1, mobile=False)
        page.settle()
        said = page.value(HOVER)
        for part in parts:
            expect(any(line.startswith(part + " ") for line in said), f"the pointer names '{part}' at a width of {width}: {said}")
        more, *out = page.value(OVERFLOW)
        expect(more <= 0 and not out, f"all fits a width of {width}: {more} {out}")
        page.value("document.getElementById('tip').hidden = true")
        for theme in ["light", "dark"]:
            set_theme(page, theme)
            page.screenshot(screenshots / f"parts-{theme}-{width}.png")
            missing = page.value(SHADES % ("0.62, " if len(parts) == 3 else ""))
            expect(missing == [], f"each part has its own shade, {theme}, {width}: {missing}")
    page.call("Emulation.clearDeviceMetricsOverride")
    expect(page.complaints == [], f"the script does not complain: {page.complaints}")


def set_theme(page, theme):
    if (theme == "dark") != page.value("document.documentElement.classList.contains('dark')"):
        page.value("document.getElementById('theme').click()")
    page.settle()


def check(page, report, screenshots):
    began = time.monotonic()
    page.open(report.as_uri())
    opened = time.monotonic() - began
    whole = page.value(DRAWN)
    longest = page.value(FRAMES)
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
        page.screenshot(screenshots / f"{theme}.png")
    expect(page.requests == [report.as_uri()], f"nothing but the page is asked for: {page.requests}")
    expect(page.complaints == [], f"the script does not complain: {page.complaints}")
    size = report.stat().st_size / 1e6
    print(f"{report.name}: {size:.1f} MB, open in {opened:.2f} s, the longest frame {longest:.0f} ms; all is as it should be")


def expect(holds, what):
    if not holds:
        sys.exit(f"the report is not right: {what}")


class Page:
    """A page of a browser."""

    def __init__(self, browser, profile):
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-background-networking", "--window-size=1280,1600", f"--user-data-dir={profile}", "about:blank"]
        (theirs_in, self.out), (self.into, theirs_out) = os.pipe(), os.pipe()

        # The browser reads from descriptor 3 and writes to 4.
        def pass_on():
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(words, preexec_fn=pass_on, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.buffer, self.session = itertools.count(1), b"", None
        self.requests, self.complaints, self.loaded = [], [], False

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Runtime", "Log"]:
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def open(self, address):
        self.loaded = False
        self.call("Page.navigate", url=address)
        while not self.loaded:
            self.take()
        self.settle()

    def settle(self):
        """Waits until all is drawn, and the address is written."""
        self.value("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(0))), 300))")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path):
        self.settle()
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.take()
            if answer.get("id") == number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def take(self):
        """The next message of the browser; what it tells of the page is noted."""
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], TIMEOUT_SECONDS)[0]:
                sys.exit(f"the browser has not answered for {TIMEOUT_SECONDS} s")
            some = os.read(self.into, 1 << 20)
            if not some:
                sys.exit("the browser has ended")
            self.buffer += some
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        match message.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(message["params"])
        return message


if __name__ == "__main__":
    main()
