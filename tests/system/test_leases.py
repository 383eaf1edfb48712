# SPDX-License-Identifier: GPL-2.0-or-later
"""Leases by pkeyctl and D-Bus: what a caller is told is in the tables, and what ended is in none."""

import json
import os
import re
import signal
import subprocess
import time
from datetime import datetime

from harness import (Daemon, Fabric, PATIENCE, check, check_equal, end, main, program, read_file, two_level, wait_for,
                     wait_sweeps)
from oracle import Policy
from private_bus import Bus, require

SETTINGS = "sweep_interval: 1h\ntimeout: 100ms\n"

POOLS = """pools:
  jobs:
    pkeys: 0x1000-0x1003
    ports: node[0001-0006]
    lease: 2h
    rest: 0s
    allow: [root, nogroup]
  tenants:
    pkeys: 0x2000
    ports: ALL_CAS
    membership: limited
    lease: unlimited
    allow: root
"""


def write_policy(fabric, pools=POOLS):
    policy = Policy().add("storage", 0x0011, {"ALL_CAS": "limited", "node0008": "full"})
    return fabric.write("partitions.yaml", policy.yaml() + pools)


def start(fabric, bus, **more):
    daemon = Daemon(fabric, fabric.path("partitions.yaml"), environment=bus.environment(), **more)
    bus.wait_name()
    return daemon


def serve(fabric, pools=POOLS, settings=""):
    fabric.settings(SETTINGS + settings)
    write_policy(fabric, pools)
    bus = Bus(fabric)
    return bus, start(fabric, bus)


def stop(daemon):
    check_equal(daemon.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + daemon.text())


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()


def lease(fabric, bus, *arguments, **how):
    return fabric.pkeyctl("lease", *arguments, **bus.environment(), **how)


def create(fabric, bus, id_="job1", members="node[0001-0002]", pool="jobs", more=(), **how):
    return lease(fabric, bus, "create", "--pool", pool, "--id", id_, "--members", members, *more, **how)


def fabric_of():
    require()
    return Fabric(two_level(2, 2, 4))


def holders(fabric, base):
    """{name: (index, key)} of the endports that have the base, by the independent reader."""
    return {p.name: (i, key) for p in fabric.tables().values() for i, key in enumerate(p.table or []) if key & 0x7FFF == base}


def check_members(fabric, result, wanted):
    """The answer names these ports, each with the entry that its table has."""
    found = holders(fabric, int(result["lease"]["pkey"], 16))
    guids = {p.name: p for p in fabric.tables().values()}
    check_equal(sorted(found), sorted(wanted), "ports with the P_Key")
    check_equal(sorted(m["name"].split()[0] for m in result["lease"]["members"] if m["state"] == "confirmed"), sorted(wanted), "members")
    for m in result["lease"]["members"]:
        name = m["name"].split()[0]
        if m["state"] == "confirmed":
            check_equal((m["index"], int(m["key"], 16)), found[name], "index and key of " + name)
        check_equal((int(m["port_guid"], 16), int(m["node_guid"], 16)), (guids[name].guid, guids[name].node), "GUIDs of " + name)


def refused(r, code, *words):
    """The answer to a request in JSON has this finding."""
    found = r.expect(1).json()
    check_equal(found["ok"], False, r)
    check_equal([f["code"] for f in found["findings"] if f["severity"] == "error"], [code], r)
    for word in words:
        check(word in found["findings"][0]["text"], word, "is not in:", r)


def list_ids(fabric, bus):
    return {x["id"]: x["state"] for x in lease(fabric, bus, "list", "--json").expect(0).json()["leases"]}


# --- what a caller can do -------------------------------------------------------------------------------------------------


def test_life():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        check_equal(lease(fabric, bus, "list").expect(0).out, "there are no leases\n", "lease list")
        r = create(fabric, bus, more=["--json"]).expect(0).json()
        check_equal((r["outcome"], r["ok"], r["command"]), ("granted", True, "lease"), r)
        check_equal({k: r["lease"][k] for k in ("id", "pool", "state", "pkey", "membership", "owner", "why", "selectors", "members_total")},
                    {"id": "job1", "pool": "jobs", "state": "active", "pkey": "0x1000", "membership": "full", "owner": "root", "why": None,
                     "selectors": "node[0001-0002]", "members_total": 2}, "the lease")
        check(r["lease"]["created"] < r["lease"]["ends"], r)
        check_members(fabric, r, ["node0001", "node0002"])
        # the same again is the same lease; the text names every member
        again = create(fabric, bus).expect(0)
        check("lease job1 is granted: P_Key 0x1000, 2 ports" in again.out and "node0002" in again.out and "0x9000" in again.out, again)
        refused(create(fabric, bus, members="node0003", more=["--json"]), "lease.exists", "with other arguments")
        # limited members, a chosen P_Key, no end
        other = create(fabric, bus, "job2", "node0003", more=["--pkey", "0x1002", "--membership", "limited", "--json"]).expect(0).json()
        check_equal((other["lease"]["pkey"], other["lease"]["members"][0]["key"]), ("0x1002", "0x1002"), other)
        check_members(fabric, other, ["node0003"])
        tenant = create(fabric, bus, "tenant@a:1", "node0008", "tenants", more=["--for", "unlimited", "--json"]).expect(0).json()
        check_equal((tenant["lease"]["ends"], tenant["lease"]["membership"]), (None, "limited"), tenant)
        check_equal(list_ids(fabric, bus), {"job1": "active", "job2": "active", "tenant@a:1": "active"}, "lease list")
        text = lease(fabric, bus, "list").expect(0).out
        check("tenant@a:1" in text and "2/2" in text and "never" in text, text)
        shown = lease(fabric, bus, "show", "job1", "--json").expect(0).json()
        check_equal(shown["lease"], r["lease"], "lease show")
        text = lease(fabric, bus, "show", "tenant@a:1").expect(0).out
        check("when it is released" in text and "node0008" in text, text)
        # released
        check_equal(lease(fabric, bus, "release", "job1").expect(0).out, "lease job1 is released: no port has 0x1000 any more\n", "release")
        check_equal(holders(fabric, 0x1000), {}, "ports with the P_Key after the release")
        check_equal(sorted(list_ids(fabric, bus)), ["job2", "tenant@a:1"], "lease list after the release")
        for command in (["show"], ["release"]):
            refused(lease(fabric, bus, *command, "job1", "--json"), "lease.none", "there is no lease job1")
        # without rest the P_Key is free at once
        check_equal(create(fabric, bus, "job3", more=["--json"]).expect(0).json()["lease"]["pkey"], "0x1000", "the next P_Key")
        stop(daemon)


