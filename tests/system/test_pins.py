# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that are pinned to nodes (identity: pin): a host that renames itself gains nothing and loses nothing until an admin says so,
with the daemon, after it was killed, and with pkeyctl apply.

A host of ibsim cannot change its description, but its GUIDs can change: `impostor` calls itself node0002, and takes the GUIDs of the
host that is said to have changed its name."""

import fcntl
import json
import signal
import time

from harness import (AtTerminal, Daemon, Fabric, check, check_equal, main, program, read_file, record_of, two_level, wait_for,
                     wait_sweeps)
from oracle import Policy
from private_bus import Bus, require

PIN = "identity: pin\nsweep_interval: 1s\ntimeout: 200ms\n"
STORAGE, TENANT = 0x0010, 0x0101


class Site:
    """node0001 to node0003 on leaf01, others on leaf02, where the impostor is connected later."""

    def __init__(self, settings=PIN):
        topology = two_level(2, 1, 4, names=["node0001", "node0002", "node0003", "spare1",
                                             "node0004", "node0005", "node0006", "impostor"])
        node_id, guid, _, n_ports, links = topology.hosts[7]
        topology.hosts[7] = (node_id, guid, "node0002 mlx5_0", n_ports, links)
        self.fabric, self.with_settings = Fabric(topology), settings

    def __enter__(self):
        f = self.fabric.__enter__()
        f.settings(self.with_settings)
        f.console('Unlink "impostor"')
        f.heavy_sweep()
        f.write("partitions.yaml", Policy().add("storage", STORAGE, {"node0002": "full", "node[0001,0003]": "limited"}).yaml())
        return f

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)


def guid_of(fabric, name):
    return "0x%016x" % fabric.topology.guid(name)


def keys(fabric, name):
    """The entries of the host with the GUID of this name, besides the default partition; None: it is not there."""
    port = fabric.tables().get(fabric.topology.port_guid(name))
    return None if port is None or port.table is None else [k for k in port.keys() if k & 0x7FFF != 0x7FFF]


def rename_to_node0002(fabric, name):
    """The host with the GUIDs of `name` calls itself node0002 from now on."""
    guid = fabric.topology.guid(name)
    fabric.console('Unlink "%s"' % name, 'Guid "impostor" 0x%x' % guid, 'Guid "impostor"[1] 0x%x' % (guid + 1), 'ReLink "impostor"')
    fabric.heavy_sweep()


def pkeyctl(fabric, *arguments, status=0):
    return fabric.pkeyctl(*arguments).expect(status)


def pins(fabric):
    return pkeyctl(fabric, "pins", "--json").json()


def pinned(fabric):
    return {pin["node_guid"]: pin["description"] for pin in pins(fabric)["pins"]}


def wait_for_claims(daemon, n):
    wait_for(lambda: daemon.text().count("calls itself 'node0002 mlx5_0'") == n, lambda: "claim %d; pkeyd said:\n%s" % (n, daemon.text()))


def test_renamed_host():
    """It keeps its partitions and does not get those of the name, while pkeyd runs, is killed, and starts again."""
    with Site() as f:
        daemon = Daemon(f, f.path("partitions.yaml"))
        wait_for(lambda: keys(f, "node0003") == [STORAGE], "the table of node0003")
        check_equal(pinned(f)[guid_of(f, "node0003")], "node0003 mlx5_0", "the pin")
        rename_to_node0002(f, "node0003")
        wait_for_claims(daemon, 1)
        wait_for(lambda: keys(f, "node0003") == [STORAGE], "the table of the renamed host")
        check_equal(keys(f, "node0002"), [STORAGE | 0x8000], "the host whose name was taken")
        check("is frozen" not in daemon.text(), daemon.text())
        (line,) = [line for line in daemon.text().splitlines() if "calls itself" in line]
        for part in (guid_of(f, "node0003"), guid_of(f, "node0002"), " at leaf02/",
                     "pkeyctl pin accept node0002 " + guid_of(f, "node0003")):
            check(part in line, part, "is not in", line)

        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        daemon = Daemon(f, f.path("partitions.yaml"))
        wait_for_claims(daemon, 1)
        check_equal((keys(f, "node0003"), keys(f, "node0002")), ([STORAGE], [STORAGE | 0x8000]), "tables after a crash")
        (claim,) = pins(f)["claims"]
        check_equal((claim["node_guid"], claim["description"], claim["pinned_as"], claim["pinned_to"]),
                    (guid_of(f, "node0003"), "node0002 mlx5_0", "node0003 mlx5_0", guid_of(f, "node0002")), "the claim")
        check("nothing to do" in pkeyctl(f, "plan", f.path("partitions.yaml")).out, "plan")
        check("calls itself" in pkeyctl(f, "explain", "node0002", "node0003", "--policy", f.path("partitions.yaml")).out, "explain")
        text = pkeyctl(f, "pins").out
        check("disputed, calls itself 'node0002 mlx5_0'" in text and "disputed, claimed by " + guid_of(f, "node0003") in text, text)

        out = f.pkeyctl("pin", "accept", "node0002", guid_of(f, "node0003"), "--yes", "--json").expect(0).json()["accepted"]
        check_equal([(a["node_guid"], a["pinned_as"], a["taken_from"]) for a in out],
                    [(guid_of(f, "node0003"), "node0003 mlx5_0", guid_of(f, "node0002"))], "what was accepted")
        wait_for(lambda: (keys(f, "node0003"), keys(f, "node0002")) == ([STORAGE | 0x8000], []), "the name to move")
        daemon.wait_text("no longer claims a name: its name is pinned to it")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_name_that_is_down():
    """Nor does a new host get the partitions of a host that is down; an admin can drop the name."""
    with Site() as f:
        daemon = Daemon(f, f.path("partitions.yaml"))
        wait_for(lambda: keys(f, "node0002") == [STORAGE | 0x8000], "the table of node0002")
        f.console('Unlink "node0002"', 'ReLink "impostor"')
        f.heavy_sweep()
        wait_for_claims(daemon, 1)
        check_equal(keys(f, "impostor"), [], "the impostor")
        check_equal([pin["state"] for pin in pins(f)["pins"] if pin["name"] == "node0002"], ["disputed"], "the pin")
        (pin,) = f.pkeyctl("pin", "drop", "node0002", "--yes", "--json").expect(0).json()["dropped"]
        check_equal(pin["node_guid"], guid_of(f, "node0002"), "what was dropped")
        daemon.wait_text("no longer claims a name")
        wait_for(lambda: pinned(f).get(guid_of(f, "impostor")) == "node0002 mlx5_0", "the name to be bound anew")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_store_that_is_busy():
    """A command waits while another process writes tables, and gives up after a while."""
    with Site() as f:
        f.apply(f.path("partitions.yaml")).expect(0)
        with open(f.path("state/lock"), "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.lockf(lock, fcntl.LOCK_EX)
            result = f.pkeyctl("pin", "drop", "node0001", "--yes").expect(1)
            check("is writing tables; nothing was dropped" in result.err, result)
            child = f.start(f.pkeyctl_arguments("pin", "drop", "node0001", "--yes"), "drop.log")
            time.sleep(1)
            check_equal(child.poll(), None, "the command that waits")
        check_equal(child.wait(), 0, read_file(f.path("drop.log")))
        check(guid_of(f, "node0001") not in pinned(f), pins(f))


def test_ports_on_the_bus():
    """Ports() has the names that count, as lines of the policy do."""
    require()
    with Site() as f:
        bus = Bus(f)
        daemon = Daemon(f, f.path("partitions.yaml"), environment=bus.environment())
        bus.wait_name()
        wait_for(lambda: keys(f, "node0003") == [STORAGE], "the table of node0003")
        rename_to_node0002(f, "node0003")
        wait_for_claims(daemon, 1)
        r = bus.busctl("--json=short", "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1.Leases", "Ports")
        names = {guid: name for guid, _, _, _, name, _, _ in json.loads(r.stdout)["data"][0]}
        check_equal([names[f.topology.port_guid(name)] for name in ("node0002", "node0003")], ["node0002", "node0003"], "names")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_status():
    """status and the metrics count the claims as long as there are any."""
    require()
    with Site() as f:
        bus = Bus(f)
        f.settings(PIN + "metrics: {textfile: %s}\n" % f.path("pkeyd.prom"))
        daemon = Daemon(f, f.path("partitions.yaml"), environment=bus.environment())
        bus.wait_name()

        def claims():
            return f.pkeyctl("status", "--json", **bus.environment()).expect(0, 2, 3).json()["names_claimed"]

        check_equal(claims(), 0, "claims")
        rename_to_node0002(f, "node0003")
        wait_for(lambda: claims() == 1, "a claim")
        text = f.pkeyctl("status", **bus.environment()).expect(0, 2, 3).out
        check("  claims        1 name; pkeyctl pins shows what to do\n" in text and "calls itself 'node0002 mlx5_0'" in text, text)
        wait_for(lambda: "pkeyd_name_claims 1\n" in read_file(f.path("pkeyd.prom")), "the metric")
        f.console('Unlink "impostor"')
        f.heavy_sweep()
        wait_for(lambda: claims() == 0, "the claim to end")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_apply():
    """pkeyctl apply binds names and follows them; a plan and a name that is not accepted change nothing."""
    with Site() as f:
        pkeyctl(f, "plan", f.path("partitions.yaml"), status=2)
        check_equal(pins(f)["pins"], [], "pins after a plan")
        f.apply(f.path("partitions.yaml")).expect(0)
        check_equal(pinned(f)[guid_of(f, "node0003")], "node0003 mlx5_0", "the pin")
        rename_to_node0002(f, "node0003")
        f.apply(f.path("partitions.yaml")).expect(0)
        check_equal((keys(f, "node0003"), keys(f, "node0002")), ([STORAGE], [STORAGE | 0x8000]), "tables")
        pkeyctl(f, "verify", f.path("partitions.yaml"))
        pkeyctl(f, "pin", "accept", guid_of(f, "node0003"), "--yes")
        f.apply(f.path("partitions.yaml")).expect(0)
        check_equal((keys(f, "node0003"), keys(f, "node0002")), ([STORAGE | 0x8000], []), "tables after it was accepted")


def test_replace():
    """The name of an adapter moves to another one, and its GUIDs in the policy, and nothing else of it, change."""
    with Site() as f:
        old, new = f.topology.port_guid("node0002"), f.topology.port_guid("impostor")
        policy = ("# of 0x%x\nversion: 1\npartitions:\n  storage:\n    pkey: 0x0010\n    members:\n"
                  "      node0002: full   # the server\n  tenant:\n    pkey: 0x0101\n    members: {\"node0001,0x%x\": full}\n")
        f.write("partitions.yaml", policy % (old, old))
        f.apply(f.path("partitions.yaml")).expect(0)
        f.console('Unlink "node0002"', 'ReLink "impostor"')
        f.heavy_sweep()
        arguments = ["replace", "0x%x" % old, "0x%x" % new, "--policy", f.path("partitions.yaml"), "--yes"]
        shown = pkeyctl(f, *arguments, "--json")
        check("+       members: {\"node0001,0x%016x\": full}" % new in shown.err.replace("    members", "      members"), shown)
        check_equal((shown.json()["guids"], shown.json()["written"], shown.json()["ports_vouched"]), (1, False, 1), "without --write")
        check_equal(read_file(f.path("partitions.yaml")), policy % (old, old), "the policy without --write")
        check_equal(pkeyctl(f, *arguments, "--write", "--json").json()["written"], True, "with --write")
        check_equal(read_file(f.path("partitions.yaml")), (policy % (old, new)).replace("0x%x\"" % new, "0x%016x\"" % new), "the policy")
        f.apply(f.path("partitions.yaml")).expect(0)
        check_equal(keys(f, "impostor"), [STORAGE | 0x8000, TENANT | 0x8000], "the new adapter")


def test_replace_beside_a_daemon_that_sweeps():
    """What a sweep finds of the old adapter while the person is asked is news; a sweep that finds nothing new is not."""
    with Site() as f:
        path = f.path("partitions.yaml")
        daemon = Daemon(f, path)
        wait_for(lambda: keys(f, "node0002") == [STORAGE | 0x8000], "the table of node0002")
        f.console('Unlink "node0002"', 'ReLink "impostor"')
        f.heavy_sweep()
        wait_for(lambda: record_of(f, "node0002")[0]["presence"] == "absent", "pkeyd to miss node0002")
        before = pins(f)["pins"]

        def ask():
            terminal = AtTerminal(f, "replace", guid_of(f, "node0002"), guid_of(f, "impostor"), "--policy", path)
            terminal.wait_question("until it is seen again.")
            return terminal
        replace = ask()
        for presence, command in (("there", "ReLink"), ("absent", "Unlink")):
            f.console('%s "node0002"' % command)
            f.heavy_sweep()
            wait_for(lambda presence=presence: record_of(f, "node0002")[0]["presence"] == presence, "node0002 to be " + presence)
        check("what is known of node0002 mlx5_0/1 has changed meanwhile; nothing was replaced" in replace.end(1, "y"), "why")
        check_equal(pins(f)["pins"], before, "pins")
        replace = ask()
        wait_sweeps(f, 2)
        check("is assumed to have no P_Key" in replace.end(0, "y"), "the result")
        check_equal(pinned(f)[guid_of(f, "impostor")], "node0002 mlx5_0", "the pin")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_refused():
    """What cannot be meant changes nothing."""
    with Site() as f:
        f.apply(f.path("partitions.yaml")).expect(0)
        rename_to_node0002(f, "node0003")
        before = pins(f)["pins"]
        known, renamed = guid_of(f, "node0001"), guid_of(f, "node0003")
        for arguments, words in (
                (["pin", "accept", "node0009"], "no node claims the name 'node0009'"),
                (["pin", "accept", "node0001", known], "'node0001 mlx5_0' is already pinned to %s" % known),
                (["pin", "accept", "node0001", renamed], "%s calls itself 'node0002 mlx5_0', not 'node0001'" % renamed),
                (["pin", "accept", "node0002", "0x1"], "0x1 is not a node or port in the fabric"),
                (["pin", "accept", "node0002", "12"], "'12' is not a GUID"),
                (["pin", "drop", "node0009"], "the name 'node0009' is not pinned"),
                (["pin"], "usage: pkeyctl pin accept NAME [GUID] | drop NAME"),
                (["pin", "grant"], "unknown command 'pin grant'"),
                (["replace", "0x1", "0x2"], "0x2 is not a node or port in the fabric"),
                (["replace", known, known], "are the same node"),
                (["replace", "0x1", known], "no name is pinned to 0x1"),
                (["replace", "node0001", known], "'node0001' is not a GUID")):
            result = pkeyctl(f, *arguments, "--yes", status=1)
            check(words in result.err, words, "is not in", result.err)
        check_equal(pins(f)["pins"], before, "pins")
        result = f.pkeyctl("pin", "drop", "node0001", stdin="n\n")
        check_equal((result.status, pins(f)["pins"]), (1, before), "without a terminal")


def test_off():
    """Without the key nothing is pinned, and the commands say so."""
    with Site(settings="timeout: 200ms\n") as f:
        f.apply(f.path("partitions.yaml")).expect(0)
        result = pkeyctl(f, "pins")
        check_equal(result.out, "no name is pinned\n", "pins")
        check("names are not pinned: the settings have no 'identity: pin'" in result.err, result.err)
        check_equal(pins(f)["identity"], False, "identity")


def test_unreadable():
    """If the pins cannot be read, a command does not pass over it."""
    for settings, codes in ((PIN, ["host.state-dir"]), ("timeout: 200ms\n", [])):
        with Site(settings=settings) as f:
            f.write("no-directory", "")
            data = f.run([program("pkeyctl"), "show", "ports", "--json", "--config", f.path("pkeyd.yaml"), "--state-dir",
                          f.path("no-directory")]).expect(0).json()
            check_equal([finding["code"] for finding in data["findings"]], codes, "findings with " + repr(settings))


if __name__ == "__main__":
    main()
