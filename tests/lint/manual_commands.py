# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl(1) lists exactly the commands of pkeyctl, and it and the pages of its commands exactly the options."""

import re

from lint import files, finish, problem, read

MAIN, COMMANDS, OPTIONS = "man/pkeyctl.1", "src/pkeyctl/command_table.c", "src/session/pkeyctl_options.c"


def compare(what, in_source, in_manual, source):
    if not in_source:
        problem("tests/lint/manual_commands.py", "finds no %s in %s" % (what, source))
    for name in sorted(in_source - in_manual):
        problem(MAIN, "the %s %s is not documented" % (what, name))
    for name in sorted(in_manual - in_source):
        problem(MAIN, "there is no %s %s" % (what, name))


# { "pin", "accept", ..., command_pin_accept, ...}. One without a function has subcommands only; --fix is an option of check.
table = re.findall(r'^ +\{ "(\w+)", (?:NULL|"(\w+)"),[^{]*?\b(NULL|command_\w+),\s', read(COMMANDS), re.M)
commands = {("%s %s" % (name, sub)).strip() for name, sub, function in table if function != "NULL"}
listed = set()
for line in re.findall(r"^\.It Cm (.*)$", read(MAIN).split(".Ss Commands")[1].split(".Ss Options")[0], re.M):
    command, optional = re.match(r"(\w+(?: (?!Ar|Fl|No|Oo|Op)\w+)?)(?: Op Cm (\w+))?", line).groups()
    listed.update({command, "%s %s" % (command, optional)} if optional else {command})
compare("command", commands, listed, COMMANDS)

options = set(re.findall(r'^        (?:COMMAND_LINE_OPTION\(|\{ )"([\w-]+)", (?:0|\'\w\'),', read(OPTIONS), re.M))
shown = set()
for page in files("man/pkeyctl", suffix=(".1",)):
    for line in re.findall(r"^\.It (Fl .*)$", read(page), re.M):
        shown.update(re.findall(r"Fl -([\w-]+)", line))
compare("option", options, shown, OPTIONS)
finish("%d commands, %d options" % (len(commands), len(options)))
