# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd and OpenSM's subnet administration: it accepts the subscriptions, with and without its sa_key, and returns a P_Key
table only with it. saquery and the log show OpenSM's side. (ibsim delivers Reports only to an SM, so the virtual fabric tests
those.)"""

import ipaddress
import re

from harness import Fabric, check, check_equal, main, program, read_file, two_level

SA_KEY = "1"  # OpenSM's default
HOST = "node0002"
TYPE_SECURITY = 2


def ask(fabric, *key):
    return fabric.run([program("subscribe"), *key], host=HOST).expect(0).json()


def subscriptions(fabric):
    """The subscriptions of this host in OpenSM: their number, and (trap number, type) of the last two, the latest first,
    because ibsim carries only one MAD of the answer, which cuts the third record."""
    guid = fabric.topology.port_guid(HOST)
    out = fabric.run(["saquery", "-t", "30000", "--smkey", SA_KEY, "-I"]).expect(0).out
    records = out.split("InformInfoRecord dump:")[1:]
    found = []
    for record in records[:2]:
        fields = dict(re.findall(r"^\s*(\w+)\.{3,}(\S+)", record, re.M))
        subscriber = int(ipaddress.IPv6Address(fields["SubscriberGID"])) & 0xFFFFFFFFFFFFFFFF
        check_equal((subscriber, fields["is_generic"], fields["subscribe"]), (guid, "0x1", "0x1"), record)
        found.append((int(fields["trap_num"], 0), int(fields["trap_type"], 0)))
    return len(records), found


def test_with_the_key():
    with Fabric(two_level(1, 1, 3)) as fabric:
        port = fabric.tables()[fabric.topology.port_guid(HOST)]
        check_equal(subscriptions(fabric), (0, []), "subscriptions before")
        got = ask(fabric, SA_KEY)
        check(got["subscribed"] and not got["by_type"], "not subscribed by number:", got)
        check_equal(subscriptions(fabric), (3, [(259, 0xFFFF), (258, 0xFFFF)]), "subscriptions")
        check_equal((got["record"], got["lid"]), ("answered", port.lid), "the record")
        check_equal(got["entries"], port.table[:32], "the table that the SA shows")
        # after a restart: the SA already has them
        ask(fabric, SA_KEY)
        check_equal(subscriptions(fabric)[0], 3, "subscriptions after the second time")


def test_without_a_key():
    with Fabric(two_level(1, 1, 3)) as fabric:
        got = ask(fabric)
        check(got["subscribed"] and got["by_type"] and not got["key_unanswered"], "not subscribed by type:", got)
        check_equal(subscriptions(fabric), (1, [(0xFFFF, TYPE_SECURITY)]), "subscriptions")
        check_equal((got["record"], got["record_status"]), ("status", 0x0200), "a table for somebody without the key")
        check("ERR 430B" in read_file(fabric.path("osm.log")), "OpenSM did not refuse a trap number")


def test_with_another_key():
    with Fabric(two_level(1, 1, 3)) as fabric:
        got = ask(fabric, "0x4711")
        check(got["subscribed"] and got["by_type"] and got["key_unanswered"], "not subscribed without the key:", got)
        check_equal(subscriptions(fabric), (1, [(0xFFFF, TYPE_SECURITY)]), "subscriptions")
        check_equal(got["record"], "timeout", "a table for somebody with a wrong key")
        check("ERR 1A04" in read_file(fabric.path("osm.log")), "OpenSM did not say that the key is wrong")


def test_no_subnet_administration():
    with Fabric(two_level(1, 1, 3)) as fabric:
        fabric.opensm.kill()
        fabric.opensm.wait()
        got = ask(fabric)
        check(not got["subscribed"], "subscribed at nobody:", got)
        check_equal(got["state"], 4, "the state")


if __name__ == "__main__":
    main()
