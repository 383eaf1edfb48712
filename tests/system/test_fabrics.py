# SPDX-License-Identifier: GPL-2.0-or-later
"""Several fabrics on one head node: a pkeyd for each (--fabric), with files, a store, metrics and a name on the bus of its own."""

import json
import os
import re
import signal
import subprocess

from door import Door
from harness import PATIENCE, Fabric, check, check_equal, end, main, program, read_file, sets, two_level, wait_for
from oracle import Oracle, Policy, differences
from private_bus import Bus, require

SETTINGS = "sweep_interval: 2s\ntimeout: 200ms\nabsent_hold: 0s\nbeside_opensm: true\n"


def installed(name):
    """Where the programs look for a file of /etc/pkeyd, by their own word."""
    return re.search(r"\((\S*)/pkeyd\.yaml\)", subprocess.run([program("pkeyctl"), "--help"], text=True, check=True,
                                                              stdout=subprocess.PIPE).stdout).group(1)


class Head:
    """A head node: /etc/pkeyd and /var/lib are directories of the test, a bus, and one simulated fabric for each name."""

    def __init__(self, *names, offset=0):
        """offset: of the GUIDs from one fabric to the next."""
        require()
        self.etc = installed("pkeyd.yaml")
        self.fabrics = {name: Fabric(two_level(2, 1, 3, offset=i * offset), socket_name="%s-%s" % (os.environ["IBSIM_SOCKNAME"], name))
                        for i, name in enumerate(names)}
        self.daemons = {}

    def __enter__(self):
        self.entered = []
        for fabric in self.fabrics.values():
            self.entered.append(fabric.__enter__())
        first = self.entered[0]
        for name in ("etc", "lib", "lib/pkeyd"):
            os.mkdir(first.path(name))
        self.dir, self.bus = first.dir, Bus(first)
        return self

    def __exit__(self, *error):
        for fabric in reversed(self.entered):
            fabric.__exit__(*error)

    def path(self, name):
        return os.path.join(self.dir, name)

    def apart(self, *arguments):
        """A command that has the directories of this head node, and nobody else's."""
        mounts = ('etc=$1 dir=$2; shift 2; mkdir -p "$etc" && mount --bind "$dir/etc" "$etc" && mount --bind "$dir/lib" /var/lib && '
                  'exec "$@"')
        return ["unshare", "--mount", "sh", "-c", mounts, "-", self.etc, self.dir, *arguments]

    def write(self, fabric, name, text):
        """A file of a fabric, or without one of /etc/pkeyd itself."""
        directory = self.path("etc/" + (fabric or ""))
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, name), "w") as f:
            f.write(text)

    def start(self, name, fabric=None, policy=None, settings=SETTINGS, wait=True, trace=None):
        """The pkeyd of a fabric; name None: the one without a name, on the simulator of `fabric`."""
        if policy:
            self.write(name, "partitions.yaml", policy.yaml())
        self.write(name, "pkeyd.yaml", settings)
        site = self.fabrics[fabric or name]
        log = "pkeyd-%s-%d.err" % (name, len(site.children))
        states = ":".join(["/var/lib/pkeyd"] + (["/var/lib/pkeyd/" + name] if name else []))  # as systemd does for StateDirectory=
        child = site.start(self.apart(program("pkeyd"), *(["--fabric", name] if name else [])), log, trace=trace,
                           STATE_DIRECTORY=states, **self.bus.environment())
        self.daemons[name] = (child, site.path(log))
        if wait:
            wait_for(lambda: self.status(name).get("state") == "right",
                     lambda: "pkeyd of %s to be done; it said:\n%s" % (name, self.log(name)))
        return child

    def log(self, name):
        return read_file(self.daemons[name][1])

    def pkeyctl(self, name, *arguments, fabric=None, **how):
        """name: None: without --fabric."""
        site = self.fabrics[fabric or name or next(iter(self.fabrics))]
        return site.run(self.apart(program("pkeyctl"), *(["--fabric", name] if name else []), *arguments),
                        **{**self.bus.environment(), **how})

    def status(self, name):
        result = self.pkeyctl(name, "status", "--json")
        return result.json() if result.out else {}

    def wrong(self, name, policy):
        site = self.fabrics[name]
        tables = site.tables()
        return differences(Oracle(tables, site.topology.port_guid(site.home)).tables(policy), tables)


def policy_of(base, name):
    return Policy().add(name, base, {"node[0001-0003]": "full", "node[0004-0006]": "limited"})


