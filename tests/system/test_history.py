# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl history: who changed the policy, when, what that changed; and since when a line decides."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess

from harness import (PATIENCE, AtTerminal, Daemon, Fabric, Skip, check, check_equal, main, program, read_file, two_level,
                     wait_for)
from oracle import Policy
from private_bus import Bus, require

SETTINGS = "sweep_interval: 1h\ntimeout: 200ms\n"
KEY = "generation/%020d"


def policy(full, name="one"):
    return Policy().add(name, 0x0010, {full: "full"}).yaml()


ONE, TWO, THREE = policy("node[0001-0002]"), policy("node[0001-0003]"), policy("node[0001-0003]", "renamed")


class Edits:
    """Generation 1 by the start of pkeyd, 2 by SIGHUP, 3 by pkeyctl reload, which also changes pkeyd.yaml."""

    def __enter__(self):
        require()
        self.fabric = f = Fabric(two_level(1, 1, 4)).__enter__()
        try:
            self.bus = Bus(f)
            f.settings(SETTINGS)
            self.policy = f.write("partitions.yaml", ONE)
            self.daemon = Daemon(f, self.policy, environment=self.bus.environment())
            self.bus.wait_name()
            f.write("partitions.yaml", TWO)
            self.daemon.reload()
            f.write("partitions.yaml", THREE)
            f.settings(SETTINGS + "history: {keep: 4}\n")
            f.pkeyctl("reload", **self.bus.environment()).expect(0)
        except BaseException:
            f.__exit__(Exception, None, None)
            raise
        return self

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)

    def history(self, *arguments, status=0):
        return self.fabric.pkeyctl("history", *arguments, "--policy", self.policy).expect(status)

    def json(self, *arguments, status=0):
        return self.history(*arguments, "--json", status=status).json()

    def stop(self):
        check_equal(self.daemon.stop(), 0, "exit status of pkeyd")

    def sql(self, statement, *values):
        db = sqlite3.connect(os.path.join(self.fabric.path("state"), "state.db"))
        with db:
            rows = db.execute(statement, values).fetchall()
        db.close()
        return rows


def lines(text):
    """The rows of a table without its head, their blanks joined."""
    return [" ".join(line.split()) for line in text.splitlines()[1:]]


def test_list():
    with Edits() as e:
        newest, second, first = e.json()["generations"]
        check_equal([g["number"] for g in (newest, second, first)], [3, 2, 1], "numbers")
        check_equal([g["in_force"] for g in (newest, second, first)], [True, False, False], "in force")
        check_equal([g["origin"]["via"] for g in (newest, second, first)], ["bus", "signal", "start"], "who")
        check_equal(newest["origin"], {"via": "bus", "uid": 0, "user": "root"}, "the caller")
        check_equal((second["origin"]["uid"], second["origin"]["user"]), (None, None), "of a signal")
        check_equal([g["outcome"] for g in (newest, second, first)], ["carried-out"] * 3, "how they ended")
        check(all(g["time"] and g["ended"] >= g["time"] for g in (newest, second, first)), "when", newest)
        check_equal(second["changes"], ["who can talk to whom: 0 pairs of ports lost, 1 gained; nothing else changes",
                                        "node0003: now with node0002 (one)"], "what changed")
        check_equal(newest["changes"], [], "a new name changes nothing")
        for key in ("undoes", "restores", "undone_by", "confirm_for", "confirm_until", "confirmed", "confirmed_by"):
            check_equal(newest[key], None, key)
        check_equal([(g["n_held"], g["waits"], g["damaged"]) for g in (newest, second, first)], [(0, False, False)] * 3, "the rest")
        check_equal(second["policy_size"], len(TWO), "its size")
        got = [row.split(" ", 3) for row in lines(e.history().out)]
        check_equal([row[0] for row in got], ["3", "2", "1"], "in words")
        check_equal([row[3] for row in got[:2]], ["root carried out in force -",
                    "SIGHUP carried out node0003: now with node0002 (one)"], "rows")
        e.stop()
        value = e.sql("SELECT value FROM record WHERE key = ?", KEY % 2)[0][0]
        for changes, shown in (([], "-"), (["sum"], "sum"), (["sum", "a", "b"], "a (and 1 more)"), (["sum", "a", "b", "c"], "a (and 2 more)")):
            more = b'"changes":%s}' % json.dumps(changes).encode()
            e.sql("UPDATE record SET value = ? WHERE key = ?", value[:value.index(b'"changes"')] + more, KEY % 2)
            check_equal(lines(e.history().out)[1].split(" ", 3)[3], "SIGHUP carried out " + shown, changes)
        check(got[2][3].startswith("start of pkeyd carried out "), got[2])
        check_equal(e.history("-q").out, "", "with -q")
        check_equal(e.json()["generations"][0]["number"], 3, "without a daemon")


