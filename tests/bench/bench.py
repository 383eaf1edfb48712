# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmarks of tests/bench/bench, in one run on one fabric. Times are medians."""

import argparse
import os
import re
import statistics
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import harness  # noqa: E402
from harness import Daemon, Fabric, check, k_ary, program  # noqa: E402

WINDOW = 128
MUTE = 50         # hosts
P_KEY_TABLE = 22  # the attribute to which they do not respond
COUNTS = struct.Struct("=QQQQ")  # struct counts of lastset.c


class Counter:
    """The file that lastset.so writes."""

    def __init__(self, fabric, name):
        self.path = fabric.path(name)
        with open(self.path, "wb") as f:
            f.write(bytes(COUNTS.size))

    def read(self):
        """smps, sets, answers to sets, seconds of the last of those"""
        with open(self.path, "rb") as f:
            smps, sets, answers, last = COUNTS.unpack(f.read())
        return smps, sets, answers, last / 1e9

    def environment(self):
        return {"LASTSET": self.path, "preload": [os.path.join(harness.BUILD, "tests/bench/lastset.so")]}


def last_set(counter, act):
    """The seconds from the start of act() to the last answer to a Set, and the numbers of Sets and SMPs."""
    before = counter.read()
    began = time.monotonic()
    act()
    smps, sets, answers, last = counter.read()
    check(sets > before[1] and answers == sets, "%d Sets, %d answers" % (sets, answers))
    return last - began, sets - before[1], smps - before[0]


def opensm_conf(n):
    return "Default=0x7fff: ALL=full;\n" + "".join("b%d=0x%04x: ALL_CAS=full;\n" % (i, 0x1000 + i) for i in range(n))


def policy(n):
    """The same policy for pkeyd, so that neither undoes the changes of the other."""
    return "version: 1\npartitions:\n  default: {pkey: 0x7fff, members: {ALL: full}}\n" + "".join(
        "  b%d: {pkey: 0x%04x, members: {ALL_CAS: full}}\n" % (i, 0x1000 + i) for i in range(n))


def measure_opensm(fabric, counter, rounds):
    out = []
    for n in range(1, rounds + 1):
        fabric.write("partitions.conf", opensm_conf(n))
        out.append(last_set(counter, lambda: fabric.heavy_sweep(1)))
    return out


def measure_daemon(fabric, counter, daemon, first, rounds):
    out = []
    for n in range(first, first + rounds):
        fabric.write("partitions.yaml", policy(n))
        out.append(last_set(counter, daemon.reload))
    return out


def others(hosts, n):
    """Partitions of all hosts except these, after those of policy()."""
    none = "".join(", %s: none" % name for name in hosts)
    return "".join("  c%d: {pkey: 0x%04x, members: {ALL_CAS: full%s}}\n" % (i, 0x2000 + i, none) for i in range(n))


def measure_beside_mute(fabric, counter, daemon, first, rounds):
    """Edits that do not concern MUTE hosts: before the hosts stop answering, and after the daemon has noticed."""
    hosts = [h[0] for h in fabric.topology.hosts[1:MUTE + 1]]  # the first is the head node
    base, out = policy(first), []
    for is_mute in (False, True):
        for name in hosts if is_mute else ():
            fabric.lose(name, 100, P_KEY_TABLE)
        if is_mute:
            daemon.reload()  # no change: a sweep
        times = []
        for n in range(rounds):
            fabric.write("partitions.yaml", base + others(hosts, 1 + n + rounds * is_mute))
            times.append(last_set(counter, daemon.reload)[0])
            print("pkeyd: SIGHUP to the last table %.3f s, without %d hosts%s" % (times[-1], MUTE, ", which are mute" if is_mute else ""),
                  flush=True)
        out.append(statistics.median(times))
    for name in hosts:
        fabric.lose(name, 0, P_KEY_TABLE)
    return out


def bare_loop(fabric, lids, smps, rounds):
    return [float(fabric.run([program("tests/bench/bareloop"), str(WINDOW), str(smps), *map(str, lids)]).expect(0).out)
            for _ in range(rounds)]


def wall(fabric, arguments, statuses, rounds):
    out = []
    for _ in range(rounds):
        began = time.monotonic()
        fabric.run(arguments).expect(*statuses)
        out.append(time.monotonic() - began)
    return out


