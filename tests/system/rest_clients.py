# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of UFM's REST API, as their projects publish them (scripts/fetch-clients), and requests of others.

PKEYD_CLIENTS is the folder with the repositories. Without it, scenarios with these clients are skipped."""

import contextlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile

from door import Door, basic, hash_of
from harness import PATIENCE, SOURCE, Result, Skip, check, check_equal, read_file

GO_PACKAGES = "/usr/share/gocode/src"
HERE = os.path.join(SOURCE, "tests", "clients")


def repository(name):
    path = os.path.join(os.environ.get("PKEYD_CLIENTS", ""), name)
    if not os.environ.get("PKEYD_CLIENTS") or not os.path.isdir(path):
        raise Skip("PKEYD_CLIENTS names no folder with %s (scripts/fetch-clients)" % name)
    return os.path.abspath(path)


def works(*arguments):
    with contextlib.suppress(OSError):
        return subprocess.run(arguments, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    return False


class SecureDoor(Door):
    """pkeyd-rest with TLS, and one client, which has a password, a token, and the pool `clients`."""

    def __init__(self, fabric, bus):
        self.password, self.token = "apassword", "client.asecret"
        self.basic = basic("client", self.password)
        self.certificate, key = make_certificate(fabric, "door")
        client = "  client: {password: %s, token: %s, pool: clients}\n" % (hash_of(self.password), hash_of(self.token))
        super().__init__(fabric, bus, tls="tls: {certificate: %s, key: %s}\n" % (self.certificate, key), clients=client,
                         more="limits: {requests: 1000}\n")

    def connect(self):
        context = ssl.create_default_context(cafile=self.certificate)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=context)

    def partitions(self, path="", query="?guids_data=true"):
        return self.get("/ufmRest/resources/pkeys" + path + query, headers=self.basic)


def make_certificate(fabric, name):
    """Makes a certificate of 127.0.0.1 that signs itself. Returns its path and that of its key."""
    paths = fabric.path(name + ".crt"), fabric.path(name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
                   check=True, stderr=subprocess.DEVNULL)
    return paths


# --- ib-kubernetes --------------------------------------------------------------------------------------------------------


def go_path(directory):
    """A GOPATH with ib-kubernetes and what its plugin imports. Debian has one version of each package, under its plain path; the
    plugin imports version 11 of caarlos0/env, of which it uses a function that is the same in all versions."""
    for name, to in (("Mellanox/ib-kubernetes", repository("ib-kubernetes")),
                     ("caarlos0/env/v11", os.path.join(GO_PACKAGES, "github.com/caarlos0/env"))):
        path = os.path.join(directory, "src/github.com", name)
        os.makedirs(os.path.dirname(path))
        os.symlink(to, path)
    return directory + ":" + os.path.dirname(GO_PACKAGES)


class IbKubernetes:
    """The UFM plugin of ib-kubernetes, in a program that loads it as the daemon of ib-kubernetes does."""

    _built = None  # the folder with the plugin and the program, which live as long as this process

    def __init__(self, fabric, environment):
        built = self.require()
        self.log = fabric.path("ib-kubernetes.err")
        self.process = subprocess.Popen(
            [os.path.join(built.name, "ib_kubernetes"), os.path.join(built.name, "ufm.so")], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=open(self.log, "a"), env=dict(os.environ, **environment))
        fabric.children.append(self.process)

    @classmethod
    def require(cls):
        """Builds it, once. Returns the folder."""
        if cls._built is None:
            for need in ("rs/zerolog", "caarlos0/env"):
                if not shutil.which("go") or not os.path.isdir(os.path.join(GO_PACKAGES, "github.com", need)):
                    raise Skip("Go or its package %s is not installed (scripts/install-deps --clients)" % need)
            directory = tempfile.TemporaryDirectory(prefix="pkeyd-clients-")
            environment = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOPATH=go_path(os.path.join(directory.name, "go")))
            environment.setdefault("HOME", directory.name)  # for Go's cache
            plugin = "github.com/Mellanox/ib-kubernetes/pkg/sm/plugins/ufm"
            program = os.path.join(HERE, "ib_kubernetes.go")
            for arguments in (["-buildmode=plugin", "-o", "ufm.so", plugin], ["-o", "ib_kubernetes", program]):
                subprocess.run(["go", "build", *arguments], cwd=directory.name, env=environment, check=True)
            cls._built = directory
        return cls._built

    def call(self, *words):
        """Returns the answer: {} or {"guids": ...} or {"error": ...}."""
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line, "the client ended:\n" + read_file(self.log))
        return json.loads(line)

    def add(self, p_key, guids):
        check_equal(self.call("add", hex(p_key), *map(colons, guids)), {}, "AddGuidsToPKey")

    def remove(self, p_key, guids):
        check_equal(self.call("remove", hex(p_key), *map(colons, guids)), {}, "RemoveGuidsFromPKey")

    def list(self):
        """{GUID: P_Key} of all GUIDs that some P_Key has."""
        answer = self.call("list")
        check("error" not in answer, answer)
        return {int(guid.replace(":", ""), 16): int(p_key, 16) for guid, p_key in answer.get("guids", {}).items()}

    def stop(self):
        self.process.stdin.close()
        check_equal(self.process.wait(timeout=PATIENCE), 0, "exit status of the client")


def colons(guid):
    return ":".join(re.findall("..", "%016x" % guid))


# --- UFM's Slurm integration ----------------------------------------------------------------------------------------------


class UfmSlurm:
    """The prolog and epilog of UFM's Slurm integration, installed as its install.sh does, in a folder that they see as /etc/slurm.
    settings: of its ufm_slurm.conf."""

    def __init__(self, fabric, settings):
        integration, python = self.require()
        self.fabric, self.directory = fabric, fabric.path("etc-slurm")
        self.log = fabric.path("ufm_slurm.log")
        os.makedirs(self.directory)
        for name in ("ufm-prolog.sh", "ufm-epilog.sh", "ufm_slurm_prolog.py", "ufm_slurm_epilog.py", "ufm_slurm_base.py",
                     "ufm_slurm_utils.py", "ufm_slurm.conf"):
            shutil.copy(os.path.join(integration, name), self.directory)
        os.makedirs(fabric.path("bin"), exist_ok=True)
        os.symlink(python, fabric.path("bin/python3_path"))  # install.sh replaces this word
        self.configure(dict(settings, log_file_name=self.log))

    @staticmethod
    def require():
        """Returns the folder of the integration, and a Python that has the modules."""
        integration = os.path.join(repository("ufm_sdk_3.0"), "plugins/SLURM-Integration")
        found = [python for python in (sys.executable, "/usr/bin/python3") if works(python, "-c", "import kerberos, requests")]
        if not found:
            raise Skip("Python's modules kerberos and requests are not installed (scripts/install-deps --clients)")
        if not os.path.isdir("/etc/slurm"):
            raise Skip("slurmctld is not installed (scripts/install-deps --test)")
        if not works("unshare", "--mount", "true"):
            raise Skip("a mount namespace is not permitted")
        return integration, found[0]

    def configure(self, settings):
        """Sets values in ufm_slurm.conf; keys that it does not have are added."""
        path = os.path.join(self.directory, "ufm_slurm.conf")
        text = read_file(path) + "\n"
        for key, value in settings.items():
            text = re.sub(r"(?m)^%s=.*\n" % key, "", text) + "%s=%s\n" % (key, value)
        with open(path, "w") as f:
            f.write(text)

    def _run(self, script, job, nodes):
        arguments = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/slurm && exec "$@"', self.directory,
                     "/etc/slurm/" + script]
        # slurmctld passes on nothing of its own
        environment = {"PATH": self.fabric.path("bin") + ":" + os.environ["PATH"], "SLURM_JOBID": str(job),
                       "SLURM_JOB_NODELIST": nodes}
        r = subprocess.run(arguments, cwd="/", env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=PATIENCE)
        return Result(arguments, r.returncode, r.stdout, r.stderr)

    def prolog(self, job, nodes):
        return self._run("ufm-prolog.sh", job, nodes)

    def epilog(self, job, nodes):
        return self._run("ufm-epilog.sh", job, nodes)


# --- recorded requests ----------------------------------------------------------------------------------------------------


def recorded(name, guids):
    """A client of tests/clients/: its "source", where its project has the requests; its headers; and its requests, each with the
    "answer" and the "members" of all partitions that it leads to, {P_Key: {host: [membership, index 0]}}.

    guids: {host: (port GUID, node GUID)}, which replace {host} and {host:node} in the text."""
    text = read_file(os.path.join(HERE, name))
    for host, (port, node) in guids.items():
        text = text.replace("{%s}" % host, "%016x" % port).replace("{%s:node}" % host, "%016x" % node)
    return json.loads(text)
