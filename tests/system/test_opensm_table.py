# SPDX-License-Identifier: GPL-2.0-or-later
"""partitions.conf files with which OpenSM fails open or silently drops lines, each as a policy: pkeyd refuses it and sends
nothing, or carries it out and reports what is odd."""

import madtrace
from harness import Fabric, check, check_equal, main, two_level
from oracle import Oracle, Policy, differences

HEAD = "version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n      ALL: limited\n"
ONE_TENANT = HEAD + "  tenant:\n    pkey: %s\n    members:\n      %s\n"


def tables_of(fabric):
    return {g: p.table for g, p in fabric.tables().items()}


def fabric_of():
    return Fabric(two_level(1, 1, 3))


def refused(fabric, text, code, line, *words):
    """The policy is refused: no Set is sent, and a finding has this code, line and text."""
    before = tables_of(fabric)
    path = fabric.write("partitions.yaml", text)
    result = fabric.apply(path, "--json", trace="refused").expect(1).json()
    check_equal(madtrace.all_sets(madtrace.read(fabric.path("refused"))), [], "Sets of a refused policy")
    check_equal(tables_of(fabric), before, "tables")
    found = [f for f in result["findings"] if f["severity"] == "error" and f["line"] == line]
    check(any(f["code"] == code for f in found), "no %s in line %d:" % (code, line), result["findings"])
    for word in words:
        check(any(word in f["text"] for f in found), repr(word), "is not said:", found)
    printed = fabric.apply(path).expect(1).err
    check("partitions.yaml:%d:" % line in printed and "^" in printed, "no place, no caret:\n" + printed)


def holders(fabric, base):
    return sorted((p.name, k) for p in fabric.tables().values() for k in p.keys() if k & 0x7FFF == base)


def test_empty_membership_is_not_full():
    with fabric_of() as fabric:
        refused(fabric, ONE_TENANT % ("0x1234", "node0002:\n      node0003: limited"), "policy.membership", 10)


def test_a_prefix_of_all_is_not_all():
    with fabric_of() as fabric:
        for name in ("A", "AL", "ALL_"):
            result = fabric.apply(fabric.write("partitions.yaml", ONE_TENANT % ("0x1234", name + ": full")), "--json")
            # it may be refused, or be the name of an absent host, but must not select all ports
            codes = [f["code"] for f in result.expect(0, 1).json()["findings"] if f["line"] == 10]
            check({"policy.selector", "selector.no-match"} & set(codes), name, "is taken without a word:", result)
            check_equal(holders(fabric, 0x1234), [], "members")
        refused(fabric, "strict: true\n" + ONE_TENANT % ("0x1234", "node: full"), "selector.no-match", 11, "node")


def test_p_key_of_17_bits():
    with fabric_of() as fabric:
        refused(fabric, ONE_TENANT % ("0x12345", "node0002: full"), "policy.p-key", 8, "0x12345")
        refused(fabric, ONE_TENANT % ("0x9234", "node0002: full"), "policy.p-key", 8, "0x9234")


def test_misspelt_membership_is_not_limited():
    with fabric_of() as fabric:
        refused(fabric, ONE_TENANT % ("0x1234", "node0002: ful1"), "policy.membership", 10, "ful1")


def test_guid_that_is_not_in_the_fabric():
    with fabric_of() as fabric:
        text = ONE_TENANT % ("0x1234", "0x0002c9030bad0001: full")
        result = fabric.apply(fabric.write("partitions.yaml", text), "--json").expect(0).json()
        check(any(f["code"] == "selector.no-match" and f["line"] == 10 and "0x0002c9030bad0001" in f["text"]
                  for f in result["findings"]), "nothing is said of the GUID:", result["findings"])
        refused(fabric, "strict: true\n" + text, "selector.no-match", 11, "0x0002c9030bad0001")


def test_line_of_more_than_4096_bytes():
    with fabric_of() as fabric:
        padding = ", ".join('"0x%016x": full' % (0x0002C90300F00000 + i) for i in range(200))
        guids = ['"0x%016x": full' % fabric.topology.port_guid("node000%d" % i) for i in (2, 3)]
        line = "{%s, %s, %s, %s}" % (guids[0], padding, guids[1], padding.replace("f0", "f1"))
        check(len(line) > 8192, "too short")
        fabric.apply(fabric.write("partitions.yaml", HEAD + "  tenant:\n    pkey: 0x1234\n    members: %s\n" % line)).expect(0)
        check_equal(holders(fabric, 0x1234), [("node0002", 0x9234), ("node0003", 0x9234)], "members")


def test_bad_line_does_not_open_the_fabric():
    with fabric_of() as fabric:
        text = ONE_TENANT % ("0x1234", "node0002: full\n      node0003: full")
        fabric.apply(fabric.write("partitions.yaml", text)).expect(0)
        check_equal(len(holders(fabric, 0x1234)), 2, "members")
        refused(fabric, text + "      0x10000z: full\n", "policy.guid", 12, "0x10000z")
        check_equal(len(holders(fabric, 0x1234)), 2, "members after a bad line")
        check_equal(sum(0xFFFF in p.keys() for p in fabric.tables().values()), 1, "full members of the default partition")


def forty(hosts="ALL_CAS"):
    policy = Policy()
    for i in range(40):
        policy.add("p%02d" % i, 0x1000 + i, {hosts: "full"})
    return policy


def test_forty_partitions_then_one():
    with fabric_of() as fabric:
        for policy in (forty(), Policy().add("p00", 0x1000, {"ALL_CAS": "full"})):
            fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
            tables = fabric.tables()
            check_equal(differences(Oracle(tables, fabric.topology.port_guid("node0001")).tables(policy), tables), [],
                        "stale keys")


def test_forty_partitions_of_opensm_then_one():
    conf = "Default=0x7fff: ALL=limited, SELF=full;\n" + "".join(
        "p%d=0x%04x: ALL_CAS=full;\n" % (i, 0x1000 + i) for i in range(40))
    with Fabric(two_level(1, 1, 3), partitions_conf=conf) as fabric:
        check_equal(len(fabric.tables()[fabric.topology.port_guid("node0002")].keys()), 41, "keys that OpenSM wrote")
        policy = Policy().add("p39", 0x1000 + 39, {"ALL_CAS": "full"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        tables = fabric.tables()
        check_equal(differences(Oracle(tables, fabric.topology.port_guid("node0001")).tables(policy), tables), [],
                    "stale keys")
        check_equal([p.table.index(0x1000 + 39 | 0x8000) for p in tables.values() if p.type == 1], [40] * 3,
                    "where the entry that stays is")


def test_missing_file_is_not_an_empty_policy():
    with fabric_of() as fabric:
        before = tables_of(fabric)
        result = fabric.apply(fabric.path("no-such.yaml"), "--json", trace="missing").expect(1).json()
        check(any(f["code"] == "file.unreadable" for f in result["findings"]), "findings:", result["findings"])
        check_equal(madtrace.read(fabric.path("missing")), [], "MADs without a policy")
        check_equal(tables_of(fabric), before, "tables")


if __name__ == "__main__":
    main()
