# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages are well-formed (mandoc -Tlint, if it is there)."""

import os
import shutil
import subprocess

from lint import SOURCE, files, finish, problem, skip

if not shutil.which("mandoc"):
    skip("mandoc is not installed")
pages = files("man/", suffix=tuple(".%d" % n for n in range(1, 9)))
for page in pages:
    r = subprocess.run(["mandoc", "-Tlint", "-Wwarning", os.path.join(SOURCE, page)], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    for line in r.stdout.splitlines():
        problem(page, line.split(":", 2)[-1].strip() if line.startswith("mandoc:") else line)
if not pages:
    problem("man", "there is no manual page")
finish("%d manual pages" % len(pages))
