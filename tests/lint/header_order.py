# SPDX-License-Identifier: GPL-2.0-or-later
"""Headers follow the data flow (HACKING.md, rule 2): what each folder of src/ may include."""

import os
import re

from lint import SOURCE, files, finish, numbered_lines, problem

FLOW = {"util": set(), "ib": {"util"}}
FLOW["mad_engine"] = {"util", "ib"}
FLOW["subnet"] = {"util", "ib", "mad_engine"}
FLOW["discovery"] = FLOW["subnet"] | {"subnet"}
FLOW["policy"] = FLOW["settings"] = FLOW["subnet"] | {"subnet"}
FLOW["settings"] = FLOW["settings"] | {"policy"}  # it reads its YAML with the policy's reader
FLOW["desired"] = FLOW["subnet"] | {"subnet", "policy", "settings"}
FLOW["plan"] = FLOW["desired"] | {"desired"}
FLOW["opensm"] = FLOW["plan"] | {"plan"}
FLOW["apply"] = FLOW["plan"] | {"plan"}
FLOW["verify"] = FLOW["apply"] | {"apply"}
FLOW["doctor"] = FLOW["verify"] | {"verify"}
FLOW["watch"] = FLOW["verify"] | {"verify"}
FLOW["notices"] = {"util", "ib", "mad_engine", "subnet"}
FLOW["violations"] = {"util", "ib", "mad_engine", "subnet", "policy"}
FLOW["metrics"] = {"util", "ib", "subnet", "policy", "notices", "violations", "mad_engine"}
FLOW[""] = FLOW["verify"] | {"verify"}  # reconcile
CORE = set(FLOW)
FLOW["shell"] = CORE | {"shell"}
FLOW["pkeyd"] = FLOW["pkeyctl"] = CORE | {"shell"}

n = 0
for path in files("src/", suffix=(".c", ".h")):
    folder = os.path.dirname(path)[len("src/"):]
    if folder not in FLOW:
        problem(path, "folder '%s' has no place in the data flow; give it one in tests/lint/header_order.py" % folder)
        continue
    for line, text in numbered_lines(path):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', text)
        if not match:
            continue
        n += 1
        other = os.path.dirname(match.group(1))
        if match.group(1) == "config.h":
            continue
        if not os.path.exists(os.path.join(SOURCE, "src", match.group(1))):
            problem("%s:%d" % (path, line), '"%s" is not a path below src/' % match.group(1))
        elif other != folder and other not in FLOW[folder]:
            problem("%s:%d" % (path, line), "%s/ may not know %s" % (folder or "src", match.group(1)))
finish("%d includes" % n)
