"""A headless Chromium, driven through chromedriver's own protocol (JSON over HTTP), so that no
further package is needed."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# how the WebDriver standard marks a reference to an element
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Enter": "\ue007",
}


class Browser:
    """One window."""

    def __init__(self, address: str, *, options: dict[str, Any]) -> None:
        self.address = address
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self.address += f"/session/{session['sessionId']}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                request, timeout=300
            ) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def go(self, fragment: str) -> None:
        """Change the end of the address, and give the page time to follow."""
        self.run(
            "location.hash = arguments[0]; return new Promise((done) => setTimeout(done, 50))",
            fragment,
        )

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def find(self, selector: str) -> str:
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector: str) -> None:
        """As a user does: it fails where something else lies over the element."""
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def press(self, selector: str, key: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": KEYS[key]})

    def resize(self, width: int, height: int) -> None:
        """The size of the page itself, also below the least width of a window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call(
            "POST",
            "/goog/cdp/execute",
            {"cmd": "Emulation.setDeviceMetricsOverride", "params": size},
        )

    def console(self, *levels: str) -> list[str]:
        """What the console said since it was last asked, errors of the security policy included."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if not levels or entry["level"] in levels]

    def requests(self) -> list[str]:
        """The addresses that were asked for since this was last called."""
        log = self.call("POST", "/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser until the block ends; what chromedriver prints goes into the folder. The test is
    skipped where there is none."""
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("no Chromium with chromedriver on the PATH")
    log = folder / "chromedriver.log"
    with open(log, "wb") as stream:
        process = subprocess.Popen(
            [driver, "--port=0"], stdout=stream, stderr=subprocess.STDOUT, env=os.environ
        )
    try:
        port = _port(log, process)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options = {"goog:chromeOptions": {"binary": program, "args": flags}}
        options |= {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        browser = Browser(f"http://127.0.0.1:{port}", options=options)
        yield browser
        browser.call("DELETE", "")
    finally:
        process.terminate()
        process.wait()


def _port(log: Path, process: subprocess.Popen) -> int:
    """The port that chromedriver chose, from what it prints."""
    for _ in range(3000):
        if found := re.search(r"started successfully on port (\d+)", log.read_text()):
            return int(found[1])
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"chromedriver did not start: {log.read_text()}")
