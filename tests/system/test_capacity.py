# SPDX-License-Identifier: GPL-2.0-or-later
"""A table that would overflow: the policy is refused with the ports named, and not one Set is sent. ibsim's switches have 8
entries at port 0, its CAs 64."""

import madtrace
from harness import Fabric, check, check_equal, main, two_level
from oracle import Oracle, Policy, differences


def partitions(n, members):
    policy = Policy()
    for i in range(n):
        policy.add("p%d" % i, 0x0100 + i, members)
    return policy


def refused(fabric, policy, trace):
    before = {g: p.table for g, p in fabric.tables().items()}
    path = fabric.write("partitions.yaml", policy.yaml())
    result = fabric.apply(path, "--json", trace=trace).expect(1).json()
    check_equal(madtrace.all_sets(madtrace.read(fabric.path(trace))), [], "Sets of a refused policy")
    check_equal({g: p.table for g, p in fabric.tables().items()}, before, "tables")
    check_equal((result["schema"], result["ok"]), (1, False), "schema, ok")
    errors = [f for f in result["findings"] if f["severity"] == "error"]
    check(errors and all(f["code"] == "plan.capacity" for f in errors), "findings:", errors)
    text = fabric.apply(path).expect(1)
    return "\n".join(f["text"] for f in errors), text.err


def test_switch_port_0():
    with Fabric(two_level(2, 1, 3)) as fabric:
        text, printed = refused(fabric, partitions(8, {"ALL": "limited"}), "nine")
        for name in ("leaf01", "leaf02", "spine01"):
            check(name in text and name in printed, name, "is not named:", text, printed)
        check("8" in text and "9" in text, "what it holds and what it would need:", text)

        # seven and the default partition fit
        policy = partitions(7, {"ALL": "limited"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        tables = fabric.tables()
        check_equal(differences(Oracle(tables, fabric.topology.port_guid("node0001")).tables(policy), tables), [], "tables")


def test_hosts():
    with Fabric(two_level(2, 1, 3)) as fabric:
        text, _ = refused(fabric, partitions(64, {"node0002": "full"}), "sixty-five")
        check("node0002" in text, "node0002 is not named:", text)
        check("node0003" not in text, "node0003 has room:", text)

        policy = partitions(63, {"node0002": "full"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        tables = fabric.tables()
        check_equal(differences(Oracle(tables, fabric.topology.port_guid("node0001")).tables(policy), tables), [], "tables")


def test_full_tables_change_over():
    """63 partitions are replaced by 63 others: every index is used twice. The policy is carried out or refused as a whole."""
    with Fabric(two_level(1, 1, 2)) as fabric:
        first = partitions(63, {"node0002": "full"})
        fabric.apply(fabric.write("partitions.yaml", first.yaml())).expect(0)
        second = Policy()
        for i in range(63):
            second.add("q%d" % i, 0x0200 + i, {"node0002": "full"})
        fabric.apply(fabric.write("partitions.yaml", second.yaml())).expect(0)
        tables = fabric.tables()
        check_equal(differences(Oracle(tables, fabric.topology.port_guid("node0001")).tables(second), tables), [], "tables")


if __name__ == "__main__":
    main()