COMPUTE, STORAGE = policy_of(0x0011, "jobs"), policy_of(0x0022, "disks")


def sample(text, name):
    return [line for line in text.splitlines() if line.startswith(name)]


def test_side_by_side():
    """Two fabrics with the same host names and GUIDs, and different policies: nothing of one reaches the other."""
    with Head("compute", "storage") as head:
        prom = {name: head.path(name + ".prom") for name in head.fabrics}
        for name, policy in (("compute", COMPUTE), ("storage", STORAGE)):
            head.start(name, policy=policy, settings=SETTINGS + "metrics: {textfile: %s}\n" % prom[name])
        for name, policy in (("compute", COMPUTE), ("storage", STORAGE)):
            status = head.status(name)
            check_equal((status["fabric"], status["state"], status["policy_file"]),
                        (name, "right", "%s/%s/partitions.yaml" % (head.etc, name)), "status of " + name)
            check_equal(head.wrong(name, policy), [], "tables of " + name)
            check(os.path.exists(head.path("lib/pkeyd/%s/state.db" % name)), "there is no store of", name)
            check("pkeyd@%s: " % name in head.log(name), "lines of the log do not name the fabric:", head.log(name))
            text = read_file(prom[name])
            check(all('{fabric="%s"' % name in line for line in text.splitlines() if line[:1] not in "#"), "metrics:", text)
            check("pkeyd %s" % status["version"] + ", fabric " + name in head.pkeyctl(name, "status").out, "status has no fabric")
            head.pkeyctl(name, "verify").expect(0)
        check(not os.path.exists(head.path("lib/pkeyd/state.db")), "there is a store without a name")

        # a change of one
        more = policy_of(0x0022, "disks").add("backup", 0x0023, {"node[0001-0002]": "full"})
        head.write("storage", "partitions.yaml", more.yaml())
        other = head.status("compute")["generation"]
        head.pkeyctl("storage", "reload").expect(0)
        check_equal(head.wrong("storage", more), [], "tables of storage after its reload")
        check_equal((head.wrong("compute", COMPUTE), head.status("compute")["generation"]), ([], other), "compute after it")
        check("backup" in head.pkeyctl("storage", "history", "policy", str(head.status("storage")["generation"])).out, "history")
        check("backup" not in head.pkeyctl("compute", "history", "policy", str(other)).out, "history of the other one")

        # by the environment, which an option overrides
        check_equal(head.pkeyctl(None, "status", "--json", PKEYCTL_FABRIC="compute").json()["fabric"], "compute", "by PKEYCTL_FABRIC")
        check_equal(head.pkeyctl("storage", "status", "--json", PKEYCTL_FABRIC="compute").json()["fabric"], "storage", "by --fabric")

        # one ends, the other stays
        daemon, log = head.daemons["storage"]
        daemon.send_signal(signal.SIGTERM)
        check_equal(daemon.wait(timeout=PATIENCE), 0, "exit status: " + read_file(log))
        check_equal(head.status("compute")["state"], "right", "compute, after storage was stopped")
        result = head.pkeyctl("storage", "status").expect(1)
        check("pkeyd of fabric storage is not running" in result.err and "systemctl status pkeyd@storage" in result.err, result)


def test_who_may():
    """The rules of the bus for org.pkeyd1 hold for the names of fabrics, too: all users may read, only root may change."""
    with Head("compute", "storage") as head:
        head.start("compute", policy=COMPUTE)
        head.start("storage", policy=STORAGE)
        for name in ("compute", "storage"):
            def call(member, user=None, name=name):
                return head.bus.busctl("--json=short", "call", "org.pkeyd1." + name, "/org/pkeyd1/" + name, "org.pkeyd1", member, user=user)
            answer = call("Status", user="nobody")
            check_equal((answer.returncode, json.loads(answer.stdout or "{}").get("data", [{}])[0].get("Fabric", {}).get("data")), (0, name),
                        "Status for nobody: " + answer.stderr)
            check(call("Reload", user="nobody").returncode != 0, "nobody reloaded", name)
            check_equal(call("Reload").returncode, 0, "Reload for root")


