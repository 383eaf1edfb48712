# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages are well-formed (if mandoc is installed), and quotes enclose what they should."""

import os
import re
import shutil
import subprocess

from lint import SOURCE, files, finish, numbered_lines, problem, run, skip

# .Qq quotes the rest of its line, including other macros: a list of quoted words needs .Qo and .Qc.
QUOTES_TOO_MUCH = re.compile(r"^\..*\b[DQS]q\b.*\b(?:[DQS]q|No)\b")

if not shutil.which("mandoc"):
    skip("mandoc is not installed")
pages = files("man/", suffix=tuple(".%d" % n for n in range(1, 9)))
for page in pages:
    r = subprocess.run(["mandoc", "-Tlint", "-Wwarning", os.path.join(SOURCE, page)], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    for line in r.stdout.splitlines():
        problem(page, line.split(":", 2)[-1].strip() if line.startswith("mandoc:") else line)
    for n, line in numbered_lines(page):
        if QUOTES_TOO_MUCH.search(line):
            problem("%s:%d" % (page, n), "quotes more than one word: %s" % line)
    shown = re.sub(".\b", "", run("mandoc", "-Tutf8", os.path.join(SOURCE, page)))
    for line in shown.splitlines():
        if re.search('""|[\u201c\u201d]{2}', line):
            problem(page, "quotes beside quotes: %s" % line.strip())
if not pages:
    problem("man", "there is no manual page")
finish("%d manual pages" % len(pages))
