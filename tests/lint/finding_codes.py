# SPDX-License-Identifier: GPL-2.0-or-later
"""The program uses every finding code, and a test provokes it."""

import re

from lint import files, finish, problem, read, x_macros

DEFINITION = "src/util/finding-codes.def"

tests = "\n".join(read(f) for f in files("tests/") if not f.startswith("tests/lint/") and "/corpus/" not in f)
sources = "\n".join(read(f) for f in files("src/", suffix=(".c", ".h")))
codes = x_macros(DEFINITION)
seen = set()
for line, (name, text) in codes:
    where = "%s:%d" % (DEFINITION, line)
    if text in seen:
        problem(where, "'%s' is a duplicate" % text)
    seen.add(text)
    if not re.search(r"\bFINDING_%s\b|\b%s\b" % (name, re.escape(text)), tests):
        problem(where, "no test names FINDING_%s or '%s'" % (name, text))
    if not re.search(r"\bFINDING_%s\b" % name, sources):
        problem(where, "nothing reports FINDING_%s" % name)
finish("%d finding codes" % len(codes))
