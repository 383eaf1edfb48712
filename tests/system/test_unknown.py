# SPDX-License-Identifier: GPL-2.0-or-later
"""Missing knowledge: changes that could let other ports talk to a host that does not answer wait, whatever happens to pkeyd.

The scene: P1 gives 0x0010 to A and B, P2 gives it to B and C. A and C may never talk. While A may still hold it, C must not
get it; when A has answered and its entry is revoked, C gets it.
"""

import contextlib
import os
import shutil
import sqlite3

from harness import Daemon, Fabric, check, check_equal, main, two_level, wait_for, wait_growth
from oracle import Policy

BASE = 0x0010
A, B, C, OTHER = "node0002", "node0003", "node0004", "node0005"
SETTINGS = "sweep_interval: 1s\ntimeout: 100ms\n"
ONE_SWEEP = "sweep_interval: 1h\ntimeout: 100ms\n"
P_KEY_TABLE, NODE_INFO = 0x16, 0x11


def policy(*hosts, **more):
    """A policy with 0x0010 for these hosts, and further partitions with their hosts."""
    p = Policy().add("one", BASE, {host: "full" for host in hosts})
    for name, (base, members) in more.items():
        p.add(name, base, {host: "full" for host in members})
    return p.yaml()


P1, P2 = policy(A, B), policy(B, C)


class Scene:
    """A fabric on which a daemon has carried out P1."""

    def __init__(self, settings=SETTINGS, text=P1, **more):
        self.fabric = Fabric(two_level(2, 2, 4), **more)
        self.first_settings, self.first_text = settings, text

    def __enter__(self):
        self.fabric.__enter__()
        self.metrics = self.fabric.path("pkeyd.prom")
        self.set_settings(self.first_settings)
        self.set_policy(self.first_text)
        self.daemon = self.start()
        self.lids = {name: self.port(name).lid for name in (A, B, C, OTHER)}
        return self

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)

    def start(self, **more):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.metrics)  # of the process before
        return Daemon(self.fabric, self.fabric.path("partitions.yaml"), **more)

    def set_settings(self, text):
        self.fabric.settings(text + "metrics: {textfile: %s}\n" % self.metrics)

    def set_policy(self, text):
        return self.fabric.write("partitions.yaml", text)

    def port(self, name):
        return self.fabric.tables()[self.fabric.topology.port_guid(name)]

    def holds(self, name, base=BASE):
        return any(k & 0x7FFF == base for k in self.port(name).keys())

    def mute(self, name=A, attribute=P_KEY_TABLE):
        self.fabric.lose(name, 100, attribute)

    def unmute(self, name=A, attribute=P_KEY_TABLE):
        self.fabric.lose(name, 0, attribute)

    def sweeps(self, n=3):
        """Waits until `n` sweeps have ended."""
        wait_growth(self.metrics, "pkeyd_passes_total", n)

    def expect_held(self, name=C, why="while A may still hold it"):
        self.sweeps()
        check(not self.holds(name), "%s got the P_Key %s" % (name, why))

    def expect_granted(self, name=C):
        wait_for(lambda: self.holds(name) and not self.holds(A), "%s to get the P_Key after A gave it up" % name)

    def kill(self):
        self.daemon.process.kill()
        self.daemon.process.wait()


def test_running_daemon():
    with Scene() as s:
        s.mute()
        s.set_policy(P2)
        s.daemon.reload()
        s.expect_held()
        s.unmute()
        s.expect_granted()


def test_restart():
    with Scene() as s:
        s.mute()
        s.set_policy(P2)
        s.daemon.reload()
        s.expect_held()
        for way in ("stop", "kill"):
            getattr(s.daemon, way)() if way == "stop" else s.kill()
            s.daemon = s.start()
            s.expect_held(why="after the daemon was restarted (%s)" % way)
        s.unmute()
        s.expect_granted()


def test_policy_changed_while_stopped():
    """The restarted daemon loads P2 for the first time, and cannot read A."""
    with Scene() as s:
        s.daemon.stop()
        s.mute()
        s.set_policy(P2)
        s.daemon = s.start()
        s.expect_held()
        s.unmute()
        s.expect_granted()


