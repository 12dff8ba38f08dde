# chromium.py: a browser without a window, for tests of pages.
# SPDX-License-Identifier: Apache-2.0
import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import time


def until(what, seconds=90):
    """What `what` gives once it is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


class Browser:
    """Chromium without a window, driven over its pipe."""

    def __init__(self, folder):
        self._to, ours = os.pipe()
        theirs, self._from = os.pipe()
        words = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 f"--user-data-dir={folder}", "--window-size=1200,1600", "about:blank"]

        def pass_pipes():
            a, b = os.dup(self._to), os.dup(self._from)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(words, preexec_fn=pass_pipes, close_fds=False, start_new_session=True,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(self._to)
        os.close(self._from)
        self._write, self._read, self._number, self._text = ours, theirs, 0, b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]  # the first one may be no page
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _ask(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            while b"\0" in self._text:
                one, self._text = self._text.split(b"\0", 1)
                answer = json.loads(one)
                if answer.get("id") == self._number:
                    assert "error" not in answer, answer
                    return answer["result"]
            if select.select([self._read], [], [], 1)[0]:
                self._text += os.read(self._read, 1 << 20)
        raise AssertionError(f"chromium did not answer {method}")

    def ask(self, method, **parameters):
        return self._ask(method, self._session, **parameters)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    def open(self, page):
        """A file, once it is drawn."""
        self.ask("Page.enable")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)
        self.ask("Page.navigate", url=page.as_uri())
        until(lambda: self.value("document.readyState") == "complete")

    def picture(self, path, scheme, width=900, height_max=1400):
        """Of the page, or its upper part, in the scheme "light" or "dark"; gives the background's colour."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        height = min(self.value("document.documentElement.scrollHeight"), height_max)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
        return self.value("getComputedStyle(document.body).backgroundColor")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        os.close(self._write)
        os.close(self._read)
