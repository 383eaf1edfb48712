# SPDX-License-Identifier: GPL-2.0-or-later
"""writer: opensm. Checks the MADs of OpenSM against the promises; then faults of its file, of OpenSM and of pkeyd during a
change. SEED= and TRANSITIONS= choose other policies or more."""

import os
import re
import shutil
import signal
import subprocess

import madtrace
from harness import (PRELOAD, Daemon, Fabric, check, check_equal, main, pause, program, read_file, seeded, two_level, wait_for)
from oracle import Generator, Oracle, Policy, differences

DEFAULTS = {"ALL": "limited", "SELF": "full"}


class Site:
    """A fabric with a traced OpenSM, the settings with writer: opensm, and the expected tables."""

    def __init__(self, topology=None, opensm_conf=None):
        self.fabric = Fabric(topology or two_level(2, 1, 4), opensm=False, opensm_conf=opensm_conf)
        self.daemon = None

    def __enter__(self):
        f = self.fabric.__enter__()
        try:
            f.opensm_environment = {"LD_PRELOAD": program("madtrace-preload.so") + ":" + PRELOAD, "MADTRACE": f.path("osm-trace")}
            f.write("partitions.conf", "")
            self.start_opensm()
            config = ", config: " + f.path("opensm.conf") if f.opensm_conf else ""
            f.settings("timeout: 200ms\nsweep_interval: 1s\nwriter: opensm\nopensm: {partitions_conf: %s, reload: pidfile:%s%s}\n" % (
                self.conf, f.path("opensm.pid"), config))
            self.tables = f.tables()
            self.oracle = Oracle(self.tables, f.topology.port_guid(f.home))
        except BaseException:
            self.fabric.__exit__(Exception, None, None)
            raise
        return self

    def __exit__(self, *how):
        if how[0] and self.daemon:
            print(self.daemon.text()[-3000:])
            print(read_file(self.conf)[:600])
        self.fabric.__exit__(*how)

    @property
    def conf(self):
        return self.fabric.path("partitions.conf")

    def start_opensm(self):
        try:
            os.remove(self.fabric.path("osm.log"))
        except FileNotFoundError:
            pass
        self.fabric.start_opensm()
        self.fabric.write("opensm.pid", "%d\n" % self.fabric.opensm.pid)

    def kill_opensm(self):
        self.fabric.opensm.kill()
        self.fabric.opensm.wait()

    def alarms(self):
        return [line for line in self.daemon.text().splitlines() if "ALERT:" in line or "critical:" in line]

    def policy(self, policy):
        return self.fabric.write("partitions.yaml", policy.yaml())

    def start(self, policy, **how):
        self.daemon = Daemon(self.fabric, self.policy(policy), **how)
        return self.daemon

    def differ(self, policy):
        return differences(self.oracle.tables(policy), self.fabric.tables())

    def wait_right(self, policy, what):
        wait_for(lambda: not self.differ(policy), "the tables to match the policy: " + what)

    def trace(self):
        """The P_KeyTable MADs of endports that OpenSM has sent and received, with the LIDs of the ports."""
        mads = madtrace.read(self.fabric.path("osm-trace"))
        lids = {p.guid: p.lid for p in self.tables.values()}
        path_of, ports, found = {}, {}, []
        for mad in mads:
            if mad.sent:
                path_of[mad.tid] = mad.path
            path = path_of.get(mad.tid)
            if mad.attribute == 0x11 and mad.method == madtrace.GET_RESP and path:
                ports[path] = int.from_bytes(mad.data[20:28], "big")
            if mad.attribute != madtrace.P_KEY_TABLE or (path in ports and mad.switch_port):
                continue
            check(path in ports and ports[path] in lids, "a P_KeyTable MAD to nobody:", mad)
            mad.lid, mad.path = lids[ports[path]], "-"
            found.append(mad)
        return found

    def check_promises(self, before, wanted, n_mads, context):
        after = self.fabric.tables()
        promises = madtrace.Promises({p.lid: p.table for p in before.values()}, {p.lid: p.table for p in after.values()},
                                     {before[g].lid: keys for g, keys in wanted.items()}, 0)
        # OpenSM chooses the indexes
        broken = [b for b in promises.replay(self.trace()[n_mads:]) if not re.match(r"LID \d+ index ", b)]
        check_equal(broken, [], "broken promises in " + context)
        return promises.n_sets


