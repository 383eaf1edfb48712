# SPDX-License-Identifier: GPL-2.0-or-later
"""The output of pkeyctl: exit statuses, JSON with the documented keys, explain, show; and that bad input sends nothing."""

import fcntl
import glob
import itertools
import os
import pty
import random
import re
import subprocess

import madtrace
from harness import Fabric, check, check_equal, main, program, two_level
from netfile import cluster
from oracle import Policy, expand_hostlist, split_commas

GUID, P_KEY = re.compile(r"0x[0-9a-f]{16}"), re.compile(r"0x[0-9a-f]{4}")


def fabric_of():
    return Fabric(two_level(2, 1, 4))


def policy_of():
    return (Policy().add("a", 0x0101, {"node[0001-0003]": "full", "node0005": "limited", "node0006": "limited"})
            .add("b", 0x0102, {"node0007": "full", "node0008": "both"}))


def has(item, *keys):
    for key in keys:
        check(key in item, repr(key), "is not in", item)


def test_boards_of_a_director():
    """Each switch of a director has its own name in the output."""
    with Fabric(cluster(), home="H-0002c90300800000") as fabric:
        rows = [line.split()[:2] for line in fabric.pkeyctl("show").expect(0).out.splitlines()]
        for board in ("L01/U1", "L02/U1", "S01/U1", "S02/U1"):
            check(["director1:" + board, "0"] in rows, "no director1:" + board, rows)
        check(["leaf01", "0"] in rows, "a switch of one chip has a board", rows)
        path = fabric.write("partitions.yaml", Policy().add("a", 0x0101, {"ALL_SWITCHES": "full"}).yaml())
        plan = fabric.pkeyctl("plan", path).expect(2).out
        check("director1:L01/U1,director1:L02/U1," in plan and "director1," not in plan, plan)


def test_host_that_is_down():
    """Commands that only read the fabric know the name of a host that was there before."""
    with Fabric(two_level(2, 1, 4), opensm=False) as fabric:
        path = fabric.write("partitions.yaml", Policy().add("b", 0x0102, {"node0007": "full", "node0008": "full"}).yaml())
        fabric.pkeyctl("apply", path, "--yes").expect(0)
        fabric.console('Unlink "node0008"')
        for command, status in ((("plan", path), 0), (("verify", path), 0), (("show", "port", "node0008"), 1),
                                (("explain", "node0008", "node0001", "--policy", path), 1), (("export", "opensm", path), 0)):
            r = fabric.pkeyctl(*command).expect(status)
            check("matches nothing" not in r.err and "did you mean" not in r.err, command, r)
            check("'node0008' is not in the fabric now (last seen " in r.err, command, r)


def test_plan_and_apply_json():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        for command, status in (("plan", 2), ("apply", 0)):
            data = fabric.pkeyctl(command, path, "--json", *(["--yes"] if command == "apply" else [])).expect(status).json()
            check_equal((data["schema"], data["ok"]), (1, True), "schema, ok")
            has(data, "changes", "ports_affected", "phases", "findings")
            writes = [w for p in data["phases"] for w in p["writes"]]
            check_equal(len(writes), data["changes"], "writes")
            check_equal(len({w["port_guid"] for w in writes}), data["ports_affected"], "ports")
            for phase in data["phases"]:
                has(phase, "phase", "writes")
            for write in writes:
                has(write, "node", "port_guid", "lid", "port", "block", "before", "after")
                check(GUID.fullmatch(write["port_guid"]), write["port_guid"])
                check(all(P_KEY.fullmatch(k) for k in write["before"] + write["after"]), write)
        check_equal((data["written"], data["failed"]), (data["changes"], []), "written, failed")
        data = fabric.pkeyctl("plan", path, "--json").expect(0).json()
        check_equal((data["ok"], data["changes"], data["phases"]), (True, 0, []), "a plan when all is done")


def test_verify_json():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.apply(path).expect(0)
        data = fabric.pkeyctl("verify", path, "--json").expect(0).json()
        check_equal((data["ok"], data["ports"], data["differ"], data["unreachable"]), (True, 8 + 3, [], []), "verify")
        guid = fabric.topology.port_guid("node0007")
        fabric.set_p_key(fabric.tables()[guid], i1=0x8666)
        data = fabric.pkeyctl("verify", path, "--json").expect(2).json()
        check_equal(data["ok"], False, "ok")
        (differ,) = data["differ"]
        has(differ, "node", "port", "source")
        check_equal((differ["port_guid"], differ["missing"], differ["unexpected"]), ("0x%016x" % guid, ["0x8102"], ["0x8666"]),
                    "what differs")
        out = fabric.pkeyctl("verify", path).expect(2).out
        check("node0007" in out and "0x8666" in out, "text of verify:", out)


