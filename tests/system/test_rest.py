# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of UFM's API, pkeyd-rest, pkeyd and a fabric: what a client is told is stored, and is in the tables."""

import signal
import sys
import threading
import time

from door import KUBE, PASSWORD, SLURM, Door, basic, hash_of
from harness import PATIENCE, Daemon, Fabric, check, check_equal, main, two_level, wait_for
from oracle import Policy
from private_bus import Bus, require

SETTINGS = "sweep_interval: 1h\ntimeout: 100ms\n"

POOLS = """pools:
  jobs:
    pkeys: 0x1000-0x1003
    ports: node[0001-0006]
    lease: unlimited
    rest: 0s
    allow: 'rest:slurm'
  tenants:
    pkeys: 0x2000-0x200f
    ports: ALL_CAS
    lease: unlimited
    rest: 0s
    index0: true
    allow: [root, 'rest:kube', 'rest:nico']
"""
NOBODY = "000a0b0c0d0e0f01"
PKEYS = "/ufmRest/resources/pkeys"
REMOVE = "/ufmRest/actions/remove_guids_from_pkey"


class Scene:
    """A fabric with pkeyd and pkeyd-rest."""

    def __init__(self, more="", clients="", topology=None):
        require()
        self.fabric = Fabric(topology or two_level(2, 2, 4))
        self.more, self.clients = more, clients

    def __enter__(self):
        fabric = self.fabric.__enter__()
        try:
            fabric.settings(SETTINGS)
            policy = Policy().add("storage", 0x0011, {"ALL_CAS": "limited", "node0008": "full"})
            fabric.write("partitions.yaml", policy.yaml() + POOLS)
            self.bus = Bus(fabric)
            self.daemon = self.start_daemon()
            self.door = Door(fabric, self.bus, more=self.more, clients=self.clients)
            self.ports = {p.name: p for p in fabric.tables().values() if p.type == 1}
            self.guids = {name: "%016x" % p.guid for name, p in self.ports.items()}
        except BaseException:
            fabric.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, tb):
        try:
            if kind is None:
                self.door.stop()
                check_equal(self.daemon.stop(), 0, "exit status of pkeyd; it said:\n" + self.daemon.text())
        finally:
            self.fabric.__exit__(kind, value, tb)

    def start_daemon(self, **more):
        daemon = Daemon(self.fabric, self.fabric.path("partitions.yaml"), environment=self.bus.environment(), **more)
        self.bus.wait_name()
        return daemon

    def kill_daemon(self):
        self.daemon.process.kill()
        self.daemon.process.wait()

    def post(self, path, body, **how):
        return self.door.request("POST", path, body, **how)

    def members(self, pkey, **how):
        """{GUID: (membership, index0)}"""
        partition = self.door.get("%s/%s?guids_data=true" % (PKEYS, pkey), **how)
        return {g["guid"]: (g["membership"], g["index0"]) for g in partition["guids"]} if partition else None

    def holders(self, base):
        """{name: (index, key)} by the independent reader."""
        return {p.name: (i, key) for p in self.fabric.tables().values() for i, key in enumerate(p.table or []) if key & 0x7FFF == base}

    def wait_holders(self, base, names):
        wait_for(lambda: sorted(self.holders(base)) == sorted(names), "ports with 0x%04x: %s" % (base, names))

    def lease(self, *arguments, **how):
        return self.fabric.pkeyctl("lease", *arguments, "--json", **self.bus.environment(), **how)


def test_ib_kubernetes():
    """As Mellanox/ib-kubernetes works: add and remove GUIDs of virtual functions, and read the list."""
    with Scene() as s:
        check_equal(s.door.get("/ufmRest/app/ufm_version")["ufm_release_version"], "6.19.0", "version")
        guids = [s.guids["node0001"], s.guids["node0002"], NOBODY]
        body = {"pkey": "0x2005", "index0": True, "ip_over_ib": True, "membership": "full", "guids": guids}
        check_equal(s.post(PKEYS, body).expect(200).json(), {"pkey": "0x2005"}, "answer")
        listed = s.door.get(PKEYS + "/?guids_data=true")
        check_equal(sorted(g["guid"] for g in listed["0x2005"]["guids"]), sorted(guids), "GUIDs in the list")
        check("0x7fff" in listed, listed)
        s.wait_holders(0x2005, ["node0001", "node0002"])
        check_equal(s.holders(0x2005)["node0001"], (0, 0xA005), "index 0 of node0001")
        s.post(PKEYS, body).expect(200)  # again
        s.post(REMOVE, {"pkey": "0x2005", "guids": guids[:1]}).expect(200)
        s.post(REMOVE, {"pkey": "0x2005", "guids": guids[:1]}).expect(200)
        s.wait_holders(0x2005, ["node0002"])
        check_equal(sorted(s.members("0x2005")), sorted(guids[1:]), "members")
        # with its last member the partition is gone, and what is gone can be removed again
        s.post(REMOVE, {"pkey": "0x2005", "guids": guids}).expect(200)
        check("0x2005" not in s.door.get(PKEYS), "a partition without members is listed")
        check_equal(s.door.get(PKEYS + "/0x2005"), {}, "a partition without members")
        s.post(REMOVE, {"pkey": "0x2005", "guids": guids}).expect(200)
        s.post(REMOVE, {"pkey": "0x2006", "guids": guids}).expect(200)
        s.wait_holders(0x2005, [])
        text = s.door.text()
        check("client kube at 127.0.0.1: add P_Key 0x2005: stored; GUIDs: " in text and "0x" + NOBODY in text, text)


