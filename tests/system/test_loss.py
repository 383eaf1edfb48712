# SPDX-License-Identifier: GPL-2.0-or-later
"""Lost MADs, a port that never answers, a killed tool: everything possible is carried out, and the rest is reported."""

import signal

import madtrace
from harness import PATIENCE, Fabric, check, check_equal, k_ary, main, two_level
from oracle import Oracle, Policy, differences


def policy_of(n=3):
    policy = Policy()
    for i in range(n):
        policy.add("p%d" % i, 0x0010 + i, {"ALL_CAS": "full" if i % 2 else "limited", "node0003": "both"})
    return policy


def wrong(fabric, policy, tables=None):
    tables = tables or fabric.tables()
    return differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policy), tables)


def test_a_fifth_of_the_mads_vanishes():
    with Fabric(two_level(4, 2, 8)) as fabric:
        fabric.settings("timeout: 100ms\n")
        policy = policy_of()
        path = fabric.write("partitions.yaml", policy.yaml())
        nodes = [h[0] for h in fabric.topology.hosts] + [s[0] for s in fabric.topology.switches]
        for node in nodes:
            fabric.lose(node, 20)
        runs = []
        for i in range(8):
            result = fabric.apply(path, "--json", trace="lossy%d" % i).expect(0, 3)
            runs.append(result.status)
            if result.status == 0:
                break
            # all ports that are not named match the policy
            named = {int(f["port_guid"], 16) for f in result.json()["failed"]}
            held = {int(b, 16) for b in result.json().get("held_back", [])}
            check(named or held or result.json()["unreachable"], "exit 3 and nobody is named:", result)
        mads = [m for i in range(len(runs)) for m in madtrace.read(fabric.path("lossy%d" % i))]
        asked = sum(m.sent and m.attribute == 0x16 for m in mads)
        answered = sum(m.method == madtrace.GET_RESP and m.attribute == 0x16 for m in mads)
        for node in nodes:
            fabric.lose(node, 0)
        print("runs: %s; %d P_Key MADs sent, %d answers" % (runs, asked, answered))
        check(answered < asked * 0.95, "the simulator lost nothing")
        check_equal(runs[-1], 0, "exit status of the last run")
        check_equal(wrong(fabric, policy), [], "tables")


def test_port_that_never_answers():
    """It was read once, and what it holds blocks no other port."""
    with Fabric(two_level(2, 1, 4)) as fabric:
        fabric.settings("timeout: 100ms\n")
        policy = policy_of()
        fabric.apply(fabric.write("first.yaml", Policy().add("first", 0x0666, {"node0001": "full"}).yaml())).expect(0)
        path = fabric.write("partitions.yaml", policy.yaml())
        fabric.lose("node0006", 100)
        guid = fabric.topology.port_guid("node0006")
        result = fabric.apply(path, "--json").expect(3).json()
        check_equal({f["port_guid"] for f in result["failed"]}, {"0x%016x" % guid}, "ports that failed")
        check(all(f["reason"] for f in result["failed"]), "no reason:", result["failed"])
        check("node0006" in fabric.apply(path).expect(3).err + fabric.apply(path).expect(3).out, "node0006 is not named")
        fabric.pkeyctl("verify", path).expect(2, 3)
        fabric.lose("node0006", 0)
        tables = fabric.tables()
        expected = Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policy)
        del expected[guid]
        check_equal(differences(expected, tables), [], "tables of the others")
        fabric.apply(path).expect(0)
        check_equal(wrong(fabric, policy), [], "tables")


def test_many_ports_that_never_answer():
    """The first 16 are named, all of them with -v and in JSON."""
    with Fabric(two_level(2, 1, 10)) as fabric:
        fabric.settings("timeout: 200ms\n")
        path = fabric.write("partitions.yaml", policy_of().yaml())
        silent = ["node%04d" % i for i in range(2, 20)]
        for name in silent:
            fabric.lose(name, 100)
        for options, named, more in (((), 16, 1), (("-v",), 18, 0)):
            err = fabric.pkeyctl("plan", path, *options).err
            check_equal((len([n for n in silent if n in err]), err.count("2 more of this kind (-v lists them)")), (named, more), err)
        check_equal(len(fabric.pkeyctl("plan", path, "--json").json()["unreachable"]), 18, "ports in JSON")


def test_port_that_was_never_read():
    """It may hold anything, so no port that must not talk to it gets a P_Key, until a person vouches for it."""
    with Fabric(two_level(2, 1, 4)) as fabric:
        fabric.settings("timeout: 100ms\n")
        path = fabric.write("partitions.yaml", Policy().add("p", 0x0010, {"node0002": "full", "node0003": "full"}).yaml())
        fabric.lose("node0006", 100)
        result = fabric.apply(path, "--json").expect(3).json()
        check_equal([h["base"] for h in result["held"]], ["0x0010"], "held bases")
        check(not any(0x8010 in (t.table or []) for t in fabric.tables().values()), "somebody was let in")
        fabric.pkeyctl("forget", "node0006", "--yes").expect(0)
        fabric.apply(path).expect(3)
        tables = fabric.tables()
        for name in ("node0002", "node0003"):
            check(0x8010 in tables[fabric.topology.port_guid(name)].keys(), name, "was not let in after forget")


def test_port_that_stops_answering_holds_its_bases_back():
    """A revoke is not confirmed: grants that depend on it are not made."""
    with Fabric(two_level(2, 1, 4)) as fabric:
        fabric.settings("timeout: 100ms\n")
        first = Policy().add("p", 0x0010, {"node0006": "limited", "node0007": "limited"})
        fabric.apply(fabric.write("partitions.yaml", first.yaml())).expect(0)
        guid = fabric.topology.port_guid("node0006")
        # node0006 leaves, node0002 comes in as a full member: the two may never talk
        second = Policy().add("p", 0x0010, {"node0002": "full", "node0007": "limited"}).add("q", 0x0011, {"node0003": "full"})
        fabric.lose("node0006", 100)
        result = fabric.apply(fabric.write("partitions.yaml", second.yaml()), "--json").expect(3).json()
        fabric.lose("node0006", 0)
        tables = fabric.tables()
        check(0x0010 in tables[guid].keys(), "node0006 lost its entry after all?")
        check(0x8010 not in tables[fabric.topology.port_guid("node0002")].keys(),
              "node0002 was let in while node0006 still was:", result)
        check(0x8011 in tables[fabric.topology.port_guid("node0003")].keys(), "the rest did not go on")
        fabric.apply(fabric.path("partitions.yaml")).expect(0)
        check_equal(wrong(fabric, second), [], "tables")


def test_killed_in_the_middle_and_run_again():
    with Fabric(k_ary(4)) as fabric:
        policy, other = policy_of(5), policy_of(2)
        before = fabric.tables()
        for i, n in enumerate((1, 5, 11, 15)):
            wanted = other if i % 2 else policy
            path = fabric.write("partitions.yaml", wanted.yaml())
            process = fabric.start(fabric.pkeyctl_arguments("apply", path, "--yes"), "killed.err", trace="killed%d" % i,
                                   MADTRACE_SIGNAL="%d:%d" % (signal.SIGKILL, n))
            process.wait(timeout=PATIENCE)
            check_equal(process.returncode, -signal.SIGKILL, "how the tool ended in the middle")
            check_equal(len(madtrace.p_key_sets(madtrace.read(fabric.path("killed%d" % i)))) >= n, True, "it had begun")
            fabric.apply(path).expect(0)
            check_equal(wrong(fabric, wanted), [], "tables after the next run")
        check(before, "there was a fabric")


if __name__ == "__main__":
    main()
