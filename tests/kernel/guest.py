# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenarios in the guest of the kernel lab. Each writes its verdict to /lab/results/verdict.

A scenario is a function; it passes if it returns. They run in this order, from a kernel without RDMA modules to a fabric with
OpenSM and pkeyd as a service.
"""

import base64
import ctypes
import glob
import grp
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import traceback

SCENARIOS = ("no-modules", "roce-only", "port-down", "no-permission", "service", "unprivileged", "second-witness", "bad-p-keys",
             "metrics-file", "bus", "rest-door", "violation", "report", "report-taken", "path-records", "opensm-service", "behind-its-back",
             "local-verify", "link-lost", "unplugged", "opensm-killed", "head-pair", "fabrics", "shared-store", "no-umad")

OF_THE_SANDBOX = ("service", "unprivileged")  # they check what --trace changes

LAB = "/lab"
RESULTS = LAB + "/results"
POLICY, SETTINGS = "/etc/pkeyd/partitions.yaml", "/etc/pkeyd/pkeyd.yaml"
PARTITIONS = "/etc/opensm/partitions.conf"  # OpenSM's partition file, usually absent
WRITTEN = "/etc/opensm/pkeyd/partitions.conf"  # where it is if pkeyd writes it; then PARTITIONS is a link
FOR_PKEYD = "/etc/pkeyd"  # its files are for root and the group pkeyd
METRICS = "/var/lib/prometheus/node-exporter/pkeyd.prom"
DEVICES = ("lab0", "lab1", "lab2")
GUID = 0x0002C90300800000
PATIENCE = 60  # seconds to wait for anything: the machine may be emulated, on a busy host

EVENTS = {}  # name in events.def -> MESSAGE_ID


class Failed(Exception):
    pass


def check(condition, text, *detail):
    if not condition:
        raise Failed(" ".join([text] + [str(d) for d in detail]))


def say(text):
    print("[%8.2f] %s" % (time.monotonic(), text), flush=True)


def run(*argv, timeout=180, **more):
    """Runs a program; returns its exit status and its output."""
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=timeout, errors="replace", **more)
    say("%s -> %d\n%s" % (" ".join(argv), p.returncode, p.stdout))
    return p.returncode, p.stdout


def must(*argv, **more):
    status, text = run(*argv, **more)
    check(status == 0, "%s ended with %d:" % (" ".join(argv), status), text)
    return text


def wait_for(what, timeout, condition):
    """Waits until condition() returns a true value, and returns it."""
    end = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < end, "waited %d s in vain: %s" % (timeout, what))
        time.sleep(0.05)


def read(path, default=""):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return default


def write(path, text):
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    if folder == FOR_PKEYD:
        group = grp.getgrnam("pkeyd").gr_gid
        for name, mode in ((folder, 0o751), (path, 0o640)):
            os.chown(name, 0, group)
            os.chmod(name, mode)


def as_nobody(*argv):
    return run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *argv)


# --- the fabric -------------------------------------------------------------------------------------------------------


class Fabric:
    """ibsim with one switch; this host's three HCAs and another host on it; OpenSM on the first."""

    def __init__(self):
        self.sim = None
        self.opensm = None
        self.bridges = {}

    def start_sim(self):
        if self.sim:
            return
        lines = ["switchguid=0x0002c90300100000", 'Switch 8 "leaf1"\t# "MF0;leaf1:MQM8700/U1"']
        names = ["labhost %s" % d for d in DEVICES] + ["other mlx5_0"]
        lines += ['[%d]\t"H%d"[1]' % (i + 1, i) for i in range(len(names))]
        for i, name in enumerate(names):
            lines += ["", "caguid=0x%016x" % (GUID + 16 * i), 'Hca 1 "H%d"\t# "%s"' % (i, name), '[1]\t"leaf1"[%d]' % (i + 1)]
        write("/tmp/net", "\n".join(lines) + "\n")
        self.sim = subprocess.Popen(["ibsim", "-s", "/tmp/net"], stdin=subprocess.PIPE,
                                    stdout=open("/tmp/ibsim.log", "w"), stderr=subprocess.STDOUT)
        wait_for("ibsim", PATIENCE, lambda: "simulator ready" in read("/tmp/ibsim.log"))

    def console(self, line):
        self.sim.stdin.write((line + "\n").encode())
        self.sim.stdin.flush()

    def plug(self, *devices):
        for device in devices:
            if device not in self.bridges:
                self.bridges[device] = subprocess.Popen([LAB + "/bridge", "H%d" % DEVICES.index(device), device],
                                                        stdin=subprocess.PIPE, stdout=open(bridge_log(device), "a"),
                                                        stderr=subprocess.STDOUT)
        for device in devices:
            wait_for("device %s" % device, PATIENCE, lambda: os.path.exists("/sys/class/infiniband/%s/ports/1/state" % device))
            wait_for("uverbs and umad of %s" % device, PATIENCE, lambda: device in "".join(
                read(p) for p in device_files()))
        run("udevadm", "settle")

    def unplug(self, device):
        bridge = self.bridges.pop(device)
        bridge.terminate()
        check(bridge.wait(PATIENCE) == 0, "the bridge of %s ended with %s" % (device, bridge.returncode))
        check(not os.path.exists("/sys/class/infiniband/" + device), device, "is still there")

    def receive(self, device, qp, lid_of_sender, mad):
        """Delivers a MAD to this port, from the port with that LID."""
        self.bridges[device].stdin.write(b"%d %d %s\n" % (qp, lid_of_sender, mad.hex().encode()))
        self.bridges[device].stdin.flush()

    def start_opensm(self, hca=0):
        if self.opensm:
            return
        ups = self.sweeps()
        self.opensm = subprocess.Popen(["opensm", "-g", "0x%x" % (GUID + 16 * hca + 1), "-f", "/tmp/opensm.log",
                                        "-P", PARTITIONS, "-d2"],
                                       stdout=open("/tmp/opensm.out", "a"), stderr=subprocess.STDOUT)
        for device in self.bridges:
            wait_for("%s ACTIVE" % device, PATIENCE, lambda: port_state(device) == "ACTIVE")
        wait_for("its first sweep", PATIENCE, lambda: self.sweeps() > ups)

    def sweeps(self):
        return read("/tmp/opensm.log").count("SUBNET UP")

    def sweep(self):
        """Starts a heavy sweep and waits until it ends. Twice, because the first sweep that ends may have begun before."""
        for _ in range(2):
            n = self.sweeps()
            self.opensm.send_signal(signal.SIGHUP)
            wait_for("a heavy sweep", PATIENCE, lambda: self.sweeps() > n)

    def kill_opensm(self):
        self.opensm.kill()
        self.opensm.wait()
        self.opensm = None

    def up(self):
        load("ib_umad", "ib_uverbs")
        self.start_sim()
        self.plug(*DEVICES)
        self.start_opensm()


fabric = Fabric()


def bridge_log(device):
    return "/tmp/bridge-%s.log" % device


def device_files():
    for kind, prefix in (("infiniband_mad", "umad"), ("infiniband_verbs", "uverbs")):
        folder = "/sys/class/" + kind
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith(prefix):
                yield "%s/%s/ibdev" % (folder, name)


def load(*modules):
    must("modprobe", "-a", "ib_core", *modules)
    if not os.path.exists("/dev/labhca"):
        must("insmod", LAB + "/labhca.ko")
        wait_for("/dev/labhca", PATIENCE, lambda: os.path.exists("/dev/labhca"))


def port_state(device):
    return read("/sys/class/infiniband/%s/ports/1/state" % device).strip().split(" ")[-1]


def lid(device):
    return int(read("/sys/class/infiniband/%s/ports/1/lid" % device), 16)


