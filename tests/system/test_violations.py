# SPDX-License-Identifier: GPL-2.0-or-later
"""Violations: counters that ibsim's console moves become lines of the journal that name the host, once, with the right number."""

import re
import time

from harness import Daemon, Fabric, check, check_equal, main, two_level, wait_for
from oracle import Policy

SETTINGS = "sweep_interval: 2s\ntimeout: 200ms\nviolations: {interval: 2s%s}\n"


def policy():
    return Policy().add("lustre", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def start(fabric, more=""):
    fabric.settings(SETTINGS % more)
    return Daemon(fabric, fabric.write("partitions.yaml", policy().yaml()))


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def move(fabric, node, port, counter, value):
    fabric.console('PerformanceSet "%s"[%d] PortCounters.%s=%d' % (node, port, counter, value))


def violations(daemon):
    """Lines that tell of a violation."""
    return [line for line in daemon.text().splitlines() if re.search("Port(Rcv|Xmit)ConstraintErrors", line)]


def leaf_port(host):
    """(switch, port) that a host of two_level(2, 2, 4) is plugged into."""
    i = int(host[-4:]) - 1
    return "leaf%02d" % (i // 4 + 1), i % 4 + 1


def baseline(daemon):
    """Two rounds of the poll: what is there now is the baseline."""
    time.sleep(5)
    return len(violations(daemon))


def test_names_the_host():
    with Fabric(two_level(2, 2, 4)) as fabric:
        daemon = start(fabric)
        check_equal(baseline(daemon), 0, "violations on a fabric where nothing was refused")
        leaf, port = leaf_port("node0005")
        move(fabric, leaf, port, "PortRcvConstraintErrors", 7)
        wait_for(lambda: violations(daemon), "the violation to be told")
        line = violations(daemon)[0]
        check("node0005" in line, "the line does not name the host:", line)
        check(leaf in line, "the line does not name the switch:", line)
        check(re.search(r"\b7\b", line), "the line does not say how many:", line)
        others = ["node%04d" % i for i in range(1, 9) if i != 5]
        check(not any(o in line for o in others), "the line names a host that has to do with nothing:", line)

        move(fabric, leaf, port, "PortRcvConstraintErrors", 9)
        wait_for(lambda: len(violations(daemon)) > 1, "more violations to be told")
        check(re.search(r"\b2\b", violations(daemon)[1]), "the second line does not say 2:", violations(daemon)[1])
        stop(daemon)


def test_reset_and_saturation():
    with Fabric(two_level(2, 2, 4)) as fabric:
        leaf, port = leaf_port("node0002")
        move(fabric, leaf, port, "PortXmitConstraintErrors", 200)
        daemon = start(fabric)
        check_equal(baseline(daemon), 0, "violations told of what was there before the daemon")
        move(fabric, leaf, port, "PortXmitConstraintErrors", 3)
        wait_for(lambda: violations(daemon), "what was counted after a reset to be told")
        check(re.search(r"\b3\b", violations(daemon)[0]), "the line does not say 3:", violations(daemon)[0])
        move(fabric, leaf, port, "PortXmitConstraintErrors", 255)
        wait_for(lambda: any("255" in v for v in violations(daemon)), "the saturated counter to be told")
        stop(daemon)


def test_clear_saturated():
    with Fabric(two_level(2, 2, 4)) as fabric:
        daemon = start(fabric, ", clear_saturated: true")
        baseline(daemon)
        leaf, port = leaf_port("node0003")
        move(fabric, leaf, port, "PortRcvErrors", 11)
        move(fabric, leaf, port, "PortRcvConstraintErrors", 255)

        def value(name):
            out = fabric.run(["perfquery", str(lid), str(port)]).expect(0).out
            return int(re.search(name + r":\.*(\d+)", out).group(1))

        tables = fabric.tables()
        lid = tables[next(p.switch for p in tables.values() if p.name == "node0003")].lid
        wait_for(lambda: value("PortRcvConstraintErrors") == 0, "the counter to be cleared")
        check_equal(value("PortRcvErrors"), 11, "a counter that was not at its maximum")
        n = len(violations(daemon))
        time.sleep(5)
        check_equal(len(violations(daemon)), n, "lines after the counter was cleared:\n" + daemon.text())
        stop(daemon)


main()