def test_end_and_renewal():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        create(fabric, bus, "short", more=["--for", "5s"]).expect(0)
        first = create(fabric, bus, "long", "node0003", more=["--for", "15s", "--json"]).expect(0).json()["lease"]
        r = lease(fabric, bus, "renew", "long", "--for", "1h", "--json").expect(0).json()
        check_equal((r["outcome"], r["lease"]["state"]), ("renewed", "active"), r)
        wait_for(lambda: "short" not in list_ids(fabric, bus), "the lease to end")
        check_equal(holders(fabric, 0x1000), {}, "ports with the P_Key after the end")
        daemon.wait_text("lease short: it has expired")
        ends = datetime.fromisoformat(first["ends"].replace("Z", "+00:00")).timestamp()
        wait_for(lambda: time.time() > ends + 1, "the time of the lease before it was renewed")
        check_equal((sorted(list_ids(fabric, bus)), list(holders(fabric, 0x1001))), (["long"], ["node0003"]), "the renewed lease")
        refused(lease(fabric, bus, "renew", "long", "--for", "3h", "--json"), "lease.duration", "up to 2h, not")
        refused(lease(fabric, bus, "renew", "short", "--for", "1h", "--json"), "lease.none")
        # sooner than before
        lease(fabric, bus, "renew", "long", "--for", "1s").expect(0)
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        stop(daemon)


def test_refused():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        json_ = ["--json"]
        refused(create(fabric, bus, pool="job", more=json_), "lease.pool", "no pool 'job'", "jobs, tenants")
        refused(create(fabric, bus, members="node[0006-0008]", more=json_), "lease.ports", "node0007", "1 other")
        refused(create(fabric, bus, members="node0001,node9999", more=json_), "selector.no-match", "node9999")
        refused(create(fabric, bus, members="node[0001", more=json_), "policy.hostlist")
        refused(create(fabric, bus, more=["--pkey", "0x1004", *json_]), "lease.p-key", "0x1004 is not in pool jobs")
        refused(create(fabric, bus, more=["--for", "3h", *json_]), "lease.duration", "up to 2h, not")
        refused(create(fabric, bus, more=["--timeout", "2h", *json_]), "lease.duration", "3600 s")
        refused(create(fabric, bus, "job 1", more=json_), "lease.id", "'job 1' is not the ID of a lease")
        refused(create(fabric, bus, "x" * 129, more=json_), "lease.id", "longer than 128")
        for i in range(4):
            create(fabric, bus, "job%d" % i, "node0001").expect(0)
        refused(create(fabric, bus, "job4", "node0001", more=json_), "lease.p-key", "no free P_Key")
        refused(create(fabric, bus, "job4", more=["--pkey", "0x1001", *json_]), "lease.p-key", "lease job1 has it")
        # the P_Key of a pool with a rest
        create(fabric, bus, "tenant", "node0008", "tenants").expect(0)
        lease(fabric, bus, "release", "tenant").expect(0)
        refused(create(fabric, bus, "tenant", "node0008", "tenants", more=["--pkey", "0x2000", *json_]), "lease.p-key", "its last lease ended recently")
        check_equal(holders(fabric, 0x2000), {}, "ports with a P_Key that rests")
        # what is wrong is said without pkeyd
        for arguments, words in ((["--pkey", "0x9001"], "has the high bit set (accepted: 0x1001)"), (["--pkey", "4097"], "0x0001 to 0x7fff"),
                                 (["--membership", "both"], "accepted: full, limited"), (["--for", "0s"], "--for: '0s' is not a time"),
                                 (["--timeout", "50"], "this command takes a time with a unit"),
                                 (["--timeout", "500ms"], "lease create: like 90s, 10m"), (["--timeout", "0s"], "like 90s, 10m")):
            r = create(fabric, bus, more=arguments).expect(1)
            check(words in r.err, r)
        r = lease(fabric, bus, "create").expect(1)
        check(all("--%s is missing" % o in r.err for o in ("pool", "id", "members")), r)
        check("--for is missing" in lease(fabric, bus, "renew", "job1").expect(1).err)
        check("takes milliseconds" in fabric.pkeyctl("plan", "--timeout", "9s").expect(1).err)
        stop(daemon)
        r = lease(fabric, bus, "list").expect(1)
        check("pkeyd is not running" in r.err, r)


def test_other_users():
    """Everybody may read; `allow` names who may lease, as users or as groups."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, POOLS.replace("allow: root", "allow: nobody"))
        create(fabric, bus, "mine").expect(0)
        r = bus.pkeyctl_as("nobody", "lease", "create", "--pool", "jobs", "--id", "theirs", "--members", "node0003", "--json")
        check_equal((r.returncode, json.loads(r.stdout)["lease"]["owner"]), (0, "nobody"), "a user of an allowed group: " + r.stderr)
        check_equal(bus.pkeyctl_as("nobody", "lease", "release", "theirs").returncode, 0, "release by a user of an allowed group")
        r = bus.pkeyctl_as("nobody", "lease", "list", "--json")
        check_equal([x["id"] for x in json.loads(r.stdout)["leases"]], ["mine"], "lease list by another user")
        # root is not in the list of tenants
        refused(create(fabric, bus, "tenant", "node0008", "tenants", more=["--json"]), "lease.access", "user root (uid 0) may not use pool tenants")
        write_policy(fabric, POOLS.replace("[root, nogroup]", "root"))
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        for command in (["release", "mine"], ["renew", "mine", "--for", "1h"],
                        ["create", "--pool", "jobs", "--id", "mine", "--members", "node[0001-0002]"]):
            r = bus.pkeyctl_as("nobody", "lease", *command)
            check(r.returncode == 1 and "user nobody (uid 65534) may not use pool jobs (allowed: root)" in r.stderr, command, r)
        check_equal(sorted(holders(fabric, 0x1000)), ["node0001", "node0002"], "members after refused requests")
        r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "ReloadWith", "a{sv}", "1", "ReleaseStranded", "b", "true",
                       user="nobody")
        check(r.returncode != 0, "ReloadWith by nobody:", r.stdout)
        stop(daemon)


def call(bus, member, *arguments, user=None):
    return bus.busctl("--json=short", "--timeout=%d" % PATIENCE, "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1.Leases", member, *arguments,
                      user=user)


def test_hostile_arguments():
    """Texts on the bus are of any length, and have any characters."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)

        def request(pool="jobs", id_="job1", members="node0001", key="0", membership="", seconds="0", timeout="0", partial="false"):
            return call(bus, "Create", "sssqsttb", pool, id_, members, key, membership, seconds, timeout, partial)

        for how, words in (({"membership": "both"}, "membership: is not a membership"), ({"key": "36864"}, "without its high bit"),
                           ({"members": "node0001,\x1b[31mred"}, "control character"), ({"pool": "x\x7f"}, "control character"),
                           ({"id_": "\u0085"}, "control character"), ({"pool": "x" * 100000 + "y" * 100001}, "longer than 200000 bytes")):
            if len(how.get("pool", "")) > 130000:
                continue  # more than one argument of a program can be
            r = request(**how)
            check(r.returncode != 0 and words in r.stderr, how, r.stderr)
        groups = [part for _ in range(4) for part in ("x" * 100000, "full", "false")]  # of which each is short enough
        r = call(bus, "EditWith", "sssqa(ssb)a{sv}", "jobs", "job1", "add", "0", "4", *groups, "0")
        check(r.returncode != 0 and "members: longer than" in r.stderr, r.stderr)
        for how in ({"pool": "p\u00e4ol"}, {"id_": "\u00fc"}, {"id_": ""}, {"members": ""}, {"members": "x" * 100000}, {"members": "," * 1000},
                    {"seconds": str(2 ** 64 - 2)}, {"timeout": str(2 ** 64 - 1)}):
            r = request(**how)
            check(r.returncode == 0, how, r.stderr)
            check_equal(json.loads(r.stdout)["data"][0], "refused", "outcome of %r" % how)
        # more seconds than a clock has, where the pool has no limit
        r = request(pool="tenants", id_="forever", members="node0008", seconds=str(2 ** 64 - 2))
        check(r.returncode == 0 and json.loads(r.stdout)["data"][0] == "refused", r.stdout, r.stderr)
        check(call(bus, "Show", "s", "\u00fc").returncode != 0, "Show without a lease")
        check("Error.NoSuchLease" in call(bus, "Show", "s", "x").stderr or "no lease x" in call(bus, "Show", "s", "x").stderr, "Show")
        check_equal(json.loads(call(bus, "List").stdout)["data"], [[]], "List")
        for options in (["1", "Other", "b", "true"], ["1", "Confirm", "t", "0"], ["1", "Confirm", "b", "true"]):
            r = bus.busctl("call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1", "ReloadWith", "a{sv}", *options)
            check(r.returncode != 0, "ReloadWith", options, r.stdout)
        stop(daemon)