def kernel_keys(device):
    """{index: P_Key} through libibverbs, read by an independent program."""
    p = subprocess.run([LAB + "/p_keys", device], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode != 0:
        return {}
    return {int(index): int(key, 16) for index, key in (word.split("=") for word in p.stdout.split())}


def set_key(device, index, key):
    """Writes a table with another program, through lab0, by LID."""
    set_keys(device, {index: key})


def set_keys(device, keys):
    must(LAB + "/setpkey", str(lid(device)), *["%d=0x%04x" % (index, key) for index, key in keys.items()])


# --- pkeyd ------------------------------------------------------------------------------------------------------------

FIRST = """version: 1
partitions:
  default:
    pkey: 0x7fff
    members:
      ALL: limited
      SELF: full
  lustre:
    pkey: 0x0010
    members:
      labhost: full
      other: limited
  tenant:
    pkey: 0x0011
    members:
      labhost/lab1: limited
"""
FIRST_KEYS = {"lab0": {0xFFFF, 0x8010}, "lab1": {0x7FFF, 0x8010, 0x0011}, "lab2": {0x7FFF, 0x8010}}
SECOND = FIRST.replace("labhost/lab1: limited", "labhost/lab1: full\n      labhost/lab2: both")
SECOND_KEYS = {"lab0": {0xFFFF, 0x8010}, "lab1": {0x7FFF, 0x8010, 0x8011}, "lab2": {0x7FFF, 0x8010, 0x8011, 0x0011}}

# A long interval, so that no periodic sweep affects the results.
NO_SWEEPS = "ca: lab0\nsweep_interval: 1h\nbeside_opensm: true\n"


def holds(keys):
    found = {device: sorted(kernel_keys(device).values()) for device in keys}
    return all(found[device] == sorted(keys[device]) for device in keys)


def in_hex(keys):
    return {device: [hex(k) for k in sorted(keys[device])] for device in keys}


def in_force(keys, timeout=PATIENCE):
    try:
        wait_for("the kernel's tables %s" % in_hex(keys), timeout, lambda: holds(keys))
    except Failed as e:
        raise Failed("%s, not %s" % (e, in_hex({device: kernel_keys(device).values() for device in keys})))


def property_of_unit(name, unit="pkeyd"):
    return must("systemctl", "show", unit, "-p", name, "--value").strip()


def entries(event, since):
    """Journal entries of an event (its name in events.def), newer than `since`, seconds of the monotonic clock."""
    p = subprocess.run(["journalctl", "-b", "-o", "json", "--no-pager", "MESSAGE_ID=" + EVENTS[event]],
                       stdout=subprocess.PIPE, text=True)
    found = [json.loads(line) for line in p.stdout.splitlines()]
    return [e for e in found if int(e["_SOURCE_MONOTONIC_TIMESTAMP" if "_SOURCE_MONOTONIC_TIMESTAMP" in e else
                                      "__MONOTONIC_TIMESTAMP"]) >= since * 1e6]


def wait_entry(event, since, timeout=PATIENCE):
    return wait_for("journal entry %s" % event, timeout, lambda: entries(event, since))[-1]


def start_service(policy=FIRST, keys=FIRST_KEYS, settings="", first_settings=NO_SWEEPS):
    fabric.up()
    write(POLICY, policy)
    write(SETTINGS, first_settings + settings)
    began = time.monotonic()
    if property_of_unit("ActiveState") not in ("active", "reloading"):
        must("systemctl", "start", "pkeyd")
    else:
        must("systemctl", "reload", "pkeyd")
    in_force(keys)
    wait_for("the service to be active", PATIENCE, lambda: property_of_unit("ActiveState") == "active")
    return began


def verify(*options):
    status, text = run("pkeyctl", "verify", "--config", SETTINGS, "--json", *options)
    lines = [line for line in text.splitlines() if line.startswith("{")]
    check(len(lines) == 1, "verify --json said", text)
    return status, json.loads(lines[0])


# --- (e) hosts that lack something ------------------------------------------------------------------------------------


def refusal(*argv, status=1, text=None):
    """Checks that the program refuses, with this exit status and a helpful message."""
    got, said = run(*argv)
    check(got == status, "%s ended with %d, not %d:" % (" ".join(argv), got, status), said)
    check(re.search(text, said), "'%s' is not in what %s said:" % (text, argv[0]), said)


def no_modules():
    write(POLICY, FIRST)
    check(not os.path.exists("/sys/class/infiniband"), "RDMA modules are loaded already")
    refusal("pkeyd", text="not found on this host")
    refusal("pkeyctl", "plan", text="no InfiniBand device")
    refusal("pkeyctl", "verify", "--local", text="ib_uverbs")


def roce_only():
    load("ib_umad", "ib_uverbs", "rdma_rxe")
    must("ip", "link", "add", "dummy0", "type", "dummy")
    must("ip", "link", "set", "dummy0", "up")
    must("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "dummy0")
    try:
        refusal("pkeyd", text="not found on this host")
        refusal("pkeyctl", "plan", text="no InfiniBand device")
        refusal("pkeyctl", "verify", "--local", text="link layer")
    finally:
        run("rdma", "link", "delete", "rxe0")
        run("ip", "link", "delete", "dummy0")


def port_down():
    load("ib_umad", "ib_uverbs")
    fabric.start_sim()
    fabric.plug("lab0")
    fabric.console('Unlink "H0"[1]')
    wait_for("lab0 DOWN", PATIENCE, lambda: port_state("lab0") == "DOWN")
    refusal("pkeyctl", "-C", "lab0", "plan", text="down")
    refusal("pkeyctl", "verify", "--local", text="down")
    fabric.console('ReLink "H0"[1]')
    wait_for("lab0 INIT", PATIENCE, lambda: port_state("lab0") == "INIT")
    refusal("pkeyctl", "verify", "--local", status=3, text="subnet manager")


def no_permission():
    fabric.up()
    write(POLICY, FIRST)
    os.chmod(POLICY, 0o644)
    status, said = as_nobody("pkeyctl", "plan")
    check(status == 1 and "/dev/infiniband/umad" in said, "pkeyctl as nobody: %d" % status, said)
    status, said = as_nobody("pkeyd", "--state-dir", "/tmp/nobody")
    check(status == 1 and "/dev/infiniband/umad" in said, "pkeyd as nobody: %d" % status, said)
    mode = {p: os.stat(p).st_mode & 0o777 for p in files_of("uverbs") + files_of("umad")}
    try:
        for path in mode:
            os.chmod(path, 0o600 if "uverbs" in path else 0o666)
        status, said = as_nobody("pkeyctl", "verify", "--json")
        check(status == 2 and '"host.verbs"' in said, "verify without uverbs: %d" % status, said)
        status, said = as_nobody("pkeyctl", "verify", "--local")
        check(status == 1 and "/dev/infiniband/uverbs" in said, "verify --local without uverbs: %d" % status, said)
    finally:
        for path in mode:
            os.chmod(path, mode[path])


def files_of(kind):
    return ["/dev/infiniband/" + n for n in os.listdir("/dev/infiniband") if n.startswith(kind)]


# --- (a) as a service -------------------------------------------------------------------------------------------------


def service():
    unit = "/usr/lib/systemd/system/pkeyd.service"
    check(read(unit) and read(unit) == read(LAB + "/tree" + unit), "the unit is not the shipped one")
    no_drop_in()
    check(property_of_unit("DropInPaths") == "", "the unit has drop-ins")
    began = start_service()
    check(property_of_unit("ActiveState") == "active", "pkeyd is not active")
    check("ports verified" in property_of_unit("StatusText"), "status line:", property_of_unit("StatusText"))
    status, doc = verify()
    check(status == 0 and doc["ok"], "verify ended with %d:" % status, doc)
    check(doc["kernel_ports"] == 3, "verify asked the kernel about %s ports" % doc["kernel_ports"])
    applied = wait_entry("APPLIED", began)
    check(applied["PKEYD_GENERATION"] == "1" and applied["SYSLOG_IDENTIFIER"] == "pkeyd", "fields of", applied)
    check(applied["_SYSTEMD_UNIT"] == "pkeyd.service", "not from the unit:", applied)
    kernel = wait_entry("KERNEL_VERIFIED", began)
    check(re.search(r"\b3\b.* ports", kernel["MESSAGE"]), "says", kernel["MESSAGE"])
    reload_and_refuse()
    stop_service()


def reload_and_refuse():
    moment = time.monotonic()
    write(POLICY, SECOND)
    must("systemctl", "reload", "pkeyd")
    in_force(SECOND_KEYS)
    check(wait_entry("GENERATION", moment)["PKEYD_GENERATION"] == "2", "the second policy is not generation 2")
    moment = time.monotonic()
    write(POLICY, SECOND.replace("labhost: full", "labhost: fool"))
    must("systemctl", "reload", "pkeyd")
    finding = wait_entry("FINDING", moment)
    check(finding["CONFIG_FILE"] == POLICY and finding["CONFIG_LINE"] == "11", "where:", finding)
    wait_entry("RELOAD_REFUSED", moment)
    time.sleep(0.5)
    check(holds(SECOND_KEYS), "a broken policy changed tables")
    wait_for("a status line with the refusal", PATIENCE, lambda: "refused" in property_of_unit("StatusText"))
    write(POLICY, SECOND)


# --- without privileges -----------------------------------------------------------------------------------------------

STATE = "/var/lib/pkeyd"


def status_of(pid):
    return dict(line.split(":", 1) for line in read("/proc/%s/status" % pid).splitlines())


def owners(folder):
    """{name: user} of a folder and the files in it."""
    paths = [folder] + [os.path.join(folder, name) for name in os.listdir(folder)]
    return {path: pwd.getpwuid(os.lstat(path).st_uid).pw_name for path in paths}


def unprivileged():
    """The service is the user pkeyd without capabilities, and the kernel kills it if it makes another system call than those of its
    unit. The group has umad by the udev rule alone. What root's pkeyctl creates belongs to the user."""
    user = pwd.getpwnam("pkeyd")
    must("systemctl", "stop", "pkeyd")
    no_drop_in()
    fabric.up()
    must("rm", "-rf", STATE)
    write(POLICY, FIRST)
    write(SETTINGS, NO_SWEEPS)
    must("pkeyctl", "apply", "--yes")  # before the service was ever started: the directory is root's
    check(set(owners(STATE).values()) == {"root"}, "pkeyctl made", owners(STATE))
    start_service(SECOND, SECOND_KEYS)
    check(set(owners(STATE).values()) == {"pkeyd"}, "the service has", owners(STATE))

    pid = main_pid()
    status = status_of(pid)
    check(status["Uid"].split() == [str(user.pw_uid)] * 4 and status["Gid"].split() == [str(user.pw_gid)] * 4, "it runs as",
          status["Uid"], status["Gid"])
    check(status["Groups"].split() in ([], [str(user.pw_gid)]), "it has the groups", status["Groups"])
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        check(int(status[name], 16) == 0, name, status[name])
    check(status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", "status", status)
    check(user.pw_shell.endswith("nologin"), "it has the shell", user.pw_shell)

    for kind, group, mode in (("umad", user.pw_gid, 0o660), ("uverbs", 0, 0o666)):  # the latter as the kernel makes them
        for path in files_of(kind):
            st = os.stat(path)
            check((st.st_uid, st.st_gid, st.st_mode & 0o777) == (0, group, mode), path, st)
    check([os.stat(path).st_mode & 0o777 for path in (POLICY, SETTINGS)] == [0o640] * 2, "modes of the files")
    status, said = as_nobody("pkeyctl", "plan")
    check(status == 1 and "Permission denied" in said, "another user reads the policy: %d" % status, said)

    must("systemctl", "stop", "pkeyd")
    for name in os.listdir(STATE):
        os.unlink(os.path.join(STATE, name))
    write(POLICY, FIRST)
    must("pkeyctl", "apply", "--yes")
    in_force(FIRST_KEYS)
    check(set(owners(STATE).values()) == {"pkeyd"}, "root created", owners(STATE))
    start_service(SECOND, SECOND_KEYS)
    kills()
    without_devices()
    key_of_the_group()


def kills():
    """The list of the unit, on another program: it runs, and is killed when it makes a call that is not in the list."""
    allowed = property_of_unit("SystemCallFilter")
    sandbox = ("systemd-run", "--quiet", "--wait", "--pipe", "-p", "NoNewPrivileges=yes", "-p", "SystemCallFilter=" + allowed, "--",
               "/bin/busybox")
    check(run(*sandbox, "true")[0] == 0, "even this needs another system call")
    check(run(*sandbox, "chroot", "/", "/bin/busybox", "true")[0] in (159, 255), "chroot(2) was not fatal")
    wait_for("systemd to log the death by SIGSYS", PATIENCE,
             lambda: "status=31/SYS" in run("journalctl", "-b", "--no-pager", "-t", "systemd")[1])


def without_devices():
    """As before the udev rule was applied: the message names it, and after `udevadm trigger` the service starts."""
    must("systemctl", "stop", "pkeyd")
    for path in files_of("umad"):
        os.chown(path, 0, 0)
        os.chmod(path, 0o600)
    moment = time.monotonic()
    run("systemctl", "start", "--no-block", "pkeyd")
    said = wait_entry("CANNOT_START", moment)["MESSAGE"]
    check("/dev/infiniband/umad" in said and "70-pkeyd.rules" in said, "says", said)
    must("udevadm", "trigger", "--subsystem-match=infiniband_mad", "--subsystem-match=infiniband_verbs")
    must("udevadm", "settle")
    must("systemctl", "restart", "pkeyd")
    check(property_of_unit("ActiveState") == "active", "it does not start")


def key_of_the_group():
    """A key file: refused if only root can read it, accepted if the group can."""
    key = FOR_PKEYD + "/m_key"
    write(key, "0x1\n")
    os.chmod(key, 0o600)
    os.chown(key, 0, 0)
    moment = time.monotonic()
    write(SETTINGS, NO_SWEEPS + "m_key_file: %s\n" % key)
    must("systemctl", "reload", "pkeyd")
    wait_entry("RELOAD_REFUSED", moment)
    wait_for("a status line with the refusal", PATIENCE, lambda: "refused" in property_of_unit("StatusText"))
    said = " ".join(e["MESSAGE"] for e in entries("FINDING", moment))
    findings = json.loads(run("pkeyctl", "doctor", "--json")[1])["findings"]
    check(not [f for f in findings if f["code"] in ("file.changeable", "state-dir.unusable")], "the doctor:", findings)
    unreadable = [f for f in findings if f["code"] == "file.unreadable"]
    check([w["text"] for f in unreadable for w in f["where"]] == [key + ": Permission denied"], "the doctor:", unreadable)
    check(key in said and "Permission denied" in said and "chgrp pkeyd" in said, "says", said)
    write(key, "0x1\n")
    must("systemctl", "reload", "pkeyd")
    wait_for("the key to be accepted", PATIENCE, lambda: is_verified(property_of_unit("StatusText")))
    moment = time.monotonic()
    write(SETTINGS, NO_SWEEPS)
    must("systemctl", "reload", "pkeyd")
    wait_entry("VERIFIED", moment)


def is_verified(status):
    return "ports verified" in status and "refused" not in status


def bus():
    """The system bus, with the installed policy file, and the daemon in the sandbox of its unit."""
    began = start_service()
    wait_for("pkeyd on the bus", PATIENCE, lambda: run("busctl", "status", "org.pkeyd1")[0] == 0)
    check(not entries("BUS_ABSENT", began), "it was not on the bus at once")
    status = json.loads(must("pkeyctl", "status", "--json"))
    check(status["state"] == "right" and status["ports_right"] == status["ports_managed"] > 0, "pkeyctl status:", status)
    write(POLICY, SECOND)
    reload = json.loads(must("pkeyctl", "reload", "--json"))
    check(reload["outcome"] == "carried-out" and reload["generation"] == status["generation"] + 1, "pkeyctl reload:", reload)
    in_force(SECOND_KEYS)
    nobody = ("setpriv", "--reuid", "nobody", "--clear-groups", "pkeyctl")
    check(json.loads(must(*nobody, "status", "--json"))["generation"] == reload["generation"], "nobody may not read")
    code, text = run(*nobody, "reload", "--json")
    check(code == 1 and json.loads(text)["findings"][0]["code"] == "host.no-permission", "nobody reloads:", text)
    must("systemctl", "stop", "pkeyd")


POOL = FIRST + """pools:
  tenants:
    pkeys: 0x2000-0x2fff
    ports: ALL
    lease: unlimited
    rest: 0s
    index0: true
    allow: rest:kube
"""
REST_CONF = "/etc/pkeyd/rest.yaml"


def rest_door():
    """pkeyd-rest by its socket: as its own user, in the sandbox of its unit, with pkeyd in that of its own."""
    start_service(POOL)
    must("systemd-sysusers", "/usr/lib/sysusers.d/pkeyd-rest.conf")
    write(REST_CONF, "clients:\n  kube: {password: %s, pool: tenants}\n" % yescrypt("secret"))
    must("chown", "root:pkeyd-rest", REST_CONF)
    must("chmod", "640", REST_CONF)
    must("systemctl", "start", "pkeyd-rest.socket")
    body = {"pkey": "0x2001", "index0": True, "guids": ["%016x" % (GUID + 16 + 1)]}
    check(ask("POST", "resources/pkeys", body, "wrong")[0] == 401, "a wrong password is accepted")
    check(ask("POST", "resources/pkeys", body) == (200, {"pkey": "0x2001"}), "the answer")
    wait_for("0xa001 at index 0 of lab1", PATIENCE, lambda: kernel_keys("lab1").get(0) == 0xA001)
    check(0x7FFF in kernel_keys("lab1").values(), "the default partition is gone:", kernel_keys("lab1"))
    owner = json.loads(must("pkeyctl", "lease", "list", "--json"))["leases"][0]["owner"]
    check(owner == "rest:kube", "the lease belongs to", owner)
    in_its_sandbox()
    check(ask("DELETE", "resources/pkeys/0x2001")[0] == 200, "the partition is not deleted")
    in_force(FIRST_KEYS)
    wait_for("0x7fff at index 0 of lab1", PATIENCE, lambda: kernel_keys("lab1").get(0) == 0x7FFF)
    must("systemctl", "stop", "pkeyd-rest.socket", "pkeyd-rest.service", "pkeyd")


def in_its_sandbox():
    pid = property_of_unit("MainPID", "pkeyd-rest")
    status = status_of(pid)
    check(int(status["Uid"].split()[0]) == int(must("id", "-u", "pkeyd-rest")), "it runs as", status["Uid"])
    check(int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, "it has capabilities:", status["CapEff"], status["CapBnd"])
    check(not os.path.exists("/proc/%s/root/dev/infiniband" % pid), "it sees RDMA devices")


def yescrypt(secret):
    crypt = ctypes.CDLL("libcrypt.so.1")
    crypt.crypt_gensalt.restype = crypt.crypt.restype = ctypes.c_char_p
    return crypt.crypt(secret.encode(), crypt.crypt_gensalt(b"$y$", 1, None, 0)).decode()


def ask(method, path, body=None, password="secret"):
    """Status and JSON of a request to pkeyd-rest."""
    c = http.client.HTTPConnection("localhost", 443, timeout=60)
    c.request(method, "/ufmRest/" + path, json.dumps(body) if body else None,
              {"Authorization": "Basic " + base64.b64encode(("kube:" + password).encode()).decode()})
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    say("%s %s -> %d\n%s" % (method, path, r.status, text))
    return r.status, json.loads(text)


def stop_service():
    watchdog()
    moment = time.monotonic()
    must("systemctl", "stop", "pkeyd")
    check(property_of_unit("ActiveState") == "inactive", "pkeyd did not stop")
    check(property_of_unit("Result") == "success", "result:", property_of_unit("Result"))
    wait_entry("STOPPED", moment)
    check(holds(SECOND_KEYS), "stopping changed tables")


def watchdog():
    """The watchdog, with a shorter time than the two minutes of the unit."""
    check(property_of_unit("WatchdogUSec") == "2min", "watchdog:", property_of_unit("WatchdogUSec"))
    must("systemctl", "stop", "pkeyd")
    try:
        must("systemctl", "start", "pkeyd-impatient")
        before = property_of_unit("MainPID", "pkeyd-impatient")
        for _ in range(2):
            fed = property_of_unit("WatchdogTimestampMonotonic", "pkeyd-impatient")
            wait_for("pkeyd to feed the watchdog", PATIENCE,
                     lambda: property_of_unit("WatchdogTimestampMonotonic", "pkeyd-impatient") != fed)
        check(property_of_unit("MainPID", "pkeyd-impatient") == before, "the watchdog bit though nothing hung")
        os.kill(int(before), signal.SIGSTOP)
        wait_for("a new process after the old one hung", PATIENCE,
                 lambda: property_of_unit("MainPID", "pkeyd-impatient") not in ("0", before))
    finally:
        run("systemctl", "stop", "pkeyd-impatient")  # it restarts for ever, also after a failure
    must("systemctl", "start", "pkeyd")


# --- tables through libibverbs -----------------------------------------------------------------------------------------------


def lie(index):
    write("/sys/module/labhca/parameters/lie", str(index))


def second_witness():
    """The driver reports a wrong table to the kernel: the SMAs are right, the kernel is not."""
    start_service()
    moment = time.monotonic()  # the check after the sweep of the start may see the lie, too, and it is reported once
    try:
        lie(0)
        status, doc = verify()
        check(status == 2, "verify ended with %d although the kernel's tables are wrong" % status)
        check({d["source"] for d in doc["differ"]} == {"kernel"} and len(doc["differ"]) == 3, "differ:", doc["differ"])
        said = run("pkeyctl", "verify", "--config", SETTINGS)[1]
        check("0 differ from the policy, the kernel's tables of 3 ports of this host differ" in said, "verify said", said)
        kinds = {k["kind"] for d in doc["differ"] for k in d["kernel"]}
        check(kinds == {"lacks", "only"}, "kinds:", kinds)
        must("systemctl", "reload", "pkeyd")
        entry = wait_entry("KERNEL_DIFFERS", moment)
        check("PKEYD_PORT_GUID" in entry and "PKEYD_NODE" in entry, "fields of", entry)
    finally:
        moment = time.monotonic()
        lie(-1)
    must("systemctl", "reload", "pkeyd")
    wait_entry("KERNEL_VERIFIED", moment)
    status, doc = verify()
    check(status == 0, "verify ended with %d:" % status, doc)


def bad_p_keys():
    """bad_pkey_cntr of every port, which pkeyd reads through libibverbs."""
    for n in (0, 7, 65536, 4294967295):
        write("/sys/module/labhca/parameters/bad_p_keys", str(n))
        try:
            said = sorted(must(LAB + "/verbs_ports").splitlines())
        finally:
            write("/sys/module/labhca/parameters/bad_p_keys", "0")
        check([line for line in said if line.startswith("lab")] == ["%s 1 %d" % (d, n) for d in DEVICES], "ports:", said)


def for_metrics(folder):
    """Makes it as the manual says."""
    os.makedirs(folder, exist_ok=True)
    must("chgrp", "pkeyd", folder)
    must("chmod", "1775", folder)


def metrics_file():
    """The shipped unit, without capabilities, can write the metrics file of the example, and nothing else."""
    here, elsewhere = "/var/lib/prometheus/node-exporter", "/var/lib/elsewhere"
    must("systemctl", "stop", "pkeyd")
    for path in (here, elsewhere):
        for_metrics(path)
    start_service()
    write(SETTINGS, NO_SWEEPS + "metrics: {textfile: %s/pkeyd.prom}\n" % here)
    must("systemctl", "reload", "pkeyd")
    wait_for("the metrics", PATIENCE, lambda: read(here + "/pkeyd.prom").endswith("\n# EOF\n"))
    check(os.stat(here + "/pkeyd.prom").st_mode & 0o777 == 0o644, "mode of the metrics")
    check("\npkeyd_policy_accepted 1\n" in read(here + "/pkeyd.prom"), "they say:", read(here + "/pkeyd.prom"))
    moment = time.monotonic()
    write(SETTINGS, NO_SWEEPS + "metrics: {textfile: %s/pkeyd.prom}\n" % elsewhere)
    must("systemctl", "reload", "pkeyd")
    entry = wait_entry("METRICS_FILE", moment)
    check("Read-only file system" in entry["MESSAGE"] and "ReadWritePaths=" in entry["MESSAGE"], "says", entry["MESSAGE"])
    check(os.listdir(elsewhere) == [] and os.listdir(here) == [], "files are left")
    os.chmod(here, 0o755)
    moment = time.monotonic()
    write(SETTINGS, NO_SWEEPS + "metrics: {textfile: %s/pkeyd.prom}\n" % here)
    must("systemctl", "reload", "pkeyd")
    entry = wait_entry("METRICS_FILE", moment)
    check("Permission denied" in entry["MESSAGE"] and "chgrp pkeyd" in entry["MESSAGE"], "says", entry["MESSAGE"])


# --- violations -------------------------------------------------------------------------------------------------------

DROP_INS = "/run/systemd/system/pkeyd.service.d"
DROP_IN = DROP_INS + "/lab.conf"
SA_KEY = "/run/sa_key"
COUNTING = "violations: {interval: 1s}\nmetrics: {textfile: %s}\n" % METRICS
REFUSED = ("PKEYD_NODE", "PKEYD_PORT_GUID", "PKEYD_LID", "PKEYD_PORT", "PKEYD_SWITCH", "PKEYD_COUNT", "PKEYD_TOTAL",
           "PKEYD_SOURCE", "PRIORITY")


def drop_in():
    """The steps of the manual for a site with an sa_key and OpenSM on this host."""
    must("systemctl", "stop", "pkeyd")
    if not os.path.exists(DROP_IN):
        must("install", "-d", "-o", "pkeyd", "-g", "pkeyd", os.path.dirname(WRITTEN))
        if not os.path.islink(PARTITIONS):
            os.symlink("pkeyd/partitions.conf", PARTITIONS)
        write(SA_KEY, "0x1\n")
        os.chmod(SA_KEY, 0o600)
        write(DROP_IN, "[Service]\nLoadCredential=sa_key:%s\n" % SA_KEY)
        write(DROP_INS + "/opensm.conf", read("/usr/share/doc/pkeyd/pkeyd-opensm.conf"))
        must("systemctl", "daemon-reload")


def start_counting():
    """Starts the service with OpenSM's sa_key as a credential, and waits for its second poll of all counters. It sweeps often, because
    each sweep writes the metrics."""
    drop_in()
    for_metrics(os.path.dirname(METRICS))
    if os.path.exists(METRICS):
        os.unlink(METRICS)
    began = start_service(settings=COUNTING, first_settings=NO_SWEEPS.replace("1h", "1s"))
    wait_for("two poll rounds", PATIENCE, lambda: sum(metric("pkeyd_poll_rounds_total")) >= 2)
    return began


def no_drop_in():
    if os.path.exists(DROP_IN):
        os.unlink(DROP_IN)
        os.unlink(DROP_INS + "/opensm.conf")
        must("systemctl", "daemon-reload")


def notices():
    return json.loads(must("pkeyctl", "status", "--json"))["notices"]


def move(node, port, counter, value):
    fabric.console('PerformanceSet "%s"[%d] PortCounters.%s=%d' % (node, port, counter, value))


def metric(name, **labels):
    """The values of a metric's samples with these labels."""
    lines = [line for line in read(METRICS).splitlines() if re.match(name + r"[{ ]", line)]
    return [float(line.split()[-1]) for line in lines if all('%s="%s"' % pair in line for pair in labels.items())]


def violation():
    """A counter of a switch port, through the kernel's MAD layer: the same number everywhere. The default partition is not at
    index 0 of the local port."""
    fabric.up()
    must("systemctl", "stop", "pkeyd")
    set_keys("lab0", {9: 0xFFFF, 1: 0, 0: 0x8010})
    wait_for("the kernel to see it", PATIENCE, lambda: kernel_keys("lab0") == {0: 0x8010, 9: 0xFFFF})
    try:
        moment = start_counting()
        check(kernel_keys("lab0") == {0: 0x8010, 9: 0xFFFF}, "pkeyd moved entries:", kernel_keys("lab0"))
        check(not entries("VIOLATION", moment), "a violation where none was")
        check("not carried" not in read(bridge_log("lab0")), "with another P_Key:", read(bridge_log("lab0")))
        moment = time.monotonic()
        move("leaf1", 2, "PortRcvConstraintErrors", 5)
        one_number(wait_entry("VIOLATION", moment), 5)
        quiet = wait_entry("VIOLATION_QUIET", moment)
        check(quiet["PKEYD_TOTAL"] == "5", "at the end:", quiet)
        check(len(entries("VIOLATION", moment)) == 1, "entries:", entries("VIOLATION", moment))
        check("not carried" not in read(bridge_log("lab0")), "with another P_Key:", read(bridge_log("lab0")))
        # checks the test itself: a sender with the entry at index 0 gets no answer
        status, said = run("perfquery", "-C", "lab0", "-t", "200", str(lid("lab1")), "1")
        check(status != 0 and "not carried" in read(bridge_log("lab0")), "perfquery with index 0:", said)
    finally:
        must("systemctl", "stop", "pkeyd")
        set_keys("lab0", {0: 0xFFFF, 1: 0x8010, 9: 0})


def one_number(entry, n):
    lacks = [field for field in REFUSED if not entry.get(field)]
    check(not lacks, "the entry lacks %s:" % lacks, entry)
    check(entry["PKEYD_COUNT"] == entry["PKEYD_TOTAL"] == str(n) and entry["PRIORITY"] == "4", "entry:", entry)
    check(entry["PKEYD_NODE"].startswith("labhost") and "lab1" in entry["PKEYD_NODE"], "node:", entry["PKEYD_NODE"])
    check(entry["PKEYD_PORT_GUID"] == "0x%016x" % (GUID + 17) and entry["PKEYD_PORT"] == "1", "port:", entry)
    check(entry["PKEYD_LID"] == str(lid("lab1")) and "leaf1" in entry["PKEYD_SWITCH"], "place:", entry)
    check(entry["PKEYD_SOURCE"] == "port_rcv_constraint_errors", "source:", entry["PKEYD_SOURCE"])
    check("labhost" in entry["MESSAGE"] and re.search(r"\b%d\b" % n, entry["MESSAGE"]), "says", entry["MESSAGE"])
    status, said = run("pkeyctl", "violations", "--json")
    check(status == 2, "pkeyctl violations: %d" % status, said)
    seen = [v["total"] for v in json.loads(said)["violations"] if v["source"] == entry["PKEYD_SOURCE"]]
    check(seen == [n], "pkeyctl violations:", said)
    check(json.loads(must("pkeyctl", "status", "--json"))["violations_total"] == n, "pkeyctl status")
    wait_for("%d in the metrics" % n, PATIENCE, lambda: metric("pkeyd_violations_total", source=entry["PKEYD_SOURCE"]) == [n])
    must("journalctl", "--update-catalog")
    said = must("journalctl", "-b", "-x", "--no-pager", "MESSAGE_ID=" + EVENTS["VIOLATION"])
    check("Packets were dropped because their P_Key does not match" in said, "journalctl -x:", said)


def notice(trap, issuer, sender, receiver, key):
    """IBA 1.5, 13.4.8.2 and 14.2.5.1: generic, security, from a channel adapter."""
    return (struct.pack(">BBHHHH", 0x82, 0, 1, trap, issuer, 0) +
            struct.pack(">HHHIII", 0, sender, receiver, key, 0x48, 0x49) + bytes(32) + bytes(12))


def mad(mgmt_class, version, method, tid, attribute, at, data):
    head = struct.pack(">BBBBHHQHHI", 1, mgmt_class, version, method, 0, 0, tid, attribute, 0, 0)
    return (head.ljust(at, b"\0") + data).ljust(256, b"\0")


def trap_257(tid, *about):
    return mad(0x01, 1, 5, tid, 2, 64, notice(257, *about))


def report_257(tid, *about):
    return mad(0x03, 2, 6, tid, 2, 56, notice(257, *about))


def answers(tid=None):
    """The responses to Reports that lab0 sent."""
    found = re.findall(r"answer class 0x03 method 0x86 status 0x0000 attribute 0x0002 TID 0x(\w+) to LID (\d+)",
                       read(bridge_log("lab0")))
    return [int(to) for t, to in found if tid is None or int(t, 16) == tid]


def report():
    """An adapter sends trap 257: OpenSM reports it to the subscribers with its sa_key, and pkeyd logs it and responds. The
    subscription of an earlier pkeyd without sa_key does not cause a second report."""
    must("systemctl", "stop", "pkeyd")
    no_drop_in()
    wait_entry("NOTICES_SUBSCRIBED", start_service())
    moment = start_counting()
    wait_entry("NOTICES_SUBSCRIBED", moment)
    check(not entries("NOTICES_ABSENT", moment), "it says, too:", entries("NOTICES_ABSENT", moment))
    check(notices() == "subscribed", "pkeyctl status")
    n, moment = len(answers()), time.monotonic()
    lids = [lid(d) for d in DEVICES]
    fabric.receive("lab0", 0, lids[1], trap_257(0x11, lids[1], lids[2], lids[1], 0x8011))
    wait_entry("VIOLATION_NOTICE", moment)
    time.sleep(1.5)  # a second entry would have arrived by now
    entry = entries("VIOLATION_NOTICE", moment)[-1]
    check(entry["PKEYD_TOTAL"] == "1", "of one trap:", entries("VIOLATION_NOTICE", moment))
    check(all(w in entry["MESSAGE"] for w in ("lab1", "lab2", "0x8011", "tenant")), "says", entry["MESSAGE"])
    check("lab2" in entry["PKEYD_NODE"] and entry["PKEYD_LID"] == str(lids[2]), "names", entry)
    check(entry["PKEYD_PKEY"] == "0x8011" and entry["PKEYD_SOURCE"] == "trap_257", "fields of", entry)
    wait_for("the answer to OpenSM's Report", PATIENCE, lambda: set(answers()[n:]) == {lids[0]})
    by_hand(lids)
    said = must("saquery", "-C", "lab0", "-t", "30000", "--smkey", "1", "IIR")
    check(set(re.findall(r"[Tt]rap_?[Nn]um\S*?\.+(\d+)", said)) == {"257", "258", "259"}, "OpenSM has:", said)


def by_hand(lids):
    """pkeyd responds to Reports from the LID of OpenSM, each with its own transaction ID, and ignores others."""
    moment = time.monotonic()
    fabric.receive("lab0", 1, lids[2], report_257(0x5EED00000001, lids[1], lids[2], lids[1], 0x8012))
    fabric.receive("lab0", 1, lids[0], report_257(0x5EED00000002, lids[1], lids[2], lids[1], 0x8013))
    wait_for("the answer", PATIENCE, lambda: answers(0x5EED00000002) == [lids[0]])
    entry = wait_entry("VIOLATION_NOTICE", moment)
    check(entry["PKEYD_PKEY"] == "0x8013", "told of", entry)
    time.sleep(1)
    check([e["PKEYD_PKEY"] for e in entries("VIOLATION_NOTICE", moment)] == ["0x8013"], "told of more")
    check(answers(0x5EED00000001) == [], "a stranger's Report was answered")


def report_taken():
    """Another program receives the Reports: pkeyd logs that once, and polls the counters. When that program ends, pkeyd
    subscribes."""
    must("systemctl", "stop", "pkeyd")
    fabric.up()
    other = subprocess.Popen([LAB + "/listener", "lab0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        check(other.stdout.readline() == "listening\n", "the other program does not listen")
        moment = start_counting()
        absent = wait_entry("NOTICES_ABSENT", moment)
        check("another program of this host" in absent["MESSAGE"], "says", absent["MESSAGE"])
        move("leaf1", 3, "PortXmitConstraintErrors", 2)
        check("lab2" in wait_entry("VIOLATION", moment)["PKEYD_NODE"], "names", entries("VIOLATION", moment))
        check(not entries("NOTICES_SUBSCRIBED", moment), "subscribed to what it cannot hear")
        check(len(entries("NOTICES_ABSENT", moment)) == 1, "said again and again")
        check(notices() == "off", "pkeyctl status")
        other.stdin.close()
        check(other.wait(PATIENCE) == 0, "the other program failed")
        must("systemctl", "reload", "pkeyd")
        wait_entry("NOTICES_SUBSCRIBED", moment)
    finally:
        other.kill()
        other.wait()


# --- paths of the SA --------------------------------------------------------------------------------------------------

PATHS = FIRST.replace("labhost/lab1: limited", "labhost/lab1: full\n      labhost/lab2: limited")
PATHS_KEYS = {"lab0": {0xFFFF, 0x8010}, "lab1": {0x7FFF, 0x8010, 0x8011}, "lab2": {0x7FFF, 0x8010, 0x0011}}
MORE_PATHS = PATHS.replace("labhost/lab1: full", "labhost/lab1: full\n      labhost/lab0: full")
MORE_KEYS = {**PATHS_KEYS, "lab0": {0xFFFF, 0x8010, 0x8011}}
MAY_TALK = [("lab0", "lab1", 0xFFFF), ("lab0", "lab2", 0xFFFF), ("lab0", "lab1", 0x8010), ("lab0", "lab2", 0x8010),
            ("lab1", "lab2", 0x8010), ("lab1", "lab2", 0x8011)]
MAY_TALK_LATER = [("lab0", "lab1", 0x8011), ("lab0", "lab2", 0x8011)]


def has_path(source, target, key):
    """Queries the SA for a path, as rdma_cm does before it connects."""
    said = must("saquery", "-C", "lab0", "-t", "30000", "PR", "--slid", str(lid(source)), "--dlid", str(lid(target)),
                "--pkey", "0x%04x" % key)
    return re.search(r"(?i)\bpkey\.+0x%04x\b" % key, said) is not None


def check_paths(when, wanted):
    found = {path for path in MAY_TALK + MAY_TALK_LATER if has_path(*path)}
    check(found == set(wanted), "%s the SA has paths for" % when, sorted(found))


def path_records():
    """The P_Keys for which the SA has a path. `direct` alone: only those in OpenSM's own file. With a mirror: exactly those
    of the policy from the next heavy sweep on. `writer: opensm`: at once."""
    fabric.up()
    drop_in()
    start_service(PATHS, PATHS_KEYS)
    fabric.sweep()
    check_paths("direct, after a heavy sweep", [path for path in MAY_TALK if path[2] == 0xFFFF])
    moment = start_service(PATHS, PATHS_KEYS, "opensm: {mirror: %s}\n" % PARTITIONS)
    wait_for("a mirror", PATIENCE, lambda: os.path.exists(PARTITIONS))
    fabric.sweep()
    check_paths("with a mirror", MAY_TALK)
    check(verify()[0] == 0 and not entries("DRIFT_FOUND", moment), "OpenSM wrote something else")
    start_service(MORE_PATHS, MORE_KEYS, "writer: opensm\nopensm: {partitions_conf: %s, reload: 'pid:%d'}\n" %
                  (PARTITIONS, fabric.opensm.pid))
    check_paths("written by OpenSM", MAY_TALK + MAY_TALK_LATER)
    must("systemctl", "stop", "pkeyd")
    os.unlink(WRITTEN)
    fabric.sweep()


def opensm_service():
    """`reload: systemd:opensm.service`, as Debian has it: a oneshot that starts opensm@GUID.service for each port."""
    fabric.up()
    fabric.kill_opensm()
    drop_in()
    unit = "opensm@0x%016x.service" % (GUID + 1)
    write("/etc/default/opensm", "PORTS=0x%016x\n" % (GUID + 1))
    must("systemctl", "start", "opensm.service")
    try:
        check(must("systemctl", "show", "-P", "MainPID", "opensm.service").strip() == "0", "opensm.service is a process itself")
        pid = must("systemctl", "show", "-P", "MainPID", unit).strip()
        wait_for("%s to be OpenSM" % unit, PATIENCE, lambda: read("/proc/%s/comm" % pid).strip() == "opensm")
        write(POLICY, PATHS)
        write(SETTINGS, NO_SWEEPS + "writer: opensm\nopensm: {partitions_conf: %s, reload: 'systemd:opensm.service'}\n" % PARTITIONS)
        must("systemctl", "start", "pkeyd")
        in_force(PATHS_KEYS)
        write(POLICY, MORE_PATHS)
        must("systemctl", "reload", "pkeyd")
        in_force(MORE_KEYS)
        check(must("systemctl", "show", "-P", "MainPID", unit).strip() == pid, "OpenSM was restarted")
    finally:
        must("systemctl", "stop", "pkeyd", "opensm.service")
        if os.path.exists(WRITTEN):
            os.unlink(WRITTEN)
        fabric.start_opensm()


# --- (b) -----------------------------------------------------------------------------------------------------------


def behind_its_back():
    start_service()
    time.sleep(2)  # wait for what pkeyd does after a reload
    for device in ("lab1", "lab0"):
        moment = time.monotonic()
        set_key(device, 9, 0x8123)
        written = time.monotonic()
        drift = wait_entry("DRIFT_FOUND", moment)
        seen = int(drift["__MONOTONIC_TIMESTAMP"]) / 1e6
        repaired = wait_entry("DRIFT_REPAIRED", moment)
        done = int(repaired["__MONOTONIC_TIMESTAMP"]) / 1e6
        say("%s: the other writer took %.3f s; seen %.3f s and repaired %.3f s after its end" %
            (device, written - moment, seen - written, done - written))
        check(drift["PKEYD_PORT_GUID"] == "0x%016x" % (GUID + 16 * DEVICES.index(device) + 1), "names", drift)
        check(drift["PKEYD_P_KEY"] == "0x8123", "names", drift)
        in_force(FIRST_KEYS)
        time.sleep(2)
    # a removed entry returns to its index, although other indexes were never used
    before = kernel_keys("lab1")
    index = max(i for i, key in before.items() if key & 0x7FFF and i < 9)
    moment = time.monotonic()
    set_key("lab1", index, 0)
    wait_entry("DRIFT_REPAIRED", moment)
    in_force(FIRST_KEYS)
    check(kernel_keys("lab1") == before, "index %d of lab1:" % index, before, kernel_keys("lab1"))


# --- (c), (d), (f) ----------------------------------------------------------------------------------------------------


def main_pid():
    return property_of_unit("MainPID")


def link_lost():
    start_service()
    before = main_pid()
    moment = time.monotonic()
    fabric.console('Unlink "H0"[1]')
    waiting = wait_entry("WAITING_FOR_PORT", moment)
    check("down" in waiting["MESSAGE"], "says", waiting["MESSAGE"])
    fabric.console('ReLink "H0"[1]')
    wait_entry("PORT_FOUND", moment)
    in_force(FIRST_KEYS)
    check(main_pid() == before, "pkeyd was restarted")


def unplugged():
    start_service()
    before = main_pid()
    moment = time.monotonic()
    fabric.kill_opensm()  # OpenSM works through the same HCA
    fabric.unplug("lab0")
    wait_entry("WAITING_FOR_PORT", moment)
    check(main_pid() == before and property_of_unit("ActiveState") == "active", "pkeyd did not survive it")
    fabric.unplug("lab2")
    moment = time.monotonic()
    fabric.plug("lab0", "lab2")
    fabric.start_opensm()
    wait_entry("PORT_FOUND", moment)
    set_key("lab2", 7, 0x8222)
    in_force(FIRST_KEYS)
    check(main_pid() == before, "pkeyd was restarted")


def opensm_killed():
    start_service()
    before = main_pid()
    fabric.kill_opensm()
    time.sleep(1)
    check(main_pid() == before and property_of_unit("ActiveState") == "active", "pkeyd did not survive it")
    fabric.start_opensm()
    # it has written its own tables to the whole fabric; only the events of the local ports notify pkeyd
    wait_for("every table of the fabric to match the policy", PATIENCE, lambda: verify()[0] == 0)
    time.sleep(6)
    check(verify()[0] == 0, "it did not last")
    check(main_pid() == before, "pkeyd was restarted")


def start_other_opensm():
    """Starts OpenSM on the other host, which writes its own tables to the whole fabric."""
    os.makedirs("/tmp/other-opensm", exist_ok=True)
    return subprocess.Popen(["opensm", "-f", "/tmp/other-opensm/log"], cwd="/tmp/other-opensm",
                            env=dict(os.environ, SIM_HOST="H3", LD_PRELOAD=glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")[0],
                                     OSM_CACHE_DIR="/tmp/other-opensm", OSM_TMP_DIR="/tmp/other-opensm"),
                            stdin=subprocess.DEVNULL, stdout=open("/tmp/other-opensm/out", "a"), stderr=subprocess.STDOUT)


def head_pair():
    """role: follow-sm without sweeps: pkeyd stands by and writes again only because of events of the kernel."""
    moment = start_service()
    write(SETTINGS, NO_SWEEPS + "role: follow-sm\n")
    must("systemctl", "reload", "pkeyd")
    wait_entry("WRITES", moment)
    before = {device: kernel_keys(device) for device in DEVICES}
    moment = time.monotonic()
    fabric.kill_opensm()
    other = start_other_opensm()
    try:
        standby = wait_entry("STANDBY", moment)
        check("(node other)" in standby["MESSAGE"], "where the master SM is:", standby["MESSAGE"])
        moment = int(standby["__MONOTONIC_TIMESTAMP"]) / 1e6  # before it, pkeyd may repair what the other OpenSM writes
        write(POLICY, SECOND)
        must("systemctl", "reload", "pkeyd")
        wait_entry("STANDBY_DIFFERS", moment)
        check(not entries("APPLIED", moment), "it wrote while the master SM was elsewhere")
    finally:
        other.kill()
        other.wait()
    # back to this host, but to another port than the one that pkeyd works through
    moment = time.monotonic()
    fabric.start_opensm(1)
    wait_entry("WRITES", moment)
    in_force(dict(SECOND_KEYS, lab1={0xFFFF, 0x8010, 0x8011}))  # the master SM's port is a full member
    after = {device: kernel_keys(device) for device in DEVICES}
    for device in DEVICES:
        for index, key in before[device].items():
            check(after[device].get(index, 0) & 0x7FFF == key & 0x7FFF, device, "index", index, before, after)
    fabric.kill_opensm()
    fabric.start_opensm()
    # the next scenario expects the tables of pkeyd, not those of OpenSM
    wait_for("every table of the fabric to match the policy", PATIENCE, lambda: holds(SECOND_KEYS) and verify()[0] == 0)


def fabrics():
    """A pkeyd of one of several fabrics, beside the one without a name: it does not choose a port, and does not serve a port that
    another one serves. (The ports of this host lead to one fabric, so the second one only audits.)"""
    start_service()
    folder = "/etc/pkeyd/storage"
    os.makedirs(folder, exist_ok=True)
    write(folder + "/partitions.yaml", FIRST)
    settings = "mode: audit\n" + NO_SWEEPS.replace("ca: lab0\n", "")
    for more, words in (("", "set ca and port in pkeyd.yaml"), ("ca: lab0\n", "another pkeyd of this host serves this port")):
        write(folder + "/pkeyd.yaml", more + settings)
        moment = time.monotonic()
        run("systemctl", "start", "--no-block", "pkeyd@storage")
        # journald does not find the unit of a process that has ended
        entry = wait_for("an entry with its unit", PATIENCE,
                         lambda: [e for e in entries("CANNOT_START", moment) if "_SYSTEMD_UNIT" in e])[0]
        check(words in entry["MESSAGE"], "says", entry["MESSAGE"])
        check((entry["PKEYD_FABRIC"], entry["SYSLOG_IDENTIFIER"], entry["_SYSTEMD_UNIT"]) ==
              ("storage", "pkeyd@storage", "pkeyd@storage.service"), "fields:", entry)
        must("systemctl", "stop", "pkeyd@storage")
    write(folder + "/pkeyd.yaml", "ca: lab1\n" + settings)
    must("systemctl", "start", "pkeyd@storage")
    found = {name: json.loads(run("pkeyctl", *more, "status", "--json")[1]) for name, more in
             (("", ()), ("storage", ("--fabric", "storage")))}
    check({name: (status["fabric"], status["mode"]) for name, status in found.items()} ==
          {"": ("", "enforce"), "storage": ("storage", "audit")}, "status:", found)
    check(set(owners("/var/lib/pkeyd/storage").values()) == {"pkeyd"}, "the state:", owners("/var/lib/pkeyd/storage"))
    check(property_of_unit("ActiveState") == "active", "the pkeyd without a name ended")
    must("systemctl", "stop", "pkeyd@storage")
    in_force(FIRST_KEYS)


class Etcd:
    """An etcd of one member, with a name that only /etc/hosts has, and for clients with a certificate."""

    URL = "https://member.lab:2379"
    CA, CERTIFICATE, KEY = (FOR_PKEYD + "/" + name for name in ("etcd-ca.pem", "etcd.pem", "etcd.key"))

    def __init__(self):
        write("/etc/hosts", read("/etc/hosts") + "\n127.0.0.1 member.lab\n")
        must("ip", "link", "set", "lo", "up")
        self.make_certificates("/tmp/etcd-keys")
        self.process = subprocess.Popen(
            ["etcd", "--data-dir", "/tmp/etcd", "--listen-client-urls", "https://127.0.0.1:2379", "--advertise-client-urls", self.URL,
             "--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
             "--initial-cluster", "default=http://127.0.0.1:2380", "--cert-file", self.CERTIFICATE, "--key-file", self.KEY,
             "--trusted-ca-file", self.CA, "--client-cert-auth"], stdout=open("/tmp/etcd.log", "w"), stderr=subprocess.STDOUT)
        wait_for("etcd", PATIENCE, lambda: self.ctl("endpoint", "health")[0] == 0)

    def make_certificates(self, folder):
        os.makedirs(folder)
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        write(folder + "/ext", "subjectAltName=DNS:member.lab,IP:127.0.0.1\n")
        must("openssl", "req", "-x509", *new, "-days", "99", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem", cwd=folder)
        must("openssl", "req", *new, "-subj", "/CN=pkeyd", "-keyout", "own.key", "-out", "own.csr", cwd=folder)
        must("openssl", "x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "99",
             "-extfile", "ext", "-out", "own.pem", cwd=folder)
        for name, path in (("ca.pem", self.CA), ("own.pem", self.CERTIFICATE), ("own.key", self.KEY)):
            write(path, read(folder + "/" + name))

    def ctl(self, *arguments):
        return run("etcdctl", "--endpoints", self.URL, "--cacert", self.CA, "--cert", self.CERTIFICATE, "--key", self.KEY,
                   "--dial-timeout=60s", "--command-timeout=60s", *arguments, env=dict(os.environ, ETCDCTL_API="3"))

    def settings(self):
        """The first member has a name that no name server knows."""
        return "role: follow-sm\nstore: etcd\netcd:\n  endpoints: [https://nowhere.invalid:2379, %s]\n  ca_file: %s\n  cert_file: %s\n" \
               "  key_file: %s\n" % (self.URL, self.CA, self.CERTIFICATE, self.KEY)


def shared_store():
    """store: etcd. The sandbox lets the service talk to the members with the drop-in, and not without it."""
    must("systemctl", "stop", "pkeyd")
    fabric.up()
    etcd, drop_in_etcd = Etcd(), DROP_INS + "/etcd.conf"
    must("rm", "-rf", STATE)
    write(POLICY, FIRST)
    write(SETTINGS, NO_SWEEPS + etcd.settings())
    try:
        moment = time.monotonic()
        run("systemctl", "start", "--no-block", "pkeyd")
        entry = wait_entry("STATE_DIR", moment, 60)
        check("cannot be used: no member answers" in entry["MESSAGE"], "without the drop-in:", entry["MESSAGE"])
        check(etcd.ctl("get", "/pkeyd/", "--prefix", "--keys-only")[1].strip() == "", "it wrote to etcd")
        must("systemctl", "stop", "pkeyd")

        write(drop_in_etcd, read("/usr/share/doc/pkeyd/pkeyd-etcd.conf"))
        must("systemctl", "daemon-reload")
        start_service(SECOND, SECOND_KEYS, settings=etcd.settings())
        check(status_of(main_pid())["Seccomp"].strip() == "2", "the service has no filter of system calls")
        status, keys = etcd.ctl("get", "/pkeyd/record/", "--prefix", "--keys-only")
        check(status == 0 and "/pkeyd/record/table/" in keys, "records in etcd:", keys)
        check(not os.path.exists(STATE + "/state.db"), "there is a state.db")
        must("systemctl", "stop", "pkeyd")
        check(property_of_unit("Result") == "success", "it ended with", property_of_unit("Result"))
        must("pkeyctl", "store", "copy", "sqlite")
    finally:
        etcd.process.kill()
        etcd.process.wait()
        if os.path.exists(drop_in_etcd):
            os.unlink(drop_in_etcd)
            must("systemctl", "daemon-reload")
        run("systemctl", "stop", "pkeyd")
    start_service(SECOND, SECOND_KEYS)
    check(set(owners(STATE).values()) == {"pkeyd"}, "the state:", owners(STATE))


def local_verify():
    start_service()
    for path in (POLICY, SETTINGS):
        os.chmod(path, 0o644)
    status, said = as_nobody("pkeyctl", "verify", "--local")
    check(status == 0 and "3 ports of this host" in said, "verify --local as nobody: %d" % status, said)
    check(verify("--local")[1]["findings"] == [], "there are findings")
    status, said = run("unshare", "--uts", "sh", "-c", "hostname elsewhere && exec pkeyctl verify --local --json")
    check(status == 0 and '"host.name"' in said, "on a host of another name: %d" % status, said)
    must("systemctl", "stop", "pkeyd")
    try:
        set_key("lab2", 9, 0x8123)
        wait_for("the kernel to see it", PATIENCE, lambda: 0x8123 in kernel_keys("lab2").values())
        status, said = as_nobody("pkeyctl", "verify", "--local", "--json")
        check(status == 2, "verify --local ended with %d:" % status, said)
        doc = json.loads([line for line in said.splitlines() if line.startswith("{")][0])
        check([(d["device"], d["unexpected"], d["source"]) for d in doc["differ"]] == [("lab2", ["0x8123"], "kernel")],
              "differ:", doc["differ"])
        environment_of("lab2", 9, 0x8123)
        status, said = as_nobody("pkeyctl", "verify", "--local", "-C", "lab1")
        check(status == 0, "verify --local -C lab1: %d" % status, said)
        check(hooks() == (1, 1), "prolog and health check: not refused")
        set_key("lab2", 9, 0)
        wait_for("the kernel to see it", PATIENCE, lambda: 0x8123 not in kernel_keys("lab2").values())
        check(hooks() == (0, 0), "prolog and health check: refused")
    finally:
        must("systemctl", "start", "pkeyd")


def environment(*arguments):
    """pkeyctl env as JSON: its exit status, the object, and the codes of its findings."""
    status, said = as_nobody("pkeyctl", "env", "--format", "json", *arguments)
    doc = json.loads([line for line in said.splitlines() if line.startswith("{")][0])
    return status, doc, {f["code"] for f in doc["findings"]}


def environment_of(device, index, p_key):
    """The settings of a partition that is only in this table are as the kernel has it."""
    base = "0x%04x" % (p_key & 0x7fff)
    status, said = as_nobody("pkeyctl", "env", base, "-C", device)
    check(status == 0, "env ended with %d:" % status, said)
    for line in ("export UCX_IB_PKEY=" + base, "export NCCL_IB_PKEY=%d" % index, "export NVSHMEM_IB_PKEY_INDEX=%d" % index):
        check(line in said.splitlines(), "env lacks '%s':" % line, said)
    status, said = run("sh", "-c", "eval \"$(pkeyctl env %s)\" && echo $NCCL_IB_PKEY" % base)
    check(status == 0 and said.splitlines()[-1] == str(index), "env in a shell:", said)
    status, doc, codes = environment(base)
    check(status == 0 and "env.ports" in codes, "env does not say which ports lack the partition:", doc)
    _, doc, _ = environment()
    found = {(e["device"], e["index"], int(e["p_key"], 16)) for p in doc["partitions"] for e in p["entries"]}
    expected = {(d, i, key) for d in DEVICES for i, key in kernel_keys(d).items() if key & 0x7fff}
    check(found and found <= expected and (device, index, p_key) in found, "env --format json:", doc)
    other = next(d for d in DEVICES[1:] if d != device)
    set_key(other, index + 1, p_key & 0x7fff)
    wait_for("the kernel to see it", PATIENCE, lambda: p_key & 0x7fff in kernel_keys(other).values())
    status, doc, codes = environment(base)
    check(status == 3 and {"env.index", "env.limited"} <= codes, "another index on another port: %d" % status, doc)
    check(doc["partitions"][0]["environment"]["NCCL_IB_PKEY"] is None, "an index for both:", doc)
    set_key(other, index + 1, 0)
    wait_for("the kernel to see it", PATIENCE, lambda: p_key & 0x7fff not in kernel_keys(other).values())
    for wrong, text in (("0x0124", "no port of this host is a member of 0x0124"), ("nothing", "neither a partition of the policy")):
        status, doc, codes = environment(wrong)
        check(status == 1 and codes == {"env.partition"} and text in doc["findings"][0]["text"], "env %s:" % wrong, doc)


def hooks():
    """The results of the Slurm prolog and the node health check for this node; 0 is good."""
    prolog, _ = run(LAB + "/prolog-pkeyd")
    check_file = ("die() { shift; echo \"ERROR: $*\"; exit 1; }; . %s/pkeyd.nhc; check_pkeyd" % LAB)
    health, _ = run("bash", "-c", check_file)
    return int(prolog != 0), int(health != 0)


def no_umad():
    """All modules are loaded except the one to send MADs."""
    must("systemctl", "stop", "pkeyd")
    if fabric.opensm:
        fabric.kill_opensm()
    must("modprobe", "-r", "ib_umad")
    refusal("pkeyctl", "plan", text="umad")
    refusal("pkeyd", text="umad|device")
    status, said = run("pkeyctl", "verify", "--local")
    check(status == 0, "verify --local needs no umad, but ended with %d:" % status, said)


# --- all of it --------------------------------------------------------------------------------------------------------


def read_events():
    for line in read("/lab/events.def").splitlines():
        match = re.match(r'X\((\w+), "([0-9a-f]{32})"', line)
        if match:
            EVENTS[match.group(1)] = match.group(2)


def verdict(name, word):
    say("%s: %s" % (name, word))
    with open(RESULTS + "/verdict", "a") as f:
        f.write("%s: %s\n" % (name, word.replace("\n", " | ")[:2000]))
        f.flush()
        os.fsync(f.fileno())


def dump():
    run("journalctl", "-b", "-u", "pkeyd", "-n", "40", "--no-pager", "-o", "short-monotonic")
    for path in ["/tmp/ibsim.log", "/tmp/opensm.out"] + [bridge_log(d) for d in DEVICES]:
        say("%s:\n%s" % (path, "\n".join(read(path).splitlines()[-8:])))
    run("dmesg", "-l", "warn,err,crit,alert,emerg")


def install():
    """What the manual says to do after `make install`."""
    must("systemd-sysusers", "/usr/lib/sysusers.d/pkeyd.conf")
    must("systemctl", "restart", "systemd-udevd")
    must("systemctl", "try-reload-or-restart", "dbus")


TRACES = "/run/calls"


def trace():
    """Runs the service under strace, which stays in the background so that the main process is pkeyd."""
    os.makedirs(TRACES)
    os.chmod(TRACES, 0o1777)
    write("/run/systemd/system/pkeyd.service.d/trace.conf",
          "[Service]\nSystemCallFilter=\nReadWritePaths=%s\nExecStart=\n"
          "ExecStart=/bin/sh -c 'exec strace -D -f -c -qq -o %s/calls.$$$$ /usr/sbin/pkeyd'\n" % (TRACES, TRACES))
    must("systemctl", "daemon-reload")


def main(names):
    read_events()
    install()
    if read(LAB + "/trace"):
        trace()
    for name in names:
        say("=== " + name)
        try:
            globals()[name.replace("-", "_")]()
            verdict(name, "pass")
        except Exception as e:  # a scenario with any exception has failed
            say(traceback.format_exc())
            try:
                dump()
            finally:
                verdict(name, "%s: %s" % (type(e).__name__, e))
    run("systemctl", "stop", "pkeyd")
    for path in glob.glob(TRACES + "/*"):
        shutil.copy(path, RESULTS)
    verdict("end", "pass")


if __name__ == "__main__":
    main(sys.argv[1:])
