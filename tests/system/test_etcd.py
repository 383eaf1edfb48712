# SPDX-License-Identifier: GPL-2.0-or-later
"""Two head nodes with one store: it is an etcd cluster. Only the one that has the master SM and the lock writes; a
hand-over loses nothing; and one that was paused for longer than its lease writes nothing when it goes on."""

import json
import os
import signal
import subprocess
import time

from etcd import Cluster, make_certificates
from harness import (PATIENCE, Daemon, Fabric, SubnetManager, check, check_equal, main, pause, program, read_file, sets, two_level,
                     wait_for)
from oracle import Oracle, Policy, differences
from private_bus import Bus, require

HEADS = ("node0001", "node0008")
PRIORITY = {"node0001": 15, "node0008": 5}
WRITES = "writing: the master SM is on this host"
STANDS_BY = "standing by: the master SM is at LID"
LEASE = 5


class Pair:
    """Two head nodes. Each has its own files, and both their store in etcd. has_names: and each its own host name."""

    def __init__(self, fabric, policy, pools="", buses=None, lease=LEASE, has_names=False, mirror=None):
        self.fabric, self.policy, self.pools, self.buses, self.has_names = fabric, policy, pools, buses or {}, has_names
        self.cluster = Cluster(fabric)
        self.settings = fabric.settings("role: follow-sm\nsweep_interval: 1s\ntimeout: 200ms\n" + self.cluster.settings("%ds" % lease) +
                                        ("opensm: {mirror: %s}\n" % mirror if mirror else ""))
        self.sms, self.daemons = {}, {}
        for host in HEADS:
            self.write_policy(host)
            self.sms[host] = SubnetManager(fabric, host, PRIORITY[host])
            if host == HEADS[0]:
                self.sms[host].wait_master()
        for host in HEADS:
            self.start(host)

    def start(self, host):
        self.daemons[host] = Daemon(self.fabric, self.file(host), trace="trace-" + host, host=host, settings=self.settings,
                                    state="state-" + host, host_name=host if self.has_names else None,
                                    environment=self.buses[host].environment() if host in self.buses else None)

    def file(self, host):
        return self.fabric.path("partitions-%s.yaml" % host)

    def write_policy(self, host):
        self.fabric.write("partitions-%s.yaml" % host, self.policy.yaml() + self.pools)

    def reload(self, host):
        self.write_policy(host)
        self.daemons[host].process.send_signal(signal.SIGHUP)

    def wrong(self):
        tables = self.fabric.tables()
        unread = [p for p in tables.values() if p.table is None]
        if unread:
            return unread
        return differences(Oracle(tables, self.fabric.topology.port_guid(HEADS[0])).tables(self.policy), tables)

    def wait_right(self):
        wait_for(lambda: not self.wrong(), "the tables to be what the policy says")

    def n_sets(self, host):
        return len(sets(self.fabric, "trace-" + host))

    def index(self, host, base):
        port = next(p for p in self.fabric.tables().values() if p.guid == self.fabric.topology.port_guid(host))
        return [i for i, key in enumerate(port.table or []) if key & 0x7FFF == base]

    def pkeyctl(self, host, *arguments):
        return self.fabric.run([program("pkeyctl"), *arguments, "--config", self.settings, "--state-dir",
                                self.fabric.path("state-" + host)], host=host)

    def history(self, host):
        return self.pkeyctl(host, "history", "--json").expect(0).json()

    def wait_same_history(self):
        """The outcome of a generation is stored when its sweep ends, later than the last write."""
        first, second = HEADS
        wait_for(lambda: self.history(first) == self.history(second), "the same history on both")

    def export_to_opensm(self, host):
        """OpenSM's own partition manager writes the same at a hand-over."""
        conf = self.fabric.pkeyctl("export", "opensm", self.file(host)).expect(0).out
        for sm in self.sms.values():
            sm.set_partitions(conf)