# --- restarts -------------------------------------------------------------------------------------------------------------


def test_restarts():
    """Leases outlive pkeyd; those whose time is over meanwhile are released."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        before = create(fabric, bus, more=["--json"]).expect(0).json()
        create(fabric, bus, "short", "node0003", more=["--for", "3s"]).expect(0)
        kill(daemon)
        daemon = start(fabric, bus)
        check_equal(lease(fabric, bus, "show", "job1", "--json").expect(0).json()["lease"], before["lease"], "the lease after a restart")
        check_members(fabric, before, ["node0001", "node0002"])
        check_equal(create(fabric, bus, more=["--json"]).expect(0).json()["lease"], before["lease"], "the same request after a restart")
        stop(daemon)
        check_equal(sorted(holders(fabric, 0x1000)), ["node0001", "node0002"], "members while pkeyd does not run")
        time.sleep(3)
        daemon = start(fabric, bus)
        wait_for(lambda: list_ids(fabric, bus) == {"job1": "active"}, "the other lease to end")
        wait_for(lambda: not holders(fabric, 0x1001), "its P_Key to be revoked")
        lease(fabric, bus, "release", "job1").expect(0)
        kill(daemon)
        daemon = start(fabric, bus)
        check_equal((list_ids(fabric, bus), holders(fabric, 0x1000)), ({}, {}), "a released lease after a restart")
        stop(daemon)


def start_create(fabric, bus, *arguments, log="create.log"):
    return fabric.start(fabric.pkeyctl_arguments("lease", "create", *arguments), log, **bus.environment())


def test_killed_while_granting():
    """The caller repeats its request, and gets the lease."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        fabric.lose("node0002", 100)
        arguments = ["--pool", "jobs", "--id", "job1", "--members", "node[0001-0002]", "--timeout", "60s"]
        child = start_create(fabric, bus, *arguments)
        wait_for(lambda: list_ids(fabric, bus) == {"job1": "granting"}, "pkeyd to write the tables")
        kill(daemon)
        check_equal(child.wait(timeout=PATIENCE), 1, "exit status of a caller whose pkeyd was killed")
        fabric.lose("node0002", 0)
        daemon = start(fabric, bus)
        r = lease(fabric, bus, "create", *arguments, "--json").expect(0).json()
        check_members(fabric, r, ["node0001", "node0002"])
        stop(daemon)


# --- ports that do not answer ---------------------------------------------------------------------------------------------


def test_mute():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        fabric.lose("node0002", 100)
        r = create(fabric, bus, members="node[0001-0003]", more=["--timeout", "5s", "--json"]).expect(3).json()
        check_equal((r["outcome"], r["ok"]), ("failed", False), r)
        check("node0002" in r["text"] and "1 of 3 ports could not be confirmed in 5 s" in r["text"], r)
        check_equal(holders(fabric, 0x1000), {}, "ports that answer with the P_Key of a lease that failed")
        fabric.lose("node0002", 0)
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        check_equal(holders(fabric, 0x1000), {}, "ports with the P_Key, all of which answer")
        stop(daemon)


def test_partial():
    """Also if the time is over before the tries to write that one table: then they decide."""
    for timeout in ("5s", "1s"):
        check_partial(timeout)


def check_partial(timeout):
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        fabric.lose("node0002", 100)
        r = create(fabric, bus, members="node[0001-0003]", more=["--timeout", timeout, "--partial", "--json"]).expect(3).json()
        check_equal((r["outcome"], r["lease"]["state"]), ("partial", "active"), r)
        check_equal({m["name"].split()[0]: m["state"] for m in r["lease"]["members"]},
                    {"node0001": "confirmed", "node0002": "left-out", "node0003": "confirmed"}, "members")
        check_equal(sorted(holders(fabric, 0x1000)), ["node0001", "node0003"], "ports that answer with the P_Key")
        fabric.lose("node0002", 0)
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        wait_for(lambda: sorted(holders(fabric, 0x1000)) == ["node0001", "node0003"], "the port that was left out to lose the P_Key")
        stop(daemon)


def test_explain():
    """A lease has no line and is of no generation."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        create(fabric, bus).expect(0)
        out = fabric.pkeyctl("explain", "node0001", "node0002", "--policy", fabric.path("partitions.yaml"), **bus.environment()).expect(0).out
        check("full in lease-0x1000 (lease: job1)" in out and "since generation 1" in out, out)
        stop(daemon)


def test_callers():
    """Too many for one lease, and one that leaves before it has the answer."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        fabric.lose("node0002", 100)
        arguments = ["--pool", "jobs", "--id", "job1", "--members", "node[0001-0002]", "--timeout", "300s", "--json"]
        children = [start_create(fabric, bus, *arguments, log="create-%d.log" % i) for i in range(17)]
        wait_for(lambda: any(c.poll() is not None for c in children), "one of 17 callers to be refused")
        late = [i for i, c in enumerate(children) if c.poll() is not None]
        r = json.loads(open(fabric.path("create-%d.log" % late[0])).read())
        check_equal((len(late), [f["code"] for f in r["findings"]]), (1, ["lease.not-now"]), "callers that were refused")
        check("16 callers already wait for lease job1" in r["findings"][0]["text"], r)
        waiting = [c for i, c in enumerate(children) if i not in late]
        end(waiting.pop())
        fabric.lose("node0002", 0)
        fabric.pkeyctl("reload", **bus.environment()).expect(0, 3)
        check_equal([c.wait(timeout=2 * PATIENCE) for c in waiting], [0] * 15, "exit statuses of the others")
        check_equal(sorted(holders(fabric, 0x1000)), ["node0001", "node0002"], "ports with the P_Key")
        stop(daemon)