def test_nico():
    """As NVIDIA's infra-controller works: a client certificate or a token elsewhere; QoS; {} is "not found"."""
    with Scene() as s:
        ports = s.door.get("/ufmRest/resources/ports?sys_type=Computer")
        check_equal(sorted(p["guid"] for p in ports), sorted(s.guids.values()), "ports")
        for p in ports:
            check_equal((p["system_name"], p["lid"], p["logical_state"], p["physical_state"]),
                        (next(n for n, g in s.guids.items() if g == p["guid"]), s.ports[p["system_name"]].lid, "Active", "Link Up"), p)
        check(len(s.door.get("/ufmRest/resources/ports")) > len(ports), "ports of switches")
        check_equal(set(s.door.get("/ufmRest/app/smconf")), {"subnet_prefix", "m_key", "sm_key", "sa_key", "m_key_per_port"}, "smconf")
        check_equal(s.door.get(PKEYS + "/0x2001?guids_data=true&qos_conf=true"), {}, "no partition")
        check_equal(s.door.get(PKEYS + "/0x7fff?guids_data=true")["membership"], "limited", "hosts in the default partition")
        policy = Policy().add("default", 0x7FFF, {"ALL": "full"})
        s.fabric.write("partitions.yaml", policy.yaml() + POOLS)
        s.fabric.pkeyctl("reload", **s.bus.environment()).expect(0)
        check_equal(s.door.get(PKEYS + "?guids_data=true")["0x7fff"]["membership"], "full", "hosts in the default partition")
        qos = {"pkey": "0x2001", "mtu_limit": 4, "service_level": 3, "rate_limit": 200.0}
        s.door.request("PUT", PKEYS + "/qos_conf", qos).expect(404)
        s.post(PKEYS, {"pkey": "0x2001", "ip_over_ib": False, "membership": "limited", "index0": False,
                       "guids": [s.guids["node0003"]]}).expect(200)
        s.door.request("PUT", PKEYS + "/qos_conf", qos).expect(200)
        check_equal(s.door.get(PKEYS + "/0x2001?guids_data=true&qos_conf=true"),
                    {"partition": "api_pkey_0x2001", "ip_over_ib": False,
                     "guids": [{"guid": s.guids["node0003"], "index0": False, "membership": "limited"}],
                     "qos_conf": {"mtu_limit": 4, "service_level": 3, "rate_limit": 200}}, "the partition")
        # adding leaves IPoIB and QoS as they are
        s.post(PKEYS, {"pkey": "0x2001", "guids": [s.guids["node0004"]]}).expect(200)
        partition = s.door.get(PKEYS + "/0x2001?qos_conf=true")
        check_equal((partition["ip_over_ib"], partition["qos_conf"]["rate_limit"]), (False, 200), partition)
        check_equal(s.members("0x2001"), {s.guids["node0003"]: ("limited", False), s.guids["node0004"]: ("full", False)}, "members")
        s.wait_holders(0x2001, ["node0003", "node0004"])
        check_equal([s.holders(0x2001)[n][1] for n in ("node0003", "node0004")], [0x2001, 0xA001], "keys")
        check(s.door.get(PKEYS + "/last_updated")["last_updated"].endswith(str(time.gmtime().tm_year)), "last_updated")


