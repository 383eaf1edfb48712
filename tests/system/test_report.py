# SPDX-License-Identifier: GPL-2.0-or-later
"""`pkeyctl report`: its data are those of an independent reader, the page shows them, and names from the fabric do nothing in it."""

import itertools
import json
import os
import pty
import re
import stat
import subprocess

from browser import Browser
from harness import SOURCE, Daemon, Fabric, check, check_equal, main, program, read_file, two_level, wait_for
from oracle import Policy
from private_bus import Bus, require

MUTE = "node0006"
HOSTILE = {
    "node0011": "</script><img/src=x/onerror=document.title=1> mlx5_0",
    "node0012": "<!--<script> mlx5_0",
    "node0013": "a]]>,b[1],\\u003c&lt; mlx5_0",
    "node0014": "__proto__ mlx5_0",
    "node0015": "http://evil.example/x.js mlx5_0",
}
POLICY = Policy()
POLICY.groups = {"storage": ["node0002", "node0003"], "a": ["node[0003-0006]"], "b": ["node[0007-0010]"], "constructor": ["node0004"]}
POLICY.add("default", 0x7FFF, {"ALL": "limited", "node0002": "full"})
POLICY.add("storage", 0x0010, {"storage": "full", "b": "limited"})
POLICY.add("tenant-a", 0x0020, {"a": "full"})
POLICY.add("tenant-b", 0x0030, {"b": "full", "node0007": "both"})


def topology_of():
    topology = two_level(4, 2, 4)
    for i, host in enumerate(topology.hosts):
        topology.hosts[i] = (*host[:2], HOSTILE.get(host[0], host[2]), *host[3:])
    return topology


class Scene:
    """The policy is in force; then a host does not answer for its table."""

    def __enter__(self):
        self.fabric = Fabric(topology_of())
        self.fabric.__enter__()
        try:
            self.fabric.settings("timeout: 100ms\n")
            self.path = self.fabric.write("partitions.yaml", POLICY.yaml())
            self.fabric.apply(self.path).expect(0)
            self.tables = self.fabric.tables()
            self.fabric.lose(MUTE, 100)
        except BaseException as e:
            self.fabric.__exit__(type(e), e, None)
            raise
        return self

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)

    def report(self, *arguments, **how):
        return self.fabric.pkeyctl("report", "--policy", self.path, *arguments, **how)


def data_of(page):
    """The JSON in a page, as an HTML parser finds it: up to the first end of a script element."""
    text = page[page.index('id="data">') + len('id="data">'):]
    return json.loads(text[:text.index("</script")])


def escaped(description):
    """The name of a host, as pkeyd shows it."""
    return description.split()[0].replace("\\", "\\x5c")


def name_of(port):
    """Of a port of readtables, by its description."""
    return escaped(re.sub(r"^MF0;([^:]*):.*", r"\1", port.description))


def levels(port):
    """{base: is full}, of what a port can use."""
    out = {}
    for key in port.keys():
        out[key & 0x7FFF] = out.get(key & 0x7FFF, False) or key >= 0x8000
    return out


def check_kinds(data, ports):
    """Each endport that was read is in one kind, which has its P_Keys."""
    listed = {}
    for kind in data["kinds"]:
        keys = {int(key, 16) & 0x7FFF: int(key, 16) >= 0x8000 for key in kind["p_keys"]}
        for host in kind["hosts"]:
            check(host not in listed, host, "is in two kinds")
            listed[host] = keys
        check_equal(kind["ports"], len(kind["hosts"]), "the ports of a kind")
    check_equal(listed, {name: levels(port) for name, port in ports.items()}, "the kinds")
    check_equal(data["unknown"], [MUTE], "the hosts of which nothing is known")


def check_partitions(data, ports):
    for partition in data["partitions"]:
        base, members = int(partition["p_key"], 16), {"full": 0, "limited": 0, "both": 0}
        for port in ports.values():
            kinds = {key >= 0x8000 for key in port.keys() if key & 0x7FFF == base}
            if kinds:
                members["both" if len(kinds) == 2 else "full" if True in kinds else "limited"] += 1
        check_equal(partition["hardware"], members, "the members of " + partition["p_key"])
        check_equal({m["membership"]: m["ports"] for m in partition["members"]}, {k: n for k, n in members.items() if n}, "their lists")
    check_equal({p["partition"] for p in data["partitions"]}, {"default", "storage", "tenant-a", "tenant-b"}, "the partitions")