def one_too_many(fabric, bus, n, words, user=None):
    """n callers ask for leases of a mute host, and one of them is refused with these words. Returns the others."""
    children = [subprocess.Popen(["busctl", "--address=" + bus.address, "--json=short", "--timeout=300", "call", "org.pkeyd1",
                                  "/org/pkeyd1", "org.pkeyd1.Leases", "Create", "sssqsttb", "jobs", "job%d" % (i // 13), "node0002",
                                  "0", "", "0", "300", "false"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 user=user) for i in range(n)]
    fabric.children += children
    wait_for(lambda: any(c.poll() is not None for c in children), "one of %d callers to be refused" % n)
    late = [c for c in children if c.poll() is not None]
    check_equal((len(late), late[0].returncode), (1, 1), "callers that were refused")
    check(words in late[0].stderr.read(), "the error")
    return [c for c in children if c not in late]


def test_too_many_callers():
    """65 of different leases: pkeyd keeps 64 of them, and answers each."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, POOLS.replace("0x1000-0x1003", "0x1000-0x1004"))
        fabric.lose("node0002", 100)
        children = one_too_many(fabric, bus, 65, b"64 callers already wait for leases")
        fabric.lose("node0002", 0)
        fabric.pkeyctl("reload", **bus.environment()).expect(0, 3)
        outcomes = [json.loads(c.communicate(timeout=2 * PATIENCE)[0])["data"][0] for c in children]
        check_equal(outcomes, ["granted"] * 64, "outcomes of the others")
        stop(daemon)


def test_groups_that_hang():
    """A directory service that hangs stops nobody whom `allow` names: the groups of such a caller are not looked up."""
    with fabric_of() as fabric:
        fabric.settings(SETTINGS)
        write_policy(fabric, POOLS.replace("allow: root", "allow: nobody"))
        bus = Bus(fabric)
        os.mkfifo(fabric.path("group"))  # to open it takes for ever
        wrapper = fabric.write("wrapper", "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind %s /etc/group && exec \"$@\"' sh %s \"$@\"\n" %
                               (fabric.path("group"), program("pkeyd")))
        os.chmod(wrapper, 0o755)
        daemon = start(fabric, bus, name=wrapper)
        for pool, user in (("jobs", None), ("tenants", "nobody")):
            r = call(bus, "Create", "sssqsttb", pool, pool, "node0001", "0", "", "0", "0", "false", user=user)
            check_equal(json.loads(r.stdout)["data"][0], "granted", r.stderr)
            check_equal(json.loads(call(bus, "Renew", "st", pool, "60", user=user).stdout)["data"][0], "renewed", "renewal")
        stop(daemon)


def test_share_of_a_user():
    """One user takes half of the places, and leaves the others to all."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, POOLS.replace("0x1000-0x1003", "0x1000-0x1004"))
        fabric.lose("node0002", 100)
        children = one_too_many(fabric, bus, 33, b"32 callers of uid 65534 already wait for leases", user="nobody")
        for child in children:
            end(child)  # who left the bus still has its place
        create(fabric, bus, id_="mine", members="node0001").expect(0)
        r = call(bus, "Renew", "st", "job0", "60", user="nobody")
        check(r.returncode != 0 and "of uid 65534" in r.stderr, r.stdout, r.stderr)
        stop(daemon)


def check_held(fabric, bus, of_reply, id_, muted, released):
    """The lease names the members that may still have its P_Key, why, and the way out; the others have lost it."""
    seen = lease(fabric, bus, "show", id_, "--json").expect(0).json()["lease"]
    text = lease(fabric, bus, "show", id_).expect(0).out
    guid = {m["name"].split()[0]: m["port_guid"] for m in seen["members"]}
    check_equal(of_reply["held"], seen["held"], "what the reply says")
    check_equal({m["name"].split()[0]: (m["state"], m["index"]) for m in seen["members"]},
                {**{n: ("may-hold", None) for n in muted}, **{n: ("released", None) for n in released}}, "members")
    check_equal(seen["members_confirmed"], 0, "members that are confirmed")
    for name in muted:
        check("%s mlx5_0/1 (%s) has not answered" % (name, guid[name]) in seen["held"], seen["held"])
        check(guid[name] in seen["held"].split("pkeyctl forget ")[1], seen["held"])
    check(not any(name in seen["held"] for name in released), seen["held"])
    check("  held          %s\n" % seen["held"] in text and "may-hold" in text and "confirmed" not in text, text)
    check("Held" not in values(next(x for x in json.loads(call(bus, "ListWhole", "s", "").stdout)["data"][0] if x["Id"]["data"] == id_)),
          "ListWhole")


def test_release_from_mute():
    """A port that does not answer may hold the P_Key, so nobody else gets it."""
    with fabric_of() as fabric:
        metrics = fabric.path("pkeyd.prom")
        bus, daemon = serve(fabric, settings="metrics: {textfile: %s}\n" % metrics)
        create(fabric, bus).expect(0)
        fabric.lose("node0002", 100)
        r = lease(fabric, bus, "release", "job1", "--json").expect(3).json()
        check_equal((r["outcome"], r["lease"]["state"], r["lease"]["why"]), ("releasing", "releasing", "released by root"), r)
        check_equal(holders(fabric, 0x1000), {}, "ports that answer with the P_Key")
        check_held(fabric, bus, r["lease"], "job1", ["node0002"], ["node0001"])
        refused(create(fabric, bus, more=["--json"]), "lease.exists", "is being released")
        refused(create(fabric, bus, "job2", "node0003", more=["--pkey", "0x1000", "--json"]), "lease.p-key", "lease job1 has it (releasing)")
        check("may still hold P_Key 0x1000" in daemon.text(), daemon.text())
        create(fabric, bus, "job2", "node0003").expect(0)
        r = fabric.pkeyctl("status", "--json", **bus.environment()).json()
        check_equal((r["leases"], r["leases_releasing"]), (2, 1), "leases in the status")
        status = fabric.pkeyctl("status", **bus.environment()).out
        check("leases        2 leases, 1 of them is being released; pkeyctl lease list" in status, status)
        wait_for(lambda: {"pkeyd_leases{state=\"active\"} 1", "pkeyd_leases{state=\"releasing\"} 1"} <= set(read_file(metrics).splitlines()),
                 "the metrics to have the leases")
        lease(fabric, bus, "release", "job2").expect(0)
        fabric.lose("node0002", 0)
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        check_equal(holders(fabric, 0x1000), {}, "ports with the P_Key")
        stop(daemon)


def test_release_from_mute_is_no_drift():
    """A port that answers again after its lease was released holds what pkeyd wrote: no other program changed it."""
    with fabric_of() as fabric:
        fabric.settings("sweep_interval: 1s\ntimeout: 50ms\nabsent_hold: 1h\n")
        write_policy(fabric)
        bus = Bus(fabric)
        daemon = start(fabric, bus)
        create(fabric, bus).expect(0)
        wait_sweeps(fabric, 2)
        fabric.lose("node0002", 100)
        lease(fabric, bus, "release", "job1", "--json", seconds=90).expect(3)
        wait_sweeps(fabric, 2)
        fabric.lose("node0002", 0)
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        wait_sweeps(fabric, 2)
        check_equal(holders(fabric, 0x1000), {}, "ports with the P_Key")
        check("another program changed" not in daemon.text(), daemon.text())
        stop(daemon)


# --- open leases ----------------------------------------------------------------------------------------------------------


def edit(fabric, bus, *arguments, pool="tenants", **how):
    return lease(fabric, bus, "edit", "net", "--pool", pool, *arguments, "--json", **how)


def members(fabric, bus):
    """{name: state} of the members."""
    r = lease(fabric, bus, "show", "net", "--json").expect(0).json()["lease"]
    return {m["name"].split()[0]: m["state"] for m in r["members"]}


def wait_members(fabric, bus, wanted):
    """A member that is removed is not shown any more, before pkeyd writes its table."""
    confirmed = sorted(n for n, state in wanted.items() if state == "confirmed")
    wait_for(lambda: members(fabric, bus) == wanted, lambda: "members %s, not %s" % (wanted, members(fabric, bus)))
    wait_for(lambda: sorted(holders(fabric, 0x2000)) == confirmed, "%s to have the P_Key" % confirmed)


def test_open():
    """Members come and go; who is mute, or not in the fabric, gets the P_Key when it is there."""
    nobody = "0x000a0b0c0d0e0f01"
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        r = edit(fabric, bus, "--add", "node[0001-0002], " + nobody).expect(0).json()
        check_equal((r["outcome"], r["lease"]["open"], r["lease"]["pkey"], r["lease"]["members_total"]), ("edited", True, "0x2000", 3), r)
        wait_members(fabric, bus, {"node0001": "confirmed", "node0002": "confirmed", nobody: "unseen"})
        edit(fabric, bus, "--remove", "node0001").expect(0)
        wait_members(fabric, bus, {"node0002": "confirmed", nobody: "unseen"})
        edit(fabric, bus, "--set", "node[0003-0004]").expect(0)
        wait_members(fabric, bus, {"node0003": "confirmed", "node0004": "confirmed"})
        fabric.lose("node0005", 100)
        edit(fabric, bus, "--add", "node0005").expect(0)
        check_equal(members(fabric, bus)["node0005"], "waits", "a mute member")
        kill(daemon)
        fabric.lose("node0005", 0)
        daemon = start(fabric, bus)
        wait_members(fabric, bus, {"node0003": "confirmed", "node0004": "confirmed", "node0005": "confirmed"})
        for arguments, code, words in ((["--add", "node0006", "--pkey", "0x2001"], "lease.exists", "has P_Key 0x2000"),
                                       (["--add", "nowhere"], "selector.no-match", "nowhere"), (["--add", "node0001", "--set", "node0001"], "usage", "one of")):
            refused(edit(fabric, bus, *arguments), code, words)
        refused(edit(fabric, bus, "--add", "node0001", pool="jobs"), "lease.exists", "of pool tenants")
        refused(edit(fabric, bus, "--add", "node0001", "--index0"), "lease.index0", "pool tenants")
        refused(edit(fabric, bus, "--remove", "node0001", "--index0"), "usage", "--index0 is for members that are added")
        r = call(bus, "Edit", "sssqss", "tenants", "net", "set", "0", "", "")
        check_equal(json.loads(r.stdout)["data"][0], "edited", r.stderr)
        wait_members(fabric, bus, {})
        check_equal(list_ids(fabric, bus), {"net": "active"}, "an open lease without members")
        lease(fabric, bus, "release", "net").expect(0)
        check_equal(list_ids(fabric, bus), {}, "leases")
        stop(daemon)


# --- what clients of the REST API use -------------------------------------------------------------------------------------

REST_POOLS = """pools:
  rest:
    pkeys: 0x2000-0x2003
    ports: node[0001-0006]
    lease: unlimited
    rest: 0s
    index0: true
    allow: "rest:nico"
  shared:
    pkeys: 0x3000
    ports: ALL_CAS
    rest: 2s
    allow: [root, "rest:nico"]
"""


def options(**values):
    """a{sv} as arguments of busctl; each value is (type, value)."""
    return [str(len(values))] + [x for key, (kind, value) in values.items() for x in (key, kind, str(value))]


def edit_with(bus, id_, what, groups=(), key=0, pool="rest", user=None, **more):
    """The reply of EditWith: a list, or the text of an error. groups: (selectors, membership, index 0)."""
    flat = [str(len(groups))] + [x for selectors, membership, index0 in groups for x in (selectors, membership, str(index0).lower())]
    r = call(bus, "EditWith", "sssqa(ssb)a{sv}", pool, id_, what, str(key), *flat, *options(**more), user=user)
    return json.loads(r.stdout)["data"] if r.returncode == 0 else r.stderr


def nico(**more):
    return {"Client": ("s", "nico"), **more}


def values(dictionary):
    return {key: x["data"] for key, x in dictionary.items()}


def show(bus, id_):
    return values(json.loads(call(bus, "Show", "s", id_).stdout)["data"][0])


def edited(reply):
    check(not isinstance(reply, str), reply)
    check_equal((reply[0], reply[3]), ("edited", []), reply)
    return values(reply[2])


def refused_with(reply, code, *words):
    check(not isinstance(reply, str), reply)
    check_equal((reply[0], [f[4] for f in reply[3]]), ("refused", [code]), reply)
    check(all(word in reply[3][0][5] for word in words), words, reply)


def test_groups_and_options():
    """One edit with members of both memberships, at index 0 or not, and what is said of the partition."""
    nobody = "0x000a0b0c0d0e0f01"
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, REST_POOLS)
        guid = {p.name: p.guid for p in fabric.tables().values()}
        x = edited(edit_with(bus, "rest:0x2001", "add", [("node0001", "full", True), ("node0002, " + nobody, "limited", False)], 0x2001,
                             **nico(IpOverIb=("b", "true"), Mtu=("y", 4), ServiceLevel=("y", 3), RateLimit=("q", 25))))
        check_equal({k: x[k] for k in ("PKey", "Open", "IpOverIb", "Keep", "Mtu", "ServiceLevel", "RateLimit", "Index0", "Owner", "NMembers", "Ends")},
                    {"PKey": 0x2001, "Open": True, "IpOverIb": True, "Keep": True, "Mtu": 4, "ServiceLevel": 3, "RateLimit": 25,
                     "Index0": [guid["node0001"]], "Owner": "rest:nico", "NMembers": 3, "Ends": 0}, "the lease")
        check_equal(x["Updated"], x["Created"], "a lease that was not changed")
        wait_for(lambda: {n: (i if n == "node0001" else None, k) for n, (i, k) in holders(fabric, 0x2001).items()} ==
                 {"node0001": (0, 0xA001), "node0002": (None, 0x2001)}, "the members to have the P_Key")
        # what is not named stays
        time.sleep(1.1)
        y = edited(edit_with(bus, "rest:0x2001", "add", [("node0003", "", False)], **nico()))
        check(y["Updated"] > x["Updated"] and y["Created"] == x["Created"], x, y)
        check_equal((y["Mtu"], y["IpOverIb"], y["NMembers"]), (4, True, 4), "options that were not named")
        check("IPoIB         yes" in lease(fabric, bus, "show", "rest:0x2001").expect(0).out, "lease show")
        z = edited(edit_with(bus, "rest:0x2001", "add", **nico(IpOverIb=("b", "false"), Exists=("b", "true"))))
        check_equal((z["IpOverIb"], z["Mtu"]), (False, 4), "an edit of options only")
        check("Mtu" not in edited(edit_with(bus, "plain", "add", **nico())), "a lease without QoS")
        # index 0 of a port belongs to one lease
        refused_with(edit_with(bus, "rest:0x2002", "add", [("node0001", "full", True)], 0x2002, **nico()), "lease.index0-taken", "rest:0x2001", "node0001")
        refused_with(edit_with(bus, "other", "add", [("node0005", "full", True)], pool="shared"), "lease.index0", "pool shared")
        refused_with(edit_with(bus, "rest:0x2002", "add", [("node0005", "full", False), ("node[0004-0005]", "limited", False)], **nico()),
                     "lease.membership", "node0005")
        refused_with(edit_with(bus, "rest:0x2002", "add", **nico(Exists=("b", "true"))), "lease.none")
        seen = lease(fabric, bus, "show", "rest:0x2001", "--json").expect(0).json()["lease"]
        check_equal((seen["mtu"], seen["service_level"], seen["rate_limit"], seen["ip_over_ib"], seen["keep"], seen["index0"]),
                    (4, 3, 25, False, True, ["0x%016x" % guid["node0001"]]), "lease show --json")
        check(seen["updated"] > seen["created"], seen)
        text = lease(fabric, bus, "show", "rest:0x2001").expect(0).out
        check("MTU 4 KiB, service level 3, 2.5 Gb/s" in text and "  changed  " in text and "IPoIB" not in text, text)
        check_equal([("node0001" in line) for line in text.splitlines() if "(for index 0)" in line], [True], text)
        seen = lease(fabric, bus, "show", "plain", "--json").expect(0).json()["lease"]
        check_equal((seen["mtu"], seen["rate_limit"], seen["index0"]), (None, None, []), "lease show --json")
        kill(daemon)
        daemon = start(fabric, bus)
        check_equal({k: v for k, v in show(bus, "rest:0x2001").items() if k not in ("Members", "NConfirmed")},
                    {k: v for k, v in z.items() if k not in ("Members", "NConfirmed")}, "the lease after a restart")
        check_equal(edited(edit_with(bus, "rest:0x2001", "set", **nico()))["NMembers"], 0, "members")
        wait_for(lambda: holders(fabric, 0x2001) == {}, "the P_Key to be revoked")
        stop(daemon)


def test_opensm_writes():
    """With writer: opensm, OpenSM's file has what the lease says, and OpenSM puts the P_Key at index 0."""
    require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        conf = fabric.path("partitions.conf")
        bus, daemon = serve(fabric, REST_POOLS, "writer: opensm\nopensm: {partitions_conf: %s, reload: 'pid:%d'}\n" % (conf, fabric.opensm.pid))
        edited(edit_with(bus, "a", "add", [("node0001", "full", True), ("node0002", "limited", True), ("node0003", "full", False)], 0x2001,
                         **nico(IpOverIb=("b", "true"), Mtu=("y", 4), ServiceLevel=("y", 3), RateLimit=("q", 1000))))
        wait_for(lambda: {n: k for n, (i, k) in holders(fabric, 0x2001).items()} == {"node0001": 0xA001, "node0002": 0x2001, "node0003": 0xA001},
                 "OpenSM to write the P_Key")
        found = holders(fabric, 0x2001)
        check_equal((found["node0001"][0], found["node0002"][0]), (0, 0), "indexes")
        check(found["node0003"][0] > 0, found)
        check_equal(holders(fabric, 0x7FFF)["node0003"][0], 0, "index of the default partition")
        wait_for(lambda: show(bus, "a")["NConfirmed"] == 3, "the members to be confirmed")
        check(re.search(r"=0x2001,indx0,ipoib,mtu=5,rate=16,sl=3,.*:\n.*=full,.*\n.*=limited;.*\nlease-0x2001=0x2001,sl=3:\n.*=full;", read_file(conf)),
              read_file(conf))
        # another index, without another membership
        edited(edit_with(bus, "a", "add", [("node0001", "full", False)], **nico(IpOverIb=("b", "false"))))
        wait_for(lambda: "ipoib" not in read_file(conf), "the file to be without IPoIB")
        wait_for(lambda: holders(fabric, 0x2001).get("node0001", (0, 0))[0] > 0 and holders(fabric, 0x7FFF).get("node0001", (1, 0))[0] == 0,
                 "the P_Key to move")
        stop(daemon)


def test_unseen_with_opensm():
    """OpenSM's file has GUIDs that no port has, if the pool has them: in `ports` with ALL_CAS or ALL, or by their GUID."""
    guids = ["0x000a0b0c0d0e0f%02x" % i for i in range(3)]
    require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        conf = fabric.path("partitions.conf")
        pools = REST_POOLS.replace("node[0001-0006]", "node[0001-0006], " + guids[0])
        bus, daemon = serve(fabric, pools, "writer: opensm\nopensm: {partitions_conf: %s, reload: 'pid:%d'}\n" % (conf, fabric.opensm.pid))

        def given(base):
            """{GUID: membership} of those that are unseen, and whether index 0 is theirs."""
            definitions = re.findall(r"^lease-0x%04x=0x%04x(.*):\n((?:    .*\n)*)" % (base, base), read_file(conf), re.M)
            return {guid: (membership, "indx0" in flags) for flags, lines in definitions for guid, membership in re.findall(r"(0x\w+)=(\w+)", lines)
                    if guid in guids}

        edited(edit_with(bus, "a", "add", [(guids[0], "full", True), ("%s, node0001" % guids[1], "limited", False)], 0x2001, **nico()))
        edited(edit_with(bus, "b", "add", [(guids[2], "limited", False)], pool="shared"))
        wait_for(lambda: given(0x2001) == {guids[0]: ("full", True)} and given(0x3000) == {guids[2]: ("limited", False)},
                 "the file to have unseen GUIDs")
        wait_for(lambda: list(holders(fabric, 0x2001)) == ["node0001"], "OpenSM to write the P_Key of the other member")
        check_equal([m[6] for m in show(bus, "a")["Members"] if m[3] in guids], ["unseen", "unseen"], "states")
        check("selector.no-match" not in daemon.text() and guids[1] not in daemon.text(), daemon.text())
        kill(daemon)
        daemon = start(fabric, bus)
        check_equal((given(0x2001), given(0x3000)), ({guids[0]: ("full", True)}, {guids[2]: ("limited", False)}), "the file after a restart")
        edited(edit_with(bus, "a", "remove", [(guids[0], "", False)], **nico()))
        check_equal(json.loads(call(bus, "Release", "s", "b").stdout)["data"][0], "released", "release")
        wait_for(lambda: given(0x2001) == given(0x3000) == {}, "the file to be without them")
        check_equal(list(holders(fabric, 0x2001)), ["node0001"], "the other member")
        stop(daemon)


def test_empty_lease_ends():
    """An open lease that is not kept ends when it was without members for `rest` of its pool."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, REST_POOLS.replace("rest: 2s", "rest: 10s"))
        check_equal(edited(edit_with(bus, "a", "add", [("node0001", "", False)], pool="shared", **nico(Keep=("b", "false"))))["Keep"], False, "Keep")
        check_equal(edited(edit_with(bus, "a", "remove", [("node0001", "", False)], pool="shared", **nico()))["NMembers"], 0, "members")
        check("or after a while without members" in lease(fabric, bus, "show", "a").expect(0).out, "lease show")
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        daemon.wait_text("lease a: it had no members for 10 s")
        edited(edit_with(bus, "b", "add", **nico(Keep=("b", "false"))))
        wait_for(lambda: not list_ids(fabric, bus), "the lease to end")
        edited(edit_with(bus, "b", "add", **nico(Keep=("b", "true"))))
        check_equal(edited(edit_with(bus, "b", "set", **nico(Keep=("b", "false"))))["Keep"], True, "Keep of a lease that is kept")
        check_equal(list_ids(fabric, bus), {"b": "active"}, "a lease that is kept")
        stop(daemon)


def test_ports():
    """All endports, with what clients of the REST API want to know of them. Two hosts with one name have none."""
    require()
    topology = two_level(2, 2, 4)
    node, guid, _, n_ports, links = topology.hosts[7]
    topology.hosts[7] = (node, guid, "node0007 mlx5_0", n_ports, links)
    with Fabric(topology) as fabric:
        bus, daemon = serve(fabric)
        hosts = {p.guid: p.name.split(";")[-1].split(":")[0] for p in fabric.tables().values()}
        hosts.update((topology.port_guid(node), "") for node in ("node0007", "node0008"))
        wanted = [[p.guid, p.node, p.number, p.lid, hosts[p.guid], p.type, 4] for p in fabric.tables().values()]
        found = json.loads(call(bus, "Ports").stdout)["data"][0]
        check_equal(found, sorted(wanted), "ports")
        check(len(found) >= 8, found)
        stop(daemon)
    # without a subnet manager nothing is discovered
    with Fabric(two_level(2, 2, 4), opensm=False) as fabric:
        fabric.settings(SETTINGS)
        write_policy(fabric)
        bus = Bus(fabric)
        daemon = start(fabric, bus, wait=False)
        r = call(bus, "Ports")
        check(r.returncode != 0 and "has not seen the fabric yet" in r.stderr, r.stdout, r.stderr)
        stop(daemon)


def test_list_whole():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, REST_POOLS)
        edited(edit_with(bus, "a", "add", [("node[0001-0002]", "", False)], pool="shared"))
        edited(edit_with(bus, "b", "add", [("node0003", "limited", True)], **nico()))
        edited(edit_with(bus, "c", "add", **nico()))
        wait_for(lambda: (show(bus, "a")["NConfirmed"], show(bus, "b")["NConfirmed"]) == (2, 1), "the members to have the P_Key")

        def whole(pool):
            return [values(x) for x in json.loads(call(bus, "ListWhole", "s", pool).stdout)["data"][0]]

        for pool, ids in (("", "abc"), ("shared", "a"), ("rest", "bc"), ("other", "")):
            check_equal(whole(pool), [show(bus, x) for x in ids], "leases of pool %r" % pool)
        stop(daemon)


def test_list_too_whole():
    """More than one message of the bus can have is refused; a pool or a lease of it is not."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, REST_POOLS.replace("0x2000-0x2003", "0x2000-0x200f"))
        edited(edit_with(bus, "small", "add", pool="shared"))
        for i in range(13):
            groups = [(", ".join("0x000a0b%02x%02x%06x" % (i, k, n) for n in range(3600)), "", False) for k in range(5)]
            reply = edit_with(bus, "large%d" % i, "add", groups, **nico())
            check(not isinstance(reply, str) and reply[2]["NMembers"]["data"] == 18000, "the members:", str(reply)[:500])
        for pool in ("", "rest"):
            r = call(bus, "ListWhole", "s", pool)
            check(r.returncode != 0 and "more than 16 MiB" in r.stderr, r.stderr, r.stdout[:500])
        r = call(bus, "ListWhole", "s", "shared")
        check(len(json.loads(r.stdout)["data"][0]) == 1, r.stdout[:500])
        check_equal(len(show(bus, "large3")["Members"]), 18000, "members of one lease")
        stop(daemon)


def test_wrong_options():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, REST_POOLS)
        qos = {"Mtu": ("y", 2), "ServiceLevel": ("y", 0), "RateLimit": ("q", 100)}
        for more, words in (({"Other": ("b", "true")}, "unknown option 'Other' (accepted: Client, IpOverIb"), ({"Keep": ("s", "true")}, "Keep: has the wrong type (accepted: b)"),
                            ({"Mtu": ("y", 2)}, "are set together"), ({**qos, "Mtu": ("y", 3)}, "MTU"), ({**qos, "ServiceLevel": ("y", 16)}, "service level"),
                            ({**qos, "RateLimit": ("q", 101)}, "rate"), ({"Client": ("s", "")}, "Client: is not a valid name"),
                            ({"Client": ("s", "x" * 65)}, "Client: is not a valid name"), ({"Client": ("s", "a:b")}, "Client: is not a valid name")):
            r = edit_with(bus, "a", "add", pool="shared", **more)
            check(isinstance(r, str) and words in r, more, r)
        r = call(bus, "EditWith", "sssqa(ssb)a{sv}", "shared", "a", "add", "0", "0", "2", "Keep", "b", "true", "Keep", "b", "true")
        check("Keep: given twice" in r.stderr, r.stderr)
        r = edit_with(bus, "a", "add", [("node0001", "", False)] * 17, pool="shared")
        check(isinstance(r, str) and "more than 16 groups" in r, r)
        for groups, what, words in (([("node0001", "both", False)], "add", "membership: is not a membership"), ([("node\x1b", "", False)], "add", "control character"),
                                    ([], "drop", "what: is not an edit")):
            r = edit_with(bus, "a", what, groups, pool="shared")
            check(isinstance(r, str) and words in r, r)
        r = call(bus, "ReleaseWith", "sa{sv}", "a", *options(Keep=("b", "true")))
        check("unknown option 'Keep' (accepted: Client)" in r.stderr, r.stderr)
        edited(edit_with(bus, "a", "add", [("node0001", "", False)] * 16, pool="shared", **qos))
        stop(daemon)