def test_memberships():
    """A change that connects and disconnects nobody is one of memberships."""
    with Edits() as e:
        e.fabric.write("partitions.yaml", Policy().add("one", 0x0010, {"node[0001-0003]": "full"}).add("two", 0x0011, {"node[0001-0002]": "full"}).yaml())
        e.daemon.reload()
        check_equal(e.json()["generations"][0]["changes"], ["who can talk to whom does not change", "two: 2 ports gained it (full)"], "as JSON")
        check("in force two: 2 ports gained it (full)" in lines(e.history().out)[0], e.history().out)
        check(e.history("show", "4").out.endswith("  changes:\n    who can talk to whom does not change\n    two: 2 ports gained it (full)\n"),
              e.history("show", "4").out)


def test_without_pkeyd():
    """pkeyctl stores what a generation changed, also of the first one."""
    with Fabric(two_level(1, 1, 4)) as fabric:
        fabric.settings(SETTINGS)
        path = fabric.write("partitions.yaml", TWO)
        summary = "who can talk to whom: %s; nothing else changes" % fabric.pkeyctl("plan", path).expect(2).out.split("\n  ")[-1].split(";")[0]
        fabric.apply(path).expect(0)
        got = fabric.pkeyctl("history", "--json").json()["generations"]
        check_equal((len(got), got[0]["changes"][0], got[0]["outcome"]), (1, summary, "carried-out"), "the first generation")
        check("no longer with each other" in got[0]["changes"][1], got)


def test_show():
    with Edits() as e:
        g = e.json("show", "3")["generation"]
        check_equal((g["previous"], g["policy_changed"], g["settings_changed"], g["held"]), (2, True, True, []), "generation 3")
        g = e.json("show", "2")["generation"]
        check_equal((g["previous"], g["policy_changed"], g["settings_changed"]), (1, True, False), "generation 2")
        g = e.json("show", "1")["generation"]
        check_equal((g["previous"], g["policy_changed"], g["settings_changed"]), (None, None, None), "generation 1")
        text = e.history("show", "3").out
        for words in ("generation 3: in force\n", "by:              root\n", "result:          carried out, 20", "%d bytes, changed since "
                      "generation 2\n" % len(THREE), "changes:         none in who can talk to whom\n"):
            check(words in text, "'%s' is not in" % words, text)
        text = e.history("show", "2").out
        check("generation 2\n" in text and "by:              SIGHUP\n" in text, text)
        check("pkeyd.yaml:      %d bytes, the same as in generation 1\n" % (len(SETTINGS) + len("beside_opensm: true\n")) in text, text)
        check(text.endswith("  changes:\n    who can talk to whom: 0 pairs of ports lost, 1 gained; nothing else changes\n"
                            "    node0003: now with node0002 (one)\n"), text)


