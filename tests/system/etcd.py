# SPDX-License-Identifier: GPL-2.0-or-later
"""An etcd cluster on loopback."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

from harness import PATIENCE, Skip, wait_for


def free_ports(n):
    """All are taken at once: the kernel gives a port that was closed again."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def make_certificates(directory):
    """A CA, a certificate of 127.0.0.1 signed by it, and another CA. Returns the paths by name."""
    path = {name: os.path.join(directory, name) for name in ("ca.pem", "ca.key", "own.pem", "own.key", "own.csr", "other.pem", "other.key", "ext")}
    with open(path["ext"], "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for ca in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + ca,
                "-keyout", path[ca + ".key"], "-out", path[ca + ".pem"])
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=pkeyd", "-keyout", path["own.key"],
            "-out", path["own.csr"])
    openssl("x509", "-req", "-in", path["own.csr"], "-CA", path["ca.pem"], "-CAkey", path["ca.key"], "-CAcreateserial", "-days", "2",
            "-extfile", path["ext"], "-out", path["own.pem"])
    return path


class Cluster:
    """Members are numbered from 0. Their data outlives them: a member can be started again. tls: of make_certificates(); then only
    clients with a certificate are let in."""

    def __init__(self, fabric, n=3, tls=None):
        version = shutil.which("etcd") and subprocess.run(["etcd", "--version"], stdout=subprocess.PIPE, text=True).stdout
        if not version or tuple(map(int, re.search(r"etcd Version: (\d+)\.(\d+)", version).groups())) < (3, 4):
            raise Skip("etcd 3.4 or later is not installed (scripts/install-deps --test)")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)  # in a namespace of its own
        self.fabric, self.members, self.tls = fabric, [None] * n, tls
        ports = free_ports(2 * n)
        self.clients = ["http%s://127.0.0.1:%d" % ("s" if tls else "", port) for port in ports[:n]]
        self.peers = ["http://127.0.0.1:%d" % port for port in ports[n:]]
        for i in range(n):
            self.start(i)
        wait_for(lambda: all(self.is_healthy(i) for i in range(n)), "etcd to elect a leader")

    def start(self, i):
        initial = ",".join("m%d=%s" % (k, peer) for k, peer in enumerate(self.peers))
        self.members[i] = subprocess.Popen(
            ["etcd", "--name", "m%d" % i, "--data-dir", self.fabric.path("etcd-%d" % i), "--listen-client-urls", self.clients[i],
             "--advertise-client-urls", self.clients[i], "--listen-peer-urls", self.peers[i], "--initial-advertise-peer-urls",
             self.peers[i], "--initial-cluster", initial, "--heartbeat-interval", "50", "--election-timeout", "500",
             "--log-level", "error", *(["--cert-file", self.tls["own.pem"], "--key-file", self.tls["own.key"], "--trusted-ca-file",
                                        self.tls["ca.pem"], "--client-cert-auth"] if self.tls else [])],
            stdin=subprocess.DEVNULL, stdout=open(self.fabric.path("etcd-%d.err" % i), "a"), stderr=subprocess.STDOUT)
        self.fabric.children.append(self.members[i])

    def kill(self, i):
        self.members[i].kill()
        self.members[i].wait()

    def pause(self, i):
        """It takes connections, and answers nothing."""
        self.members[i].send_signal(signal.SIGSTOP)

    def resume(self, i):
        self.members[i].send_signal(signal.SIGCONT)

    def ctl(self, *arguments, seconds=60):
        """seconds: for the answer of a member."""
        return subprocess.run(["etcdctl", *self.certificates(), "--endpoints", ",".join(self.clients),
                               "--dial-timeout=%ds" % seconds, "--command-timeout=%ds" % seconds, *arguments],
                              env=dict(os.environ, ETCDCTL_API="3"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=PATIENCE + len(self.clients) * seconds)

    def certificates(self):
        return ["--cacert", self.tls["ca.pem"], "--cert", self.tls["own.pem"], "--key", self.tls["own.key"]] if self.tls else []

    def is_healthy(self, i):
        r = subprocess.run(["etcdctl", *self.certificates(), "--endpoints", self.clients[i], "--command-timeout", "1s", "endpoint", "health"],
                           env=dict(os.environ, ETCDCTL_API="3"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return r.returncode == 0

    def leader(self, **how):
        """The number of the member that leads."""
        for line in json.loads(self.ctl("endpoint", "status", "-w", "json", **how).stdout):
            status = line["Status"]
            if status["header"]["member_id"] == status["leader"]:
                return self.clients.index(line["Endpoint"])
        return None

    def holder(self):
        """Who has the lock of pkeyd; "": nobody; None: etcd does not answer."""
        r = self.ctl("get", "/pkeyd/lock", "--print-value-only")
        return r.stdout.strip() if r.returncode == 0 else None

    def settings(self, lease="5s", endpoints=None):
        return "store: etcd\netcd: {endpoints: [%s], lease: %s}\n" % (", ".join(endpoints or self.clients), lease)
