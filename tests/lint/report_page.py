# SPDX-License-Identifier: GPL-2.0-or-later
"""report/report.html: its policy has the hashes of its style and its script, and it can neither load anything nor make HTML of data."""

import base64
import hashlib
import re

from lint import finish, problem, read

PAGE = "report/report.html"
FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "DOMParser", "srcdoc", "eval(",
             "Function(", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "@import", "url(", "http:", "https:", "//www", " style=",
             "onclick=", "onload=", "javascript:")
page = read(PAGE)


def digest(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


if not page.isascii():
    problem(PAGE, "is not ASCII")
if page.count("@DATA@") != 1:
    problem(PAGE, "must have @DATA@ once, for the data")
policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
rules = dict(rule.strip().split(" ", 1) for rule in policy.group(1).split(";")) if policy else {}
wanted = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
for name, pattern in (("style-src", "<style>(.*?)</style>"), ("script-src", "<script>(.*?)</script>")):
    bodies = re.findall(pattern, page, re.S)
    if len(bodies) != 1:
        problem(PAGE, "has %d elements for %s instead of one" % (len(bodies), name))
    wanted[name] = digest("".join(bodies))
for name in sorted(set(rules) | set(wanted)):
    if rules.get(name) != wanted.get(name):
        problem(PAGE, "Content-Security-Policy: %s is %s and should be %s" % (name, rules.get(name), wanted.get(name)))
for word in FORBIDDEN:
    for i, line in enumerate(page.splitlines()):
        if word in line:
            problem("%s:%d" % (PAGE, i + 1), "has " + word)
finish("the page of pkeyctl report")