def test_diff():
    with Edits() as e:
        (one, settings) = e.json("diff", "2", status=2)["files"]
        check_equal((one["file"], settings), ("partitions.yaml", {"file": "pkeyd.yaml", "diff": ""}), "the files")
        shown = one["diff"].splitlines()
        check_equal(shown[:2], ["--- partitions.yaml (generation 1)", "+++ partitions.yaml (generation 2)"], "the labels")
        check_equal([line[0] for line in shown if "node" in line and line[0] != " "], ["-", "+"], "the lines")
        text = e.history("diff", "3", status=2).out
        check("\n+history: {keep: 4}\n" in text and "--- pkeyd.yaml (generation 2)\n" in text and "renamed" in text, text)
        data = e.json("diff", "3", "1", status=2)
        check_equal((data["from"], data["to"]), (3, 1), "from, to")
        check("\n-  renamed:" in data["files"][0]["diff"] and "\n-history" in data["files"][1]["diff"], data)
        r = e.history("diff", "2", "2")
        check_equal((r.out, r.err), ("both files are the same\n", ""), "nothing")
        check_equal(e.history("diff", "3", "file").out, "both files are the same\n", "the present files")
        e.fabric.write("partitions.yaml", ONE + "# \x1b[31mred\xe2\n")
        data = e.json("diff", "1", "file", status=2)
        check_equal((data["from"], data["to"]), (1, None), "from, to")
        check("+++ %s\n" % e.policy in data["files"][0]["diff"] and "\x1b" in data["files"][0]["diff"], data)
        text = e.history("diff", "1", "file", status=2).out
        check("\n+# ?[31mred" in text and "\x1b" not in text, "what a terminal gets:", repr(text))
        os.unlink(e.policy)
        check_equal([f["code"] for f in e.json("diff", "1", "file", status=1)["findings"]], ["file.unreadable"], "without a file")
        r = e.fabric.pkeyctl("history", "diff", "2", "--json", PATH="/nowhere").expect(1)
        check_equal([(f["code"], f["hint"]) for f in r.json()["findings"]], [("host.diff", "install diffutils")], "without diff")


def test_policy():
    with Edits() as e:
        for number, text in ((1, ONE), (2, TWO), (3, THREE)):
            check_equal(e.history("policy", str(number)).out, text, "policy %d" % number)
        check_equal(e.json("policy", "2")["text"], TWO, "as JSON")
        path = e.fabric.path("old.yaml")
        check_equal(e.json("policy", "2", "--output", path)["output"], path, "with --output")
        check_equal(read_file(path), TWO, "the file")
        check_equal([f["code"] for f in e.json("policy", "1", "--output", path, status=1)["findings"]], ["file.unwritable"], "again")
        check_equal(read_file(path), TWO, "the file")


def test_arguments():
    with Edits() as e:
        for command in ("show", "diff", "policy"):
            for wrong in ("x", "", "-1", "2x", "0x2", " 2", "99999999999999999999", "9223372036854775808"):
                r = e.fabric.run([program("pkeyctl"), "--json", "--state-dir", e.fabric.path("state"), "--", "history", command, wrong])
                check("'%s' is not the number of a generation" % wrong in r.json()["findings"][0]["text"], r)
            for absent in ("0", "4", "9223372036854775807"):
                check("generation %s is not in the store (it has 1-3)" % absent in e.history(command, absent, status=1).err, command)
            e.history(command, status=1)
        check("generation 1 is the oldest one" in e.history("diff", "1", status=1).err, "nothing before it")
        check("not in the store" in e.history("diff", "1", "7", status=1).err, "the second argument")
        check("unknown command 'history 3'" in e.history("3", status=1).err, "no word")
        e.stop()
        e.sql("DELETE FROM record WHERE key LIKE ?", KEY % 2 + "%")
        check("(it has 1, 3)" in e.history("show", "2", status=1).err, "a gap")
        check_equal(e.json("show", "3")["generation"]["previous"], 1, "before 3")


def test_no_generations():
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        words = "no policy has come into force with this state directory yet"
        check_equal(fabric.pkeyctl("history").expect(0).out, words + "\n", "history")
        check_equal(fabric.pkeyctl("history", "--json").expect(0).json()["generations"], [], "as JSON")
        check(words in fabric.pkeyctl("history", "show", "1").expect(1).err, "show")


