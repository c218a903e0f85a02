"""Opens the site in headless Chromium as a reader does: at the width of a desk and of a telephone, light and dark, and searches.

Fails if a page asks for anything outside the site, complains, or is wider than the window, or if a search does not find what it
should. Keeps screenshots.
"""

import argparse
import functools
import http.server
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from browsers import Chromium
from build_site import SITE

WIDTHS = {"desk": 1280, "telephone": 390}
OPENED = ["index.html", "docs/cookbook/index.html", "docs/cookbook/checkpoint-is-slow/index.html", "docs/explain/index.html",
          "docs/compared/index.html", "docs/advise/index.html", "docs/design/format/index.html"]
# What is searched for, and a page that must be among those found.
SEARCHED = {"burst buffer": "cookbook/cache", "cb_nodes": "cookbook/cb-nodes", "late ranks": "docs/explain"}

# Opens the search as a reader does, types, and waits: the addresses of the pages found.
SEARCH = """(async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  document.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
  document.querySelector('.md-search__button, label[for=__search]').click();
  const every = (root, what) => [...root.querySelectorAll(what), ...[...root.querySelectorAll('*')].flatMap((e) => e.shadowRoot ? every(e.shadowRoot, what) : [])];
  for (let tries = 0; tries < 50; tries++) {
    await wait(100);
    const input = every(document, 'input').find((e) => e.type === 'text' || e.type === 'search' || e.getAttribute('role') === 'combobox');
    if (!input) continue;
    input.focus();
    input.value = %r;
    input.dispatchEvent(new InputEvent('input', { bubbles: true, composed: true }));
    for (let more = 0; more < 30; more++) {
      await wait(100);
      const found = every(document, 'a').map((e) => e.href).filter((href) => href.includes('?h=') || href.includes('&h='));
      if (found.length) return found;
    }
  }
  return [];
})()"""
WIDER = "document.scrollingElement.scrollWidth - innerWidth"
# How light the ground of the page is, from 0 to 255.
GROUND = """(() => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }), context = canvas.getContext('2d');
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data[1];
})()"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=Path, help="folder for what was seen")
    arguments = parser.parse_args()
    browser = next(filter(None, map(shutil.which, Chromium.NAMES)), None)
    if not browser:
        print(f"skipped: no {' or '.join(Chromium.NAMES)} on the PATH")
        return
    if not SITE.is_dir():
        sys.exit("there is no site: make site")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory(prefix="pioscope-site-", ignore_cleanup_errors=True) as folder:
        screenshots = arguments.screenshots or Path(folder)
        screenshots.mkdir(parents=True, exist_ok=True)
        with Chromium(browser, Path(folder, "profile")) as page:
            look(page, root, screenshots)
            search(page, root, screenshots)
    server.shutdown()


def look(page, root, screenshots):
    for name, width in WIDTHS.items():
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=name != "desk")
        for scheme in ["light", "dark"]:
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for path in OPENED:
                page.open(root + path)
                expect(page.value(WIDER) <= 0, f"{path} is no wider than the window of a {name}")
                expect((page.value(GROUND) > 127) == (scheme == "light"), f"{path} is {scheme} if the system is")
                page.screenshot(screenshots / f"{name}-{scheme}-{path.removesuffix('/index.html').replace('/', '-').removesuffix('.html')}.png")
    outside = [request for request in page.requests if not request.startswith((root, "about:", "data:", "blob:"))]
    expect(outside == [], f"nothing outside the site is asked for: {outside}")
    expect(page.complaints == [], f"no page complains: {page.complaints}")
    print(f"{len(OPENED)} pages at {len(WIDTHS)} widths, light and dark: all as it should be")


def search(page, root, screenshots):
    for words, expected in SEARCHED.items():
        page.open(root)
        found = page.value(SEARCH % words)
        page.screenshot(screenshots / f"search-{words.replace(' ', '-')}.png")
        expect(any(expected in address for address in found), f"a search for {words} finds {expected}: {found[:8]}")
    print(f"{len(SEARCHED)} searches find what they should")


def expect(holds, what):
    if not holds:
        sys.exit(f"the site is not right: {what}")


if __name__ == "__main__":
    main()
