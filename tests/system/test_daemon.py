# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon: reload, a broken policy, drift, audit, hosts that disappear and return, shutdown."""

import signal

import madtrace
from harness import PATIENCE, Daemon, Fabric, check, check_equal, main, sets, two_level, wait_for
from oracle import Oracle, Policy, differences

SETTINGS = "sweep_interval: 1s\ntimeout: 200ms\n"


def fabric_of(hosts_per_leaf=4, **more):
    return Fabric(two_level(2, 2, hosts_per_leaf), **more)


def policy_one():
    return Policy().add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def wrong(fabric, policy):
    tables = fabric.tables()
    return differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policy), tables)


def wait_for_policy(fabric, policy):
    wait_for(lambda: not wrong(fabric, policy), "the tables to be what the policy says")


def start(fabric, policy, settings=SETTINGS, beside=True, **more):
    fabric.settings(settings, beside)
    return Daemon(fabric, fabric.write("partitions.yaml", policy.yaml()), **more)


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def test_reload():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy, "sweep_interval: 1h\ntimeout: 200ms\n", trace="daemon")
        check_equal(wrong(fabric, policy), [], "tables when pkeyd says it is ready")

        policy.add("two", 0x0011, {"ALL_CAS": "full"})
        fabric.write("partitions.yaml", policy.yaml())
        before, n = fabric.tables(), len(sets(fabric, "daemon"))
        daemon.reload()
        after = fabric.tables()
        check_equal(wrong(fabric, policy), [], "tables after the reload")
        check_equal(len(sets(fabric, "daemon")) - n, madtrace.least_sets({p.lid: p.table for p in before.values()},
                                                                       {p.lid: p.table for p in after.values()}),
                    "SubnSets of the reload")
        reloading = [m for m in daemon.notified() if "RELOADING=1" in m]
        check_equal(len(reloading), 1, "RELOADING=1")
        check(any(line.startswith("MONOTONIC_USEC=") for line in reloading[0]), "MONOTONIC_USEC is missing:", reloading)

        n = len(sets(fabric, "daemon"))
        daemon.reload()
        check_equal(len(sets(fabric, "daemon")), n, "SubnSets after a reload of the same policy")
        check(daemon.status(), "no STATUS=")
        stop(daemon)
        check(any("STOPPING=1" in m for m in daemon.notified()), "no STOPPING=1")


def test_broken_policy_keeps_the_old():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy, trace="daemon")
        n, seen = len(sets(fabric, "daemon")), len(daemon.text())
        text = policy.yaml().replace("node[0005-0008]\": limited", "node[0005-0008]\": ful")
        fabric.write("partitions.yaml", text)
        daemon.reload()
        line = text[:text.index("[0005")].count("\n") + 1
        daemon.wait_text("partitions.yaml:%d:" % line, after=seen)
        daemon.wait_text("error", after=seen)
        check_equal(wrong(fabric, policy), [], "tables after a broken policy")
        check_equal(len(sets(fabric, "daemon")), n, "SubnSets after a broken policy")

        # the policy in force is still enforced
        port = fabric.tables()[fabric.topology.port_guid("node0003")]
        fabric.set_p_key(port, i1=0)
        wait_for_policy(fabric, policy)

        # nor do broken settings change anything
        policy.add("two", 0x0011, {"ALL_CAS": "full"})
        fabric.write("partitions.yaml", policy.yaml())
        fabric.settings("sweep_intervall: 1s\n")
        seen = len(daemon.text())
        daemon.reload()
        daemon.wait_text("pkeyd.yaml:1:1", after=seen)
        check_equal(wrong(fabric, policy_one()), [], "tables after broken settings")
        for settings, words in (("ca: nope\n", "this host has no InfiniBand device 'nope'"),
                                ("port: 7\n", "no InfiniBand device of this host has a port 7"),
                                ("ca: nope\nport: 7\n", "this host has no InfiniBand port 'nope' 7")):
            fabric.settings(SETTINGS + settings)
            seen = len(daemon.text())
            daemon.reload()
            daemon.wait_text(words + " (hint: ibstat lists them", after=seen)
        fabric.settings(SETTINGS)
        daemon.reload()
        check_equal(wrong(fabric, policy), [], "tables when both files are right again")
        stop(daemon)


def test_another_store_needs_a_restart():
    """reload.store: pkeyd goes on with the store that it has opened."""
    with fabric_of() as fabric:
        daemon = start(fabric, policy_one())
        daemon.reload()
        check("takes effect when pkeyd is started" not in daemon.text(), daemon.text())
        fabric.settings(SETTINGS + "role: follow-sm\nstore: etcd\netcd: {endpoints: 'http://127.0.0.1:1'}\n")
        daemon.reload()
        check("a change of store or etcd takes effect when pkeyd is started; until then pkeyd uses" in daemon.text(), daemon.text())
        check_equal(wrong(fabric, policy_one()), [], "tables")
        stop(daemon)


def test_drift_is_repaired():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy, trace="daemon")
        before = fabric.tables()[fabric.topology.port_guid("node0006")]
        seen = len(daemon.text())
        fabric.set_p_key(before, i1=0x8010, i9=0x8666)
        wait_for_policy(fabric, policy)
        daemon.wait_text("node0006", after=seen)
        daemon.wait_text("0x8666", after=seen)
        check_equal(fabric.tables()[before.guid].table, before.table, "node0006's table")
        stop(daemon)