def test_deleted_before_the_answer():
    """pkeyctl stores the generation in force again, with the settings that it was stored with."""
    with Fabric(two_level(1, 1, 4)) as fabric:
        fabric.settings(SETTINGS)
        fabric.pkeyctl("apply", "--yes", fabric.write("partitions.yaml", ONE)).expect(0)
        fabric.settings(SETTINGS + "window: 7\n")
        apply = AtTerminal(fabric, "apply", fabric.write("partitions.yaml", TWO))
        apply.wait_question("?")
        shutil.rmtree(fabric.path("state"))
        apply.end(0, "yes")
        diff = fabric.pkeyctl("history", "diff", "1", "2", "--json").expect(2).json()["files"][1]["diff"]
        check("+window: 7" in diff and "+sweep_interval" not in diff, diff)


def test_no_directory_after_the_answer():
    with Fabric(two_level(1, 1, 4)) as fabric:
        fabric.settings(SETTINGS)
        apply = AtTerminal(fabric, "apply", fabric.write("partitions.yaml", ONE))
        apply.wait_question("?")
        shutil.rmtree(fabric.path("state"))
        fabric.write("state", "")
        out = apply.end(1, "yes")
        check("state/state.db cannot be used: Not a directory" in out and "hint: name a directory" in out and "; nothing was sent" in out, out)


def test_older_database():
    """pkeyd 0.1.0 stored no facts and no settings."""
    with Edits() as e:
        e.stop()
        e.sql("UPDATE record SET value = ? WHERE key = ?", b'{"number":2,"time":1700000000,"policy_size":%d}' % len(TWO), KEY % 2)
        e.sql("DELETE FROM record WHERE key LIKE ?", KEY % 2 + "/settings/%")
        g = e.json("show", "2")["generation"]
        check_equal(g["time"], "2023-11-14T22:13:20.000000Z", "its time")
        for key in ("origin", "outcome", "ended", "changes", "n_held", "held", "settings_size", "settings_changed"):
            check_equal(g[key], None, key)
        check_equal((g["damaged"], g["policy_changed"], g["policy_size"]), (False, True, len(TWO)), "what is known")
        check("not known not known not known" in lines(e.history().out)[1], e.history().out)
        text = e.history("show", "2").out
        check("pkeyd.yaml:      not stored\n" in text and "changes:" not in text, text)
        data = e.json("diff", "3", status=2)
        check_equal((data["files"][1]["diff"], data["findings"][0]["severity"]), (None, "note"), "the settings")
        check("pkeyd.yaml of generation 2 is not in the store" in e.history("diff", "2", "3", status=2).err, "a note")
        check("pkeyd.yaml of generation 2 is not in the store" in e.history("diff", "1", "2", status=2).err, "a note")
        check_equal(e.history("policy", "2").out, TWO, "the policy")


def test_damaged():
    """A damaged generation is shown; nothing is made of its files."""
    with Edits() as e:
        e.stop()
        e.sql("UPDATE record SET value = ? WHERE key = ?", b"versio", KEY % 2 + "/policy/00")
        g = e.json()["generations"][1]
        check_equal((g["number"], g["damaged"], g["origin"]["via"], g["policy_size"]), (2, True, "signal", None), "without its policy")
        check("SIGHUP carried out damaged" in lines(e.history().out)[1], e.history().out)
        g = e.json("show", "3")["generation"]
        check_equal((g["policy_changed"], g["settings_changed"]), (None, None), "of the next one")
        g = e.json("show", "2")["generation"]
        check_equal((g["damaged"], g["policy_changed"]), (True, None), "show")
        check("generation 2: damaged\n" in e.history("show", "2").out, "in words")
        for arguments in (("diff", "2"), ("diff", "3"), ("policy", "2")):
            check("generation 2 cannot be read from the store: its records are damaged" in e.history(*arguments, status=1).err, arguments)
        e.sql("UPDATE record SET value = ? WHERE key = ?", b"{}", KEY % 3)
        g = e.json()["generations"][0]
        check_equal((g["number"], g["damaged"], g["in_force"], g["time"], g["origin"], g["changes"]), (3, True, False, None, None, None),
                    "without its facts")
        e.history("show", "3")


