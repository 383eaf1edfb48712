# SPDX-License-Identifier: GPL-2.0-or-later
"""A fat tree of 128 hosts with OpenSM: pkeyctl apply makes the table of every endport match the policy, with one SubnSet for
each changed block of a phase."""

import re

import madtrace
from harness import Daemon, Fabric, check, check_equal, k_ary, main, read_file, sets, two_level
from oracle import Oracle, Policy, differences


def tenants():
    policy = Policy()
    policy.groups = {"storage": ["node[0001-0004]"], "compute": ["node[0005-0128]"]}
    policy.add("lustre", 0x0010, {"storage": "full", "compute": "limited", "node0007": "none"})
    policy.add("tenant-a", 0x0101, {"node[0005-0060]": "full", "@leaf08-04/1-4": "limited", "0x%016x" % 0x02C903008000F1: "none"})
    policy.add("tenant-b", 0x0102, {"node006*,node007?": "full", "node0128/mlx5_0": "both", "node0127/mlx5_0/1": "limited"})
    return policy


def by_lid(tables):
    return {p.lid: p.table for p in tables.values()}


def apply_and_compare(fabric, policy, trace, *more, exit_status=0):
    """Applies a policy, compares every table with it, and the trace with the minimum number of SubnSets. Returns the run and
    the tables."""
    before = fabric.tables()
    result = fabric.apply(fabric.write("partitions.yaml", policy.yaml()), *more, trace=trace).expect(exit_status)
    after = fabric.tables()
    self_guid = fabric.topology.port_guid(fabric.home)
    check_equal(differences(Oracle(after, self_guid).tables(policy), after), [], "tables that are not what the policy says")
    check_equal(len(sets(fabric, trace)), madtrace.least_sets(by_lid(before), by_lid(after)), "SubnSets sent")
    return result, after


def test_fat_tree():
    with Fabric(k_ary(8)) as fabric:
        policy = tenants()
        path = fabric.write("partitions.yaml", policy.yaml())

        fabric.pkeyctl("check", path).expect(0)
        fabric.pkeyctl("plan", path, trace="plan").expect(2)
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("plan"))), [], "SubnSets sent by a plan")
        fabric.pkeyctl("verify", path).expect(2)

        apply_and_compare(fabric, policy, "first")
        check(len(sets(fabric, "first")) >= 128 + 80, "too few writes to be true")
        fabric.pkeyctl("verify", path).expect(0)
        fabric.pkeyctl("plan", path).expect(0)

        apply_and_compare(fabric, policy, "again")
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("again"))), [], "SubnSets of a second apply")

        # an edit: one host added, one removed, one lowered, a partition removed, one added
        policy.partitions["tenant-a"]["members"] += [("node0100", "full"), ("node0050/mlx5_0", "none"), ("node0051/mlx5_0", "limited")]
        del policy.partitions["tenant-b"]
        policy.add("tenant-c", 0x0103, {"ALL_CAS": "limited", "node0002": "full"})
        _, after = apply_and_compare(fabric, policy, "edit")

        for name in ("node0001", "node0051", "node0128"):
            port = after[fabric.topology.port_guid(name)]
            out = fabric.run(["smpquery", "pkeys", str(port.lid)]).expect(0).out
            check_equal([int(k, 16) for k in re.findall(r"0x([0-9a-f]{4})", out)], port.table, "smpquery's view of " + name)


def test_heavy_sweep():
    """A heavy sweep does not write the tables of hosts, because OpenSM uses its copies. It reads port 0 of switches again."""
    with Fabric(k_ary(4)) as fabric:
        policy = Policy().add("p", 0x0010, {"ALL_CAS": "full"})
        _, after = apply_and_compare(fabric, policy, "first")
        fabric.heavy_sweep()
        check_equal({g: p.table for g, p in fabric.tables().items() if p.type == 1},
                    {g: p.table for g, p in after.items() if p.type == 1}, "tables of hosts")
        apply_and_compare(fabric, policy, "again")


def test_audit_is_for_the_daemon():
    with Fabric(k_ary(4)) as fabric:
        fabric.settings("timeout: 200ms\nmode: audit\n")
        apply_and_compare(fabric, Policy().add("one", 0x0010, {"node[0001-0003]": "full"}), "apply")


def test_damaged_database():
    """A command that reads leaves it; one that writes moves it aside and says so, whatever -q is; pkeyd reports that once."""
    with Fabric(two_level(1, 1, 2)) as fabric:
        path = fabric.write("partitions.yaml", Policy().add("one", 0x0010, {"ALL_CAS": "full"}).yaml())
        fabric.apply(path).expect(0)
        fabric.write("state/state.db", "this is no database")
        for command in (("history",), ("pins",), ("show", "vouches"), ("show", "held"), ("plan", path)):
            err = fabric.pkeyctl(*command, "-q", *(["--policy", path] if command[-1] == "held" else [])).expect(1).err
            check("state.db cannot be used: it is damaged" in err, err)
        for command in (("verify", path), ("explain", "node0001", "node0002", "--policy", path)):
            err = fabric.pkeyctl(*command, "-v").expect(0).err
            check("warning: " in err and "state.db cannot be used: it is damaged" in err, err)
        check_equal(read_file(fabric.path("state/state.db")), "this is no database", "the database")
        moved = "state.db is damaged and was moved to "
        err = fabric.apply(path, "-q").expect(0).err
        check(moved in err, err)
        check_equal(fabric.pkeyctl("history", "-q").expect(0).err, "", "what a command that reads prints")
        daemon = Daemon(fabric, path)
        check_equal(daemon.text().count(moved), 1, "reports at the start")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")
        daemon = Daemon(fabric, path)
        check_equal(daemon.text().count(moved), 0, "reports at the next one")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_without_opensm():
    """Works with directed routes, without LIDs and an SM."""
    with Fabric(k_ary(4), opensm=False) as fabric:
        policy = Policy().add("p", 0x0010, {"node[0001-0008]": "full", "ALL_CAS": "limited"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        after = fabric.tables()
        check_equal(differences(Oracle(after, fabric.topology.port_guid(fabric.home)).tables(policy), after), [],
                    "tables that are not what the policy says")


if __name__ == "__main__":
    main()
