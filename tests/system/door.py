# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd-rest for a scenario, with clients, and requests to it."""

import base64
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess

from harness import PATIENCE, check, check_equal, program, read_file, wait_for

PASSWORD, TOKEN = "s3cret:with:colon", "slurm.0123456789abcdef"


def hash_of(secret):
    """By libxcrypt, with the least cost."""
    crypt = ctypes.CDLL("libcrypt.so.1")
    crypt.crypt_gensalt.restype = crypt.crypt.restype = ctypes.c_char_p
    return crypt.crypt(secret.encode(), crypt.crypt_gensalt(b"$y$", 1, None, 0)).decode()


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (name, password)).encode()).decode()}


KUBE, SLURM = basic("kube", PASSWORD), {"Authorization": "Basic " + TOKEN}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def expect(self, status, words=""):
        check(self.status == status and words in self.body.decode(errors="replace"), "wanted", status, repr(words), "but:", self)
        return self

    def __str__(self):
        return "%s %s %.1000r" % (self.status, dict(self.headers), self.body)


def loopback():
    """In the network namespace of the scenario; in that of the host it is up."""
    subprocess.run(["ip", "link", "set", "lo", "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Door:
    """pkeyd-rest on a port of 127.0.0.1."""

    def __init__(self, fabric, bus=None, more="", files=None, tls="", clients="", arguments=(), listen="127.0.0.1:{0}"):
        loopback()
        self.fabric, self.port, self.tls, self.bus = fabric, free_port(), tls, bus
        self.clients, self.listen = clients, listen  # with {0} for the port
        self.log = fabric.path("door-%d.err" % len(fabric.children))
        self.configure(more)
        environment = bus.environment() if bus else {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=" + fabric.path("no-bus")}
        limit = ["prlimit", "--nofile=%d" % files] if files else []
        self.process = fabric.start([*limit, program("pkeyd-rest"), "--config", self.file, *arguments], os.path.basename(self.log),
                                    **environment)
        self.wait_text(": serving")

    def configure(self, more="", clients=None):
        """Writes rest.yaml."""
        clients = clients if clients is not None else self.clients
        self.file = self.fabric.write("rest.yaml", "listen: %s\n%sclients:\n  kube: {password: %s, pool: tenants}\n"
                                      "  slurm: {token: %s, pool: jobs}\n%s%s" %
                                      (self.listen.format(self.port), self.tls, hash_of(PASSWORD), hash_of(TOKEN), clients, more))
        os.chmod(self.file, 0o640)

    def text(self):
        return read_file(self.log)

    def wait_text(self, words, after=0):
        def said():
            check(self.process.poll() is None, "pkeyd-rest ended with", self.process.poll(), "\n" + self.text())
            return words in self.text()[after:]
        wait_for(said, lambda: "pkeyd-rest to log %r; its log:\n%s" % (words, self.text()[after:]))

    def reload(self, words):
        after = len(self.text())
        self.process.send_signal(signal.SIGHUP)
        self.wait_text(words, after)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=KUBE, connection=None):
        c = connection or self.connect()
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        c.request(method, path, body, headers)
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        if not connection:
            c.close()
        if r.status != 100:
            check(r.headers["Content-Type"] == "application/json; charset=utf-8" or not answer.body.startswith(b"{"), answer)
        return answer

    def get(self, path, **how):
        return self.request("GET", path, **how).expect(200).json()

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def curl(self, path, *arguments, scheme="http"):
        """(status, body) by curl."""
        r = subprocess.run(["curl", "-s", "-m", str(PATIENCE), "-w", "\n%{http_code}", *arguments,
                            "%s://localhost:%d%s" % (scheme, self.port, path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        body, _, status = r.stdout.rpartition("\n")
        return int(status), body

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check_equal(self.process.wait(timeout=PATIENCE), 0, "exit status of pkeyd-rest; it said:\n" + self.text())


def descriptors(process):
    return len(os.listdir("/proc/%d/fd" % process.pid))
