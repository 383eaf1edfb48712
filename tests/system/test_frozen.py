# SPDX-License-Identifier: GPL-2.0-or-later
"""A policy in force keeps working if errors concern single ports: a second host takes a name, a host is unplugged with
`strict`. These ports stay as they are; drift of others is repaired, edits that revoke are carried out, and a new policy with
other such errors is refused."""

import re

from harness import Daemon, Fabric, check, check_equal, main, two_level, wait_for
from oracle import Policy

SETTINGS = "sweep_interval: 1s\ntimeout: 200ms\n"
STORAGE, TENANT = 0x0010, 0x0101


def port_named(fabric, node):
    return fabric.tables().get(fabric.topology.port_guid(node))


def keys(fabric, node):
    """The entries of this host besides the default partition; None: it is absent."""
    port = port_named(fabric, node)
    return None if port is None or port.table is None else [k for k in port.keys() if k & 0x7FFF != 0x7FFF]


def wait_for_keys(fabric, node, *wanted):
    wait_for(lambda: keys(fabric, node) == list(wanted), "%s to hold %s" % (node, [hex(k) for k in wanted]))


def wipe(fabric, node):
    """Another program removes all entries except the default partition."""
    port = port_named(fabric, node)
    fabric.set_p_key(port, **{"i%d" % i: 0 for i, k in enumerate(port.table) if k & 0x7FFF not in (0, 0x7FFF)})


def start(fabric, policy):
    fabric.settings(SETTINGS)
    return Daemon(fabric, fabric.write("partitions.yaml", policy.yaml()))


def reload(fabric, daemon, policy):
    """Returns the log of the daemon meanwhile."""
    before = len(daemon.text())
    fabric.write("partitions.yaml", policy.yaml())
    daemon.reload()
    return daemon.text()[before:]


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def texts(result, severity, code=None):
    """What a command that wrote JSON has found of this severity."""
    return [f["text"] for f in result["findings"] if f["severity"] == severity and code in (None, f["code"])]


def show_all(fabric, path, words, *pair):
    """Each command that shows the fabric shows it, and these words among its errors. Returns their results."""
    results = {}
    for command in (["ports"], ["port", pair[0]], ["partitions"], ["matrix"], ["explain", *pair]):
        command = command if command[0] == "explain" else ["show", *command]
        results[command[1]] = fabric.pkeyctl(*command, "--policy", path, "--json").expect(0, 2).json()
        check_equal(results[command[1]]["ok"], True, " ".join(command))
        check(any(words in t for t in texts(results[command[1]], "error")), command, "does not report:", words)
    return results


def diagnoses(fabric, path):
    return {f["code"]: f for f in fabric.pkeyctl("doctor", path, "--json").expect(2).json()["findings"]}


def members(conf, base):
    """{GUID: membership} of a partition in a file for OpenSM."""
    line = "".join(line for line in conf.replace("\n    ", " ").splitlines() if "=0x%04x" % base in line)
    return {int(m[1], 16): m[2] for m in re.finditer(r"(0x[0-9a-f]{16})=(\w+)", line)}


# --- names ------------------------------------------------------------------------------------------------------------

def names_fabric():
    """node0001 to 0003 on leaf01, 0004 to 0006 on leaf02, and a second one there with the name node0002."""
    topology = two_level(2, 1, 4, names=["node0001", "node0002", "node0003", "spare1",
                                         "node0004", "node0005", "node0006", "impostor"])
    node_id, guid, _, n_ports, links = topology.hosts[7]
    topology.hosts[7] = (node_id, guid, "node0002 mlx5_0", n_ports, links)
    return Fabric(topology)


def names_policy(tenant):
    policy = Policy().add("storage", STORAGE, {"node0002": "full", "@leaf02": "limited"})
    return policy.add("tenant", TENANT, tenant)


def let_it_in(fabric):
    fabric.console('ReLink "impostor"')
    fabric.heavy_sweep()
    wait_for(lambda: port_named(fabric, "impostor"), "the impostor to be there")


def start_with_impostor(fabric, policy):
    fabric.console('Unlink "impostor"')
    fabric.heavy_sweep()
    daemon = start(fabric, policy)
    wait_for_keys(fabric, "node0002", STORAGE | 0x8000)
    let_it_in(fabric)
    wait_for(lambda: daemon.text().count("is frozen: ") == 2, lambda: "two ports to be frozen; pkeyd said:\n" + daemon.text())
    # OpenSM wrote the tables of the leaf with the new host; pkeyd repairs them although a member of the partition is frozen
    wait_for(lambda: all((keys(fabric, node) or [])[:1] == [STORAGE] for node in ("node0004", "node0005", "node0006")),
             "the tables of leaf02 to be repaired")
    return daemon


