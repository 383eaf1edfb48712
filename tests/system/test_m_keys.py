# SPDX-License-Identifier: GPL-2.0-or-later
"""M_Keys: every MAD has the right one, and no readable file or output shows one; refused files; credentials; a port with
another key.

ibsim ignores M_Keys. madtrace-preload.so simulates a port that checks its M_Key."""

import glob
import os

import madtrace
from harness import PATIENCE, Daemon, Fabric, check, check_equal, main, read_file, sets, two_level, wait_for
from oracle import Oracle, Policy, differences

KEY, OTHER = 0x5EC4E75EC4E75EC4, 0x7E57ED7E57ED7E57
NODE_INFO, P_KEY_TABLE = 0x11, 0x16
ALL_KEYS = {"MADTRACE_M_KEYS": "1"}


def fabric_of():
    return Fabric(two_level(2, 2, 4))


def policy_one(fabric, name="one"):
    policy = Policy().add(name, 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})
    return policy, fabric.write("partitions.yaml", policy.yaml())


def key_file(fabric, text, mode=0o600, name="m_key"):
    path = fabric.write(name, text)
    os.chmod(path, mode)
    fabric.settings("timeout: 200ms\nsweep_interval: 1s\nm_key_file: %s\n" % path)
    return path


def wrong(fabric, policy):
    tables = fabric.tables()
    return differences(Oracle(tables, fabric.topology.port_guid(fabric.home)).tables(policy), tables)


def check_secret(text, what, *keys):
    """Checks that the text has no key, in hex or decimal, in any case."""
    for key in keys or (KEY, OTHER):
        for form in ("%x" % key, "%d" % key, "%x" % (key >> 32)):
            check(form not in text.lower(), what, "shows an M_Key:", text[:2000])


def check_files(fabric):
    """Checks all files in the directory of the fabric except the key files."""
    for path in glob.glob(fabric.path("**"), recursive=True):
        if os.path.isfile(path) and os.path.basename(path) not in ("m_key", "trace", "daemon"):
            check_secret(read_file(path), path)


def check_process(pid):
    """The arguments and environment of a process; False: it has ended."""
    try:
        for name in ("cmdline", "environ"):
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                check_secret(f.read().decode(errors="replace"), "/proc/%d/%s" % (pid, name))
        return True
    except OSError:
        return False


def test_every_mad_and_no_output():
    with fabric_of() as fabric:
        policy, path = policy_one(fabric)
        key_file(fabric, "0x%016x\n" % KEY)
        for command in (["plan", path], ["apply", path, "--yes"], ["verify", path], ["show", "ports"]):
            for form in ([], ["--json"]):
                result = fabric.pkeyctl(*command, *form, trace="trace", **ALL_KEYS)
                check(result.status in (0, 2), result)
                check_secret(result.out + result.err, " ".join(command + form))
        check_equal(wrong(fabric, policy), [], "tables")
        keys = madtrace.m_keys(fabric.path("trace"))
        check_equal({key for _, _, key in keys}, {KEY}, "M_Keys of all MADs")
        check({NODE_INFO, P_KEY_TABLE} <= {attribute for _, attribute, _ in keys}, "attributes:", keys[:20])
        check_files(fabric)


def test_daemon():
    with fabric_of() as fabric:
        policy, path = policy_one(fabric)
        key_file(fabric, "0x%016x\n" % KEY)
        daemon = Daemon(fabric, path, trace="daemon", options=["-v"], environment=ALL_KEYS)
        check_equal(wrong(fabric, policy), [], "tables")
        check(check_process(daemon.process.pid), "pkeyd is gone")
        check_equal({key for _, _, key in madtrace.m_keys(fabric.path("daemon"))}, {KEY}, "M_Keys of all MADs")

        # other keys make a new generation; the same keys do not, in any order
        ports = sorted(fabric.tables())
        lines = ["0x%016x 0x%016x\n\n" % (guid, OTHER) for guid in ports]
        key_file(fabric, "".join(lines))
        seen = len(daemon.text())
        daemon.reload()
        daemon.wait_text("generation 2", after=seen)
        key_file(fabric, "".join(reversed(lines)))
        seen = len(daemon.text())
        daemon.reload()
        daemon.wait_text("both files are unchanged", after=seen)
        n = len(madtrace.m_keys(fabric.path("daemon")))
        wait_for(lambda: len(madtrace.m_keys(fabric.path("daemon"))) > n + 50, "another sweep")
        check_equal({key for _, _, key in madtrace.m_keys(fabric.path("daemon"))[n:]}, {OTHER}, "M_Keys of the next sweep")

        # the file becomes readable for others: the policy in force stays
        os.chmod(fabric.path("m_key"), 0o644)
        seen = len(daemon.text())
        daemon.reload()
        daemon.wait_text("it can be read by others than its owner and the group that pkeyd runs as", after=seen)
        check(daemon.status().count("refused"), daemon.status())
        check_equal(daemon.stop(), 0, "exit status of pkeyd")
        check_secret(daemon.text() + repr(daemon.notified()), "what pkeyd said")
        check_files(fabric)


