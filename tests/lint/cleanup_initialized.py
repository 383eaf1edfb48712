# SPDX-License-Identifier: GPL-2.0-or-later
"""Variables with _cleanup_ are initialized in their declaration; otherwise an early return would free an arbitrary pointer."""

import re

from lint import files, finish, numbered_lines, problem

DECLARATION = re.compile(r"\s*_cleanup_\w*(\([a-z_]+\))?\s+[^=(]*;")

n = 0
for path in files("src/", suffix=(".c", ".h")):
    for line, text in numbered_lines(path):
        n += "_cleanup_" in text
        if DECLARATION.match(text):
            problem("%s:%d" % (path, line), "not initialized: " + text.strip())
finish("%d lines with _cleanup_" % n)