def test_names():
    with Head("compute") as head:
        head.start("compute", policy=COMPUTE)
        # no fabric, or one that is not here: those that are here are named
        result = head.pkeyctl(None, "status").expect(1)
        check("is not running" in result.err and "--fabric: compute" in result.err, result)
        result = head.pkeyctl(None, "plan").expect(1)
        check("partitions.yaml: error: cannot be read" in result.err and "--fabric: compute" in result.err, result)
        result = head.pkeyctl("compte", "plan", fabric="compute").expect(1)
        check("compte/partitions.yaml" in result.err and "--fabric: compute" in result.err, result)
        for name in ("9a", "a/b", "../a", "lock", "a" * 33, "a b", "-", "a.b"):
            result = head.pkeyctl(None, "--fabric", name, "status").expect(1)
            check("--fabric: '%s' is not the name of a fabric" % name in result.err, result)
            result = head.fabrics["compute"].run(head.apart(program("pkeyd"), "--fabric", name, "--check")).expect(1)
            check("is not the name of a fabric" in result.err, result)
        result = head.pkeyctl(None, "status", PKEYCTL_FABRIC="a b").expect(1)
        check("PKEYCTL_FABRIC: 'a b' is not the name" in result.err, result)
        # completion
        head.write("a-b", "pkeyd.yaml", "")
        head.write("c", "partitions.yaml", "") # either file makes a fabric
        head.write("d", "other.yaml", "")
        answer = head.pkeyctl(None, "complete", "2", "pkeyctl", "--fabric").out.split()
        check_equal(answer, ["a-b", "c", "compute"], "completion of --fabric")
        answer = head.pkeyctl(None, "complete", "3", "pkeyctl", "--fabric=compute", "env").out.split("\n")
        check(any(line.startswith("jobs") for line in answer), "completion of a partition of a fabric:", answer)


def test_apply_first():
    """The tool may be the first that needs the state directory of a fabric; without a name there is none yet."""
    with Head("compute") as head:
        os.rmdir(head.path("lib/pkeyd"))
        head.write("compute", "partitions.yaml", COMPUTE.yaml())
        head.write("compute", "pkeyd.yaml", SETTINGS)
        head.pkeyctl("compute", "apply", "--yes").expect(0)
        check_equal(head.wrong("compute", COMPUTE), [], "tables")
        check_equal([os.stat(head.path("lib/pkeyd" + d)).st_mode & 0o777 for d in ("", "/compute")], [0o711, 0o700], "modes")
        head.start("compute")


def test_a_name_with_a_dash():
    with Head("a-b") as head:
        head.start("a-b", policy=COMPUTE)
        check_equal(head.status("a-b")["fabric"], "a-b", "the fabric")
        check("/org/pkeyd1/a_2db" in head.bus.busctl("tree", "--list", "org.pkeyd1.a-b").stdout, "the object")


def test_beside_one_without_a_name():
    """It has org.pkeyd1, whoever was there first."""
    with Head("compute", "storage") as head:
        head.start("storage", policy=STORAGE)
        head.start(None, fabric="compute", policy=COMPUTE)
        check_equal((head.status(None)["fabric"], head.status("storage")["fabric"]), ("", "storage"), "fabrics")
        check_equal((head.wrong("compute", COMPUTE), head.wrong("storage", STORAGE)), ([], []), "tables")
        end(head.daemons[None][0])
        result = head.pkeyctl(None, "status").expect(1)
        check("is not running" in result.err and "--fabric: storage" in result.err, result)
        check_equal(head.status("storage")["state"], "right", "storage")
        head.start(None, fabric="compute", settings=SETTINGS)
        check_equal(head.status(None)["fabric"], "", "after a restart")


