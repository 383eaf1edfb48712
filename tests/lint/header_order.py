# SPDX-License-Identifier: GPL-2.0-or-later
"""Headers follow the data flow (HACKING.md, rule 2), which defines the folders that each folder of src/ may include. Includes have no
cycles, neither between folders nor between files. In pkeyd/ every unit (X.c and X.h) handles only its own source of events, except
daemon.c."""

import os
import re

from lint import SOURCE, files, finish, numbered_lines, problem

FLOW = {"util": set(), "store": {"util"}, "ib": {"util"}}
FLOW["mad_engine"] = {"util", "ib"}
FLOW["subnet"] = {"util", "ib", "mad_engine"}
FLOW["discovery"] = FLOW["pins"] = FLOW["subnet"] | {"subnet"}
FLOW["policy"] = FLOW["pins"] | {"pins"}
FLOW["settings"] = FLOW["ib"] | {"ib"}
FLOW["generation"] = FLOW["policy"] | {"policy", "settings"}
FLOW["desired"] = FLOW["policy"] | {"policy", "settings"}
FLOW["knowledge"] = FLOW["desired"] | {"desired", "store"}
FLOW["gate"] = FLOW["knowledge"] | {"knowledge"}
FLOW["plan"] = FLOW["desired"] | {"desired"}
FLOW["reach"] = FLOW["plan"] | {"plan"}
FLOW["applications"] = FLOW["ib"] | {"ib"}
FLOW["rest"] = FLOW["policy"] | {"policy"}
FLOW[""] = FLOW["plan"] | {"plan"}  # reconcile
FLOW["opensm"] = FLOW["plan"] | {"plan", "knowledge"}
FLOW["import"] = FLOW["opensm"] | {"opensm"}
FLOW["apply"] = FLOW["plan"] | {"plan", "knowledge"}
FLOW["verify"] = FLOW["apply"] | {"apply"}
FLOW["doctor"] = FLOW["watch"] = FLOW["verify"] | {"verify"}
FLOW["events"] = FLOW["watch"] | {"watch", "generation"}
FLOW["host"] = FLOW["events"] | {"events"}
FLOW["conditions"] = FLOW["events"] | {"events", ""}
FLOW["leases"] = FLOW["events"] | {"events"}
FLOW["records"] = FLOW["leases"] | {"leases", "store"}
FLOW["actions"] = FLOW["host"] | {"host", "records", "leases", "store"}
FLOW["opensm_writer"] = FLOW["actions"] | {"actions", "opensm", ""}
FLOW["control"] = FLOW["opensm_writer"] | {"opensm_writer", "conditions", "discovery", "gate", "reach"}
FLOW["notices"] = FLOW["subnet"] | {"subnet"}
FLOW["violations"] = FLOW["policy"] | {"policy"}
FLOW["metrics"] = FLOW["control"] | {"control", "violations", "notices"}
CORE = set(FLOW)
FLOW["shell"] = CORE
FLOW["etcd"] = {"util", "store", "ib", "shell"}
FLOW["state"] = CORE | {"shell", "etcd"}
FLOW["session"] = CORE | {"shell", "state"}
FLOW["pkeyd"] = FLOW["session"] | {"etcd"}
FLOW["pkeyd_rest"] = FLOW["rest"] | {"rest", "shell"}
FLOW["report"] = FLOW["store_commands"] = FLOW["session"] | {"session"}
FLOW["pkeyctl"] = FLOW["report"] | {"report", "store_commands"}

# The public headers of control/. The others are internal.
CONTROL_INTERFACE = {"control/" + name for name in ("backoff.h", "control.h")}

# pkeyd/: the units that may handle more than one source of events; and those that use a source of the shell.
ALL_SOURCES = {"daemon", "pkeyd"}
SHELL_SOURCES = {"monitor": {"shell/port_session", "shell/verbs_port"}}
NO_SOURCES = {"shell/timer"}  # arms a timer that its caller has
EVENT_LOOP = "<systemd/sd-event.h>"


def includes(path):
    """(line, header) of each #include of a file; "..." without quotes, <...> with its brackets."""
    for line, text in numbered_lines(path):
        match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))', text)
        if match and match.group(1) != "config.h":
            yield line, match.group(1) or match.group(2)


