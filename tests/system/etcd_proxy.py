# SPDX-License-Identifier: GPL-2.0-or-later
"""Proxies between a head node and the members of an etcd cluster: they cut it off in several ways, and note when etcd gave it the
lock of pkeyd."""

import base64
import json
import re
import socket
import threading
import time

OPEN = "open"      # everything passes
CLOSED = "closed"  # connections are reset, new ones too
HELD = "held"      # nothing passes until the proxy is open again; then all of it arrives, late
DEAF = "deaf"      # requests pass, answers are lost
LOCK = base64.b64encode(b"/pkeyd/lock").decode()


def boot_time():
    """The clock of the lease of pkeyd, and of the traces: CLOCK_BOOTTIME in ns."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def body_of(message):
    """The JSON object of a request or an answer; {}: there is none, or not all of it yet."""
    try:
        return json.loads(message.partition(b"\r\n\r\n")[2])
    except ValueError:
        return {}


def lock_given(request, answer):
    """The process to which etcd gave the lock in this exchange, as pkeyd names it; None: to none."""
    request, answer = body_of(request), body_of(answer)
    put = (request.get("success") or [{}])[0].get("request_put", {})
    if put.get("key") != LOCK or not answer:
        return None
    if not answer.get("succeeded"):
        # it has the lock already, if an earlier try of this request arrived
        held = answer.get("responses", [{}])[0].get("response_range", {}).get("kvs", [{}])[0]
        if held.get("lease") != put["lease"]:
            return None
    return base64.b64decode(put["value"]).decode()


class Tenures:
    """Who got the lock, and when. An entry is made after etcd gave the lock and before the process can know it. So at the time of
    the entry every other process has lost the lock, and this one has not written yet."""

    def __init__(self):
        self.entries = []  # (CLOCK_BOOTTIME in ns, PID; None: nobody has it)
        self.lock = threading.Lock()

    def add(self, holder):
        with self.lock:
            self.entries.append((boot_time(), int(re.search(r"\(process (\d+)\)", holder).group(1))))

    def end(self, pid):
        """The lease of this process has ended. Another one may have got the lock already."""
        with self.lock:
            if self.last() == pid:
                self.entries.append((boot_time(), None))

    def last(self):
        return self.entries[-1][1] if self.entries else None


class Connection:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.request = self.answer = b""
        self.has_lost = False  # part of an answer
        for pump in (self._pass_requests, self._pass_answers):
            threading.Thread(target=self._run, args=(pump,), daemon=True).start()

    def _run(self, pump):
        try:
            pump()
        except OSError:
            pass
        self.close()

    def _pass_requests(self):
        while data := self.client.recv(65536):
            self.proxy.wait_passable()
            if self.answer:
                self.request = self.answer = b""
            self.request += data
            self.server.sendall(data)

    def _pass_answers(self):
        while data := self.server.recv(65536):
            self.answer += data
            holder = lock_given(self.request, self.answer)
            if holder:
                self.proxy.tenures.add(holder)
            self.proxy.wait_passable()
            if self.proxy.mode == DEAF:
                self.has_lost = True
            else:
                self.client.sendall(data)

    def close(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.proxy.connections.discard(self)


class Proxy:
    """To one member, whose URL is http://127.0.0.1:PORT."""

    def __init__(self, url, tenures):
        self.target, self.tenures = ("127.0.0.1", int(url.rpartition(":")[2])), tenures
        self.mode, self.changed = OPEN, threading.Condition()
        self.connections = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = None if self.mode == CLOSED else socket.create_connection(self.target)
            except OSError:  # the member does not run
                server = None
            if server:
                self.connections.add(Connection(self, client, server))
            else:
                client.close()

    def wait_passable(self):
        with self.changed:
            self.changed.wait_for(lambda: self.mode != HELD)

    def set(self, mode):
        with self.changed:
            self.mode = mode
            self.changed.notify_all()
        for connection in list(self.connections):
            if mode == CLOSED or (mode == OPEN and connection.has_lost):
                connection.close()


class Cut:
    """The proxies of one head node, which it has instead of the members."""

    def __init__(self, cluster, tenures):
        self.proxies = [Proxy(url, tenures) for url in cluster.clients]
        self.clients = [p.url for p in self.proxies]

    def set(self, mode):
        for proxy in self.proxies:
            proxy.set(mode)