def test_nv_config_manager():
    """As NVIDIA's nv-config-manager works: an empty partition, POST, PUT with memberships, DELETE of GUIDs, and reading again."""
    with Scene() as s:
        a, b, c = (s.guids["node000%d" % i] for i in (1, 2, 3))
        s.post(PKEYS + "/add", {"pkey": "0x2002", "ip_over_ib": True, "index0": False}).expect(200)
        check_equal(s.members("0x2002"), {}, "an empty partition")
        s.post(PKEYS + "/", {"pkey": "0x2002", "guids": [a, b], "memberships": ["full", "limited"], "ip_over_ib": True,
                             "index0": False}).expect(200)
        check_equal(s.members("0x2002"), {a: ("full", False), b: ("limited", False)}, "members")
        s.door.request("PUT", PKEYS + "/", {"pkey": "0x2002", "guids": [c, b], "memberships": ["full", "full"]}).expect(200)
        check_equal(s.members("0x2002"), {b: ("full", False), c: ("full", False)}, "members after PUT")
        s.wait_holders(0x2002, ["node0002", "node0003"])
        s.door.request("DELETE", "%s/0x2002/guids/%s,%s" % (PKEYS, b, c)).expect(200)
        check_equal(s.members("0x2002"), {}, "it was made without members, so it stays without")
        s.wait_holders(0x2002, [])
        s.door.request("DELETE", PKEYS + "/0x2002").expect(200)
        check_equal(s.members("0x2002"), None, "a deleted partition")
        s.door.request("DELETE", PKEYS + "/0x2002").expect(404)


def test_slurm():
    """As UFM's Slurm integration works: the nodes of a job by their names."""
    with Scene() as s:
        s.post("/ufmRestV3/resources/pkeys/hosts", {"hosts_names": "node[0001-0003]", "pkey": "0x1001", "ip_over_ib": "True",
                                                    "index0": "False"}, headers=SLURM).expect(200)
        s.wait_holders(0x1001, ["node0001", "node0002", "node0003"])
        s.post("/ufmRestV3/resources/pkeys/hosts", {"hosts_names": "node[0001-0099]", "pkey": "0x1001"}, headers=SLURM).expect(
            400, "no port of the fabric belongs to node0009, node0010, node0011, node0012, node0013 and 86 more")
        s.post("/ufmRestV3/resources/pkeys/hosts", {"hosts_names": "node0007", "pkey": "0x1001"}, headers=SLURM).expect(400, "pool jobs")
        # a host that is gone, and one that has never been there
        s.fabric.change_link('Unlink "node0002"')
        s.daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "node0002" not in {p["system_name"] for p in s.door.get("/ufmRestV3/resources/ports", headers=SLURM)},
                 "node0002 to go")
        s.door.request("DELETE", "/ufmRestV3/resources/pkeys/0x1001/hosts/node%5B0001-0002%5D,other", headers=SLURM).expect(200)
        check_equal(list(s.members("0x1001", headers=KUBE) or {}), [], "members for a client of another pool")
        partition = s.door.get("/ufmRestV3/resources/pkeys/0x1001?guids_data=true", headers=SLURM)
        check_equal([g["guid"] for g in partition["guids"]], [s.guids["node0003"]], "members that are left")
        s.wait_holders(0x1001, ["node0003"])


def test_hosts_with_one_name():
    """A name and a device that two hosts have are of neither, but the host of pkeyd has its own. Two devices are of one host."""
    topology = two_level(2, 2, 4)
    for i, description in ((3, "node0001 mlx5_0"), (4, "node0002 mlx5_1"), (5, "node0003 mlx5_0")):
        node, guid, _, n_ports, links = topology.hosts[i]
        topology.hosts[i] = (node, guid, description, n_ports, links)
    with Scene(topology=topology) as s:
        def add(hosts):
            return s.post(PKEYS + "/hosts", {"hosts_names": hosts, "pkey": "0x2001"})

        def ports(*nodes):
            return sorted("%016x" % topology.port_guid(node) for node in nodes)

        add("node[0002-0003]").expect(400, "no port of the fabric belongs to node0003 (accepted: names of hosts that are in the fabric "
                                           "now, and that no other host claims; see pkeyctl doctor)")
        check_equal(s.members("0x2001"), None, "members that were refused")
        add("node[0001-0002]").expect(200)
        check_equal(sorted(s.members("0x2001")), ports("node0001", "node0002", "node0005"), "members")
        s.post(PKEYS, {"pkey": "0x2001", "guids": ports("node0003")}).expect(200)
        s.door.request("DELETE", PKEYS + "/0x2001/hosts/node%5B0002-0003%5D").expect(200)
        check_equal(sorted(s.members("0x2001")), ports("node0001"), "members that are left")


