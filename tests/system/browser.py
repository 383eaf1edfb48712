# SPDX-License-Identifier: GPL-2.0-or-later
"""A page in headless Chromium, over the DevTools protocol on a pipe."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from harness import PATIENCE, Skip, check

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """`with Browser() as b: b.open(path); b.run("document.title")`. Without Chromium the test is skipped."""

    def __init__(self, *options):
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if not program:
            raise Skip("chromium is not installed (scripts/install-deps --browser)")
        self.arguments = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                          "--disable-background-networking", "--remote-debugging-pipe", *options, "about:blank"]

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="pkeyd-browser-")
        to_child, self.to = os.pipe()
        self.come, from_child = os.pipe()

        def place():
            """The browser reads from 3 and writes to 4."""
            high = [os.dup(fd) for fd in (to_child, from_child)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self.process = subprocess.Popen(self.arguments + ["--user-data-dir=" + self.directory], preexec_fn=place, close_fds=False,
                                        env=dict(environment, HOME=self.directory), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.bytes, self.n, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *what):
        for fd in (self.to, self.come):
            os.close(fd)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _receive(self, end):
        while b"\0" not in self.bytes:
            check(select.select([self.come], [], [], max(0, end - time.monotonic()))[0], "timeout: the browser does not answer")
            more = os.read(self.come, 1 << 20)
            check(more, "the browser ended")
            self.bytes += more
        message, _, self.bytes = self.bytes.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.n += 1
        message = {"id": self.n, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.to, rest):]
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(end)
            if answer.get("id") == self.n:
                check("error" not in answer, method, answer.get("error"))
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        end = time.monotonic() + PATIENCE
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self._receive(end))

    def open(self, path, fragment=""):
        """Loads a file, and returns when it has been loaded."""
        for url in ("about:blank", "file://%s%s" % (path, fragment)):  # another fragment alone would load nothing
            self.events = []
            self.call("Page.navigate", url=url)
            self.wait("Page.loadEventFired")

    def run(self, expression):
        """The value of an expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        check("exceptionDetails" not in answer, expression, answer.get("exceptionDetails"))
        return answer["result"].get("value")

    def press(self, key, **more):
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"text": {"Enter": "\r"}.get(key, key)} if key in ("Enter", " ") else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code={" ": "Space"}.get(key, key),
                      windowsVirtualKeyCode=codes[key], **(text if kind == "keyDown" else {}), **more)

    def complaints(self):
        """What the browser has to say about the page: errors of scripts, what its policy stopped, requests but the first."""
        out = [e["params"] for e in self.events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded",
                                                                       "Runtime.consoleAPICalled")]
        requests = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return out + requests[1:]
