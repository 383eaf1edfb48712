# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl doctor: what it finds on a fabric as OpenSM leaves it, what is gone when pkeyd has set it up, and what it never
says."""

import os
import re

import madtrace
from harness import Fabric, check, check_equal, main, two_level
from oracle import Policy


def fabric_of(**more):
    return Fabric(two_level(2, 1, 4), **more)


def policy_of():
    return Policy().add("a", 0x0101, {"node[0001-0004]": "full"}).add("b", 0x0102, {"node[0005-0008]": "full"})


def doctor(fabric, *arguments, status=2, **how):
    return fabric.pkeyctl("doctor", *arguments, "--json", **how).expect(status).json()


def codes(data):
    return {f["code"] for f in data["findings"]}


def finding(data, code):
    found = [f for f in data["findings"] if f["code"] == code]
    check(len(found) == 1, code, "should be there once:", [(f["code"], f["text"]) for f in data["findings"]])
    return found[0]


def test_fabric_as_opensm_leaves_it():
    with fabric_of() as fabric:
        data = doctor(fabric, trace="mads")
        print(fabric.pkeyctl("doctor").expect(2).out)
        check({"m-key.zero", "sa-key.default", "default-partition.full-for-all", "enforcement.cannot", "policy.none"}
              <= codes(data), sorted(codes(data)))
        check(not {"sm.none", "sm.several", "sm.silent", "sa-key.none", "sa-key.unknown", "name.twice", "name.none",
                   "table.unread", "port.silent", "index0.other", "policy.differs"} & codes(data), sorted(codes(data)))
        (sm,) = data["subnet_managers"]
        check_equal((sm["state"], sm["node"]), ("master", "node0001"), "the SM")
        full = finding(data, "default-partition.full-for-all")
        check_equal({w["node"] for w in full["where"]}, {"node%04d" % i for i in range(2, 9)}, "who is a full member")


if __name__ == "__main__":
    main()
