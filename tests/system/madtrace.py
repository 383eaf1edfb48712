# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the traces of madtrace-preload.so and checks the promises.

The model: every endport has the set of tables that it may hold at a given line of the trace. A SubnSet without an answer
doubles the set (the write may have arrived or not), its answer reduces it again. The promises must hold for all tables that
the ports may have, at every line.
"""

import os

GET, SET, GET_RESP = 0x01, 0x02, 0x81
P_KEY_TABLE = 0x16


class Mad:
    def __init__(self, line):
        way, method, attribute, modifier, tid, lid, status, path, data = line.split()
        self.sent = way == ">"
        self.method, self.attribute = int(method, 16), int(attribute, 16)
        self.modifier, self.tid, self.lid, self.status = (int(x, 16) for x in (modifier, tid, lid, status))
        self.path, self.data = path, bytes.fromhex(data)

    @property
    def block(self):
        return self.modifier & 0xFFFF

    @property
    def switch_port(self):
        return self.modifier >> 16

    def entries(self):
        return [self.data[2 * i] << 8 | self.data[2 * i + 1] for i in range(32)]

    def __repr__(self):
        return "<%s %02x attr %02x mod %x lid %d>" % (">" if self.sent else "<", self.method, self.attribute, self.modifier,
                                                     self.lid)


def read(path):
    """All MADs of a trace, but for one that is being written; a missing file is empty."""
    try:
        with open(path) as f:
            return [Mad(line) for line in f if line.count(" ") == 8 and line.endswith("\n")]
    except FileNotFoundError:
        return []


class Follower:
    """Reads a trace with MADTRACE_TIMES while it grows."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def read(self):
        """The MADs since the last time, each with its `time`."""
        if not os.path.exists(self.path):
            return []
        with open(self.path) as f:
            f.seek(self.offset)
            text = f.read()
        text = text[:text.rfind("\n") + 1]
        self.offset += len(text)
        mads, time = [], 0
        for line in text.splitlines():
            if line.startswith("t "):
                time = int(line[2:])
            elif line.count(" ") == 8:
                mads.append(Mad(line))
                mads[-1].time = time
        return mads


def m_keys(path):
    """(management class, attribute, M_Key) of all MADs sent with MADTRACE_M_KEYS, without those that were sent again."""
    with open(path) as f:
        return [tuple(int(x, 16) for x in line.split()[1:4]) for line in dict.fromkeys(f) if line.startswith("k ")]


def p_key_sets(mads):
    return [m for m in mads if m.sent and m.method == SET and m.attribute == P_KEY_TABLE]


def all_sets(mads):
    return [m for m in mads if m.sent and m.method == SET]


def levels(table):
    """{base: 1 limited, 2 full}"""
    level = {}
    for key in table:
        if key & 0x7FFF:
            level[key & 0x7FFF] = max(level.get(key & 0x7FFF, 0), 2 if key & 0x8000 else 1)
    return level


def may_talk(a, b):
    return a and b and a + b >= 3


