# SPDX-License-Identifier: GPL-2.0-or-later
"""Random hand-overs between two head nodes with one store in etcd, while clients create, renew and release leases. SEED= and
HAND_OVERS= choose others. The seed decides what happens; not when each process runs.

Checked are, at every SubnSet that a head node sent (madtrace.py):
- it has the lock: no SubnSet of a process is later than the lock of another one, until it got the lock again. One that was paused
  until its lease had ended counts as without the lock;
- no P_Key of the pool may be in the tables of hosts of two clients;
and after each hand-over: what was granted is there, in the list and in the tables, each P_Key at its index; and all tables are what
the policy and the leases say."""

import contextlib
import itertools
import json
import os
import re
import signal
import time

import etcd_proxy
import madtrace
from etcd import Cluster
from harness import Daemon, Fabric, SubnetManager, check, check_equal, main, pause, program, seeded, two_level, wait_for
from lease_load import Load, call
from oracle import Oracle
from private_bus import Bus, require
from test_etcd import HEADS, LEASE, PRIORITY, Pair, policy_of_pair

CLIENT_HOSTS = (("node0002", "node0003"), ("node0004", "node0005"), ("node0006", "node0007"))
POOL = range(0x1000, 0x1005)
POOLS = """pools:
  jobs:
    pkeys: 0x%04x-0x%04x
    ports: node[0002-0007]
    lease: 2h
    rest: 0s
    allow: root
""" % (POOL[0], POOL[-1])
SETTLED = 120  # seconds, with all sanitizers on a loaded host


class HeadNodes(Pair):
    """Each pkeyd has its own host name, its own way to etcd, and a trace for each process."""

    def __init__(self, fabric):
        self.fabric, self.policy, self.pools = fabric, policy_of_pair(), POOLS
        self.buses = {host: Bus(fabric, name="bus-" + host) for host in HEADS}
        self.cluster, self.tenures = Cluster(fabric), etcd_proxy.Tenures()
        self.cuts, self.settings, self.sms, self.daemons = {}, {}, {}, {}
        self.traces = {}  # {PID: (host, follower)}
        for host in HEADS:
            self.write_policy(host)
            self.cuts[host] = etcd_proxy.Cut(self.cluster, self.tenures)
            self.settings[host] = fabric.write("pkeyd-%s.yaml" % host, "role: follow-sm\nsweep_interval: 1s\ntimeout: 200ms\n"
                                               "beside_opensm: true\n" + self.cluster.settings("%ds" % LEASE, self.cuts[host].clients))
            self.sms[host] = SubnetManager(fabric, host, PRIORITY[host])
            if host == HEADS[0]:
                self.sms[host].wait_master()
        self.export_to_opensm(HEADS[0])
        for host in HEADS:
            self.start(host)

    def start(self, host):
        trace = "trace-%s-%d" % (host, len(self.traces))
        daemon = Daemon(self.fabric, self.file(host), trace=trace, host=host, settings=self.settings[host], state="state-" + host,
                        host_name=host, environment=dict(self.buses[host].environment(), MADTRACE_TIMES="1"), wait=False)
        self.daemons[host] = daemon
        self.traces[daemon.process.pid] = (host, madtrace.Follower(self.fabric.path(trace)))

    def history(self, host):
        return self.fabric.run([program("pkeyctl"), "history", "--json", "--config", self.settings[host], "--state-dir",
                                self.fabric.path("state-" + host)], host=host).expect(0).json()

    def holder(self):
        """The PID of who has the lock, by etcd itself; 0: nobody has it; None: etcd does not answer."""
        r = self.cluster.ctl("get", "/pkeyd/lock", "--print-value-only", seconds=5)
        found = re.search(r"\(process (\d+)\)", r.stdout)
        return None if r.returncode != 0 else int(found.group(1)) if found else 0


