# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes the expected tables of a policy independently of pkeyd, in the simplest way.

A policy here is a Python object that can write itself as partitions.yaml. It is resolved by checking each line for each port;
this is slow on purpose.
"""

import fnmatch
import itertools
import re

ALL, TYPE, GROUP, HOST, DEVICE, DEVICE_PORT, SWITCH_PORT, GUID = range(8)
TYPES = {"ALL_CAS": 1, "ALL_SWITCHES": 2, "ALL_ROUTERS": 3}


class Ambiguous(Exception):
    pass


def split_commas(text):
    """Splits at commas that are not within brackets."""
    return [part for part in re.split(r",(?![^\[]*\])", text) if part]


def expand_hostlist(text):
    """node[01-03,7] -> node01 node02 node03 node7"""
    match = re.search(r"\[([^\]]*)\]", text)
    if not match:
        return [text]
    numbers = []
    for part in match.group(1).split(","):
        first, _, last = part.partition("-")
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last or first) + 1)]
    tails = expand_hostlist(text[match.end():])
    return [text[:match.start()] + n + t for n in numbers for t in tails]


def numbers_of(text):
    """1-3,7 -> {1, 2, 3, 7}"""
    out = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


class Policy:
    def __init__(self):
        self.groups = {}      # name: [selector, ...]
        self.partitions = {}  # name: {"pkey": base, "members": [(selector, membership)], "index0": bool}
        self.owns = None
        self.strict = False

    def copy(self):
        other = Policy()
        other.groups = {k: list(v) for k, v in self.groups.items()}
        other.partitions = {k: dict(v, members=list(v["members"])) for k, v in self.partitions.items()}
        other.owns, other.strict = self.owns, self.strict
        return other

    def add(self, name, base, members, **more):
        self.partitions[name] = dict(more, pkey=base, members=list(members.items() if isinstance(members, dict) else members))
        return self

    def yaml(self):
        out = ["version: 1"]
        if self.strict:
            out.append("strict: true")
        if self.owns:
            out.append("owns: [%s]" % ", ".join(self.owns))
        if self.groups:
            out.append("groups:")
            for name, selectors in self.groups.items():
                out.append("  %s:" % name)
                out.extend('    - "%s"' % s for s in selectors)
        if self.partitions:
            out.append("partitions:")
        for name, partition in self.partitions.items():
            out += ["  %s:" % name, "    pkey: 0x%04x" % partition["pkey"]]
            if "index0" in partition:
                out.append("    index0: %s" % str(partition["index0"]).lower())
            out.append("    members:" if partition["members"] else "    members: {}")
            out.extend('      "%s": %s' % line for line in partition["members"])
        return "\n".join(out) + "\n"


class Oracle:
    """ports: {GUID: harness.Port}; self_guid: the port pkeyd works through; sm_guid: the master SM's."""

    def __init__(self, ports, self_guid, sm_guid=None, switches=None):
        self.ports, self.self_guid, self.sm_guid = ports, self_guid, sm_guid or self_guid
        self.switch_names = {p.node: switch_name(p.description) for p in ports.values() if p.type == 2}

    def memberships(self, policy):
        """{port GUID: {base: membership}}"""
        out = {guid: {} for guid in self.ports}
        partitions = dict(policy.partitions)
        if not any(p["pkey"] == 0x7FFF for p in partitions.values()):
            partitions["default"] = {"pkey": 0x7FFF, "members": []}
        for partition in partitions.values():
            for guid, port in self.ports.items():
                membership = self.decide(policy, partition["members"], port)
                if partition["pkey"] == 0x7FFF:
                    membership = "full" if guid in (self.self_guid, self.sm_guid) else membership or "limited"
                if membership and membership != "none":
                    out[guid][partition["pkey"]] = membership
        return out

    def tables(self, policy):
        """{port GUID: sorted P_Keys}, without indexes."""
        keys = {"full": [0x8000], "limited": [0], "both": [0, 0x8000]}
        return {guid: sorted(base | bit for base, m in bases.items() for bit in keys[m])
                for guid, bases in self.memberships(policy).items()}

    def decide(self, policy, members, port):
        found = {}
        for text, membership in members:
            level = max((s for s in (self.match(policy, part, port) for part in split_commas(text)) if s is not None),
                        default=None)
            if level is not None:
                found.setdefault(level, set()).add(membership)
        if not found:
            return None
        if len(found[max(found)]) > 1:
            raise Ambiguous(port)
        return found[max(found)].pop()

    def match(self, policy, text, port):
        """The specificity with which a selector matches a port; None if it does not match."""
        level, matches = self.look(policy, text, port)
        return level if matches else None

    def look(self, policy, text, port):
        if text == "ALL":
            return ALL, True
        if text in TYPES:
            return TYPE, port.type == TYPES[text]
        if text == "SELF":
            return GUID, port.guid == self.self_guid
        if text in policy.groups:
            parts = itertools.chain.from_iterable(map(split_commas, policy.groups[text]))
            return GROUP, any(self.match(policy, part, port) is not None for part in parts)
        if text.startswith("0x"):
            return GUID, int(text, 16) in (port.guid, port.node)
        if text.startswith("@"):
            name, _, numbers = text[1:].partition("/")
            there = port.switch is not None and (
                self.switch_names.get(port.switch) == name or (name.startswith("0x") and int(name, 16) == port.switch))
            if not numbers:
                return HOST, there
            return SWITCH_PORT, there and port.switch_port in numbers_of(numbers.strip("[]"))
        host, *rest = text.split("/")
        names = port.type == 1 and is_host(port) and any(fnmatch.fnmatchcase(port.name, h) for h in expand_hostlist(host))
        if len(rest) == 2:
            return DEVICE_PORT, names and port.device == rest[0] and port.number == int(rest[1])
        if rest:
            return DEVICE, names and port.device == rest[0]
        return HOST, names


