# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl doctor: its diagnoses on a fabric as OpenSM leaves it, those that pkeyd resolves, and those about this host; and
that it changes nothing."""

import os

import madtrace
from harness import Fabric, check, check_equal, end, main, read_file, two_level, wait_for
from oracle import Policy

SEVERITIES = ("error", "warning", "note")


def fabric_of(**more):
    return Fabric(two_level(2, 1, 4), **more)


def policy_of():
    return Policy().add("a", 0x0101, {"node[0001-0004]": "full"}).add("b", 0x0102, {"node[0005-0008]": "full"})


def doctor(fabric, *arguments, status=2, **how):
    return fabric.pkeyctl("doctor", *arguments, "--json", **how).expect(status).json()


def codes(data):
    return {f["code"] for f in data["findings"]}


def finding(data, code):
    found = [f for f in data["findings"] if f["code"] == code]
    check(len(found) == 1, code, "should be there once:", [(f["code"], f["text"]) for f in data["findings"]])
    return found[0]


def names(item):
    return [w["node"] for w in item["where"]]


def test_fabric_as_opensm_leaves_it():
    with fabric_of() as fabric:
        data = doctor(fabric, trace="mads")
        check({"m-key.zero", "sa-key.default", "default-partition.full-for-all", "enforcement.cannot", "policy.none"}
              <= codes(data), sorted(codes(data)))
        check(not {"sm.none", "sm.several", "sm.silent", "sa-key.none", "sa-key.unknown", "name.twice", "name.none",
                   "table.unread", "port.silent", "index0.other", "policy.differs", "self.limited"} & codes(data),
              sorted(codes(data)))
        check_equal([(sm["state"], sm["node"]) for sm in data["subnet_managers"]], [("master", "node0001")], "the SM")
        check_equal(set(names(finding(data, "default-partition.full-for-all"))), {"node%04d" % i for i in range(2, 9)},
                    "who is a full member")
        check_equal(len(finding(data, "m-key.zero")["where"]), 8 + 3, "ports without an M_Key")
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("mads"))), [], "SubnSets of doctor")


def test_shape():
    with fabric_of() as fabric:
        data = doctor(fabric)
        check_equal((data["schema"], data["ok"], data["command"], data["policy"]), (1, False, "doctor", None), "the head")
        check_equal((data["nodes"], data["endports"]), (11, 11), "nodes, endports")
        counts = {s: sum(f["severity"] == s for f in data["findings"]) for s in SEVERITIES}
        check_equal(counts, {s: data[s + "s"] for s in SEVERITIES}, "counts")
        order = [SEVERITIES.index(f["severity"]) for f in data["findings"]]
        check_equal(order, sorted(order), "worst first")
        for f in data["findings"]:
            check({"file", "line", "column", "severity", "code", "text", "where", "more", "why", "advice"} <= set(f), f)
            check(f["text"] and f["why"] and f["advice"], f)
        out = fabric.pkeyctl("doctor", COLUMNS="60").expect(2).out
        for f in data["findings"]:
            check("[%s]" % f["code"] in out and f["text"] in out, f["code"], "is not in:", out)
        body = [line for line in out.splitlines() if line.startswith("  ")]
        check(body and all(len(line) <= 60 and line == line.rstrip() for line in body), out)
        check("leaf[01-02],node[0001-0008],spine01" in out, "hosts are folded:", out)
        check(out.rstrip().endswith("%d errors, %d warning%s, %d notes" % (
            counts["error"], counts["warning"], "" if counts["warning"] == 1 else "s", counts["note"])), out)
        check_equal(fabric.pkeyctl("doctor", "-q").expect(2).out, "", "with -q")


def test_fabric_as_pkeyd_leaves_it():
    with fabric_of(opensm_conf="sa_key 0x1234567812345678\n") as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        before = codes(doctor(fabric))
        check_equal(before & {"sa-key.default", "sa-key.unknown"}, set(), "an SA with a key of its own")
        data = doctor(fabric, path)
        check("policy.differs" in codes(data) and data["policy"] == path, sorted(codes(data)))
        fabric.apply(path).expect(0)
        after = codes(doctor(fabric, path))
        check(after < before, "before: %s, after: %s" % (sorted(before), sorted(after)))
        check_equal(before - after, {"default-partition.full-for-all", "policy.none"}, "what is fixed")
        port = fabric.tables()[fabric.topology.port_guid("node0003")]
        fabric.set_p_key(port, i0=0x8101, i3=0x7fff)
        data = doctor(fabric, path)
        check_equal(names(finding(data, "index0.other")), ["node0003"], "index 0")
        check_equal(finding(data, "index0.other")["where"][0]["text"], "0x8101 at index 0", "index 0")


def test_keys_that_opensm_leaves_on_switch_ports():
    """40 partitions, then one: OpenSM does not clear the second block of the switch ports."""
    def conf(n):
        return "Default=0x7fff, ipoib: ALL=limited, SELF=full;\n" + "".join(
            "p%d=0x%x: %s;\n" % (i, 0x1000 + i, ", ".join("0x%x=full" % guid for guid in guids)) for i in range(n))
    topology = two_level(2, 1, 4)
    guids = [topology.port_guid("node%04d" % i) for i in (2, 3)]
    with Fabric(topology, partitions_conf=conf(40)) as fabric:
        check("switch-port.stale-keys-idle" not in codes(doctor(fabric)), "before")
        fabric.write("partitions.conf", conf(1))
        fabric.heavy_sweep()
        wait_for(lambda: len(fabric.tables()[guids[0]].keys()) == 2, "OpenSM to write the tables")
        item = finding(doctor(fabric), "switch-port.stale-keys-idle")
        check_equal([(w["node"], w["port"]) for w in item["where"]], [("leaf01", 2), ("leaf01", 3)], "where")
        check(all("from index 32 on" in w["text"] for w in item["where"]), item)


def test_unexpected_keys_on_a_switch_port():
    with fabric_of() as fabric:
        leaf = next(p for p in fabric.tables().values() if p.guid == fabric.topology.guid("leaf02"))
        fabric.set_p_key(leaf, external=1, i50=0x9020)
        item = finding(doctor(fabric), "switch-port.stale-keys-idle")
        check_equal([(w["node"], w["port"], w["text"]) for w in item["where"]], [("leaf02", 1, "0x9020, from index 50 on")],
                    "where")


def test_names():
    topology = two_level(2, 1, 4)

    def describe(i, description):
        node = topology.hosts[i]
        topology.hosts[i] = (node[0], node[1], description, *node[3:])

    describe(2, "node0004 mlx5_0")
    describe(4, "MT4123 ConnectX6   Mellanox Technologies")
    describe(5, "node0007 mlx5_1")  # another adapter of node0007
    with Fabric(topology) as fabric:
        data = doctor(fabric)
        twice = finding(data, "name.twice")
        check_equal(len(twice["where"]), 1, "names twice")
        for i in (2, 3):
            check("0x%016x" % topology.hosts[i][1] in twice["where"][0]["text"], twice)
        check_equal(len(finding(data, "name.none")["where"]), 1, "hosts without a name")


def test_two_subnet_managers():
    with fabric_of() as fabric:
        log = fabric.path("osm2.log")
        for name in ("osm2-cache", "osm2-tmp"):
            os.mkdir(fabric.path(name))
        fabric.start(["opensm", "-d2", "-f", log, "-P", fabric.path("partitions.conf")], "osm2.out", host="node0005",
                     OSM_CACHE_DIR=fabric.path("osm2-cache"), OSM_TMP_DIR=fabric.path("osm2-tmp"))
        wait_for(lambda: "Entering STANDBY state" in read_file(log), "the second SM to stand by")
        data = doctor(fabric)
        check_equal({(sm["node"], sm["state"]) for sm in data["subnet_managers"]},
                    {("node0001", "master"), ("node0005", "standby")}, "SMs")
        check_equal(names(finding(data, "sm.same-priority")), ["node0005"], "who has the same priority")
        check("sm.several" not in codes(data), sorted(codes(data)))


def test_no_subnet_manager():
    """Without LIDs doctor uses directed routes, and does not query the SA."""
    with fabric_of(opensm=False) as fabric:
        data = doctor(fabric)
        check("sm.none" in codes(data), sorted(codes(data)))
        check(not {"sa-key.default", "sa-key.none", "sa-key.unknown", "port.silent"} & codes(data), sorted(codes(data)))
        check_equal(data["subnet_managers"], [], "SMs")


def test_subnet_manager_beside_pkeyd():
    """plan and doctor warn of an SM that may write tables, unless the settings accept it."""
    def plan(fabric, *options):
        path = fabric.write("partitions.yaml", policy_of().yaml())
        findings = fabric.pkeyctl("plan", path, "--json", *options).expect(0, 2).json()["findings"]
        return [f for f in findings if f["code"] == "plan.beside-sm"]

    with fabric_of() as fabric:
        fabric.settings("timeout: 200ms\n", beside=False)
        check_equal(names(finding(doctor(fabric), "sm.beside")), ["node0001"], "the SM")
        found = plan(fabric)
        check_equal([f["severity"] for f in found], ["warning"], "plan")
        check("the subnet manager on node0001 (LID " in found[0]["text"] and "--beside-opensm" in found[0]["hint"], found)
        check_equal(plan(fabric, "--beside-opensm"), [], "it was said")
        policy = fabric.path("partitions.yaml")
        refused = fabric.apply(policy, trace="refused").expect(1)
        check("nothing is written" in refused.err and "--beside-opensm" in refused.err, refused)
        check_equal(madtrace.all_sets(madtrace.read(fabric.path("refused"))), [], "Sets of an apply that is refused")
        fabric.apply(policy, "--beside-opensm").expect(0)
        fabric.pkeyctl("verify", policy).expect(0)
        conf = fabric.path("partitions.conf")
        for settings in ("beside_opensm: true\n", "opensm: {mirror: %s}\n" % conf,
                         "writer: opensm\nopensm: {partitions_conf: %s, reload: \"pid:2\"}\n" % conf):
            fabric.settings(settings)
            check_equal(plan(fabric), [], settings)
            check("sm.beside" not in codes(doctor(fabric)), settings)
    with fabric_of() as fabric:
        fabric.settings("timeout: 200ms\n", beside=False)
        end(fabric.opensm)
        check_equal(plan(fabric), [], "an SM that ended")
        check("sm.beside" not in codes(doctor(fabric)), "an SM that ended")
        fabric.apply(fabric.path("partitions.yaml")).expect(0)


def test_silence():
    """The table of a host cannot be read: doctor does not guess its contents."""
    with fabric_of() as fabric:
        fabric.lose("node0006", 100)
        data = doctor(fabric)
        check_equal(names(finding(data, "table.unread")), ["node0006"], "unread")
        check("node0006" not in names(finding(data, "default-partition.full-for-all")), data["findings"])


def test_this_host():
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.apply(path).expect(0)
        check(not {"file.changeable", "policy.refused", "state-dir.damaged", "settings.refused", "policy.warnings"}
              & codes(doctor(fabric, path)), "all is well")
        os.chmod(path, 0o666)
        with open(os.path.join(fabric.path("state"), "state.db"), "r+b") as f:
            f.write(b"this is no database")
        fabric.settings("mode: audit\n")
        data = doctor(fabric, path)
        check_equal([w["text"] for w in finding(data, "file.changeable")["where"]], [path], "changeable")
        check({"state-dir.damaged", "settings.audit"} <= codes(data), sorted(codes(data)))
        check_equal([name for name in os.listdir(fabric.path("state")) if name.startswith("state.db.")], [], "what was moved")
        fabric.settings("moode: audit\n")
        path = fabric.write("partitions.yaml", policy_of().yaml() + "color: red\n")
        data = doctor(fabric, path)
        check(finding(data, "policy.refused")["where"][0]["text"].startswith(path + ":"), data)
        check("moode" in finding(data, "settings.refused")["where"][0]["text"], data)
        key = fabric.write("sa_key", "0x1234\n")
        os.chmod(key, 0o640)
        fabric.settings("sa_key_file: %s\n" % key)
        data = doctor(fabric)
        check_equal(len(finding(data, "secret.refused")["where"]), 1, "key files that others can read")
        check("0x1234" not in str(data), "the key is told")
        path = fabric.write("partitions.yaml", policy_of().add("c", 0x0103, {"node0099": "full"}).yaml())
        check("node0099" in finding(doctor(fabric, path), "policy.warnings")["where"][0]["text"], "a name nobody has")
        check("policy.refused" in codes(doctor(fabric, fabric.path("no-such-file"))), "a policy that is not there")


def test_all_secrets():
    """The one of the store is read after the keys, and does not hide them."""
    with fabric_of() as fabric:
        files = [fabric.write(name, "0x1234\n") for name in ("m_key", "password")]
        for path in files:
            os.chmod(path, 0o644)
        fabric.settings("m_key_file: %s\nrole: follow-sm\nstore: etcd\netcd:\n  endpoints: [\"http://127.0.0.1:9\"]\n  user: pkeyd\n  password_file: %s\n"
                        % tuple(files))
        os.makedirs(fabric.path("state"))
        item = finding(doctor(fabric, status=1), "secret.refused")
        check_equal([path in w["text"] for path, w in zip(files, item["where"])], [True, True], item["where"])


def test_warnings_of_the_policy():
    """Those of its parser count, those of the store do not."""
    with fabric_of() as fabric:
        path = fabric.write("partitions.yaml", "version: 1\npartitions:\n  a: {pkey: 0x0101}\n")
        os.makedirs(os.path.join(fabric.path("state"), "state.db"))
        fabric.settings("identity: pin\n")
        data = doctor(fabric, path)
        check("state-dir.unusable" in codes(data), sorted(codes(data)))
        check_equal([w["text"] for w in finding(data, "policy.warnings")["where"]],
                    [path + ":3:3: partitions.a: has no 'members', so no port is a member"], "warnings")


def test_partitions_conf():
    with fabric_of() as fabric:
        conf = fabric.write("opensm.conf", "partition_config_file %s\n" % fabric.path("p.conf"))
        check(not {"opensm.discards", "opensm.odd", "opensm.edited"} & codes(doctor(fabric, "--opensm-config", conf)), "no file")
        fabric.write("p.conf", "Default=0x7fff: ALL=limited, SELF=full;\n")
        check(not {"opensm.discards", "opensm.odd", "opensm.edited"} & codes(doctor(fabric, "--opensm-config", conf)), "a good file")
        fabric.write("p.conf", "Default=0x7fff: ALL=limited, SELF=full;\nP1=0x12345: A=full;\n")
        item = finding(doctor(fabric, "--opensm-config", conf), "opensm.odd")
        check(all(w["text"].startswith(fabric.path("p.conf") + ":2:") for w in item["where"]), item)
        fabric.write("p.conf", "Default=0x7fff: ALL=limited, SELF=full;\nP1=0x1234: 0x10000z=full;\n")
        data = doctor(fabric, "--opensm-config", conf)
        check("opensm.discards" in codes(data) and "opensm.odd" not in codes(data), sorted(codes(data)))
        policy = fabric.write("partitions.yaml", policy_of().yaml())
        fabric.pkeyctl("export", "opensm", policy, "--output", fabric.path("ours.conf")).expect(0)
        fabric.write("p.conf", read_file(fabric.path("ours.conf")))
        check(not {"opensm.discards", "opensm.odd", "opensm.edited"} & codes(doctor(fabric, "--opensm-config", conf)), "ours")
        fabric.settings("opensm: {mirror: %s}\n" % fabric.path("p.conf"))
        fabric.write("p.conf", "Default=0x7fff: ALL=limited, SELF=full;\n")
        check("opensm.foreign" in codes(doctor(fabric, "--opensm-config", conf)), "not ours")
        fabric.write("p.conf", "")
        check("opensm.foreign" not in codes(doctor(fabric, "--opensm-config", conf)), "an empty file, which pkeyd takes at once")
        check("opensm.elsewhere" not in codes(doctor(fabric, "--opensm-config", conf)), "it is the file of OpenSM")
        conf = fabric.write("opensm.conf", "")
        check("opensm.elsewhere" in codes(doctor(fabric, "--opensm-config", conf)), "OpenSM reads its default file")


def test_cannot_look():
    """Then doctor only checks this host."""
    with fabric_of() as fabric:
        data = doctor(fabric, "-C", "mlx5_77", status=1)
        check_equal((data["ok"], codes(data)), (False, {"host.no-device", "policy.none"}), "without a device")
        check("nodes" not in data, data)
        result = fabric.pkeyctl("doctor", "-C", "mlx5_77").expect(1)
        check("could not be read" in result.out and "mlx5_77" in result.err, result)
        data = doctor(fabric, status=1, trace="denied", MADTRACE_DENIED="1")
        check("host.no-permission" in codes(data), sorted(codes(data)))
        key = fabric.write("m_key", "0x1234\n")
        os.chmod(key, 0o644)
        fabric.settings("m_key_file: %s\n" % key)
        data = doctor(fabric, status=1)
        check({"secret.refused", "secret.exposed"} <= codes(data), sorted(codes(data)))
        check("0x1234" not in str(data), "the key is told")
        fabric.pkeyctl("doctor", "a", "b").expect(1)


if __name__ == "__main__":
    main()