def talk(a, b):
    """The bases through which two ports can talk."""
    return {base for base, full in levels(a).items() if base in levels(b) and (full or levels(b)[base])}


def check_cells(data, ports):
    """Every pair of ports of every two sets, one by one."""
    members = [{h for k in data["kinds"] if i in k["sets"] for h in k["hosts"]} for i in range(len(data["sets"]))]
    cells = {(c["a"], c["b"]): {int(p["p_key"], 16): p["all"] for p in c["partitions"]} for c in data["cells"]}
    for a, b in itertools.combinations_with_replacement(range(len(members)), 2):
        unread = data["sets"][a]["ports"] > len(members[a]) or data["sets"][b]["ports"] > len(members[b])
        pairs = [talk(ports[x], ports[y]) for x in members[a] for y in members[b] if x != y]
        wanted = {base: all(base in p for p in pairs) and not unread for base in set().union(*pairs)}
        check_equal(cells.get((a, b), {}), wanted, "cell %d, %d" % (a, b))
    groups = {s["name"]: m for s, m in zip(data["sets"], members) if s["name"]}
    check_equal(groups["b"], {"node%04d" % i for i in range(7, 11)}, "group b")
    check_equal(groups["a"], {"node0003", "node0004", "node0005"}, "group a without the host that is mute")


def test_data():
    """--json, and the JSON in the page, are what an independent reader finds in the tables."""
    with Scene() as scene:
        data = scene.report("--json").expect(3).json()
        page = scene.report().expect(3).out
        shown = data_of(page)
        for key in data:
            check(key == "time" or shown[key] == data[key], key, "differs between the page and --json")
        ports = {name_of(p): p for p in scene.tables.values() if name_of(p) != MUTE}
        check_equal(len(ports), 21, "ports with different names")
        check_kinds(data, ports)
        check_partitions(data, ports)
        check_cells(data, ports)
        check_equal([(t["used"], t["ports"]) for t in data["tables"] if t["capacity"] == 8], [(1, 6)], "the tables of the switches")
        check_equal(sum(t["ports"] for t in data["tables"]), 21, "tables that were read")
        check_equal([(u["who"], u["reason"]) for u in data["unreachable"]], [(MUTE, "timeout")], "the tables that were not read")
        check_equal(data["counts"], {"endports": 22, "switches": 6, "switch_ports": 0, "differ": 0, "unreachable": 1, "silent": 0, "frozen": 0,
                                     "held": 0}, "the counts")
        check_equal(data["leases"], [], "the leases")
        check_equal([g["generation"] for g in data["history"]], [1], "the history")
        check(data["history"][0]["time"].startswith("20") and data["policy"]["in_force"] is True and data["generation"] == 1, data["policy"])
        check_equal((data["daemon"], data["daemon_state"], data["violations"]), (None, "absent", None), "what is not known without a daemon")


def test_differences():
    """A difference, a silent port and a policy that is not in force are in the data; without a policy nothing is judged."""
    with Scene() as scene:
        victim = next(p for p in scene.tables.values() if name_of(p) == "node0009")
        i = victim.table.index(0x8030)
        scene.fabric.set_p_key(victim, **{"i%d" % i: 0x8777})
        data = scene.report("--json").expect(3).json()
        (differ,) = data["differ"]
        check_equal((differ["who"], differ["missing"], differ["unexpected"]), ("node0009", ["0x8030"], ["0x8777"]), "the difference")
        scene.fabric.write("partitions.yaml", POLICY.yaml() + "# another one\n")
        check_equal(scene.report("--json").expect(3).json()["policy"]["in_force"], False, "a policy that is not in force")
        scene.fabric.console('Error "node0008" 100')  # it answers nothing any more
        data = scene.report("--json").expect(3).json()
        check(data["counts"]["silent"] == 1 and re.fullmatch(r"leaf02/\d", data["silent"]), "the silent port", data["silent"])
        data = scene.fabric.run([program("pkeyctl"), "report", "--json", "--config", scene.fabric.settings(), "--state-dir",
                                 scene.fabric.path("nowhere")]).json()
        for key in ("policy", "differ", "frozen", "held", "leases", "history", "generation"):
            check(data[key] is None, key, "is", data[key])
        check(data["counts"]["differ"] is None and data["counts"]["held"] is None and data["partitions"][0]["policy"] is None, data["counts"])