def test_audit_only_says():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy, SETTINGS + "mode: audit\n", trace="daemon")
        daemon.wait_text("node0006")
        check(wrong(fabric, policy), "who wrote the tables?")
        stop(daemon)
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("daemon"))), [], "Sets of a daemon in audit mode")


def test_beside_opensm_nothing_is_written():
    """An OpenSM runs, and pkeyd.yaml has none of writer: opensm, opensm.mirror and beside_opensm."""
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy, SETTINGS, beside=False, trace="daemon")
        daemon.wait_text("pkeyd only compares, and writes nothing")
        daemon.wait_text("node0006")
        check(wrong(fabric, policy), "who wrote the tables?")
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("daemon"))), [], "Sets beside OpenSM")
        fabric.settings(SETTINGS)
        daemon.reload()
        check_equal(wrong(fabric, policy), [], "tables when it was said")
        stop(daemon)
        check_equal(daemon.text().count("pkeyd only compares"), 1, "events")


def test_unplugged_and_replugged():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy)
        guid = fabric.topology.port_guid("node0007")
        fabric.console('Unlink "node0007"')
        daemon.wait_text("no longer in the fabric")
        check(guid not in fabric.tables(), "node0007 is still there")
        check_equal(wrong(fabric, policy), [], "tables of the others")

        # it returns after a reboot with another table
        fabric.console('ReLink "node0007"')
        fabric.heavy_sweep()
        port = wait_for(lambda: fabric.tables().get(guid), "node0007 to come back")
        wait_for(lambda: port.lid or fabric.tables()[guid].lid, "node0007 to get a LID")
        fabric.set_p_key(fabric.tables()[guid], i0=0xFFFF, i1=0, i2=0x8777)
        wait_for_policy(fabric, policy)
        stop(daemon)


def test_new_policy_while_a_host_is_away():
    with fabric_of() as fabric:
        policy = policy_one()
        daemon = start(fabric, policy)
        fabric.console('Unlink "node0008"')
        daemon.wait_text("no longer in the fabric")
        policy.add("two", 0x0011, {"node000[1-8]": "full"})
        fabric.write("partitions.yaml", policy.yaml())
        daemon.reload()
        fabric.console('ReLink "node0008"')
        fabric.heavy_sweep()
        wait_for(lambda: fabric.topology.port_guid("node0008") in fabric.tables(), "node0008 to come back")
        wait_for_policy(fabric, policy)
        stop(daemon)


def test_silent_port_is_retried():
    with fabric_of() as fabric:
        policy = policy_one()
        fabric.lose("node0004", 100)
        daemon = start(fabric, policy, SETTINGS)
        daemon.wait_text("node0004")
        fabric.lose("node0004", 0)
        wait_for_policy(fabric, policy)
        stop(daemon)


def test_sigterm_in_the_middle_of_an_apply():
    with fabric_of(32) as fabric:
        policy = Policy().add("one", 0x0010, {"node[0001-0064]": "full"}).add("two", 0x0011, {"node[0001-0064]": "limited"})
        path = fabric.write("partitions.yaml", policy.yaml())
        for n in (1, 7, 40):
            fabric.settings("window: 4\ntimeout: 200ms\n")
            pending = fabric.pkeyctl("plan", path, "--json").expect(2).json()["changes"]
            daemon = Daemon(fabric, path, trace="daemon%d" % n, wait=False,
                            environment={"MADTRACE_SIGNAL": "%d:%d" % (signal.SIGTERM, n)})
            check_equal(daemon.process.wait(timeout=PATIENCE), 0, "exit status; pkeyd said:\n" + daemon.text())
            mads = madtrace.read(fabric.path("daemon%d" % n))
            sent = madtrace.p_key_sets(mads)
            check(n <= len(sent) < pending, "%d SubnSets sent of %d, with SIGTERM after the %d." % (len(sent), pending, n))
            answered = {m.tid for m in mads if not m.sent}
            check_equal([m for m in sent if m.tid not in answered], [], "writes that were not awaited")
        fabric.apply(path).expect(0)
        check_equal(wrong(fabric, policy), [], "tables after the next run")


def test_last_policy_outlives_a_restart():
    """A daemon that starts with a broken policy continues with the last one that was in force, or exits."""
    with fabric_of() as fabric:
        policy = policy_one()
        stop(start(fabric, policy))
        before = {g: p.table for g, p in fabric.tables().items()}
        fabric.write("partitions.yaml", "version: 1\npartitions:\n  x: {pkey: 0x18000, members: {}}\n")
        fabric.settings(SETTINGS)
        daemon = Daemon(fabric, fabric.path("partitions.yaml"), wait=False)
        daemon.wait_text("partitions.yaml:3:")
        wait_for(lambda: daemon.process.poll() is not None or daemon.ready_count(), "pkeyd to start or to end")
        check_equal({g: p.table for g, p in fabric.tables().items()}, before, "tables")
        if daemon.process.poll() is None:
            stop(daemon)
        else:
            check_equal(daemon.process.poll(), 1, "exit status")


def test_check_option():
    with fabric_of(opensm=False) as fabric:
        from harness import program
        path = fabric.write("partitions.yaml", policy_one().yaml())
        arguments = [program("pkeyd"), "--check", "--config", fabric.settings(), "--policy", path]
        fabric.run(arguments, trace="check").expect(0)
        fabric.write("partitions.yaml", "version: 2\n")
        check("partitions.yaml:1:" in fabric.run(arguments, trace="check").expect(1).err, "no place in the message")
        check_equal(madtrace.read(fabric.path("check")), [], "MADs of pkeyd --check")


if __name__ == "__main__":
    main()