def test_refused():
    """What pkeyd refuses is 400 or 409 with its reason, and is not stored."""
    with Scene(clients="  stranger: {password: %s, pool: jobs}\n  lost: {password: %s, pool: nowhere}\n" % ((hash_of(PASSWORD),) * 2)) as s:
        a = s.guids["node0001"]
        s.post(PKEYS, {"pkey": "0x1001", "guids": [a]}).expect(400, "0x1001")
        for p_key, status, words in (("0x1001", 400, "0x1001"), ("0x2001", 404, "there is no partition 0x2001")):
            s.door.request("PUT", PKEYS + "/qos_conf",
                           {"pkey": p_key, "mtu_limit": 2, "service_level": 0, "rate_limit": 10}).expect(status, words)
        s.post(PKEYS, {"pkey": "0x1001", "guids": [a]}, headers=basic("stranger", PASSWORD)).expect(400, "may not use pool jobs")
        s.post(PKEYS, {"pkey": "0x2001", "guids": [a]}, headers=basic("lost", PASSWORD)).expect(400, "nowhere")
        s.post("/ufmRestV3/resources/pkeys", {"pkey": "0x1001", "index0": True, "guids": [a]}, headers=SLURM).expect(400, "index 0")
        check_equal(s.lease("list").expect(0).json()["leases"], [], "leases")
        s.post(PKEYS, {"pkey": "0x2001", "index0": True, "guids": [a]}).expect(200)
        s.post(PKEYS, {"pkey": "0x2002", "index0": True, "guids": [a]}).expect(409, "partition 0x2001")
        s.post(PKEYS, {"pkey": "0x2002", "guids": [a]}).expect(200)
        # without members there is no partition
        s.post(PKEYS, {"pkey": "0x2004", "guids": []}).expect(200)
        check_equal(s.door.get(PKEYS + "/0x2004"), {}, "a partition without members")
        check("add P_Key 0x2004: stored; no GUIDs" in s.door.text(), s.door.text())
        # a lease that pkeyctl made is the partition of its P_Key
        s.lease("edit", "mine", "--pool", "tenants", "--pkey", "0x2003", "--add", "node0004").expect(0)
        check_equal(s.door.get(PKEYS + "/0x2003")["partition"], "mine", "name of the partition")
        s.post(PKEYS, {"pkey": "0x2003", "guids": [a]}).expect(200)
        check_equal(sorted(s.members("0x2003")), sorted([a, s.guids["node0004"]]), "members")
        # nobody can take the P_Key of a partition by its ID
        s.lease("edit", "rest:0x2005", "--pool", "tenants", "--pkey", "0x2006", "--add", "node0004").expect(1)
        s.post(PKEYS, {"pkey": "0x2005", "guids": [a]}).expect(200)
        s.lease("edit", "rest:0x2005", "--pool", "tenants", "--add", "node0004").expect(0)
        # of another client
        s.post("/ufmRestV3/resources/pkeys", {"pkey": "0x1001", "guids": [a]}, headers=SLURM).expect(200)
        s.post(PKEYS, {"pkey": "0x1001", "guids": [a]}).expect(409)
        s.post(REMOVE, {"pkey": "0x1001", "guids": [a]}).expect(409)
        s.door.request("DELETE", PKEYS + "/0x1001").expect(404)
        check_equal(list(s.door.get("/ufmRestV3/resources/pkeys", headers=SLURM)), ["0x1001", "0x7fff"], "partitions of the other client")
        shown = s.lease("show", "rest:0x2001").expect(0).json()["lease"]
        check_equal((shown["owner"], shown["pkey"], shown["open"]), ("rest:kube", "0x2001", True), shown)
        text = s.door.text()
        check("client kube at 127.0.0.1: add P_Key 0x2002: conflict: " in text, text)


def test_delete_from_mute():
    """A port that does not answer may hold the P_Key: the partition is gone for clients, and its P_Key is not handed out."""
    with Scene(more="limits: {time: 60s}\n") as s:
        s.post(PKEYS, {"pkey": "0x2001", "guids": [s.guids["node0002"]]}).expect(200)
        s.wait_holders(0x2001, ["node0002"])
        s.fabric.lose("node0002", 100)
        s.door.request("DELETE", PKEYS + "/0x2001").expect(200)
        check("0x2001" not in s.door.get(PKEYS), "it is listed")
        s.post(PKEYS, {"pkey": "0x2001", "guids": [s.guids["node0001"]]}).expect(409, "being released")
        s.post(PKEYS, {"pkey": "0x2002", "guids": [s.guids["node0001"]]}).expect(200)
        s.fabric.lose("node0002", 0)
        s.fabric.pkeyctl("reload", **s.bus.environment()).expect(0, 3)
        wait_for(lambda: s.post(PKEYS, {"pkey": "0x2001", "guids": [s.guids["node0001"]]}).status == 200, "the P_Key to be free")


