# SPDX-License-Identifier: GPL-2.0-or-later
"""Entries never move, and a freed index is not reused while an unused one is left."""

import shutil

from harness import Fabric, check, check_equal, main, two_level
from oracle import Policy


def apply(fabric, policy):
    fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
    return fabric.tables()[fabric.topology.port_guid("node0002")].table


def positions(table):
    return {k & 0x7FFF: i for i, k in enumerate(table) if k & 0x7FFF}


def test_entries_stay_and_freed_indexes_rest():
    with Fabric(two_level(1, 1, 2)) as fabric:
        policy = Policy()
        for base in (0x10, 0x20, 0x30):
            policy.add("p%x" % base, base, {"node0002": "full"})
        at = positions(apply(fabric, policy))
        check_equal(at[0x7FFF], 0, "the default partition's index")
        check_equal(sorted(at.values()), [0, 1, 2, 3], "indexes")

        # a change of membership moves no entry
        policy.partitions["p20"]["members"] = [("node0002", "limited")]
        check_equal(positions(apply(fabric, policy)), at, "indexes after a full member became a limited one")
        policy.partitions["p20"]["members"] = [("node0002", "full")]

        # the index of a removed partition is not reused by the next ones
        for n in range(5):
            del policy.partitions["p20" if n == 0 else "q%d" % (n - 1)]
            policy.add("q%d" % n, 0x100 + n, {"node0002": "full"})
            now = positions(apply(fabric, policy))
            check_equal({b: now[b] for b in (0x7FFF, 0x10, 0x30)}, {b: at[b] for b in (0x7FFF, 0x10, 0x30)}, "who stays")
            check_equal(now[0x100 + n], 4 + n, "the index of the new partition")


def test_without_memory_the_highest_in_use_counts():
    with Fabric(two_level(1, 1, 2)) as fabric:
        policy = Policy()
        for base in (0x10, 0x20, 0x30):
            policy.add("p%x" % base, base, {"node0002": "full"})
        at = positions(apply(fabric, policy))
        gone = min((b for b in (0x10, 0x20, 0x30)), key=lambda b: at[b])
        del policy.partitions["p%x" % gone]
        shutil.rmtree(fabric.path("state"))
        policy.add("q", 0x100, {"node0002": "full"})
        check_equal(positions(apply(fabric, policy))[0x100], 4, "the index of the new partition")


def test_the_index_freed_longest_ago_comes_first():
    with Fabric(two_level(1, 1, 2)) as fabric:
        policy = Policy()
        for i in range(62):
            policy.add("p%d" % i, 0x100 + i, {"node0002": "full"})
        at = positions(apply(fabric, policy))
        for i in (30, 10, 20):  # freed in this order
            del policy.partitions["p%d" % i]
            apply(fabric, policy)
        policy.add("last-unused", 0x200, {"node0002": "full"})
        check_equal(positions(apply(fabric, policy))[0x200], 63, "the last index that was never used")
        for n, i in enumerate((30, 10, 20)):
            policy.add("again%d" % n, 0x300 + n, {"node0002": "full"})
            now = positions(apply(fabric, policy))
            check_equal(now[0x300 + n], at[0x100 + i], "the index freed longest ago")


def test_index0_is_repaired_only_when_configured():
    with Fabric(two_level(1, 1, 2)) as fabric:
        policy = Policy().add("p", 0x10, {"node0002": "full"})
        guid = fabric.topology.port_guid("node0002")
        fabric.set_p_key(fabric.tables()[guid], i0=0x8010, i7=0xFFFF)
        path = fabric.write("partitions.yaml", policy.yaml())
        result = fabric.apply(path, "--json").expect(0).json()
        check(any(f["code"] == "plan.index0" for f in result["findings"]), "nothing is said:", result["findings"])
        check_equal(fabric.tables()[guid].table[0], 0x8010, "index 0")
        fabric.settings("repair_index0: true\n")
        fabric.apply(path).expect(0)
        port = fabric.tables()[guid]
        check_equal((port.table[0], port.keys()), (0x7FFF, [0x7FFF, 0x8010]), "index 0 and all keys")

        # another partition may have index0
        policy.partitions["p"]["index0"] = True
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        check_equal(fabric.tables()[guid].table[0], 0x8010, "index 0 of the partition with index0: true")


def test_unmanaged_and_owns():
    with Fabric(two_level(1, 1, 2)) as fabric:
        guid = fabric.topology.port_guid("node0002")
        fabric.set_p_key(fabric.tables()[guid], i5=0x8666, i6=0x0777)
        fabric.settings("unmanaged: keep\n")
        policy = Policy().add("p", 0x10, {"node0002": "full"})
        apply(fabric, policy)
        check_equal(fabric.tables()[guid].keys(), [0x0777, 0x7FFF, 0x8010, 0x8666], "keys with unmanaged: keep")
        fabric.settings("unmanaged: remove\n")
        policy.owns = ["0x7fff", "0x0001-0x0666"]
        apply(fabric, policy)
        check_equal(fabric.tables()[guid].keys(), [0x0777, 0x7FFF, 0x8010], "keys with owns")


if __name__ == "__main__":
    main()
