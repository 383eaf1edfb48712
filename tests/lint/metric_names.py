# SPDX-License-Identifier: GPL-2.0-or-later
"""Every metric of src/metrics has a HELP line, which is its documentation, and the dashboard, the alerts, their test and the manuals
name no other metrics. (check_metrics tests that pkeyd writes tests/unit/metrics.prom.)"""

import json
import re

from lint import files, finish, numbered_lines, problem, read

NAME = r"\bpkeyd_[a-z0-9_]+\b"
GOLDEN, DASHBOARD, ALERTS = "tests/unit/metrics.prom", "conf/grafana-dashboard.json", "conf/alerts.yml"

written = {line.split()[2] for line in read(GOLDEN).splitlines() if line.startswith("# TYPE ")}
labels = {label for line in read(GOLDEN).splitlines() if not line.startswith("#")
          for label in re.findall(r'[{,](\w+)="', line)} | {"rest", "instance"}
in_source = set(re.findall(r'"(%s)"' % NAME, read("src/metrics/metrics.c")))
for name in sorted(written ^ in_source):
    problem("src/metrics/metrics.c" if name in in_source else GOLDEN, "%s is only in one of metrics.c and metrics.prom" % name)

documented = {}
for line in read(GOLDEN).splitlines():
    match = re.match(r"# HELP (\S+) (.*)", line)
    if match:
        documented.setdefault(*match.groups())
for name in sorted(written - set(documented)):
    problem(GOLDEN, "%s has no HELP line" % name)
for name in sorted(set(documented) - written):
    problem(GOLDEN, "there is no metric %s, but a HELP line" % name)
for name, text in documented.items():
    if len(text.split()) < 3 or not re.match(r"[A-Z1].*\.$", text):
        problem(GOLDEN, "the HELP line of %s is not a sentence: %s" % (name, text))
pages = files("man/", suffix=(".1", ".5", ".7", ".8"))
labels_documented = read("man/pkeyd.8").split(".Sh METRICS")[1].split(".Sh ")[0]
for label in sorted(labels - {"instance", "version", "result", "state"}):
    if not re.search(r"^\.It Li (?:.* , )?%s\b" % label, labels_documented, re.M):
        problem("man/pkeyd.8", "the label %s is not documented" % label)

for path in (ALERTS, "tests/lint/alert_rules.yml", DASHBOARD, "systemd/pkeyd.catalog", *pages):
    for line, text in numbered_lines(path):
        for name in re.findall(NAME, text):
            if name not in written:
                problem("%s:%d" % (path, line), "there is no metric %s" % name)


def objects(value):
    """Every object within a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


dashboard = json.loads(read(DASHBOARD))
variables = {v["name"] for v in dashboard["templating"]["list"]}
for thing in objects(dashboard):
    if "datasource" in thing and thing["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
        problem(DASHBOARD, "a datasource that is not the variable: %s" % thing["datasource"])
    for text in (thing.get("expr", ""), thing.get("legendFormat", "")):
        for name in re.findall(r"\$(\w+)", text):
            if name not in variables and not name.startswith("__"):
                problem(DASHBOARD, "there is no variable $%s: %s" % (name, text))
        for label in re.findall(r"\{\{(\w+)\}\}", text) + [w for g in re.findall(r"by \(([^)]*)\)", text)
                                                          for w in g.split(", ")]:
            if label not in labels:
                problem(DASHBOARD, "no metric has a label %s: %s" % (label, text))
panels = [p for p in dashboard["panels"] if p["type"] != "row"]
if len({p["id"] for p in dashboard["panels"]}) != len(dashboard["panels"]):
    problem(DASHBOARD, "two panels have the same id")
if any(not p["targets"] for p in panels):
    problem(DASHBOARD, "a panel shows nothing")
shown = set(re.findall(NAME, " ".join(t["expr"] for p in panels for t in p["targets"])))
finish("%d metrics, %d of them in %d panels" % (len(written), len(shown), len(panels)))
