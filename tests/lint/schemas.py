# SPDX-License-Identifier: GPL-2.0-or-later
"""conf/*.schema.json have the keys, words, ranges and defaults of the parsers, and accept what these accept."""

import glob
import json
import os
import re

from lint import SOURCE, finish, problem, read, skip

try:
    import jsonschema
    import yaml
except ImportError as e:
    skip("%s is not installed (package python3-%s)" % (e.name, e.name))

POLICY, SETTINGS, REST = "conf/partitions.schema.json", "conf/pkeyd.schema.json", "conf/rest.schema.json"


class Yaml12(yaml.SafeLoader):
    """The core schema of YAML 1.2, which editors use: `yes` is a text, 0x0010 a number."""
    yaml_implicit_resolvers = {}


for tag, pattern, first in (("bool", "true|True|TRUE|false|False|FALSE", "tTfF"), ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
                            ("int", "[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+", "-+0123456789"),
                            ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?", "-+.0123456789")):
    Yaml12.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile("^(%s)$" % pattern), list(first))
Yaml12.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value, 16 if "0x" in node.value else 10))


def as_json(value):
    """Keys of JSON objects are texts."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key).lower(): as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, list) else value


def errors(schema, path):
    """The messages for a file; None: it is no YAML."""
    with open(path, "rb") as f:
        try:
            value = as_json(yaml.load(f, Yaml12))
        except (yaml.YAMLError, UnicodeError, ValueError, TypeError, RecursionError):
            return None
    return [e.message for e in jsonschema.Draft7Validator(schema).iter_errors(value)]


def equal(where, what, schema, parser):
    if schema != parser:
        problem(where, "%s: %s, but the parser has %s" % (what, schema, parser))


def check_policy_keys(schema):
    text = read("src/policy/policy_keys.h")
    for name, keys in (("policy_keys", schema["properties"]), ("policy_pool_keys", schema["definitions"]["pool"]["properties"]),
                       ("policy_partition_keys", schema["definitions"]["partition"]["properties"]),
                       ("policy_ipoib_keys", schema["definitions"]["ipoib"]["properties"]),
                       ("policy_group_keys", schema["definitions"]["multicast_group"]["properties"])):
        row = re.search(r"%s\[\] = \{(.*?)\}" % name, text, re.S)
        equal(POLICY, name, sorted(keys), sorted(re.findall(r'"(\w+)"', row.group(1))))


def check_settings_keys(schema):
    """The rows of settings_schema: name, type, [range], [words], [default]."""
    table = re.search(r"settings_schema\[\] = \{\n(.*?)\n\};", read("src/settings/settings.c"), re.S).group(1)
    rows = re.findall(r"\{ \"([\w.]+)\", SETTINGS_(\w+),(.*?)\},?(?=\n        \{|$)", table, re.S)
    seen = set()
    for name, kind, rest in rows:
        where = schema["properties"]
        *maps, last = name.split(".")
        for part in maps:
            where = where[part]["properties"]
        seen.add(name)
        if last not in where:
            problem(SETTINGS, "lacks the key " + name)
            continue
        key = where[last]
        words = re.search(r"WORDS\((.*?)\)", rest, re.S)
        if words:
            equal(SETTINGS, name, key.get("enum"), re.findall(r'"([^"]*)"', words.group(1)))
        limits = re.search(r", (\d+), (\d+), \"", rest)
        if kind == "NUMBER":
            equal(SETTINGS, name, [key.get("minimum"), key.get("maximum")], [int(x) for x in limits.groups()])
        equal(SETTINGS, name + " is a truth value", key.get("type") == "boolean", kind == "BOOL")
        standard = re.search(r'\.standard = "(.*?)"', rest)
        has = json.dumps(key["default"]).strip('"') if "default" in key else None
        equal(SETTINGS, name + " by default", has, standard and standard.group(1))
    for name, key in schema["properties"].items():
        for inner in [name, *("%s.%s" % (name, x) for x in key.get("properties", {}))]:
            if inner not in seen:
                problem(SETTINGS, inner + " is no key of the parser")


def check_rest_keys(schema):
    """The lists `keys` of the readers, and the ranges and defaults of limits."""
    text = read("src/rest/rest_conf.c")
    maps = {"root": schema["properties"], "tls": schema["properties"]["tls"]["properties"],
            "limits": schema["properties"]["limits"]["properties"], "client": schema["definitions"]["client"]["properties"]}
    for name, keys in maps.items():
        row = re.search(r"read_%s\(.*?keys\[\] = \{(.*?)\}" % name, text, re.S)
        equal(REST, name, sorted(keys), sorted(re.findall(r'"(\w+)"', row.group(1))))
    words = {"REST_MAX_BODY": "1048576", "10 * USEC_PER_SEC": "10s"}
    for name, low, high, member in re.findall(r'read_number\(r, map, "(\w+)", (\w+), (\w+), &c->(\w+)\)', text):
        key = maps["limits"][name]
        equal(REST, name, [key["minimum"], key["maximum"]], [int(words.get(x, x)) for x in (low, high)])
        default = re.search(r"\.%s = ([^,}]+)" % member, text).group(1)
        equal(REST, name + " by default", str(key["default"]), words.get(default, default))
    equal(REST, "time by default", maps["limits"]["time"]["default"], words[re.search(r"\.max_time = ([^}]+) \}", text).group(1)])
    equal(REST, "clients", schema["properties"]["clients"]["maxProperties"],
          int(re.search(r"REST_CONF_MAX_CLIENTS (\d+)", read("src/rest/rest_conf.h")).group(1)))


def is_accepted(path):
    """By the golden files: what the parser said has no error."""
    return ": error: " not in read(os.path.splitext(path)[0] + ".expected")


def check_files(schema, pattern, name):
    """What the parser accepts the schema accepts, and unknown keys it does not. Returns how many it refused."""
    n_refused = 0
    for path in sorted(glob.glob(os.path.join(SOURCE, pattern))):
        where = os.path.relpath(path, SOURCE)
        if "aliases (*NAME)" in read(os.path.splitext(where)[0] + ".expected"):
            continue  # it may be a bomb
        said = errors(schema, path)
        if is_accepted(os.path.relpath(path, SOURCE)):
            for message in said or ([] if said is not None else ["is no YAML"]):
                problem(where, "%s refuses what the parser accepts: %s" % (name, message))
            continue
        n_refused += bool(said)
        if said == [] and re.search(r"\[key\.(unknown|missing)\]", read(os.path.splitext(where)[0] + ".expected")):
            problem(where, name + " accepts it")
    return n_refused


policy, settings, rest = (json.loads(read(path)) for path in (POLICY, SETTINGS, REST))
for schema in (policy, settings, rest):
    jsonschema.Draft7Validator.check_schema(schema)
check_policy_keys(policy)
check_settings_keys(settings)
check_rest_keys(rest)
refused = check_files(policy, "tests/golden/accepted/*.yaml", POLICY) + check_files(policy, "tests/golden/rejected/*.yaml", POLICY) + \
    check_files(settings, "tests/golden/settings/*.yaml", SETTINGS)
for path, schema in (("conf/partitions.yaml", policy), ("conf/pkeyd.yaml", settings), ("conf/rest.yaml", rest)):
    for message in errors(schema, os.path.join(SOURCE, path)):
        problem(path, message)
finish("three schemas, which refuse %d files that the parsers refuse" % refused)
