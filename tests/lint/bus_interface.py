# SPDX-License-Identifier: GPL-2.0-or-later
"""org.pkeyd1(5) documents exactly the methods, signals, properties, errors, keys of a violation and of a lease
that src/pkeyd has on the bus, with their signatures."""

import re

from lint import files, finish, problem, read

MANUAL = "man/org.pkeyd1.5"

sources = "\n".join(read(f) for f in files("src/pkeyd/", suffix=(".c", ".h")))
defined = dict(re.findall(r'#define (BUS_\w+|ERROR_\w+)\s+"([^"]*)"', sources))


def signature(text):
    """The concatenation of adjacent strings and macros, as by the compiler."""
    return "".join(s if q else defined[m] for q, s, m in re.findall(r'(")([^"]*)"|(\w+)', text))


sections = re.split(r"^\.Sh (.*)\n", read(MANUAL), flags=re.M)
sections = {name: [m.replace("\\&", "") for m in re.findall(r"^\.It Li (.*)$", text, re.M)]
            for name, text in zip(sections[1::2], sections[2::2])}


def typed(section):
    """{"Name": "signature"} of lines as ".It Li Name (s) , Other (u)"."""
    return dict(part for item in sections[section] for part in re.findall(r"(\w+) \(([^ ]+)\)", item))


def called(section):
    """{"Name": ("in", "out")} of lines as ".It Li Name(t since, s node) -> t u"."""
    found = {}
    for item in sections[section]:
        match = re.fullmatch(r"(\w+)\((.*?)\)(?: -> (.*))?", item)
        if match:
            name, arguments, result = match.groups()
            found[name] = ("".join(a.split()[0] for a in arguments.split(", ") if a), (result or "").replace(" ", ""))
    return found


def compare(what, in_source, in_manual):
    if not in_source:
        problem("tests/lint/bus_interface.py", "finds no %s in src/pkeyd" % what)
    for name in sorted(set(in_source) | set(in_manual)):
        if name not in in_manual:
            problem(MANUAL, "the %s %s is not documented" % (what, name))
        elif name not in in_source:
            problem(MANUAL, "there is no %s %s" % (what, name))
        elif in_source[name] != in_manual[name]:
            problem(MANUAL, "%s %s is %s, documented as %s" % (what, name, in_source[name], in_manual[name]))


methods = {n: (i, signature(o)) for n, i, o in re.findall(r'SD_BUS_METHOD\("(\w+)", "([^"]*)", ([^,]*),', sources)}
signals = {n: (s, "") for n, s in re.findall(r'SD_BUS_SIGNAL\("(\w+)", "([^"]*)"', sources)}
properties = dict(re.findall(r'^ +X\((\w+), "(\w+)", \w+, \w+\)', read("src/shell/bus_properties.h"), re.M))
keys = dict(re.findall(r'^ +(?:KNOWN(?:_BY)?|ALWAYS)\((?:[\w.]+, )?"(\w+)", "(\w+)", [\w.]+\),', read("src/pkeyd/bus_message.c"), re.M))
leases = read("src/pkeyd/bus_lease_message.c")
lease_keys = dict(re.findall(r'bus_append\w*\(b, (?:"{sv}", )?"([A-Z]\w+)", "(\w)",', leases))
lease_keys.update(re.findall(r'"([A-Z]\w+)", "(\w)", lease->qos', leases))
lease_keys.update((k, signature(t)) for k, t in re.findall(r'open_array\(b, "([A-Z]\w+)", ([^,]+),', leases))
compare("method", methods, called("METHODS"))
compare("signal", signals, called("SIGNALS"))
compare("property", properties, typed("PROPERTIES"))
compare("key of a violation", keys, typed("VIOLATIONS"))
compare("key of a lease", lease_keys, typed("LEASES"))
errors = {e for e in defined.values() if e.startswith("org.pkeyd1.Error.")}
errors |= {"org.freedesktop.DBus.Error." + "".join(w.capitalize() for w in e.split("_"))
           for e in re.findall(r"\bSD_BUS_ERROR_(?!NULL\b)([A-Z_]+)", sources)}
compare("error", dict.fromkeys(errors), dict.fromkeys(sections["ERROR NAMES"]))
finish("%d methods, %d signals, %d properties, %d keys, %d errors" %
       (len(methods), len(signals), len(properties), len(keys) + len(lease_keys), len(errors)))