def simple(**members):
    p = Policy()
    p.add("default", 0x7FFF, dict(DEFAULTS))
    for i, (name, who) in enumerate(sorted(members.items())):
        p.add(name, 0x10 + i, who)
    return p


def hosts(site, *numbers):
    names = [h[0] for h in site.fabric.topology.hosts]
    return [names[n] for n in numbers]


def without_both(policy):
    for partition in policy.partitions.values():
        partition["members"] = [(who, "full" if m == "both" else m) for who, m in partition["members"]]
    return policy


def run(seed, allow_both):
    rng = seeded(seed)
    conf = "allow_both_pkeys TRUE\n" if allow_both else None
    with Site(two_level(3, 2, 4), opensm_conf=conf) as site:
        generator = Generator(rng, site.tables)

        def make(what):
            return generator.unambiguous(site.oracle, lambda: what() if allow_both else without_both(what()))

        policy = make(generator.policy)
        site.start(policy)
        check_equal(site.differ(policy), [], "tables after the start")
        total = 0
        for i in range(int(os.environ.get("TRANSITIONS", 6))):
            before, n_mads = site.fabric.tables(), len(site.trace())
            policy = make(lambda: generator.edit(policy))
            site.policy(policy)
            site.daemon.reload()
            context = "transition %d to\n%s" % (i, policy.yaml())
            check_equal(site.differ(policy), [], "tables after " + context)
            total += site.check_promises(before, site.oracle.tables(policy), n_mads, context)
        check(total > 0, "not one table was written")
        check("phase" not in read_file(site.conf).splitlines()[1], "the last file is not that of the policy")
        site.fabric.heavy_sweep()
        check_equal(site.differ(policy), [], "tables after a heavy sweep")
        check_equal(site.alarms(), [], "alarms")


def test_random_transitions():
    run(1, False)


def test_random_transitions_with_both():
    run(2, True)


def test_index_0_keeps_its_base():
    """With allow_both_pkeys OpenSM treats both entries of a base as two: index 0 must not change."""
    with Site(opensm_conf="allow_both_pkeys TRUE\n") as site:
        a, b = hosts(site, 1, 2)
        site.start(Policy().add("default", 0x7FFF, {"ALL": "full"}))
        n_mads = len(site.trace())
        for default in (DEFAULTS, {"ALL": "full"}, {"ALL": "limited", a: "both", b: "full"}, {"ALL": "full", a: "limited"},
                        {"ALL": "full", a: "both"}, DEFAULTS):
            policy = Policy().add("default", 0x7FFF, dict(default)).add("p", 0x10, {a: "full", b: "limited"})
            site.policy(policy)
            site.daemon.reload()
            check_equal(site.differ(policy), [], "tables of %s" % default)
        written = [m for m in site.trace()[n_mads:] if m.sent and m.method == madtrace.SET and m.block == 0]
        check(written, "no table was written")
        check_equal([m for m in written if m.entries()[0] & 0x7FFF != 0x7FFF], [], "Sets that take index 0 from its base")
        check_equal(site.alarms(), [], "alarms")


def test_both_needs_the_option():
    with Site() as site:
        a, b = hosts(site, 1, 2)
        first = simple(p={a: "full", b: "limited"})
        d = site.start(first)
        site.policy(simple(p={a: "both"}))
        d.reload()
        check("allow_both_pkeys TRUE" in d.text() and "generation 1 stays in force" in d.text(), d.text())
        check_equal(site.differ(first), [], "tables")


