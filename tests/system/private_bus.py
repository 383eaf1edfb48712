# SPDX-License-Identifier: GPL-2.0-or-later
"""A private bus for a scenario, which the daemon uses as the system bus."""

import json
import os
import shutil
import socket
import subprocess

from harness import PATIENCE, SOURCE, Skip, check_equal, end, read_file, wait_for

# As strict as a system bus: calls that no policy allows are refused.
CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
  </policy>
  <policy user="root">
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>
  %s
</busconfig>
"""


def as_user(user):
    """The beginning of a command that this user runs. None: root."""
    return ["setpriv", "--reuid", user, "--regid", "65534", "--clear-groups"] if user else []


class Bus:
    """A bus in the directory of the fabric."""

    def __init__(self, fabric, policy=None, name="bus"):
        self.fabric, self.process = fabric, None
        self.socket = fabric.path(name)
        self.address = "unix:path=" + self.socket
        os.chmod(fabric.dir, 0o755)  # other users can access the socket
        shipped = "<include>%s</include>" % os.path.join(SOURCE, "systemd", "org.pkeyd1.conf")
        self.config = fabric.write(name + ".conf", CONFIG % (self.socket, policy or shipped))
        os.chmod(self.config, 0o644)
        self.start()

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.process = subprocess.Popen(["dbus-daemon", "--config-file=" + self.config, "--nofork"],
                                        stdin=subprocess.DEVNULL, stderr=open(self.fabric.path("bus.err"), "a"))
        self.fabric.children.append(self.process)
        wait_for(self.listens, lambda: "dbus-daemon to listen: " + read_file(self.fabric.path("bus.err")))

    def listens(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def stop(self):
        end(self.process)

    def environment(self):
        return {"DBUS_SYSTEM_BUS_ADDRESS": self.address}

    def busctl(self, *arguments, user=None):
        """Runs busctl."""
        r = subprocess.run([*as_user(user), "busctl", "--address=" + self.address, *arguments], text=True, cwd="/",
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        return r

    def call(self, member, *arguments, **how):
        r = self.busctl("--json=short", "--timeout=%d" % PATIENCE, "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", member,
                        *arguments, **how)
        check_equal(r.returncode, 0, "busctl call %s: %s" % (member, r.stderr))
        return json.loads(r.stdout)["data"]

    def start_call(self, member):
        return subprocess.Popen(["busctl", "--address=" + self.address, "--json=short", "--timeout=%d" % PATIENCE, "call",
                                 "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", member], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def property(self, name, **how):
        r = self.busctl("--json=short", "get-property", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", name, **how)
        check_equal(r.returncode, 0, "get-property %s: %s" % (name, r.stderr))
        return json.loads(r.stdout)["data"]

    def wait_name(self):
        wait_for(lambda: "org.pkeyd1" in self.busctl("list", "--acquired", "--no-legend").stdout, "pkeyd to come on the bus")

    def monitor(self):
        """Starts to record all messages of pkeyd in a file, one JSON object per line."""
        path = self.fabric.path("monitor-%d.json" % len(self.fabric.children))
        child = subprocess.Popen(["busctl", "--address=" + self.address, "--json=short", "monitor", "org.pkeyd1"],
                                 stdin=subprocess.DEVNULL, stdout=open(path, "w"), stderr=open(path + ".err", "w"))
        self.fabric.children.append(child)
        wait_for(lambda: self.is_recorded(path), lambda: "busctl monitor: " + read_file(path + ".err"))
        return path

    def is_recorded(self, path):
        """Sends a message to pkeyd, which the monitor records once it is one. Not all versions of busctl print that they are."""
        self.busctl("--expect-reply=no", "call", "org.pkeyd1", "/org/pkeyd1", "org.freedesktop.DBus.Peer", "Ping")
        return os.path.getsize(path) > 0

    def pkeyctl_as(self, user, *arguments):
        """Runs pkeyctl as this user. Without the environment of the fabric, which names files of the source tree."""
        return subprocess.run([*as_user(user), self.fabric.copy_program("pkeyctl"), *arguments], text=True, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE,
                              env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0", **self.environment()))


def signals(path, member):
    found = []
    for line in read_file(path).splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue  # half a line so far
        if message.get("type") == "signal" and message.get("member") == member:
            found.append(message["payload"]["data"])
    return found


def require():
    for tool in ("dbus-daemon", "busctl", "setpriv"):
        if not shutil.which(tool):
            raise Skip("%s is not installed (scripts/install-deps --test)" % tool)
    if os.geteuid() != 0:
        raise Skip("a bus policy for root needs root")