def test_second_host_claims_a_name():
    with names_fabric() as fabric:
        policy = names_policy({"node0003": "full", "node0005": "full"})
        daemon = start_with_impostor(fabric, policy)
        said = daemon.text()
        check("two equally specific lines of the policy disagree" in said, "the impostor is on leaf02 and called node0002:", said)
        check("another adapter has the same name" in said, "node0002 has a namesake:", said)
        check_equal(keys(fabric, "impostor"), [], "the impostor's table")
        check_equal(keys(fabric, "node0002"), [STORAGE | 0x8000], "node0002's table")

        # drift of others is repaired, also in the partition with the frozen member
        for node, wanted in (("node0003", TENANT | 0x8000), ("node0004", STORAGE)):
            wipe(fabric, node)
            wait_for_keys(fabric, node, wanted)

        # an edit that revokes from a third host, and gives a fourth one its place
        policy = names_policy({"node0003": "full", "node0006": "full"})
        said = reload(fabric, daemon, policy)
        check("generation 2 is in force" in said, "reload:", said)
        wait_for_keys(fabric, "node0005", STORAGE)
        wait_for_keys(fabric, "node0006", STORAGE, TENANT | 0x8000)
        check_equal(keys(fabric, "impostor"), [], "the impostor's table after an edit")

        # a policy with an error of its own is refused
        said = reload(fabric, daemon, names_policy({"node0003": "full", "@leaf01": "limited"}))
        check("generation 2 stays in force" in said, "reload with lines that disagree about node0003:", said)
        check_equal(daemon.status().count("refused"), 1, "status: " + daemon.status())
        fabric.write("partitions.yaml", policy.yaml())

        # the impostor drops the name, and gets the partitions of the line with its switch
        fabric.console('Unlink "impostor"')
        wait_for(lambda: daemon.text().count("is no longer frozen") == 2, "the ports to be no longer frozen")
        stop(daemon)


def test_restart_beside_a_second_host():
    """The policy that was in force when pkeyd last ran is not a new one."""
    with names_fabric() as fabric:
        policy = names_policy({"node0003": "full"})
        daemon = start_with_impostor(fabric, policy)
        stop(daemon)
        wipe(fabric, "node0003")
        daemon = start(fabric, policy)
        check_equal(daemon.text().count("is frozen: "), 2, "frozen ports; pkeyd said:\n" + daemon.text())
        wait_for_keys(fabric, "node0003", TENANT | 0x8000)
        check_equal(keys(fabric, "impostor"), [], "the impostor's table")
        stop(daemon)