def policy_of_pair():
    policy = Policy()
    policy.add("default", 0x7FFF, {HEADS[0]: "full", HEADS[1]: "full", "ALL": "limited"})
    return policy.add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def fabric_of_pair():
    return Fabric(two_level(2, 1, 4), opensm=False)


def test_hand_over():
    first, second = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a, b = (pair.daemons[h] for h in HEADS)
        a.wait_text(WRITES)
        b.wait_text(STANDS_BY)
        pair.wait_right()
        check_equal(pair.n_sets(second), 0, "SubnSets of the one that stands by")

        # the second one learns what the first one brings into force, also when its files are reloaded; an edit there is refused
        pair.policy.add("two", 0x0011, {"node[0002-0003]": "full"})
        pair.reload(first)
        pair.wait_right()
        pair.reload(second)
        b.wait_text("generation 2: 3 partitions, mode enforce, role follow-sm: this host stands by")
        check("its files differ" not in b.text(), "the files of the first one were refused")
        pair.policy.add("wrong", 0x0666, {"ALL": "full"})
        pair.reload(second)
        b.wait_text("this host stands by, and its files differ from what is in force")
        pair.policy = policy_of_pair().add("two", 0x0011, {"node0003": "full"})  # an index of node0002 is free now
        pair.reload(first)
        pair.wait_right()
        pair.wait_same_history()

        # without its pkeyd, too
        for command in (("apply", fabric.write("other.yaml", policy_of_pair().yaml())), ("undo",)):
            err = pair.pkeyctl(second, *command, "--yes").expect(1).err
            check("the master SM is at LID " in err and "(node %s), not on this host" % first in err, err)
        check_equal(pair.n_sets(second), 0, "SubnSets of the one that stands by")
        check_equal(pair.wrong(), [], "the tables")
        pair.wait_same_history()

        # the first one's SM ends: the second one has its memory
        pair.export_to_opensm(first)
        seen_a, seen_b, n = len(a.text()), len(b.text()), pair.n_sets(first)
        pair.sms[first].kill()
        b.wait_text(WRITES, after=seen_b)
        a.wait_text(STANDS_BY, after=seen_a)
        pair.policy.add("four", 0x0013, {"node[0002-0003]": "full"})
        pair.reload(second)
        pair.wait_right()
        check_equal(pair.index("node0002", 0x0013), [3], "the index, which is not the one that the other head node freed")
        check_equal(pair.n_sets(first), n, "SubnSets of the one whose SM ended")
        check(pair.n_sets(second) > 0, "the second one has not written")
        a.wait_text("generation 4: 4 partitions, mode enforce, role follow-sm: this host stands by", after=seen_a)
        pair.wait_same_history()
        for host in HEADS:
            check_equal(pair.daemons[host].stop(), 0, "exit status of pkeyd")
        check_equal(pair.cluster.holder(), "", "who has the lock")


def test_cannot_load():
    """pkeyd.yaml of the one that stands by has an error, so that it cannot load what is in force. It does not write by an older
    generation; when the error is fixed, it goes on by the last one."""
    first, second = HEADS
    broken = "generation 2, which is in force according to etcd"
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        settings = read_file(pair.settings)
        check_equal(pair.daemons[second].stop(), 0, "exit status of pkeyd")
        pair.settings = fabric.write("second.yaml", settings)
        pair.start(second)
        b = pair.daemons[second]
        pair.wait_right()
        fabric.write("second.yaml", settings + "nonsense: true\n")
        pair.policy = Policy().add("default", 0x7FFF, {HEADS[0]: "full", HEADS[1]: "full", "ALL": "limited"})
        pair.policy.add("one", 0x0010, {"node[0001-0002]": "full", "node[0005-0008]": "limited"})
        pair.reload(first)
        pair.wait_right()
        b.wait_text(broken)

        pair.export_to_opensm(first)
        pair.sms[first].kill()
        wait_for(lambda: "nothing is written, because the store cannot be used: generation 2, which is in force, cannot be loaded"
                 in b.status() and pair.sms[second].is_master(), "the second one to refuse to write")
        time.sleep(5)
        check_equal(pair.n_sets(second), 0, "SubnSets by an older generation")
        check_equal(b.text().count(broken), 1, "how often the same problem is logged")
        check_equal(pair.wrong(), [], "what the tables should be")
        fabric.write("second.yaml", settings)
        b.wait_text(WRITES)
        pair.policy.add("two", 0x0011, {"node[0002-0003]": "full"})
        pair.reload(second)
        pair.wait_right()
        b.wait_text("generation 3 is in force")


