# SPDX-License-Identifier: GPL-2.0-or-later
"""No public name of ours is also a name of a library that we link (HACKING.md, rule 4)."""

import os
import re

from lint import archive, finish, problem, run, symbols

LIBRARIES = ("ibmad", "ibumad", "ibverbs", "systemd", "yaml", "jansson", "smartcols", "sqlite3", "crypt")
SANITIZERS = re.compile(r"__(asan|ubsan|sanitizer|odr_asan|gcov)")

ours = {}
for name in ("libpkeyd-core", "libpkeyd-shell"):
    ours.update(symbols(archive(name), "-g", "--defined-only"))
theirs = 0
for library in LIBRARIES:
    path = run(*os.environ.get("CC", "cc").split(), "-print-file-name=lib%s.so" % library).strip()
    if not os.path.isabs(path):
        problem("lib%s" % library, "cannot be found")
        continue
    exported = symbols(path, "-D", "--defined-only")
    theirs += len(exported)
    for symbol in sorted(set(ours) & set(exported)):
        if not SANITIZERS.match(symbol):
            problem(ours[symbol], "%s is a name of lib%s, too" % (symbol, library))
finish("%d names of ours, %d of theirs" % (len(ours), theirs))