def test_file():
    """The file is replaced at once, with the mode that a shell gives it; what is no regular file is not replaced."""
    with Scene() as scene:
        f = scene.fabric
        path = f.path("page.html")
        mask = os.umask(0o027)
        try:
            r = scene.report("--output", path).expect(3)
        finally:
            os.umask(mask)
        check_equal(r.out, path + ": 22 ports, none of them known to differ from the policy, 1 could not be read\n", "the summary")
        check_equal(stat.S_IMODE(os.stat(path).st_mode), 0o640, "the mode")
        first = read_file(path)
        data = scene.report("--output", path, "--json").expect(3).json()
        check_equal(data["output"], path, "the output")
        check(data_of(read_file(path))["time"] == data["time"] != data_of(first)["time"], "the page was not replaced")
        check_equal([name for name in os.listdir(f.dir) if name.startswith("page.html")], ["page.html"], "files beside it")
        os.mkdir(f.path("folder"))
        for bad, words in ((f.path("folder"), "not a regular file"), (f.path("nowhere/page.html"), "its directory does not exist")):
            r = scene.report("--output", bad).expect(1)
            check(words in r.err and bad in r.err, r)
        terminal, other = pty.openpty()
        child = subprocess.run(f.pkeyctl_arguments("report"), env=f.environment(), stdin=subprocess.DEVNULL, stdout=other,
                               stderr=subprocess.PIPE, text=True)
        check(child.returncode == 1 and "standard output is a terminal" in child.stderr, child)
        for fd in (terminal, other):
            os.close(fd)


def test_page():
    """The template names no address, and the page has no more script elements than the template."""
    template = read_file(os.path.join(SOURCE, "report/report.html"))
    check(not re.search(r"https?:|//www", template), "an address in the template")
    with Scene() as scene:
        page = scene.report().expect(3).out
    before, after = template.split("@DATA@")
    check(page.startswith(before) and page.endswith(after), "the page is not the template with data")
    check(not re.search("[<>&\u2028\u2029]", page[len(before):-len(after)]), "the data can end their element")


def rows(browser, selector):
    return browser.run("[...document.querySelectorAll(%s)].map((r) => [...r.cells].map((c) => c.innerText.replace(/\\s+/g, ' ').trim()))"
                       % json.dumps(selector))


def check_shown(browser, data):
    check_equal(browser.run("document.documentElement.dataset.state"), "shown", "the state of the page")
    check_equal(browser.run("document.querySelectorAll('img, iframe, link, object, style:not(head style)').length"), 0, "elements made of names")
    check_equal(browser.run("document.querySelectorAll('script').length"), 2, "scripts")
    names = {p["p_key"]: p["partition"] for p in data["partitions"]}
    grid = rows(browser, "#matrix .matrix tbody tr")
    wanted = [["no" for _ in data["sets"]] for _ in data["sets"]]
    for c in data["cells"]:
        text = " ".join(names[w["p_key"]] + ("" if w["all"] else " (some)") for w in c["partitions"])
        wanted[c["a"]][c["b"]] = wanted[c["b"]][c["a"]] = text
    check_equal([[cell.replace("\u2013", "").strip() for cell in row[1:]] for row in grid], wanted, "the matrix")
    shown = rows(browser, "#partitions tbody tr")
    check_equal([row[0] for row in shown], [p["partition"] for p in data["partitions"]], "the partitions")
    check_equal(len(rows(browser, "#tables tbody tr")), len(data["tables"]), "the tables")
    check("could not be read" in browser.run("document.getElementById('verdict').innerText"), "the verdict hides what was not read")
    check("not known" in browser.run("document.getElementById('violations').innerText"), "violations without a daemon are not known")
    check_equal(browser.complaints(), [], "complaints of the browser")


def search(browser, text):
    """[(name, what is known of it)] of the hosts that a search finds."""
    browser.run("(() => { const i = document.getElementById('search'); i.value = %s; i.dispatchEvent(new Event('input')); })()" % json.dumps(text))
    browser.run("new Promise((done) => setTimeout(done, 300))")
    return browser.run("[...document.querySelectorAll('.host')].map((h) => [h.querySelector('h3').textContent, h.innerText])")