class Used(threading.Thread):
    """The peak memory of a process in MB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak = pid, 0
        self.start()

    def run(self):
        while os.path.exists("/proc/%d" % self.pid):
            self.peak = max(self.peak, peak(self.pid))
            time.sleep(0.01)


def peak(pid):
    try:
        return int((re.findall(r"VmHWM:\s*(\d+) kB", harness.read_file("/proc/%d/status" % pid)) or [0])[0]) / 1024
    except OSError:  # it has just ended
        return 0


def cpu(pid):
    """The CPU time of a process in seconds."""
    fields = harness.read_file("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_plan(fabric, counter, policy_file, rounds):
    """A first start: seconds, SMPs and MB of the median round."""
    out = []
    for _ in range(rounds):
        before = counter.read()
        began = time.monotonic()
        child = fabric.start(fabric.pkeyctl_arguments("plan", policy_file, "--json"), "plan", **counter.environment())
        memory = Used(child.pid)
        check(child.wait() in (0, 2), "pkeyctl plan failed")
        seconds = time.monotonic() - began
        memory.join()
        smps, sets, _, _ = counter.read()
        check(sets == before[1], "pkeyctl plan wrote")
        out.append((seconds, smps - before[0], memory.peak))
        print("pkeyctl plan: %.2f s, %d SMPs, %.0f MB" % out[-1], flush=True)
    return sorted(out)[len(out) // 2]


def measure_unchanged(daemon, counter, rounds):
    """Sweeps without changes: CPU seconds, seconds and SMPs of the one with the median CPU time."""
    out = []
    for _ in range(rounds):
        before, cpu_before = counter.read(), cpu(daemon.process.pid)
        began = time.monotonic()
        daemon.reload()  # neither file has changed
        seconds = time.monotonic() - began
        smps, sets, _, _ = counter.read()
        check(sets == before[1], "%d Sets, though nothing changed" % (sets - before[1]))
        out.append((cpu(daemon.process.pid) - cpu_before, seconds, smps - before[0]))
        print("pkeyd: a sweep that finds nothing changed: %.2f s of CPU in %.2f s, %d SMPs, no Set" % out[-1], flush=True)
    return sorted(out)[len(out) // 2]


def report(name, value, what, limit):
    print("%-62s %8.2f %s   %s" % (name, value, what, "ok, limit %g" % limit if value <= limit else "OVER the limit of %g" % limit),
          flush=True)
    return value <= limit


def bring_up(fabric, counter):
    """Starts OpenSM and waits until it has written every table."""
    began = time.monotonic()
    fabric.opensm_environment = counter.environment()
    fabric.start_opensm()
    print("OpenSM brought %d hosts up in %.1f s" % (len(fabric.topology.hosts), time.monotonic() - began), flush=True)


def run(k, rounds):
    topology = k_ary(k)
    n = len(topology.hosts) + len(topology.switches)
    ports = sum(h[3] for h in topology.hosts) + sum(s[3] + 1 for s in topology.switches)
    options = ["-N", str(max(2048, 4 * n // 3)), "-S", str(max(256, 2 * len(topology.switches))),
               "-P", str(max(13312, 5 * ports // 2)), "-L", "49152"]
    with Fabric(topology, opensm=False, partitions_conf=opensm_conf(0), simulator_options=options) as fabric:
        by_opensm, by_pkeyd, by_pkeyctl = (Counter(fabric, name + ".counts") for name in ("opensm", "pkeyd", "pkeyctl"))
        bring_up(fabric, by_opensm)
        opensm = measure_opensm(fabric, by_opensm, rounds)
        for seconds, sets, _ in opensm:
            print("OpenSM: SIGHUP to the last table %.3f s, %d Sets" % (seconds, sets), flush=True)
        lids = [p.lid for p in fabric.tables().values() if p.type == 1]

        fabric.settings("window: %d\nsweep_interval: 1h\n" % WINDOW)
        policy_file = fabric.write("partitions.yaml", policy(rounds))
        plan, plan_smps, plan_memory = measure_plan(fabric, by_pkeyctl, policy_file, rounds)
        bare_plan = statistics.median(bare_loop(fabric, lids, plan_smps, rounds))
        print("bare loop: %.3f s for %d SMPs" % (bare_plan, plan_smps), flush=True)
        discover = statistics.median(wall(fabric, ["ibnetdiscover"], (0,), rounds))
        print("ibnetdiscover: %.2f s" % discover, flush=True)

        daemon = Daemon(fabric, policy_file, environment=by_pkeyd.environment(), wait=False)
        memory = Used(daemon.process.pid)
        daemon.wait_ready(1)
        pkeyd = measure_daemon(fabric, by_pkeyd, daemon, rounds + 1, rounds)
        for seconds, sets, smps in pkeyd:
            print("pkeyd: SIGHUP to the last table %.3f s, %d Sets, %d SMPs" % (seconds, sets, smps), flush=True)
        measure_unchanged(daemon, by_pkeyd, rounds)
        answering, mute = measure_beside_mute(fabric, by_pkeyd, daemon, 2 * rounds, rounds)
        check(daemon.stop() == 0, "pkeyd did not end well")
        smps = int(statistics.median(s[2] for s in pkeyd))
        bare = statistics.median(bare_loop(fabric, lids, smps, rounds))
        print("bare loop: %.3f s for %d SMPs" % (bare, smps))

        seconds = statistics.median(s[0] for s in pkeyd)
        print()
        good = [
            report("one partition more on all hosts: pkeyd / OpenSM", seconds / statistics.median(s[0] for s in opensm), "", 0.15),
            report("one partition more on all hosts: pkeyd / bare loop", seconds / bare, "", 2),
            report("an edit beside %d mute hosts / the same while they answer" % MUTE, mute / answering, "", 1.25),
            report("pkeyctl plan (%.2f s) / ibnetdiscover (%.2f s)" % (plan, discover), plan / discover, "", 0.25),
            report("pkeyctl plan (%.2f s) / bare loop (%.2f s)" % (plan, bare_plan), plan / bare_plan, "", 1.5 if k <= 36 else 2),
            report("peak memory of pkeyctl plan", plan_memory, "MB", 150),
            report("peak memory of pkeyd", memory.peak, "MB", 150 if k <= 36 else 250),
        ]
        return all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=36, help="ports of a switch [36]")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured [3]")
    arguments = parser.parse_args()
    harness.stand_apart()
    harness.PATIENCE = 900
    sys.exit(0 if run(arguments.k, arguments.rounds) else 1)


if __name__ == "__main__":
    main()