def test_clients():
    """Who may name a client of the REST API, and what such a client may do."""
    with fabric_of() as fabric:
        fabric.settings(SETTINGS)
        write_policy(fabric, REST_POOLS)
        bus = Bus(fabric)
        # for pkeyd the user nobody has the name of another one, which this host need not have
        passwd = fabric.write("passwd", read_file("/etc/passwd").replace("nobody:", "pkeyd-rest:"))
        wrapper = fabric.write("wrapper", "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind %s /etc/passwd && exec \"$@\"' sh %s \"$@\"\n" %
                               (passwd, program("pkeyd")))
        os.chmod(wrapper, 0o755)
        os.chmod(passwd, 0o644)
        daemon = start(fabric, bus, name=wrapper)
        member = [("node0001", "", False)]
        refused_with(edit_with(bus, "a", "add", member), "lease.access", "root")  # `allow` has the client only
        refused_with(edit_with(bus, "a", "add", member, Client=("s", "other")), "lease.access", "rest:other")
        r = edit_with(bus, "a", "add", member, user="daemon", **nico())
        check(isinstance(r, str) and "Access denied" in r, r)
        check_equal(edited(edit_with(bus, "a", "add", member, user="nobody", **nico()))["Owner"], "rest:nico", "owner")
        refused_with(edit_with(bus, "a", "add", member, user="nobody"), "lease.access", "pkeyd-rest")
        edited(edit_with(bus, "shared", "add", member, pool="shared", Client=("s", "other")))  # root itself may
        for user, more in ((None, {}), (None, {"Client": ("s", "other")}), ("daemon", nico())):
            r = call(bus, "ReleaseWith", "sa{sv}", "a", *options(**more), user=user)
            check(("Access denied" in r.stderr) if r.returncode else json.loads(r.stdout)["data"][0] == "refused", r.stdout, r.stderr)
        r = call(bus, "ReleaseWith", "sa{sv}", "a", *options(**nico()), user="nobody")
        check_equal(json.loads(r.stdout)["data"][0], "released", r.stderr)
        check("lease a: released by rest:nico" in daemon.text(), daemon.text())
        check_equal(list_ids(fabric, bus), {"shared": "active"}, "leases")
        stop(daemon)


