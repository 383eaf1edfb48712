# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of UFM's REST API at pkeyd-rest: after each request, the list of partitions and all tables are as the requests so far
say. ib-kubernetes' plugin and UFM's Slurm integration run as their projects publish them; of other clients, tests/clients/*.json
has the requests, with the names of the files that send them."""

import contextlib
import json
import shutil

from harness import Daemon, Fabric, Skip, check, check_equal, main, program, read_file, seeded, two_level, wait_for
from oracle import Oracle, Policy, differences
from private_bus import Bus, require
from rest_clients import IbKubernetes, SecureDoor, UfmSlurm, colons, make_certificate, recorded

SETTINGS = "sweep_interval: 1s\ntimeout: 100ms\n"
POOLS = """pools:
  clients:
    pkeys: 0x1000-0x1fff
    ports: ALL_CAS
    lease: unlimited
    rest: 0s
    index0: true
    allow: "rest:client"
"""


def policy():
    return Policy().add("storage", 0x0011, {"ALL_CAS": "limited", "node0008": "full"})


class Site:
    """pkeyd and the door on a fabric, and what the clients should have made so far."""

    def __init__(self, fabric):
        require()
        fabric.settings(SETTINGS)
        fabric.write("partitions.yaml", policy().yaml() + POOLS)
        self.fabric, self.bus = fabric, Bus(fabric)
        self.pkeyd = Daemon(fabric, fabric.path("partitions.yaml"), environment=self.bus.environment())
        self.bus.wait_name()
        self.door = SecureDoor(fabric, self.bus)
        self.partitions = {}  # {base: {port GUID: (membership, index 0)}}
        self.away = set()     # port GUIDs of hosts without a cable

    def guid(self, node):
        return self.fabric.topology.port_guid(node)

    def hosts(self):
        return [node for node, *_ in self.fabric.topology.hosts]

    def add(self, base, guids, membership="full", index0=False):
        self.partitions.setdefault(base, {}).update((guid, (membership, index0)) for guid in guids)

    def remove(self, base, guids):
        members = self.partitions.get(base, {})
        for guid in guids:
            members.pop(guid, None)
        if not members:
            self.partitions.pop(base, None)

    # --- what is ---

    def listed(self):
        """The partitions as the door lists them, without the default partition."""
        answer = self.door.partitions()
        check_equal(answer.pop("0x7fff")["guids"], [], "members of the default partition that are listed")
        return {int(p_key, 16): {int(m["guid"], 16): (m["membership"], m["index0"]) for m in partition["guids"]}
                for p_key, partition in answer.items()}

    def wrong(self):
        """Differences between the tables of all ports and the partitions."""
        expected = policy()
        for base, members in self.partitions.items():
            expected.add("rest-%04x" % base, base, {"0x%016x" % guid: membership for guid, (membership, _) in members.items()})
        ports = self.fabric.tables()
        first = {guid: base for base, members in self.partitions.items() for guid, (_, index0) in members.items() if index0}
        return differences(Oracle(ports, self.guid(self.fabric.home)).tables(expected), ports) + [
            "%r: not 0x%04x at index 0" % (port, first.get(guid, 0x7FFF)) for guid, port in ports.items()
            if not port.table or port.table[0] & 0x7FFF != first.get(guid, 0x7FFF)] + [
            "0x%016x is not in the fabric" % guid for guid in map(self.guid, self.hosts())
            if (guid in ports) == (guid in self.away)]

    def check(self, what):
        check_equal(self.listed(), self.partitions, "partitions that are listed " + what)
        self.wait_tables(what)

    def wait_tables(self, what):
        last = []

        def is_right():
            last[:] = self.wrong()
            return not last

        try:
            wait_for(is_right, "the tables " + what)
        except AssertionError as e:
            raise AssertionError("%s:\n%s" % (e, "\n".join(last))) from None

    # --- what happens ---

    def unplug(self, node):
        self.fabric.console('Unlink "%s"' % node)
        self.away.add(self.guid(node))

    def plug(self, node):
        self.fabric.console('ReLink "%s"' % node)
        self.fabric.heavy_sweep()
        self.away.remove(self.guid(node))

    def stop(self):
        self.door.stop()
        check_equal(self.pkeyd.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + self.pkeyd.text())


@contextlib.contextmanager
def site_of(client=None):
    program("pkeyd-rest")
    if not shutil.which("openssl"):
        raise Skip("openssl is not installed (scripts/install-deps --test)")
    if client:
        client.require()
    with Fabric(two_level(2, 2, 4)) as fabric:
        site = Site(fabric)
        yield site
        site.stop()


# --- ib-kubernetes --------------------------------------------------------------------------------------------------------


def plugin(site, **more):
    environment = {"UFM_USERNAME": "client", "UFM_PASSWORD": site.door.password, "UFM_ADDRESS": "127.0.0.1",
                   "UFM_PORT": str(site.door.port), "UFM_HTTP_SCHEMA": "https", "UFM_CERTIFICATE": read_file(site.door.certificate)}
    return IbKubernetes(site.fabric, dict(environment, **more))


def check_plugin_list(site, client, what):
    check_equal(client.list(), {guid: base for base, members in site.partitions.items() for guid in members},
                "GUIDs in use, as the plugin lists them " + what)
    site.check(what)


def test_ib_kubernetes():
    """200 GUIDs, of ports and of virtual functions that no port has, while hosts lose and get back their cables."""
    rng = seeded(16)
    with site_of(IbKubernetes) as site:
        client = plugin(site)
        check_equal(client.call("validate"), {}, "Validate")
        hosts = site.hosts()
        guids = [site.guid(node) for node in hosts] + [0x0200000000000000 + i for i in range(200 - len(hosts))]
        rng.shuffle(guids)
        batches = [(rng.choice([0x1005, 0x1006]), guids[i:i + 20]) for i in range(0, len(guids), 20)]
        for i, (base, batch) in enumerate(batches):
            node = rng.choice(hosts[1:])
            site.unplug(node)
            client.add(base, batch)
            site.add(base, batch, index0=True)
            check_plugin_list(site, client, "without %s, after batch %d" % (node, i))
            site.plug(node)
            site.check("with %s, after batch %d" % (node, i))
        rng.shuffle(batches)
        for i, (base, batch) in enumerate(batches):
            node = rng.choice(hosts[1:])
            site.unplug(node)
            client.remove(base, batch)
            site.remove(base, batch)
            check_plugin_list(site, client, "without %s, %d batches removed" % (node, i + 1))
            site.plug(node)
            site.check("with %s, %d batches removed" % (node, i + 1))
        client.stop()


def test_ib_kubernetes_tries_again():
    """The daemon of ib-kubernetes repeats a call until it succeeds, also one whose answer it did not get."""
    with site_of(IbKubernetes) as site:
        client = plugin(site)
        pod = [0x0200000000000001]
        for _ in range(2):
            client.add(0x1005, pod)
            site.add(0x1005, pod, index0=True)
            check_plugin_list(site, client, "after an addition")
        for _ in range(2):
            client.remove(0x1005, pod)
            site.remove(0x1005, pod)
            check_plugin_list(site, client, "after a removal")
        client.add(0x1005, pod)
        site.add(0x1005, pod, index0=True)
        check_plugin_list(site, client, "after the partition was empty")
        client.stop()


def test_ib_kubernetes_is_refused():
    with site_of(IbKubernetes) as site:
        client = plugin(site)
        for call, words in ((("add", "0x2000", colons(1)), "400"), (("add", "0x7fff", colons(1)), "400"),
                            (("remove", "0x0011", colons(site.guid("node0002"))), "400")):
            check("status code " + words in client.call(*call).get("error", ""), call)
        client.stop()
        for more in ({"UFM_PASSWORD": "wrong"}, {"UFM_USERNAME": "nobody"}):
            client = plugin(site, **more)
            check("status code 401" in client.call("validate").get("error", ""), more)
            client.stop()
        client = plugin(site, UFM_CERTIFICATE=read_file(make_certificate(site.fabric, "other")[0]))
        check("certificate" in client.call("validate").get("error", ""), "the plugin trusts another certificate")
        client.stop()
        site.check("after requests that were refused")


# --- UFM's Slurm integration ----------------------------------------------------------------------------------------------


def integration(site, **more):
    return UfmSlurm(site.fabric, dict({"ufm_server": "127.0.0.1", "https_port": site.door.port, "auth_type": "token_auth",
                                       "token": site.door.token, "pkey_allocation_mode": "dynamic",
                                       "fail_slurm_job_upon_failure": 1}, **more))


def run_prolog(site, slurm, job, nodelist, nodes, index0=False):
    slurm.prolog(job, nodelist).expect(0)
    site.add(job % 0x7FFE, map(site.guid, nodes), index0=index0)
    site.check("while job %d runs; its log: %s" % (job, read_file(slurm.log)))


def run_epilog(site, slurm, job, nodelist, nodes):
    slurm.epilog(job, nodelist).expect(0)
    site.remove(job % 0x7FFE, map(site.guid, nodes))
    site.check("after job %d; its log: %s" % (job, read_file(slurm.log)))


def test_slurm_jobs():
    """Jobs beside each other, two of them with the same P_Key: its integration takes the remainder of the job's number."""
    with site_of(UfmSlurm) as site:
        slurm = integration(site)
        first, second, third = 0x1001, 0x1002, 0x1002 + 0x7FFE
        run_prolog(site, slurm, first, "node[0002-0003]", ["node0002", "node0003"])
        run_prolog(site, slurm, second, "node0004", ["node0004"])
        run_prolog(site, slurm, third, "node[0005,0006-0007]", ["node0005", "node0006", "node0007"])
        run_epilog(site, slurm, second, "node0004", ["node0004"])
        site.unplug("node0003")
        run_epilog(site, slurm, first, "node[0002-0003]", ["node0002", "node0003"])
        site.plug("node0003")
        site.check("when node0003 is back")
        run_epilog(site, slurm, third, "node[0005,0006-0007]", ["node0005", "node0006", "node0007"])
        run_epilog(site, slurm, third, "node[0005,0006-0007]", [])


def test_slurm_settings():
    """A password, a P_Key of its own, and index 0."""
    with site_of(UfmSlurm) as site:
        slurm = integration(site, auth_type="basic_auth", ufm_server_user="client", ufm_server_pass=site.door.password,
                            pkey_allocation_mode="static", pkey="0x1234", index0="true", ip_over_ib="false")
        slurm.prolog(7, "node[0002-0003]").expect(0)
        site.add(0x1234, map(site.guid, ["node0002", "node0003"]), index0=True)
        site.check("after a prolog")
        check_equal(site.door.partitions("/0x1234")["ip_over_ib"], False, "ip_over_ib")
        slurm.epilog(7, "node[0002-0003]").expect(0)
        site.remove(0x1234, map(site.guid, ["node0002", "node0003"]))
        site.check("after an epilog")


def test_slurm_is_refused():
    with site_of(UfmSlurm) as site:
        slurm = integration(site)
        slurm.prolog(0x1001, "node0002,node0999").expect(0)  # it does not check the answer, but it logs it
        check("node0999" in read_file(slurm.log) and "400" in read_file(slurm.log), read_file(slurm.log))
        slurm.prolog(1, "node0002").expect(0)  # 0x1 is not in the pool
        slurm.configure({"token": "client.wrong"})
        slurm.prolog(0x1001, "node0002").expect(1)
        site.check("after requests that were refused")


# --- requests of others ---------------------------------------------------------------------------------------------------


def is_as_recorded(got, wanted):
    """"*" stands for anything."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and all(is_as_recorded(got[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(is_as_recorded, got, wanted))
    return wanted == "*" or (got == wanted and isinstance(got, bool) == isinstance(wanted, bool))


def test_comparison():
    check(is_as_recorded({"a": [1, {"b": 2.5}]}, {"a": ["*", {"b": 2.5}]}), "an answer as recorded")
    others = (({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {"a": 1, "b": 2}), ([1, 2], [1]), (1, True), ("1", 1), (None, {}), ({}, []))
    for got, wanted in others:
        check(not is_as_recorded(got, wanted), "an answer that differs:", got, wanted)


def check_answer(request, answer):
    if "answer" in request:
        check(is_as_recorded(answer, request["answer"]), request, "got", json.dumps(answer))
    if "answer_has" in request:
        wanted = request["answer_has"]
        check(any(is_as_recorded({k: a.get(k) for k in wanted}, wanted) for a in answer), request, "got", json.dumps(answer))


def play(name):
    """Sends the recorded requests of a client."""
    with site_of() as site:
        client = recorded(name, {node: (site.guid(node), site.fabric.topology.guid(node)) for node in site.hosts()})
        credential = {"token": {"Authorization": "Basic " + site.door.token}, "password": site.door.basic}[client["authorization"]]
        for request in client["requests"]:
            answer = site.door.request(request["method"], client["prefix"] + request["path"], request.get("body"),
                                       dict(client["headers"], **credential))
            check_equal(answer.status, request.get("status", 200), "status of %s: %s" % (request, answer))
            check_answer(request, answer.json())
            if "members" in request:
                site.partitions = {int(p_key, 16): {site.guid(node): tuple(member) for node, member in members.items()}
                                   for p_key, members in request["members"].items()}
                site.check("after %s" % request)


def test_nico():
    play("nico.json")


def test_nv_config_manager():
    play("nv-config-manager.json")


def test_networking_mlnx_baremetal():
    play("networking-mlnx-baremetal.json")


if __name__ == "__main__":
    main()
