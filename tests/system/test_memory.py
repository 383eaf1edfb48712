#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd without memory: each allocation of a reload fails once."""

import mmap
import struct

from harness import Daemon, Fabric, check, check_equal, main, program, wait_for
from netfile import two_level
from oracle import Policy
from private_bus import Bus, require

FIRST = 1000  # allocations
LEFT, DEPTH, HAPPENED = 0, 1, 2  # of struct fail_alloc_state
SETTINGS = "sweep_interval: 1h\ntimeout: 200ms\n"


def policies():
    policy = Policy().add("one", 0x0010, {"node[0001-0002]": "full", "node[0003-0004]": "limited"})
    one = policy.yaml()
    return one, policy.add("two", 0x0011, {"ALL_CAS": "full"}).yaml()


class Memory:
    """The shared page that failingpkeyd reads."""

    def __init__(self, fabric):
        self.path = fabric.path("fail-alloc")
        with open(self.path, "wb") as f:
            f.write(bytes(mmap.PAGESIZE))
        with open(self.path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        self.put(DEPTH, 1)

    def put(self, i, value):
        struct.pack_into("<I", self.page, 4 * i, value)

    def fail(self, n):
        """Makes the n-th allocation from now fail; 0: none."""
        self.put(HAPPENED, 0)
        self.put(LEFT, n)

    def happened(self):
        return struct.unpack_from("<I", self.page, 4 * HAPPENED)[0] != 0


def each_fails(settings):
    """After each failure the daemon still runs, and carries out the next reload."""
    require()
    program("failingpkeyd")
    with Fabric(two_level(1, 1, 4)) as fabric:
        bus, memory = Bus(fabric), Memory(fabric)
        fabric.settings(settings(fabric))
        one, two = policies()
        path = fabric.write("partitions.yaml", one)
        daemon = Daemon(fabric, path, name="failingpkeyd", environment=dict(bus.environment(), PKEYD_FAIL_ALLOC=memory.path))
        bus.wait_name()
        n = 0
        for n in range(1, FIRST + 1):
            fabric.write("partitions.yaml", two if n % 2 else one)
            memory.fail(n)
            failed = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Reload")
            happened = memory.happened()
            memory.fail(0)
            check(daemon.process.poll() is None, "allocation %d: pkeyd ended with" % n, daemon.process.poll(), daemon.text())
            if not happened:
                break
            wait_for(lambda: bus.call("Reload")[0] in ("carried-out", "unchanged"), "a reload after allocation %d failed" % n)
            if n % 50 < 2:
                has = {0x8011 in p.keys() for p in fabric.tables().values() if (p.name or "").startswith("node")}
                check_equal(has, {n % 2 == 1}, "the partition after allocation %d: %s%s" % (n, failed.stdout, failed.stderr))
        print("%d allocations of a reload failed, one at a time" % (n - 1))
        check(n > 100, n)
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_reload():
    each_fails(lambda fabric: SETTINGS)


if __name__ == "__main__":
    main()
