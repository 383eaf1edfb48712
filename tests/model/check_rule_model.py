#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares rule_judge, knowledge_judge_block and gate_admit with rule_model.py, on all small cases and on random ones.

If ../shared/gate_model.py is beside the source (or in the folder PKEYD_SHARED), that model is compared, too. It knows bounds
of one level for each port, so both are comparable if no port is absent, the policy of each port is known exactly, and filters
are by level and on in both directions or off. Then:

    rule_judge admits exactly the writes that the model admits;
    knowledge and gate admit no write that the model refuses;
    they admit the writes that it admits, unless the other model of a switch (FILTER_BY_BASE) refuses them.

The model does not know absent ports. They count as others if a write raises a level (they may return with the base), and do
not count if it lowers one.

    SEED=7 COUNT=20000 check_rule_model.py     other or more random cases
"""
import importlib.util, itertools, os, random, subprocess, sys

import rule_model as m

LEVELS = (m.NONE, m.LIMITED, m.FULL)
POLICIES = LEVELS + tuple(m.RANGES)
BOUNDS = [(has, may) for has in LEVELS for may in LEVELS if has <= may]
OTHERS = ([m.Other(p, *b, False) for p in POLICIES for b in BOUNDS] + [m.Other(p, m.NONE, may, True) for p in POLICIES for may in LEVELS])
failures = 0


def judge(lines):
    program = os.path.join(os.environ.get("top_builddir", "."), "tests/model/judge")
    out = subprocess.run([program], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
    return [[int(word) for word in line.split()] for line in out[:-1]]


def shared_model():
    """admit() of the model beside the source; None: absent."""
    top = os.environ.get("abs_top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    path = os.path.join(os.environ.get("PKEYD_SHARED", os.path.join(top, "../shared")), "gate_model.py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("gate_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.admit


def require(condition, what, case):
    global failures
    if not condition:
        failures += 1
        if failures < 10:
            print(f"{what}: {case}")


def shared_admits(admit, policy, before, after, others):
    bounds = [before] + [(o.has, o.may) for o in others]
    return admit(0, before, after, bounds, [policy] + [o.policy for o in others])


# --- the rule ----------------------------------------------------------------------------------------------------------------

def rule_cases(rng, count):
    for policy, before, after in itertools.product(POLICIES, BOUNDS, BOUNDS):
        yield policy, before, after, []
        for i, other in enumerate(OTHERS):
            yield policy, before, after, [other]
            for second in OTHERS[i:]:
                yield policy, before, after, [other, second]
    for _ in range(count):
        yield rng.choice(POLICIES), rng.choice(BOUNDS), rng.choice(BOUNDS), rng.choices(OTHERS, k=rng.randint(3, 6))


def check_rule(rng, count, admit):
    cases = list(rule_cases(rng, count))
    lines = [" ".join(map(str, ["rule", policy, *before, *after, len(others)] + [int(x) for o in others for x in o]))
             for policy, before, after, others in cases]
    for case, (verdict,) in zip(cases, judge(lines)):
        policy, before, after, others = case
        gain = any(m.gains(policy, before, after, o) for o in others)
        loss = any(m.loses(policy, before, after, o) for o in others)
        require(verdict == 0 if not gain and not loss else (verdict == 1 and gain) or (verdict == 2 and loss), "rule_judge", case)
        if not admit or any(p in m.RANGES for p in [policy] + [o.policy for o in others]):
            continue
        present = [o for o in others if not o.is_absent]
        if present == others:
            require((verdict == 0) == shared_admits(admit, policy, before, after, others), "rule_judge and gate_model", case)
        require(verdict != 0 or shared_admits(admit, policy, before, after, present), "rule_judge without the absent", case)
        require(verdict == 0 or not shared_admits(admit, policy, before, after, others), "rule_judge with the absent", case)
    return len(cases)


# --- knowledge and gate ------------------------------------------------------------------------------------------------------

TABLES = ([m.Table(k, level, 0) for k in (m.READ, m.BEFORE) for level in LEVELS] +
          [m.Table(k, x, y) for k in (m.READ_SENT, m.BEFORE_SENT) for x in LEVELS for y in LEVELS] +
          [m.Table(k, level, 0) for k in (m.VOUCHED, m.UNFOLLOWED) for level in LEVELS] + [m.Table(m.NEVER, 0, 0)])
BEFORE_TABLES = [t for t in TABLES if t.kind in (m.BEFORE, m.BEFORE_SENT, m.NEVER, m.VOUCHED, m.UNFOLLOWED)]
NO_LEAF = m.Table(m.NO_TABLE, 0, 0)


def away(presence):
    """Absent ports were not read."""
    return [m.Host(p, presence, t, NO_LEAF, (0, 0), 0) for p in POLICIES for t in BEFORE_TABLES]


def random_host(rng):
    presence = rng.choices((m.THERE, m.ABSENT, m.EXPIRED), (6, 2, 1))[0]
    tables = TABLES if presence == m.THERE else BEFORE_TABLES
    leaf = rng.choice(tables) if rng.random() < 0.6 else NO_LEAF
    return m.Host(rng.choice(POLICIES), presence, rng.choice(tables), leaf, (rng.randint(0, 1), rng.randint(0, 1)),
                  int(rng.random() < 0.2))


def fabric_cases(rng, count):
    """All states of knowledge of two ports without filters; then random ones of two to four ports, with and without filters."""
    plain = [m.Host(p, m.THERE, t, NO_LEAF, (0, 0), 0) for p in POLICIES for t in TABLES if t.kind not in (m.READ_SENT, m.BEFORE_SENT)]
    for level, one, other in itertools.product(LEVELS, plain, plain + away(m.ABSENT) + away(m.EXPIRED)[:3]):
        yield [one, other], 0, False, level
    for _ in range(count):
        hosts = [random_host(rng) for _ in range(rng.randint(2, 4))]
        port = rng.randrange(len(hosts))
        if hosts[port].presence == m.THERE:
            yield hosts, port, hosts[port].leaf.kind != m.NO_TABLE and rng.random() < 0.5, rng.choice(LEVELS)


def fabric_line(case):
    hosts, port, is_leaf, level = case
    words = ["fabric", port, int(is_leaf), level, len(hosts)]
    for h in hosts:
        words += [h.policy, h.presence, *h.table, *h.leaf, *h.filters, h.unsure]
    return " ".join(map(str, words))


def read_now(case):
    """The block was read just before the Set: no other write to it is unconfirmed, and a vouch for its port has ended."""
    hosts, port, is_leaf, _ = case
    closed = {m.READ_SENT: m.READ, m.BEFORE_SENT: m.BEFORE, m.VOUCHED: m.BEFORE}
    table = hosts[port].leaf if is_leaf else hosts[port].table
    table = table._replace(kind=closed.get(table.kind, table.kind))
    mine = hosts[port]._replace(leaf=table) if is_leaf else hosts[port]._replace(table=table)
    return hosts[:port] + [mine] + hosts[port + 1:]


def check_shared_fabric(admit, case, admitted, by_base):
    hosts, port, is_leaf, level = case
    if any(h.policy in m.RANGES or h.presence == m.ABSENT or h.unsure or h.filters[0] != h.filters[1] for h in hosts):
        return False
    bounds = [m.host_bounds(h, m.BY_LEVEL, m.SENDS) for h in hosts]
    after = m.host_bounds(hosts[port], m.BY_LEVEL, m.SENDS, level, is_leaf)
    theirs = admit(port, bounds[port], after, bounds, [h.policy for h in hosts])
    require(theirs or not admitted, "knowledge admits what gate_model refuses", case)
    require(admitted or not (theirs and by_base), "knowledge refuses what gate_model admits", case)
    return True


def check_fabrics(rng, count, admit):
    cases = list(fabric_cases(rng, count))
    shared = passed = 0
    for case, (admitted, exceeds, gate) in zip(cases, judge([fabric_line(c) for c in cases])):
        hosts, port, is_leaf, level = case
        table = hosts[port].leaf if is_leaf else hosts[port].table
        require(admitted == m.admits_write(hosts, port, is_leaf, level), "knowledge_judge_block", case)
        require(exceeds == m.exceeds_policy(hosts[port], is_leaf, level), "knowledge_exceeds_policy", case)
        now = read_now(case)
        through = table.kind not in (m.NEVER, m.UNFOLLOWED) and (level == table.level or (
            m.admits_write(now, port, is_leaf, level) and not m.exceeds_policy(now[port], is_leaf, level)))
        require(gate == through, "gate_admit", case)
        passed += gate
        if admit:
            shared += check_shared_fabric(admit, case, admitted, m.admits_write(hosts, port, is_leaf, level, models=(m.BY_BASE,)))
    return len(cases), passed, shared


def main():
    rng = random.Random(int(os.environ.get("SEED", "1")))
    count = int(os.environ.get("COUNT", "4000"))
    admit = shared_model()
    rules = check_rule(rng, count, admit)
    fabrics, passed, shared = check_fabrics(rng, count, admit)
    print(f"{rules} cases of the rule, {fabrics} of knowledge and gate ({passed} pass the gate), "
          f"{shared} of these with gate_model.py{'' if admit else ', which is not there'}; {failures} differences")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
