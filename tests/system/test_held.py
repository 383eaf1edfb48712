# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports to the admin: what is held, by which port, why, and the way out.

A is mute: it answers discovery, but not reads of its P_Key table."""

import os
import re
import signal

import madtrace
from harness import (AtTerminal, Daemon, Fabric, check, check_equal, main, pause, program, read_file, record_of, two_level, wait_for,
                     wait_sweeps)
from oracle import Policy
from private_bus import Bus, require

NODE_DESCRIPTION = 0x10
A, B, C, D = "node0002", "node0003", "node0004", "node0005"
SETTINGS = "timeout: 100ms\n"


class Muted:
    """A fabric on which A does not answer reads of its P_Key table."""

    def __init__(self):
        self.fabric = Fabric(two_level(2, 2, 4))

    def __enter__(self):
        f = self.fabric.__enter__()
        f.settings(SETTINGS)
        f.lose(A, 100)
        return f

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)


def policy(*hosts):
    return Policy().add("storage", 0x0010, {host: "full" for host in hosts}).yaml()


def holds(fabric, name):
    return any(k & 0x7FFF == 0x0010 for k in fabric.tables()[fabric.topology.port_guid(name)].keys())


def guid_of(fabric, name):
    return "0x%016x" % fabric.topology.port_guid(name)


class Scene(Muted):
    """P1 gave 0x0010 to A and B. Now A is mute, and P2 gives it to B and C: A and C must not talk."""

    def __enter__(self):
        f = self.fabric.__enter__()
        f.settings(SETTINGS)
        f.apply(f.write("partitions.yaml", policy(A, B))).expect(0)
        f.lose(A, 100)
        f.write("partitions.yaml", policy(B, C))
        return f


def the_base(data):
    """Checks that the JSON has exactly the held base of the scene, and returns it."""
    (base,) = data["held"]
    check_equal((base["base"], base["partitions"], base["n_waiting"], base["n_held_by"]), ("0x0010", ["storage"], 1, 1), "the base")
    (waiting,), (by,) = base["waiting"], base["held_by"]
    check_equal([waiting[k] for k in ("node", "port", "kind", "before", "after", "rule")],
                [C, 1, "endport", "none", "full", "isolation"], "what waits")
    check_equal([by[k] for k in ("node", "port", "kind", "reason")], [A, 1, "endport", "unanswered"], "what holds it")
    check(by["since"].endswith("Z") and by["since"] == by["last_read"] and by["until"] is None, "since when", by)
    check(by["way_out"].endswith("pkeyctl forget " + by["port_guid"]), "the way out", by)
    return base


def check_words(fabric, text, where):
    forget = "pkeyctl forget " + guid_of(fabric, A)
    for words in ('base 0x0010 (partition "storage") is held: %s' % C, "gets it when %s" % A, "is known not to hold it",
                  "has not answered a query for its P_Key table", "way out: repair or unplug it", forget):
        check(words in text, "'%s' is not in %s:" % (words, where), text)


def vouches(fabric):
    return fabric.pkeyctl("show", "vouches", "--json").expect(0).json()["vouches"]


def test_forget():
    with Muted() as f:
        check_equal(vouches(f), [], "vouches on a fresh host")
        check_equal(f.pkeyctl("show", "vouches").expect(0).out, "there are no vouches\n", "the same in words")
        r = f.pkeyctl("forget", A, "--yes").expect(0)
        check(A in r.out and "has never answered a query for its P_Key table" in r.out and "may hold any P_Key" in r.out,
              "what is forgotten is not named:", r)
        check("is assumed to have no P_Key" in r.out, "what that means is not said:", r)
        (v,) = vouches(f)
        check_equal((v["node"], v["port"], v["kind"], v["may_hold"]), (A, 1, "endport", None), "the vouch")
        check_equal(v["port_guid"], guid_of(f, A), "its port")
        check(v["vouched_by"] and v["vouched_at"].endswith("Z"), "who and when", v)
        check(A in f.pkeyctl("show", "vouches").expect(0).out, "show vouches in words")


def test_forget_as_json():
    with Muted() as f:
        (v,) = f.pkeyctl("forget", A, "--yes", "--json").expect(0).json()["vouches"]
        check_equal(v["node"], A, "the port")


def test_who_vouches():
    with Muted() as f:
        f.pkeyctl("forget", guid_of(f, A), "--yes", SUDO_USER="alice").expect(0)
        check_equal([v["vouched_by"] for v in vouches(f)], ["alice"], "the person behind sudo")


def refused(fabric, code, *arguments):
    r = fabric.pkeyctl("forget", *arguments, "--yes", "--json").expect(1)
    check(code in [finding["code"] for finding in r.json()["findings"]], "expected %s:" % code, r)
    check_equal(vouches(fabric), [], "vouches after forget %s was refused" % " ".join(arguments))


def test_refused():
    with Muted() as f:
        refused(f, "forget.answers", B)
        refused(f, "forget.answers", A, B)
        for nobody in ("nobody", "", " "):
            refused(f, "selector.no-match", nobody)
        refused(f, "selector.no-match", "0x0000000000000001")


def test_answers_in_part():
    """A, or its switch, does not report its name. forget refuses A, because its table could be read, and the plan uses its
    old name."""
    for node in (A, "leaf01"):
        with Fabric(two_level(2, 2, 4)) as f:
            f.settings(SETTINGS)
            check_equal(Daemon(f, f.write("partitions.yaml", policy(A, B))).stop(), 0, "exit status of pkeyd")
            f.lose(node, 100, NODE_DESCRIPTION)
            plan = f.pkeyctl("plan", f.path("partitions.yaml"), "--json").expect(3).json()
            check_equal(plan["changes"], 0, "changes beside " + node)
            partial = "%s did not answer all discovery queries" % (A + " mlx5_0" if node == A else node)
            check("not queried: " + partial in plan["unreachable"][0]["detail"], plan["unreachable"])
            refused(f, "forget.answers", guid_of(f, A))
            f.write("partitions.yaml", policy(B, C))
            daemon = Daemon(f, f.path("partitions.yaml"))
            check("P_Key table cannot be read (not queried: %s)" % partial in daemon.text(), daemon.text())
            if node == A:
                check("was not queried for its P_Key table, because %s (link up)" % partial in daemon.text(), daemon.text())


def test_expired():
    """Nothing waits for a port that is absent for longer than absent_hold."""
    with Muted() as f:
        f.apply(f.write("partitions.yaml", policy(B))).expect(3)
        f.pkeyctl("forget", A, "--yes").expect(0)
        f.console('Unlink "%s"' % B)
        f.settings(SETTINGS + "absent_hold: 0s\n")
        r = f.pkeyctl("forget", B, "--yes", "--json").expect(1)
        check_equal([finding["code"] for finding in r.json()["findings"]], ["forget.expired"], "why it is refused")
        f.settings(SETTINGS + "absent_hold: forever\n")
        r = f.pkeyctl("forget", B, "--yes").expect(0)
        check("has not been in the fabric" in r.out and "indefinitely" in r.out, "what is known of it:", r)
        check_equal([v["node"] for v in vouches(f)], [A, B], "vouches")


def test_nobody_is_asked():
    """Without a terminal and without --yes, forget stores nothing."""
    with Muted() as f:
        r = f.pkeyctl("forget", A).expect(1)
        check("not a terminal" in r.err, "why:", r)
        check_equal(vouches(f), [], "vouches")


def test_reads_only():
    """show vouches does not create the state directory."""
    with Muted() as f:
        where = f.path("nowhere")
        f.run([program("pkeyctl"), "show", "vouches", "--state-dir", where]).expect(0)
        check(not os.path.exists(where), "the directory was made")


def test_plan_and_show():
    with Scene() as f:
        path = f.path("partitions.yaml")
        the_base(f.pkeyctl("plan", path, "--json").expect(2).json())
        check_words(f, f.pkeyctl("plan", path).expect(2).out, "plan")
        the_base(f.pkeyctl("show", "held", "--policy", path, "--json").expect(2).json())
        check_words(f, f.pkeyctl("show", "held", "--policy", path).expect(2).out, "show held")


def test_apply_and_forget():
    with Scene() as f:
        path = f.path("partitions.yaml")
        the_base(f.apply(path, "--json").expect(3).json())
        check_words(f, f.apply(path).expect(3).out, "apply")
        check(not holds(f, C), "C got the P_Key while A may still hold it")
        r = f.pkeyctl("forget", A, "--yes").expect(0)
        check("0x8010" in r.out, "what A may hold is not said:", r)
        (v,) = vouches(f)
        check("0x8010" in v["may_hold"], "what A may hold", v)
        check_equal(f.pkeyctl("show", "held", "--policy", path).expect(0).out, "no base is held\n", "show held after forget")
        check_equal(f.apply(path, "--json").expect(3).json()["held"], [], "held bases of apply after forget")
        check(holds(f, C), "C did not get the P_Key after forget")
        # A answers: the vouch ends, and its entry is revoked
        f.lose(A, 0)
        f.apply(path).expect(0)
        check(not holds(f, A), "A still holds the P_Key")
        check_equal(vouches(f), [], "vouches after A answered")


def printed_forget(fabric, path):
    """The arguments of the `pkeyctl forget` command that `show held` prints for the base of the scene."""
    held = fabric.pkeyctl("show", "held", "--policy", path, "--json").expect(2).json()["held"]
    (by,) = next(base for base in held if base["base"] == "0x0010")["held_by"]
    return by["way_out"].partition("pkeyctl forget ")[2].split()


def test_as_printed():
    """The printed command applies to the named port, not to the other adapter of the same host, even if that is mute, too."""
    topology = two_level(2, 2, 4)
    other = next(h for h in topology.hosts if h[0] == "node0005")
    topology.hosts[topology.hosts.index(other)] = (*other[:2], A + " mlx5_1", *other[3:])
    with Fabric(topology) as f:
        f.settings(SETTINGS)
        f.apply(f.write("partitions.yaml", Policy().add("storage", 0x0010, {A + "/mlx5_0": "full", B: "full"}).yaml())).expect(0)
        f.lose(A, 100)
        f.lose(other[0], 100)
        arguments = printed_forget(f, f.write("partitions.yaml", policy(B, C)))
        check_equal(arguments, [guid_of(f, A)], "what is printed")
        (v,) = f.pkeyctl("forget", *arguments, "--yes", "--json").expect(0).json()["vouches"]
        check_equal(v["port_guid"], guid_of(f, A), "the port that is vouched for")


def test_place_as_printed():
    """A device that was never discovered has no name: it is identified by the GUID and the port of its switch."""
    with Fabric(two_level(2, 2, 4)) as f:
        f.settings(SETTINGS)
        f.lose(A, 100, 0x11)
        switch, port = f.topology.peer(A)
        place = "@0x%016x/%u" % (f.topology.guid(switch), port)
        check_equal(printed_forget(f, f.write("partitions.yaml", policy(B, C))), [place], "what is printed")
        for text in (place, "@%s/%u" % (switch, port)):
            (v,) = f.pkeyctl("forget", text, "--yes", "--json").expect(0).json()["vouches"]
            check_equal((v["node_guid"], v["port"], v["kind"]), (place[1:].split("/")[0], port, "unknown-device"), "the place")


def test_vouch_ends():
    """A answers and still holds the P_Key: from then on no other port gets it."""
    with Scene() as f:
        path = f.path("partitions.yaml")
        f.pkeyctl("forget", A, "--yes").expect(0)
        f.lose(A, 0)
        f.pkeyctl("apply", f.write("other.yaml", policy(A, B)), "--yes").expect(0)
        f.lose(A, 100)
        the_base(f.apply(path, "--json").expect(3).json())
        check(not holds(f, C), "C got the P_Key by a vouch that is over")


def test_daemon():
    require()
    with Scene() as f:
        bus = Bus(f)
        f.settings("sweep_interval: 1s\ntimeout: 100ms\nmetrics: {textfile: %s}\n" % f.path("pkeyd.prom"))
        daemon = Daemon(f, f.path("partitions.yaml"), environment=bus.environment())
        bus.wait_name()
        daemon.wait_text('base 0x0010 (partition "storage") is held')
        check(not holds(f, C), "C got the P_Key while A may still hold it")
        f.start(f.pkeyctl_arguments("watch"), "watch.out", **bus.environment())
        watched = lambda: read_file(f.path("watch.out"))
        wait_for(lambda: "way out" in watched(), "the held base in watch")
        check_words(f, watched(), "watch")
        text = daemon.text()
        check("way out:" in text and "pkeyctl forget " + guid_of(f, A) in text, "the way out is not in the journal:", text)

        def status(*arguments):
            return f.pkeyctl("status", *arguments, **bus.environment()).expect(0, 2, 3)

        data = status("--json").json()
        check_equal(data["held_bases"], 1, "held bases in status")
        check(A in data["held"] and C in data["held"], "the ports", data["held"])
        check(re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d \(link up\)", data["held"]), "since when", data["held"])
        check_words(f, status().out, "status")
        check(", 1 unreachable; pkeyctl verify names them\n" in status().out, "what lists the ports", status())
        r = f.pkeyctl("reload", **bus.environment()).expect(3)
        check("partly carried out" in r.out, "reload with a held base:", r)
        check_words(f, r.out, "reload")
        data = f.pkeyctl("reload", "--json", **bus.environment()).expect(3).json()
        check_equal((data["ok"], data["outcome"], data["held_bases"]), (False, "partial", 1), "reload --json")
        check_words(f, data["held"], "reload --json")
        wait_for(lambda: "pkeyd_held_bases 1" in read_file(f.path("pkeyd.prom")), "the metric")
        check("pkeyd_held_ports 1" in read_file(f.path("pkeyd.prom")), "the other metric")
        named = re.search(r'^pkeyd_held_base_since_timestamp_seconds\{base="0x0010",partition="storage",reason="(?:silent|unanswered)",'
                          r'node_guid="0x[0-9a-f]{16}",node="%s",port="1",port_guid="%s"\} [1-9]\d{9}$' % (A, guid_of(f, A)),
                          read_file(f.path("pkeyd.prom")), re.M)
        check(named, "the metric names the port", read_file(f.path("pkeyd.prom")))
        # it stays held if C does not answer either
        f.lose(C, 100)
        wait_for(lambda: status("--json").json()["ports_unreachable"] == 2, "C to be missed")
        check_words(f, status().out, "status while C is mute")
        check_words(f, f.pkeyctl("show", "held", "--policy", f.path("partitions.yaml")).expect(2).out, "show held while C is mute")
        check("no base is held" not in daemon.text(), "the journal:", daemon.text())
        f.lose(C, 0)
        # the daemon reads the vouch at its next sweep
        f.pkeyctl("forget", A, "--yes").expect(0)
        wait_for(lambda: holds(f, C), "C to get the P_Key after forget")
        daemon.wait_text("no base is held")
        wait_for(lambda: status("--json").json()["held_bases"] == 0, "status without held bases")
        wait_for(lambda: "no base is held" in watched(), "the end in watch")
        check(all(len(line) > 20 for line in watched().splitlines()), "a line of watch is empty:", watched())
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


QUESTION = "will be able to."


def test_forget_stores_no_other_port():
    """What is known of D stays, although forget reads its table: it may get the P_Key only afterwards."""
    with Muted() as f:
        f.apply(f.write("partitions.yaml", policy(B))).expect(3)
        forget = AtTerminal(f, "forget", "node[0002,0005]")
        forget.wait_question(QUESTION)
        record, store = record_of(f, D)
        record["writes"] = [{"block": 0, "entries": record["entries"] + "8010", "suspected": False}]
        store(record)
        known, store = record_of(f, D, known=True)
        known["description"] = "renamed"
        store(known)
        check("%s mlx5_0/1 is assumed to have no P_Key" % A in forget.end(0, "y"), "what was forgotten")
        check_equal(record_of(f, D, known=True)[0], known, "the name of D")
        f.pkeyctl("forget", A, D, "--yes").expect(1)
        f.pkeyctl("forget", "node[0002,0005]", "--yes").expect(0)
        check_equal([v["node"] for v in vouches(f)], [A], "vouches")
        check_equal(record_of(f, D)[0], record, "what is known of D")
        f.lose(D, 100)
        f.write("partitions.yaml", policy(B, C))
        (base,) = f.pkeyctl("plan", f.path("partitions.yaml"), "--json").expect(2).json()["held"]
        check_equal([by["node"] for by in base["held_by"]], [D], "what holds the base")


def changed_meanwhile(fabric, forget, vouched=()):
    out = forget.end(1, "y")
    check("what is known of %s mlx5_0/1 has changed meanwhile; nothing was forgotten" % A in out, out)
    check_equal([v["node"] for v in vouches(fabric)], [*vouched], "vouches")


def test_forget_what_was_shown():
    """A person vouches for what the person was shown. Another time of the last sweep, or another clock, is no news."""
    with Scene() as f:
        shown, store = record_of(f, A)
        write = {"block": 0, "entries": "7fff8011", "suspected": False}
        news = [{"writes": [write]}, {"entries": "7fff801080118012"}, {"entries": "7fff8012"}, {"entries": "8010"},
                {"unfollowed": True}, {"read": False, "entries": ""},
                {"presence": "silent"}, {"since": shown["since"] - 100}, {"read_at": shown["read_at"] - 100}]
        for change in news:
            forget = AtTerminal(f, "forget", A)
            forget.wait_question(QUESTION)
            store(shown | change)
            changed_meanwhile(f, forget)
            store(shown)
        forget = AtTerminal(f, "forget", A)
        forget.wait_question(QUESTION)
        times = ("read_at", "since", "seen_at", "there_at", "clock")
        store(shown | {key: shown[key] - 3600 for key in times})
        check("0x8010" in forget.end(0, "y"), "what A may hold")
        check_equal([v["node"] for v in vouches(f)], [A], "vouches")


def test_forget_what_was_read_before():
    """What pkeyd stores while forget reads the fabric counts as stored after the question."""
    with Scene() as f:
        f.settings("timeout: 500ms\n")
        shown, store = record_of(f, A)
        forget = AtTerminal(f, "forget", A, trace="trace")
        wait_for(lambda: any(mad.attribute == 0x16 for mad in madtrace.read(f.path("trace"))), "the query of its table")
        pause(forget.child)
        store(shown | {"read_at": shown["read_at"] + 100, "entries": shown["entries"] + "8011"})
        forget.child.send_signal(signal.SIGCONT)
        check("0x8011" not in forget.wait_question(QUESTION), "what is shown")
        changed_meanwhile(f, forget)


def test_forget_answers_meanwhile():
    """A answers, gets the P_Key, and is mute again, all before the answer of the person."""
    with Muted() as f:
        f.settings(SETTINGS + "sweep_interval: 1h\n")
        f.lose(A, 0)
        daemon = Daemon(f, f.write("partitions.yaml", policy(B)))
        f.lose(A, 100)
        forget = AtTerminal(f, "forget", A)
        check("0x8010" not in forget.wait_question(QUESTION), "what is shown")
        f.lose(A, 0)
        f.write("partitions.yaml", policy(A, B))
        daemon.reload()
        wait_for(lambda: holds(f, A), "the P_Key of A")
        f.lose(A, 100)
        f.write("partitions.yaml", policy(B, C))
        daemon.reload()
        daemon.wait_text('base 0x0010 (partition "storage") is held')
        changed_meanwhile(f, forget)
        daemon.reload()
        check(not holds(f, C), "C got the P_Key while A holds it")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_forget_beside_a_daemon_that_sweeps():
    """Sweeps while the person is asked do not matter as long as nothing is news; a port that was there for one of them is news."""
    with Muted() as f:
        f.settings(SETTINGS + "sweep_interval: 1s\n")
        daemon = Daemon(f, f.write("partitions.yaml", policy(B)))
        f.console('Unlink "%s"' % D)
        wait_for(lambda: record_of(f, D)[0]["presence"] == "absent", "pkeyd to miss D")
        forget = AtTerminal(f, "forget", A, D)
        forget.wait_question("will be able to.")
        wait_sweeps(f, 3)
        forget.end(0, "y")
        check_equal([v["node"] for v in vouches(f)], [A, D], "vouches")
        f.lose(A, 0)
        wait_for(lambda: len(vouches(f)) == 1, "A to answer")
        f.console('Unlink "%s"' % A)
        wait_for(lambda: record_of(f, A)[0]["presence"] == "absent", "pkeyd to miss A")
        forget = AtTerminal(f, "forget", A)
        forget.wait_question(QUESTION)
        for presence, command in (("there", "ReLink"), ("absent", "Unlink")):
            f.console('%s "%s"' % (command, A))
            wait_for(lambda presence=presence: record_of(f, A)[0]["presence"] == presence, "A to be " + presence)
        changed_meanwhile(f, forget, [D])
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


def test_show_what_the_daemon_holds():
    """Nothing would wait with the other policy; what the daemon holds is shown nevertheless, once."""
    require()
    with Scene() as f:
        bus = Bus(f)
        f.settings("sweep_interval: 1h\ntimeout: 100ms\nabsent_hold: forever\n")
        f.console('Unlink "%s"' % A)
        daemon = Daemon(f, f.path("partitions.yaml"), environment=bus.environment())
        bus.wait_name()
        daemon.wait_text("base 0x0010")

        def show(path, *more):
            return f.pkeyctl("show", "held", "--policy", path, *more, **bus.environment()).expect(2)

        other = f.write("other.yaml", policy())
        data = show(other, "--json").json()
        check_equal((data["held"], data["daemon"]["held_bases"]), ([], 1), "what is held, and what the daemon holds")
        for text in (data["daemon"]["held"], show(other).out):
            check('base 0x0010 (partition "storage") is held: ' in text and "way out: wait" in text, "show held:", text)
        text = show(f.path("partitions.yaml")).out
        check_equal(text.count("is held:"), 1, "lines of " + text)
        check_equal(f.pkeyctl("show", "held", "--policy", other, "--json").expect(0).json()["daemon"], None, "without a daemon")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


if __name__ == "__main__":
    main()
