# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its own protocol (DevTools over a pipe: no package beside the browser itself)."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 300  # seconds for an answer, however busy the machine is


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One page. Everything it writes to its console, and every exception, is kept in `console`."""

    def __init__(self, width=1200, height=900):
        self.profile = tempfile.mkdtemp(prefix="tenon-report-")
        command = [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-extensions", "--disable-background-networking",
                   "--disable-component-update", "--disable-dev-shm-usage",
                   "--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars",
                   f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "--remote-debugging-pipe",
                   "about:blank"]
        to_child, self.to = os.pipe()
        self.of, from_child = os.pipe()

        def pass_pipes():  # the browser reads 3 and writes 4; the pipes may have those very numbers
            reading, writing = os.dup(to_child), os.dup(from_child)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=pass_pipes, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.unread, self.number, self.events, self.console, self.session = b"", 0, [], [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def close(self):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.of)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self, deadline):
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.of], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.of, 1 << 16)
            if not data:
                raise RuntimeError("the browser ended")
            self.unread += data
        text, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.note(message["method"], message["params"])
        return message

    def note(self, method, parameters):
        self.events.append(method)
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.console.append("asked the network for " + url)

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + PATIENCE
        while "Page.loadEventFired" not in self.events:
            self.read(deadline)

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def place(self, selector):
        """The middle of the first such element, which is scrolled into view."""
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
                       "e.scrollIntoView({block: 'center', inline: 'nearest'}); const b = e.getBoundingClientRect();"
                       "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        if box is None:
            raise RuntimeError(f"there is no {selector}")
        return box

    def hover(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name, text=None):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowRight": 39, "ArrowLeft": 37}
        common = {"key": name, "code": name if name in codes else "", "windowsVirtualKeyCode": codes.get(name, 0)}
        typed = {"text": text} if text else {"text": "\r"} if name == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self):
        import base64
        self.run("scrollTo(0, 0)")
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
