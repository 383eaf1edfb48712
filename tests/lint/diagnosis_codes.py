# SPDX-License-Identifier: GPL-2.0-or-later
"""The program makes every diagnosis of the doctor, a unit test provokes it, and the definition explains why it matters and what to do.
pkeyctl(1) names no other diagnosis."""

import re

from lint import finish, problem, read

DEFINITION = "src/doctor/diagnosis-codes.def"

text = read(DEFINITION)
codes = re.findall(r'^X\((\w+), "([a-z0-9.-]+)", (\w+),', text, re.M)
sources = "\n".join(read("src/doctor/diagnose_%s.c" % part) for part in ("host", "names", "protection", "tables"))
tests, manual = read("tests/unit/check_doctor.c"), read("man/pkeyctl.1")
if len(codes) != len(re.findall(r"^X\(", text, re.M)):
    problem(DEFINITION, "has a line that is not X(NAME, \"code\", SEVERITY, why, advice)")
for name, code, severity in codes:
    if severity not in ("ERROR", "WARNING", "NOTE"):
        problem(DEFINITION, "%s: '%s' is no severity" % (code, severity))
    if not re.search(r"\bDIAGNOSIS_%s\b" % name, sources):
        problem(DEFINITION, "nothing diagnoses DIAGNOSIS_%s" % name)
    if not re.search(r"\bDIAGNOSIS_%s\b" % name, tests):
        problem(DEFINITION, "no unit test names DIAGNOSIS_%s" % name)
    texts = re.search(r"^X\(%s, .*?\)$" % name, text, re.M | re.S).group(0)
    texts = [t.replace('"\n  "', "") for t in re.findall(r'^  ("(?:[^"]|"\n  ")*")[,)]$', texts, re.M)]
    if len(texts) != 2 or any(len(t.split()) < 4 or not re.fullmatch(r'"\S.*[.;]"', t) for t in texts):
        problem(DEFINITION, "%s does not explain in sentences why it matters and what to do" % code)
for items in re.findall(r"^\.It Cm (.*)$", manual, re.M):
    for code in re.findall(r"[a-z0-9-]+\.[a-z0-9-]+", items):
        if code not in {c for _, c, _ in codes}:
            problem("man/pkeyctl.1", "explains %s, which is no diagnosis" % code)
if len({code for _, code, _ in codes}) != len(codes):
    problem(DEFINITION, "has a code twice")
finish("%d diagnoses" % len(codes))