def test_damaged_generation():
    """The one that stands by finds no files of the generation in force, and writes nothing, also after a restart, until pkeyctl apply brings
    its own into force."""
    first, second = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        pair.wait_right()
        b = pair.daemons[second]
        b.wait_text("generation 1: ")
        b.process.send_signal(signal.SIGSTOP)
        pair.policy.add("two", 0x0011, {"node[0002-0003]": "full"})
        pair.reload(first)
        pair.wait_right()
        pair.daemons[first].process.kill()
        pair.sms[first].kill()
        pair.cluster.ctl("del", "--prefix", "/pkeyd/record/generation/%020d/policy/" % 2)
        b.process.send_signal(signal.SIGCONT)
        wait_for(lambda: "generation 2, which is in force, cannot be loaded" in b.status(), "the second one to refuse to write")
        check_equal(b.stop(), 0, "exit status of pkeyd")
        pair.export_to_opensm(first)
        pair.policy.add("three", 0x0012, {"node[0002-0003]": "full"})
        pair.write_policy(second)
        pair.start(second)
        b = pair.daemons[second]
        b.wait_text("its records are damaged; see pkeyd-etcd(7), THE STANDBY")
        b.wait_text("generation 2, which is in force, cannot be loaded")
        check_equal(b.stop(), 0, "exit status of pkeyd")
        check_equal(pair.n_sets(second), 0, "SubnSets by an older generation")
        pair.sms[second].wait_master()
        pair.pkeyctl(second, "apply", pair.file(second), "--yes").expect(0)
        pair.wait_right()
        pair.start(second)
        pair.daemons[second].wait_text("generation 3: ")
        check_equal(pair.wrong(), [], "tables after the start")


POOLS = "pools:\n  jobs:\n    pkeys: 0x1000-0x1003\n    ports: ALL_CAS\n    lease: 2h\n    rest: 0s\n    allow: root\n"


def test_leases():
    """Either head node makes leases: the one that stands by passes requests on. After a hand-over the other one renews and releases
    them; whoever waited on the old writer is answered by the new one."""
    require()
    first, second = HEADS
    with fabric_of_pair() as fabric:
        buses = {host: Bus(fabric, name="bus-" + host) for host in HEADS}
        pair = Pair(fabric, policy_of_pair(), POOLS, buses)
        a, b = (pair.daemons[h] for h in HEADS)
        for bus in buses.values():
            bus.wait_name()
        pair.wait_right()

        def lease(host, *arguments):
            return fabric.run([program("pkeyctl"), "lease", *arguments, "--json"], host=host, **buses[host].environment())

        made = lease(first, "create", "--pool", "jobs", "--id", "job1", "--members", "node[0002-0003]").expect(0).json()
        key = int(made["pkey"] if "pkey" in made else made["lease"]["pkey"], 16) & 0x7FFF
        check_equal(len(pair.index("node0002", key)), 1, "entries with the P_Key of the lease")
        before = pair.index("node0002", key)
        passed_on = lease(second, "create", "--pool", "jobs", "--id", "job2", "--members", "node0004").expect(0).json()
        shown = lease(first, "show", "job2").expect(0).json()
        check_equal([passed_on["lease"][k] for k in ("id", "members")], [shown["lease"][k] for k in ("id", "members")],
                    "the lease for the caller on the one that stands by, and on the writer")
        refused = lease(second, "create", "--pool", "none", "--id", "job3", "--members", "node0004").expect(1)
        check_equal(refused.out, lease(first, "create", "--pool", "none", "--id", "job3", "--members", "node0004").expect(1).out,
                    "a refusal on both")

        # a caller waits for a port that does not answer until the other head node writes
        fabric.lose("node0005", 100)
        waits = subprocess.Popen([program("pkeyctl"), "lease", "create", "--pool", "jobs", "--id", "job4", "--members", "node0005",
                                  "--timeout", "300s", "--json"], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **buses[first].environment()))
        fabric.children.append(waits)
        wait_for(lambda: "job4" in lease(first, "list").out, "the lease")
        pair.export_to_opensm(first)
        seen = len(b.text())
        pair.sms[first].kill()
        b.wait_text(WRITES, after=seen)
        check(waits.poll() is None, "the caller that waits has an answer")
        fabric.lose("node0005", 0)
        wait_for(lambda: "job1" in lease(second, "list").expect(0).out, "the lease on the other head node")
        # OpenSM's file has no leases: pkeyd may have to put the P_Key back
        wait_for(lambda: pair.index("node0002", key) == before, "its P_Key at its index")
        check_equal((waits.wait(timeout=PATIENCE), json.loads(waits.stdout.read())["outcome"]), (0, "granted"), "the answer to the caller that waited")
        lease(second, "renew", "job1", "--for", "1h").expect(0)
        lease(second, "release", "job1").expect(0)
        for job in ("job2", "job4"):
            lease(first, "release", job).expect(0)
        wait_for(lambda: not pair.index("node0002", key), "the P_Key to be taken away")
        wait_for(lambda: "job1" not in lease(first, "list").out, "the one that stands by to know it")
        pair.wait_right()


