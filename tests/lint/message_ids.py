# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalog has a complete entry for each MESSAGE_ID of both daemons, and no other; the manuals name no other."""

import re

from lint import files, finish, numbered_lines, problem, read, x_macros

TABLES, CATALOG = ("src/events/events.def", "src/pkeyd_rest/door-events.def"), "systemd/pkeyd.catalog"

events = {}
for table, line, (name, message_id, *_) in [(table, *x) for table in TABLES for x in x_macros(table)]:
    where = "%s:%d" % (table, line)
    if not re.fullmatch(r"[0-9a-f]{32}", message_id):
        problem(where, "%s: '%s' is not a MESSAGE_ID (32 hex digits, lower case)" % (name, message_id))
    if message_id in events:
        problem(where, "%s has the same MESSAGE_ID as %s" % (name, events[message_id][0]))
    events[message_id] = (name, where)
entries = {}
for line, text in numbered_lines(CATALOG):
    match = re.match(r"-- ([0-9a-f]+)", text)
    if match:
        entries.setdefault(match.group(1), line)
for message_id, (name, where) in events.items():
    if message_id not in entries:
        problem(where, "%s (%s) has no entry in %s" % (name, message_id, CATALOG))
for message_id, line in entries.items():
    if message_id not in events:
        problem("%s:%d" % (CATALOG, line), "%s is no event of %s" % (message_id, ", ".join(TABLES)))
subjects = {}
for entry in re.split(r"^-- ", read(CATALOG), flags=re.M)[1:]:
    match = re.match(r"([0-9a-f]+)\nSubject: (\S.*)\nDefined-By: pkeyd\nDocumentation: man:\S+\n\n\S", entry)
    if not match:
        problem("%s:%d" % (CATALOG, entries[entry.split("\n")[0]]), "needs Subject, Defined-By, Documentation, an empty line and a text")
    elif subjects.setdefault(match.group(2), match.group(1)) != match.group(1):
        problem(CATALOG, "%s and %s have the same subject" % (subjects[match.group(2)], match.group(1)))
for page in files("man/"):
    for line, text in numbered_lines(page):
        for message_id in re.findall(r"\b[0-9a-f]{32}\b", text):
            if message_id not in events:
                problem("%s:%d" % (page, line), "%s is no event of %s" % (message_id, ", ".join(TABLES)))
finish("%d events" % len(events))
