# SPDX-License-Identifier: GPL-2.0-or-later
"""A month of reboots: hosts return with the table of a reset adapter, and OpenSM reads and writes the tables of the leaf.
After each reboot no entry is lost, and no entry of a host that stayed up has moved. (If OpenSM is faster than pkeyd, it
begins a new table for a host that was reset; that host has no queue pairs left.)

ROUNDS=100 SEED=3 python3 ../tests/system/test_reboots.py: more or other reboots."""

import os

from harness import Daemon, Fabric, check_equal, main, seeded, two_level, wait_for
from oracle import Oracle, Policy, differences

ROUNDS = int(os.environ.get("ROUNDS", "15"))
AT_ONCE = 6
FRESH = 0xFFFF  # the only entry of an adapter after a reset


def policy(n):
    """A sequence of policies that add and remove several partitions at once."""
    p = Policy().add("storage", 0x0010, {"node[0001-0002]": "full", "node[0003-0016]": "limited"})
    p.add("tenant-a", 0x0101, {"node[0003-0008]": "full"})
    p.add("tenant-b", 0x0102, {"node[0009-0016]" if n % 2 == 0 else "node[0011-0016]": "full"})
    if n % 3 != 1:
        p.add("shared", 0x0200, {"node[0001-0016]": "full"})
    for k in range(n % 4):
        p.add("project-%d-%d" % (n, k), 0x0300 + 0x101 * (5 * n + k), {"node[0004-0012]": "limited" if k else "full"})
    return p


def reboot(fabric, hosts, tables):
    """Unplugs the hosts, resets their tables, and connects them again."""
    for host in hosts:
        port = next(p for p in tables.values() if p.name == host)
        used = [i for i, k in enumerate(port.table) if k & 0x7FFF]
        fabric.set_p_key(port, **{"i%d" % i: FRESH if i == 0 else 0 for i in used})
    fabric.console(*('Unlink "%s"' % host for host in hosts))
    fabric.console(*('ReLink "%s"' % host for host in hosts))


def settled(fabric, daemon, wanted):
    """The tables of this policy after a heavy sweep of OpenSM. If pkeyd read a table before OpenSM put it back by itself, pkeyd takes
    the entries out of OpenSM's file once more, and puts them back: after a reload it is not between two files."""
    daemon.reload()
    fabric.heavy_sweep()
    tables = fabric.tables()
    check_equal(differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(wanted), tables), [], "tables")
    return tables


def moved(before, after):
    """The bases that a port has in both tables at different indexes."""
    where = lambda table: {k & 0x7FFF: i for i, k in enumerate(table) if k & 0x7FFF}
    return [(before[g].name, hex(base), i, where(after[g].table)[base]) for g in before
            for base, i in where(before[g].table).items() if where(after[g].table).get(base, i) != i]


def month(fabric, settings):
    fabric.settings("sweep_interval: 1s\ntimeout: 200ms\n" + settings)
    daemon = Daemon(fabric, fabric.write("partitions.yaml", policy(0).yaml()))
    before = settled(fabric, daemon, policy(0))
    random = seeded(20261120)
    hosts = [name for name, *_ in fabric.topology.hosts if name != fabric.home]
    for n in range(ROUNDS):
        if n % 5 == 4:
            fabric.write("partitions.yaml", policy(n // 5 + 1).yaml())
            after = settled(fabric, daemon, policy(n // 5 + 1))
            check_equal(moved(before, after), [], "entries that a change of the policy moved")
            before = after
        away = random.sample(hosts, random.randint(1, AT_ONCE))
        reboot(fabric, away, before)
        if random.random() < 0.3:
            fabric.heavy_sweep()

        def as_before():
            now = fabric.tables()
            if now.keys() != before.keys() or any(p.table is None for p in now.values()):
                return False
            return all(now[g].keys() == before[g].keys() if before[g].name in away else
                       now[g].table == before[g].table for g in before)

        try:
            wait_for(as_before, "every entry to be where it was")
        except AssertionError:
            now = fabric.tables()
            for guid, port in before.items():
                if guid not in now or now[guid].table != port.table:
                    print(n, away, port.name, port.keys(), [hex(k) for k in port.table[:8]],
                          guid in now and [hex(k) for k in now[guid].table[:8]])
            raise
        before = settled(fabric, daemon, policy((n + 1) // 5))
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def test_direct_with_a_mirror():
    with Fabric(two_level(2, 2, 8)) as fabric:
        month(fabric, "opensm: {mirror: %s}\n" % fabric.path("partitions.conf"))


def test_through_opensm():
    with Fabric(two_level(2, 2, 8)) as fabric:
        month(fabric, "writer: opensm\nopensm: {partitions_conf: %s, reload: pid:%d}\n"
              % (fabric.path("partitions.conf"), fabric.opensm.pid))


main()
