# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon on a private bus: every method, property and signal with busctl, permissions, no bus, a bus that returns."""

import fcntl
import json
import os
import signal
import subprocess

from harness import (PATIENCE, AtTerminal, Daemon, Fabric, Skip, check, check_equal, end, main, program, read_file, two_level, wait_for,
                     wait_poll_rounds)
from oracle import Policy
from private_bus import Bus, require, signals

SETTINGS = "sweep_interval: 1h\ntimeout: 200ms\n"
PROPERTIES = {"Version": "s", "Fabric": "s", "State": "s", "StatusText": "s", "Reloading": "b", "Generation": "t", "ConfirmUntil": "t", "Undone": "t", "Partitions": "u",
              "Role": "s", "Writing": "b", "Mode": "s", "PolicyFile": "s", "FileErrors": "u", "PortsManaged": "u",
              "PortsRight": "u", "PortsDiffer": "u", "PortsUnreachable": "u", "LinksSilent": "u", "PortsFrozen": "u",
              "Frozen": "s", "NamesClaimed": "u", "Claims": "s", "HeldBases": "u", "Held": "s", "Leases": "u", "LeasesReleasing": "u",
              "LastSuccess": "t", "ViolationsTotal": "t",
              "ViolationsSince": "t", "Notices": "s"}
OPEN_POLICY = """<policy context="default"><allow own="org.pkeyd1"/><allow send_destination="org.pkeyd1"/></policy>"""


def policy_one():
    return Policy().add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def policy_two():
    return policy_one().add("two", 0x0011, {"ALL_CAS": "full"})


def fabric_of():
    require()
    return Fabric(two_level(2, 2, 4))


def start(fabric, bus, policy=None, settings=SETTINGS, **more):
    fabric.settings(settings)
    path = fabric.write("partitions.yaml", (policy or policy_one()).yaml())
    daemon = Daemon(fabric, path, environment=bus.environment() if bus else None, **more)
    if bus and more.get("wait", True):
        bus.wait_name()
    return daemon


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def break_policy(fabric):
    """Returns the line with the error."""
    text = policy_one().yaml().replace("node[0005-0008]\": limited", "node[0005-0008]\": ful")
    fabric.write("partitions.yaml", text)
    return text[:text.index("[0005")].count("\n") + 1


def plain(status):
    return {key: value["data"] for key, value in status.items()}