def is_host(port):
    """A CA inside a switch is an endport, but not a host."""
    return port.description != "Mellanox Technologies Aggregation Node"


def switch_name(description):
    match = re.match(r"MF0;([^:;]+):", description)
    return match.group(1) if match else (description.split() or [""])[0]


def differences(expected, ports):
    """The differences between the read and the expected tables; duplicate entries are differences."""
    read = {guid: None if port.table is None else port.keys() for guid, port in ports.items()}
    return ["%r: expected %s, read %s" % (ports[guid], words(keys), words(read[guid])) for guid, keys in expected.items() if read[guid] != keys]


def words(keys):
    return "nothing" if keys is None else " ".join("%04x" % k for k in keys)


class Generator:
    """Random policies over the hosts node0001..nodeNNNN of a two-level fabric, and random edits of them."""

    def __init__(self, rng, ports, max_partitions=8):
        self.rng, self.max_partitions = rng, max_partitions
        self.hosts = sorted(p.name for p in ports.values() if p.type == 1)
        self.guids = [p.guid for p in ports.values() if p.type == 1]
        self.leaves = sorted({p.switch for p in ports.values() if p.switch})
        self.names = {p.node: switch_name(p.description) for p in ports.values() if p.type == 2}
        self.n = 0

    def selector(self, groups):
        rng = self.rng
        host = rng.choice(self.hosts)
        stem, width = host.rstrip("0123456789"), len(host) - len(host.rstrip("0123456789"))
        first = rng.randint(1, len(self.hosts))
        last = rng.randint(first, len(self.hosts))
        leaf = rng.choice(self.leaves)
        choices = [
            "%s[%0*d-%0*d]" % (stem, width, first, width, last),
            host,
            host[:-1] + rng.choice("?*"),
            host + "/mlx5_0",
            host + "/mlx5_0/1",
            "0x%016x" % rng.choice(self.guids),
            "@" + self.names[leaf],
            "@%s/%d-%d" % (self.names[leaf], 1, rng.randint(1, 4)),
            "@0x%016x/%d" % (leaf, rng.randint(1, 4)),
            "ALL_CAS",
            "SELF",
        ]
        return rng.choice(choices + [rng.choice(groups)] * 3 if groups else choices)

    def members(self, groups):
        lines = {}
        for _ in range(self.rng.randint(1, 5)):
            lines[self.selector(groups)] = self.rng.choice(["full", "full", "limited", "limited", "both", "none"])
        return list(lines.items())

    def policy(self):
        policy = Policy()
        for i in range(self.rng.randint(0, 3)):
            policy.groups["group%d" % i] = [self.selector(list(policy.groups)) for _ in range(self.rng.randint(1, 3))]
        for _ in range(self.rng.randint(1, self.max_partitions)):
            self.add_partition(policy)
        return policy

    def add_partition(self, policy):
        used = {p["pkey"] for p in policy.partitions.values()}
        base = self.rng.choice([b for b in range(0x10, 0x40) if b not in used])
        self.n += 1
        policy.add("p%d" % self.n, base, self.members(list(policy.groups)))

    def edit(self, policy):
        policy = policy.copy()
        for _ in range(self.rng.randint(1, 4)):
            names = list(policy.partitions)
            what = self.rng.random()
            if what < 0.25 and len(names) < self.max_partitions:
                self.add_partition(policy)
            elif what < 0.4 and len(names) > 1:
                del policy.partitions[self.rng.choice(names)]
            else:
                policy.partitions[self.rng.choice(names)]["members"] = self.members(list(policy.groups))
        return policy

    def unambiguous(self, oracle, make):
        """Calls make() until no port is matched by two equally specific lines that disagree."""
        while True:
            policy = make()
            try:
                oracle.tables(policy)
                return policy
            except Ambiguous:
                pass