def test_mirror():
    """The one that stands by keeps OpenSM's file equal to the policy, too, and stores nothing for it."""
    first, second = HEADS
    with fabric_of_pair() as fabric:
        conf = fabric.path("partitions.conf")
        pair = Pair(fabric, policy_of_pair(), mirror=conf)
        a, b = (pair.daemons[h] for h in HEADS)
        pair.wait_right()
        wait_for(lambda: "=0x0010" in read_file(conf), "the file")
        seen_b, content = len(b.text()), read_file(conf)
        check_equal(a.stop(), 0, "exit status of pkeyd")
        for sm in pair.sms.values():
            sm.set_partitions(content)
        os.unlink(conf)
        wait_for(lambda: read_file(conf) == content, "the one that stands by to write the file")
        time.sleep(3)
        for line in b.text()[seen_b:].splitlines():
            check("state.db" not in line and "store" not in line, "a problem with the store:", line)
        pair.sms[first].kill()
        b.wait_text(WRITES, after=seen_b)
        pair.wait_right()
        check_equal(pair.n_sets(second), 0, "SubnSets of the one that took over")


def test_paused_while_writing():
    """The writer stops for longer than its lease, in the middle of an apply; the other one takes over. When the first one goes
    on, it writes not one MAD."""
    first, second = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a, b = (pair.daemons[h] for h in HEADS)
        pair.wait_right()
        pair.export_to_opensm(first)
        n = pair.n_sets(first)
        # node0005 does not answer, so the first phase takes seconds; the last one adds many
        fabric.lose("node0005", 100)
        pair.policy = policy_of_pair().add("one", 0x0010, {"node[0001-0004]": "full"}).add("two", 0x0011, {"ALL_CAS": "full"})
        seen_b = len(b.text())
        pair.reload(first)
        wait_for(lambda: pair.n_sets(first) > n, "the first one to begin")
        check(("(process %d)" % a.process.pid) in pair.cluster.holder(), "who has the lock:", pair.cluster.holder())
        pause(a.process)
        stopped = pair.n_sets(first)
        pair.sms[first].kill()
        fabric.lose("node0005", 0)
        b.wait_text(WRITES, after=seen_b)
        pair.write_policy(second)
        pair.wait_right()
        check(pair.n_sets(second) > 0, "the second one has not written")
        seen_a = len(a.text())
        a.process.send_signal(signal.SIGCONT)
        a.wait_text(STANDS_BY, after=seen_a)
        time.sleep(3)
        check_equal(pair.n_sets(first), stopped, "SubnSets of the one that was paused")
        check_equal(pair.wrong(), [], "the tables")