def test_pkeyctl_after_a_kill():
    with Scene() as s:
        s.mute()
        s.set_policy(P2)
        s.daemon.reload()
        s.kill()
        r = s.fabric.apply(s.fabric.path("partitions.yaml")).expect(3)
        check("0x0010" in r.out + r.err, "the held base is not named:", r)
        check(not s.holds(C), "pkeyctl apply gave C the P_Key", r)
        check(A in r.out + r.err, "the host that holds it is not named:", r)
        s.unmute()
        s.fabric.apply(s.fabric.path("partitions.yaml")).expect(0)
        check(s.holds(C) and not s.holds(A), "tables after A answered")


def test_audit_and_back():
    with Scene() as s:
        s.mute()
        s.set_policy(P2)
        s.set_settings(SETTINGS + "mode: audit\n")
        s.daemon.reload()
        s.sweeps()
        s.set_settings(SETTINGS)
        s.daemon.reload()
        s.expect_held(why="after audit")
        s.unmute()
        s.expect_granted()


def test_missed_by_discovery():
    """A does not answer discovery; its link is up."""
    with Scene() as s:
        s.mute(attribute=NODE_INFO)
        s.sweeps()
        s.set_policy(P2)
        s.daemon.reload()
        s.expect_held(why="after discovery missed A")
        s.kill()
        s.daemon = s.start()
        s.expect_held(why="after a kill while discovery misses A")
        s.unmute(attribute=NODE_INFO)
        s.expect_granted()


def test_missed_from_the_beginning():
    """pkeyd never read A: it may hold anything."""
    with Scene() as s:
        s.daemon.stop()
        shutil.rmtree(s.fabric.path("state"))
        s.mute(attribute=NODE_INFO)
        s.set_policy(P2)
        s.daemon = s.start()
        s.expect_held(why="though A was never read")
        s.unmute(attribute=NODE_INFO)
        s.expect_granted()


def deleted_while_running(delete):
    """pkeyd stores what it knows in a new store."""
    with Scene() as s:
        s.mute()
        s.set_policy(P2)
        s.daemon.reload()
        delete(s.fabric.path("state"))
        s.expect_held(why="after the store was deleted")
        s.unmute()
        s.expect_granted()
        s.mute()
        s.set_policy(P1)
        s.daemon.reload()
        s.kill()
        s.daemon = s.start()
        s.unmute()
        wait_for(lambda: s.holds(A) and not s.holds(C), "P1 to be in force again")


def test_store_deleted_while_running():
    def delete(state):
        for name in os.listdir(state):
            if name.startswith("state.db"):
                os.unlink(os.path.join(state, name))

    deleted_while_running(delete)


def test_state_directory_deleted_while_running():
    deleted_while_running(shutil.rmtree)


def test_unplugged():
    """A is unplugged with the P_Key: it may return during absent_hold."""
    with Scene(ONE_SWEEP) as s:
        s.fabric.console('Unlink "%s"' % A)
        s.set_policy(P2)
        s.daemon.reload()
        check(not s.holds(C), "C got the P_Key while A was unplugged")
        s.fabric.console('ReLink "%s"' % A)
        s.fabric.heavy_sweep()
        s.daemon.reload()
        s.daemon.reload()
        s.expect_granted()


def test_unplugged_longer_than_absent_hold():
    with Scene(SETTINGS + "absent_hold: 3s\n") as s:
        s.fabric.console('Unlink "%s"' % A)
        s.set_policy(P2)
        s.daemon.reload()
        wait_for(lambda: s.holds(C), "C to get the P_Key when absent_hold was over")
        s.fabric.console('ReLink "%s"' % A)
        wait_for(lambda: s.fabric.topology.port_guid(A) in s.fabric.tables(), "A to be back")
        s.expect_granted()


