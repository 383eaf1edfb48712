# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that wait to be confirmed, and undo: every table goes back, entry for entry and index for index."""

import json
import os
import signal
import subprocess
import time

from harness import PATIENCE, AtTerminal, Daemon, Fabric, check, check_equal, main, read_file, seeded, two_level, wait_for
from oracle import Oracle, Policy, differences
from private_bus import Bus, require

SETTINGS = "sweep_interval: 1h\ntimeout: 200ms\n"


def fabric_of(**more):
    require()
    return Fabric(two_level(2, 2, 4), **more)


def policy_one():
    return Policy().add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"}).add(
        "storage", 0x0011, {"ALL_CAS": "full"})


def policy_two():
    """Takes storage away from most hosts, moves two to another partition, and raises and lowers some."""
    return Policy().add("one", 0x0010, {"node[0003-0008]": "full", "node0001": "limited"}).add(
        "storage", 0x0011, {"node0001": "full"}).add("late", 0x0012, {"node[0002-0006]": "both"})


def contents(fabric):
    return {guid: port.table for guid, port in fabric.tables().items()}


def pkeyctl(fabric, bus, *arguments, **how):
    return fabric.pkeyctl(*arguments, **bus.environment(), **how)


def edit(fabric, policy):
    return fabric.write("partitions.yaml", policy.yaml())


def start(fabric, bus, **more):
    daemon = Daemon(fabric, fabric.path("partitions.yaml"), environment=bus.environment(), **more)
    if more.get("wait", True):
        bus.wait_name()
    return daemon


def serve(fabric, settings=SETTINGS, **more):
    """A pkeyd with policy_one() in force: the bus, the daemon, and the tables."""
    fabric.settings(settings)
    edit(fabric, policy_one())
    bus = Bus(fabric)
    daemon = start(fabric, bus, **more)
    return bus, daemon, contents(fabric)


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()


def wait_for_tables(fabric, wanted, what):
    wait_for(lambda: contents(fabric) == wanted, what)


def is_carried_out(fabric, policy):
    tables = fabric.tables()
    return not differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policy), tables)


# --- with pkeyd ---------------------------------------------------------------------------------------------------------


def test_undone_when_nobody_confirms():
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        edit(fabric, policy_two())
        r = pkeyctl(fabric, bus, "reload", "--confirm", "15s").expect(0)
        check("generation 2 will be undone in" in r.out, r)
        check(is_carried_out(fabric, policy_two()), "the change was not carried out")
        status = pkeyctl(fabric, bus, "status").expect(0)
        check("unless pkeyctl confirm keeps it" in status.out and "waits to be confirmed" in status.out, status)
        j = pkeyctl(fabric, bus, "status", "--json").expect(0).json()
        check(j["confirm_until"] and j["undone"] == 0, j)
        wait_for_tables(fabric, before, "the change to be undone")
        daemon.wait_text("generation 3 undoes generation 2")
        daemon.wait_text("was not confirmed in time")
        wait_for(lambda: bus.property("Generation") == 3 and not bus.property("Reloading"), "generation 3")
        check_equal([bus.property("ConfirmUntil"), bus.property("Undone")], [0, 2], "properties after the undo")
        status = pkeyctl(fabric, bus, "status")
        check("generation 2 was undone: the files on disk are not the ones in force" in status.out, status)
        # who undoes the change by now does not undo the undo
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "UndoGeneration", "t", "2")
        check("refused" in r.stdout and "generation 2 is not in force any more: generation 3 is" in r.stdout, r.stdout, r.stderr)
        # the files come into force with a reload
        pkeyctl(fabric, bus, "reload").expect(0)
        check(is_carried_out(fabric, policy_two()), "the files were not loaded again")
        check_equal(bus.property("Undone"), 0, "Undone after a reload")
        stop(daemon)