def test_pkeyd_sends_no_set():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        site.start(simple(p={a: "full", b: "limited"}), trace="pkeyd-trace")
        site.policy(simple(p={a: "limited", c: "full"}))
        site.daemon.reload()
        mads = madtrace.read(site.fabric.path("pkeyd-trace"))
        check(mads, "the trace is empty")
        check_equal([m for m in mads if m.sent and m.method == madtrace.SET], [], "Sets that pkeyd sent")
        result = site.fabric.apply(site.fabric.path("partitions.yaml"), trace="pkeyctl-trace").expect(1)
        check("pkeyctl reload" in result.err, result)
        check_equal(madtrace.read(site.fabric.path("pkeyctl-trace")), [], "MADs of pkeyctl apply")


def test_foreign_and_edited_files():
    with Site() as site:
        a, b = hosts(site, 1, 2)
        policy = simple(p={a: "full", b: "limited"})
        foreign = "# ours since 2011\nDefault=0x7fff: ALL=limited, SELF=full;\n"
        site.fabric.write("partitions.conf", foreign)
        d = site.start(policy, wait=False)
        d.wait_text("was not written by pkeyd")
        check("pkeyctl import" in d.text(), "what to do is not said")
        check_equal(read_file(site.conf), foreign, "the foreign file")
        check("is in force" not in d.text(), "nothing can be written:", d.text())
        site.fabric.write("partitions.conf.before-pkeyd", foreign)
        site.wait_right(policy, "after the file was given")
        d.wait_text("generation 1 is in force")
        wait_for(lambda: "phase" not in read_file(site.conf).splitlines()[1], "the file of the policy")
        edited = read_file(site.conf).replace("=limited", "=full", 1)
        site.fabric.write("partitions.conf", edited)
        d.wait_text("was edited after pkeyd wrote it")
        check_equal(read_file(site.conf), edited, "the edited file")


def test_hand_over():
    """The steps of pkeyd-opensm(7): import, verify, copy, settings, check, plan, start."""
    with Site() as site:
        f = site.fabric
        f.write("partitions.conf", "Default=0x7fff: ALL=limited, SELF=full;\nlab=0x10: 0x%016x=full;\n" %
                f.topology.port_guid(hosts(site, 1)[0]))
        f.heavy_sweep()
        before = f.tables()
        f.pkeyctl("import", site.conf, "--output", f.path("partitions.yaml")).expect(0)
        f.pkeyctl("verify", f.path("partitions.yaml")).expect(0)
        f.write("partitions.conf.before-pkeyd", read_file(site.conf))
        f.run([program("pkeyd"), "--check", "--config", f.settings(), "--policy", f.path("partitions.yaml")]).expect(0)
        f.pkeyctl("plan", f.path("partitions.yaml")).expect(0)
        site.daemon = Daemon(f, f.path("partitions.yaml"))
        wait_for(lambda: "pkeyd" in read_file(site.conf).splitlines()[0], "pkeyd's own file in place of OpenSM's")
        f.heavy_sweep()
        check_equal({g: p.table for g, p in f.tables().items()}, {g: p.table for g, p in before.items()}, "tables")


def test_site_without_partitions_conf():
    """OpenSM has no file: all ports are full members by default, and there is no file to import or to copy."""
    with Site() as site:
        a, b = hosts(site, 1, 2)
        os.remove(site.conf)
        site.fabric.heavy_sweep()
        policy = simple(p={a: "full", b: "limited"})
        d = site.start(policy)
        site.wait_right(policy, "where there was no file")
        wait_for(lambda: "phase" not in read_file(site.conf).splitlines()[1], "the file of the policy")
        site.fabric.heavy_sweep()
        check_equal(site.differ(policy), [], "tables after OpenSM's heavy sweep")
        check("was not written by pkeyd" not in d.text(), "it asks for a hand-over:\n" + d.text())


