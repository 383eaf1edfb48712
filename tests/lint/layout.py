#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The layout of C sources (HACKING.md, rule 12), line by line, except for the driver of the kernel lab, which has the style of the
kernel. No two units of src/ (X.c and X.h) have the same name."""

import os
import re

from lint import files, finish, problem, read

COLUMNS = 132
# (pattern of a line, error)
LINES = (
    (r"\t", "a tab; spaces indent"),
    (r"[ \r]$", "blanks at the end"),
    (r"\b(if|for|while|switch)\(", "no blank between the keyword and its parenthesis"),
    (r"\)\{", "no blank before the brace"),
    (r"^\w[^=]*\) \{$", "the brace of a function stands on a line of its own"),
    (r"^\s*//(?!@)", "a comment of //"),
)


def check(path):
    text = read(path)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        where = "%s:%d" % (path, number)
        for pattern, wrong in LINES:
            if re.search(pattern, line):
                problem(where, wrong)
        # strings are not broken, so that they can be searched
        if len(line) > COLUMNS and '"' not in line:
            problem(where, "%d columns (%d at most, but for strings)" % (len(line), COLUMNS))
        before = lines[number - 2] if number > 1 else ""
        if re.match(r"\s*else\b", line) and re.match(r"\s*\}$", before):
            problem(where, "else is not on the line of the brace")
        if line == before == "" and number < len(lines):
            problem(where, "two empty lines")
    if not text.endswith("\n") or text.endswith("\n\n"):
        problem(path, "does not end with one newline")
    return len(lines)


paths = [p for p in files("src/", "tests/", suffix=(".c", ".h")) if not p.startswith("tests/kernel/driver/")]
total = sum(check(p) for p in paths)
units = {}
for unit in sorted({os.path.splitext(p)[0] for p in paths if p.startswith("src/")}):
    name = os.path.basename(unit)
    if name in units:
        problem(unit, "has the name of %s" % units[name])
    units.setdefault(name, unit)
finish("%d lines of %d files, %d units of src/" % (total, len(paths), len(units)))
