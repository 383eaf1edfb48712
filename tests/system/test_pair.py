# SPDX-License-Identifier: GPL-2.0-or-later
"""A pair of head nodes, each with an OpenSM and a pkeyd (role: follow-sm). Only the pkeyd beside the master SM writes; after
a hand-over the other one does, and no entry is lost or moved."""

import signal
import time

import madtrace
from harness import Daemon, Fabric, SubnetManager, check, check_equal, main, sets, two_level, wait_for
from oracle import Oracle, Policy, differences

SETTINGS = "role: follow-sm\nsweep_interval: 1s\ntimeout: 200ms\n"
HEADS = ("node0001", "node0008")
PRIORITY = {"node0001": 15, "node0008": 5}
WRITES = "writing: the master SM is on this host"
STANDS_BY = "standing by: the master SM is at LID"
DIFFERS = "standing by: the fabric does not match the policy of this host"
AGREES = "the fabric matches the policy of this host"


class Pair:
    """Two head nodes of one fabric. Each edit of the policy is made on both."""

    def __init__(self, fabric, policy, settings=SETTINGS):
        self.fabric, self.policy = fabric, policy
        self.settings = fabric.settings(settings)
        self.sms, self.daemons = {}, {}
        self.write_policy()
        for host in HEADS:
            # OpenSM's own partition manager has the same policy, from its start on
            self.sms[host] = SubnetManager(fabric, host, PRIORITY[host])
            if host == HEADS[0]:
                self.sms[host].wait_master()
        for host in HEADS:
            self.daemons[host] = Daemon(fabric, self.file(host), trace="trace-" + host, host=host, settings=self.settings,
                                        state="state-" + host)

    def file(self, host):
        return self.fabric.path("partitions-%s.yaml" % host)

    def write_policy(self):
        for host in HEADS:
            self.fabric.write("partitions-%s.yaml" % host, self.policy.yaml())

    def reload(self):
        self.write_policy()
        for host in HEADS:
            self.daemons[host].reload()
        self.wait_right()

    def wrong(self):
        tables = self.fabric.tables()
        unread = [p for p in tables.values() if p.table is None]
        if unread:
            return unread
        # SELF is the head node that writes; both are full members by the policy
        return differences(Oracle(tables, self.fabric.topology.port_guid(HEADS[0])).tables(self.policy), tables)

    def wait_right(self):
        wait_for(lambda: not self.wrong(), "the tables to be what the policy says")

    def tables(self):
        return {p.guid: p.table for p in self.fabric.tables().values()}

    def n_sets(self):
        return {host: len(sets(self.fabric, "trace-" + host)) for host in HEADS}

    def export_to_opensm(self):
        conf = self.fabric.pkeyctl("export", "opensm", self.file(HEADS[0])).expect(0).out
        for sm in self.sms.values():
            sm.set_partitions(conf)

    def index(self, host, base):
        table = self.tables()[self.fabric.topology.port_guid(host)]
        return [i for i, key in enumerate(table) if key & 0x7FFF == base]