def broadcast_groups(site):
    """The SA answers some time after a start."""
    site.fabric.heavy_sweep()
    answer = wait_for(lambda: [r.out for r in [site.fabric.run(["saquery", "-g"])] if "failed" not in r.err], "the SA's groups")[0]
    return re.findall(r"MGID\.*(\S+)", answer)


def test_broadcast_group_of_the_fallback():
    """OpenSM drops a broadcast group when it restarts: the file keeps it, or the journal warns."""
    for members, owns, kept in (({"ALL": "full"}, None, False), ({"ALL": "full"}, None, True), (None, ["0x0010"], True)):
        with Site() as site:
            os.remove(site.conf)
            site.fabric.heavy_sweep()
            before = broadcast_groups(site)
            check(before, "OpenSM has no group of its own")
            policy = Policy()
            if members:
                policy.add("default", 0x7FFF, members)
            policy.add("p", 0x10, {hosts(site, 1)[0]: "full"})
            policy.owns = owns
            text = policy.yaml()
            if members and kept:
                text = text.replace("pkey: 0x7fff\n", "pkey: 0x7fff\n    ipoib: true\n")
            site.daemon = Daemon(site.fabric, site.fabric.write("partitions.yaml", text))
            wait_for(lambda: "=0x0010" in read_file(site.conf) and "phase" not in read_file(site.conf).splitlines()[1], "the policy's file")
            warned = "OpenSM made a broadcast group in partition default (0x7fff); the policy has no ipoib there" in site.daemon.text()
            check_equal(warned, not kept, "the journal warns:\n" + site.daemon.text())
            site.kill_opensm()
            site.start_opensm()
            check_equal(broadcast_groups(site), before if kept else [], "groups after OpenSM's restart")


def break_file(site, how):
    text = read_file(site.conf)
    if how == "gone":
        os.remove(site.conf)
    else:
        site.fabric.write("partitions.conf", {"empty": "", "cut": text[:len(text) // 2],
                                              "broken": text.replace(": full", ":full") + "oops=0x77: node0001=full;\n"}[how])


def restored(how):
    """Another program breaks the file, and OpenSM sweeps before pkeyd reads it."""
    with Site() as site:
        a, b = hosts(site, 1, 2)
        policy = simple(p={a: "full", b: "limited"})
        d = site.start(policy)
        good = read_file(site.conf)
        pause(d.process)
        break_file(site, how)
        site.fabric.heavy_sweep()
        opened = [p for p in site.fabric.tables().values() if p.keys() != [0xFFFF]] == []
        check_equal(opened, how in ("broken", "gone", "empty"), "OpenSM opened the fabric")
        d.process.send_signal(signal.SIGCONT)
        site.wait_right(policy, "after the file was " + how)
        wait_for(lambda: read_file(site.conf) == good, "the good file to be back")
        if opened:
            check("ALERT: OpenSM fell back to its default partitions" in d.text(), "no alarm:\n" + d.text())
        if how == "broken":
            check("oops" in read_file(site.conf + ".refused"), "the broken file was not kept")


def test_broken_file():
    restored("broken")


def test_vanished_file():
    restored("gone")


def test_truncated_file():
    with Site() as site:
        a, b = hosts(site, 1, 2)
        policy = simple(p={a: "full", b: "limited"})
        d = site.start(policy)
        good = read_file(site.conf)
        for how, words in (("cut", "was cut short"), ("empty", "is empty"), ("gone", "is gone")):
            break_file(site, how)
            wait_for(lambda: read_file(site.conf) == good, "the good file to be back")
            d.wait_text("which pkeyd wrote, %s" % words)
            site.wait_right(policy, "after the file was " + how)  # the next file is never incomplete
        site.fabric.heavy_sweep()
        check_equal(site.differ(policy), [], "tables")


def test_opensm_killed():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        policy = simple(p={a: "limited", c: "full"})
        begun(site, policy)
        site.kill_opensm()
        d.wait_text("pkeyd: error: OpenSM ")  # it ended, or (if it ended at once) could not be signalled
        site.start_opensm()
        site.wait_right(policy, "after OpenSM came back")


def begun(site, policy):
    """Waits until pkeyd has given the first phase of this policy to an OpenSM that hangs."""
    site.policy(policy)
    site.fabric.opensm.send_signal(signal.SIGSTOP)
    site.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: " phase " in read_file(site.conf), "the first phase")