def test_plan_beside_a_second_host():
    with names_fabric() as fabric:
        policy = names_policy({"node0003": "full"})
        daemon = start_with_impostor(fabric, policy)
        stop(daemon)
        path = fabric.path("partitions.yaml")
        result = fabric.pkeyctl("plan", path, "--json").expect(3).json()
        check_equal(sorted((f["node"], f["reason"]) for f in result["frozen"]), [("node0002", "lines"), ("node0002", "name")],
                    "frozen ports")
        check_equal((result["ok"], result["changes"]), (True, 0), "ok, changes")
        frozen = [f for f in result["findings"] if f["code"] == "port.frozen"]
        check_equal([f["severity"] for f in frozen].count("error"), 2, "findings: %s" % frozen)
        check(any("policy in force" in f["text"] for f in frozen), "why it is not refused:", frozen)
        text = fabric.pkeyctl("plan", path).expect(3)
        check("is frozen: " in text.err and "hint: " in text.err, "plan:", text)
        report = fabric.pkeyctl("report", "--policy", path, "--json").expect(3).json()
        check_equal([report["counts"][key] for key in ("unreachable", "silent", "frozen")], [0, 0, 2], "counts of the report")

        # the other commands work, too, and say the same
        result = fabric.pkeyctl("verify", path, "--json").expect(3).json()
        check_equal((len(result["frozen"]), result["differ"], result["unreachable"]), (2, [], []), "verify")
        check_equal(sorted(f["reason"] for f in result["frozen"]), ["lines", "name"], "frozen ports of verify")
        check(any("freezes the ports" in t for t in texts(result, "note")), "why verify does not refuse it:", result["findings"])
        check("0 differ from the policy, 2 are frozen" in fabric.pkeyctl("verify", path).expect(3).out, "text of verify")
        check("2 are frozen" in fabric.pkeyctl("report", "--policy", path, "--output", fabric.path("r.html")).expect(3).out, "report")
        shown = show_all(fabric, path, "disagree", "node0003", "node0001")
        check_equal(len(texts(shown["ports"], "error", "port.frozen")), 2, "frozen ports of show ports")
        check(not texts(shown["port"], "error", "port.frozen"), "frozen ports whose tables were not read:", shown["port"])
        shown = fabric.pkeyctl("show", "port", "node0002", "--policy", path, "--json").expect(0).json()["ports"]
        check_equal({p["port_guid"]: p["wanted"] for p in shown}["0x%016x" % fabric.topology.port_guid("impostor")],
                    ["0x0010", "0x7fff"], "what the lines give the impostor")
        found = diagnoses(fabric, path)
        check(not {"policy.refused", "policy.differs"} & set(found), "diagnoses:", sorted(found))
        check_equal(sorted((w["node"], w["text"][:11]) for w in found["port.frozen"]["where"]),
                    [("node0002", "another ada"), ("node0002", "two equally")], "where ports are frozen")
        check(any("disagree" in w["text"] for w in found["policy.warnings"]["where"]), "warnings:", found["policy.warnings"])
        conf = fabric.pkeyctl("export", "opensm", path).expect(3).out
        check_equal(members(conf, STORAGE), {fabric.topology.port_guid(n): m for n, m in
                                             (("node0002", "full"), ("node0004", "limited"), ("node0005", "limited"),
                                              ("node0006", "limited"))}, "storage in " + conf)

        # the rest of a change is planned and applied
        other = fabric.write("other.yaml", names_policy({"node0003": "full", "node0005": "full"}).yaml())
        fabric.pkeyctl("plan", other).expect(2)
        fabric.apply(other).expect(3)
        check_equal(keys(fabric, "node0005"), [STORAGE, TENANT | 0x8000], "node0005's table")
        check_equal(keys(fabric, "impostor"), [], "the impostor's table")

        # with an empty state directory it is a new policy
        fresh = fabric.run([*fabric.pkeyctl_arguments("plan", path), "--state-dir", fabric.path("fresh")]).expect(1)
        check("disagree" in fresh.err, "plan of a new policy:", fresh)
        fresh = fabric.run([*fabric.pkeyctl_arguments("verify", path), "--state-dir", fabric.path("fresh")]).expect(1)
        check("disagree" in fresh.err and "is frozen" not in fresh.err, "verify of a new policy:", fresh)
        fresh = fabric.run([*fabric.pkeyctl_arguments("show", "ports", "--policy", path), "--state-dir", fabric.path("fresh")])
        check("disagree" in fresh.expect(0).err, "show of a new policy:", fresh)


def test_twins():
    """Two hosts with one name are frozen from the beginning; nothing refuses the policy."""
    with names_fabric() as fabric:
        policy = Policy().add("storage", STORAGE, {"node0002": "full", "node0004": "limited"})
        path = fabric.write("partitions.yaml", policy.yaml())
        check_equal(len(fabric.pkeyctl("plan", path, "--json").expect(2).json()["frozen"]), 2, "frozen ports of a new policy")
        result = fabric.pkeyctl("verify", path, "--json").expect(2).json()
        check_equal("node0002" in {d["node"] for d in result["differ"]}, False, "verify of a new policy")
        fabric.apply(path).expect(3)
        for command in (["plan", path], ["report", "--policy", path]):
            fabric.pkeyctl(*command, "--json").expect(3)
        result = fabric.pkeyctl("verify", path, "--json").expect(3).json()
        check_equal([(f["node"], f["reason"]) for f in result["frozen"]], [("node0002", "name")] * 2, "frozen ports")
        check_equal((result["ok"], result["differ"]), (False, []), "verify")
        found = diagnoses(fabric, path)
        check("policy.differs" not in found, found)
        check_equal([w["node"] for w in found["port.frozen"]["where"]], ["node0002"] * 2, "where ports are frozen")
        show_all(fabric, path, "another adapter has the same name", "node0002", "node0003")
        conf = fabric.pkeyctl("export", "opensm", path).expect(3)
        check_equal(members(conf.out, STORAGE), {fabric.topology.port_guid("node0004"): "limited"}, "storage in " + conf.out)
        check("is frozen" in conf.err, conf)
        conf = fabric.pkeyctl("export", "opensm", path, "--topology", fabric.path("fabric.net")).expect(3)
        check(fabric.topology.port_guid("node0002") not in members(conf.out, STORAGE), "of a topology:", conf)