def test_hostile_texts():
    """Texts of the store cannot control a terminal."""
    with Edits() as e:
        e.stop()
        value = e.sql("SELECT value FROM record WHERE key = ?", KEY % 2)[0][0].decode()
        value = value.replace('"node0003', '"\\u001b[31m\\u009b\\u202enode').replace('"changes"', '"user":"a\\u001b]0;x","changes"').replace('"signal"', '"bus","uid":7')
        value = value.replace('"carried-out"', '"\\u001bcarried"')
        e.sql("UPDATE record SET value = ? WHERE key = ?", value.encode(), KEY % 2)
        for arguments in ((), ("show", "2")):
            text = e.history(*arguments).out
            check("?[31m??node" in text and "a?]0;x" in text and "?carried" in text, text)
            check(all(c == "\n" or c.isprintable() for c in text), repr(text))
        check_equal(e.json("show", "2")["generation"]["origin"], {"via": "bus", "uid": 7, "user": "a\x1b]0;x"}, "as JSON")


def test_undone():
    """An undo, and a change that was confirmed, in the list."""
    with Edits() as e:
        e.stop()

        def put(number, **more):
            value = e.sql("SELECT value FROM record WHERE key = ?", KEY % number)[0][0].decode()
            for key, text in more.items():
                value = value[:-1] + ',"%s":%s}' % (key, text)
            e.sql("UPDATE record SET value = ? WHERE key = ?", value.encode(), KEY % number)
        put(2, confirm_for=600, confirm_until=1800000000, confirmed=1700000000, confirmed_via='"bus"', confirmed_uid=1, confirmed_user='"eve"')
        put(3, undoes=2, restores=1, confirm_for=60, confirm_until=1800000060, n_held=2, held='["0x0010","0x0011"]')
        put(1, confirm_for=30, confirm_until=1800000000)
        third, second, first = e.json()["generations"]
        check_equal((second["undone_by"], second["waits"], second["confirm_for"], second["confirm_until"], second["confirmed"]),
                    (3, False, 600, "2027-01-15T08:00:00.000000Z", "2023-11-14T22:13:20.000000Z"), "generation 2")
        check_equal(second["confirmed_by"], {"via": "bus", "uid": 1, "user": "eve"}, "who confirmed")
        check_equal((third["undoes"], third["restores"], third["waits"], third["n_held"]), (2, 1, True, 2), "generation 3")
        check_equal((first["undone_by"], first["waits"]), (None, False), "generation 1, which is not in force any more")
        rows = lines(e.fabric.pkeyctl("history", TZ="UTC").out)
        check("root carried out, 2 bases held in force; undoes 2, with the files of 1; waits until 2027-01-15 08:01:00 to be confirmed"
              in rows[0], rows)
        check("undone by 3; confirmed 2023-11-14 22:13:20 by eve" in rows[1], rows)
        check("held:            0x0010 (renamed), 0x0011\n" in e.history("show", "3").out, e.history("show", "3").out)
        check_equal(e.json("show", "3")["generation"]["held"], [{"partition": "renamed", "p_key": "0x0010"},
                                                                {"partition": "", "p_key": "0x0011"}], "held")


