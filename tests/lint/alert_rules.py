# SPDX-License-Identifier: GPL-2.0-or-later
"""promtool (package prometheus) accepts conf/alerts.yml and their test, the metrics, and every expression of the dashboard."""

import json
import os
import shutil
import subprocess
import tempfile

from lint import SOURCE, finish, problem, read, skip

if not shutil.which("promtool"):
    skip("promtool is not installed (package prometheus)")


def promtool(where, *arguments, stdin=None):
    r = subprocess.run(["promtool", *arguments], input=stdin, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if r.returncode != 0:
        problem(where, r.stdout.strip())


def expressions(value):
    if isinstance(value, dict) and isinstance(value.get("expr"), str):
        yield value["expr"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from expressions(inner)


promtool("conf/alerts.yml", "check", "rules", os.path.join(SOURCE, "conf/alerts.yml"))
promtool("tests/lint/alert_rules.yml", "test", "rules", os.path.join(SOURCE, "tests/lint/alert_rules.yml"))
promtool("tests/unit/metrics.prom", "check", "metrics", stdin=read("tests/unit/metrics.prom"))

# Each expression of the dashboard, with the variables of Grafana replaced, as a rule. JSON is YAML, too.
rules = []
for expression in expressions(json.loads(read("conf/grafana-dashboard.json"))):
    for variable, value in (("$__rate_interval", "5m"), ("$__range", "1d"), ("$instance", ".*")):
        expression = expression.replace(variable, value)
    rules.append({"record": "shown%d" % len(rules), "expr": expression})
with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
    json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, f)
    f.flush()
    promtool("conf/grafana-dashboard.json", "check", "rules", f.name)
if not rules:
    problem("conf/grafana-dashboard.json", "no expressions")
finish("alerts, their test, the metrics and %d expressions of the dashboard" % len(rules))
