# SPDX-License-Identifier: GPL-2.0-or-later
"""The files contain no path of a machine and no open ends, and every source file has its licence. Words that doc/glossary.md retires
do not return in names and texts of src/, in the manuals and in the documents."""

import re

from lint import files, finish, numbered_lines, problem, read

PATHS = re.compile(r"(?<![\w.$}/-])/(?:home|root|work|mnt|Users)/\w")
LATER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
GLOSSARY = "doc/glossary.md"
SOURCES = files("src/")
LICENCE = "SPDX-License-Identifier: GPL-2.0-or-later"
TEXT = (".c", ".h", ".def", ".py", ".sh", ".md", ".mk", ".am", ".ac", ".yaml", ".in", ".catalog", ".1", ".5", ".7", ".8")


def retired():
    """The words in the last column of the tables of the glossary: [(pattern, word, term)]."""
    found = []
    for line, text in numbered_lines(GLOSSARY):
        if not text.startswith("|") or set(text) <= set("|- "):
            continue
        cells = [c.strip() for c in text.strip("|").split("|")]
        if len(cells) != 4:
            problem("%s:%d" % (GLOSSARY, line), "has %d cells, not 4: term, meaning, in code, instead of" % len(cells))
            continue
        if cells[0] == "term":
            continue
        for path in re.findall(r"`(\w+/[\w./]*)`", cells[2]):
            if not any(f.startswith("src/" + path) for f in SOURCES):
                problem("%s:%d" % (GLOSSARY, line), "there is no src/%s" % path)
        for word in filter(None, (w.strip() for w in cells[3].split(","))):
            name = word.strip("`")
            # words match in names, too; words in code style match whole names, or their beginnings
            pattern = r"(?<![A-Za-z0-9])%s(?![A-Za-z0-9])" if name == word else r"\b%s" if name[-1] == "_" else r"\b%s\b"
            found.append((re.compile(pattern % re.escape(name), re.I if name == word else 0), name, cells[0]))
    return found


def contract_names():
    """The last list of the glossary: names of interfaces that contain a retired word."""
    section = read(GLOSSARY).split("## Names that stay")[1]
    return re.findall(r"^- `(\w+)`", section, re.M)


RETIRED = retired()
ANY_RETIRED = re.compile("|".join(pattern.pattern for pattern, _, _ in RETIRED), re.I)
if len(RETIRED) < 20:
    problem(GLOSSARY, "retires %d words only" % len(RETIRED))
# strings of JSON or YAML, and keys in a manual page
CONTRACT = re.compile("|".join(r'"%s"|\.Va %s\b' % (n, n) for n in contract_names()))
SPEAKING = ("src/", "man/", "systemd/", "conf/", "contrib/", "doc/", "README.md", "ARCHITECTURE.md", "HACKING.md", "packaging/debian/README")
FOLDERS = ("src/", "tests/", "man/", "doc/", "conf/", "systemd/", "scripts/", "contrib/", "packaging/", ".ci/")
paths = [f for f in files() if f.endswith(TEXT) or f.startswith(("scripts/", ".ci/")) or f == "NEWS"]
paths = [f for f in paths if f.startswith(FOLDERS) or "/" not in f]
paths = [f for f in paths if f not in ("config.h.in", "Makefile.in", "aclocal.m4")]
for path in paths:
    if path.startswith("tests/fuzz/corpus") or path.startswith("tests/golden/"):
        continue
    lines = [*numbered_lines(path)]
    for (line, text), (_, following) in zip(lines, lines[1:] + [(0, "")]):
        where = "%s:%d" % (path, line)
        if PATHS.search(text):
            problem(where, "contains a path of a machine: %s" % text.strip())
        if path.startswith(("src/", "tests/", "scripts/")) and LATER.search(text):
            problem(where, "is left for later: %s" % text.strip())
        own = CONTRACT.sub("", text)
        joined = own + " " + following.lstrip(" *")  # a term may be broken at the end of the line
        if path.startswith(SPEAKING) and path != GLOSSARY and ANY_RETIRED.search(joined):
            for pattern, word, term in RETIRED:
                match = pattern.search(joined)
                if match and match.start() < len(own):
                    problem(where, "'%s' is retired in favor of '%s' (%s)" % (word, term, GLOSSARY))
    if path.endswith((".c", ".h", ".def", ".py")) and LICENCE not in read(path)[:200]:
        problem(path, "has no licence (%s)" % LICENCE)
finish("%d files" % len(paths))