def test_confirmed():
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload", "--confirm", "60s").expect(0)
        changed = contents(fabric)
        # another change is refused meanwhile, whether by pkeyctl or by a signal
        edit(fabric, policy_one().add("more", 0x0013, {"ALL_CAS": "full"}))
        r = pkeyctl(fabric, bus, "reload").expect(1)
        check("waits to be confirmed" in r.err and "pkeyctl undo" in r.err, r)
        daemon.reload()
        check_equal(contents(fabric), changed, "tables after refused changes")
        edit(fabric, policy_two())
        r = pkeyctl(fabric, bus, "confirm").expect(0)
        check_equal(r.out, "generation 2 is confirmed: it stays in force\n", "pkeyctl confirm")
        # at once: it was stored before the answer
        kill(daemon)
        daemon = start(fabric, bus)
        check_equal(bus.property("ConfirmUntil"), 0, "a confirmation that is stored")
        check_equal(contents(fabric), changed, "tables after a restart")
        check_equal(bus.property("Generation"), 2, "generation")
        r = pkeyctl(fabric, bus, "confirm").expect(1)
        check("no change waits" in r.err, r)
        stop(daemon)


def test_undo():
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        r = pkeyctl(fabric, bus, "undo", "--yes").expect(1)
        check("nothing to undo" in r.err, r)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload").expect(0)
        between = contents(fabric)
        edit(fabric, policy_one().add("more", 0x0013, {"ALL_CAS": "full"}))
        pkeyctl(fabric, bus, "reload").expect(0)
        pkeyctl(fabric, bus, "undo", "--yes").expect(0)
        check_equal(contents(fabric), between, "tables after an undo")
        pkeyctl(fabric, bus, "undo", "--yes").expect(0)
        check_equal(contents(fabric), before, "tables after two undos")
        # the undone files are not loaded by a restart
        stop(daemon)
        daemon = start(fabric, bus)
        check_equal(contents(fabric), before, "tables after a restart")
        status = pkeyctl(fabric, bus, "status", "--json").json()
        check(status["undone"] > 0, status)
        check("not in force" in status["text"], status)
        stop(daemon)


def test_undo_that_cannot_be_loaded():
    with fabric_of() as fabric:
        m_key = fabric.write("m_key", "0x1\n")
        os.chmod(m_key, 0o600)
        bus, daemon, _ = serve(fabric, SETTINGS + "m_key_file: %s\n" % m_key)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload").expect(0)
        before = contents(fabric)
        os.unlink(m_key)
        for _ in range(2):
            r = pkeyctl(fabric, bus, "undo", "--yes").expect(1)
            check(m_key in r.err, r)
        check_equal(contents(fabric), before, "tables after an undo that was refused")
        stop(daemon)  # without a leak


def test_undone_while_a_person_is_asked():
    """What the person agrees to is about a generation that pkeyd has undone meanwhile."""
    with fabric_of() as fabric:
        bus, daemon, _ = serve(fabric)
        edit(fabric, policy_one().add("more", 0x0013, {"ALL_CAS": "full"}))
        pkeyctl(fabric, bus, "reload").expect(0)
        before = contents(fabric)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload", "--confirm", "20s").expect(0)
        undo = AtTerminal(fabric, "undo", **bus.environment())
        undo.wait_question("Have pkeyd undo generation 3, and go back to the one before?")
        wait_for(lambda: bus.property("Generation") == 4 and not bus.property("Reloading"), "generation 4")
        out = undo.end(1, "y")
        check("generation 3 is not in force any more: generation 4 is; nothing was done" in out, out)
        check_equal(contents(fabric), before, "tables")
        stop(daemon)


def test_undo_names_its_policy():
    """What is wrong with the policy of an older generation is not reported of the last one in force."""
    with fabric_of() as fabric:
        fabric.settings(SETTINGS)
        edit(fabric, policy_one().add("more", 0x0012, {"node0099": "full"}))
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload").expect(0)
        before = len(daemon.text())
        pkeyctl(fabric, bus, "undo", "--yes").expect(0)
        text = daemon.text()[before:]
        check("(partitions.yaml of an older generation):" in text and "node0099" in text, text)
        stop(daemon)


def test_killed_while_it_waits():
    """The time goes on without pkeyd; if it is over when pkeyd starts, the change is undone at once."""
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        edit(fabric, policy_two())
        pkeyctl(fabric, bus, "reload", "--confirm", "4s").expect(0)
        kill(daemon)
        time.sleep(4.5)
        daemon = start(fabric, bus)
        check_equal(contents(fabric), before, "tables when pkeyd is ready")
        stop(daemon)