def test_paused_beside_its_sm():
    """The same, but the SM does not move: only the lock keeps the one that was paused from writing. Another process has it."""
    first, second = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a, b = (pair.daemons[h] for h in HEADS)
        pair.wait_right()
        n = pair.n_sets(first)
        fabric.lose("node0005", 100)
        pair.policy = policy_of_pair().add("one", 0x0010, {"node[0001-0004]": "full"}).add("two", 0x0011, {"ALL_CAS": "full"})
        pair.reload(first)
        wait_for(lambda: pair.n_sets(first) > n, "the first one to begin")
        pause(a.process)
        stopped = pair.n_sets(first)
        wait_for(lambda: pair.cluster.holder() == "", "the lease to end")
        pair.cluster.ctl("put", "/pkeyd/lock", "a test")
        seen_a = len(a.text())
        a.process.send_signal(signal.SIGCONT)
        a.wait_text("a test is writing P_Key tables", after=seen_a)
        r = pair.pkeyctl(second, "confirm").expect(1)
        check("etcd (http" in r.err and "): a test is writing tables; nothing was done" in r.err, r)
        time.sleep(2)
        check_equal(pair.n_sets(first), stopped, "SubnSets without the lock")
        pair.cluster.ctl("del", "/pkeyd/lock")
        fabric.lose("node0005", 0)
        pair.wait_right()
        check(pair.n_sets(first) > stopped, "nothing was written with the lock")
        check_equal(pair.n_sets(second), 0, "SubnSets of the one that stands by")


def test_host_names():
    """The lock names the host that has it, and who had it knows when another host wrote since: one was paused while the master SM
    was on the other for a while. When it goes on beside its SM again, it has what the other one stored."""
    require()
    first, second = HEADS
    with fabric_of_pair() as fabric:
        buses = {host: Bus(fabric, name="bus-" + host) for host in HEADS}
        # a long lease, so that the other one finds the lock taken
        pair = Pair(fabric, policy_of_pair(), POOLS, buses, lease=25, has_names=True)
        a, b = (pair.daemons[h] for h in HEADS)
        for bus in buses.values():
            bus.wait_name()
        pair.wait_right()
        n = pair.n_sets(first)
        fabric.lose("node0005", 100)
        pair.policy.add("two", 0x0011, {"ALL_CAS": "full"})
        pair.reload(first)
        wait_for(lambda: pair.n_sets(first) > n, "the first one to begin")
        holder = "pkeyd on %s (process %d)" % (first, a.process.pid)
        check_equal(pair.cluster.holder(), holder, "who has the lock")
        pause(a.process)
        pair.sms[first].kill()
        b.wait_text(holder + " is writing P_Key tables")
        fabric.lose("node0005", 0)
        b.wait_text(WRITES)
        pair.policy.add("three", 0x0012, {"node[0006-0007]": "full"})
        pair.reload(second)
        pair.wait_right()
        check_equal(pair.cluster.ctl("get", "/pkeyd/commit", "--print-value-only").stdout.split(", transaction ")[0],
                    "pkeyd on %s (process %d)" % (second, b.process.pid), "who committed last")

        def lease(host, *arguments):
            return fabric.run([program("pkeyctl"), "lease", *arguments, "--json"], host=host, **buses[host].environment())

        made = lease(second, "create", "--pool", "jobs", "--id", "job1", "--members", "node[0002-0003]").expect(0).json()
        key = int(made["lease"]["pkey"], 16)
        before = pair.index("node0002", key)
        pair.export_to_opensm(second)
        seen = len(b.text())
        pair.sms[first].start()
        b.wait_text(STANDS_BY, after=seen)
        seen = len(a.text())
        a.process.send_signal(signal.SIGCONT)
        a.wait_text(WRITES, after=seen)
        wait_for(lambda: "job1" in lease(first, "list").out, "the first one to know the lease")
        wait_for(lambda: pair.index("node0002", key) == before, "its P_Key at its index")
        lease(first, "release", "job1").expect(0)
        pair.wait_right()
        pair.wait_same_history()


