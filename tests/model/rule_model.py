# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule of src/knowledge/rule.h, as short as possible, for comparison with the C code.

For one base. A level is 0 (none), 1 (limited) or 2 (full). Knowledge of a level is a pair (has, may): the level is at least
`has` and at most `may`.
"""

from collections import namedtuple

NONE, LIMITED, FULL, UNKNOWN, UP_TO_LIMITED, FROM_LIMITED = range(6)
RANGES = {UNKNOWN: (NONE, FULL), UP_TO_LIMITED: (NONE, LIMITED), FROM_LIMITED: (LIMITED, FULL)}  # only of a policy
THERE, ABSENT, EXPIRED = range(3)
READ, READ_SENT, BEFORE, BEFORE_SENT, NEVER, VOUCHED, UNFOLLOWED, NO_TABLE = range(8)
BY_LEVEL, BY_BASE = range(2)
SENDS, RECEIVES = range(2)

Other = namedtuple("Other", "policy has may is_absent")
Table = namedtuple("Table", "kind level sent")
# filters: of what the host sends, of what it receives; unsure: a write of these bits was not confirmed
Host = namedtuple("Host", "policy presence table leaf filters unsure")


def talk(x, y):
    return min(x, y) > NONE and max(x, y) == FULL


def least(policy):
    return RANGES.get(policy, (policy, policy))[0]


def most(policy):
    return RANGES.get(policy, (policy, policy))[1]


def surely_wanted(x, y):
    """Does the policy certainly let them talk, with any level of its range?"""
    return talk(least(x), least(y))


def perhaps_wanted(x, y):
    return talk(most(x), most(y))


def gains(policy, before, after, other):
    """Could the write let this pair talk, although it may not and does not certainly talk already?"""
    certain = not other.is_absent and talk(before[0], other.has)
    return after[1] > before[1] and talk(after[1], other.may) and not surely_wanted(policy, other.policy) and not certain


def loses(policy, before, after, other):
    """Could the write cut off a pair that may talk, and may be talking? Absent ports talk to no port."""
    lowers = after[0] < before[0] or after[1] < before[1]
    return (lowers and not other.is_absent and perhaps_wanted(policy, other.policy) and talk(before[1], other.may)
            and not talk(after[0], other.has))


def admits(policy, before, after, others):
    return not any(gains(policy, before, after, o) or loses(policy, before, after, o) for o in others)


def table_bounds(table, instead=None):
    """The bounds of a table; `instead`: after this write, if it arrived."""
    if table.kind == VOUCHED:
        return (NONE, NONE)
    if table.kind in (NEVER, UNFOLLOWED):
        return (NONE, FULL)
    levels = [table.level] + [table.sent] * (table.kind in (READ_SENT, BEFORE_SENT))
    if instead is not None:
        levels = [instead]
    return (min(levels) if table.kind in (READ, READ_SENT) else NONE, max(levels))


def host_bounds(host, model, direction, instead=None, is_leaf=False):
    """The bounds of a host for others in this direction, behind the filter of its switch. An absent host may return
    elsewhere."""
    own = table_bounds(host.table, None if is_leaf else instead)
    if host.presence == EXPIRED:
        return (NONE, NONE)
    if host.presence == ABSENT:
        return (NONE, own[1])
    if host.leaf.kind == NO_TABLE:
        return own
    leaf = table_bounds(host.leaf, instead if is_leaf else None)
    behind = tuple((min(x, y) if model == BY_LEVEL else x if y else NONE) for x, y in zip(own, leaf))
    if host.unsure:
        return (behind[0], own[1])
    return behind if host.filters[direction] else own


def others_of(hosts, port, model, direction):
    return [Other(h.policy, *host_bounds(h, model, direction), h.presence == ABSENT)
            for i, h in enumerate(hosts) if i != port]


def worlds(host):
    """If it is not known whether the leaf port filters, both cases are possible."""
    return [host._replace(filters=f, unsure=0) for f in ((0, 0), (1, 1))] if host.unsure else [host]


def admits_write(hosts, port, is_leaf, level, models=(BY_LEVEL, BY_BASE), directions=(SENDS, RECEIVES)):
    """The sending side of the port is checked against the receiving side of the others, and vice versa, in both models of a
    switch."""
    return all(admits(mine.policy, host_bounds(mine, m, d), host_bounds(mine, m, d, level, is_leaf),
                      others_of(hosts, port, m, RECEIVES if d == SENDS else SENDS))
               for mine in worlds(hosts[port]) for m in models for d in directions)


def exceeds_policy(host, is_leaf, level):
    """Could the write raise this table above the level that the policy gives the host?"""
    table = host.leaf if is_leaf else host.table
    lowest = NONE if table.kind in (NEVER, UNFOLLOWED) else min([table.level] + [table.sent] * (table.kind in (READ_SENT, BEFORE_SENT)))
    return level > lowest and level > least(host.policy)
