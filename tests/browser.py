"""A headless Chromium, spoken to through a pipe: real keys and clicks, and an ear for console and network.

The DevTools protocol is JSON between zero bytes (`--remote-debugging-pipe`), so no driver package is needed.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 40                           # seconds that an answer may take
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, " ": 32, "Tab": 9,
        "Enter": 13}


def found() -> str | None:
    """The browser that MICROGRAD_BROWSER names, else the first on the PATH."""
    return next(filter(None, map(shutil.which, (os.environ.get("MICROGRAD_BROWSER", ""), *NAMES))), None)


class Browser:
    """One page in a headless browser. `errors` and `requests` gather what the console and the network saw."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        program = found()
        if program is None:
            raise RuntimeError(f"MICROGRAD_BROWSER is set, but none of {', '.join(NAMES)} is on the PATH; install one "
                               "(apt-get install chromium) or name its path in MICROGRAD_BROWSER")
        self.profile = tempfile.mkdtemp(prefix="micrograd-browser-")
        inbox, self.writing = os.pipe()
        self.reading, outbox = os.pipe()
        given = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (inbox, outbox)]
        self.process = os.posix_spawn(
            program, [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                      "--force-device-scale-factor=1", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                      f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, given[0], 3), (os.POSIX_SPAWN_DUP2, given[1], 4),
                                      (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                                      (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
        for end in (inbox, outbox, *given):
            os.close(end)
        self.count, self.kept, self.session = 0, b"", None
        self.loaded = False
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = next(x for x in self.call("Target.getTargets")["targetInfos"] if x["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *anything: object) -> None:
        os.kill(self.process, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.process, signal.SIGKILL)
            time.sleep(0.02)
        os.close(self.reading), os.close(self.writing)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **parameters: object) -> dict:
        """Send a command and wait for its answer."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self, deadline: float) -> dict:
        """The next message; events are noted on the way."""
        while b"\0" not in self.kept:
            if not select.select([self.reading], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError(f"the browser did not answer within {PATIENCE} s; it said {self.errors or 'nothing'}")
            heard = os.read(self.reading, 1 << 20)
            if not heard:
                raise RuntimeError(f"the browser {found()} ended unasked")
            self.kept += heard
        text, _, self.kept = self.kept.partition(b"\0")
        message = json.loads(text)
        method, parameters = message.get("method"), message.get("params", {})
        self.loaded |= method == "Page.loadEventFired"
        if method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(str(parameters["args"]))
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return message

    def open(self, file: Path) -> None:
        """Load a file and wait until all of it is there."""
        self.loaded = False
        self.call("Page.navigate", url=file.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE
        while not self.loaded:
            self.receive(deadline)

    def run(self, script: str) -> object:
        """The value of a script in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        more = {"text": key} if key == " " else {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector: str) -> None:
        """Click in the middle of an element, where a hand would."""
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Move the mouse over an element."""
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def middle(self, selector: str) -> tuple[float, float]:
        """Where an element is on the screen."""
        x, y = self.run(f"(() => {{const e = document.querySelector({json.dumps(selector)}); "
                        "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect(); "
                        "return [r.x + r.width / 2, r.y + r.height / 2]})()")
        return x, y

    def prefer(self, **features: str) -> None:
        """What the reader prefers: scheme="dark", motion="reduce"."""
        names = {"scheme": "prefers-color-scheme", "motion": "prefers-reduced-motion"}
        self.call("Emulation.setEmulatedMedia", features=[{"name": names[k], "value": v} for k, v in features.items()])

    def screenshot(self, file: Path | None = None) -> bytes:
        """What is seen, as PNG."""
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if file is not None:
            file.write_bytes(png)
        return png

    def resize(self, width: int, height: int) -> None:
        """Another size of screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