def test_killed_while_it_writes():
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
            edit(fabric, policy_two())
            reload = subprocess.Popen(fabric.pkeyctl_arguments("reload", "--confirm", "1s"), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=fabric.environment(**bus.environment()))
            fabric.children.append(reload)
            time.sleep(delay)
            kill(daemon)
            reload.wait()
            edit(fabric, policy_one())  # the file is edited while pkeyd is down: a second change, unless the first is not stored
            time.sleep(1.5)
            daemon = start(fabric, bus)
            wait_for_tables(fabric, before, "the tables to be as before, after a kill at %.2f s" % delay)
            pkeyctl(fabric, bus, "reload").expect(0)
        stop(daemon)


def test_audit():
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        fabric.settings(SETTINGS + "mode: audit\n")
        edit(fabric, policy_two())
        r = pkeyctl(fabric, bus, "reload", "--confirm", "2s", "--json").json()
        check("confirm.not" in [f["code"] for f in r["findings"]], r)
        daemon.wait_text("there is nothing to undo, because pkeyd is in audit mode")
        r = pkeyctl(fabric, bus, "undo", "--yes").expect(1)
        check("audit mode" in r.err, r)
        check_equal(contents(fabric), before, "tables in audit mode")
        stop(daemon)


def test_first_policy():
    """Before the first one no policy was in force, so that there is nothing to go back to."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        r = pkeyctl(fabric, bus, "apply", edit(fabric, policy_two()), "--yes", "--confirm", "5s").expect(1)
        check("a change can only be undone to a policy that was in force before" in r.err, r)


def test_wrong_arguments():
    with fabric_of() as fabric:
        bus, daemon, _ = serve(fabric)
        for time_ in ("0s", "8d", "10", "soon", ""):
            r = pkeyctl(fabric, bus, "reload", "--confirm", time_).expect(1)
            check("--confirm: " in r.err and "from 1s to 7d" in r.err, r)
        check("--confirm is for apply and reload only" in pkeyctl(fabric, bus, "plan", "--confirm", "1m").expect(1).err)
        for seconds in ("0", "604801"):
            r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "ReloadConfirm", "t", seconds)
            check("1 to 604800 seconds" in r.stderr, r.stderr)
        for method in (["Confirm"], ["Undo"], ["UndoGeneration", "t", "1"], ["ReloadConfirm", "t", "60"]):
            r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", *method, user="nobody")
            check(r.returncode != 0, method, "for nobody")
        stop(daemon)


# --- without pkeyd ------------------------------------------------------------------------------------------------------


def applied(fabric):
    """policy_one() is in force by pkeyctl; the tables."""
    fabric.settings(SETTINGS)
    fabric.apply(edit(fabric, policy_one())).expect(0)
    return contents(fabric)


def start_apply(fabric, bus, seconds):
    child = fabric.start(fabric.pkeyctl_arguments("apply", edit(fabric, policy_two()), "--yes", "--confirm", seconds), "apply.log",
                         **bus.environment())
    wait_for(lambda: "will be undone in" in open(fabric.path("apply.log")).read(), "pkeyctl to wait")
    return child


def check_outcomes(fabric, bus, n):
    """The history has how each of n generations ended."""
    got = pkeyctl(fabric, bus, "history", "--json").expect(0).json()["generations"]
    check_equal([g["outcome"] for g in got], ["carried-out"] * n, "outcomes")


def check_carried_out(fabric):
    check(is_carried_out(fabric, policy_two()), "the change was not carried out")


def test_apply_is_undone():
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "15s")
        check_carried_out(fabric)
        r = pkeyctl(fabric, bus, "apply", fabric.write("other.yaml", policy_one().yaml()), "--yes").expect(1)
        check("waits to be confirmed" in r.err, r)
        check_equal(child.wait(timeout=PATIENCE), 2, "exit status: " + open(fabric.path("apply.log")).read())
        check_equal(contents(fabric), before, "tables")
        check_equal(open(fabric.path("apply.log")).read().count("will be undone in"), 1, "changes that wait")
        check("not confirmed in time" in pkeyctl(fabric, bus, "history").expect(0).out, "the history")
        check_outcomes(fabric, bus, 3)


def test_apply_is_confirmed():
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "60s")
        check_carried_out(fabric)
        pkeyctl(fabric, bus, "confirm").expect(0)
        check_equal(child.wait(timeout=PATIENCE), 0, "exit status: " + open(fabric.path("apply.log")).read())
        check(is_carried_out(fabric, policy_two()), "the change is gone")
        check_outcomes(fabric, bus, 2)
        r = pkeyctl(fabric, bus, "undo", "--yes", "--json").expect(0).json()
        check("confirm.undo" in [f["code"] for f in r["findings"]], r)
        check_equal(contents(fabric), before, "tables after undo")
        for command in (["confirm"], ["undo", "--yes"]):
            r = pkeyctl(fabric, bus, *command, "--json").expect(1).json()
            check_equal([f["code"] for f in r["findings"]], ["confirm.none"], command[0])


def test_undo_without_pkeyd():
    """A change that was undone twice is not what the next undo goes back to."""
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        for number, restored in ((3, 1), (5, 3)):
            fabric.apply(edit(fabric, policy_two())).expect(0)
            pkeyctl(fabric, bus, "undo", "--yes").expect(0)
            newest = newest_generation(fabric, bus)
            check_equal((newest["number"], newest["restores"], newest["outcome"]), (number, restored, "carried-out"), "the undo")
            check(newest["ended"] >= newest["time"], newest)
            check_equal(contents(fabric), before, "tables after undo %d" % number)
        r = pkeyctl(fabric, bus, "undo", "--yes").expect(1)
        check("before the one whose files are in force again; the later ones were undone" in r.err, r)
        check_equal(contents(fabric), before, "tables")


def test_apply_is_interrupted():
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "60s")
        check_carried_out(fabric)
        child.send_signal(signal.SIGHUP)  # the terminal is gone, because of the change: that is no answer
        time.sleep(1)
        check(child.poll() is None, "pkeyctl ended by SIGHUP")
        child.send_signal(signal.SIGINT)
        check_equal(child.wait(timeout=PATIENCE), 2, "exit status: " + open(fabric.path("apply.log")).read())
        check_equal(contents(fabric), before, "tables")
        check_outcomes(fabric, bus, 3)


def apply_as_json(fabric, bus, seconds, end):
    """Calls `end` while pkeyctl waits; the one object that it prints, and its exit status."""
    child = subprocess.Popen(
        fabric.pkeyctl_arguments("apply", edit(fabric, policy_two()), "--yes", "--json", "--confirm", seconds), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=open(fabric.path("apply.log"), "w"), env=fabric.environment(**bus.environment()), text=True)
    fabric.children.append(child)
    wait_for(lambda: "will be undone in" in open(fabric.path("apply.log")).read(), "pkeyctl to wait")
    end(child)
    lines = child.communicate(timeout=PATIENCE)[0].splitlines()
    check_equal(len(lines), 1, "objects")
    return json.loads(lines[0]), child.returncode


def test_apply_prints_one_object():
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        for word, seconds, end in (("interrupted", "60s", lambda child: child.send_signal(signal.SIGINT)),
                                   ("expired", "2s", lambda child: None)):
            j, status = apply_as_json(fabric, bus, seconds, end)
            check_equal((j["confirmation"], j["ok"], j["verified"], status), (word, False, True, 2), word)
            check("confirm.undo" in [f["code"] for f in j["findings"]], j)
            check_equal(contents(fabric), before, "tables")
        j, status = apply_as_json(fabric, bus, "60s", lambda child: pkeyctl(fabric, bus, "confirm").expect(0))
        check_equal((j["confirmation"], j["ok"], j["verified"], status), ("confirmed", True, True, 0), "confirmed")
        check(j["generation"] and j["sets_sent"] > 0, j)
        check(is_carried_out(fabric, policy_two()), "the change is gone")


def test_apply_is_undone_by_pkeyd():
    """A pkeyd that was started meanwhile undoes the change, and pkeyctl does not undo one more."""
    with fabric_of() as fabric:
        bus = Bus(fabric)
        fabric.settings(SETTINGS)
        fabric.apply(edit(fabric, Policy().add("one", 0x0010, {"node0001": "full"}))).expect(0)
        before = applied(fabric)
        child = start_apply(fabric, bus, "20s")
        check_carried_out(fabric)
        daemon = start(fabric, bus)
        check_equal(child.wait(timeout=PATIENCE), 2, "exit status: " + open(fabric.path("apply.log")).read())
        check_equal(contents(fabric), before, "tables")
        time.sleep(1)
        check_equal(contents(fabric), before, "tables a second later")
        check_equal(bus.property("Generation"), 4, "generation")
        stop(daemon)


def test_apply_is_undone_by_another_pkeyctl():
    """The wait ends with the other one, not when the time is over."""
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "10m")
        pkeyctl(fabric, bus, "undo", "--yes").expect(0)
        check_equal(child.wait(timeout=30), 2, "exit status: " + read_file(fabric.path("apply.log")))
        check_equal(contents(fabric), before, "tables")
        check_outcomes(fabric, bus, 3)


def test_apply_is_confirmed_on_the_terminal():
    """With pkeyd, which was started meanwhile: it confirms the change, and does not undo it later."""
    for json_ in ([], ["--json"]):
        with fabric_of() as fabric:
            bus = Bus(fabric)
            applied(fabric)
            apply = AtTerminal(fabric, "apply", edit(fabric, policy_two()), "--confirm", "30s", *json_, **bus.environment())
            apply.wait_question(" ports?")
            os.write(apply.terminal, b"yes\n")
            wait_for(lambda: "will be undone in" in read_file(apply.log), "pkeyctl to wait")
            daemon = start(fabric, bus)
            check(bus.property("ConfirmUntil") > 0, "the change does not wait")
            out = apply.end(0, "yes")
            check_equal(bus.property("ConfirmUntil"), 0, "ConfirmUntil")
            if json_:
                check_equal(json.loads(out.splitlines()[-1])["confirmation"], "confirmed", out)
            else:
                check("generation 2 is confirmed: it stays in force" in out, out)
            check_carried_out(fabric)
            stop(daemon)


def start_slow_undo(fabric, bus):
    """pkeyctl waits for generation 3 to be confirmed, and pkeyd was started meanwhile. Its reads take longer than ten seconds when
    it undoes that, because two hosts are mute. The tables before, pkeyctl, pkeyd."""
    fabric.settings("sweep_interval: 1h\ntimeout: 600ms\n")
    fabric.apply(edit(fabric, Policy().add("one", 0x0010, {"node0001": "full"}))).expect(0)
    fabric.apply(edit(fabric, policy_one())).expect(0)
    before = contents(fabric)
    child = start_apply(fabric, bus, "30s")
    until = time.monotonic() + 30
    check_carried_out(fabric)
    daemon = start(fabric, bus)
    time.sleep(until - 3 - time.monotonic())
    mute(fabric, 100)
    daemon.wait_text("was not confirmed in time")
    return before, child, daemon


def mute(fabric, percent):
    for host in ("node0002", "node0003"):
        fabric.lose(host, percent)


def newest_generation(fabric, bus):
    return pkeyctl(fabric, bus, "history", "--json").expect(0).json()["generations"][0]


def check_undone(fabric, bus, before, daemon):
    wait_for_tables(fabric, before, "the change to be undone")
    check_equal(bus.property("Generation"), 4, "generation")
    stop(daemon)


def test_apply_is_undone_slowly():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        before, child, daemon = start_slow_undo(fabric, bus)
        check_equal(child.wait(timeout=2 * PATIENCE), 2, "exit status: " + read_file(fabric.path("apply.log")))
        check_equal(newest_generation(fabric, bus)["outcome"], "partial", "the outcome of the undo")
        mute(fabric, 0)
        daemon.wait_text("generation 4 undoes generation 3")
        check_undone(fabric, bus, before, daemon)


def test_apply_is_undone_in_audit_mode():
    """The undo brings back the settings of the generation before, too, by which pkeyd writes."""
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "20s")
        check_carried_out(fabric)
        fabric.settings(SETTINGS + "mode: audit\n")
        daemon = start(fabric, bus)
        check_equal(child.wait(timeout=PATIENCE), 2, "exit status: " + read_file(fabric.path("apply.log")))
        check_equal(contents(fabric), before, "tables")
        check_equal(bus.property("Generation"), 3, "generation")
        stop(daemon)


def test_pkeyd_is_killed_while_it_undoes():
    with fabric_of() as fabric:
        bus = Bus(fabric)
        before, child, daemon = start_slow_undo(fabric, bus)
        wait_for(lambda: newest_generation(fabric, bus)["number"] == 4, "the undo to be stored")
        check(child.poll() is None, "pkeyctl does not wait until pkeyd has undone the change: " + read_file(fabric.path("apply.log")))
        kill(daemon)
        check_equal(child.wait(timeout=2 * PATIENCE), 2, "exit status: " + read_file(fabric.path("apply.log")))
        check("generation 4 undoes generation 3, but pkeyd has not carried that out yet" in read_file(fabric.path("apply.log")),
              read_file(fabric.path("apply.log")))
        mute(fabric, 0)
        daemon = start(fabric, bus)
        check_undone(fabric, bus, before, daemon)


def test_apply_is_killed():
    """Then pkeyd undoes it when it starts, even with other files."""
    with fabric_of() as fabric:
        bus, before = Bus(fabric), applied(fabric)
        child = start_apply(fabric, bus, "6s")
        child.kill()
        child.wait()
        check_carried_out(fabric)
        time.sleep(6)
        daemon = start(fabric, bus)
        check_equal(contents(fabric), before, "tables when pkeyd is ready")
        stop(daemon)


# --- at random ----------------------------------------------------------------------------------------------------------


def random_policy(random):
    policy = Policy()
    for name, base in (("a", 0x0010), ("b", 0x0011), ("c", 0x0012), ("d", 0x0013)):
        members = {"node%04d" % i: random.choice(("full", "limited", "both")) for i in range(1, 9) if random.random() < 0.6}
        if members and random.random() < 0.85:
            policy.add(name, base, members)
    return policy


def test_random():
    """Edits, confirmations, undos and kills. After each the tables are those of the generation that is in force."""
    random = seeded(20261126)
    steps = int(os.environ.get("STEPS", 25))
    with fabric_of() as fabric:
        bus, daemon, before = serve(fabric)
        states = [before]  # of the generations that an undo would go back to, and the one in force
        texts = {policy_one().yaml()}
        for step in range(steps):
            policy = random_policy(random)
            if policy.yaml() in texts or random.random() < 0.2:
                if len(states) > 1:
                    pkeyctl(fabric, bus, "undo", "--yes").expect(0)
                    states.pop()
                    check_equal(contents(fabric), states[-1], "tables after the undo of step %d" % step)
                continue
            texts = {policy.yaml()}
            edit(fabric, policy)
            what = random.choice(("plain", "confirm", "over", "undo", "kill"))
            if what == "plain":
                pkeyctl(fabric, bus, "reload").expect(0, 3)
            else:
                pkeyctl(fabric, bus, "reload", "--confirm", "60s" if what in ("confirm", "undo") else "1s").expect(0, 3)
            changed = contents(fabric)
            if what == "confirm":
                pkeyctl(fabric, bus, "confirm").expect(0)
            elif what == "undo":
                pkeyctl(fabric, bus, "undo", "--yes").expect(0, 3)
            elif what == "kill":
                kill(daemon)
                time.sleep(1.1)
                daemon = start(fabric, bus)
            if what in ("plain", "confirm"):
                check(is_carried_out(fabric, policy), "the policy of step %d is not carried out" % step)
                states.append(changed)
            else:
                wait_for_tables(fabric, states[-1], "the tables to be as before, in step %d (%s)" % (step, what))
                wait_for(lambda: bus.property("ConfirmUntil") == 0 and not bus.property("Reloading"), "the undo to end")
        stop(daemon)


# --- OpenSM writes ------------------------------------------------------------------------------------------------------


def test_writer_opensm():
    """OpenSM chooses the indexes; every port has the same entries again."""
    with fabric_of(opensm=False) as fabric:
        conf = fabric.write("partitions.conf", "")
        fabric.partitions_conf = ""
        fabric.start_opensm()
        fabric.settings(SETTINGS + "writer: opensm\nopensm: {partitions_conf: %s, reload: \"pid:%d\"}\n" % (conf, fabric.opensm.pid))
        edit(fabric, policy_one())
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        before = {guid: sorted(table) for guid, table in contents(fabric).items()}
        edit(fabric, Policy().add("one", 0x0010, {"node[0003-0008]": "full"}).add("late", 0x0012, {"node[0002-0006]": "full"}))
        pkeyctl(fabric, bus, "reload", "--confirm", "10s").expect(0, 3)
        check({guid: sorted(table) for guid, table in contents(fabric).items()} != before, "nothing changed")
        wait_for(lambda: {guid: sorted(table) for guid, table in contents(fabric).items()} == before, "the undo")
        stop(daemon)


if __name__ == "__main__":
    main()
