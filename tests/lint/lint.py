# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions for all lints: files, problems, exit status."""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("abs_top_srcdir") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("abs_top_builddir") or os.getcwd()
SKIP = 77

problems = []


def problem(where, what):
    problems.append("%s: %s" % (where, what))


def skip(why):
    print("SKIP: " + why)
    sys.exit(SKIP)


def finish(summary):
    for text in problems:
        print(text)
    print("%s; %s" % (summary, "%d problems" % len(problems) if problems else "nothing wrong"))
    sys.exit(1 if problems else 0)


def read(path):
    with open(os.path.join(SOURCE, path), errors="replace") as f:
        return f.read()


def files(*folders, suffix=()):
    """Files of the project, relative to its root: those that git knows, or without git all files."""
    if os.path.exists(os.path.join(SOURCE, ".git")) and shutil.which("git"):
        listed = run("git", "-C", SOURCE, "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard")
        found = [f for f in listed.splitlines() if os.path.isfile(os.path.join(SOURCE, f))]
    else:
        found = [os.path.relpath(os.path.join(d, f), SOURCE) for d, _, names in os.walk(SOURCE) for f in names]
    found = [f for f in found if "/lab.build/" not in f]  # a copy of the tree by make check-kernel
    found = [f for f in found if not folders or f.startswith(tuple(folders))]
    return sorted(f for f in found if not suffix or f.endswith(tuple(suffix)))


def run(*arguments):
    try:
        return subprocess.run(arguments, check=True, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE).stdout
    except FileNotFoundError:
        skip("%s is not installed" % arguments[0])
    except subprocess.CalledProcessError as e:
        print(e.stderr)
        raise


def archive(name):
    """A convenience library of the build tree."""
    path = os.path.join(BUILD, ".libs", name + ".a")
    if not os.path.exists(path):
        skip("%s is not built" % path)
    return path


def symbols(path, *options):
    """{symbol: object that contains it}, by nm."""
    found, member = {}, path
    for line in run("nm", *options, path).splitlines():
        words = line.split()
        if line.endswith(":"):
            member = line[:-1]
        elif len(words) >= 2:
            found[words[-1].split("@")[0]] = member
    return found


def program(name):
    """A program of the build tree, not the wrapper script of libtool."""
    for path in (os.path.join(BUILD, os.path.dirname(name), ".libs", os.path.basename(name)), os.path.join(BUILD, name)):
        if os.path.exists(path):
            with open(path, "rb") as f:
                if f.read(4) == b"\x7fELF":
                    return path
    skip("%s is not built" % name)


def sized_symbols(path):
    """[(name, type, size)] of the symbols that an object or a program defines, with duplicates; see nm(1)."""
    found = []
    for line in run("nm", "-S", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 4:
            found.append((words[3], words[2], int(words[1], 16)))
    return found


def numbered_lines(path):
    return enumerate(read(path).splitlines(), 1)


def x_macros(path):
    """The lines X(...) of a .def file: (line number, [arguments])."""
    out = []
    for n, line in numbered_lines(path):
        match = re.match(r"\s*X\((.*)\)", line)
        if match:
            out.append((n, [a.strip().strip('"') for a in match.group(1).split(",")]))
    return out
