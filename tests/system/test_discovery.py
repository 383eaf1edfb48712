# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd's discovery compared with libibnetdisc: the same nodes, ports, links, states and routes by LID, and directed routes
that lead to their ports. On generated fabrics and on real clusters, with and without a subnet manager."""

import json
import os

import netfile
from harness import Fabric, check, main, program
from test_topologies import first_host, topologies

LARGE = ["-N", "8192", "-S", "1024", "-P", "131072"]


def compare(fabric, *arguments):
    result = fabric.run([program("discoverboth"), *arguments])
    check(result.status == 0, "the snapshots differ:", result)
    return json.loads(result.out.splitlines()[-1])


def compare_on(topology, what, opensm=True, **how):
    with Fabric(topology, opensm=opensm, **how) as fabric:
        report = compare(fabric)
        print("%s%s: %s" % (what, "" if opensm else " without SM", report))
        check(report["nodes"] > 1 and report["ports"] > 1, "that is no fabric:", report)
        return report


def chain(n):
    """Switches in a row, a host at each end and in the middle."""
    topology = netfile.Topology()
    for i in range(n):
        topology.add_switch("s%02d" % i, 4)
    for i in range(n - 1):
        topology.link("s%02d" % i, 2, "s%02d" % (i + 1), 1)
    for name, i in (("node0001", 0), ("node0002", n // 2), ("node0003", n - 1)):
        topology.add_host(name)
        topology.link(name, 1, "s%02d" % i, 3)
    return topology


def torus(width):
    """Rings in two directions, two cables between adjacent switches, a host on each switch."""
    topology = netfile.Topology()
    names = [["t%d-%d" % (x, y) for y in range(width)] for x in range(width)]
    for row in names:
        for name in row:
            topology.add_switch(name, 9)
    for x in range(width):
        for y in range(width):
            for k in (1, 2):
                topology.link(names[x][y], k, names[(x + 1) % width][y], 2 + k)
                topology.link(names[x][y], 4 + k, names[x][(y + 1) % width], 6 + k)
            topology.add_host("node%02d%02d" % (x, y))
            topology.link("node%02d%02d" % (x, y), 1, names[x][y], 9)
    return topology


def rails():
    """Hosts with two ports on two leaves, a host with both ports on one leaf, one with a free port, and a cable from a switch
    to itself."""
    topology = netfile.Topology()
    for name in ("leaf01", "leaf02"):
        topology.add_switch(name, 12)
    topology.link("leaf01", 12, "leaf02", 12)
    topology.link("leaf01", 10, "leaf01", 11)
    for i in range(4):
        name = netfile.host_name(i + 1)
        topology.add_host(name, n_ports=2)
        topology.link(name, 1, "leaf01", i + 1)
        if i < 2:
            topology.link(name, 2, "leaf02", i + 1)
    topology.link("node0003", 2, "leaf01", 9)
    return topology


def test_trees():
    for opensm in (True, False):
        compare_on(netfile.two_level(3, 2, 4), "two levels", opensm)
        compare_on(netfile.k_ary(4), "4-ary tree", opensm)
    report = compare_on(netfile.k_ary(10), "10-ary tree", opensm=False)
    check(report["hops_longer"] <= 2, "directed routes are much longer than libibnetdisc's:", report)


def test_other_shapes():
    for opensm in (True, False):
        compare_on(chain(12 if opensm else 60), "a chain", opensm)  # ibsim routes at most 16 hops by LID
        compare_on(torus(4), "a torus", opensm)
        compare_on(rails(), "two rails", opensm)


def test_back_to_back():
    topology = netfile.Topology()
    for i in (1, 2):
        topology.add_host(netfile.host_name(i))
    topology.link("node0001", 1, "node0002", 1)
    compare_on(topology, "back to back", opensm=False)


def test_cables_pulled_and_reconnected():
    # without OpenSM, which would change port states between the two discoveries
    with Fabric(netfile.two_level(3, 2, 4), opensm=False) as fabric:
        before = compare(fabric)
        fabric.console('Unlink "node0005"', 'Unlink "leaf02"[5]')
        after = compare(fabric)
        check(after["ports"] == before["ports"] - 2, "a host and the switch port beside it are gone:", before, after)
        fabric.console('ReLink "node0005"', 'ReLink "leaf02"[5]')
        back = compare(fabric)
        check(back["ports"] == before["ports"], "they are back:", before, back)


def test_silent_host():
    with Fabric(netfile.two_level(2, 1, 3)) as fabric:
        fabric.lose("node0002", 100, 0x11)
        report = compare(fabric, "--retries", "1")
        check(report["ports"] == 3 + 2 * 5 and report["silent"] == 1 and report["incomplete"] == 0, report)


def test_lost_answers():
    """A fifth of the PortInfo requests is lost and repeated."""
    with Fabric(netfile.two_level(2, 1, 3), opensm=False) as fabric:
        for node in fabric.topology.switches + fabric.topology.hosts:
            fabric.lose(node[0], 20, 0x15)
        for _ in range(3):
            report = compare(fabric, "--once")
            check(report["ports"] == 3 + 2 * 6 and report["silent"] == 0 and report["incomplete"] == 0, report)


def test_neighbors_of_opensm():
    """The parser reads the file `neighbors` of the installed OpenSM, and its links are those of the walk."""
    with Fabric(netfile.k_ary(4)) as fabric:
        fabric.heavy_sweep()
        file = fabric.path("osm-cache/neighbors")
        report = compare(fabric, "--neighbors", file)
        # both ends of each cable between switches, the switch's end of each host's, and our own
        check(report["cables"] == 2 * 32 + 16 + 1, "not all cables are in OpenSM's file:", report)


def test_topologies():
    for path in topologies():
        report = compare_on(path, os.path.basename(path), home=first_host(path), simulator_options=LARGE)
        check(report["nodes"] > 10, report)
        compare_on(path, os.path.basename(path), opensm=False, home=first_host(path), simulator_options=LARGE)


if __name__ == "__main__":
    main()
