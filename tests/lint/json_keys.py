# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyctl-json(5) documents exactly the keys in the JSON documents of pkeyctl, and all words that are values in them."""

import re

from lint import files, finish, problem, read

MANUAL, FIELDS = "man/pkeyctl-json.5", "src/pkeyctl/bus_client.c"
WORD = r"[a-z][a-z0-9_-]*"

printers = files("src/pkeyctl/json_", suffix=(".c",)) + ["src/pkeyctl/output_json.c", "src/pkeyctl/doc.c"]
used = {word: path for path in printers for word in re.findall(r'"(%s)"' % WORD, read(path))}
used.update({key: FIELDS for key in re.findall(r'FIELD\(\w+, "\w+", "(%s)"' % WORD, read(FIELDS))})

manual = read(MANUAL)
keys = {key for line in re.findall(r"^\.(?:It |P[qo] )?Va (.*)$", manual, re.M) for key in re.findall(WORD, line)}
values = set(re.findall(r"\bQ[qo] (%s)" % WORD, manual))
for word, path in sorted(used.items()):
    if word not in keys | values:
        problem(path, "'%s' is not in %s" % (word, MANUAL))
for key in sorted(keys - set(used)):
    problem(MANUAL, "pkeyctl writes no key '%s'" % key)
if len(used) < 100:
    problem("tests/lint/json_keys.py", "finds only %d keys and values in src/pkeyctl" % len(used))
finish("%d keys" % len(keys))