def test_introspection():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        r = bus.busctl("introspect", "--no-legend", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1")
        members = {line.split()[0].lstrip("."): line.split()[1:3] for line in r.stdout.splitlines()}
        wanted = {name: ["property", signature] for name, signature in PROPERTIES.items()}
        wanted.update(Status=["method", "-"], Reload=["method", "-"], ReloadConfirm=["method", "t"],
                      ReloadWith=["method", "a{sv}"], Confirm=["method", "-"], Undo=["method", "-"], UndoGeneration=["method", "t"], Violations=["method", "ts"],
                      Violation=["signal", "a{sv}"], ReloadEnded=["signal", "sts"])
        check_equal(members, wanted, "what busctl introspect shows: " + r.stderr)
        r = bus.busctl("introspect", "--no-legend", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1.Leases", user="nobody")
        check_equal(sorted(line.split()[0] for line in r.stdout.splitlines()), [".Create", ".DefaultMembership", ".Edit", ".EditWith", ".List", ".ListWhole", ".Ports", ".Release", ".ReleaseWith", ".Renew", ".Show"],
                    "the interface of leases: " + r.stderr)
        check("org.pkeyd1" in bus.busctl("tree", "org.pkeyd1").stdout.replace("/", "."), "the object is not in the tree")
        stop(daemon)


def test_status_and_properties():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        status = bus.call("Status")[0]
        check_equal({key: value["type"] for key, value in status.items()}, PROPERTIES, "types of Status")
        status = plain(status)
        for name in PROPERTIES:
            check_equal(bus.property(name), status[name], "property %s beside Status" % name)
        n = len(fabric.tables())
        check_equal([status[k] for k in ("Generation", "Mode", "Role", "Writing", "State", "Partitions",
                                             "FileErrors", "Reloading")],
                    [1, "enforce", "always", True, "right", 2, 0, False], "status")
        check(status["PortsManaged"] >= n and status["PortsRight"] == status["PortsManaged"], "ports:", status)
        check(status["LastSuccess"] > 1e15, "LastSuccess is no time of day:", status["LastSuccess"])
        check_equal(status["StatusText"], daemon.status(), "StatusText, and what systemd was told")
        check_equal(status["PolicyFile"], fabric.path("partitions.yaml"), "PolicyFile")
        # all users may read
        check_equal(plain(bus.call("Status", user="nobody")[0]), status, "Status for nobody")
        check_equal(bus.property("Generation", user="nobody"), 1, "a property for nobody")
        check_equal(bus.call("Violations", "ts", "0", "", user="nobody")[1:], [0, []], "violations for nobody")
        stop(daemon)


def test_reload():
    """Reload answers when the reload has ended, and the signals agree with the answer."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        monitor = bus.monitor()
        fabric.write("partitions.yaml", policy_two().yaml())
        outcome, generation, text, findings = bus.call("Reload")
        check_equal([outcome, generation], ["carried-out", 2], "Reload")
        check_equal([f[3:6] for f in findings],
                    [["note", "plan.reach", "who can talk to whom: 0 pairs of ports lost, 6 gained; nothing else changes"],
                     ["note", "plan.reach", "node[0005-0008]: now with each other (two)"]], "findings")
        check("verified" in text, "text:", text)
        for guid, port in fabric.tables().items():
            if port.type == "ca":
                check(0x8011 in port.keys(), "not written when Reload answered:", port, port.keys())
        wait_for(lambda: signals(monitor, "ReloadEnded"), "the signal ReloadEnded")
        check_equal(signals(monitor, "ReloadEnded"), [["carried-out", 2, text]], "ReloadEnded")

        def told():
            seen = {}
            for interface, changed, invalidated in signals(monitor, "PropertiesChanged"):
                check_equal([interface, invalidated], ["org.pkeyd1", []], "PropertiesChanged")
                seen.update(plain(changed))
            return seen.get("Generation") == 2 and seen.get("Partitions") == 3 and seen.get("Reloading") is False and seen
        check_equal(wait_for(told, "PropertiesChanged")["State"] if "State" in told() else "right", "right", "state")

        check_equal(bus.call("Reload")[:2], ["unchanged", 2], "Reload of the same files")
        # the reply has a warning
        fabric.write("partitions.yaml", policy_two().add("three", 0x12, {"nobody99": "full"}).yaml())
        outcome, generation, text, findings = bus.call("Reload")
        check_equal([outcome, generation], ["carried-out", 3], "Reload with a warning")
        check(any(f[3] == "warning" and f[4] == "selector.no-match" and "nobody99" in f[5] for f in findings), findings)
        # SIGHUP sends the signal, too
        fabric.write("partitions.yaml", policy_one().yaml())
        daemon.reload()
        wait_for(lambda: [s[:2] for s in signals(monitor, "ReloadEnded")][-1:] == [["carried-out", 4]], "ReloadEnded of SIGHUP")
        stop(daemon)


def test_refused_reload():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        monitor = bus.monitor()
        line = break_policy(fabric)
        outcome, generation, text, findings = bus.call("Reload")
        check_equal([outcome, generation, text], ["refused", 1, "1 error; generation 1 stays in force"], "Reload")
        check_equal([findings[0][0], findings[0][1], findings[0][3]], [fabric.path("partitions.yaml"), line, "error"], "finding")
        check("ful" in findings[0][7] and "full" in findings[0][6], "source line and hint:", findings[0])
        check_equal(bus.property("FileErrors"), 1, "FileErrors")
        wait_for(lambda: signals(monitor, "ReloadEnded"), "the signal ReloadEnded")
        # an error that depends on the fabric: tables would overflow
        overflow = policy_one()
        for i in range(70):
            overflow.add("p%d" % i, 0x100 + i, {"ALL_CAS": "full"})
        fabric.write("partitions.yaml", overflow.yaml())
        outcome, generation, text, findings = bus.call("Reload")
        check_equal([outcome, generation], ["refused", 1], "Reload that the fabric refuses: %s" % findings)
        check(len(findings) > 0, "no findings")
        fabric.write("partitions.yaml", policy_one().yaml())
        check_equal(bus.call("Reload")[:2], ["unchanged", 1], "Reload of what is in force")
        check_equal(bus.property("FileErrors"), 0, "FileErrors")
        stop(daemon)


def test_reload_waits_for_the_apply():
    """Reload answers after the last write, even if that takes long; two simultaneous calls both get an answer."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus, settings="sweep_interval: 1h\ntimeout: 200ms\nwindow: 1\n")
        fabric.lose("node0003", 60)
        fabric.write("partitions.yaml", policy_two().yaml())
        calls = [bus.start_call("Reload") for _ in range(3)]
        for call in calls:
            out, err = call.communicate(timeout=PATIENCE)
            check_equal(call.returncode, 0, "busctl: " + err)
            outcome, generation, text, _ = json.loads(out)["data"]
            check(outcome in ("carried-out", "partial", "unchanged") and generation == 2, "Reload:", out)
            check_equal(bus.property("Generation"), 2, "Generation when Reload has answered")
        stop(daemon)


def test_reload_while_there_is_no_fabric():
    """Without a subnet manager pkeyd accepts the files, and carries them out when there is one."""
    require()
    with Fabric(two_level(2, 2, 4), opensm=False) as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        check_equal([bus.property("State"), bus.property("Generation")], ["waiting", 0], "state without an SM")
        check_equal(pkeyctl(fabric, bus, "status").status, 2, "pkeyctl status")
        check_equal(bus.call("Reload")[:2], ["waits", 0], "Reload of the same files")
        r = pkeyctl(fabric, bus, "apply", fabric.write("other.yaml", policy_two().yaml()), "--yes").expect(1)
        check("pkeyd runs on this host with another policy" in r.err, "it is about to write:", r)
        fabric.write("partitions.yaml", policy_two().yaml())
        r = pkeyctl(fabric, bus, "reload").expect(3)
        check("not carried out yet" in r.out, r)
        # a caller that does not want a reply
        check_equal(bus.busctl("--expect-reply=no", "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Reload").returncode, 0,
                    "a call without an answer")
        fabric.start_opensm()
        # "right" after the last table was verified; a success when that is stored
        wait_for(lambda: bus.property("LastSuccess") > 0, "the policy to be carried out")
        check_equal([bus.property("State"), bus.property("Partitions"), bus.property("Reloading")], ["right", 3, False], "status")
        stop(daemon)


def test_too_many_callers():
    """While a reload cannot end, because pkeyctl holds the lock, the number of callers is limited; properties can still be
    read."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        holder = open(fabric.path("state/lock"), "r+")
        fcntl.flock(holder, fcntl.LOCK_EX)
        calls = [bus.start_call("Reload") for _ in range(20)]
        wait_for(lambda: sum(c.poll() is not None for c in calls) == 4, "the surplus to be refused")
        refused = [call for call in calls if call.poll() is not None]
        for call in refused:
            err = call.communicate()[1]
            check("16 callers already wait for an answer" in err, "another error:", err)
        check_equal(bus.property("Reloading"), True, "Reloading")
        check_equal(plain(bus.call("Status")[0])["Generation"], 1, "Generation while it waits")
        holder.close()
        for call in calls:
            if call not in refused:
                out, err = call.communicate(timeout=PATIENCE)
                check_equal(json.loads(out)["data"][:2] if out else err, ["carried-out", 2], "the answer of one that waited")
        stop(daemon)


def test_only_root_may_reload():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Reload", user="nobody")
        check(r.returncode != 0 and "denied" in r.stderr.lower(), "nobody reloads:", r)
        stop(daemon)
        check("generation 2" not in daemon.text(), "it was reloaded:", daemon.text())


def test_only_root_may_reload_whatever_the_bus_says():
    """On a bus without the policy file, which allows all calls, the daemon checks the caller itself."""
    with fabric_of() as fabric:
        bus = Bus(fabric, policy=OPEN_POLICY)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Reload", user="nobody")
        check(r.returncode != 0 and "denied" in r.stderr.lower(), "nobody reloads:", r)
        check_equal(bus.property("Generation", user="nobody"), 1, "Generation")
        check_equal(bus.call("Reload")[:2], ["carried-out", 2], "Reload by root")
        stop(daemon)


def test_name_is_refused():
    """The bus refuses the name."""
    with fabric_of() as fabric:
        bus = Bus(fabric, policy="<!-- nothing -->")
        daemon = start(fabric, bus, wait=False)
        daemon.wait_ready(1)
        daemon.wait_text("not on the system bus")
        stop(daemon)


def test_no_bus():
    with fabric_of() as fabric:
        fabric.settings(SETTINGS)
        path = fabric.write("partitions.yaml", policy_one().yaml())
        daemon = Daemon(fabric, path, environment={"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=" + fabric.path("bus")})
        daemon.wait_text("not on the system bus")
        fabric.write("partitions.yaml", policy_two().yaml())
        daemon.reload()
        check("generation 2" in daemon.text(), "the reload without a bus:", daemon.text())
        bus = Bus(fabric)
        bus.wait_name()
        daemon.wait_text("on the system bus as org.pkeyd1")
        check_equal(daemon.text().count("not on the system bus"), 1, "how often it said so")
        check_equal(bus.property("Generation"), 2, "Generation")
        stop(daemon)


def test_ready_on_the_bus():
    """Once pkeyd has reported that it is ready, clients can call it. The bus is slower than the first sweep."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        bus.process.send_signal(signal.SIGSTOP)
        daemon = start(fabric, bus, wait=False)
        wait_for(lambda: "12 ports verified" in daemon.status(), "the end of the sweep")
        check_equal(daemon.ready_count(), 0, "READY=1 before pkeyd is on the bus")
        bus.process.send_signal(signal.SIGCONT)
        daemon.wait_ready(1)
        check_equal(bus.property("Generation"), 1, "Generation")
        stop(daemon)


def test_bus_comes_back():
    """The bus ends during a reload, which goes on; pkeyd connects to the next bus."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        call = bus.start_call("Reload")
        daemon.wait_text("generation 2 is in force")
        bus.stop()
        call.communicate(timeout=PATIENCE)
        daemon.wait_text("not on the system bus")
        bus.start()
        bus.wait_name()
        check_equal(bus.property("Generation"), 2, "Generation")
        check_equal(bus.call("Reload")[0], "unchanged", "Reload on the new bus")
        stop(daemon)


# --- pkeyctl ------------------------------------------------------------------------------------------------------------


def pkeyctl(fabric, bus, *arguments, **how):
    return fabric.pkeyctl(*arguments, **bus.environment(), **how)


def test_pkeyctl_status():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        status = plain(bus.call("Status")[0])
        r = pkeyctl(fabric, bus, "status").expect(0)
        check("generation 1, 2 partitions, mode enforce" in r.out and daemon.status() in r.out, r)
        check("%d managed: %d match, 0 differ, 0 unreachable" % (status["PortsManaged"], status["PortsRight"]) in r.out, r)
        j = pkeyctl(fabric, bus, "status", "--json").expect(0).json()
        check_equal([j[k] for k in ("schema", "ok", "command", "findings", "generation", "mode", "state", "ports_managed",
                                    "ports_right", "file_errors", "reloading", "text", "violations_total")],
                    [1, True, "status", [], 1, "enforce", "right", status["PortsManaged"], status["PortsRight"], 0, False,
                     status["StatusText"], 0], "status --json")
        check(j["last_success"].endswith("Z") and j["last_success"].startswith("20"), "last_success:", j["last_success"])
        check_equal(pkeyctl(fabric, bus, "status", "-q").expect(0).out, "", "status -q")
        fabric.lose("node0004", 100, 0x11)
        pkeyctl(fabric, bus, "reload")
        wait_for(lambda: bus.property("LinksSilent") == 1, "the host that hangs to be missed")
        r = pkeyctl(fabric, bus, "status").expect(3)
        check(": partial" in r.out and "  silent        1 link is up, but its other end" in r.out, r)
        fabric.lose("node0004", 0, 0x11)
        pkeyctl(fabric, bus, "reload")
        wait_for(lambda: bus.property("State") == "right", "the host to answer again")
        break_policy(fabric)
        daemon.reload()
        r = pkeyctl(fabric, bus, "status").expect(2)
        check("refused" in r.out and "1 error" in r.out, r)
        fabric.write("partitions.yaml", policy_one().yaml())
        fabric.settings("mode: audit\n" + SETTINGS)
        pkeyctl(fabric, bus, "reload").expect(0)
        port = fabric.tables()[fabric.topology.port_guid("node0003")]
        fabric.set_p_key(port, i1=0x8123)
        pkeyctl(fabric, bus, "reload").expect(0)
        wait_for(lambda: bus.property("PortsDiffer") == 1, "the port that differs")
        r = pkeyctl(fabric, bus, "status").expect(2)
        check("mode audit" in r.out and " 1 differ" in r.out, r)
        stop(daemon)


def test_pkeyctl_status_of_what_is_not_carried_out():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        theirs = fabric.write("theirs.conf", "Default=0x7fff: ALL=full;\n")
        writer = "writer: opensm\nopensm: {partitions_conf: %s, reload: 'pid:%d'}\n" % (theirs, fabric.opensm.pid)
        daemon = start(fabric, bus, settings=SETTINGS + writer)
        wait_for(lambda: bus.property("State") == "failed", "the file to be refused")
        r = pkeyctl(fabric, bus, "status").expect(2)
        check("generation 1, 2 partitions, mode enforce; the last sweep failed to carry it out" in r.out, r)
        stop(daemon)


def test_pkeyctl_reload():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        r = pkeyctl(fabric, bus, "reload").expect(0)
        check("carried out: generation 2" in r.out and "verified" in r.out, r)
        for port in fabric.tables().values():
            check(port.type != 1 or 0x8011 in port.keys(), "not written when pkeyctl reload ended:", port)
        r = pkeyctl(fabric, bus, "reload").expect(0)
        check("both files are unchanged" in r.out, r)

        line = break_policy(fabric)
        r = pkeyctl(fabric, bus, "reload").expect(1)
        place = "%s:%d:" % (fabric.path("partitions.yaml"), line)
        check(place in r.err and "did you mean 'full'" in r.err and "^" in r.err, r)
        check(r.err.rstrip().endswith("1 error; generation 2 stays in force"), r)
        # as pkeyctl check shows it
        shown = fabric.pkeyctl("check", fabric.path("partitions.yaml")).expect(1).err
        check_equal(r.err.splitlines()[:-1], shown.splitlines()[:-1], "findings of reload and of check")
        j = pkeyctl(fabric, bus, "reload", "--json").expect(1).json()
        check_equal([j["ok"], j["outcome"], j["generation"], j["findings"][0]["line"], j["findings"][0]["severity"]],
                    [False, "refused", 2, line, "error"], "reload --json")

        # a port that does not answer: partial
        fabric.write("partitions.yaml", policy_one().yaml())
        fabric.lose("node0003", 100, attribute=0)
        r = pkeyctl(fabric, bus, "reload").expect(3)
        check("partly carried out" in r.out, r)
        r = pkeyctl(fabric, bus, "status").expect(2, 3)
        check("partial" in r.out, r)
        stop(daemon)


def test_long_texts():
    """Commands for the admin are not cut in any text; systemd accepts at most 4096 bytes."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        for depth in (1, 6):
            directory = fabric.path("/".join(["d" * 200] * depth))
            os.makedirs(directory)
            conf = directory + "/partitions.conf"
            with open(conf, "w", encoding="ascii") as f:
                f.write("Default=0x7fff: ALL=full;\n")
            fabric.settings(SETTINGS + "opensm: {mirror: %s}\n" % conf)
            text = bus.call("Reload")[2]
            check("cp --backup=numbered %s %s.before-pkeyd; " % (conf, conf) in text and text.endswith("ports verified"), text)
            check_equal(bus.property("StatusText"), text, "StatusText")
            check(text in pkeyctl(fabric, bus, "status").expect(3).out, "pkeyctl status")
            status = wait_for(lambda: "does not match the policy" in daemon.status() and conf in daemon.status() and daemon.status(), "STATUS=")
            check_equal(status, text if depth == 1 else text[:3800] + "... (pkeyctl status shows all of it)", "STATUS=")
            check(max(len("\n".join(m)) for m in daemon.notified()) <= 4096, "systemd would ignore this")
        stop(daemon)


def test_pkeyctl_apply_beside_the_daemon():
    """apply of pkeyd's own policy is a reload; another policy is refused, because pkeyd would undo it at its next sweep."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        before = fabric.tables()
        other = fabric.write("other.yaml", policy_two().yaml())
        r = pkeyctl(fabric, bus, "apply", other, "--yes").expect(1)
        check("daemon.runs" in pkeyctl(fabric, bus, "apply", other, "--yes", "--json").expect(1).out, "the code")
        check("pkeyd runs on this host with another policy (%s)" % fabric.path("partitions.yaml") in r.err, r)
        check("put it into %s, then pkeyctl reload" % fabric.path("partitions.yaml") in r.err, r)
        check_equal([sorted(p.keys()) for p in fabric.tables().values()], [sorted(p.keys()) for p in before.values()], "tables")
        fabric.write("partitions.yaml", policy_two().yaml())
        daemon.process.send_signal(signal.SIGSTOP)
        r = pkeyctl(fabric, bus, "apply", other, "--yes").expect(1)
        daemon.process.send_signal(signal.SIGCONT)
        check("pkeyd is on the system bus but does not answer" in r.err and "nothing was written" in r.err, r)
        pkeyctl(fabric, bus, "apply", other).expect(1) # no terminal for the confirmation
        r = pkeyctl(fabric, bus, "apply", other, "--yes").expect(0)
        check("makes it reload the file" in r.err and "carried out: generation 2" in r.out, r)
        for port in fabric.tables().values():
            check(port.type != 1 or 0x8011 in port.keys(), "not written when pkeyctl apply ended:", port)
        fabric.settings("mode: audit\n" + SETTINGS)
        pkeyctl(fabric, bus, "reload").expect(0)
        pkeyctl(fabric, bus, "apply", fabric.write("one.yaml", policy_one().yaml()), "--yes").expect(0) # it undoes nothing
        stop(daemon)


def test_pkeyctl_apply_shows_what_the_daemon_will_carry_out():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        policy = fabric.write("partitions.yaml", policy_two().add("three", 0x0012, {"node0077": "full"}).yaml())
        question = "Have pkeyd carry out %s now?" % policy
        apply = AtTerminal(fabric, "apply", policy, **bus.environment())
        shown = apply.wait_question(question)
        plan = pkeyctl(fabric, bus, "plan", policy).expect(2).out
        check(plan.split("; nothing was sent")[0] in shown, "the plan is not shown:", shown, "plan:", plan)
        check("not confirmed" in apply.end(1, "n"), "an answer of no")

        apply = AtTerminal(fabric, "apply", policy, "--json", **bus.environment())
        check_equal(apply.wait_question(question), question + " [y/N] ", "output before the answer")
        result = json.loads(apply.end(0, "y")[len(question + " [y/N] "):])
        check_equal([result["ok"], result["outcome"]], [True, "carried-out"], "--json")
        check_equal([f["code"] for f in result["findings"]], ["selector.no-match", "daemon.runs", "plan.reach", "plan.reach"],
                    "findings, each once")
        check_equal(len({f["text"] for f in result["findings"]}), 4, "findings, each once")
        check(all(0x8011 in p.keys() for p in fabric.tables().values() if p.type == 1), "not written")

        out = AtTerminal(fabric, "apply", policy, **bus.environment()).end(0)
        check("[y/N]" not in out and "ports verified" in out, "nothing was to be confirmed:", out)

        generation = bus.property("Generation")
        fabric.write("partitions.yaml", "strict: true\n" + policy_two().add("three", 0x0012, {"node0077": "full"}).yaml())
        out = AtTerminal(fabric, "apply", policy, **bus.environment()).end(1)
        check("'node0077' matches nothing" in out and "nothing was sent" in out and "[y/N]" not in out, "no plan can be made:", out)
        check_equal([bus.property(n) for n in ("Generation", "FileErrors")], [generation, 0], "Generation and FileErrors")
        stop(daemon)


def test_pkeyctl_apply_and_a_daemon_that_changes_meanwhile():
    """If pkeyd or its file changes during the confirmation, pkeyd would carry out another policy than the confirmed one, or
    none."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        generation = bus.property("Generation")
        copy = fabric.write("copy.yaml", policy_two().yaml())
        fabric.write("partitions.yaml", policy_two().yaml())
        apply = AtTerminal(fabric, "apply", copy, **bus.environment())
        apply.wait_question("Have pkeyd carry out %s now?" % copy)
        fabric.write("partitions.yaml", policy_one().add("three", 0x0012, {"ALL_CAS": "full"}).yaml())
        out = apply.end(1, "y")
        check("pkeyd runs on this host with another policy" in out and "nothing was written" in out, out)
        check_equal(bus.property("Generation"), generation, "Generation")

        fabric.write("partitions.yaml", policy_two().yaml())
        apply = AtTerminal(fabric, "apply", copy, **bus.environment())
        apply.wait_question("Have pkeyd carry out %s now?" % copy)
        stop(daemon)
        out = apply.end(1, "y")
        check("pkeyd was stopped on this host meanwhile" in out and "again" in out, out)


def test_pkeyctl_apply_and_a_daemon_that_begins_to_write_meanwhile():
    """The state of pkeyd may change during the confirmation."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        other = fabric.write("other.yaml", policy_two().yaml())
        fabric.settings(SETTINGS)
        apply = AtTerminal(fabric, "apply", other, **bus.environment())
        apply.wait_question(" ports?")
        daemon = start(fabric, bus)
        out = apply.end(1, "y")
        check("pkeyd was started on this host meanwhile" in out and "nothing was written" in out and "again" in out, out)
        check(not any(0x8011 in p.keys() for p in fabric.tables().values() if p.type == 1), "something was written")
        fabric.settings("mode: audit\n" + SETTINGS)
        pkeyctl(fabric, bus, "reload").expect(0)
        apply = AtTerminal(fabric, "apply", other, **bus.environment())
        apply.wait_question(" ports?")
        apply.end(0, "y") # it undoes nothing
        apply = AtTerminal(fabric, "apply", fabric.write("one.yaml", policy_one().yaml()), **bus.environment())
        apply.wait_question(" ports?")
        fabric.settings(SETTINGS)
        pkeyctl(fabric, bus, "reload").expect(0)
        out = apply.end(1, "y")
        check("left audit mode" in out, out)
        stop(daemon)


def test_pkeyctl_apply_with_the_state_directory_of_the_daemon():
    """A port with another state directory may lead to another fabric, but not with that of pkeyd, under any path."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        # /var/lib/pkeyd is the daemon's directory, for this command alone
        mount = ["unshare", "--mount", "sh", "-ec", "mount -t tmpfs none /var/lib; mkdir /var/lib/pkeyd; "
                 "mount --bind \"$0\" /var/lib/pkeyd; exec \"$@\"", fabric.path("state")]
        if subprocess.run([*mount, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("no mount namespace can be made")
        other = fabric.write("other.yaml", policy_two().yaml())
        command = [program("pkeyctl"), "apply", other, "--yes", "-P", "1", "--config", fabric.settings(), "--state-dir"]
        for path in ("/var/lib/pkeyd", fabric.path("state")):
            r = fabric.run([*mount, *command, path], **bus.environment()).expect(1)
            check("pkeyd runs on this host with another policy" in r.err, r)
        fabric.run([*mount, *command, fabric.path("state-2")], **bus.environment()).expect(0)
        stop(daemon)


def test_pkeyctl_without_a_daemon():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        nowhere = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=" + fabric.path("nowhere")}
        for command in ("status", "reload", "watch", "violations"):
            for environment in (nowhere, bus.environment()):
                r = fabric.pkeyctl(command, **environment).expect(1)
                check("systemctl status pkeyd" in r.err and "need no daemon" in r.err, r)
                j = fabric.pkeyctl(command, "--json", **environment).expect(1).json()
                check_equal([j["ok"], j["findings"][0]["code"]], [False, "daemon.absent"], command + " --json")


def test_pkeyctl_and_a_daemon_that_dies():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        fabric.write("partitions.yaml", policy_two().yaml())
        with open(fabric.path("state/lock"), "r+") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            child = fabric.start(fabric.pkeyctl_arguments("reload", "--json"), "reload.out", **bus.environment())
            wait_for(lambda: bus.property("Reloading"), "the reload to begin")
            daemon.process.kill()
            check_equal(child.wait(timeout=PATIENCE), 1, "exit status of pkeyctl reload")
        check_equal(json.loads(read_file(fabric.path("reload.out")))["findings"][0]["code"], "daemon.failed", "finding")


def test_pkeyctl_and_a_daemon_that_hangs():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        daemon.process.send_signal(signal.SIGSTOP)
        for command in ("status", "violations"):
            r = fabric.pkeyctl(command, SYSTEMD_BUS_TIMEOUT="1s", **bus.environment()).expect(1)
            check("pkeyd did not answer in time" in r.err and "see systemctl status pkeyd" in r.err, r)
        daemon.process.send_signal(signal.SIGCONT)
        stop(daemon)


def test_pkeyctl_as_nobody():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        r = bus.pkeyctl_as("nobody", "status", "--json")
        check_equal([r.returncode, json.loads(r.stdout)["generation"]], [0, 1], "status as nobody: " + r.stderr)
        r = bus.pkeyctl_as("nobody", "reload", "--json")
        check_equal([r.returncode, json.loads(r.stdout)["findings"][0]["code"]], [1, "host.no-permission"], "reload as nobody")
        stop(daemon)


def test_pkeyctl_watch():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        watches = [fabric.start(fabric.pkeyctl_arguments("watch", *more), log, **bus.environment())
                   for more, log in (((), "watch.out"), (("--json",), "watch.json"), (("--quiet",), "watch.quiet"))]
        text, lines = (lambda: read_file(fabric.path("watch.out"))), (lambda: read_file(fabric.path("watch.json")))
        wait_for(lambda: "generation=1" in text() and '"status"' in lines(), "the first line")
        fabric.write("partitions.yaml", policy_two().yaml())
        daemon.reload()
        wait_for(lambda: "reload carried-out: generation 2" in text() and '"carried-out"' in lines(), "the reload's end")
        check("generation=2" in text(), "the change is not shown:", text())
        stop(daemon)
        wait_for(lambda: "pkeyd stopped" in text() and '"gone"' in lines(), "pkeyd to be gone")
        daemon = start(fabric, bus, policy_two())
        wait_for(lambda: "pkeyd stopped" not in text().splitlines()[-1], "pkeyd to be back")
        for watch in watches:
            watch.send_signal(signal.SIGINT)
            check_equal(watch.wait(timeout=PATIENCE), 0, "exit status of watch after ^C")
        check_equal(read_file(fabric.path("watch.quiet")), "", "what watch --quiet shows")
        events = [json.loads(line) for line in lines().splitlines()]
        for event in events:
            check_equal([event.get(key) for key in ("schema", "ok", "command", "findings")], [1, True, "watch", []],
                        f"the keys of every object in {event}")
        check_equal({event["event"] for event in events}, {"status", "change", "reload", "gone"}, "kinds of events")
        check_equal(events[0]["event"], "status", "the first event")
        check_equal(events[0]["status"]["generation"], 1, "generation in the first event")
        check_equal([e["reload"]["generation"] for e in events if e["event"] == "reload"], [2], "reloads")
        check(any(e["event"] == "change" and e["status"].get("generation") == 2 for e in events), "no change:", events)

        # watch ends with the bus
        watch = fabric.start(fabric.pkeyctl_arguments("watch", "--json"), "watch2.json", **bus.environment())
        wait_for(lambda: read_file(fabric.path("watch2.json")), "the first line")
        bus.stop()
        check_equal(watch.wait(timeout=PATIENCE), 1, "exit status of watch without a bus")
        first, *_, last = [json.loads(line) for line in read_file(fabric.path("watch2.json")).splitlines()]
        check_equal([first["ok"], last["schema"], last["ok"], last["command"], last["findings"][0]["code"]],
                    [True, 1, False, "watch", "daemon.failed"], "the first line and the last")
        stop(daemon)


def test_pkeyctl_violations():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        for options in ((), ("--since", "10m"), ("--since", "2026-01-31T08:00", "--node", "node0001")):
            r = pkeyctl(fabric, bus, "violations", *options).expect(0)
            check("violations" in r.out, r)
            j = pkeyctl(fabric, bus, "violations", "--json", *options).expect(0).json()
            check_equal([j["ok"], j["violations"], j["records"]], [True, [], 0], "violations --json")
        for options in (("--since", "soon"), ("--since", "10x"), ("--since", "2026-02-30T08:00"),
                        ("--since", "2026-02-20T08:00:61"), ("--node", ""),
                        ("--once", "--node", ""), ("--interval", "0s"), ("--once", "--since", "1h"),
                        ("--interval", "5s")):
            check_equal(pkeyctl(fabric, bus, "violations", "--json", *options).expect(1).json()["findings"][0]["code"], "usage",
                        str(options))
        check_equal(fabric.pkeyctl("status", "--once", "--json").expect(1).json()["findings"][0]["code"], "usage", "status --once")
        stop(daemon)


def test_violations():
    """A counter moves: the journal, the signal, the method, the property, watch and the list have the same number."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        metrics = fabric.path("pkeyd.prom")
        daemon = start(fabric, bus, settings="sweep_interval: 1s\ntimeout: 200ms\nviolations: {interval: 1s}\n"
                       "metrics: {textfile: %s}\n" % metrics)
        monitor = bus.monitor()
        watch = fabric.start(fabric.pkeyctl_arguments("watch", "--json"), "watch.json", **bus.environment())
        wait_for(lambda: '"status"' in read_file(fabric.path("watch.json")), "the first line")
        r = pkeyctl(fabric, bus, "violations").expect(0)
        check(r.out.startswith("no violations since 20"), r)

        # the first reading is the baseline, so move the counter until pkeyd sees it
        seen = [0]

        def move():
            seen[0] += 1
            fabric.console('PerformanceSet "node0002"[1] PortCounters.PortRcvConstraintErrors=%d' % seen[0])
            return signals(monitor, "Violation")
        wait_for(move, "the signal Violation")

        def still():
            """Journal, signals and property have the same sum; the violation table may be ahead of the reports."""
            told = [plain(s[0]) for s in signals(monitor, "Violation") if plain(s[0])["Kind"] in ("first", "more")]
            total = bus.property("ViolationsTotal")
            return sum(t["Count"] for t in told) == total == told[-1]["Total"] and told
        wait_poll_rounds(metrics)  # the last change may have come after the reading for the previous report
        told = wait_for(still, "all that was counted to be told")
        check(told[0]["Kind"] == "first" and told[0]["Node"].startswith("node0002"), told[0])
        check_equal([told[0]["Source"], told[0]["Port"]], ["port_rcv_constraint_errors", 1], "the signal")
        check(told[0]["Text"] in daemon.text(), "the journal does not say what the signal says:", told[0]["Text"])

        since, n, records = bus.call("Violations", "ts", "0", "")
        record = plain(records[0])
        check_equal([n, record["Total"], record["Node"]], [1, told[-1]["Total"], told[0]["Node"]], "Violations")
        check_equal(bus.property("ViolationsSince"), since, "ViolationsSince")
        for node, wanted in (("node0002", 1), ("node0003", 0)):
            check_equal(bus.call("Violations", "ts", "0", node)[1], wanted, "Violations of " + node)
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Violations", "ts", "0", "node000")
        check(r.returncode != 0 and "is called 'node000'" in r.stderr, "Violations of a name that nobody has:", r)
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "Violations", "ts", "0", "x" * 100000)
        check(r.returncode != 0 and "a name of 100000 characters" in r.stderr and len(r.stderr) < 500,
              "Violations of a long name:", r.stderr[:500])
        r = pkeyctl(fabric, bus, "violations", "--node", "x" * 1000).expect(1)
        check("a name of 1000 characters" in r.err and "node0007" in r.err, r)
        check_equal(bus.call("Violations", "ts", str(record["Last"] + 10**9), "")[1:], [0, []], "Violations after the last")

        r = pkeyctl(fabric, bus, "violations", "-v").expect(2)
        check("node0002" in r.out and "port_rcv_constraint_errors" in r.out, r)
        j = pkeyctl(fabric, bus, "violations", "--json", "--node", "node0002", "--since", "1h").expect(2).json()
        check_equal([[v["node"], v["total"], v["source"]] for v in j["violations"]],
                    [[record["Node"], record["Total"], record["Source"]]], "violations --json")
        check_equal(pkeyctl(fabric, bus, "violations", "--json", "--node", "node0003").expect(0).json()["violations"], [],
                    "violations at node0003")
        r = pkeyctl(fabric, bus, "status").expect(0)
        check("%d since" % record["Total"] in r.out, "status does not have the number:", record, r)
        events = [json.loads(line) for line in read_file(fabric.path("watch.json")).splitlines()]
        check_equal([e["violation"]["count"] for e in events if e["event"] == "violation" and
                     e["violation"]["kind"] in ("first", "more")], [t["Count"] for t in told], "counts that watch shows")
        watch.send_signal(signal.SIGTERM)
        check_equal(watch.wait(timeout=PATIENCE), 0, "exit status of watch")
        stop(daemon)


def test_violations_once():
    """Without a daemon: only violations between the two readings."""
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_one().yaml())
        fabric.apply(path).expect(0)
        # before the first reading: no violation
        fabric.console('PerformanceSet "node0002"[1] PortCounters.PortRcvConstraintErrors=7')
        r = fabric.pkeyctl("violations", "--once", "--interval", "1s", "--policy", path).expect(0)
        check("no violations within 1 s" in r.out, r)
        r = fabric.pkeyctl("violations", "--once", "--interval", "1s", "--policy", path, "--node", "node000").expect(1)
        check("is called 'node000'" in r.err, r)
        j = fabric.pkeyctl("violations", "--once", "--interval", "1s", "--policy", path, "--json").expect(0).json()
        check_equal([j["ok"], j["violations"], j["ports_silent"]], [True, [], 0], "violations --once --json")
        child = fabric.start(fabric.pkeyctl_arguments("violations", "--once", "--interval", "5s", "--policy", path, "--json",
                                                       "-v"), "once.json")
        wait_for(lambda: "read the counters" in read_file(fabric.path("once.json")), "the first look")
        fabric.console('PerformanceSet "node0002"[1] PortCounters.PortRcvConstraintErrors=12')
        check_equal(child.wait(timeout=PATIENCE), 2, "exit status: " + read_file(fabric.path("once.json")))
        j = json.loads(read_file(fabric.path("once.json")).splitlines()[-1])
        check_equal([[v["node"].split()[0], v["source"], v["total"]] for v in j["violations"]],
                    [["node0002", "port_rcv_constraint_errors", 5]], "violations --once")
        check("node0002" in j["violations"][0]["text"], "text:", j["violations"][0])


if __name__ == "__main__":
    main()