def policy_of_pair():
    policy = Policy()
    policy.add("default", 0x7FFF, {HEADS[0]: "full", HEADS[1]: "full", "ALL": "limited"})
    return policy.add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def test_pair():
    with Fabric(two_level(2, 1, 4), opensm=False) as fabric:
        first, second = HEADS
        pair = Pair(fabric, policy_of_pair())
        a, b = (pair.daemons[h] for h in HEADS)
        a.wait_text(WRITES)
        b.wait_text(STANDS_BY)
        check("(node node0001)" in b.text(), "who is the master, is not said:", b.text())
        pair.wait_right()
        wait_for(lambda: b.status().startswith(STANDS_BY), lambda: "the status line of the one that stands by, not " + b.status())

        # only the first one writes; it adds and removes an entry at the end of a table
        pair.policy.add("two", 0x0011, {"node[0002-0003]": "full"})
        pair.reload()
        check_equal(pair.index("node0002", 0x0011), [2], "index of the new entry")
        # a sweep of the second one, which reads two tables with the entry, has ended when a third one was read
        wait_for(lambda: len([m for m in madtrace.read(fabric.path("trace-" + second)) if m.method == madtrace.GET_RESP and
                              m.attribute == madtrace.P_KEY_TABLE and 0x8011 in m.entries()]) > 2, "the second one to see the entry")
        pair.policy = policy_of_pair().add("two", 0x0011, {"node0003": "full"})
        pair.reload()
        check_equal(pair.index("node0002", 0x0011), [], "entry that was taken away")
        check_equal(pair.n_sets()[second], 0, "SubnSets of the one that stands by")
        check(pair.n_sets()[first] > 0, "nothing was written?")

        # a policy that only the second one has is reported once, in spite of many sweeps
        wait_for(lambda: b.text().count(AGREES) == b.text().count(DIFFERS), "the second one to agree")
        seen, other = len(b.text()), policy_of_pair().add("three", 0x0012, {"node[0005-0006]": "full"})
        fabric.write("partitions-%s.yaml" % second, other.yaml())
        b.reload()
        b.wait_text(DIFFERS, after=seen)
        time.sleep(3.2)
        said = [line for line in b.text()[seen:].splitlines() if DIFFERS in line]
        check_equal(len(said), 1, "how often the difference was said")
        check("0x0012 three missing on 2 ports" in said[0] and "0x0011" in said[0], "what differs:", said[0])
        check_equal(pair.n_sets()[second], 0, "SubnSets of the one that stands by")
        check_equal(pair.wrong(), [], "tables while the second one has another policy")
        pair.write_policy()
        seen = len(b.text())
        b.reload()
        b.wait_text(AGREES, after=seen)

        # pkeyctl apply on the second host writes, after a warning
        plan = fabric.pkeyctl("apply", pair.file(second), "--yes", "--json", host=second).expect(0).json()
        check("host.stands-by" in [f["code"] for f in plan["findings"]], "no warning on the host that stands by:", plan)
        plan = fabric.pkeyctl("apply", pair.file(first), "--yes", "--json", host=first).expect(0).json()
        check("host.stands-by" not in [f["code"] for f in plan["findings"]], "a warning on the host that writes:", plan)

        # the first one's SM dies
        pair.export_to_opensm()
        before, n = pair.tables(), pair.n_sets()
        seen_a, seen_b = len(a.text()), len(b.text())
        pair.sms[first].kill()
        pair.sms[second].wait_master()
        b.wait_text(WRITES, after=seen_b)
        a.wait_text(STANDS_BY, after=seen_a)
        check_equal(pair.tables(), before, "tables after the hand-over")

        # and the second one writes; the index that the first one freed is not reused
        n = pair.n_sets()
        pair.policy.add("four", 0x0013, {"node[0002-0003]": "full"})
        pair.reload()
        check_equal(pair.n_sets()[first], n[first], "SubnSets of the one whose SM died")
        check(pair.n_sets()[second] > n[second], "the new one has not written")
        check_equal(pair.index("node0002", 0x0013), [3], "index of the entry that the new one added")
        check_equal(pair.index("node0002", 0x0010), [1], "index of the entry that was there all the time")

        # the SM with the higher priority returns
        pair.export_to_opensm()
        before, seen_a, seen_b = pair.tables(), len(a.text()), len(b.text())
        pair.sms[first].start()
        pair.sms[first].wait_master()
        a.wait_text(WRITES, after=seen_a)
        b.wait_text(STANDS_BY, after=seen_b)
        check_equal(pair.tables(), before, "tables after the hand-over back")
        n = pair.n_sets()
        pair.policy.add("five", 0x0014, {"ALL_CAS": "full"})
        pair.reload()
        check_equal(pair.n_sets()[second], n[second], "SubnSets of the second one, who stands by again")
        check_equal(pair.index("node0002", 0x0014), [4], "index of the entry that the first one added")
        for host in HEADS:
            check_equal(pair.daemons[host].stop(), 0, "exit status of pkeyd")


def test_hand_over_while_writing():
    """The first pkeyd loses the master SM while it writes. It stops, and the other one finishes."""
    with Fabric(two_level(2, 1, 4), opensm=False) as fabric:
        first, second = HEADS
        pair = Pair(fabric, policy_of_pair(), SETTINGS.replace("200ms", "1s"))
        a, b = (pair.daemons[h] for h in HEADS)
        pair.wait_right()
        pair.export_to_opensm()
        before, n = pair.tables(), pair.n_sets()

        # node0005 does not answer, so the first phase (removal from "one") takes seconds; the last one adds many
        fabric.lose("node0005", 100)
        pair.policy = policy_of_pair().add("one", 0x0010, {"node[0001-0004]": "full"}).add("two", 0x0011, {"ALL_CAS": "full"})
        pair.write_policy()
        seen_a, seen_b = len(a.text()), len(b.text())
        for daemon in (b, a):
            daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: pair.n_sets()[first] > n[first], "the first one to begin")
        pair.sms[first].kill()
        a.wait_text(STANDS_BY, after=seen_a)
        stopped = pair.n_sets()[first]
        sent = sets(fabric, "trace-" + first)
        check_equal([key for mad in sent for key in mad.entries() if key & 0x7FFF == 0x0011], [],
                    "entries of the last phase, by the first one")
        fabric.lose("node0005", 0)
        b.wait_text(WRITES, after=seen_b)
        pair.wait_right()
        check(pair.n_sets()[second] > 0, "the second one has not written")
        check_equal(pair.n_sets()[first], stopped, "SubnSets of the first one after it stood by")
        after = pair.tables()
        moved = [(hex(guid), i) for guid, table in before.items() for i, key in enumerate(table or [])
                 if key & 0x7FFF and after[guid][i] & 0x7FFF not in (0, key & 0x7FFF)]
        check_equal(moved, [], "indexes that another partition has now")
        for host in HEADS:
            check_equal(pair.daemons[host].stop(), 0, "exit status of pkeyd")


main()
