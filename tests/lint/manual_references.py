# SPDX-License-Identifier: GPL-2.0-or-later
"""All pages and sections that manuals, messages, comments, the catalog and the README refer to exist."""

import re

from lint import files, finish, problem, read

OURS = r"(pkeyd(?:-[a-z]+|\.yaml)?|pkeyctl(?:-[a-z]+)?|partitions\.yaml|rest\.yaml|org\.pkeyd1)"
SECTION = r"((?<![\w-])[A-Z][A-Z_-]{2,}(?::? [A-Z][A-Z_-]*)*(?![\w-]))"
TEXT = (".c", ".h", ".def", ".py", ".md", ".yaml", ".in", ".catalog", ".json", ".yml")

pages = {}
for path in files("man/", suffix=tuple(".%d" % n for n in range(1, 9))):
    name, number = re.match(r"man/(.*)\.(\d)$", path).groups()
    pages[name, number] = {m.replace('"', "") for m in re.findall(r"^\.S[hs] (.*)$", read(path), re.M)}


def check(path, section, name, number):
    if (name, number) not in pages:
        problem(path, "there is no page %s(%s)" % (name, number))
    elif section and section not in pages[name, number]:
        problem(path, "%s(%s) has no section '%s'" % (name, number, section))


def plain(text):
    """Joins the lines of comments and broken strings with a blank."""
    return re.sub(r'\s*"?\n[ \t]*(?:"|//|#|\*)?[ \t]*', " ", text)


def manual(text):
    """Converts the references in mdoc to plain text."""
    text = re.sub(r"^\.P[qo] (?:see )?", "", text, flags=re.M)
    text = re.sub(r"(?:^\.)?\bXr (\S+) (\d)(?: ?([,.;:)]+))?", r"\1(\2)\3", text, flags=re.M)
    return re.sub(r"^\.Sx (.*?)(?: ([,.;:)]+))?$", r"\1\2", text, flags=re.M)


n = 0
for path in files("src/", "man/", "conf/", "systemd/", "scripts/", "tests/", "README.md", "ARCHITECTURE.md", "HACKING.md", "contrib/"):
    if path.startswith("tests/fuzz/") or not (path.endswith(TEXT) or path.startswith(("man/", "scripts/"))):
        continue
    text = plain(manual(read(path)) if path.startswith("man/") else read(path))
    for name, number in re.findall(r"\b%s\((\d)\)" % OURS, text):
        check(path, None, name, number)
        n += 1
    for section, name, number in re.findall(SECTION + r",? in `?%s\((\d)\)" % OURS, text):
        check(path, section, name, number)
        n += 1
    for name, number, section in re.findall(r"\b%s\((\d)\)`?, " % OURS + SECTION, text):
        check(path, section, name, number)
        n += 1
finish("%d references to %d manual pages" % (n, len(pages)))