class Promises:
    """Replays a trace. before and after: {LID: table} of all endports at both ends of the run; wanted: {LID: P_Keys}, the
    expected result; self_lid: the port that sent the trace, to which MADs have no hop."""

    def __init__(self, before, after, wanted, self_lid):
        self.self_lid = self_lid
        self.possible = {lid: [list(t)] for lid, t in before.items()}
        self.asked = {}
        self.a = {lid: levels(t) for lid, t in before.items()}
        self.b = {lid: levels(t) for lid, t in wanted.items()}
        self.level_sets = {lid: [levels(t)] for lid, t in before.items()}
        self.stays = {lid: set(before[lid]) & set(wanted[lid]) - {0} for lid in before}
        self.after = after
        self.broken = []
        self.n_sets = 0
        self.seen = {lid: {i for i, k in enumerate(t) if k & 0x7FFF} for lid, t in before.items()}

    def replay(self, mads):
        for mad in mads:
            if mad.attribute != P_KEY_TABLE:
                continue
            if mad.path == "00":
                mad.lid = self.self_lid
            if mad.sent:
                self.asked[mad.tid] = mad.lid
                if mad.method == SET:
                    self._sent(mad)
            elif mad.method == GET_RESP and mad.status == 0 and mad.tid in self.asked:
                self._answered(mad, self.asked[mad.tid])
        for lid, table in self.after.items():
            if list(table) not in self.possible[lid]:
                self.broken.append("LID %d: the trace does not end in the tables that are there" % lid)
        return self.broken

    def _sent(self, mad):
        """The write may have arrived or not."""
        self.n_sets += 1
        for table in list(self.possible[mad.lid]):
            first = 32 * mad.block
            written = table[:first] + mad.entries()[:max(0, len(table) - first)]
            written += table[len(written):]
            for index, (old, new) in enumerate(zip(table, written)):
                self._index(mad.lid, index, old, new)
            if written not in self.possible[mad.lid]:
                self.possible[mad.lid].append(written)
        self._check(mad.lid, self._update(mad.lid))

    def _answered(self, mad, lid):
        """An answer to a Get or a Set has the contents of the block."""
        first = 32 * mad.block
        n = len(self.possible[lid][0])
        held = mad.entries()[:max(0, n - first)]
        possible = [t for t in self.possible[lid] if t[first:first + len(held)] == held]
        if not possible:
            self.broken.append("LID %d block %d holds what nobody wrote" % (lid, mad.block))
            return
        self.possible[lid] = possible
        for index, key in enumerate(held, first):
            if key & 0x7FFF:
                self.seen[lid].add(index)
        self._update(lid)

    def _update(self, lid):
        self.level_sets[lid] = [levels(t) for t in self.possible[lid]]
        return {b for ls in self.level_sets[lid] for b in ls} | set(self.a[lid]) | set(self.b[lid])

    def _index(self, lid, index, old, new):
        """Stability: entries in A and B keep their index, and no index passes to another base while an unused one is left."""
        old_base, new_base = old & 0x7FFF, new & 0x7FFF
        if old_base == new_base:
            return
        if old_base and new_base:
            self.broken.append("LID %d index %d went from base %04x to %04x in one write" % (lid, index, old_base, new_base))
        if old in self.stays[lid]:
            self.broken.append("LID %d index %d lost %04x, which stays" % (lid, index, old))
        unused = len(self.after[lid]) - len(self.seen[lid])
        if new_base and index in self.seen[lid] and unused:
            self.broken.append("LID %d index %d was used again for %04x while %d were unused" % (lid, index, new_base, unused))

    def _check(self, lid, bases):
        for other in self.possible:
            if other == lid:
                continue
            for base in bases:
                self._check_pair(lid, other, base)

    def _check_pair(self, p, q, base):
        in_a = may_talk(self.a[p].get(base, 0), self.a[q].get(base, 0))
        in_b = may_talk(self.b[p].get(base, 0), self.b[q].get(base, 0))
        if bool(in_a) != bool(in_b):
            return
        for x in self.level_sets[p]:
            for y in self.level_sets[q]:
                if bool(may_talk(x.get(base, 0), y.get(base, 0))) != bool(in_a):
                    self.broken.append("%s broken: LIDs %d and %d, base %04x" % (
                        "continuity" if in_a else "isolation", p, q, base))
                    return


PHASES = ("revoke", "raise", "lower", "grant")


def phase_of(base, before, after):
    """The phase in which an entry of this base changes on a port with the tables `before` and `after`."""
    a, b = levels(before).get(base, 0), levels(after).get(base, 0)
    if not b:
        return "revoke"
    if not a:
        return "grant"
    if a != b:
        return "raise" if b > a else "lower"
    return None


def least_sets(before, after):
    """The number of SubnSets between two sets of tables, {LID: table}: the changed blocks of each phase. An index that passes
    from one base to another changes twice."""
    writes = set()
    for lid, old_table in before.items():
        for index, (old, new) in enumerate(zip(old_table, after[lid])):
            if old == new:
                continue
            for base, gone in ((old & 0x7FFF, True), (new & 0x7FFF, False)):
                if base and not (gone and base == new & 0x7FFF):
                    phase = phase_of(base, old_table, after[lid]) or ("revoke" if gone else "grant")
                    writes.add((lid, index // 32, phase))
    return len(writes)
