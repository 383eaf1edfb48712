# SPDX-License-Identifier: GPL-2.0-or-later
"""Topology files for ibsim: two-level and three-level fat trees with names and GUIDs that tests can predict.

Run as a program it prints one:

    netfile.py two-level LEAVES SPINES HOSTS_PER_LEAF [HOST ...]
    netfile.py k-ary K                       three levels of switches with K ports: K^3/4 hosts, 5K^2/4 switches
    netfile.py cluster                       a director switch, NVIDIA's names, Aggregation Nodes, as ibnetdiscover prints them

The first switch of the file is a leaf, the first host is node0001. ibsim gives port p of a CA the GUID of its node plus
p, and a switch's port 0 the GUID of the switch.
"""

import sys

SWITCH_GUID = 0x0002C90300100000
HOST_GUID = 0x0002C90300800000


class Topology:
    gaps = True  # between the GUIDs of hosts

    def __init__(self, offset=0):
        self.offset = offset  # of all GUIDs
        self.switches = []  # (id, guid, description, number of ports, {port: (peer id, peer port)})
        self.hosts = []
        self._next_host = HOST_GUID + offset
        self._by_id = {}

    def add_switch(self, name, n_ports, description=None):
        guid = SWITCH_GUID + self.offset + 16 * len(self.switches)
        node = (name, guid, description or "MF0;%s:MQM8700/U1" % name, n_ports, {})
        self.switches.append(node)
        self._by_id[name] = node

    def add_host(self, node_id, description=None, n_ports=1):
        guid = self._next_host
        self._next_host += 16 if self.gaps else n_ports
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

    def peer(self, node_id, port=1):
        """(id, port) of the peer of this port."""
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


class Discovered(Topology):
    """A fabric in the format of ibnetdiscover. Adapters have consecutive GUIDs, which are also those of their first ports."""
    gaps = False

    def _end(self, node_id, port):
        """(quoted id, GUID of the port in parentheses, description)"""
        _, guid, description, _, _ = self._by_id[node_id]
        if any(node_id == switch[0] for switch in self.switches):
            return '"S-%016x"' % guid, "", description
        return '"H-%016x"' % guid, "(%x)" % (guid + port - 1), description

    def text(self):
        out = ["#\n# Topology file: generated on Fri Feb  3 09:32:51 2023\n#"]
        for node_id, guid, description, n_ports, links in self.switches:
            out.append("\nvendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x%x\nswitchguid=0x%x(%x)" % (guid, guid, guid))
            out.append('Switch\t%d "S-%016x"\t\t# "%s" enhanced port 0 lid 0 lmc 0' % (n_ports, guid, description))
            for port in sorted(links):
                peer, peer_guid, name = self._end(*links[port])
                out.append('[%d]\t%s[%d]%s \t\t# "%s" lid 0 4xHDR' % (port, peer, links[port][1], peer_guid, name))
        for node_id, guid, description, n_ports, links in self.hosts:
            out.append("\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x%x\ncaguid=0x%x" % (guid, guid))
            out.append('Ca\t%d "H-%016x"\t\t# "%s"' % (n_ports, guid, description))
            for port in sorted(links):
                peer, _, name = self._end(*links[port])
                out.append('[%d]%s \t%s[%d]\t\t# lid 0 lmc 0 "%s" lid 0 4xHDR' % (
                    port, self._end(node_id, port)[1], peer, links[port][1], name))
        return "\n".join(out) + "\n"


def cluster():
    """A fabric with features of real clusters: a director whose switches share one name, Aggregation Nodes at the last ports
    of switches, hosts with several adapters, adapters with several ports, and an adapter without a name."""
    topology = Discovered()
    leaves = ["leaf%02d" % (i + 1) for i in range(4)] + ["director1/L%02d" % (i + 1) for i in range(2)]
    spines = ["director1/S%02d" % (i + 1) for i in range(2)]
    for name in leaves + spines:
        chassis, _, board = name.partition("/")
        topology.add_switch(name, 41, "MF0;%s:%s/U1" % (chassis, "CS8500/" + board if board else "MQM8700"))
    free = {name: 1 for name in leaves + spines}

    def plug(a, port_a, b, port_b=None):
        if port_b is None:
            port_b, free[b] = free[b], free[b] + 1
        topology.link(a, port_a, b, port_b)

    def add(node_id, description, *where):
        topology.add_host(node_id, description, len(where))
        for port, leaf in enumerate(where):
            plug(node_id, port + 1, leaf)

    for i in range(12):
        for rail in range(2):
            add("n%d-%d" % (i, rail), "node%04d mlx5_%d" % (i + 1, rail), leaves[(i + 3 * rail) % 6])
    for i in range(4):
        add("s%d" % i, "storage-%02d HCA-1" % (i + 1), leaves[i], leaves[(i + 1) % 6])
    add("blank", "cache-01 mlx5_2 ", "leaf01")
    add("unnamed", "MT4123 ConnectX6   Mellanox Technologies", "leaf02")
    for name in leaves:
        topology.add_host("an-" + name, "Mellanox Technologies Aggregation Node")
        plug("an-" + name, 1, name, 41)
    for leaf in leaves:
        for spine in spines:
            port, free[leaf] = free[leaf], free[leaf] + 1
            plug(leaf, port, spine)
    return topology


def host_name(i):
    return "node%04d" % i


def two_level(leaves, spines, hosts_per_leaf, names=None, offset=0):
    """A leaf-spine fabric. names: the names of the hosts; default node0001, node0002, ..."""
    names = names or [host_name(i + 1) for i in range(leaves * hosts_per_leaf)]
    topology = Topology(offset)
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
    elif arguments == ["cluster"]:
        topology = cluster()
    else:
        sys.exit(__doc__)
    sys.stdout.write(topology.text())


if __name__ == "__main__":
    main(sys.argv[1:])