def test_errors_are_json_too():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", "version: 1\npartitions:\n  a: {pkey: 0x0101, members: {x: fulll}, color: red}\n")
        for command in (["check"], ["plan"], ["verify"], ["apply", "--yes"]):
            data = fabric.pkeyctl(*command, path, "--json", trace="bad").expect(1).json()
            check_equal((data["schema"], data["ok"]), (1, False), "schema, ok of " + command[0])
            check(len([f for f in data["findings"] if f["severity"] == "error"]) >= 2, "all errors at once:", data["findings"])
            for finding in data["findings"]:
                has(finding, "file", "line", "column", "severity", "code", "text")
        check_equal(madtrace.read(fabric.path("bad")), [], "MADs after a bad policy")
        for arguments in (["no-such-command"], ["plan", "--no-such-option"], ["plan", path, "one-too-many"], ["apply", path]):
            fabric.run(fabric.pkeyctl_arguments(*arguments), trace="bad").expect(1)
        check_equal(madtrace.read(fabric.path("bad")), [], "MADs after bad usage")


def test_no_device():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        data = fabric.pkeyctl("plan", path, "-C", "mlx5_77", "--json").expect(1).json()
        check("host.no-device" in [f["code"] for f in data["findings"]], data["findings"])
        fabric.pkeyctl("check", path, "-C", "mlx5_77").expect(0)


def test_no_permission():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        data = fabric.pkeyctl("plan", path, "--json", trace="denied", MADTRACE_DENIED="1").expect(1).json()
        check_equal([f["code"] for f in data["findings"]], ["host.no-permission"], "findings")


def test_out_of_memory():
    """A policy of 12 MB and too little memory: the error has the requested format."""
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml() + ("#" * 99 + "\n") * 120000)
        fabric.pkeyctl("check", path, "--json").expect(0)
        with open(program("pkeyctl"), "rb") as f:
            sanitized = b"__asan_init" in f.read()
        if sanitized:
            how = {"ASAN_OPTIONS": fabric.environment()["ASAN_OPTIONS"] + ":max_allocation_size_mb=8:allocator_may_return_null=1"}
            limit = []
        else:
            how, limit = {}, ["prlimit", "--data=%d" % (10 << 20)]
        # the allocator of the sanitizer prints a message when it returns NULL
        result = fabric.run(limit + fabric.pkeyctl_arguments("check", path, "--json"), **how).expect(1).json()
        for report in glob.glob(fabric.path("san/*")) if sanitized else []:
            os.remove(report)
        check_equal([f["code"] for f in result["findings"]], ["host.memory"], "findings")


def test_closed_output():
    """Standard output is closed: no port or file gets its descriptor, and the exit status is an error."""
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        for arguments in ("plan", path), ("apply", path, "--yes"):
            result = fabric.run(["sh", "-c", 'exec "$@" >&-', "sh"] + fabric.pkeyctl_arguments(*arguments))
            check("standard output: Bad file descriptor" in result.err, result)
            check(result.status in (1, 2, 3), result)
        fabric.pkeyctl("verify", path).expect(0)


def test_port_that_is_down():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.console('Unlink "node0001"')
        data = fabric.pkeyctl("plan", path, "--json").expect(1).json()
        check({"host.port-down", "host.discovery"} & {f["code"] for f in data["findings"]}, data["findings"])