def folder_of(path):
    return os.path.dirname(path)


def unit_of(path):
    return os.path.splitext(path)[0]


def circle(graph):
    """A cycle in {node: {other: where}}, as a list of nodes; or None."""
    finished = set()

    def walk(node, way):
        if node in way:
            return way[way.index(node):] + [node]
        if node in finished:
            return None
        for other in sorted(graph.get(node, ())):
            found = walk(other, way + [node])
            if found:
                return found
        finished.add(node)
        return None

    for node in sorted(graph):
        found = walk(node, [])
        if found:
            return found
    return None


def no_circle(what, graph):
    found = circle(graph)
    if found:
        steps = ["%s -> %s (%s)" % (a or "src", b or "src", graph[a][b]) for a, b in zip(found, found[1:])]
        problem("src", "%s include each other in a cycle: %s" % (what, ", ".join(steps)))


def check_order(path, line, other):
    folder, where = folder_of(path)[len("src/"):], "%s:%d" % (path, line)
    if not os.path.exists(os.path.join(SOURCE, "src", other)):
        problem(where, '"%s" is not a path below src/' % other)
    elif folder_of(other) != folder and folder_of(other) not in FLOW[folder]:
        problem(where, "%s/ may not know %s" % (folder or "src", other))
    elif folder_of(other) == "control" != folder and other not in CONTROL_INTERFACE:
        problem(where, "%s is internal to control/" % other)


def check_sources(units, sources):
    """units: {(unit of pkeyd/, unit that it includes): where}; sources: units that have the event loop in their interface."""
    for (unit, other), where in sorted(units.items()):
        name = os.path.basename(unit)
        if name in ALL_SOURCES or other == unit or other not in sources:
            continue
        if other not in SHELL_SOURCES.get(name, ()):
            problem(where, "%s handles a source of events that is not its own: %s" % (unit, other))


by_file, by_folder, by_pkeyd_unit, pkeyd_uses = {}, {}, {}, {}
sources = set()
n = 0
for path in files("src/", suffix=(".c", ".h")):
    folder = folder_of(path)[len("src/"):]
    if folder not in FLOW:
        problem(path, "folder '%s' is missing in FLOW in tests/lint/header_order.py" % folder)
        continue
    inner = path[len("src/"):]
    for line, other in includes(path):
        where = "%s:%d" % (path, line)
        if other.startswith("<"):
            if other == EVENT_LOOP and path.endswith(".h") and unit_of(inner) not in NO_SOURCES:
                sources.add(unit_of(inner))
            continue
        n += 1
        check_order(path, line, other)
        by_file.setdefault(inner, {}).setdefault(other, where)
        if folder_of(other) != folder:
            by_folder.setdefault(folder, {}).setdefault(folder_of(other), where)
        if folder == "pkeyd":
            pkeyd_uses.setdefault((unit_of(inner), unit_of(other)), where)
            if unit_of(other) != unit_of(inner):
                by_pkeyd_unit.setdefault(unit_of(inner), {}).setdefault(unit_of(other), where)
# A header that only passes on such a header counts as one: shell/opened_port.h is a port_session.
while True:
    more = {unit_of(f) for f, others in by_file.items() if f.startswith("shell/") and f.endswith(".h")
            for other in others if unit_of(other) in sources} - sources
    if not more:
        break
    sources |= more
sources |= {"pkeyd/daemon"}

no_circle("folders that the flow allows to", {f: {o: "FLOW" for o in others} for f, others in FLOW.items()})
no_circle("folders", by_folder)
no_circle("files", by_file)
no_circle("units of pkeyd/", by_pkeyd_unit)
check_sources(pkeyd_uses, sources)
for name in ALL_SOURCES | set(SHELL_SOURCES):
    if not any(unit == "pkeyd/" + name for unit, _ in pkeyd_uses):
        problem("tests/lint/header_order.py", "there is no pkeyd/%s" % name)
if len(sources) < 5:
    problem("tests/lint/header_order.py", "finds no sources of events")
finish("%d includes between %d folders; %d sources of events" % (n, len(FLOW), len(sources)))