def test_members_pause():
    """One of three members answers nothing while tables are written: nobody notices. Then the majority does not: in the middle
    of an apply nothing more is written, until they go on."""
    first, _ = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a = pair.daemons[first]
        pair.wait_right()
        pair.cluster.pause(0)  # the one that is asked first
        pair.policy.add("two", 0x0011, {"ALL_CAS": "full"})
        pair.reload(first)
        pair.wait_right()
        pair.cluster.resume(0)
        wait_for(lambda: pair.cluster.is_healthy(0), "the member to be back")

        n = pair.n_sets(first)
        fabric.lose("node0005", 100)
        pair.policy = policy_of_pair().add("one", 0x0010, {"node[0001-0004]": "full"}).add("three", 0x0012, {"ALL_CAS": "full"})
        pair.reload(first)
        wait_for(lambda: pair.n_sets(first) > n, "it to begin")
        for i in (0, 1):
            pair.cluster.pause(i)
        fabric.lose("node0005", 0)
        wait_for(lambda: "nothing is written, because the store cannot be used: no member answers" in a.status(), "the status")
        n = pair.n_sets(first)
        check(pair.wrong(), "all was written before the members were paused")
        time.sleep(2)
        check_equal(pair.n_sets(first), n, "SubnSets without a majority")
        for i in (0, 1):
            pair.cluster.resume(i)
        pair.wait_right()
        check(pair.n_sets(first) > n, "nothing was written with a majority")


def test_members_end():
    """One of three members ends while tables are written, and the leader while others are: nobody notices."""
    first, _ = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a = pair.daemons[first]
        pair.wait_right()
        follower = next(i for i in range(3) if i != pair.cluster.leader())
        for number, member in enumerate((follower, None)):
            n = pair.n_sets(first)
            pair.policy.add("more%d" % number, 0x0020 + number, {"ALL_CAS": "full"})
            fabric.lose("node0005", 100)
            pair.reload(first)
            wait_for(lambda before=n: pair.n_sets(first) > before, "it to begin")
            member = pair.cluster.leader() if member is None else member
            pair.cluster.kill(member)
            fabric.lose("node0005", 0)
            pair.wait_right()
            pair.cluster.start(member)
            wait_for(lambda m=member: pair.cluster.is_healthy(m), "the member to be back")
        check(a.process.poll() is None, "pkeyd ended")


def test_no_majority():
    """Without a majority nothing is written, and pkeyd says so; it goes on when the members are back."""
    first, _ = HEADS
    with fabric_of_pair() as fabric:
        pair = Pair(fabric, policy_of_pair())
        a = pair.daemons[first]
        pair.wait_right()
        seen = len(a.text())
        pair.cluster.kill(0)
        pair.cluster.kill(2)
        n = pair.n_sets(first)
        a.wait_text("no member answers, or the cluster has no majority", after=seen)
        pair.policy.add("two", 0x0011, {"ALL_CAS": "full"})
        pair.reload(first)
        wait_for(lambda: "nothing is written, because the store cannot be used: no member answers" in a.status(), "the status")
        time.sleep(2)
        check_equal(pair.n_sets(first), n, "SubnSets without a majority")
        pair.cluster.start(0)
        pair.wait_right()
        check(pair.n_sets(first) > n, "nothing was written with a majority")