def test_opensm_hangs():
    """The file of the phase stays, with an entry of priority crit; OpenSM carries it out when it continues."""
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        policy = simple(p={a: "limited", c: "full"})
        begun(site, policy)
        d.wait_text("critical: OpenSM did not carry out its partition file (revoke)")
        check(" phase revoke " in read_file(site.conf), read_file(site.conf)[:200])
        site.fabric.opensm.send_signal(signal.SIGCONT)
        site.wait_right(policy, "after OpenSM woke up")


def test_another_policy_on_the_way():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        begun(site, simple(p={a: "limited", c: "full"}))
        policy = simple(p={b: "full", c: "limited"}, q={a: "full"})
        site.policy(policy)
        d.process.send_signal(signal.SIGHUP)
        site.fabric.opensm.send_signal(signal.SIGCONT)
        site.wait_right(policy, "the second one")
        check_equal(site.alarms(), [], "alarms")


def test_sigterm_on_the_way():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        policy = simple(p={a: "limited", c: "full"})
        begun(site, policy)
        check_equal(d.stop(), 0, "pkeyd's exit status")
        check(" phase revoke " in read_file(site.conf), read_file(site.conf)[:200])
        site.fabric.opensm.send_signal(signal.SIGCONT)
        site.start(policy)
        check_equal(site.differ(policy), [], "tables")


def test_pkeyd_killed():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        before, n_mads = site.fabric.tables(), len(site.trace())
        policy = simple(p={a: "limited", c: "full"})
        begun(site, policy)
        d.process.kill()
        d.process.wait()
        site.fabric.opensm.send_signal(signal.SIGCONT)
        site.start(policy)
        check_equal(site.differ(policy), [], "tables after the second start")
        site.check_promises(before, site.oracle.tables(policy), n_mads, "the way with two pkeyds")


def test_drift_is_repaired():
    """OpenSM does not notice entries of other programs, and would keep them forever."""
    with Site() as site:
        a, b = hosts(site, 1, 2)
        policy = simple(p={a: "full", b: "limited"})
        site.start(policy)
        port = next(p for p in site.fabric.tables().values() if p.name == b)
        site.fabric.set_p_key(port, i5=0x8123)
        site.wait_right(policy, "an unexpected entry")
        port = next(p for p in site.fabric.tables().values() if p.name == b)
        site.fabric.set_p_key(port, **{"i%d" % port.table.index(0x10): 0})
        site.wait_right(policy, "an entry that was lost")


def test_mirror():
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        site.fabric.settings("timeout: 200ms\nsweep_interval: 1s\nopensm: {mirror: %s}\n" % site.conf)
        policy = simple(p={a: "full", b: "limited"})
        d = site.start(policy)
        for policy in (policy, simple(p={a: "limited", c: "full"})):
            site.policy(policy)
            d.reload()
            check_equal(site.differ(policy), [], "tables")
            site.fabric.heavy_sweep()
            check_equal(site.differ(policy), [], "tables after OpenSM's heavy sweep")
        foreign = "Default=0x7fff: ALL=limited, SELF=full;\n"
        site.fabric.write("partitions.conf", foreign)
        d.wait_text("was not written by pkeyd")
        check_equal(read_file(site.conf), foreign, "the foreign file")