REFUSED = (
    ("0x%x\n" % KEY, 0o640, "secret.exposed"),
    ("0x%x\n" % KEY, 0o604, "secret.exposed"),
    ("0x%x\r\n" % KEY, 0o600, "secret.syntax"),
    ("%x\n" % KEY, 0o600, "secret.syntax"),
    ("0x%x\n0x%x\n" % (KEY, OTHER), 0o600, "secret.syntax"),
    ("m_key 0x%x" % KEY, 0o600, "secret.syntax"),
    ("0x%x junk\n" % KEY * 1000, 0o600, "secret.syntax"),
    ("", 0o600, "secret.syntax"),
    ("#" * (9 << 20), 0o600, "file.too-large"),
)


def test_refused():
    with fabric_of() as fabric:
        _, path = policy_one(fabric)
        for text, mode, code in REFUSED:
            key_file(fabric, text, mode)
            result = fabric.pkeyctl("verify", path, "--json", trace="trace").expect(1)
            check(code in [f["code"] for f in result.json()["findings"]], result)
            check_secret(result.out + result.err, code)
            result = fabric.pkeyctl("apply", path, "--yes", trace="trace").expect(1)
            check_secret(result.out + result.err, code)
            check("m_key" in result.err, result)
        check_equal(madtrace.read(fabric.path("trace")), [], "MADs")
        daemon = Daemon(fabric, path, wait=False)
        check_equal(daemon.process.wait(timeout=PATIENCE), 1, "exit status of pkeyd")
        fabric.settings("m_key_file: 0x%x\n" % KEY)
        result = fabric.pkeyctl("verify", path).expect(1)
        check_secret(result.out + result.err, "a key in place of its file")


def test_credential():
    with fabric_of() as fabric:
        policy, path = policy_one(fabric)
        os.mkdir(fabric.path("credentials"), 0o700)
        key_file(fabric, "0x%x\n" % KEY, 0o440, "credentials/m_key")
        fabric.settings("timeout: 200ms\nm_key_file: /nonexistent\n")
        daemon = Daemon(fabric, path, trace="daemon",
                        environment={"CREDENTIALS_DIRECTORY": fabric.path("credentials"), **ALL_KEYS})
        check_equal(wrong(fabric, policy), [], "tables")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")
        check_equal({key for _, _, key in madtrace.m_keys(fabric.path("daemon"))}, {KEY}, "M_Keys of all MADs")


