# SPDX-License-Identifier: GPL-2.0-or-later
"""Continuity, isolation and stability over random transitions, from the trace of what was sent; see madtrace.py. SEED= and
TRANSITIONS= choose others."""

import os

import madtrace
from harness import Fabric, check_equal, main, seeded, sets, two_level
from oracle import Generator, Oracle, differences


def by_lid(tables):
    return {p.lid: p.table for p in tables.values()}


def run(seed, loss=0):
    rng = seeded(seed)
    with Fabric(two_level(4, 2, 8)) as fabric:
        if loss:
            fabric.settings("timeout: 100ms\nwindow: 16\n")
        tables = fabric.tables()
        generator = Generator(rng, tables)
        oracle = Oracle(tables, fabric.topology.port_guid(fabric.home))
        policy = generator.unambiguous(oracle, generator.policy)
        total = 0
        for i in range(int(os.environ.get("TRANSITIONS", 10 if loss else 25))):
            for host in fabric.topology.hosts if loss and i % 5 == 0 else []:
                fabric.lose(host[0], loss)
            path = fabric.write("partitions.yaml", policy.yaml())
            result = fabric.apply(path, trace="trace%d" % i)
            after = fabric.tables() if not loss else read_surely(fabric, loss)
            mads = madtrace.read(fabric.path("trace%d" % i))
            wanted = {tables[guid].lid: keys for guid, keys in oracle.tables(policy).items()}
            promises = madtrace.Promises(by_lid(tables), by_lid(after), wanted, tables[oracle.self_guid].lid)
            context = "transition %d of seed %d to\n%s" % (i, seed, policy.yaml())
            check_equal(promises.replay(mads), [], "broken promises in " + context)
            if not loss:
                result.expect(0)
                check_equal(differences(oracle.tables(policy), after), [], "wrong tables after " + context)
                check_equal(len(sets(fabric, "trace%d" % i)), madtrace.least_sets(by_lid(tables), by_lid(after)),
                            "SubnSets sent in " + context)
            else:
                result.expect(0, 1, 3)  # 1: even discovery was lost
                if result.status == 1:
                    check_equal(sets(fabric, "trace%d" % i), [], "SubnSets sent in " + context)
            total += promises.n_sets
            tables = after
            policy = generator.unambiguous(oracle, lambda: generator.edit(policy))
        print("%d SubnSets" % total)


def read_surely(fabric, loss):
    for host in fabric.topology.hosts:
        fabric.lose(host[0], 0)
    tables = fabric.tables()
    for host in fabric.topology.hosts:
        fabric.lose(host[0], loss)
    return tables


def test_random_transitions():
    run(1)


def test_random_transitions_again():
    run(2)


def test_random_transitions_with_loss():
    run(3, loss=10)


if __name__ == "__main__":
    main()