def test_apply_beside_a_mirror():
    """pkeyctl does not write the mirror, and warns of the consequence."""
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        site.fabric.settings("timeout: 200ms\nsweep_interval: 1s\nopensm: {mirror: %s}\n" % site.conf)
        d = site.start(simple(p={a: "full", b: "limited"}))
        check_equal(d.stop(), 0, "pkeyd's exit status")
        before = read_file(site.conf)
        site.policy(simple(p={a: "limited", c: "full"}))
        applied = site.fabric.pkeyctl("apply", site.fabric.path("partitions.yaml"), "--yes", "--json").expect(0).json()
        check_equal([f["severity"] for f in applied["findings"] if f["code"] == "plan.mirror"], ["warning"], "findings")
        check_equal(read_file(site.conf), before, "the mirror")


def test_hosts_that_are_down():
    """Hosts are unplugged while the policy changes, and return while pkeyd is stopped: they get the entries of OpenSM's
    file."""
    with Site() as site:
        a, b, c = hosts(site, 1, 2, 3)
        d = site.start(simple(p={a: "full", b: "limited"}))
        policy = simple(p={a: "full", b: "full", c: "limited"}, q={b: "limited", a: "full"})
        site.fabric.console('Unlink "%s"' % b)
        d.wait_text("no longer in the fabric")
        site.policy(policy)
        d.reload()
        check_equal(d.stop(), 0, "pkeyd's exit status")
        site.fabric.console('ReLink "%s"' % b)
        site.fabric.heavy_sweep()
        wait_for(lambda: not site.differ(policy), "the host to have its entries again")
        check_equal(site.alarms(), [], "alarms")


def held_back(site, a, c, d):
    """C did not get the P_Key while A may still hold it; another partition was written."""
    wait_for(lambda: 0x8011 in next(p for p in site.fabric.tables().values() if p.name == d).keys(), "the other partition")
    tables = {p.name: p for p in site.fabric.tables().values()}
    check_equal(tables[a].table, None, "the table of the mute host")
    check(not any(k & 0x7FFF == 0x10 for k in tables[c].keys()), "C was let in:", tables[c].keys())
    site.daemon.wait_text("held back: partition 0x0010")


def answers_again(site, a, c, policy):
    """From here on at most one of both is in the partition at any time."""
    site.fabric.lose(a, 0)

    def right():
        tables = {p.name: p for p in site.fabric.tables().values() if p.table is not None}
        members = [n for n in (a, c) if n in tables and any(k & 0x7FFF == 0x10 for k in tables[n].keys())]
        check(len(members) < 2, "both are members:", members)
        return len(tables) == len(site.tables) and not site.differ(policy)

    wait_for(right, "the policy to be carried out after the host answers again")


def test_mute_host():
    """A leaves a partition and C joins it. A answers no P_KeyTable MADs, of pkeyd or OpenSM."""
    with Site() as site:
        a, b, c, d = hosts(site, 1, 2, 3, 4)
        site.start(simple(p={a: "full", b: "full"}))
        site.fabric.lose(a, 100)
        policy = simple(p={b: "full", c: "full"}, q={d: "full"})
        site.policy(policy)
        site.daemon.reload()
        held_back(site, a, c, d)
        check_equal(site.daemon.process.poll(), None, "pkeyd's end")
        answers_again(site, a, c, policy)
        check_equal(site.alarms(), [], "alarms")


def test_mute_host_on_the_way():
    """A stops answering after OpenSM got the file that removes the partition from it, and before OpenSM reads the file."""
    with Site() as site:
        a, b, c, d = hosts(site, 1, 2, 3, 4)
        site.start(simple(p={a: "full", b: "full"}))
        policy = simple(p={b: "full", c: "full"}, q={d: "full"})
        begun(site, policy)
        site.fabric.lose(a, 100)
        site.fabric.opensm.send_signal(signal.SIGCONT)
        held_back(site, a, c, d)
        answers_again(site, a, c, policy)


