# SPDX-License-Identifier: GPL-2.0-or-later
"""Topologies in the format of ibnetdiscover, in ibsim with OpenSM: a generated one with the features of real clusters, and
those of real clusters in the directory PKEYD_TOPOLOGIES."""

import glob
import os
import re
import tempfile

import netfile
from harness import SOURCE, Fabric, Skip, check, check_equal, main
from oracle import Oracle, Policy, differences

TOPOLOGIES = os.environ.get("PKEYD_TOPOLOGIES") or os.path.join(SOURCE, "..", "shared", "topologies")


def first_host(path):
    with open(path, errors="replace") as f:
        for line in f:
            match = re.match(r'Ca\s+\d+\s+"([^"]+)"\s+#\s+"(\S+) \S+"', line)
            if match and not match.group(2).startswith("Mellanox"):
                return match.group(1)
    raise Skip("no host in " + path)


def policy_for(ports):
    """Half of the hosts in one partition, storage-like names in another, one leaf's hosts, a GUID."""
    hosts = sorted({p.name for p in ports.values() if p.type == 1 and not p.description.startswith("Mellanox")})
    some = [h for h in hosts if re.fullmatch(r"[\w.-]+", h)]
    device = next(p.device for p in ports.values() if p.name == some[0])
    nodes = {p.node for p in ports.values()}  # ibsim gives a port a GUID that may be that of the next node
    guid = min(p.guid for p in ports.values() if p.type == 1 and p.guid not in nodes)
    policy = Policy()
    policy.groups["half"] = some[:max(1, len(some) // 2)]
    policy.add("half", 0x0100, {"half": "full", some[-1]: "limited"})
    policy.add("stars", 0x0200, {some[0][0] + "*": "limited", "0x%016x" % guid: "full"})
    policy.add("devices", 0x0300, {some[0] + "/" + device: "both", "ALL_CAS": "limited"})
    return policy


def run_on(path):
    home = first_host(path)
    with Fabric(path, home=home, simulator_options=["-N", "8192", "-S", "1024", "-P", "131072"]) as fabric:
        ports = fabric.tables()
        policy = policy_for(ports)
        self_guid = next(p.guid for p in ports.values() if p.type == 1 and "%x" % p.node == home[2:].lstrip("0"))
        file = fabric.write("partitions.yaml", policy.yaml())
        fabric.apply(file).expect(0)
        after = fabric.tables()
        check_equal(set(after), set(ports), "endports")
        check_equal(differences(Oracle(after, self_guid).tables(policy), after), [],
                    "tables that are not what the policy says")
        fabric.pkeyctl("verify", file).expect(0)
        check_equal(fabric.pkeyctl("plan", file, "--json").expect(0).json()["changes"], 0, "changes pending")
        print("%s: %d endports, home %s" % (os.path.basename(path), len(after), home))
        check(len(after) > 3, "that is no fabric")


def topologies():
    """Yields paths of files, each of which exists until the next one is generated."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "cluster.net")
        netfile.cluster().write(path)
        yield path
    yield from sorted(glob.glob(os.path.join(TOPOLOGIES, "*.net")))


def test_topologies():
    for path in topologies():
        run_on(path)


if __name__ == "__main__":
    main()
