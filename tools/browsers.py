"""Headless browsers for checks: Chromium by the DevTools protocol through two pipes, Firefox by WebDriver BiDi through a web
socket. Nothing but the browser and Python is needed."""

import base64
import itertools
import json
import os
import re
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

TIMEOUT_SECONDS = 60


def installed():
    """The kinds of browsers that are on the PATH, and the names of those that are not."""
    found = {kind: next(filter(None, map(shutil.which, kind.NAMES)), None) for kind in [Chromium, Firefox]}
    return [(kind, path) for kind, path in found.items() if path], [kind.__name__ for kind, path in found.items() if not path]


class Browser:
    """A browser with one page; what that asks for and complains of is noted."""

    def __init__(self):
        self.numbers = itertools.count(1)
        self.requests, self.complaints = [], []

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def settle(self):
        """Waits until all is drawn and counted, and the address is written: that is a quarter of a second late."""
        self.value("""(async () => {
          const wait = (ms) => new Promise((done) => setTimeout(done, ms));
          while (document.body.ariaBusy === 'true') await wait(30);
          await wait(270);
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        })()""")

    def answer(self, number, method):
        while True:
            answer = self.take()
            if answer.get("id") == number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer}")
                return answer["result"]

    def wait_for(self, descriptor):
        if not select.select([descriptor], [], [], TIMEOUT_SECONDS)[0]:
            sys.exit(f"the browser has not answered for {TIMEOUT_SECONDS} s")


class Chromium(Browser):
    NAMES = ["chromium", "chromium-browser", "google-chrome"]

    def __init__(self, path, profile):
        super().__init__()
        words = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-background-networking", "--hide-scrollbars", "--window-size=1280,1600", f"--user-data-dir={profile}", "about:blank"]
        (theirs_in, self.out), (self.into, theirs_out) = os.pipe(), os.pipe()

        # The browser reads from descriptor 3 and writes to 4.
        def pass_on():
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(words, preexec_fn=pass_on, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.session, self.loaded = b"", None, False

    def begin(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def open(self, address):
        # The address of a page that is open already, but for its fragment, would not load it anew.
        for where in ["about:blank", address]:
            self.loaded = False
            self.call("Page.navigate", url=where)
            while not self.loaded:
                self.take()
        self.settle()

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def resize(self, width, height=1000):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def prefer(self, theme):
        """Whether the system's theme could be set."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        return True

    def screenshot(self, path):
        self.settle()
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def print(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        return self.answer(number, method)

    def take(self):
        while b"\0" not in self.buffer:
            self.wait_for(self.into)
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


class Firefox(Browser):
    NAMES = ["firefox", "firefox-esr"]

    def __init__(self, path, profile):
        super().__init__()
        Path(profile).mkdir()
        words = [path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"HOME": str(profile)})

    def begin(self):
        self.socket = WebSocket(self.port(), "/session")
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.resize(1280, 1600)

    def port(self):
        """Where it listens, as it says by itself."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < end:
            self.wait_for(self.process.stderr)
            line = self.process.stderr.readline()
            if not line:
                break
            if found := re.search(r"ws://127\.0\.0\.1:(\d+)", line):
                return int(found[1])
        sys.exit("the browser does not say where it listens")

    def open(self, address):
        for where in ["about:blank", address]:
            self.call("browsingContext.navigate", context=self.context, url=where, wait="complete")
        self.settle()

    def value(self, expression):
        text = f"(async () => JSON.stringify(await ({expression})))()"
        answer = self.call("script.evaluate", expression=text, target={"context": self.context}, awaitPromise=True)
        if answer["type"] != "success":
            sys.exit(f"{expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"].get("value") or "null")

    def resize(self, width, height=1000):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})
        self.settle()

    def prefer(self, theme):
        """Whether the system's theme could be set."""
        return False

    def screenshot(self, path):
        self.settle()
        answer = self.call("browsingContext.captureScreenshot", context=self.context, origin="document")
        path.write_bytes(base64.b64decode(answer["data"]))

    def print(self, path):
        path.write_bytes(base64.b64decode(self.call("browsingContext.print", context=self.context, background=True)["data"]))

    def call(self, method, **parameters):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        return self.answer(number, method)

    def take(self):
        self.wait_for(self.socket.socket)
        message = json.loads(self.socket.receive())
        match message.get("method"):
            case "network.beforeRequestSent":
                self.requests.append(message["params"]["request"]["url"])
            case "log.entryAdded":
                self.complaints.append(message["params"])
        return message


class WebSocket:
    """A client's end of RFC 6455, for text."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.exactly(1)
        if b" 101 " not in answer.split(b"\r\n")[0]:
            sys.exit(f"the browser does not talk: {answer[:80]}")

    def send(self, text):
        payload, mask = text.encode(), secrets.token_bytes(4)
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x81, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, length)
        self.socket.sendall(head + mask + bytes(byte ^ mask[k % 4] for k, byte in enumerate(payload)))

    def receive(self):
        text = b""
        while True:
            first, length = self.exactly(2)
            if length == 126:
                length, = struct.unpack("!H", self.exactly(2))
            elif length == 127:
                length, = struct.unpack("!Q", self.exactly(8))
            payload = self.exactly(length)
            match first & 15:
                case 0 | 1:
                    text += payload
                    if first & 0x80:
                        return text
                case 8:
                    sys.exit("the browser has ended")

    def exactly(self, length):
        some = b""
        while len(some) < length:
            more = self.socket.recv(length - len(some))
            if not more:
                sys.exit("the browser has ended")
            some += more
        return some
