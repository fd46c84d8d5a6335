"""Headless Chromium, controlled by its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

INSTRUCTIONS = (
    "Chromium is needed for the system tests: apt-get install chromium (Debian), or set "
    "NASBO_CHROMIUM to the browser's path"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""File descriptors: the browser reads commands from 3 and writes answers to 4."""
TIMEOUT_S = 120.0


def find_chromium() -> str:
    """Path of the browser; fails with instructions if there is none."""
    names = (os.environ.get("NASBO_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found is not None, INSTRUCTIONS
    return found


class Browser:
    """One tab of a headless Chromium.

    Attributes:
        requests: addresses that pages have requested since the last ``open``.
        problems: console errors and exceptions since then.
    """

    def __init__(self, profile: Path) -> None:
        read_end, self._to = os.pipe()
        self._from, write_end = os.pipe()
        command = [find_chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(read_end), str(write_end), *command],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        self._buffer, self._number, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._is_loaded = False
        self._attach()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=TIMEOUT_S)
        os.close(self._to)
        os.close(self._from)

    def open(self, url: str, scheme: str = "light", width: int = 1280, height: int = 900) -> None:
        """Load a page with a colour scheme, and wait until it is idle."""
        self.requests, self.problems, self._is_loaded = [], [], False
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=url)
        self.wait_until(lambda: self._is_loaded)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def point_at(self, x: float, y: float) -> None:
        """Move the mouse to a position in the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def busy_s(self) -> float:
        """CPU seconds that the page's main thread has taken: what other processes do is not in it.

        It begins anew with a page of another origin.
        """
        told = {one["name"]: one["value"] for one in self.call("Performance.getMetrics")["metrics"]}
        return float(told["TaskDuration"])

    def press(self, key: str) -> None:
        """Press a key and let it go: ``Tab``, ``Enter``, ``Escape``, or a letter."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **keys, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def wait_until(self, is_done: Any, timeout_s: float = TIMEOUT_S) -> None:
        """Process events until a condition holds."""
        deadline = time.monotonic() + timeout_s
        while not is_done():
            self._receive(deadline)

    def rest(self, seconds: float) -> None:
        """Process events for some time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._buffer.count(b"\0") or select.select([self._from], [], [], left)[0]:
                self._receive(time.monotonic() + TIMEOUT_S)

    def _attach(self) -> None:
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            ready = select.select([self._from], [], [], max(left, 0.0))[0]
            assert ready, f"Chromium did not answer within {TIMEOUT_S:g} s"
            data = os.read(self._from, 1 << 20)
            assert data, f"Chromium ended with code {self._process.wait()}"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, given: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.problems.append(str(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(given["entry"]))
        elif method == "Page.loadEventFired":
            self._is_loaded = True
