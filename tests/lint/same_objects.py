# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulation runs the same object files as the daemon: every function of src/control, and of the folders that only it uses
(CONTROL), in pkeyd is also in tests/fabsim/simulate, with the same size, and no test has its own definition. The same holds for the
parts of the core that both contain."""

import os
from collections import Counter

from lint import BUILD, files, finish, problem, program, sized_symbols, symbols

DAEMON, SIMULATION = "pkeyd", "tests/fabsim/simulate"
FUNCTION = "tT"
CONTROL = ("src/control/", "src/conditions/", "src/actions/", "src/opensm_writer/", "src/events/", "src/generation/", "src/host/", "src/records/")
# not in the core
OTHERS = ("src/shell/", "src/pkeyd/", "src/pkeyd_rest/", "src/session/", "src/report/", "src/store_commands/", "src/pkeyctl/")


def built_object(source):
    """The object file of a source of a convenience library or a program; None if it is not built."""
    folder, name = os.path.split(os.path.splitext(source)[0])
    found = [os.path.join(BUILD, folder, d, name + ".o") for d in ("", ".libs")]
    return next((f for f in found if os.path.exists(f)), None)


def core_objects():
    """The sources of the core, each with the symbols of its object."""
    for source in files("src/", suffix=(".c",)):
        if not source.startswith(OTHERS):
            built = built_object(source)
            if built:
                yield source, sized_symbols(built)
            else:
                problem(source, "is not built, though %s is: is it of the core?" % DAEMON)


def test_objects():
    """The objects of tests; automake prefixes their names with that of the program if it has its own flags."""
    for d, folders, names in os.walk(os.path.join(BUILD, "tests")):
        if "config.status" in names:  # a separate build by the kernel lab
            folders.clear()
            continue
        for name in names:
            if name.endswith(".o"):
                yield os.path.join(d, name)


daemon, simulation = Counter(sized_symbols(program(DAEMON))), Counter(sized_symbols(program(SIMULATION)))
n_control = n_core = 0
control_names = {}
core = list(core_objects())
for source, own in core:
    in_control = source.startswith(CONTROL)
    if in_control:
        control_names.update({name: source for name, kind, _ in own if kind == "T"})
    for name, kind, size in own:
        if kind not in FUNCTION:
            continue
        # The linker takes whole objects, so a function that a program contains has the same size.
        in_daemon, in_simulation = daemon[name, kind, size], simulation[name, kind, size]
        if in_control:
            n_control += 1
            if in_daemon and not in_simulation:
                problem(source, "%s() of the daemon is not in %s" % (name, SIMULATION))
            elif kind == "T" and not in_daemon:
                problem(source, "%s() is not in %s: does this lint read the right program?" % (name, DAEMON))
        n_core += in_daemon > 0 and in_simulation > 0

# Global functions and data of the core are the same in both programs.
core_names = {name for _, own in core for name, kind, _ in own if kind.isupper()}
of_daemon = {name: (kind, size) for name, kind, size in daemon if kind.isupper()}
of_simulation = {name: (kind, size) for name, kind, size in simulation if kind.isupper()}
for name in sorted(core_names & set(of_daemon) & set(of_simulation)):
    if of_daemon[name] != of_simulation[name]:
        problem(SIMULATION, "%s differs from that of %s (%s, 0x%x bytes instead of %s, 0x%x)"
                % ((name, DAEMON) + of_simulation[name] + of_daemon[name]))

n_tests = 0
for built in test_objects():
    n_tests += 1
    for name in sorted(set(symbols(built, "--defined-only")) & set(control_names)):
        problem(os.path.relpath(built, BUILD), "defines %s, which is of %s" % (name, control_names[name]))

if n_control < 100 or n_tests < 10:
    problem("tests/lint/same_objects.py", "compares %d functions with %d objects of tests: too few" % (n_control, n_tests))
finish("%d functions of control, %d of the core in both programs, %d objects of tests" % (n_control, n_core, n_tests))