def test_another_user():
    with Edits() as e:
        for path in (e.fabric.dir, e.fabric.path("cwd-1")):
            os.chmod(path, os.stat(path).st_mode | stat.S_IRWXO)

        def drop():
            os.setgroups([])
            os.setuid(65534)
        try:
            r = subprocess.run([program("pkeyctl"), "history", "--state-dir", e.fabric.path("state")], preexec_fn=drop, cwd="/",
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        except (PermissionError, subprocess.SubprocessError) as error:
            raise Skip("cannot become another user: %s" % error) from None
        check_equal((r.returncode, r.stdout), (1, ""), "exit status and output")
        check("Permission denied" in r.stderr, r.stderr)


def test_completion():
    with Edits() as e:
        def words(*line):
            r = e.fabric.run([program("pkeyctl"), "complete", str(len(line) + 1), "pkeyctl", "--state-dir=" + e.fabric.path("state"), *line])
            return [item.split("\t")[0] for item in r.out.splitlines()]
        check_equal(words("history", ""), ["diff", "policy", "show"], "the words")
        for word in ("show", "diff", "policy"):
            check_equal(words("history", word, ""), ["1", "2", "3"], word)
        check_equal(words("history", "diff", "2", ""), ["1", "2", "3", "file"], "the second")
        check_equal(words("history", "show", "2", ""), [":none"], "no more")
        check("--output" in words("history", "policy", "--o") and "--output" not in words("history", "show", "--o"), "options")


def test_old_ones_go():
    """history.keep of the settings in force."""
    with Edits() as e:
        for i in range(3):
            e.fabric.write("partitions.yaml", ONE + "# %d\n" % i)
            e.daemon.reload()
        wait_for(lambda: e.json()["generations"][0]["outcome"], "the last one to end")
        check_equal([g["number"] for g in e.json()["generations"]], [6, 5, 4, 3], "numbers")
        check_equal(e.sql("SELECT count(*) FROM record WHERE key LIKE 'generation/%'"), [(4 * 3,)], "records")


def test_since():
    """Since when each side has been what explain says."""
    with Edits() as e:
        def explain(a, b, *more):
            return e.fabric.pkeyctl("explain", a, b, "--policy", e.policy, *more)

        def since(a, b):
            data = explain(a, b, "--json").json()
            return data["in_force"], [[m["since_generation"] for m in side["memberships"] if m["p_key"] == "0x0010"]
                                      for side in (data["pairs"][0]["a"], data["pairs"][0]["b"])]
        check_equal(since("node0002", "node0003"), (True, [[1], [2]]), "since when")
        text = explain("node0002", "node0003").expect(0).out
        check("node0002 mlx5_0/1: full in renamed (%s:" % e.policy in text and "; since generation 1)\n" in text, text)
        check("node[0001-0003]; since generation 2)\n" in text, text)
        check_equal(explain("node0002", "node0004", "--json").expect(2).json()["in_force"], True, "two that may not talk")
        e.fabric.write("partitions.yaml", ONE)
        check_equal(since("node0002", "node0003"), (False, [[None], []]), "a policy that is not in force")
        text = explain("node0002", "node0003").expect(0).out
        check("%s is not in force yet: it is not the policy of generation 3\n" % e.policy in text and "since generation" not in text, text)
        for text in (ONE, TWO):  # 4 and 5: node0003 is out and in again
            e.fabric.write("partitions.yaml", text)
            e.daemon.reload()
        check_equal(since("node0002", "node0003"), (True, [[2], [5]]), "what was interrupted")
        data = explain("node0002", "node0003", "--json").json()["pairs"][0]
        check_equal([[m["or_earlier"] for m in data[side]["memberships"] if m["p_key"] == "0x0010"] for side in "ab"], [[True], [False]],
                    "generation 1 is gone")
        check("; since generation 2 or earlier)\n" in explain("node0002", "node0003").out, "in words")
        text = THREE.replace("version: 1\n", "version: 1\nowns: 0x0010\n")
        e.fabric.write("partitions.yaml", text)
        e.daemon.reload()
        out = explain("node0003", "node0004").expect(2).out
        check("node0003 mlx5_0/1: full in renamed (%s:" % e.policy in out and "; since generation 5)\n" in out, out)
        check("node0004 mlx5_0/1: not in renamed (since generation 3 or earlier)\n" in out, out)
        e.stop()
        e.sql("UPDATE record SET value = ? WHERE key = ?", b"x", KEY % 4 + "/policy/00")
        check_equal(since("node0002", "node0003"), (True, [[5], [5]]), "behind a damaged one")
        for number in range(7, 70):
            e.sql("INSERT INTO record VALUES(?, ?)", KEY % number, b'{"number":%d,"time":1,"policy_size":%d}' % (number, len(text)))
            e.sql("INSERT INTO record VALUES(?, ?)", KEY % number + "/policy/00", text.encode())
        check_equal(since("node0002", "node0003"), (True, [[20], [20]]), "the limit")
        r = e.fabric.run([program("pkeyctl"), "explain", "node0002", "node0003", "--policy", e.policy, "--config", e.fabric.settings(),
                          "--state-dir", e.fabric.path("nowhere"), "--json"])
        data = r.json()
        check_equal((data["in_force"], data["pairs"][0]["a"]["memberships"][0]["since_generation"]), (None, None), "without a store")


if __name__ == "__main__":
    main()
