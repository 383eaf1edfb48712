# SPDX-License-Identifier: GPL-2.0-or-later
"""The project speaks of itself: no path of somebody's machine, nothing left for later, every C file says its licence. And one
term stands for one thing: words that were given up do not come back into src/ and the manuals."""

import re

from lint import files, finish, numbered_lines, problem, read

PATHS = re.compile(r"(?<![\w.$}/-])/(?:home|root|work|mnt|Users)/\w")
LATER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
RETIRED = {"picture": "snapshot", "libibnetdisc": "discovery", "unasked for": "unexpected", "discovery process": "discovery"}
RETIRED_WORDS = re.compile(r"\b(%s)s?\b" % "|".join(RETIRED), re.I)
LICENCE = "SPDX-License-Identifier: GPL-2.0-or-later"
TEXT = (".c", ".h", ".def", ".py", ".sh", ".md", ".mk", ".am", ".ac", ".yaml", ".in", ".catalog", ".1", ".5", ".7", ".8")

paths = [f for f in files() if f.endswith(TEXT) or f.startswith(("scripts/", ".ci/")) or f == "NEWS"]
paths = [f for f in paths if f.startswith(("src/", "tests/", "man/", "conf/", "systemd/", "scripts/", ".ci/")) or "/" not in f]
paths = [f for f in paths if f not in ("config.h.in", "Makefile.in", "aclocal.m4")]
for path in paths:
    if path.startswith("tests/fuzz/corpus") or path.startswith("tests/golden/"):
        continue
    for line, text in numbered_lines(path):
        where = "%s:%d" % (path, line)
        if PATHS.search(text):
            problem(where, "names a path of some machine: %s" % text.strip())
        if path.startswith(("src/", "tests/", "scripts/")) and LATER.search(text):
            problem(where, "is left for later: %s" % text.strip())
        if path.startswith(("src/", "man/", "systemd/", "conf/")):
            for word in RETIRED_WORDS.findall(text):
                problem(where, "'%s' was given up for '%s'" % (word, RETIRED[word.lower()]))
    if path.endswith((".c", ".h", ".def", ".py")) and LICENCE not in read(path)[:200]:
        problem(path, "does not say its licence (%s)" % LICENCE)
finish("%d files" % len(paths))