class TraceChecks:
    """Checks all SubnSets of both head nodes in the order of their times."""

    def __init__(self, heads, tables):
        self.heads, self.pending, self.n_sets = heads, [], 0
        self.client_of = {host: i for i, hosts in enumerate(CLIENT_HOSTS) for host in hosts}
        self.host_at = {p.lid: p.name for p in tables.values() if p.name in self.client_of}  # by LID
        self.may_hold = {}  # {(host, block): bases of the pool}
        self.last_set = {}  # {(host, block): time}
        self.asked = {}     # {(PID, TID): (time, host, block)}
        self.seen = {}      # {(host, index): {base: when it was read there last}}

    def run(self):
        now = etcd_proxy.boot_time()
        self.pending += [(mad.time, pid, mad) for pid, (_, trace) in self.heads.traces.items() for mad in trace.read()]
        self.pending.sort(key=lambda x: x[0])
        due = list(itertools.takewhile(lambda x: x[0] <= now, self.pending))
        del self.pending[:len(due)]
        for time_, pid, mad in due:
            if mad.sent and mad.method == madtrace.SET:
                self._check_lock(time_, pid, mad)
                self.n_sets += 1
            if mad.attribute == madtrace.P_KEY_TABLE:
                self._follow(time_, pid, mad)

    def _check_lock(self, time_, pid, mad):
        owners = [p for t, p in list(self.heads.tenures.entries) if t <= time_]
        check(owners and owners[-1] == pid, "process %d of %s sent %r at %d without the lock; it was given at: %r" % (
            pid, self.heads.traces[pid][0], mad, time_, self.heads.tenures.entries[-8:]))

    def _destination(self, pid, mad):
        """The host to which a MAD goes; None: it is of no client."""
        if mad.path == "-":
            return self.host_at.get(mad.lid)
        node = self.heads.traces[pid][0]
        for port in bytes.fromhex(mad.path)[1:]:
            node = self.heads.fabric.topology.peer(node, port)[0]
        return node if node in self.client_of else None

    def _follow(self, time_, pid, mad):
        if mad.sent:
            host = self._destination(pid, mad)
            self.asked[pid, mad.tid] = (time_, host, mad.block)
            if mad.method == madtrace.SET and host:
                self._written(time_, host, mad)
        elif mad.method == madtrace.GET_RESP and mad.status == 0:
            self._read(time_, mad, *self.asked.pop((pid, mad.tid), (0, None, 0)))

    def _read(self, time_, mad, sent, host, block):
        if host and sent >= self.last_set.get((host, block), 0):
            self.may_hold[host, block] = self._bases(mad)
        for index, key in enumerate(mad.entries(), 32 * block):
            self.seen.setdefault((host, index), {})[key & 0x7FFF] = time_

    def was_taken(self, host, index, base, since):
        """Whether OpenSM put another P_Key there, which it does where its file is older."""
        return any(other not in (0, base) and time_ > since for other, time_ in self.seen.get((host, index), {}).items())

    def _bases(self, mad):
        return {key & 0x7FFF for key in mad.entries()} & set(POOL)

    def _written(self, time_, host, mad):
        """It may have arrived or not."""
        self.last_set[host, mad.block] = time_
        self.may_hold[host, mad.block] = self.may_hold.get((host, mad.block), set()) | self._bases(mad)
        for base in self._bases(mad):
            holders = {h for (h, _), bases in self.may_hold.items() if base in bases}
            check_equal(len({self.client_of[h] for h in holders}), 1, "%d: clients with 0x%04x (%r) after %r for %s" % (
                time_, base, holders, mad, host))


