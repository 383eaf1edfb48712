# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl-json(5) documents exactly the keys in the JSON documents of pkeyctl, and all words that are values in them."""

import re

from lint import files, finish, problem, read

MANUAL, FIELDS = "man/pkeyctl-json.5", ("src/session/bus_client.c", "src/shell/bus_fields.c")
PROPERTIES = "src/shell/bus_properties.h"
FOLDERS = ("src/pkeyctl/", "src/report/", "src/session/", "src/store_commands/")
WORD = r"[a-z][a-z0-9_-]*"

# what builds JSON has a document to build it in, or returns a value
BUILDER = r"^(?:static )?(?:\w[^\n;]*\bstruct doc \*d\b|json_t \*)[^;{]*\n\{\n(.*?)^\}"
used = {word: path for path in files(*FOLDERS, suffix=(".c",))
        for body in re.findall(BUILDER, read(path), re.M | re.S) for word in re.findall(r'"(%s)"' % WORD, body)}
used.update({key: path for path in FIELDS for key in re.findall(r'FIELD\(\w+, "\w+", "(%s)"' % WORD, read(path))})
used.update({key: PROPERTIES for key in re.findall(r'^ +X\(\w+, "\w+", (%s), \w+\)' % WORD, read(PROPERTIES), re.M)})

manual = read(MANUAL)
keys = {key for line in re.findall(r"^\.(?:It |P[qo] )?Va (.*)$", manual, re.M) for key in re.findall(WORD, line)}
values = set(re.findall(r"\bQ[qo] (%s)" % WORD, manual))
for word, path in sorted(used.items()):
    if word not in keys | values:
        problem(path, "'%s' is not in %s" % (word, MANUAL))
for key in sorted(keys - set(used)):
    problem(MANUAL, "pkeyctl writes no key '%s'" % key)
if len(used) < 100:
    problem("tests/lint/json_keys.py", "finds only %d keys and values in %s" % (len(used), ", ".join(FOLDERS)))
finish("%d keys" % len(keys))
