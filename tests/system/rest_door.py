# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd-rest for a scenario, with one client that has a password and a token."""

import base64
import ctypes
import ctypes.util
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess

import harness
from harness import PATIENCE, Skip, check, check_equal, program, read_file, wait_for

CONF = """listen: ['127.0.0.1:{port}']
tls: {{certificate: {certificate}, key: {key}}}
clients:
  client:
    password: {password}
    token: {token}
    pool: clients
limits: {{requests: 1000}}
"""


def hashed(secret):
    crypt = ctypes.CDLL(ctypes.util.find_library("crypt")).crypt
    crypt.restype = ctypes.c_char_p
    return crypt(secret.encode(), b"$y$j75$aSaltOfATest$").decode()


def certificate(fabric, name):
    """Makes a certificate of 127.0.0.1 that signs itself. Returns its path and that of its key."""
    if not shutil.which("openssl"):
        raise Skip("openssl is not installed (scripts/install-deps --test)")
    paths = fabric.path(name + ".crt"), fabric.path(name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext",
                    "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]], check=True, stderr=subprocess.DEVNULL)
    return paths


class Door:
    """pkeyd-rest at a port of 127.0.0.1, with TLS."""

    def __init__(self, fabric, bus):
        self.fabric, self.password, self.token = fabric, "a password", "client.asecret"
        self.basic = base64.b64encode(("client:" + self.password).encode()).decode()
        if os.environ.get("IBSIM_SOCKNAME") == "sim":  # a network namespace of its own
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.certificate_path, key = certificate(fabric, "door")
        self.certificate, self.other_certificate = read_file(self.certificate_path), certificate(fabric, "other")[0]
        conf = fabric.write("rest.yaml", CONF.format(port=self.port, certificate=self.certificate_path, key=key,
                                                     password=hashed(self.password), token=hashed(self.token)))
        os.chmod(conf, 0o600)
        self.process = fabric.start([program("pkeyd-rest"), "--config", conf], "pkeyd-rest.err", **bus.environment(), LD_PRELOAD="")
        wait_for(self.answers, "pkeyd-rest to answer; it said: " + self.text())

    def text(self):
        return read_file(self.fabric.path("pkeyd-rest.err"))

    def answers(self):
        check(self.process.poll() is None, "pkeyd-rest ended:\n" + self.text())
        try:
            return self.request("GET", "/ufmRest/app/ufm_version", {"Authorization": "Basic " + self.basic})[0] == 200
        except ConnectionError:
            return False

    def request(self, method, target, headers, body=None):
        """Returns the status and the answer."""
        context = ssl.create_default_context(cafile=self.certificate_path)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=context)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, target):
        status, answer = self.request("GET", target, {"Authorization": "Basic " + self.basic})
        check_equal(status, 200, "status of GET %s: %s" % (target, answer))
        return answer

    def stop(self):
        self.process.send_signal(harness.signal.SIGTERM)
        check_equal(self.process.wait(timeout=PATIENCE), 0, "exit status of pkeyd-rest after SIGTERM; it said:\n" + self.text())