def test_certificates_and_users():
    """Only with its certificate, and against the right CA; with a user only by the password. Neither is in any message."""
    with Fabric(two_level(1, 1, 1), opensm=False) as fabric:
        path = make_certificates(fabric.dir)
        cluster = Cluster(fabric, 1, path)
        password = fabric.write("password", "a secret\n")
        os.chmod(password, 0o600)

        def history(ca="ca.pem", own=True, user="", endpoint=cluster.clients[0]):
            keys = ["endpoints: %s" % endpoint, "ca_file: " + path[ca]]
            keys += ["cert_file: " + path["own.pem"], "key_file: " + path["own.key"]] if own else []
            keys += ["user: " + user, "password_file: " + password] if user else []
            settings = fabric.write("tls.yaml", "role: follow-sm\nstore: etcd\netcd: {%s}\n" % ", ".join(keys))
            result = fabric.run([program("pkeyctl"), "history", "--config", settings, "--state-dir", fabric.path("none")])
            check("a secret" not in result.out + result.err, "the password is shown:", result)
            return result

        history().expect(0)
        check("the certificate of a member cannot be verified" in history(ca="other.pem").expect(1).err, "the wrong CA")
        history(own=False).expect(1)
        history(endpoint=cluster.clients[0].replace("127.0.0.1", "localhost")).expect(1)  # a name that the certificate has not
        # a certificate may have no common name if etcd has users: its gateway refuses that
        for command in (("user", "add", "root:a secret"), ("role", "add", "root"), ("user", "grant-role", "root", "root"), ("auth", "enable")):
            check_equal(cluster.ctl(*command).returncode, 0, "etcdctl " + " ".join(command))
        result = history()
        check("etcd denies access to this user" in result.err, "without a user:", result)
        history(user="root").expect(0)
        fabric.write("password", "wrong\n")
        os.chmod(password, 0o600)
        check("etcd denies access to this user" in history(user="root").expect(1).err, "with another password")


def test_undo_without_pkeyd():
    """It takes the policy of the older generation. pkeyd.yaml there may be the other head node's, which names its own files."""
    with Fabric(two_level(1, 1, 4)) as fabric:
        both = "role: follow-sm\nbeside_opensm: true\ntimeout: 200ms\n" + Cluster(fabric, 1).settings()
        m_key = fabric.write("m_key", "0x1\n")
        os.chmod(m_key, 0o600)
        settings = {HEADS[0]: fabric.write("first.yaml", both + "m_key_file: %s\n" % m_key), "other": fabric.write("other.yaml", both)}

        def pkeyctl(host, *arguments):
            return fabric.run([program("pkeyctl"), *arguments, "--yes", "--config", settings[host], "--state-dir",
                               fabric.path("state-" + host)]).expect(0)

        policies = [Policy().add("one", 0x0010, {"node[0001-0003]": "full"}), Policy().add("one", 0x0010, {"node[0002-0004]": "full"})]
        for policy in policies:
            pkeyctl(HEADS[0], "apply", fabric.write("partitions.yaml", policy.yaml()))
        os.unlink(m_key)
        pkeyctl("other", "undo")
        tables = fabric.tables()
        check(not differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policies[0]), tables), "the change was not undone")


def test_no_password():
    """pkeyd does not start without the password of etcd, and says which file it cannot read."""
    with Fabric(two_level(1, 1, 1), opensm=False) as fabric:
        fabric.settings("role: follow-sm\nstore: etcd\netcd: {endpoints: [http://127.0.0.1:1], user: pkeyd, password_file: /nonexistent}\n")
        daemon = Daemon(fabric, fabric.write("partitions.yaml", Policy().yaml()), wait=False)
        check_equal(daemon.process.wait(timeout=PATIENCE), 1, "exit status of pkeyd")
        check("/nonexistent" in daemon.text() and "the store that pkeyd.yaml names cannot be used" in daemon.text(), daemon.text())


