# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a hostlist compared with a name: pkeyctl check of two policies on one topology file. Times are medians."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench import report
from harness import program
from netfile import host_name, k_ary

LIMIT = 2


def policy(lines):
    return "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n" + "".join(
        "      %s: full\n" % line for line in lines)


def hostlist(numbers, i):
    """A hostlist of all these numbers; every other hostlist lacks one in the middle."""
    first, middle, last = numbers[0], numbers[len(numbers) // 2], numbers[-1]
    if i % 2 == 0 or not first < middle < last:
        return "node[%04d-%04d]" % (first, last)
    return "node[%04d-%04d,%04d-%04d]" % (first, middle - 1, middle + 1, last)


def seconds(arguments, rounds):
    out = []
    for _ in range(rounds):
        began = time.monotonic()
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
        out.append(time.monotonic() - began)
    return statistics.median(out)


def run(folder, k, lines, rounds):
    topology = k_ary(k)
    each = len(topology.hosts) // lines
    blocks = [range(i * each + 1, (i + 1) * each + 1) for i in range(lines)]
    policies = {
        "hostlists": [hostlist(numbers, i) for i, numbers in enumerate(blocks)],
        "names": [host_name(numbers[0]) for numbers in blocks],
    }
    topology.write(os.path.join(folder, "topology"))
    times = {}
    for name, members in policies.items():
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w") as f:
            f.write(policy(members))
        times[name] = seconds([program("pkeyctl"), "check", "--topology", os.path.join(folder, "topology"), path], rounds)
        print("check of %d %s on %d hosts: %.3f s" % (lines, name, len(topology.hosts), times[name]), flush=True)
    return report("check: hostlists of %d names / names" % each, times["hostlists"] / times["names"], "", LIMIT)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=56, help="ports of a switch [56]")
    parser.add_argument("--lines", type=int, default=1000, help="of each policy [1000]")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured [5]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pkeyd-bench-") as folder:
        sys.exit(0 if run(folder, arguments.k, arguments.lines, arguments.rounds) else 1)


if __name__ == "__main__":
    main()