def check_search(browser):
    ((name, text),) = search(browser, "NODE0007")
    check(name == "node0007" and "Groups\nb" in text and "tenant-b 0x0030 full" in text, text)
    check(re.search(r"storage through storage 0x0010, default 0x7fff \(some", text) and "constructor through" not in text, text)
    ((name, text),) = search(browser, MUTE)
    check("not known" in text, text)
    check_equal(search(browser, "nobody"), [], "a name that no host has")
    for description in HOSTILE.values():
        word = escaped(description)
        check_equal([name for name, _ in search(browser, word)], [word], "a search for " + word)


def check_keyboard(browser):
    """The first key leads to the contents; a button in the head of a table sorts it."""
    browser.run("document.activeElement.blur()")
    browser.press("Tab")
    check_equal(browser.run("document.activeElement.className"), "skip", "the first stop")
    browser.run("document.querySelector('#partitions thead button').focus()")
    for order in ("ascending", "descending"):
        browser.press("Enter")
        check_equal(browser.run("document.querySelector('#partitions th').getAttribute('aria-sort')"), order, "the order")
        first = [row[0] for row in rows(browser, "#partitions tbody tr")]
        check_equal(first, sorted(first, reverse=order == "descending"), "the sorted rows")
    check_equal(browser.run("[...document.querySelectorAll('th')].filter((e) => !e.scope).length"), 0, "heads without a scope")
    check_equal(browser.run("[...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.querySelector(a.hash)).length"), 0,
                "links to nowhere")


def test_browser():
    """A browser shows all of it, in both schemes and on a small screen, and has nothing to complain about."""
    with Browser() as browser, Scene() as scene:
        path = scene.fabric.path("page.html")
        scene.report("--output", path).expect(3)
        data = data_of(read_file(path))
        seen = set()
        for scheme, width in (("light", 1400), ("dark", 1400), ("light", 400)):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            browser.open(path)
            check_shown(browser, data)
            check(browser.run("document.documentElement.scrollWidth") <= width, "the page is wider than %d" % width)
            seen.add((scheme, browser.run("getComputedStyle(document.body).backgroundColor")))
        check_equal(len(seen), 2, "backgrounds")
        check_search(browser)
        check_keyboard(browser)
        browser.open(path, "#host=node0003")
        check_equal(browser.run("document.querySelector('.host h3').textContent"), "node0003", "the host of the address")
        check_equal(browser.complaints(), [], "complaints of the browser")
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        browser.open(path)
        check("scripts are switched off" in browser.run("document.body.innerText"), "a page without a script is silent")


def changed(page, data):
    """The page with other data."""
    before, after = read_file(os.path.join(SOURCE, "report/report.html")).split("@DATA@")
    with open(page, "w") as f:
        f.write(before + re.sub("[<>&]", lambda c: "\\u%04x" % ord(c.group()), json.dumps(data)) + after)


def violation_of(node, names_sender, total, first, last, switch="leaf01/2", saturated=False):
    return {"source": "port_rcv_constraint_errors", "node": node, "port_guid": None, "lid": 4, "port": 1, "switch": switch, "partition": None,
            "p_key": "0x8020", "total": total, "first": first, "last": last, "names_sender": names_sender, "saturated": saturated,
            "text": "<b>dropped</b> packets of %s" % node}


def lease_of(name, state, total, members=(), absent="", ends=None, keep=True, why=None):
    return {"id": name, "pool": "jobs", "state": state, "pkey": "0x0777", "membership": "full", "owner": "root", "ends": ends, "why": why,
            "keep": keep, "members_total": total, "members_confirmed": total if state == "active" else 0, "members": list(members),
            "absent": absent}