def test_pkeyd_killed():
    """While clients change partitions, pkeyd is killed again and again: what was answered with 200 is there."""
    with Scene(more="limits: {requests: 10000}\n") as s:
        stored, statuses, eras = {}, set(), [0]  # statuses: of requests that began in an era
        stop = threading.Event()

        def work(number):
            i = 0
            while not stop.is_set():
                i += 1
                era, guid, pkey = eras[0], "%016x" % (0xA00000000000 + number * 1000 + i), "0x%x" % (0x2000 + number)
                try:
                    r = s.post(PKEYS, {"pkey": pkey, "guids": [guid]})
                except OSError:
                    continue
                statuses.add((era, r.status))
                if r.status == 200:
                    stored.setdefault(pkey, set()).add(guid)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for n in range(3):
            before = sum(map(len, stored.values()))
            wait_for(lambda: sum(map(len, stored.values())) > before + 5, "changes to be stored")
            s.kill_daemon()
            eras[0] += 1
            wait_for(lambda: (eras[0], 503) in statuses, "a client to get 503")
            check((eras[0], 200) not in statuses, "200 without pkeyd", statuses)
            s.daemon = s.start_daemon()
        stop.set()
        for t in threads:
            t.join()
        for pkey, guids in stored.items():
            def answer(pkey=pkey):
                r = s.door.request("GET", "%s/%s?guids_data=true" % (PKEYS, pkey))
                return r.status == 200 and r

            listed = {g["guid"] for g in wait_for(answer, "the partition").json()["guids"]}
            check(guids <= listed, "answered with 200, and not there:", guids - listed)
        text = s.door.text()
        check(text.count("pkeyd answers again") >= 3, text[-3000:])
        check_equal(text.count("clients get 503 until it is"), text.count("pkeyd answers again"), "entries about pkeyd")


def test_bus_restarts():
    with Scene() as s:
        body = {"pkey": "0x2001", "guids": [s.guids["node0001"]]}
        s.post(PKEYS, body).expect(200)
        s.bus.stop()
        wait_for(lambda: s.post(PKEYS, body).status == 503, "503 without a bus")
        s.door.get("/ufmRest/app/ufm_version")
        s.bus.start()
        s.bus.wait_name()
        wait_for(lambda: s.post(PKEYS, body).status == 200, "the door to find the bus again")


def test_stop_and_time():
    """pkeyd does not answer: the client gets 503 in time. SIGTERM waits for running requests."""
    with Scene(more="limits: {time: 5s}\n") as s:
        s.daemon.process.send_signal(signal.SIGSTOP)
        body = {"pkey": "0x2001", "guids": [s.guids["node0001"]]}
        s.post(PKEYS, body).expect(503, '"pkeyd did not answer in time"')
        s.daemon.process.send_signal(signal.SIGCONT)
        check_equal(s.members("0x2001"), None, "members: the change was not sent to pkeyd yet, and nobody waits for it")
        s.post(PKEYS, body).expect(200)
        s.daemon.process.send_signal(signal.SIGSTOP)
        waits, idle = s.door.connect(), s.door.connect()
        waits.request("GET", PKEYS, headers=KUBE)
        s.door.request("GET", "/ufmRest/app/ufm_version", connection=idle).expect(200)  # so the door has read the one before
        s.door.process.send_signal(signal.SIGTERM)
        check_equal(idle.sock.recv(1), b"", "an idle connection")
        s.daemon.process.send_signal(signal.SIGCONT)
        check(waits.getresponse().status in (200, 503), "a request that was under way is not answered")
        waits.close()
        check_equal(s.door.process.wait(timeout=PATIENCE), 0, "exit status")
        s.door = Door(s.fabric, s.bus)


def test_many_guids():
    """More than one entry of the journal, and more than one group for pkeyd."""
    with Scene() as s:
        guids = ["%016x" % (0xB00000000000 + i) for i in range(9000)]
        s.post(PKEYS, {"pkey": "0x2001", "guids": guids}).expect(200)
        check_equal(sorted(s.members("0x2001")), guids, "members")
        text = s.door.text()
        check_equal(text.count("add P_Key 0x2001: stored"), (9000 + 31) // 32, "entries")
        for guid in (guids[0], guids[31], guids[32], guids[-1]):
            check_equal(text.count("0x" + guid), 1, "entries with " + guid)
        s.post(REMOVE, {"pkey": "0x2001", "guids": guids}).expect(200)
        check_equal(s.members("0x2001"), None, "members")
        s.post(PKEYS, {"pkey": "0x2001", "guids": ["%016x" % (i + 1) for i in range(30000)]}).expect(400)


if __name__ == "__main__":
    main()
