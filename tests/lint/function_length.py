# SPDX-License-Identifier: GPL-2.0-or-later
"""No function over 70 lines, the median at most 12 (HACKING.md, rule 8)."""

import json
import os

from lint import SOURCE, files, finish, problem, run, skip

LONGEST, MEDIAN, P90 = 70, 12, 45

if "json" not in run("ctags", "--list-features"):
    skip("this ctags writes no JSON (universal-ctags does)")
paths = files("src/", suffix=(".c", ".h"))
output = run("ctags", "--languages=C", "--langmap=C:.c.h", "--c-kinds=f", "--fields=+ne", "--output-format=json", "-o", "-",
             *(os.path.join(SOURCE, p) for p in paths))
lengths = []
for tag in map(json.loads, output.splitlines()):
    length = tag.get("end", tag["line"]) - tag["line"] + 1
    lengths.append(length)
    if length > LONGEST:
        problem("%s:%d" % (os.path.relpath(tag["path"], SOURCE), tag["line"]),
                "%s has %d lines (%d at most)" % (tag["name"], length, LONGEST))
if not lengths:
    skip("no functions")
lengths.sort()
median, p90 = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
if median > MEDIAN:
    problem("src", "the median function has %d lines (%d at most)" % (median, MEDIAN))
if p90 > P90:
    problem("src", "a tenth of the functions has more than %d lines (%d at most)" % (p90, P90))
finish("%d functions, median %d lines, 90th percentile %d, longest %d" % (len(lengths), median, p90, lengths[-1]))
