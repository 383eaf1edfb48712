# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lease costs: of 64 hosts, on a small fabric and on a large one. Times are medians of pkeyctl, with its start."""

import argparse
import os
import re
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import harness  # noqa: E402
from bench import WINDOW, Counter, bare_loop, bring_up, report  # noqa: E402
from harness import Daemon, Fabric, check, k_ary, program  # noqa: E402
from private_bus import Bus  # noqa: E402

MEMBERS = 64
PER_SWITCH = 4  # of them, on any fabric: so each lease concerns as many switches, and takes as many MADs
CLIENTS = 8
POLICY = """version: 1
partitions:
  default: {pkey: 0x7fff, members: {ALL: full}}
pools:
  jobs: {pkeys: 0x1000-0x1fff, ports: ALL_CAS, rest: 0s, lease: 1h, allow: [root]}
"""


class Cost:
    """Of one lease: the seconds to create and to release it, and its SMPs, of each round."""

    def __init__(self):
        self.create, self.release, self.smps, self.instructions = [], [], [], 0


def choose(hosts, k):
    """PER_SWITCH hosts of each leaf switch, without that of the head node."""
    switches = [hosts[i:i + k // 2] for i in range(k // 2, len(hosts), k // 2)]
    return [h for switch in switches[:MEMBERS // PER_SWITCH] for h in switch[:PER_SWITCH]]


def lease(fabric, bus, *arguments):
    return fabric.pkeyctl("lease", *arguments, **bus.environment())


def measure(fabric, bus, counter, members, rounds):
    cost = Cost()
    for n in range(rounds):
        before = counter.read()
        began = time.monotonic()
        lease(fabric, bus, "create", "--pool", "jobs", "--id", "bench", "--members", members).expect(0)
        cost.create.append(time.monotonic() - began)
        began = time.monotonic()
        lease(fabric, bus, "release", "bench").expect(0)
        cost.release.append(time.monotonic() - began)
        cost.smps.append(counter.read()[0] - before[0])
    return cost


def rate(fabric, bus, hosts, seconds=10):
    """Leases of 8 hosts a second, by CLIENTS at once, each of hosts of its own."""
    done, end = [0] * CLIENTS, time.monotonic() + seconds

    def work(client):
        members = ",".join(hosts[8 * client:8 * client + 8])
        while time.monotonic() < end:
            name = "client%d" % client
            lease(fabric, bus, "create", "--pool", "jobs", "--id", name, "--members", members).expect(0)
            lease(fabric, bus, "release", name).expect(0)
            done[client] += 1

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)


def open_fabric(k):
    topology = k_ary(k)
    n = len(topology.hosts) + len(topology.switches)
    ports = sum(h[3] for h in topology.hosts) + sum(s[3] + 1 for s in topology.switches)
    options = ["-N", str(max(2048, 4 * n // 3)), "-S", str(max(256, 2 * len(topology.switches))),
               "-P", str(max(13312, 5 * ports // 2)), "-L", "49152"]
    return Fabric(topology, opensm=False, simulator_options=options)


def run_one(k, rounds, instructions):
    with open_fabric(k) as fabric:
        counter, bus = Counter(fabric, "pkeyd.counts"), Bus(fabric)
        bring_up(fabric, Counter(fabric, "opensm.counts"))
        # nothing else than leases: polling counters takes SMPs, too, as many as there are hosts
        fabric.settings("window: %d\nsweep_interval: 1h\nviolations: {interval: 1h}\n" % WINDOW)
        hosts = choose([h[0] for h in fabric.topology.hosts], k)  # the first is the head node
        members = ",".join(hosts)
        environment = {**bus.environment(), **counter.environment()}
        daemon = Daemon(fabric, fabric.write("partitions.yaml", POLICY), environment=environment)
        measure(fabric, bus, counter, members, 1)
        cost = measure(fabric, bus, counter, members, rounds)
        lids = [p.lid for p in fabric.tables().values() if p.description.split()[0] in hosts]
        smps = int(statistics.median(cost.smps))
        cost.bare = statistics.median(bare_loop(fabric, lids, smps, rounds))
        cost.rate = rate(fabric, bus, hosts)
        check(daemon.stop() == 0, "pkeyd did not end well")
        print("%d hosts: a lease of %d in %.0f ms, its end in %.0f ms, %d SMPs together (bare loop: %.0f ms); %.1f leases a second with "
              "%d clients" % (len(fabric.topology.hosts), MEMBERS, 1e3 * statistics.median(cost.create),
                              1e3 * statistics.median(cost.release), smps, 1e3 * cost.bare, cost.rate, CLIENTS), flush=True)
        if instructions:
            cost.instructions = count_instructions(fabric, bus, members)
            print("%d hosts: %.1f million instructions of pkeyd for a lease and its end" % (len(fabric.topology.hosts),
                                                                                        cost.instructions / 1e6), flush=True)
        return cost


def count_instructions(fabric, bus, members):
    """Of pkeyd under callgrind: what ten leases more take, by the difference of two runs that begin with the same state."""
    totals = []
    for n in (1, 1, 11):
        out = fabric.path("callgrind.%d" % n)
        child = fabric.start(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, program("pkeyd"), "--config", fabric.settings(),
                              "--policy", fabric.path("partitions.yaml"), "--state-dir", fabric.path("state")],
                             "callgrind%d.err" % n, **bus.environment())
        harness.wait_for(lambda: fabric.pkeyctl("status", "--json", **bus.environment()).status == 0, "pkeyd to start")
        harness.wait_for(lambda: fabric.pkeyctl("status", "--json", **bus.environment()).json()["state"] == "right",
                         "pkeyd to be ready")
        for i in range(n):
            lease(fabric, bus, "create", "--pool", "jobs", "--id", "bench", "--members", members, "--timeout", "10m").expect(0)
            lease(fabric, bus, "release", "bench").expect(0, 3)
        harness.end(child, 600)
        totals.append(int(re.search(r"^(?:summary|totals): (\d+)", harness.read_file(out), re.M).group(1)))
    return (totals[2] - totals[1]) / 10


def run(small, large, rounds, instructions):
    costs = [run_one(k, rounds, instructions) for k in (small, large)]
    a, b = costs
    print()
    good = [
        report("a lease of %d hosts: large fabric / small fabric" % MEMBERS,
               statistics.median(b.create) / statistics.median(a.create), "", 3),
        # the fewest: an answer that is late, on a busy host, makes pkeyd ask the port again who it is
        report("SMPs for a lease and its end: large fabric / small fabric", min(b.smps) / min(a.smps), "", 1),
    ]
    if instructions:
        good.append(report("instructions of pkeyd: large fabric / small fabric", b.instructions / a.instructions, "", 1.5))
    return all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=8, help="ports of a switch; 8 gives 128 hosts [8]")
    parser.add_argument("--large", type=int, default=36, help="36 gives 11,664 hosts [36]")
    parser.add_argument("--rounds", type=int, default=11, help="how often each is measured [11]")
    parser.add_argument("--instructions", action="store_true", help="count the instructions of pkeyd, too, with valgrind; takes minutes")
    arguments = parser.parse_args()
    harness.stand_apart()
    harness.PATIENCE = 900
    sys.exit(0 if run(arguments.small, arguments.large, arguments.rounds, arguments.instructions) else 1)


if __name__ == "__main__":
    main()
