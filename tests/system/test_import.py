# SPDX-License-Identifier: GPL-2.0-or-later
"""partitions.conf to a policy and back, checked with OpenSM: for each file, OpenSM writes the same tables from the file, from
the policy by pkeyctl import, and from the file by pkeyctl export of that policy."""

import glob
import os
import random

from harness import SOURCE, Fabric, check, check_equal, end, main, two_level
from netfile import Topology

GOLDEN = os.path.join(SOURCE, "tests", "golden", "partitions")
SEED = int(os.environ.get("SEED", "1"))
RANDOM_FILES = int(os.environ.get("FILES", "16"))
HOSTS = 8
NODE_INFO = 0x11
# OpenSM reads uninitialized memory
UNPREDICTABLE = {"semicolon-in-front"}


BOTH = "version: 1\npartitions:\n  a:\n    pkey: 0x0010\n    members:\n      node0002: both\n"
SEEN = "version: 1\npartitions:\n  a:\n    pkey: 0x0010\n    members:\n      two/mlx5_0: full\n"
ABSENT = """version: 1
groups:
  away:
    - 0x0002c9030bad0001
    - 0x0002c9030bad0002
    - 0x0002c9030bad0003
partitions:
  a:
    pkey: 0x0010
    members:
      0x0002c9030bad0001: full
      0x0002c9030bad0003: none
      away: limited
"""


class Judge:
    """A fabric whose OpenSM is given one file after another."""

    def __init__(self, fabric, options=()):
        self.fabric, self.options = fabric, list(options)
        self.self_guid = fabric.topology.port_guid("node0001")
        self.count = 0
        self.exported = set()  # codes of files that were exported again

    def opensm_makes(self, text, fresh):
        """The tables of all endports, as sets. fresh: restart OpenSM, because the numbers that it chooses depend on earlier
        files."""
        fabric = self.fabric
        with open(fabric.path("partitions.conf"), "wb") as f:
            f.write(text)
        if fresh:
            end(fabric.opensm)
            os.remove(fabric.path("osm.log"))
            fabric.start_opensm()
        else:
            fabric.heavy_sweep()
        return {guid: set(port.keys()) for guid, port in fabric.tables().items()}

    def compare(self, name, text):
        fabric = self.fabric
        made = self.opensm_makes(text, fresh=needs_fresh(text))
        with open(fabric.path("original.conf"), "wb") as f:
            f.write(text)
        result = fabric.pkeyctl("import", fabric.path("original.conf"), *self.options, "--json").expect(0, 1, 2).json()
        codes = codes_of(result)
        if not result["ok"]:
            check_equal({f["code"] for f in result["findings"] if f["severity"] == "error"}, {"opensm.stale"}, "refused: " + name)
            return codes
        policy = fabric.write("partitions.yaml", result["text"])
        what = "%s, which became\n%s\n" % (name, result["text"])
        kept = self.check_verified(policy, what, "import.different" in codes)
        if kept is None:
            return codes
        self.count += 1
        if "opensm.discarded" in codes and "opensm.discarded" in self.exported:
            return codes  # they all become the same policy
        self.exported.update(codes)
        exported = fabric.pkeyctl("export", "opensm", policy, *self.options).expect(0).out
        again = self.opensm_makes(exported.encode(), fresh=False)
        if kept:
            made = {g: {k for k in keys if k & 0x7FFF != 0x7FFF or g != self.self_guid} for g, keys in made.items()}
            again = {g: {k for k in keys if k & 0x7FFF != 0x7FFF or g != self.self_guid} for g, keys in again.items()}
        check_equal(again, made, "tables that OpenSM makes of what was exported from " + what + exported)
        return codes

    def check_verified(self, policy, what, may_differ):
        """verify finds no difference, except for the port that pkeyd keeps in the default partition. Returns whether there
        was one."""
        differ = self.fabric.pkeyctl("verify", policy, "--json").expect(0, 2).json()["differ"]
        differ = [d for d in differ if d["missing"] or d["unexpected"]]
        if differ and "plan.capacity" in codes_of(self.fabric.pkeyctl("plan", policy, "--json")):
            return None  # more than a table holds: OpenSM writes a part of it
        if may_differ:
            check(all(int(d["port_guid"], 16) == self.self_guid and d["missing"] == ["0xffff"] and
                      d["unexpected"] == ["0x7fff"] for d in differ), "more than SELF differs after", what, differ)
            return True
        check_equal(differ, [], "differences after " + what)
        return False