def test_others_are_not_delayed():
    """Changes outside of the held base go on."""
    with Scene() as s:
        s.mute()
        s.set_policy(policy(B, C, two=(0x0020, (B, C, OTHER))))
        s.daemon.reload()
        check(s.holds(OTHER, 0x0020) and s.holds(C, 0x0020), "0x0020 was held, too")
        s.expect_held()


def test_a_switch_that_hangs():
    """The switch is named, and only changes wait that concern the hosts behind it."""
    far = "node0005"
    with Scene(text=policy(far, B)) as s:
        s.mute("leaf02", NODE_INFO)
        s.daemon.wait_text("%s mlx5_0/1" % far, what="discovery to miss " + far)
        s.set_policy(policy(B, C, other=(0x0020, (A, B))))
        s.daemon.reload()
        wait_for(lambda: s.holds(A, 0x0020), "what does not concern %s to be granted" % far)
        s.sweeps()
        check(not s.holds(C), "%s got the P_Key while %s may still hold it" % (C, far))
        text = s.daemon.text()
        check("it is behind a switch that does not answer, leaf02" in text, "the switch is not named:", text)
        s.unmute("leaf02", NODE_INFO)
        wait_for(lambda: s.holds(C), "%s to get the P_Key after leaf02 answered" % C)
        check(not s.holds(far), "%s holds what was taken from it" % far)


def test_wiped_tables_keep_their_indexes():
    """The head node and OpenSM restart, and the tables were emptied: each entry returns to its index."""
    with Scene(text=policy(A, B, two=(0x0020, (A,)), three=(0x0030, (A,)))) as s:
        s.set_policy(policy(A, B, three=(0x0030, (A,))))
        s.daemon.reload()
        before = s.port(A).table
        s.daemon.stop()
        s.fabric.set_p_key(s.port(A), **{"i%d" % i: 0 for i, k in enumerate(before) if k and i > 0})
        s.daemon = s.start()
        wait_for(lambda: s.holds(A) and s.holds(A, 0x0030), "the entries to be back")
        check_equal(s.port(A).table, before, "A's table")


def test_unplugged_and_wiped():
    with Scene(ONE_SWEEP, text=policy(A, B, two=(0x0020, (A,)), three=(0x0030, (A,)))) as s:
        s.set_policy(policy(A, B, three=(0x0030, (A,))))
        s.daemon.reload()
        before = s.port(A).table
        s.fabric.console('Unlink "%s"' % A)
        s.daemon.reload()
        s.fabric.console('ReLink "%s"' % A)
        s.fabric.heavy_sweep()
        s.fabric.set_p_key(s.port(A), **{"i%d" % i: 0 for i, k in enumerate(before) if k and i > 0})
        s.daemon.reload()
        check_equal(s.port(A).table, before, "A's table")


def test_never_fails_open_without_a_store():
    """The state directory cannot be written: nothing is written to the fabric, and the reason is reported."""
    with Scene() as s:
        s.daemon.stop()
        shutil.rmtree(s.fabric.path("state"))
        s.fabric.write("state", "no directory")
        s.set_policy(P2)
        s.daemon = s.start(wait=False)
        wait_for(lambda: "state" in s.daemon.text() and "nothing is written" in s.daemon.text(), "the reason")
        s.sweeps()
        check(s.holds(A) and not s.holds(C), "something was written")


def test_records_of_a_wrong_type():
    """Another program changed the values to text: pkeyd ignores and reports them, and continues."""
    with Scene() as s:
        s.mute()
        s.daemon.stop()
        with contextlib.closing(sqlite3.connect(s.fabric.path("state/state.db"))) as db, db:
            db.execute("UPDATE record SET value = CAST(value AS TEXT)")
        s.set_policy(P2)
        r = s.fabric.pkeyctl("show", "held", "--policy", s.fabric.path("partitions.yaml")).expect(2)
        check("cannot be understood" in r.err, "pkeyctl show held does not warn:", r)
        s.daemon = s.start()
        check("cannot be understood" in s.daemon.text(), "pkeyd does not report it:", s.daemon.text())
        s.expect_held()
        s.unmute()
        s.expect_granted()


if __name__ == "__main__":
    main()