class HandOvers:
    def __init__(self, fabric, rng):
        self.fabric, self.rng = fabric, rng
        self.heads = HeadNodes(fabric)
        self.writer = HEADS[0]  # the head node with the master SM
        for bus in self.heads.buses.values():
            bus.wait_name()
        self.heads.wait_right()
        self.traces = TraceChecks(self.heads, fabric.tables())
        self.load = Load(self.heads.buses, CLIENT_HOSTS, rng)
        self.n_handed_over = self.n_policies = self.n_moved = 0

    def other(self):
        return HEADS[1 - HEADS.index(self.writer)]

    def sleep(self, seconds):
        time.sleep(self.rng.uniform(0, seconds))

    # --- what goes wrong for a while ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def pkeyd_paused(self, host=None):
        """For longer than its lease."""
        process, began = self.heads.daemons[host or self.rng.choice(HEADS)].process, time.monotonic()
        pause(process)
        yield
        if self.heads.holder() is not None:
            wait_for(lambda: self.heads.holder() != process.pid, "the lease of the one that is paused to end")
            self.heads.tenures.end(process.pid)
        time.sleep(max(0, began + LEASE + 1 - time.monotonic()))
        process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def pkeyd_killed(self):
        host = self.rng.choice(HEADS)
        self.heads.daemons[host].process.kill()
        self.heads.daemons[host].process.wait()
        yield
        self.heads.start(host)

    @contextlib.contextmanager
    def member_lost(self, members=None):
        """One is killed, or stops: any, or the one that leads."""
        cluster, kills = self.heads.cluster, self.rng.random() < 0.5
        if members is None:
            members = [self.rng.choice((self.rng.randrange(3), cluster.leader(seconds=5) or 0))]
        for i in members:
            if kills:
                cluster.kill(i)
            else:
                cluster.pause(i)
        yield
        for i in members:
            if kills:
                cluster.start(i)
            else:
                cluster.resume(i)
        for i in members:
            wait_for(lambda member=i: cluster.is_healthy(member), "a member of etcd to be back")

    def etcd_lost(self):
        return self.member_lost(range(3))

    @contextlib.contextmanager
    def cut_off(self):
        """A head node from all members."""
        cut = self.heads.cuts[self.rng.choice(HEADS)]
        cut.set(self.rng.choice((etcd_proxy.CLOSED, etcd_proxy.HELD, etcd_proxy.DEAF)))
        yield
        cut.set(etcd_proxy.OPEN)

    @contextlib.contextmanager
    def port_down(self):
        host = self.rng.choice(sum(CLIENT_HOSTS, ()))
        self.fabric.console('Unlink "%s"' % host)
        yield
        self.fabric.console('ReLink "%s"' % host)

    @contextlib.contextmanager
    def host_mute(self):
        """Its table can neither be read nor written, so pkeyd tries for seconds."""
        host = self.rng.choice(sum(CLIENT_HOSTS, ()))
        self.fabric.lose(host, 100)
        yield
        self.fabric.lose(host, 0)

    @contextlib.contextmanager
    def policy_loaded(self):
        self.n_policies += 1
        policy = policy_of_pair()
        for i in range(self.rng.randint(1, 4)):
            policy.add("more%d" % i, 0x0020 + (self.n_policies + i) % 8, {self.rng.choice(("ALL_CAS", "node[0002-0005]")): "full"})
        self.heads.policy = policy
        for host in HEADS:
            self.heads.write_policy(host)
        self.heads.export_to_opensm(HEADS[0])
        self.load_policy()
        yield

    @contextlib.contextmanager
    def paused_in_apply(self):
        """The writer, while it waits for a host."""
        with self.host_mute(), self.policy_loaded():
            self.sleep(0.5)
            with self.pkeyd_paused(self.writer):
                yield

    def load_policy(self):
        process = self.heads.daemons[self.writer].process
        if process.poll() is None:
            process.send_signal(signal.SIGHUP)

    # --- a hand-over ----------------------------------------------------------------------------------------------------------

    def choose(self):
        rng = self.rng
        kinds = [k for k in (rng.choice((None, None, self.pkeyd_paused, self.paused_in_apply, self.pkeyd_killed)),
                             rng.choice((None, None, self.member_lost, self.etcd_lost, self.cut_off)),
                             rng.choice((None, None, None, self.port_down, self.host_mute)),
                             rng.choice((None, self.policy_loaded))) if k]
        rng.shuffle(kinds)
        return kinds

    def move_sm(self):
        """The first SM has the higher priority: while it runs it is the master. It may return while the second one runs or not."""
        first, second = (self.heads.sms[host] for host in HEADS)
        self.writer = self.other()
        self.n_handed_over += 1
        if self.writer == HEADS[1]:
            first.kill()
        else:
            kills = self.rng.random() < 0.5
            if kills:
                second.kill()
            first.start()
            if kills:
                second.start()
        self.heads.sms[self.writer].wait_master(SETTLED)

    def step(self):
        kinds, moves, n = self.choose(), self.rng.random() < 0.85, self.n_policies
        print("%4d %s%s" % (self.n_handed_over, "hand-over to %s" % self.other() if moves else "no hand-over",
                            "".join(" %s" % k.__name__ for k in kinds)), flush=True)
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(kind())
                self.sleep(0.5)
            if moves:
                self.move_sm()
            self.sleep(LEASE)
        if self.port_down in kinds:
            self.heads.sms[self.writer].process.send_signal(signal.SIGHUP)
        self.fabric.disconnect_dead()
        self.settle(self.n_policies > n)

    def settle(self, policy_changed):
        wait_for(self.has_writer, "%s to have the lock" % self.writer, SETTLED)
        if policy_changed:  # the one that should have loaded it may have been killed, or not the writer any more when it did
            wait_for(self.is_policy_loaded, "%s to load the policy" % self.writer, SETTLED)
        with self.load.paused():
            self.check()

    def has_writer(self):
        pid = self.heads.daemons[self.writer].process.pid
        return self.heads.tenures.last() == pid and self.heads.holder() == pid

    def is_policy_loaded(self):
        """By the answer to a reload: the tables may be right before, because OpenSM has the same policy."""
        answer = self.heads.buses[self.writer].busctl("--json=short", "--timeout=20", "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1",
                                                      "Reload")
        return answer.returncode == 0 and json.loads(answer.stdout)["data"][0] in ("carried-out", "partial", "unchanged")

    def check(self):
        self.traces.run()
        try:
            wait_for(lambda: not self.problems(), "the tables", SETTLED)
        except AssertionError:
            check_equal(self.problems(), [], "the tables")
        self.traces.run()
        check_equal(self.load.wrong, [], "what clients were told")

    def listed(self):
        """{ID: lease} by the writer; None: no answer."""
        answer = call(self.heads.buses[self.writer], "ListWhole", "s", "")
        return answer and {lease["Id"]: lease for lease in answer[0]}

    def problems(self):
        listed = self.listed()
        if listed is None:
            return ["no answer"]
        known = {lease.id for lease in self.load.leases()} | self.load.may_come_back
        check_equal([lease for lease in listed.values() if lease["Id"] not in known and lease["State"] != "releasing"], [],
                    "leases that have ended, by what clients were told")
        keys = [lease["PKey"] for lease in listed.values()]
        check_equal(len(keys), len(set(keys)), "P_Keys of leases: %r" % listed)
        granted = {lease.id: lease for lease in self.load.leases() if lease.holds()}
        for lease in granted.values():
            got = listed.get(lease.id, {})
            check((got.get("PKey"), got.get("State")) == (lease.base, "active") or not lease.holds(), "%r is listed as %r" % (lease, got))
        return self.wrong_tables(granted, listed)

    def wrong_tables(self, granted, listed):
        tables = self.fabric.tables()
        expected = Oracle(tables, self.fabric.topology.port_guid(HEADS[0])).tables(self.heads.policy)
        wrong = []
        for guid, port in tables.items():
            if port.table is None:
                wrong.append("%r cannot be read" % port)
                continue
            mine = [lease for lease in granted.values() if port.name in lease.entries]
            wanted = set(expected[guid]) | {lease.entries[port.name][1] for lease in mine}
            # of leases that are just being granted or ending
            others = {lease["PKey"] | bit for lease in listed.values() if lease["Id"] not in granted for bit in (0, 0x8000)
                      if any(m[0] == guid for m in lease["Members"])}
            if wanted - set(port.keys()) or set(port.keys()) - wanted - others or len(port.keys()) > len(set(port.keys())):
                wrong.append("%r has %s, not %s" % (port, ["%04x" % k for k in port.keys()], ["%04x" % k for k in sorted(wanted)]))
            wrong += ["%s of %r is elsewhere in %r" % (port.name, lease, port.table) for lease in mine if self.has_moved(lease, port)]
        return wrong

    def has_moved(self, lease, port):
        index, key = lease.entries[port.name]
        if port.table[index] == key:
            return False
        self.traces.run()
        if key not in port.table or not self.traces.was_taken(port.name, index, lease.base, lease.since):
            return True
        lease.entries[port.name] = (port.table.index(key), key)
        self.n_moved += 1
        return False

    # --- the end --------------------------------------------------------------------------------------------------------------

    def all_released(self):
        listed = self.listed()
        for lease_id in listed or ():
            call(self.heads.buses[self.writer], "Release", "s", lease_id)
        return listed == {}

    def finish(self):
        self.load.runs.clear()
        with self.load.paused():
            wait_for(self.all_released, "all leases to be released", SETTLED)
        for client in self.load.clients:
            client.leases.clear()
        self.check()
        self.heads.wait_same_history()
        for host in HEADS:
            check_equal(self.heads.daemons[host].stop(), 0, "exit status of pkeyd")
        check_equal(self.heads.cluster.holder(), "", "who has the lock")
        check_equal(call(self.heads.buses[self.writer], "List"), None, "an answer of a pkeyd that ended")
        print("%d hand-overs, %d SubnSets; the lock was taken %d times; OpenSM took the index of %d entries" % (
            self.n_handed_over, self.traces.n_sets, sum(1 for _, pid in self.heads.tenures.entries if pid), self.n_moved))
        print("answers: %s" % ", ".join("%s %d" % x for x in sorted(self.load.outcomes.items())))


def test_hand_overs():
    require()
    rng, n = seeded(1), int(os.environ.get("HAND_OVERS", 6))
    with Fabric(two_level(2, 1, 4), opensm=False) as fabric:
        run = HandOvers(fabric, rng)
        run.load.runs.set()
        while run.n_handed_over < n:
            run.step()
        run.finish()


if __name__ == "__main__":
    main()