def test_another_process_writes():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.apply(path).expect(0)
        with open(os.path.join(fabric.path("state"), "lock"), "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.lockf(lock, fcntl.LOCK_EX)
            data = fabric.apply(path, "--json").expect(1).json()
            check("host.busy" in [f["code"] for f in data["findings"]], data["findings"])
        fabric.apply(path).expect(0)


def test_state_directory_that_cannot_be_made():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        arguments = [a if a != fabric.path("state") else fabric.path("no/such/place")
                     for a in fabric.pkeyctl_arguments("apply", path, "--yes", "--json")]
        data = fabric.run(arguments, trace="state").json()
        check("host.state-dir" in [f["code"] for f in data["findings"]], data["findings"])


def test_explain():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.apply(path).expect(0)

        def talk(a, b):
            data = fabric.pkeyctl("explain", a, b, "--policy", path, "--json").json()
            return data

        def verdict(a, b):
            return fabric.pkeyctl("explain", a, b, "--policy", path).out

        full_full, limited_limited = talk("node0001", "node0002"), talk("node0005", "node0006")
        check(full_full["ok"] and "0x8101" in str(full_full), "explain:", full_full)
        check(full_full != limited_limited, limited_limited)
        check("node0005" in verdict("node0005", "node0006"), verdict("node0005", "node0006"))

        common = next(c for c in full_full["pairs"][0]["hardware"]["common"] if c["p_key"] == "0x0101")
        tables = {p.name: p.table for p in fabric.tables().values()}
        check_equal((common["index_a"], common["index_b"]), (tables["node0001"].index(0x8101), tables["node0002"].index(0x8101)), "indexes")
        for words in ("UCX_IB_PKEY=0x0101; NVSHMEM_IB_PKEY_INDEX and NCCL_IB_PKEY=%d on node0001" % common["index_a"],
                      "IPoIB interface that ends in .8101\n"):
            check(words in verdict("node0001", "node0002"), verdict("node0001", "node0002"))
        check("hang" in verdict("node0002", "node0003") and "hang" not in verdict("node0001", "node0002"), "limited members at index 0")

        path = fabric.write("overrides.yaml", Policy().add("a", 0x0101, {"ALL": "full", "node*": "limited", "node0002/mlx5_0": "none"}).yaml())
        text = fabric.pkeyctl("explain", "node0003", "node0002", "--policy", path).out
        check(re.search(r"node0003 \S+: limited in a \(\S+: node\*, overrides \S+: ALL\)", text) and
              re.search(r"node0002 \S+: not in a \(\S+: node0002/mlx5_0, overrides \S+: node\*\)", text), text)
        data = fabric.pkeyctl("explain", "node0003", "node0002", "--policy", path, "--json").json()
        a = next(m for m in data["pairs"][0]["a"]["memberships"] if m["partition"] == "a")
        check_equal((a["overrides"]["selector"], a["overrides"]["membership"]), ("ALL", "full"), "the overridden line")


def test_show():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.apply(path).expect(0)
        ports = fabric.pkeyctl("show", "ports", "--json").expect(0).json()
        check_equal(len(ports["ports"]), 8 + 3, "ports")
        partitions = fabric.pkeyctl("show", "partitions", "--policy", path, "--json").expect(0).json()
        check({"0x0101", "0x0102"} <= set(re.findall(r"0x[0-9a-f]{4}\b", str(partitions))), partitions)
        for name in ("node0008", "0x%016x" % fabric.topology.port_guid("node0008")):
            port = fabric.pkeyctl("show", "port", name, "--policy", path, "--json").expect(0).json()
            check("0x0102" in str(port) and "0x8102" in str(port), port)
        for what in (["ports"], ["partitions", "--policy", path], ["port", "node0008", "--policy", path]):
            check("node0008" in fabric.pkeyctl("show", *what).expect(0).out or what[0] == "partitions", what)


def test_show_other_members():
    """The policy and the tables have as many members, but others."""
    with fabric_of() as fabric:
        fabric.apply(fabric.write("partitions.yaml", Policy().add("a", 0x0101, {"node0001": "full"}).add("b", 0x0102, {}).yaml()))
        path = fabric.write("other.yaml", Policy().add("a", 0x0101, {"node0002": "full"}).add("b", 0x0102, {}).yaml())
        out = fabric.pkeyctl("show", "partitions", "--policy", path).expect(0).out
        check(re.search(r"^a +0x0101 +1/0/0 +1/0/0 differs$", out, re.M) and re.search(r"^b +0x0102 +0/0/0 +0/0/0 equal$", out, re.M), out)
        data = fabric.pkeyctl("show", "partitions", "--policy", path, "--json").expect(0).json()["partitions"]
        check_equal({p["partition"]: p["differs"] for p in data}, {"default": False, "a": True, "b": False}, "what differs")
        data = fabric.pkeyctl("show", "partitions", "--json").expect(0).json()["partitions"]
        check_equal({p["differs"] for p in data}, {None}, "what differs without a policy")


def pairs_that_talk(fabric):
    """Pairs of endports, by name, from the tables in the hardware, one pair after the other."""
    tables = {re.sub("^MF0;|:.*", "", p.name): [k for k in p.table if k & 0x7fff] for p in fabric.tables().values()}
    return {frozenset((a, b)) for a, b in itertools.combinations(tables, 2)
            if any(not (x ^ y) & 0x7fff and (x | y) & 0x8000 for x in tables[a] for y in tables[b])}


def names_of(who):
    return [name for part in split_commas(who) for name in expand_hostlist(part)]


def test_what_a_change_means():
    """plan says who can no longer talk to whom and who now can, as the tables before and after apply show it."""
    with fabric_of() as fabric:
        fabric.apply(fabric.write("partitions.yaml", policy_of().yaml())).expect(0)
        choose, before, n_seen = random.Random(14), pairs_that_talk(fabric), 0
        for _ in range(8):
            policy = Policy()
            policy.add("default", 0x7fff, {"ALL": choose.choice(["full", "limited"])})
            for name, base in (("a", 0x0101), ("b", 0x0102)):
                policy.add(name, base, {"node%04d" % i: choose.choice(["full", "limited", "both", "none"]) for i in range(1, 9)})
            path = fabric.write("partitions.yaml", policy.yaml())
            reach = fabric.pkeyctl("plan", path, "--json").json()["reach"]
            fabric.apply(path).expect(0)
            after, said = pairs_that_talk(fabric), {True: set(), False: set()}
            for line in reach["lines"]:
                for others in line["others"]:
                    found = {frozenset((a, b)) for a in names_of(line["who"]) for b in names_of(others["who"]) if a != b}
                    check(not found & said[others["gained"]], "a pair is in two lines:", reach)
                    said[others["gained"]] |= found
            check_equal((said[False], said[True]), (before - after, after - before), "pairs lost and gained")
            check_equal((reach["pairs_lost"], reach["pairs_gained"]), (len(before - after), len(after - before)), "numbers of pairs")
            n_seen += len(before ^ after)
            before = after
        check(n_seen > 20, n_seen)


def test_matrix():
    with fabric_of() as fabric:
        policy = policy_of()
        policy.groups = {"left": ["node[0001-0003]"], "right": ["node[0003-0006]"], "nobody": ["node9999"]}
        path = fabric.write("partitions.yaml", policy.yaml())
        fabric.apply(path).expect(0)
        data = fabric.pkeyctl("show", "matrix", "--policy", path, "--json").expect(0).json()
        sets = {s["name"]: names_of(s["who"]) for s in data["sets"]}
        check_equal(sets["right"], ["node%04d" % i for i in range(3, 7)], "a group")
        check("nobody" not in sets and ["node0007", "node0008"] in sets.values() and sum("node0004" in s for s in sets.values()) == 1, sets)
        cells = {(c["a"], c["b"]): {p["partition"]: p["all"] for p in c["partitions"]} for c in data["cells"]}
        check_equal(cells["left", "left"], {"a": True, "default": False}, "within a group; node0001 is full in the default partition")
        check_equal(cells["left", "right"], {"a": False, "default": False}, "between groups: node0004 is no member")
        text = fabric.pkeyctl("show", "matrix", "--policy", path).expect(0).out
        check("a*" in text and "only some" in text and "left" in text, text)
        dot = fabric.pkeyctl("show", "matrix", "--policy", path, "--format", "dot").expect(0).out
        check('"left" -- "right" [label="a", style=dashed];' in dot and dot.startswith("graph "), dot)
        refused = fabric.pkeyctl("show", "matrix", "--format", "sh", trace="wrong").expect(1)
        check("accepted: dot, json" in refused.err, refused.err)


def test_matrix_of_many_names():
    """Each row of a set repeats its name, so that is cut; `who` is not."""
    topology, names = two_level(2, 1, 4), ["host-%s" % (letter * 45) for letter in "abcdefgh"]
    topology.hosts = [(h[0], h[1], names[i] + " mlx5_0", *h[3:]) for i, h in enumerate(topology.hosts)]
    with Fabric(topology) as fabric:
        path = fabric.write("partitions.yaml", "version: 1\npartitions: {}\n")
        data = fabric.pkeyctl("show", "matrix", "--policy", path, "--json").expect(0).json()
        [cut] = [s for s in data["sets"] if s["name"].endswith(",...")]
        check(len(cut["name"]) < 320 and set(names_of(cut["who"])) > set(names[1:]), cut)


def test_check_with_a_topology():
    with fabric_of() as fabric:
        topology = fabric.write("topology", fabric.run(["ibnetdiscover"]).expect(0).out)
        policy = policy_of().add("c", 0x0103, {"node0088": "full"})
        path = fabric.write("partitions.yaml", policy.yaml())
        data = fabric.pkeyctl("check", path, "--topology", topology, "--json", trace="check").expect(0).json()
        check("selector.no-match" in [f["code"] for f in data["findings"]], data["findings"])
        check_equal(madtrace.read(fabric.path("check")), [], "MADs of a check")


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_check_fix():
    """Corrections are shown and written after a question; what has none stays. The file keeps its owner, group and mode, and a link
    to it stays."""
    wrong = "version: 1\npartitions:\n  a: {pkey: 0x0101, membrs: {x: Full}} # \u00e4\n"
    right = wrong.replace("membrs", "members").replace("Full", "full")
    with fabric_of() as fabric:
        path, link = fabric.write("partitions.yaml", wrong), fabric.path("link.yaml")
        owner = (65533, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        os.chown(path, *owner)
        os.chmod(path, 0o640)
        os.symlink(path, link)
        (key,) = (f for f in fabric.pkeyctl("check", path, "--json").expect(1).json()["findings"] if f["severity"] == "error")
        check_equal(key["fix"], {"line": 3, "column": 21, "length": 6, "text": "members"}, "fix")
        result = fabric.pkeyctl("check", path, "--fix").expect(1)
        check("--yes" in result.err and "not a terminal" in result.err, result)
        fabric.pkeyctl("check", path, "--yes").expect(1)
        fabric.pkeyctl("check", "-", "--fix", "--yes").expect(1)
        check_equal(text_of(path), wrong, "a file without a confirmation")
        result = fabric.pkeyctl("check", link, "--fix", "--yes").expect(0)
        check("link.yaml:3\n- " + wrong.split("\n")[2] + "\n+ " + right.split("\n")[2] + "\n" in result.out, result)
        check("2 corrections written" in result.out, result)
        check_equal((text_of(path), os.path.islink(link), os.stat(path).st_mode & 0o777), (right, True, 0o640), "the file")
        check_equal((os.stat(path).st_uid, os.stat(path).st_gid), owner, "its owner and group")
        data = fabric.pkeyctl("check", path, "--fix", "--yes", "--json").expect(0).json()
        check_equal((data["ok"], data["fixed"], data["findings"]), (True, 0, []), "nothing to do")
        fabric.write("partitions.yaml", wrong.replace("Full", "Full, y: yes"))
        data = fabric.pkeyctl("check", path, "--fix", "--yes", "--json").expect(1).json()
        check_equal((data["ok"], data["fixed"], [f["code"] for f in data["findings"]]), (False, 2, ["policy.membership"]), "the rest")
        check_equal([f["fix"] for f in data["findings"]], [None], "no correction")
        check_equal(text_of(path), right.replace("full", "full, y: yes"), "the rest of the file")
        fabric.write("partitions.yaml", wrong.replace("Full", "Full, y: yes"))
        result = fabric.pkeyctl("check", path, "--fix", "--yes").expect(1)
        check_equal((result.out + result.err).count("2 corrections written"), 1, "how often it is reported")
        fabric.write("partitions.yaml", wrong)
        check_equal(fabric.pkeyctl("check", path, "--fix", "--yes", "-q").expect(0).out, "", "-q")
        fabric.write("partitions.yaml", right.replace("0x0101,", "0x0101:"))
        (error,) = fabric.pkeyctl("check", path, "--json").expect(1).json()["findings"]
        check_equal((error["code"], error["fix"]), ("yaml.syntax", {"line": 3, "column": 19, "length": 1, "text": ","}), "one character")
        fabric.pkeyctl("check", path, "--fix", "--yes").expect(0)
        check_equal(text_of(path), right, "the file with one character corrected")


def test_check_fix_asks():
    """On a terminal the person decides, and a file that changes meanwhile is not written."""
    wrong = "version: 1\npartitions:\n  a: {pkey: 0x0101, members: {x: Full}}\n"
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", wrong)
        for answer, other, status, left in (("n", "", 1, wrong), ("y", "# x\n", 1, wrong + "# x\n"), ("y", "", 0, wrong.replace("Full", "full"))):
            fabric.write("partitions.yaml", wrong)
            master, terminal = pty.openpty()
            with subprocess.Popen([program("pkeyctl"), "check", "--fix", path], stdin=terminal, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=fabric.environment()) as p:
                shown = b""
                while not shown.endswith(b" [y/N] "):
                    shown += p.stderr.read1()
                with open(path, "a", encoding="utf-8") as f:
                    f.write(other)
                os.write(master, answer.encode() + b"\n")
                _, err = p.communicate()
                check_equal((p.returncode, text_of(path)), (status, left), "answer %s, %r" % (answer, err))
            os.close(master)
            os.close(terminal)
            check(b"Write 1 correction to " in shown, shown)
            check(not other or b"changed meanwhile" in err, err)


def test_output_that_does_not_fit():
    """A file that cannot be written completely is removed, so that the command can be repeated."""
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        conf = fabric.write("partitions.conf", "Default=0x7fff : ALL=limited ;\n" +
                            "".join("p%u=0x%04x : 0x%016x=full ;\n" % (i, i, i) for i in range(1, 1000)))
        for more in ([], ["--json"]):
            full = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh"]
            r = fabric.run([*full, *fabric.pkeyctl_arguments("import", conf, "--output", fabric.path("made.yaml"), *more)]).expect(1)
            check("File too large" in r.err + r.out, r)
            check(not os.path.exists(fabric.path("made.yaml")), "the beginning of the file is left")
        fabric.pkeyctl("import", conf, "--output", fabric.path("made.yaml")).expect(0)
        fabric.pkeyctl("import", conf, "--output", fabric.path("made.yaml")).expect(1)
        check_equal(text_of(fabric.path("made.yaml")), fabric.pkeyctl("import", conf).expect(0).out, "the file, also after an error")


def test_quiet_and_ok():
    """-q prints only errors, and the result of show; "ok" is false if a difference is an error."""
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        conf = fabric.write("partitions.conf", "Default=0x7fff : ALL=limited, SELF=full ;\n")
        policy = ["--policy", path]
        for command, status, ok, shown in (
                (["check", path], 0, True, False), (["plan", path], 2, True, False), (["verify", path], 2, False, False),
                (["explain", "node0005", "node0006", *policy], 0, True, False), (["show", "ports", *policy], 0, True, True),
                (["show", "partitions", *policy], 0, True, True), (["show", "port", "node0005", *policy], 0, True, True),
                (["import", conf], 0, True, True), (["apply", path, "--yes"], 0, True, False)):
            check_equal(bool(fabric.pkeyctl(*command, "-q").expect(status).out), shown, "with -q, text of %s" % command)
            data = fabric.pkeyctl(*command, "--json").expect(status).json()
            check_equal((data["ok"], data["command"]), (ok, command[0]), "ok, command of %s" % command)
        warned = fabric.write("warned.yaml", policy_of().add("c", 0x0103, {"node0088": "full"}).yaml())
        for command, terse in ((["plan", warned], False), (["show", "ports", "--policy", warned], True)):
            for more, expected in (([], not terse), (["-v"], True), (["-q"], False)):
                check_equal("node0088" in fabric.pkeyctl(*command, *more).err, expected, "a warning of %s %s" % (command, more))


def test_command_line_of_pkeyd():
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        files = ["--policy", path, "--config", fabric.settings()]

        def pkeyd(*arguments):
            return fabric.run([program("pkeyd"), *arguments])

        check("--state-dir" in pkeyd("--help").expect(0).out, "--help")
        check(re.fullmatch(r"pkeyd [0-9].*\n", pkeyd("--version").expect(0).out), "--version")
        check("pkeyd.yaml and" in pkeyd("--check", *files).expect(0).out, "--check")
        check("partitions.yaml: no errors" in pkeyd("--check", *files).expect(0).out, "--check")
        check("missing.yaml" in pkeyd("--check", *files, "--config", fabric.path("missing.yaml")).expect(1).err,
              "settings that were named and are not there")
        for arguments, expected in (
                (["--chekc"], "did you mean '--check'?"), (["-P", "255"], "--Port: '255' is not a number from 1 to 254"),
                (["-t", "0"], "--timeout: '0' is not a number from 1 to 60000"), (["-C"], "'-C' needs a value"),
                ([path], "unexpected argument '%s'" % path)):
            result = pkeyd("--check", *files, *arguments).expect(1)
            check(expected in result.err and not result.out, expected, "is not in", result)


def test_command_line_of_pkeyctl():
    """What is derived from the table of commands: help, usage, and which option is for which command."""
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        out = fabric.run([program("pkeyctl"), "--help"]).expect(0).out
        for line in ("  verify     [FILE] ", "      --yes            check --fix, apply, forget, pin, replace, undo: do not ask\n",
                     "  -C, --Ca CA          work through",
                     "      --opensm-config FILE\n                       import, export, doctor: opensm.conf\n",
                     "      --node NAME      violations: only", "      --interval TIME  violations --once: "):
            check(line in out, repr(line), "is not in", out)
        files = re.findall(r"\((/\S+\.yaml)\)", out)
        check_equal(sorted(set(files)), sorted(re.findall(r"\((/\S+\.yaml)\)", fabric.run([program("pkeyd"), "--help"]).out)),
                    "the default files of both programs")
        check("--local [FILE]" not in out and "show ports" not in out, "variants are listed:", out)
        for arguments, expected in (
                (["status", "--topology", path], "--topology is for check, import and export only"),
                (["plan", "--yes"], "--yes is for check --fix, apply, forget, pin, replace and undo only"),
                (["plan", "--once"], "--once is for violations only"),
                (["violations", "--interval", "1s"], "--interval is for violations --once only"),
                (["violations", "--once", "--since", "1h"], "--since and --once exclude each other"),
                (["plan", path, "--policy", path], "two policies were named"), (["export", "opensm", path, "--policy", path], "two policies"),
                (["show", "prots"], "did you mean 'ports'?"), (["export", path], "unknown command 'export %s'" % path),
                (["show", "nosuch"], "hint: usage: pkeyctl show [ports|partitions|matrix|held|vouches|port X]"),
                (["show", "port"], "usage: pkeyctl show port NODE|GUID"), (["show", "held", "x"], "usage: pkeyctl show held\n"),
                (["verify", "--local", path, path], "usage: pkeyctl verify --local [FILE]"), (["plann"], "did you mean 'plan'?"),
                ([], "no command was given")):
            result = fabric.pkeyctl(*arguments).expect(1)
            check(expected in result.err and not result.out, expected, "is not in", result)


def test_many_findings_of_a_kind():
    """Errors, and what is about lines of a file, are all printed."""
    with Fabric(two_level(2, 1, 10), opensm=False) as fabric:
        lines = ["  p%d: {pkey: 0x%04x, members: {ALL_CAS: full}}\n" % (i, 0x0100 + i) for i in range(140)]
        lines += ["  q%d: {pkey: 0x%04x, members: {absent%d: full}}\n" % (i, 0x0300 + i, i) for i in range(20)]
        path = fabric.write("partitions.yaml", "version: 1\npartitions:\n" + "".join(lines))
        err = fabric.pkeyctl("plan", path).expect(1).err
        check_equal([err.count(text) for text in ("matches nothing", "its P_Key table holds", "of this kind")], [20, 20, 0], err)


def test_check_of_opensm_conf():
    """A partition file that OpenSM does not read is an error of --check."""
    with Fabric(two_level(1, 1, 2), opensm=False) as fabric:
        policy, conf, opensm = (fabric.path(name) for name in ("partitions.yaml", "partitions.conf", "opensm.conf"))
        fabric.write("partitions.yaml", policy_of().yaml())
        settings = fabric.write("opensm.yaml", "writer: opensm\nopensm:\n  partitions_conf: %s\n  reload: 'pidfile:/run/opensm.pid'\n"
                                "  config: %s\n" % (conf, opensm))
        command = [program("pkeyd"), "--check", "--config", settings, "--policy", policy]
        for read, status in ((conf, 0), (fabric.path("other.conf"), 1)):
            fabric.write("opensm.conf", "partition_config_file %s\n" % read)
            result = fabric.run(command).expect(status)
            check_equal("partition_config_file is %s" % read in result.err, status == 1, result.err)
        os.remove(opensm)
        check("opensm.conf" in fabric.run(command).expect(1).err, "opensm.conf that is named and not there")


if __name__ == "__main__":
    main()