# --- when there are no leases ---------------------------------------------------------------------------------------------


def test_audit():
    """A pkeyd that writes nothing makes no lease. Those that exist stay."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        before = create(fabric, bus, more=["--json"]).expect(0).json()
        fabric.settings(SETTINGS + "mode: audit\n")
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        refused(create(fabric, bus, "job2", "node0003", more=["--json"]), "lease.not-now", "it is in audit mode")
        check_equal(lease(fabric, bus, "show", "job1", "--json").expect(0).json()["lease"], before["lease"], "the lease in audit mode")
        fabric.settings(SETTINGS)
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        check_members(fabric, before, ["node0001", "node0002"])
        stop(daemon)


# --- another policy -------------------------------------------------------------------------------------------------------


def test_stranded():
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        create(fabric, bus, members="node[0001-0002]").expect(0)
        create(fabric, bus, "kept", "node0003").expect(0)
        for pools, words in (("", "there is no pool 'jobs'"), (POOLS.replace("node[0001-0006]", "node[0002-0006]"), "node0001"),
                             (POOLS.replace("0x1000-0x1003", "0x1001-0x1003"), "does not have P_Key 0x1000")):
            write_policy(fabric, pools)
            r = fabric.pkeyctl("reload", "--json", **bus.environment()).expect(1).json()
            stranded = [f for f in r["findings"] if f["code"] == "lease.stranded"]
            check(stranded and words in stranded[0]["text"] and "lease job1" in stranded[0]["text"], r)
            check("--release-stranded" in stranded[0]["hint"], r)
            check_equal(list_ids(fabric, bus), {"job1": "active", "kept": "active"}, "leases after a refused reload")
        r = fabric.pkeyctl("reload", "--release-stranded", "--json", **bus.environment()).expect(0).json()
        check_equal([f["severity"] for f in r["findings"] if f["code"] == "lease.stranded"], ["warning"], r)
        wait_for(lambda: list_ids(fabric, bus) == {"kept": "active"}, "the stranded lease to end")
        check_equal((holders(fabric, 0x1000), list(holders(fabric, 0x1001))), ({}, ["node0003"]), "ports with the P_Keys")
        check("--release-stranded is for reload only" in fabric.pkeyctl("apply", "--release-stranded").expect(1).err)
        stop(daemon)


def test_strict_with_a_leased_host_down():
    """`strict` is about the lines of the policy: a lease does not make a host that is down an error."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, "strict: true\n" + POOLS.replace("node[0001-0006]", "ALL_CAS"))
        create(fabric, bus).expect(0)
        fabric.console('Unlink "node0002"')
        fabric.heavy_sweep()
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        wait_for(lambda: "node0002" not in {p.name for p in fabric.tables().values()}, "node0002 to be gone")
        path = fabric.path("partitions.yaml")
        for command, file in (("status", None), ("plan", path), ("verify", path), ("show port node0001 --policy", path)):
            r = fabric.pkeyctl(*command.split(), *filter(None, [file]), **bus.environment()).expect(0)
            check("not in the fabric" not in r.err, command, r)
        stop(daemon)