def codes_of(result):
    result = result if isinstance(result, dict) else result.json()
    return [f["code"] for f in result["findings"]]


def needs_fresh(text):
    """A definition without a number: OpenSM chooses one that depends on earlier files."""
    heads = [s.split(b":")[0] for s in text.replace(b"\n", b" ").split(b";")]
    return any(b"=" not in h.split(b",")[0] or b"0x0:" in h or b"=0x0" in h or b"0x8000" in h for h in heads if h.strip())


def fabric_of():
    topology = two_level(2, 1, HOSTS // 2)
    return Fabric(topology)


def golden_files():
    files = sorted(glob.glob(os.path.join(GOLDEN, "*.conf")))
    check(len(files) > 80, "too few files in", GOLDEN)
    return [(os.path.basename(f)[:-5], open(f, "rb").read()) for f in files]


def golden(name):
    return next(text for n, text in golden_files() if n == name)


def test_every_kind_of_file():
    with fabric_of() as fabric:
        judge = Judge(fabric)
        for name, text in golden_files():
            before = judge.count
            judge.compare(name, text)
            check_equal(judge.count > before, name not in UNPREDICTABLE, "could %s be compared" % name)


def test_random_files():
    with fabric_of() as fabric:
        judge = Judge(fabric)
        for seed in range(SEED, SEED + RANDOM_FILES):
            text = random_file(random.Random(seed), fabric.topology)
            judge.compare("seed %d:\n%s" % (seed, text.decode()), text)
        check(judge.count * 2 > RANDOM_FILES, "too few files that could be compared:", judge.count)


def test_both_where_opensm_allows_it():
    with Fabric(two_level(2, 1, HOSTS // 2), opensm_conf="allow_both_pkeys TRUE\n") as fabric:
        options = ["--opensm-config", fabric.path("opensm.conf")]
        judge = Judge(fabric, options)
        codes = judge.compare("both", golden("both"))
        check("opensm.both" not in codes, codes)
        check_equal(sorted(fabric.tables()[fabric.topology.port_guid("node0002")].keys()), [0x0010, 0x7FFF, 0x8010], "node0002")
        for seed in range(1000, 1006):
            # a switch's port 0 has eight entries, and OpenSM leaves index 0 free for a full member of the default partition
            text = random_file(random.Random(seed), fabric.topology).replace(b"=full", b"=both").replace(b"ALL_SWITCHES", b"ALL_CAS")
            judge.compare("seed %d:\n%s" % (seed, text.decode()), text)
        check(judge.count > 3, "too few files that could be compared:", judge.count)
        # memberships that opensm.conf does not allow are not exported
        result = fabric.pkeyctl("export", "opensm", fabric.write("both.yaml", BOTH), "--json").expect(1).json()
        check_equal([f["code"] for f in result["findings"]], ["opensm.both"], "findings")
        check("allow_both_pkeys TRUE" in result["findings"][0]["hint"], result)
        # nor is `both` at index 0, where OpenSM would put the limited entry
        result = fabric.pkeyctl("export", "opensm", fabric.write("index0.yaml", BOTH + "    index0: true\n"), *options, "--json")
        check_equal([(f["code"], f["hint"]) for f in result.expect(1).json()["findings"]],
                    [("opensm.both", "make them full members, or remove `index0`")], "findings")
        # nor is `both` in a partition outside of `owns` silently made full: by its table, or by OpenSM's file
        theirs = fabric.write("partitions.conf", "Default=0x7fff: ALL=limited, SELF=full;\ntheirs=0x0e01: 0x%016x=both;\n" %
                              fabric.topology.port_guid("node0002"))
        fabric.heavy_sweep()
        policy = fabric.write("owns.yaml", OWNS)
        fabric.pkeyctl("export", "opensm", policy, "--opensm-config", fabric.path("opensm.conf")).expect(0)
        result = fabric.pkeyctl("export", "opensm", policy).expect(1)
        check("should be both a full and a limited member of 0x0e01, but" in result.err, result)
        check("--opensm-config" in result.err, "the way out:", result)
        fabric.settings("timeout: 200ms\nwriter: opensm\nopensm: {partitions_conf: %s, reload: \"pid:2\", config: %s}\n" % (
            theirs, fabric.path("opensm.conf")))
        fabric.pkeyctl("export", "opensm", policy).expect(0)
        fabric.settings("timeout: 200ms\n")
        fabric.console('Unlink "node0002"')
        fabric.heavy_sweep()
        fabric.write("told.conf", "partition_config_file %s\n" % theirs)
        result = fabric.pkeyctl("export", "opensm", policy, "--opensm-config", fabric.path("told.conf")).expect(1)
        check("member of theirs (0x0e01), but" in result.err, "a host that is down:", result)


def test_what_is_said():
    """Each kind of finding, with its line."""
    with fabric_of() as fabric:
        for name, code, line in (
                ("later-counts", "import.overridden", 1), ("comments", "import.narrowed", 12), ("node-guid", "import.guid", 1),
                ("unknown-guid", "import.guid", 1), ("odd-names", "import.name", 1), ("indx0-twice", "import.index0", 1),
                ("mgid-without-ipoib", "import.multicast", 1), ("default-without-self", "import.different", 2),
                ("both", "opensm.both", 1), ("self", "import.self", 2), ("two-semicolons", "opensm.semicolon", 1),
                ("host-name", "opensm.discarded", 2), ("ipoib-flags", "opensm.ipoib", 2)):
            result = fabric.pkeyctl("import", os.path.join(GOLDEN, name + ".conf"), "--json", "--topology",
                                    os.path.join(GOLDEN, "fabric.net"))
            said = [(f["code"], f["line"]) for f in result.json()["findings"]]
            check((code, line) in said, name, "should say", code, "in line", line, "but says", said)


def test_files():
    with fabric_of() as fabric:
        original, made = os.path.join(GOLDEN, "tenants.conf"), fabric.path("made.yaml")
        printed = fabric.pkeyctl("import", original).expect(0).out
        check_equal(fabric.pkeyctl("import", original, "--output", made).expect(0).out, "", "standard output")
        check_equal(open(made).read(), printed, "the file")
        # an existing file is not replaced
        result = fabric.pkeyctl("import", original, "--output", made, "--json").expect(1).json()
        note, *others = result["findings"]
        check_equal((note["code"], note["severity"]), ("import.writer", "note"), "the writer")
        check("writer: opensm and opensm: {partitions_conf: %s, " % original in note["text"], note)
        check_equal([(f["code"], f.get("hint")) for f in others],
                    [("file.unwritable", "no file is replaced: move it away, or name another one with --output")], "findings")
        check_equal(open(made).read(), printed, "the file afterwards")
        check_equal(fabric.pkeyctl("import", fabric.path("no-such.conf"), "--json").expect(1).json()["findings"][0]["code"],
                    "file.unreadable", "no file")
        # SELF is the host of the SM; on another host it is exported by its name
        elsewhere = fabric.pkeyctl("import", os.path.join(GOLDEN, "self.conf"), host="node0003").expect(0)
        check("SELF" not in elsewhere.out and "node0001: full" in elsewhere.out, elsewhere)
        # without a fabric, GUIDs stay
        bare = fabric.pkeyctl("import", original, LD_PRELOAD="").expect(0)
        check("GUIDs are kept" in bare.err and "node0" not in bare.out, bare)
        fabric.pkeyctl("check", fabric.write("bare.yaml", bare.out)).expect(0)
        # the export has hosts that are down if their GUIDs are known
        absent = fabric.write("absent.yaml", ABSENT)
        exported = fabric.pkeyctl("export", "opensm", absent).expect(0).out
        for words in ("0x0002c9030bad0001=full", "0x0002c9030bad0002=limited"):
            check(words in exported, words, "is not in", exported)
        own = exported[exported.index("a=0x0010"):]
        check("0x0002c9030bad0003" not in own, "none became something:", exported)
        check("0x0002c9030bad0003=limited; # a port that was never seen" in exported, "the default partition:", exported)
        fabric.pkeyctl("export", "nothing", absent).expect(1)
        fabric.pkeyctl("plan", absent, "--output", made).expect(1)


def test_a_host_with_a_port_that_is_down():
    """Its name would make the port a member, too, once it is up."""
    topology = Topology()
    topology.add_switch("leaf01", 3)
    for number, (node, description) in enumerate((("node0001", None), ("rail0", "two mlx5_0"), ("rail1", "two mlx5_1")), 1):
        topology.add_host(node, description)
        topology.link(node, 1, "leaf01", number)
    with Fabric(topology) as fabric:
        conf = fabric.write("tenants.conf", "Default=0x7fff: ALL=limited, SELF=full;\na=0x10: 0x%016x=full;\n" % topology.port_guid("rail0"))
        fabric.pkeyctl("apply", fabric.write("seen.yaml", SEEN), "--yes", "--beside-opensm").expect(0)
        fabric.console('Unlink "rail1"')
        fabric.heavy_sweep()
        imported = fabric.pkeyctl("import", conf).expect(0).out
        check("      two/mlx5_0: full\n" in imported, imported)


def test_adapters_with_the_same_name():
    """As they come from the factory. A line for that name would freeze them."""
    topology = Topology()
    topology.add_switch("leaf01", 3)
    for number, node in enumerate(("node0001", "factory1", "factory2"), 1):
        topology.add_host(node, "MT4119 ConnectX5   Mellanox Technologies" if number > 1 else None)
        topology.link(node, 1, "leaf01", number)
    with Fabric(topology) as fabric:
        judge = Judge(fabric)
        judge.compare("twins", ("Default=0x7fff: ALL=limited, SELF=full;\na=0x10: 0x%016x=full, 0x%016x=full;\n" %
                                (topology.port_guid("factory1"), topology.port_guid("factory2"))).encode())
        check_equal(judge.count, 1, "compared files")
        planned = fabric.pkeyctl("plan", fabric.path("partitions.yaml"), "--json").expect(0, 2).json()
        check_equal(planned["frozen"], [], "frozen ports")


OWNS = """version: 1
owns: [0x7fff, 0x0010]
partitions:
  p:
    pkey: 0x0010
    members: {node0002: full}
"""


def test_export_keeps_what_is_not_the_policys():
    """OpenSM removes entries that its file does not have."""
    theirs = ("Default=0x7fff: ALL=limited, SELF=full;\ntheirs=0x0e01,ipoib,mtu=5: ALL_CAS=full;\n"
              "old=0x0e02: SELF=full, 0x0002c9030bad0001=full;\n")
    with Fabric(two_level(1, 1, HOSTS), partitions_conf=theirs) as fabric:
        conf = fabric.write("opensm.conf", "partition_config_file %s\n" % fabric.path("partitions.conf"))
        policy = fabric.write("owns.yaml", OWNS)
        result = fabric.pkeyctl("export", "opensm", policy, "--topology", os.devnull).expect(1)
        check("leave --topology out" in result.err, result)
        exported = fabric.pkeyctl("export", "opensm", policy, "--opensm-config", conf).expect(0)
        check("theirs=0x0e01,ipoib,mtu=5" in exported.out, exported)
        check("gives partition theirs (0x0e01), which pkeyd does not manage, to ALL ports" in exported.err, exported)
        result = fabric.pkeyctl("export", "opensm", policy, "--opensm-config", conf, "--json").expect(0).json()
        check_equal([f["code"] for f in result["findings"]], ["opensm.all"], "findings")
        check("0x0002c9030bad0001=full; # a port that was never seen" in exported.out, exported)
        # a switch that does not answer discovery may filter
        fabric.lose("leaf01", 100, NODE_INFO)
        unread = fabric.pkeyctl("export", "opensm", policy, "--opensm-config", conf).expect(0)
        check("node0001 mlx5_0/1: the switch port that it is plugged into cannot be read" in unread.err, unread)
        check("=0x0e01" not in unread.out, unread)
        fabric.lose("leaf01", 0, NODE_INFO)
        fabric.write("opensm.conf", "partition_config_file /no-such.conf\n")
        bare = fabric.pkeyctl("export", "opensm", policy, "--opensm-config", conf).expect(0)
        check("/no-such.conf cannot be read" in bare.err and "p0e01=0x0e01:" in bare.out, bare)
        before = {p.name: set(p.keys()) for p in fabric.tables().values()}
        fabric.write("partitions.conf", exported.out)
        fabric.heavy_sweep()
        after = {p.name: set(p.keys()) for p in fabric.tables().values()}
        before["node0002"].add(0x8010)
        check_equal(after, before, "tables that OpenSM makes of what was exported")


TENANT = "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node0002: full}\n"
SELF_ELSEWHERE = """version: 1
groups:
  heads: [node0003, SELF]
partitions:
  default:
    pkey: 0x7fff
    members: {ALL: limited, SELF: full}
  p:
    pkey: 0x0010
    members:
      node0002: full
      SELF: limited
"""


def test_export_of_a_topology():
    """A topology file shows neither SELF nor the SM: the SM's port is a full member of the default partition all the same."""
    with fabric_of() as fabric:
        judge, topology = Judge(fabric), ["--topology", fabric.path("fabric.net")]
        policy = fabric.write("tenant.yaml", TENANT)
        by_fabric = fabric.pkeyctl("export", "opensm", policy).expect(0).out
        by_topology = fabric.pkeyctl("export", "opensm", policy, *topology).expect(0).out
        check("SELF" not in by_fabric, "the SM is known:", by_fabric)
        made = judge.opensm_makes(by_fabric.encode(), fresh=False)
        check_equal(made[judge.self_guid], {0xFFFF}, "the SM's port")
        check_equal(judge.opensm_makes(by_topology.encode(), fresh=False), made, "tables that OpenSM makes of " + by_topology)
        policy = fabric.write("self.yaml", SELF_ELSEWHERE)
        fabric.pkeyctl("export", "opensm", policy).expect(0)
        result = fabric.pkeyctl("export", "opensm", policy, *topology, "--json").expect(1).json()
        check_equal([(f["code"], f["line"], f["hint"]) for f in result["findings"]],
                    [("usage", line, "name the host, or leave --topology out") for line in (3, 12)], "findings")


def test_export_without_an_sm():
    with Fabric(two_level(1, 1, HOSTS), opensm=False) as fabric:
        for text, expected in ((TENANT, 1), ("owns: [0x0010]\n" + TENANT, 0)):
            exported = fabric.pkeyctl("export", "opensm", fabric.write("policy.yaml", text)).expect(0).out
            check_equal(exported.count("SELF=full"), expected, "lines for SELF in " + exported)


def random_guid(rng, topology):
    return rng.choice([*("0x%016x" % topology.port_guid("node%04d" % (i + 1)) for i in range(HOSTS))] * 3 +
                      ["0x%x" % topology.port_guid("node%04d" % rng.randint(1, HOSTS)),
                       "%d" % topology.port_guid("node%04d" % rng.randint(1, HOSTS)),
                       "0x%016x" % topology.guid("leaf01"), "0x0002c9030bad%04x" % rng.randint(1, 99)])


def random_member(rng, topology):
    who = rng.choice([random_guid(rng, topology)] * 8 + ["ALL", "ALL_CAS", "ALL_SWITCHES", "SELF", "SEL", "A", "NONE", ""])
    blank = rng.choice(["", "", " ", "\t"])
    flag = rng.choice(["", "", "=full", "=full", "=limited", "=both", "=", "=ful", "=f", "=lim", "=ful1", "=Full"])
    return blank + who + blank + (flag and blank + flag) if who else blank


def random_file(rng, topology):
    out = ["Default=0x7fff: ALL=limited, SELF=full;\n"] if rng.random() < 0.8 else []
    keys = ["0x%04x" % k for k in rng.sample(range(1, 0x7FFF), 5)]
    for _ in range(rng.randint(1, 7)):
        key = rng.choice(keys)
        head = "p%d=%s" % (rng.randint(0, 9), key)
        head += rng.choice(["", "", ", ipoib", ",defmember=full", ", defmember=limited", ",indx0", ",ipoib,mtu=5,rate=16", ",,"])
        members = [random_member(rng, topology) for _ in range(rng.randint(0, 6))]
        joint = rng.choice([", ", ",", ",\n  ", " ,\n", ", # x\n"])
        out.append(head + rng.choice([":", " : ", ":\n"]) + joint.join(members) + rng.choice([";", ";", " ;", ";\n", ";;", "\n;"]
                   if rng.random() < 0.15 else [";"]) + rng.choice(["\n", "\n\n", " ", " # y\n"]))
    return "".join(out).encode()


if __name__ == "__main__":
    main()