def test_port_with_another_key():
    with fabric_of() as fabric:
        policy, path = policy_one(fabric)
        ports = fabric.tables()
        victim = next(p for p in ports.values() if p.name == "node0003")
        wants = {"MADTRACE_M_KEY": "%d:%x" % (victim.lid, OTHER)}
        said = "answers reads but not writes: most likely "

        # no key; one key for all that is wrong for this port; a file with a wrong key, or none, for it
        for text, words in ((None, "it has an M_Key, and m_key_file names none"),
                            ("0x%x\n" % KEY, "its M_Key is not the one in m_key_file"),
                            ("0x%x 0x%x\n" % (victim.guid, KEY), "its M_Key is not the one in m_key_file"),
                            ("0x1 0x%x\n\n0x2 0x%x\n" % (KEY, OTHER), "it has an M_Key, and m_key_file has none for it")):
            if text:
                key_file(fabric, text)
            result = fabric.apply(path, "--json", trace="trace", **wants).expect(3)
            failed = [f for f in result.json()["failed"] if f["reason"] != "held-back"]
            check_equal({(f["node"], f["reason"], f["detail"]) for f in failed},
                        {("node0003", "set-unanswered", said + words)}, "what failed")
            check_secret(result.out + result.err, "apply")
        written = [p.name for p in fabric.tables().values() if {k & 0x7FFF for k in p.keys()} >= {0x0010}]
        check_equal(sorted(written), ["node%04d" % i for i in range(1, 9) if i != 3], "hosts that were written")

        # the daemon reports it once
        fabric.settings("timeout: 200ms\nsweep_interval: 1s\n")
        daemon = Daemon(fabric, path, trace="daemon", environment=wants)
        daemon.wait_text(said + "it has an M_Key")
        check_equal(daemon.stop(), 0, "exit status of pkeyd")

        # its own key, beside those of the others
        lines = "".join("0x%016x 0x%016x\n\n" % (guid, OTHER if guid == victim.guid else KEY) for guid in ports)
        key_file(fabric, lines)
        fabric.apply(path, trace="right", **wants, **ALL_KEYS).expect(0)
        check_equal(wrong(fabric, policy), [], "tables")
        check_equal({m.lid for m in sets(fabric, "right")}, {victim.lid}, "who was written at last")
        # discovery uses the key of most ports for an unknown port, and then the key of each port
        keys = {key for _, attribute, key in madtrace.m_keys(fabric.path("right")) if attribute == NODE_INFO}
        check_equal(keys, {KEY, OTHER}, "M_Keys of the discovery")
        keys = [key for _, attribute, key in madtrace.m_keys(fabric.path("right")) if attribute == P_KEY_TABLE]
        check(OTHER in keys and KEY in keys, "M_Keys of the tables:", set(keys))

        # OpenSM's file names the port behind the cable: the first request already has its own M_Key
        def n_own():
            fabric.pkeyctl("plan", path, trace="walk", **wants, **ALL_KEYS).expect(0)
            walk = madtrace.m_keys(fabric.path("walk"))
            os.unlink(fabric.path("walk"))
            return [(attribute, key) for _, attribute, key in walk].count((NODE_INFO, OTHER))

        without = n_own()
        fabric.write("neighbors", "0x%016x:%d 0x%016x:1\n" % (victim.switch, victim.switch_port, victim.guid))
        # (again after its table was read)
        check_equal((without, n_own()), (2, 3), "NodeInfo with the M_Key of the port: without the file, and with it")


def test_silent_host():
    """A device that does not answer discovery is named by its switch port."""
    with fabric_of() as fabric:
        _, path = policy_one(fabric)
        result = fabric.pkeyctl("plan", path, "--json").expect(2)
        check("subnet.silent" not in result.out, result)
        host = next(p for p in fabric.tables().values() if p.name == "node0005")
        fabric.apply(path).expect(0)
        fabric.lose("node0005", 100, NODE_INFO)
        result = fabric.pkeyctl("plan", path, "--json", seconds=100).expect(3)
        check_equal(result.json()["silent"], 1, "silent links of the plan")
        silent = [f for f in result.json()["findings"] if f["code"] == "subnet.silent"]
        check_equal(len(silent), 1, "links with nobody at the other end")
        check("/%d: its link is up" % host.switch_port in str(silent[0]) and "M_Key" in str(silent[0]), silent)
        check("only part of the policy was carried out" in fabric.apply(path, seconds=100).expect(3).out, "apply")
        result = fabric.pkeyctl("verify", path, seconds=100).expect(3)
        check("1 link is up, but its other end did not answer discovery" in result.out, result)
        check("/%d: its link is up" % host.switch_port in result.err, result)
        check_equal(fabric.pkeyctl("verify", path, "--json", seconds=100).expect(3).json()["silent"], 1, "silent")
        daemon = Daemon(fabric, path)
        daemon.wait_text("/%d: its link is up" % host.switch_port)
        check_equal(daemon.stop(), 0, "exit status of pkeyd")


if __name__ == "__main__":
    main()
