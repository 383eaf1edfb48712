# SPDX-License-Identifier: GPL-2.0-or-later
"""Every MESSAGE_ID of the journal has an entry in the catalog, and the catalog has no other; the manual has all of them."""

import re

from lint import finish, numbered_lines, problem, x_macros

EVENTS, CATALOG, MANUAL = "src/control/events.def", "systemd/pkeyd.catalog", "man/pkeyd.8"

events = {}
for line, (name, message_id, *_) in x_macros(EVENTS):
    where = "%s:%d" % (EVENTS, line)
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
manual = "".join(text for _, text in numbered_lines(MANUAL))
for message_id, (name, where) in events.items():
    if message_id not in manual:
        problem(where, "%s (%s) is not in %s" % (name, message_id, MANUAL))
    if message_id not in entries:
        problem(where, "%s (%s) has no entry in %s" % (name, message_id, CATALOG))
for message_id, line in entries.items():
    if message_id not in events:
        problem("%s:%d" % (CATALOG, line), "%s is no event of %s" % (message_id, EVENTS))
finish("%d events" % len(events))