def test_sections():
    """What is seldom on a fabric: violations by sender, differences, held bases, frozen ports, leases, and what is not known of
    generations."""
    with Browser() as browser, Scene() as scene:
        path = scene.fabric.path("page.html")
        scene.report("--output", path).expect(3)
        data = data_of(read_file(path))
        data.update(counted_since="2026-01-31T08:00:00.000000Z", records=4, daemon_state="running", violations=[
            violation_of("node0002", True, 5, "2026-02-01T00:00:00.000000Z", "2026-02-02T00:00:00.000000Z"),
            violation_of("node0003", True, 1000, "2026-02-01T00:00:00.000000Z", "2026-02-02T00:00:00.000000Z"),
            violation_of("node0002", True, 7, "2026-02-03T00:00:00.000000Z", "2026-02-04T00:00:00.000000Z", saturated=True),
            violation_of("node0004", False, 3, None, None),
        ])
        data["leases"] = [lease_of("job<i>1</i>", "active", 2, ends="2026-02-01T00:00:00.000000Z", members=[
            {"membership": "limited", "ports": 1, "who": "node0002"}, {"membership": "full", "ports": 1, "who": "node0003"}]),
            lease_of("rest:0x0777", "releasing", 1, absent="0x000a0b0c0d0e0f01", keep=False, why="released by root")]
        data["history"] = [{"generation": 7, "time": None}, {"generation": 8, "time": "2026-02-01T00:00:00.000000Z"}]
        data["differ"] = [{"role": "enforcing", "ports": 2, "who": "leaf01/[1-2]", "missing": ["0x8020"], "unexpected": ["0x0777"],
                           "enforcement_differs": True}]
        data["frozen"] = [{"role": "endport", "ports": 1, "who": "node0009", "reason": "x", "detail": "two hosts", "way_out": "rename one"}]
        data["counts"].update(differ=2, held=1, frozen=1)
        data["held"] = [{"base": "0x0020", "partitions": ["tenant-a"], "n_waiting": 1, "n_held_by": 1, "waiting": [
            {"node": "node0003", "port": 1, "kind": "endport", "attribute": "P_KeyTable", "before": "none", "after": "full"}], "held_by": [
                {"node": "node0004", "port": 1, "kind": "endport", "text": "<i>it is silent</i>", "way_out": "unplug it"}]}]
        changed(path, data)
        browser.open(path)
        check_equal(browser.complaints(), [], "complaints of the browser")
        check_equal([row[:5] for row in rows(browser, "#violations table tbody tr")], [
            ["node0003", "leaf01/2", "1,000", "2026-02-01 00:00:00 UTC", "2026-02-02 00:00:00 UTC"],
            ["node0002", "leaf01/2", "at least 12", "2026-02-01 00:00:00 UTC", "2026-02-04 00:00:00 UTC"],
            ["not known", "node0004, leaf01/2", "3", "not known", "not known"]], "violations by sender")
        check_equal(rows(browser, "#leases tbody tr"), [
            ["job<i>1</i>", "jobs", "0x0777 full", "active", "root", "2026-02-01 00:00:00 UTC", "2 of 2",
             "limited 1 port node0002 full 1 port node0003"],
            ["rest:0x0777", "jobs", "0x0777 full", "releasing released by root", "root", "when it is released, or after a while without members",
             "0 of 1", "none not in this fabric now 0x000a0b0c0d0e0f01"]], "the leases")
        check_equal(rows(browser, "#history tbody tr"), [["8", "2026-02-01 00:00:00 UTC"], ["7", "not known"]], "the history")
        check_equal(rows(browser, "#differences tbody tr")[0], ["switch ports", "2", "tenant-a 0x0020 full", "0x0777 limited", "differs",
                                                                "leaf01/[1-2]"], "the difference")
        (held,) = rows(browser, "#held tbody tr")
        closed = "document.querySelectorAll('details:not([open])').length"
        before = browser.run(closed)
        check(before > 0, "nothing is folded")
        browser.call("Page.printToPDF")
        browser.run("dispatchEvent(new Event('beforeprint'))")
        check_equal(browser.run(closed), 0, "what is folded in print")
        browser.run("dispatchEvent(new Event('afterprint'))")
        check_equal(browser.run(closed), before, "what is folded after printing")
        check("node0003/1" in held[1] and "<i>it is silent</i> unplug it" in held[2], held)
        text = browser.run("document.getElementById('verdict').innerText")
        for words in ("Not everything matches the policy", "2 tables differ", "1 base is held", "1 port is frozen", "1 table could not"):
            check(words in text, repr(words), "is not in", text)
        check_equal(browser.run("document.querySelectorAll('main b, main i').length"), 0, "elements made of data")
        data.update(policy=None, differ=None, held=None, frozen=None, history=None, leases=None)
        data["counts"].update(differ=None, held=None, frozen=None)
        for p in data["partitions"]:
            p["policy"] = None
        changed(path, data)
        browser.open(path)
        check_equal(browser.complaints(), [], "complaints of the browser without a policy")
        for section, words in (("verdict", "No policy was given"), ("held", "Not known without a policy"), ("history", "is not known"), ("leases", "are not known"),
                               ("differences", "nothing was compared")):
            shown = browser.run("document.getElementById('%s').innerText" % section)
            check(words in shown, repr(words), "is not in", shown)


