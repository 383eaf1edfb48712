# SPDX-License-Identifier: GPL-2.0-or-later
"""Topology files for ibsim: two-level and three-level fat trees with names and GUIDs that tests can predict.

Run as a program it prints one:

    netfile.py two-level LEAVES SPINES HOSTS_PER_LEAF [HOST ...]
    netfile.py k-ary K                       three levels of switches with K ports: K^3/4 hosts, 5K^2/4 switches

The first switch of the file is a leaf, the first host is node0001. ibsim gives port p of a CA the GUID of its node plus
p, and a switch's port 0 the GUID of the switch.
"""

import sys

SWITCH_GUID = 0x0002C90300100000
HOST_GUID = 0x0002C90300800000


class Topology:
    def __init__(self):
        self.switches = []  # (id, guid, description, number of ports, {port: (peer id, peer port)})
        self.hosts = []
        self._by_id = {}

    def add_switch(self, name, n_ports, description=None):
        guid = SWITCH_GUID + 16 * len(self.switches)
        node = (name, guid, description or "MF0;%s:MQM8700/U1" % name, n_ports, {})
        self.switches.append(node)
        self._by_id[name] = node

    def add_host(self, node_id, description=None, n_ports=1):
        guid = HOST_GUID + 16 * len(self.hosts)
        node = (node_id, guid, description or "%s mlx5_0" % node_id, n_ports, {})
        self.hosts.append(node)
        self._by_id[node_id] = node

    def link(self, a, port_a, b, port_b):
        self._by_id[a][4][port_a] = (b, port_b)
        self._by_id[b][4][port_b] = (a, port_a)

    def guid(self, node_id):
        return self._by_id[node_id][1]

    def port_guid(self, node_id, port=1):
        return self._by_id[node_id][1] + port

    def neighbour(self, node_id, port=1):
        """(id, port) of what is plugged into this port."""
        return self._by_id[node_id][4][port]

    def text(self):
        out = []
        for kind, nodes, key in (("Switch", self.switches, "switchguid"), ("Hca", self.hosts, "caguid")):
            for node_id, guid, description, n_ports, links in nodes:
                out.append("%s=0x%016x" % (key, guid))
                out.append('%s %d "%s"\t# "%s"' % (kind, n_ports, node_id, description))
                out.extend('[%d]\t"%s"[%d]\t# lid 0 4xEDR' % (port, *links[port]) for port in sorted(links))
                out.append("")
        return "\n".join(out) + "\n"

    def write(self, path):
        with open(path, "w") as f:
            f.write(self.text())


def host_name(i):
    return "node%04d" % i


def two_level(leaves, spines, hosts_per_leaf, names=None):
    """A leaf-spine fabric. names: what the hosts are called; default node0001, node0002, ..."""
    names = names or [host_name(i + 1) for i in range(leaves * hosts_per_leaf)]
    topology = Topology()
    for leaf in range(leaves):
        topology.add_switch("leaf%02d" % (leaf + 1), hosts_per_leaf + spines)
    for spine in range(spines):
        topology.add_switch("spine%02d" % (spine + 1), leaves)
    for i, name in enumerate(names):
        topology.add_host(name)
        topology.link(name, 1, "leaf%02d" % (i // hosts_per_leaf + 1), i % hosts_per_leaf + 1)
    for leaf in range(leaves):
        for spine in range(spines):
            topology.link("leaf%02d" % (leaf + 1), hosts_per_leaf + spine + 1, "spine%02d" % (spine + 1), leaf + 1)
    return topology


def k_ary(k):
    """The three-level fat tree of k-port switches: k pods of k/2 leaf and k/2 middle switches, (k/2)^2 on top."""
    half = k // 2
    topology = Topology()
    for pod in range(k):
        for i in range(half):
            topology.add_switch("leaf%02d-%02d" % (pod + 1, i + 1), k)
    for pod in range(k):
        for i in range(half):
            topology.add_switch("mid%02d-%02d" % (pod + 1, i + 1), k)
    for i in range(half * half):
        topology.add_switch("top%03d" % (i + 1), k)
    for pod in range(k):
        for i in range(half):
            leaf = "leaf%02d-%02d" % (pod + 1, i + 1)
            for j in range(half):
                name = host_name((pod * half + i) * half + j + 1)
                topology.add_host(name)
                topology.link(name, 1, leaf, j + 1)
                topology.link(leaf, half + j + 1, "mid%02d-%02d" % (pod + 1, j + 1), i + 1)
                topology.link("mid%02d-%02d" % (pod + 1, i + 1), half + j + 1, "top%03d" % (i * half + j + 1), pod + 1)
    return topology


def main(arguments):
    if len(arguments) >= 4 and arguments[0] == "two-level":
        topology = two_level(*map(int, arguments[1:4]), names=arguments[4:])
    elif len(arguments) == 2 and arguments[0] == "k-ary":
        topology = k_ary(int(arguments[1]))
    else:
        sys.exit(__doc__)
    sys.stdout.write(topology.text())


if __name__ == "__main__":
    main(sys.argv[1:])
