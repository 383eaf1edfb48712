# SPDX-License-Identifier: GPL-2.0-or-later
"""The fixtures of all system tests: ibsim, OpenSM, the programs under test, a reader.

A scenario is a Python file next to this one. It has functions whose names begin with test_, and ends with main(). Each
function makes its own Fabric (`with Fabric(topology) as fabric:`). make check runs each file as one test: 0 passed, 1 failed,
77 skipped.

Every file runs under scripts/apart, so any number of them can run in parallel. The preload library creates files in the working
directory, so every program gets its own directory below the temporary directory of the scenario.
"""

import glob
import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import madtrace
from netfile import k_ary, two_level  # noqa: F401  (for the scenarios)

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("abs_top_srcdir") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("abs_top_builddir") or os.getcwd()
PRELOAD = next(iter(glob.glob("/usr/lib/*/umad2sim/libumad2sim.so") + glob.glob("/usr/lib64/umad2sim/libumad2sim.so")), None)
SKIP = 77
PATIENCE = 90  # seconds to wait for anything


class Skip(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def check_equal(got, wanted, what):
    if got != wanted:
        raise AssertionError("%s: got %.1500r, wanted %.1500r" % (what, got, wanted))


def wait_for(condition, what, seconds=None):
    """what: a text, or a function that returns it when the time is over."""
    seconds = seconds or PATIENCE
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("timeout after %d s while waiting for %s" % (seconds, what() if callable(what) else what))


def program(name):
    """The path of a program from the build tree."""
    for path in (os.path.join(BUILD, name), os.path.join(BUILD, "tests", "system", name)):
        if os.path.exists(path):
            return path
    raise Skip("%s is not built%s" % (name, " (it needs libibnetdisc)" if name in ("readtables", "discoverboth") else ""))


def read_file(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def with_names(report):
    """A report of a sanitizer with functions and lines added to its addresses."""
    def name(match):
        r = subprocess.run(["addr2line", "-fspe", match.group(1), match.group(2)], text=True, errors="replace",
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return "%s %s" % (match.group(0), r.stdout.strip())
    return re.sub(r"\((/[^+()]+)\+(0x[0-9a-f]+)\)", name, report) if shutil.which("addr2line") else report


class Result:
    """The exit status and output of a program."""

    def __init__(self, arguments, status, out, err):
        self.arguments, self.status, self.out, self.err = arguments, status, out, err

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise AssertionError("not JSON (%s): %s" % (e, self)) from None

    def __str__(self):
        return "%s\n-> exit %s\nstdout: %s\nstderr: %s" % (
            " ".join(self.arguments), self.status, self.out[-4000:], self.err[-4000:])

    def expect(self, *statuses):
        check(self.status in statuses, "exit status should be", statuses, "but:", self)
        return self


class Fabric:
    """ibsim with one topology, and OpenSM on one of its hosts unless opensm=False.

    topology is an object of netfile.py, or the path of a file for ibsim. home is the node that stands for this host."""

    def __init__(self, topology, home=None, opensm=True, partitions_conf=None, simulator_options=(),
                 opensm_environment=None, opensm_conf=None, socket_name=None):
        self.topology, self.home, self.with_opensm = topology, home, opensm
        self.partitions_conf, self.simulator_options = partitions_conf, list(simulator_options)
        self.opensm_environment = opensm_environment or {}
        self.opensm_conf = opensm_conf
        self.socket_name = socket_name or os.environ["IBSIM_SOCKNAME"]  # of the simulator; a second one needs another
        self.simulator = self.opensm = None
        self.children = []
        self._working_directories = 0

    # --- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self):
        require_tools()
        self.dir = tempfile.mkdtemp(prefix="pkeyd-test-")
        os.mkdir(self.path("san"))
        if isinstance(self.topology, str):
            netfile = self.topology
        else:
            netfile = self.path("fabric.net")
            self.topology.write(netfile)
            self.home = self.home or self.topology.hosts[0][0]
        try:
            self._start_simulator(netfile)
            if self.with_opensm:
                self.start_opensm()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, tb):
        for child in self.children:
            if child.poll() is None:
                end(child)
        reports = self.sanitizer_reports()
        if kind and kind is not Skip:
            self.print_logs()
        for child in (self.simulator, self.opensm):
            if child and child.poll() is None:
                end(child, seconds=3)
        if not os.environ.get("KEEP_TEST_DIR"):
            shutil.rmtree(self.dir, ignore_errors=True)
        if reports and kind is None:
            raise AssertionError("a sanitizer reported:\n" + reports)
        if reports:
            sys.stderr.write("a sanitizer reported, too:\n" + reports)

    def path(self, name):
        return os.path.join(self.dir, name)

    def _start_simulator(self, netfile):
        self.simulator = subprocess.Popen(
            ["ibsim", "-s", *self.simulator_options, netfile], cwd=self.new_directory(), stdin=subprocess.PIPE,
            env=dict(os.environ, IBSIM_SOCKNAME=self.socket_name), stdout=open(self.path("ibsim.log"), "w"), stderr=subprocess.STDOUT)

        def listening():
            check(self.simulator.poll() is None, "ibsim ended:", read_file(self.path("ibsim.log"))[-2000:])
            return "@%s:ctl" % self.socket_name in read_file("/proc/net/unix")

        wait_for(listening, "ibsim to listen")

    def start_opensm(self):
        conf = self.path("partitions.conf")
        if self.partitions_conf is not None:
            self.write("partitions.conf", self.partitions_conf)
        for name in ("osm-cache", "osm-tmp"):
            os.makedirs(self.path(name), exist_ok=True)
        options = ["-F", self.write("opensm.conf", self.opensm_conf)] if self.opensm_conf is not None else []
        self.opensm = subprocess.Popen(
            ["opensm", "-d2", "-f", self.path("osm.log"), "-P", conf, *options], cwd=self.new_directory(),
            env=self.environment(OSM_CACHE_DIR=self.path("osm-cache"), OSM_TMP_DIR=self.path("osm-tmp"),
                                 **self.opensm_environment),
            stdin=subprocess.DEVNULL, stdout=open(self.path("osm.out"), "a"), stderr=subprocess.STDOUT)
        wait_for(lambda: self._sweeps() > 0, "OpenSM to bring the subnet up")

    def _sweeps(self):
        check(self.opensm.poll() is None, "OpenSM ended")
        return read_file(self.path("osm.log")).count("SUBNET UP")

    def heavy_sweep(self, times=2):
        """Makes OpenSM read its partitions.conf and do a heavy sweep. Twice, because the first sweep that ends may have begun before."""
        for _ in range(times):
            before = self._sweeps()
            self.opensm.send_signal(signal.SIGHUP)
            wait_for(lambda: self._sweeps() > before, "OpenSM's heavy sweep")

    def change_link(self, command):
        """A command to ibsim's console, and OpenSM's sweep after it: OpenSM puts its own tables back near that link."""
        self.console(command)
        self.heavy_sweep()

    def print_logs(self):
        for name in ("ibsim.log", "osm.log", "osm.out", *sorted(f for f in os.listdir(self.dir) if f.endswith(".err"))):
            text = read_file(self.path(name))
            if text.strip():
                sys.stderr.write("--- the end of %s:\n%s\n" % (name, text[-2500:]))

    def sanitizer_reports(self):
        return "".join(with_names(read_file(f)[:6000]) for f in sorted(glob.glob(self.path("san/*"))))

    # --- running programs ---------------------------------------------------------------------------------------------

    def new_directory(self):
        self._working_directories += 1
        path = self.path("cwd-%d" % self._working_directories)
        os.mkdir(path)
        return path

    def environment(self, trace=None, host=None, preload=(), **more):
        preload = [*preload, PRELOAD]
        env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", IBSIM_SOCKNAME=self.socket_name)
        for name in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "WATCHDOG_USEC"):
            env.pop(name, None)
        if trace:
            preload.insert(0, program("madtrace-preload.so"))
            env["MADTRACE"] = self.path(trace)
        if host or self.home:
            env["SIM_HOST"] = host or self.home
        env["LD_PRELOAD"] = ":".join(preload)
        san = "log_path=" + self.path("san/report")
        # symbolize=0: to find function names it would open files through the preload library, and deadlock on its lock.
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=1:symbolize=0:suppressions=%s:%s" % (
            os.path.join(HERE, "asan.supp"), san)
        env["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1:" + san
        env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + os.path.join(HERE, "lsan.supp")
        env.update(more)
        return env

    def run(self, arguments, trace=None, host=None, stdin=None, seconds=None, **more):
        """Runs a program until it ends."""
        try:
            r = subprocess.run(arguments, cwd=self.new_directory(), env=self.environment(trace, host, **more),
                               input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds or PATIENCE)
        except subprocess.TimeoutExpired as e:
            raise AssertionError("still running after %d s: %s" % (e.timeout, " ".join(arguments))) from None
        result = Result(arguments, r.returncode, r.stdout, r.stderr)
        check(r.returncode >= 0, "killed by a signal:", result)
        return result

    def start(self, arguments, log, trace=None, stdin=subprocess.DEVNULL, **more):
        """Starts a program in the background; its output goes to the file `log` in the directory of the fabric."""
        child = subprocess.Popen(arguments, cwd=self.new_directory(), env=self.environment(trace, **more),
                                 stdin=stdin, stdout=open(self.path(log), "a"), stderr=subprocess.STDOUT)
        self.children.append(child)
        return child

    def pkeyctl_arguments(self, *arguments):
        return [program("pkeyctl"), *arguments, "--config", self.settings(), "--state-dir", self.path("state")]

    def pkeyctl(self, *arguments, **how):
        return self.run(self.pkeyctl_arguments(*arguments), **how)

    def apply(self, policy, *more, **how):
        return self.pkeyctl("apply", policy, "--yes", *more, **how)

    def write(self, name, text):
        """Replaces a file in the directory of the fabric, and returns its path."""
        path = self.path(name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def copy_program(self, name):
        """A copy of a program for users who may not access the build directory."""
        path = self.path(name)
        if not os.path.exists(path):
            shutil.copy(program(name), path)
            os.chmod(path, 0o755)
        return path

    def settings(self, text=None, beside=True):
        """The path of pkeyd.yaml, which is created if necessary. beside: set beside_opensm unless the text is about OpenSM."""
        if text is not None or not os.path.exists(self.path("pkeyd.yaml")):
            text = text or "timeout: 200ms\n"
            self.write("pkeyd.yaml", text + ("beside_opensm: true\n" if beside and "opensm" not in text else ""))
        return self.path("pkeyd.yaml")

    # --- the fabric -----------------------------------------------------------------------------------------------------

    def console(self, *lines):
        """Sends commands to the console of ibsim, for example: Unlink "node0001"."""
        log = self.path("ibsim.log")
        before = read_file(log).count("sim> ")
        self.simulator.stdin.write("".join(line + "\n" for line in lines).encode())
        self.simulator.stdin.flush()
        wait_for(lambda: read_file(log).count("sim> ") >= before + len(lines), "ibsim's console to take " + repr(lines))

    def disconnect_dead(self):
        """ibsim has room for ten clients, and keeps the places of those that were killed."""
        self.console("Attached")
        latest = read_file(self.path("ibsim.log")).rpartition("sim> ")[0].rpartition("sim> ")[2]
        for client, pid in re.findall(r"Client (\d+): pid (\d+)", latest):
            if not os.path.exists("/proc/" + pid):
                self.console("X %s" % client)

    def lose(self, node, percent, attribute=0x16):
        """Makes the node lose this percentage of the MADs with this attribute."""
        self.console('Error "%s" %d %d' % (node, percent, attribute))

    def tables(self):
        """All endports, read by an independent program: {port GUID: Port}."""
        data = json.loads(self.run([program("readtables")]).expect(0).out)
        return {p.guid: p for p in map(Port, data["ports"])}

    def set_p_key(self, port, external=None, **entries):
        """Writes with another tool: set_p_key(port, i5=0x8123). external is the number of a port of that switch."""
        to = str(port.lid) if external is None else "%d/%d" % (port.lid, external)
        self.run([program("setpkey"), to, *("%s=%x" % (k[1:], v) for k, v in entries.items())]).expect(0)


class SubnetManager:
    """One of several OpenSMs on a fabric with opensm=False, with its own host, priority and files. A standby polls the master
    every 300 ms, and becomes the master after four polls without an answer."""

    def __init__(self, fabric, host, priority, partitions_conf=None):
        self.fabric, self.host = fabric, host
        self.conf = fabric.path("partitions-%s.conf" % host)
        for name in ("cache", "tmp"):
            os.makedirs(fabric.path("osm-%s-%s" % (name, host)))
        self.options = fabric.write("opensm-%s.conf" % host, "sm_priority %d\nsminfo_polling_timeout 300\n"
                                    "polling_retry_number 4\n" % priority)
        if partitions_conf is not None:
            self.set_partitions(partitions_conf)
        self.start()

    def set_partitions(self, text):
        self.fabric.write(os.path.basename(self.conf), text)

    def start(self):
        """Starts OpenSM and waits until it is master or standby."""
        log = "osm-%s.log" % self.host
        before = len(read_file(self.fabric.path(log)))
        self.process = self.fabric.start(
            ["opensm", "-F", self.options, "-f", self.fabric.path(log), "-P", self.conf], "osm-%s.err" % self.host,
            host=self.host, preload=[program("timeouts-preload.so")], OSM_CACHE_DIR=self.fabric.path("osm-cache-" + self.host),
            OSM_TMP_DIR=self.fabric.path("osm-tmp-" + self.host))
        wait_for(lambda: re.search("Entering (MASTER|STANDBY)", read_file(self.fabric.path(log))[before:]),
                 "the OpenSM of %s to begin" % self.host)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lids(self):
        """(LID, LID of the master SM) of its host's port."""
        out = self.fabric.run(["smpquery", "-D", "portinfo", "0"], host=self.host).expect(0).out
        return tuple(int(re.search(r"^%s:\.*(\d+)" % name, out, re.M).group(1)) for name in ("Lid", "SMLid"))

    def is_master(self):
        lid, sm_lid = self.lids()
        return lid and lid == sm_lid

    def wait_master(self, seconds=None):
        wait_for(self.is_master, "the OpenSM of %s to be the master" % self.host, seconds)


class Port:
    """An endport as readtables printed it."""

    def __init__(self, data):
        words = data["description"].split()
        self.guid, self.node, self.lid = int(data["port_guid"], 16), int(data["node"], 16), data["lid"]
        self.number, self.type, self.description, self.cap = data["port"], data["type"], data["description"], data["cap"]
        self.switch = data["switch"] and int(data["switch"], 16)
        self.switch_port = data["switch_port"]
        self.table = None if data["table"] is None else [int(e, 16) for e in data["table"]]
        self.name = words[0] if words else ""
        self.device = words[1] if len(words) > 1 else ""

    def keys(self):
        return sorted(k for k in self.table if k & 0x7FFF)

    def __repr__(self):
        return "<%s 0x%016x/%d>" % (self.description, self.node, self.number)


def with_host_name(name):
    """The beginning of a command that runs on a host of this name; the process stays the same. None: the name of this host."""
    if not name:
        return []
    if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("a host cannot be given a name here")
    return ["unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', name]


class Daemon:
    """pkeyd in the foreground, with a socket that receives its notifications to systemd."""

    def __init__(self, fabric, policy, trace=None, wait=True, options=(), environment=None, host=None, settings=None,
                 state="state", name="pkeyd", host_name=None):
        self.fabric, self.trace = fabric, trace
        self.log = fabric.path("pkeyd-%d.err" % len(fabric.children))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = fabric.path("notify-%d" % len(fabric.children))
        self.socket.bind(path)
        self.messages = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.process = fabric.start(
            [*with_host_name(host_name), program(name), "--config", settings or fabric.settings(), "--policy", policy, "--state-dir", fabric.path(state),
             *options],
            os.path.basename(self.log), trace=trace, host=host, NOTIFY_SOCKET=path, **(environment or {}))
        if wait:
            self.wait_ready(1)

    def _listen(self):
        # In a thread, because the daemon would block on a full socket.
        while True:
            self.messages.append(self.socket.recv(65536).decode(errors="replace").splitlines())

    def notified(self):
        """All notifications so far, as lists of lines."""
        return list(self.messages)

    def ready_count(self):
        return sum("READY=1" in m for m in self.notified())

    def status(self):
        """The last STATUS= line."""
        lines = [line for m in self.notified() for line in m if line.startswith("STATUS=")]
        return lines[-1][7:] if lines else ""

    def wait_ready(self, n):
        def ready():
            check(self.process.poll() is None, "pkeyd ended with", self.process.poll(), "\n" + self.text())
            return self.ready_count() >= n
        wait_for(ready, lambda: "READY=1 number %d from pkeyd; its log:\n%s" % (n, self.text()))

    def text(self):
        return read_file(self.log)

    def wait_text(self, words, after=0, what=None):
        """Waits until the log contains `words` after offset `after`."""
        wait_for(lambda: words in self.text()[after:],
                 what or (lambda: "pkeyd to log %r; its log:\n%s" % (words, self.text()[after:])))

    def reload(self):
        n = self.ready_count()
        self.process.send_signal(signal.SIGHUP)
        self.wait_ready(n + 1)

    def stop(self):
        """Sends SIGTERM and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)


def record_of(fabric, name, known=False):
    """The record of the port's table, or of the known port, as it is stored, and a function that stores another one, as a pkeyd
    would."""
    db = sqlite3.connect(fabric.path("state/state.db"))
    key = "known/0x%016x" % fabric.topology.port_guid(name) if known else "table/endport/0x%016x/1" % fabric.topology.guid(name)
    ((value,),) = db.execute("select value from record where key = ?", (key,))

    def store(record):
        with db:
            db.execute("update record set value = ? where key = ?", (json.dumps(record).encode(), key))
    return json.loads(value), store


def wait_sweeps(fabric, n):
    """Waits until pkeyd has stored the time of n more sweeps."""
    db = sqlite3.connect(fabric.path("state/state.db"))
    last = lambda: db.execute("select value from record where key = 'table/discovery'").fetchone()
    for _ in range(n):
        before = last()
        wait_for(lambda before=before: last() != before, "a sweep")


class AtTerminal:
    """pkeyctl with a terminal for confirmation; stdout and stderr go to one file."""

    def __init__(self, fabric, *arguments, **environment):
        self.log = fabric.path("terminal-%d" % len(fabric.children))
        self.terminal, theirs = pty.openpty()
        self.child = fabric.start(fabric.pkeyctl_arguments(*arguments), os.path.basename(self.log), stdin=theirs,
                                  **environment)
        os.close(theirs)

    def wait_question(self, words):
        wait_for(lambda: words + " [y/N] " in read_file(self.log), "the question %r" % words)
        return read_file(self.log)

    def end(self, status, answer=None):
        """Returns the output with the prompt."""
        if answer:
            os.write(self.terminal, answer.encode() + b"\n")
        check_equal(self.child.wait(timeout=PATIENCE), status, "exit status: " + read_file(self.log))
        os.close(self.terminal)
        return read_file(self.log)


def metric(path, name):
    """The sum of a metric's series in a file of pkeyd; 0: it has none."""
    return sum(float(n) for n in re.findall(r"^%s(?:\{.*\})? (\S+)$" % name, read_file(path), re.M))


def wait_growth(path, name, n):
    """Waits until a metric is larger by n than it is now."""
    before = metric(path, name)
    wait_for(lambda: metric(path, name) >= before + n, "%s to grow by %d" % (name, n))


def wait_poll_rounds(path, n=2):
    """Waits until pkeyd has polled the counters of all ports since now: the next change of one is a new one. One round may have begun
    before."""
    wait_growth(path, "pkeyd_poll_rounds_total", n)


def sets(fabric, trace):
    """The SubnSet(P_KeyTable) MADs of a trace, with all tries."""
    return madtrace.p_key_sets(madtrace.read(fabric.path(trace)))


def pause(process):
    """Stops a process. When this returns none of its threads runs; one may run for a while after the signal."""
    process.send_signal(signal.SIGSTOP)
    tasks = "/proc/%d/task" % process.pid
    wait_for(lambda: all(read_file("%s/%s/stat" % (tasks, task)).rpartition(") ")[2].startswith("T") for task in os.listdir(tasks)),
             "process %d to stop" % process.pid)


def end(child, seconds=10):
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def require_tools():
    for tool in ("ibsim", "opensm", "smpquery"):
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            raise Skip("%s is not installed (scripts/install-deps --test)" % tool)
    if not PRELOAD:
        raise Skip("libumad2sim is not installed (scripts/install-deps --test)")


def stand_apart():
    """Runs this program again under scripts/apart."""
    if os.environ.get("PKEYD_APART") != "1":
        apart = os.path.join(SOURCE, "scripts", "apart")
        os.execv(apart, [apart, sys.executable, *sys.argv])


def main():
    """Runs the test_ functions of the calling file, or those named on the command line."""
    if os.environ.get("PKEYD_NO_SYSTEM_TESTS"):
        print("SKIP: PKEYD_NO_SYSTEM_TESTS is set")
        sys.exit(SKIP)
    stand_apart()
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    module = sys.modules["__main__"]
    names = sys.argv[1:] or [n for n in vars(module) if n.startswith("test_")]
    failed = skipped = 0
    for name in names:
        began = time.monotonic()
        try:
            vars(module)[name]()
            print("ok   %s (%.1f s)" % (name, time.monotonic() - began), flush=True)
        except Skip as e:
            skipped += 1
            print("skip %s: %s" % (name, e), flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print("FAIL %s (%.1f s)" % (name, time.monotonic() - began), flush=True)
    sys.exit(1 if failed else SKIP if skipped == len(names) else 0)


def seeded(default):
    """A random generator with the seed in SEED=, or the default; prints the seed."""
    seed = int(os.environ.get("SEED", default))
    print("seed %d" % seed)
    return random.Random(seed)
