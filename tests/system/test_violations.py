# SPDX-License-Identifier: GPL-2.0-or-later
"""Violations: when the console of ibsim moves a counter, the journal names the host once, with the right number."""

import re

from harness import Daemon, Fabric, check, check_equal, main, read_file, two_level, wait_for, wait_poll_rounds
from netfile import cluster
from oracle import Policy
from private_bus import Bus, require, signals

# Each sweep writes the metrics.
SETTINGS = "sweep_interval: 2s\ntimeout: 200ms\nviolations: {interval: 2s%s}\nmetrics: {textfile: %s}\n"


def policy():
    return Policy().add("lustre", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def start(fabric, more="", **how):
    fabric.settings(SETTINGS % (more, fabric.path("pkeyd.prom")))
    return Daemon(fabric, fabric.write("partitions.yaml", policy().yaml()), **how)


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def move(fabric, node, port, counter, value):
    fabric.console('PerformanceSet "%s"[%d] PortCounters.%s=%d' % (node, port, counter, value))


def violations(daemon):
    """The lines that report a violation."""
    return [line for line in daemon.text().splitlines() if re.search("Port(Rcv|Xmit)ConstraintErrors", line)]


def reports(daemon):
    """Those without the lines that the port is quiet again."""
    return [line for line in violations(daemon) if "quiet again" not in line]


def leaf_port(host):
    """(switch, port) of a host of two_level(2, 2, 4)."""
    i = int(host[-4:]) - 1
    return "leaf%02d" % (i // 4 + 1), i % 4 + 1


def baseline(daemon):
    """Waits until the present values are the baseline."""
    wait_poll_rounds(daemon.fabric.path("pkeyd.prom"))
    return len(violations(daemon))


SOURCES = {"PortRcvConstraintErrors": "port_rcv_constraint_errors", "PortXmitConstraintErrors": "port_xmit_constraint_errors"}


def in_journal(daemon):
    """{(switch port, source): sum of the reports}, without quiet lines, which repeat the sum."""
    sums = {}
    for line in violations(daemon):
        match = re.search(r"warning: switch port (\S+) dropped ([\d,]+) .*? \((Port\w+ConstraintErrors)\)", line)
        if match:
            key, n = (match.group(1), SOURCES[match.group(3)]), match.group(2)
        else:
            match = re.search(r"warning: (\S+) of switch port (\S+) is at its maximum, 255: .*?, ([\d,]+)(?: more)?"
                              r"(?: in the last [^;]+)?; the port also counts raw packets", line)
            if not match:
                check("quiet again" in line, "an unknown line:", line)
                continue
            key, n = (match.group(2), SOURCES[match.group(1)]), match.group(3)
        sums[key] = sums.get(key, 0) + int(n.replace(",", ""))
    return sums


def in_pkeyctl(fabric, bus):
    data = fabric.pkeyctl("violations", "--json", **bus.environment()).expect(0, 2).json()
    return {(v["switch"], v["source"]): v["total"] for v in data["violations"]}


def on_bus(bus):
    _, _, items = bus.call("Violations", "ts", "0", "")
    return {(v["Switch"]["data"], v["Source"]["data"]): v["Total"]["data"] for v in items}


def in_signals(monitor):
    """The violations in the signals, and the last total of each."""
    sums, totals = {}, {}
    for (v,) in signals(monitor, "Violation"):
        key = v["Switch"]["data"], v["Source"]["data"]
        totals[key] = v["Total"]["data"]
        if v["Kind"]["data"] != "quiet":
            sums[key] = sums.get(key, 0) + v["Count"]["data"]
    return sums, totals


def in_metrics(fabric):
    """The violations by port, and their sum."""
    text, found = read_file(fabric.path("pkeyd.prom")), {}
    for labels, n in re.findall(r"^pkeyd_violations_total\{(.*)\} (\d+)$", text, re.M):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found["%s/%s" % (label["switch"], label["switch_port"]), label["source"]] = int(n)
    return found, sum(int(n) for n in re.findall(r"^pkeyd_fabric_violations_total\{.*\} (\d+)$", text, re.M))


def test_one_number():
    """Journal, signals, bus, pkeyctl and metrics agree, during the violations and after."""
    require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, environment=bus.environment())
        bus.wait_name()
        monitor = bus.monitor()
        baseline(daemon)
        wanted = {}

        def count(port, counter, value, n):
            move(fabric, *port, counter, value)
            key = "%s/%d" % port, SOURCES[counter]
            wanted[key] = wanted.get(key, 0) + n

        def all_agree():
            """The present numbers; those of the metrics later."""
            wait_for(lambda: in_pkeyctl(fabric, bus) == wanted, "pkeyctl violations to show %r" % wanted)
            check_equal(on_bus(bus), wanted, "Violations() of the bus")
            total = sum(wanted.values())
            check_equal(bus.property("ViolationsTotal"), total, "ViolationsTotal")
            status = fabric.pkeyctl("status", "--json", **bus.environment()).expect(0, 2, 3).json()
            check_equal(status["violations_total"], total, "pkeyctl status")
            wait_for(lambda: in_metrics(fabric) == (wanted, total), lambda: "the metrics to show %r, not %r" % (
                wanted, in_metrics(fabric)))
            wait_for(lambda: in_journal(daemon) == wanted, lambda: "the journal to tell of %r, not %r" % (
                wanted, in_journal(daemon)))
            wait_for(lambda: in_signals(monitor)[0] == wanted, "signals to tell of %r" % wanted)
            totals = in_signals(monitor)[1]
            check(all(totals[k] <= wanted[k] for k in totals), "totals in signals:", totals, wanted)

        first, second, third = leaf_port("node0005"), leaf_port("node0002"), leaf_port("node0007")
        count(first, "PortRcvConstraintErrors", 7, 7)
        count(second, "PortXmitConstraintErrors", 255, 255)   # the episode ends
        all_agree()
        count(first, "PortRcvConstraintErrors", 19, 12)
        count(third, "PortRcvConstraintErrors", 1, 1)
        all_agree()
        fabric.write("partitions.yaml", Policy().add("lustre", 0x0010, {"node[0001-0004]": "full"}).yaml())
        daemon.reload()
        count(second, "PortXmitConstraintErrors", 4, 4)       # another program reset it
        count(first, "PortRcvConstraintErrors", 30, 11)
        all_agree()
        line = violations(daemon)[-1]
        wait_for(lambda: daemon.text().count("quiet again") >= 3, "it to be quiet again")
        all_agree()
        check("taken out of lustre (0x0010)" in daemon.text(), "no line tells of the change:", line)

        # an unknown name is not "no violations"
        r = fabric.pkeyctl("violations", "--node", "node9999", **bus.environment()).expect(1)
        check("called 'node9999'" in r.err, r)
        fabric.pkeyctl("violations", "--node", "node0001", **bus.environment()).expect(0)
        # nor does a time in the future select all
        fabric.pkeyctl("violations", "--since", "2099-01-01", **bus.environment()).expect(1)
        check_equal(bus.call("Violations", "ts", str(2 ** 62), "")[2], [], "records since the far future")
        fabric.pkeyctl("violations", "--node", "node0005", **bus.environment()).expect(2)
        stop(daemon)


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
        wait_for(lambda: reports(daemon), "the counter at its maximum to be told")
        n = len(reports(daemon))
        baseline(daemon)
        check_equal(len(reports(daemon)), n, "lines after the counter was cleared:\n" + daemon.text())
        check(all("perfquery" not in v for v in violations(daemon)), "told to clear what is cleared:", daemon.text())
        stop(daemon)


def test_standby_clears_nothing():
    """And does not say that it does."""
    with Fabric(two_level(2, 2, 4)) as fabric:
        fabric.settings("role: follow-sm\n" + SETTINGS % (", clear_saturated: true", fabric.path("pkeyd.prom")))
        daemon = Daemon(fabric, fabric.write("partitions.yaml", policy().yaml()), host="node0008")
        daemon.wait_text("standing by")
        baseline(daemon)
        move(fabric, *leaf_port("node0003"), "PortRcvConstraintErrors", 255)
        wait_for(lambda: any("255" in v for v in violations(daemon)), "the saturated counter to be told")
        told = next(v for v in violations(daemon) if "255" in v)
        check("clears it now" not in told and "perfquery -R" in told, told)
        stop(daemon)


def test_another_timeout():
    """pkeyd opens the port again for other settings of its session, and polls on. The memory of the old session may be that of the
    new one, so the sanitizer must not hold it back."""
    with Fabric(two_level(2, 2, 4)) as fabric:
        at_once = {"ASAN_OPTIONS": fabric.environment()["ASAN_OPTIONS"] + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
        daemon = start(fabric, environment=at_once)
        baseline(daemon)
        for timeout in ("300ms", "400ms"):
            fabric.settings(SETTINGS.replace("200ms", timeout) % ("", fabric.path("pkeyd.prom")))
            daemon.reload()
            baseline(daemon)
        move(fabric, *leaf_port("node0002"), "PortRcvConstraintErrors", 5)
        wait_for(lambda: violations(daemon), "a violation after the port was opened again")
        stop(daemon)


def test_cleared_before_anything_was_counted():
    """A counter at its maximum is shown as that; after a reset nothing is shown."""
    require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        bus = Bus(fabric)
        leaf, port = leaf_port("node0003")
        move(fabric, leaf, port, "PortRcvConstraintErrors", 255)
        daemon = start(fabric, environment=bus.environment())
        wait_for(lambda: violations(daemon), "the counter at its maximum to be told")
        shown = fabric.pkeyctl("violations", **bus.environment()).expect(2)
        check(re.search(r"node0003 mlx5_0/1 .* maximum$", shown.out, re.M), shown)
        move(fabric, leaf, port, "PortRcvConstraintErrors", 0)
        wait_for(lambda: not in_pkeyctl(fabric, bus), "pkeyctl violations to show nothing")
        check_equal(bus.property("ViolationsTotal"), 0, "violations")
        stop(daemon)


def test_leases():
    """What a lease gave and took is the cause, also between two sweeps; one sentence each for a host that lost one and one that has
    one."""
    require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        bus = Bus(fabric)
        fabric.settings("sweep_interval: 1h\ntimeout: 200ms\nviolations: {interval: 2s}\n")
        path = fabric.write("partitions.yaml", policy().yaml() + "pools: {jobs: {pkeys: 0x1000-0x1003, ports: ALL_CAS, lease: 2h, "
                            "rest: 1h, allow: [root]}}\n")
        daemon = Daemon(fabric, path, environment=bus.environment())
        bus.wait_name()
        lost, has, other = (leaf_port("node%04d" % i) for i in (3, 2, 8))
        values = iter(range(1, 255))
        wait_for(lambda: move(fabric, *other, "PortRcvConstraintErrors", next(values)) or violations(daemon), "a second sample")

        def lease(*arguments):
            fabric.pkeyctl("lease", *arguments, **bus.environment()).expect(0)

        lease("create", "--pool", "jobs", "--id", "j1", "--members", "node[0002-0003]")
        lease("release", "j1")
        lease("create", "--pool", "jobs", "--id", "j2", "--members", "node0002")
        for port in lost, has:
            move(fabric, *port, "PortRcvConstraintErrors", 7)

        def line_of(port):
            return next((v for v in violations(daemon) if "%s/%d" % port in v), None)

        wait_for(lambda: line_of(lost) and line_of(has), "the violations to be told")
        taken = (r"; node000%d was taken out of lease j1 \(0x1000\) [\w ]+ ago(: probably|, about when this began: perhaps) its jobs "
                 "still use the old key; ")
        check(re.search(taken % 3 + "it is a full member of lustre, a limited member of default$", line_of(lost)), line_of(lost))
        check(re.search(taken % 2 + "it is a full member of lustre and lease j2, ", line_of(has)), line_of(has))
        lease("release", "j2")
        move(fabric, *has, "PortRcvConstraintErrors", 9)
        shown = fabric.pkeyctl("violations", "-v", "--node", "node0002", **bus.environment()).expect(2).out
        check("node0002 was taken out of lease j2 (0x1001) " in shown and "lustre, a limited" in shown, shown)
        stop(daemon)


def test_boards_of_a_director():
    """The name of a director means all of its boards."""
    require()
    topology = cluster()
    board = "S-%016x" % next(guid for _, guid, description, *_ in topology.switches if "/L02/" in description)
    with Fabric(topology, home="H-0002c90300800000") as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, environment=bus.environment())
        bus.wait_name()
        baseline(daemon)

        def at(name, *options, status):
            return fabric.pkeyctl("violations", "--node", name, *options, **bus.environment()).expect(status)

        at("director1", status=0)
        at("director1", "--once", "--interval", "1s", status=0)
        at("director", status=1)
        move(fabric, board, 1, "PortRcvConstraintErrors", 3)
        wait_for(lambda: violations(daemon), "the violation to be told")
        for name in "director1", "director1:L02/U1", "director1:L02/U1/1":
            found = at(name, "--json", status=2).json()["violations"]
            check_equal([v["switch"] for v in found], ["director1:L02/U1/1"], "violations at " + name)
        at("director1:L01/U1", status=0)
        stop(daemon)


main()