def test_other_changes():
    """A reload that leaves the leases alone, SIGHUP, and a table that another program changed."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric)
        r = create(fabric, bus, more=["--json"]).expect(0).json()
        policy = Policy().add("storage", 0x0011, {"ALL_CAS": "limited", "node0008": "full"}).add("late", 0x0012, {"ALL_CAS": "full"})
        fabric.write("partitions.yaml", policy.yaml() + POOLS)
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        check_members(fabric, r, ["node0001", "node0002"])
        port = next(p for p in fabric.tables().values() if p.name == "node0001")
        fabric.set_p_key(port, **{"i%d" % holders(fabric, 0x1000)["node0001"][0]: 0})
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: sorted(holders(fabric, 0x1000)) == ["node0001", "node0002"], "pkeyd to repair the table")
        check_members(fabric, r, ["node0001", "node0002"])
        stop(daemon)


def test_many_callers():
    """Callers that wait at the same time: each gets its own P_Key, or is refused."""
    with fabric_of() as fabric:
        bus, daemon = serve(fabric, POOLS.replace("0x1000-0x1003", "0x1000-0x10ff"))
        children = [start_create(fabric, bus, "--pool", "jobs", "--id", "job%02d" % i, "--members", "node%04d" % (1 + i % 6), "--json",
                                 log="create-%d.log" % i) for i in range(12)]
        statuses = [child.wait(timeout=PATIENCE) for child in children]
        results = [json.loads(open(fabric.path("create-%d.log" % i)).read()) for i in range(12)]
        check_equal(statuses, [0] * 12, "exit statuses")
        check_equal(len({r["lease"]["pkey"] for r in results}), 12, "different P_Keys")
        for i, r in enumerate(results):
            check_members(fabric, r, ["node%04d" % (1 + i % 6)])
        stop(daemon)


if __name__ == "__main__":
    main()
