# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulation's histories run the object files that the daemon runs: every function of src/control that pkeyd contains is in
tests/fabsim/simulate, too, with the same size, and no test has a definition of its own. What both have of the rest of the
core is the same as well."""

import os
from collections import Counter

from lint import BUILD, files, finish, problem, program, sized_symbols, skip, symbols

DAEMON, SIMULATION = "pkeyd", "tests/fabsim/simulate"
FUNCTION = "tT"


def built_object(source):
    """The object file of a source of a convenience library, or of a program; None: it is not built."""
    folder, name = os.path.split(os.path.splitext(source)[0])
    found = [os.path.join(BUILD, folder, d, name + ".o") for d in ("", ".libs")]
    return next((f for f in found if os.path.exists(f)), None)


def core_objects():
    for source in files("src/", suffix=(".c",)):
        if not source.startswith(("src/shell/", "src/pkeyd/", "src/pkeyctl/")):
            built = built_object(source)
            if not built:
                skip("%s is not built" % source)
            yield source, built


def test_objects():
    """Objects of tests, wherever automake puts them (it begins their names with the program's where that has own flags)."""
    for d, folders, names in os.walk(os.path.join(BUILD, "tests")):
        if "config.status" in names:  # a whole build of its own, which the kernel lab has made
            folders.clear()
            continue
        for name in names:
            if name.endswith(".o"):
                yield os.path.join(d, name)


daemon, simulation = Counter(sized_symbols(program(DAEMON))), Counter(sized_symbols(program(SIMULATION)))
n_control = n_core = 0
control_names = {}
for source, built in core_objects():
    in_control = source.startswith("src/control/")
    own = sized_symbols(built)
    if in_control:
        control_names.update({name: source for name, kind, _ in own if kind == "T"})
    for name, kind, size in own:
        if kind not in FUNCTION:
            continue
        # The linker leaves out a whole object or nothing of it, so one that a program has is there with this very size.
        in_daemon, in_simulation = daemon[name, kind, size], simulation[name, kind, size]
        if in_control:
            n_control += 1
            if in_daemon and not in_simulation:
                problem(source, "%s() of the daemon is not in %s" % (name, SIMULATION))
            elif kind == "T" and not in_daemon:
                problem(source, "%s() is not in %s: does this lint look at the right program?" % (name, DAEMON))
        n_core += in_daemon > 0 and in_simulation > 0

# Global names of the core mean one thing in both programs, functions and data.
core_names = {name for _, built in core_objects() for name, kind, _ in sized_symbols(built) if kind.isupper()}
of_daemon = {name: (kind, size) for name, kind, size in daemon if kind.isupper()}
of_simulation = {name: (kind, size) for name, kind, size in simulation if kind.isupper()}
for name in sorted(core_names & set(of_daemon) & set(of_simulation)):
    if of_daemon[name] != of_simulation[name]:
        problem(SIMULATION, "%s is another one than that of %s (%s, 0x%x bytes instead of %s, 0x%x)"
                % ((name, DAEMON) + of_simulation[name] + of_daemon[name]))

n_tests = 0
for built in test_objects():
    n_tests += 1
    for name in sorted(set(symbols(built, "--defined-only")) & set(control_names)):
        problem(os.path.relpath(built, BUILD), "defines %s, which is of %s" % (name, control_names[name]))

if n_control < 100 or n_tests < 10:
    problem("tests/lint/same_objects.py", "compares %d functions with %d objects of tests: too few" % (n_control, n_tests))
finish("%d functions of control, %d of the core in both programs, %d objects of tests" % (n_control, n_core, n_tests))