def test_apply_writes_for_longer_than_the_lease():
    """pkeyctl apply renews its lease while it writes: one host drops the writes of the first phase, and is sent each of them seven
    times. Without the lock, nothing more would be sent."""
    with Fabric(two_level(1, 1, 4)) as fabric:
        fabric.settings("role: follow-sm\ntimeout: 1s\nbeside_opensm: true\n" + Cluster(fabric, 1).settings("%ds" % LEASE))
        policy = Policy().add("one", 0x0010, {"node[0002-0003]": "full"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        slow = fabric.tables()[fabric.topology.port_guid("node0003")]
        policy = Policy().add("two", 0x0011, {"ALL_CAS": "full"})
        result = fabric.apply(fabric.write("partitions.yaml", policy.yaml()), "--json", trace="apply",
                              MADTRACE_M_KEY="%d:1" % slow.lid).expect(3)
        check_equal({(f["node"], f["reason"]) for f in result.json()["failed"]}, {("node0003", "set-unanswered")}, "what failed")
        tables = fabric.tables()
        del tables[slow.guid]
        check_equal([p.guid for p in tables.values() if p.type == 1 and 0x8011 not in p.table], [], "hosts that were not written")


def test_not_moved_while_pkeyd_runs():
    """Whichever store it uses, on whichever host, and also when it writes nothing; until it ends, in whatever way. A pkeyd whose lease
    has ended, because it did not reach etcd, counts again after its next sweep."""
    with Fabric(two_level(1, 1, 2)) as fabric:
        cluster = Cluster(fabric, 1)
        fabric.settings("timeout: 200ms\nsweep_interval: 1s\nbeside_opensm: true\n")
        settings = fabric.write("etcd.yaml", read_file(fabric.settings()) + "role: follow-sm\n" + cluster.settings("5s"))
        policy = fabric.write("partitions.yaml", Policy().add("one", 0x0010, {"ALL": "full"}).yaml())

        def copy(kind, state="state"):
            return fabric.run([program("pkeyctl"), "--config", settings, "--state-dir", fabric.path(state), "store", "copy", kind])

        def check_refused(result, holder):
            check(result.status == 1 and holder + " uses the store; nothing was copied" in result.err, result)

        daemon = Daemon(fabric, policy)
        daemon.wait_text("verified")
        check_refused(copy("etcd"), "process %d" % daemon.process.pid)
        check(os.path.exists(fabric.path("state/state.db")), "state.db was moved")
        fabric.pkeyctl("history").expect(0)
        daemon.process.kill()
        daemon.process.wait()
        copy("etcd").expect(0)
        first = Daemon(fabric, policy, settings=settings)
        second = Daemon(fabric, policy, settings=settings, state="state-2", host_name="head2")
        check_refused(copy("sqlite"), "process %d" % first.process.pid)
        check_equal(first.stop(), 0, "exit status of pkeyd")

        def running():
            return cluster.ctl("get", "/pkeyd/running/", "--prefix").stdout.split("\n", 1)

        key, value = running()
        check_equal(value.strip(), "pkeyd on head2 (process %d)" % second.process.pid, "who uses the store in etcd")
        check_refused(copy("sqlite"), value.strip())
        cluster.ctl("lease", "revoke", key.rpartition("/")[2])
        wait_for(lambda: running()[-1].strip() == value.strip(), "the pkeyd whose lease has ended")
        check_equal(second.stop(), 0, "exit status of pkeyd")
        copy("sqlite").expect(0)
        check_equal(len(fabric.pkeyctl("history", "--json").expect(0).json()["generations"]), 1, "generations in state.db")


def test_copies_of_a_fabric():
    """There and back. The way out of a full store names the keys of this fabric only."""
    with Fabric(two_level(1, 1, 1), opensm=False) as fabric:
        settings = fabric.write("copy.yaml", "role: follow-sm\n" + Cluster(fabric, 1).settings("5s"))

        def copy(kind):
            return fabric.run([program("pkeyctl"), "--fabric", "compute", "--config", settings, "--state-dir", fabric.path("state"), "store", "copy",
                               kind])

        policy = Policy().add("one", 0x0010, {"ALL": "full"})
        fabric.apply(fabric.write("partitions.yaml", policy.yaml())).expect(0)
        copy("etcd").expect(0)
        copy("sqlite").expect(0)
        fabric.apply(fabric.write("partitions.yaml", policy.add("two", 0x0011, {"ALL": "full"}).yaml())).expect(0)
        err = copy("etcd").expect(1).err
        check("the other store has records already" in err and "etcdctl del --prefix /pkeyd@compute/record/" in err, err)


if __name__ == "__main__":
    main()