def test_mute_host_and_a_new_pkeyd():
    """As above; a pkeyd without state assumes that A holds anything."""
    with Site() as site:
        a, b, c, d = hosts(site, 1, 2, 3, 4)
        first = site.start(simple(p={a: "full", b: "full"}))
        site.fabric.lose(a, 100)
        check_equal(first.stop(), 0, "pkeyd's exit status")
        shutil.rmtree(site.fabric.path("state"))
        policy = simple(p={b: "full", c: "full"})
        site.start(policy)
        site.daemon.wait_text("held back: partition")
        tables = {p.name: p for p in site.fabric.tables().values()}
        check(not any(k & 0x7FFF == 0x10 for k in tables[c].keys()), "C was let in:", tables[c].keys())
        answers_again(site, a, c, policy)


def test_moved_lids():
    """OpenSM restarts and swaps the LIDs of two hosts. A reload notices that before it uses a table."""
    with Site(opensm_conf="honor_guid2lid_file TRUE\n") as site:
        a, b, c = hosts(site, 1, 2, 3)
        site.fabric.settings(read_file(site.fabric.settings()).replace("sweep_interval: 1s", "sweep_interval: 1h"))
        d = site.start(simple(p={a: "full", c: "full"}))
        ports = {p.name: p for p in site.fabric.tables().values()}
        site.kill_opensm()
        cache = read_file(site.fabric.path("osm-cache/guid2lid"))
        lines = {"0x%016x" % ports[n].guid: "0x%04x" % ports[o].lid for n, o in ((a, b), (b, a))}
        for guid, lid in lines.items():
            check(guid in cache, guid, "is not in", cache)
            cache = re.sub(r"^%s .*$" % guid, "%s %s %s" % (guid, lid, lid), cache, flags=re.M)
        site.fabric.write("osm-cache/guid2lid", cache)
        site.start_opensm()
        now = {p.name: p for p in site.fabric.tables().values()}
        check_equal((now[a].lid, now[b].lid), (ports[b].lid, ports[a].lid), "the LIDs of both hosts")
        policy = simple(p={a: "full", c: "limited"})
        site.policy(policy)
        d.reload()
        check_equal(site.differ(policy), [], "tables")
        check("changed its P_Key table" not in d.text(), "a table was taken for that of another host:\n" + d.text())
        check_equal(site.alarms(), [], "alarms")


def test_rewritten_tables():
    """Without a mirror, changes of a leaf by another partition manager are reported once, as that."""
    with Site() as site:
        site.fabric.settings("timeout: 200ms\nsweep_interval: 10s\n")
        names = [h[0] for h in site.fabric.topology.hosts]
        policy = simple(p={n: "full" for n in names})
        d = site.start(policy)
        leaf = next(p for p in site.tables.values() if p.name == names[1]).switch
        ports = [p for p in site.fabric.tables().values() if p.switch == leaf and p.name in names]
        check(len(ports) >= 3, ports)
        pause(d.process)
        for p in ports:
            site.fabric.set_p_key(p, **{"i%d" % p.table.index(0x8010): 0})
        d.process.send_signal(signal.SIGCONT)
        d.wait_text("another program rewrote the P_Key tables of")
        site.wait_right(policy, "after the rewrite")
        line = next(x for x in d.text().splitlines() if "another program rewrote" in x)
        check("%d ports on " % len(ports) in line and "since the last sweep (lost 0x8010)" in line, line)
        check("another program changed the P_Key table" not in d.text(), "and each port, too:\n" + d.text())


def test_stale_pidfile():
    """pkeyd signals no other process."""
    with Site() as site:
        other = subprocess.Popen(["sleep", "600"])
        try:
            site.fabric.write("opensm.pid", "%d\n" % other.pid)
            a, b = hosts(site, 1, 2)
            policy = simple(p={a: "full", b: "limited"})
            d = site.start(policy, wait=False)
            d.wait_text("is not OpenSM but 'sleep'")
            check_equal(other.poll(), None, "the other process")
            site.fabric.write("opensm.pid", "%d\n" % site.fabric.opensm.pid)
            site.wait_right(policy, "with the right number")
        finally:
            other.kill()
            other.wait()


if __name__ == "__main__":
    main()