def test_files_of_another():
    """What two fabrics must not share is refused to the second one: OpenSM's partition file, and the metrics."""
    with Head("compute", "storage") as head:
        mirror, prom = head.path("partitions.conf"), head.path("pkeyd.prom")
        settings = SETTINGS.replace("beside_opensm: true\n", "") + \
            "opensm: {mirror: %s}\nmetrics: {textfile: %s}\n" % (mirror, prom)
        head.start("compute", policy=COMPUTE, settings=settings)
        wait_for(lambda: "fabric compute" in read_file(mirror), "the mirror")
        before = read_file(mirror)
        head.start("storage", policy=STORAGE, settings=settings, wait=False)
        wait_for(lambda: head.status("storage").get("state") == "partial", "pkeyd of storage to be done but for the mirror")
        wait_for(lambda: "is written by the pkeyd of another fabric" in head.log("storage"), "the refusal: " + head.log("storage"))
        wait_for(lambda: "the file has the metrics of another fabric" in head.log("storage"), "the refusal: " + head.log("storage"))
        check_equal(read_file(mirror), before, "the mirror of compute")
        check_equal(sample(read_file(prom), "pkeyd_audit_mode"), ['pkeyd_audit_mode{fabric="compute"} 0'], "metrics")
        # without a name it is another fabric, too
        end(head.daemons["compute"][0])
        head.start(None, fabric="compute", policy=COMPUTE, settings=settings, wait=False)
        wait_for(lambda: "is written by the pkeyd of another fabric" in head.log(None), "the refusal: " + head.log(None))
        check_equal(read_file(mirror), before, "the mirror of compute")
        wait_for(lambda: "the file has the metrics of another fabric" in head.log(None), "the refusal: " + head.log(None))
        # a name that begins like this one is another one
        end(head.daemons["storage"][0])
        head.start("comp", fabric="storage", policy=STORAGE, settings=SETTINGS + "metrics: {textfile: %s}\n" % prom, wait=False)
        wait_for(lambda: "the file has the metrics of another fabric" in head.log("comp"), "the refusal: " + head.log("comp"))


POOL = """pools:
  tenants:
    pkeys: 0x2000-0x200f
    ports: ALL_CAS
    lease: unlimited
    rest: 0s
    allow: 'rest:kube'
"""


def test_a_port_in_another_fabric():
    """pkeyd.yaml names no port, and that of the fabric is down: the first active one leads to another fabric."""
    with Head("compute", "storage", offset=0x1000000) as head:
        site, trace = head.fabrics["storage"], "other.trace"
        head.write(None, "partitions.yaml", COMPUTE.yaml() + POOL.replace("rest:kube", "root"))
        end(head.start(None, fabric="compute"))
        before = {guid: port.keys() for guid, port in site.tables().items()}
        daemon = head.start(None, fabric="storage", wait=False, trace=trace)
        wait_for(lambda: head.status(None).get("state") == "failed", lambda: "the sweep to fail: " + head.log(None))
        reason = "leads to another fabric, of which pkeyd knows no port; nothing is written"
        check(reason in head.pkeyctl(None, "status").expect(2).out, "status:", head.pkeyctl(None, "status"))
        result = head.pkeyctl(None, "lease", "create", "--pool", "tenants", "--id", "a", "--members", "node0002").expect(1)
        check("its port leads to another fabric" in result.err, result)
        result = head.pkeyctl(None, "reload")
        check(reason in result.out + result.err, result)
        result = head.pkeyctl(None, "doctor", fabric="storage")
        check("what is stored is about another fabric" in result.out, result)
        check_equal(head.log(None).count("leads to another fabric"), 1, "lines in the log: " + head.log(None))
        end(daemon)
        check_equal(sets(site, trace), [], "writes")
        check_equal(differences(before, site.tables()), [], "tables of storage")
        # and back
        head.start(None, fabric="compute")
        check_equal(head.wrong("compute", COMPUTE), [], "tables of compute")
        for words in ("in the fabric", "leads to"):
            check(words not in head.log(None), "log:", head.log(None))


def test_rest():
    """pkeyd-rest of a fabric asks the pkeyd of that fabric."""
    with Head("compute", "storage") as head:
        for name, policy in (("compute", COMPUTE), ("storage", STORAGE)):
            head.write(name, "partitions.yaml", policy.yaml() + POOL)
            head.start(name)
        site = head.fabrics["storage"]
        door = Door(site, head.bus, arguments=("--fabric", "storage"), clients="")
        check("pkeyd-rest@storage: serving" in door.text(), "the log does not name the fabric:", door.text())
        guid = "%016x" % site.topology.port_guid("node0002")
        door.request("POST", "/ufmRest/resources/pkeys/", {"pkey": "0x2001", "membership": "full", "guids": [guid]}).expect(200)
        leases = {name: [lease["id"] for lease in head.pkeyctl(name, "lease", "list", "--json").json()["leases"]]
                  for name in head.fabrics}
        check_equal(leases, {"compute": [], "storage": ["rest:0x2001"]}, "leases")
        wait_for(lambda: 0xa001 in site.tables()[int(guid, 16)].keys(), "the table of the member")
        # its own file, if no other one is named
        result = site.run(head.apart(program("pkeyd-rest"), "--fabric", "storage", "--check")).expect(1)
        check("storage/rest.yaml" in result.err, "the file of the door:", result)


if __name__ == "__main__":
    main()