def test_leases():
    """Those in the store, whether the daemon runs or not, with what the tables say of their members now."""
    require()
    nobody = "0x000a0b0c0d0e0f01"
    pools = "pools:\n  jobs: {pkeys: 0x1000-0x1003, ports: ALL_CAS, lease: unlimited, rest: 0s, allow: root}\n"
    with Fabric(two_level(2, 1, 4)) as fabric:
        bus = Bus(fabric)
        fabric.settings("timeout: 200ms\n")
        path = fabric.write("partitions.yaml", Policy().add("a", 0x0101, {"node0002": "full"}).yaml() + pools)
        daemon = Daemon(fabric, path, environment=bus.environment())
        bus.wait_name()

        def lease(*arguments):
            fabric.pkeyctl("lease", *arguments, **bus.environment()).expect(0)

        def listed():
            data = fabric.pkeyctl("lease", "list", "--json", **bus.environment()).expect(0).json()
            return {x["id"]: x for x in data["leases"]}

        def report():
            data = fabric.pkeyctl("report", "--policy", path, "--json", **bus.environment()).expect(0).json()
            return {x["id"]: x for x in data["leases"]}

        lease("create", "--pool", "jobs", "--id", "job1", "--members", "node[0002-0004]", "--for", "2h")
        lease("edit", "open1", "--pool", "jobs", "--add", "node0005", "--membership", "limited")
        lease("edit", "open1", "--pool", "jobs", "--add", "node0006," + nobody, "--membership", "full")
        wait_for(lambda: listed()["open1"]["members_confirmed"] == 2, "the members that are in the fabric")
        found = report()
        check_equal({x["id"]: {k: v for k, v in x.items() if k not in ("members", "absent")} for x in found.values()},
                    listed(), "what `lease list` shows, too")
        check_equal(found["job1"]["members"], [{"membership": "full", "ports": 3, "who": "node[0002-0004]"}], "members")
        check_equal(found["job1"]["absent"], "", "members that are absent")
        check_equal([(m["membership"], m["who"]) for m in found["open1"]["members"]], [("limited", "node0005"), ("full", "node0006")], "members")
        check_equal(found["open1"]["absent"], nobody, "members that are absent")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")
        check_equal(report(), found, "the leases without the daemon")
        port = next(p for p in fabric.tables().values() if p.name == "node0003")
        fabric.set_p_key(port, **{"i%d" % [k & 0x7FFF for k in port.table].index(int(found["job1"]["pkey"], 16)): 0})
        check_equal(report()["job1"]["members_confirmed"], 2, "members that are confirmed by their tables")


def test_daemon():
    """What the daemon knows is in the report: its state, and the violations that it counted."""
    require()
    with Fabric(two_level(2, 1, 4)) as fabric:
        bus = Bus(fabric)
        fabric.settings("timeout: 200ms\nviolations: {interval: 1s}\n")
        path = fabric.write("partitions.yaml", Policy().add("a", 0x0101, {"node0002": "full", "node0003": "full"}).yaml())
        Daemon(fabric, path, environment=bus.environment())
        values = itertools.count(1)

        def counted():
            """The first reading of a counter is the baseline, so it moves until pkeyd sees it."""
            fabric.console('PerformanceSet "leaf01"[2] PortCounters.PortRcvConstraintErrors=%d' % next(values))
            return fabric.pkeyctl("violations", "--json", **bus.environment()).json()["violations"]

        wait_for(counted, "pkeyd to count a violation")
        data = fabric.pkeyctl("report", "--policy", path, "--json", **bus.environment()).expect(0).json()
        check_equal((data["daemon_state"], data["daemon"]["state"], data["daemon"]["generation"]), ("running", "right", 1), "the daemon")
        (violation,) = data["violations"]
        check(violation["switch"] == "leaf01/2" and violation["node"] == "node0002 mlx5_0/1" and violation["total"] > 0, violation)
        check(data["counted_since"], "since when")
        data = fabric.pkeyctl("report", "--policy", path, "--json", "-C", "ibsim0", **bus.environment()).json()
        check_equal((data["daemon_state"], data["violations"]), ("not-asked", None), "with a port")


if __name__ == "__main__":
    main()