# --- strict -----------------------------------------------------------------------------------------------------------

def strict_policy(**tenant):
    policy = Policy().add("tenant", TENANT, {"node0002": "full", "node0004": "full", **tenant})
    return "strict: true\n" + policy.yaml()


def test_strict_with_an_unplugged_host():
    with Fabric(two_level(2, 1, 3)) as fabric:
        fabric.settings(SETTINGS)
        daemon = Daemon(fabric, fabric.write("partitions.yaml", strict_policy(node0005="full")))
        wait_for_keys(fabric, "node0004", TENANT | 0x8000)
        fabric.console('Unlink "node0004"')
        daemon.wait_text("no longer in the fabric")
        daemon.wait_text("'node0004' is not in the fabric now (last seen ")

        wipe(fabric, "node0002")
        wait_for_keys(fabric, "node0002", TENANT | 0x8000)

        before = len(daemon.text())
        fabric.write("partitions.yaml", strict_policy(node0006="full"))
        daemon.reload()
        check("generation 2 is in force" in daemon.text()[before:], "reload:", daemon.text()[before:])
        wait_for_keys(fabric, "node0005")
        wait_for_keys(fabric, "node0006", TENANT | 0x8000)

        before = len(daemon.text())
        fabric.write("partitions.yaml", strict_policy(nobody="full"))
        daemon.reload()
        check("generation 2 stays in force" in daemon.text()[before:], "reload:", daemon.text()[before:])

        fabric.write("partitions.yaml", strict_policy(node0006="full"))
        fabric.console('ReLink "node0004"')
        fabric.heavy_sweep()
        wait_for_keys(fabric, "node0004", TENANT | 0x8000)
        wait_for(lambda: fabric.pkeyctl("plan", fabric.path("partitions.yaml")).status == 0, "pkeyd to repair the other tables")
        stop(daemon)


def test_strict_without_a_daemon():
    """Each command says of the policy in force what plan and report do: one host is down, and nothing else is wrong."""
    with Fabric(two_level(2, 1, 3)) as fabric:
        path = fabric.write("partitions.yaml", strict_policy(node0005="full"))
        fabric.apply(path).expect(0)
        fabric.console('Unlink "node0004"')
        fabric.heavy_sweep()
        fabric.apply(path).expect(0)
        words = "'node0004' is not in the fabric now"
        for command in (["plan", path], ["report", "--policy", path], ["verify", path]):
            result = fabric.pkeyctl(*command, "--json").expect(0).json()
            check(result["ok"] and any(words in t for t in texts(result, "error")), command, result["findings"])
            check(command[0] == "report" or any("for all ports that are in the fabric" in t for t in texts(result, "note")), command,
                  "does not say why it is not refused:", result["findings"])
            check(not any("freezes" in t for t in texts(result, "note")), "nothing is frozen:", result["findings"])
        show_all(fabric, path, words, "node0002", "node0005")
        found = diagnoses(fabric, path)
        check(not {"policy.refused", "policy.differs", "port.frozen"} & set(found), "diagnoses:", sorted(found))
        check(words in found["policy.warnings"]["where"][0]["text"], "warnings:", found["policy.warnings"])
        conf = fabric.pkeyctl("export", "opensm", path).expect(0).out
        check_equal(members(conf, TENANT), {fabric.topology.port_guid(n): "full" for n in ("node0002", "node0004", "node0005")},
                    "tenant in " + conf)

        # a policy that is not in force is refused, unless a command only shows something
        other = fabric.write("other.yaml", strict_policy(node0006="full"))
        for command in (["verify", other], ["export", "opensm", other]):
            check(words in fabric.pkeyctl(*command).expect(1).err, command)
        check("policy.refused" in diagnoses(fabric, other), "doctor")
        for result in show_all(fabric, other, words, "node0002", "node0006").values():
            check(not any("policy in force" in t for t in texts(result, "note")), "it is not in force:", result["findings"])


if __name__ == "__main__":
    main()
