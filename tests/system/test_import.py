# SPDX-License-Identifier: GPL-2.0-or-later
"""partitions.conf to a policy and back, judged by OpenSM: for each file the tables that OpenSM makes of it are those that the
policy asks for which pkeyctl import makes of it, and those that OpenSM makes of what pkeyctl export makes of that policy."""

import glob
import os
import random

from harness import SOURCE, Fabric, check, check_equal, end, main, two_level

GOLDEN = os.path.join(SOURCE, "tests", "golden", "partitions")
SEED = int(os.environ.get("SEED", "1"))
RANDOM_FILES = int(os.environ.get("FILES", "25"))
HOSTS = 8
# OpenSM reads memory that it never wrote
UNPREDICTABLE = {"semicolon-in-front"}


class Judge:
    """A fabric whose OpenSM is given one file after another."""

    def __init__(self, fabric, options=()):
        self.fabric, self.options = fabric, list(options)
        self.self_guid = fabric.topology.port_guid("node0001")
        self.count = 0

    def opensm_makes(self, text, fresh):
        """The tables of all endports, as sets. fresh: numbers that OpenSM makes up depend on what it read before."""
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
        codes = [f["code"] for f in result["findings"]]
        if not result["ok"]:
            check_equal({f["code"] for f in result["findings"] if f["severity"] == "error"}, {"opensm.stale"}, "refused: " + name)
            return codes
        policy = fabric.write("partitions.yaml", result["text"])
        what = "%s, which became\n%s\n" % (name, result["text"])
        kept = self.check_verified(policy, what, "import.different" in codes)
        exported = fabric.pkeyctl("export", "opensm", policy, *self.options).expect(0).out
        again = self.opensm_makes(exported.encode(), fresh=False)
        if kept:
            made = {g: {k for k in keys if k & 0x7FFF != 0x7FFF or g != self.self_guid} for g, keys in made.items()}
            again = {g: {k for k in keys if k & 0x7FFF != 0x7FFF or g != self.self_guid} for g, keys in again.items()}
        check_equal(again, made, "tables that OpenSM makes of what was exported from " + what + exported)
        self.count += 1
        return codes

    def check_verified(self, policy, what, may_differ):
        """verify finds the tables as the policy has them; but for the one port that pkeyd keeps in the default partition.
        Says if there was need of that."""
        differ = self.fabric.pkeyctl("verify", policy, "--json").expect(0, 2).json()["differ"]
        differ = [d for d in differ if d["missing"] or d["unexpected"]]
        if may_differ:
            check(all(int(d["port_guid"], 16) == self.self_guid and d["missing"] == ["0xffff"] and
                      d["unexpected"] == ["0x7fff"] for d in differ), "more than SELF differs after", what, differ)
            return True
        check_equal(differ, [], "differences after " + what)
        return False


def needs_fresh(text):
    """A definition without a number: what it gets depends on what OpenSM read before."""
    heads = [s.split(b":")[0] for s in text.replace(b"\n", b" ").split(b";")]
    return any(b"=" not in h.split(b",")[0] or b"0x0:" in h or b"=0x0" in h or b"0x8000" in h for h in heads if h.strip())


def fabric_of():
    topology = two_level(2, 1, HOSTS // 2)
    return Fabric(topology)


def golden_files():
    files = sorted(glob.glob(os.path.join(GOLDEN, "*.conf")))
    check(len(files) > 80, "too few files in", GOLDEN)
    return [(os.path.basename(f)[:-5], open(f, "rb").read()) for f in files]


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


def test_both():
    text = next(t for n, t in golden_files() if n == "both")
    with fabric_of() as fabric:
        codes = Judge(fabric).compare("both", text)
        check("opensm.both" in codes, codes)


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
