# SPDX-License-Identifier: GPL-2.0-or-later
"""The metrics file: its numbers are right, promtool accepts it, readers never see a part of it, and errors with it stop
nothing."""

import os
import re
import shutil
import subprocess
import threading
import time

from harness import Daemon, Fabric, check, check_equal, main, read_file, two_level, wait_for
from oracle import Policy

SETTINGS = "timeout: 100ms\n"
QUIET = SETTINGS + "sweep_interval: 1h\n"


def policy_one():
    return Policy().add("one", 0x0010, {"node[0001-0004]": "full", "node[0005-0008]": "limited"})


def start(fabric, policy, settings, path):
    fabric.settings(settings + "metrics: {textfile: %s}\n" % path)
    return Daemon(fabric, fabric.write("partitions.yaml", policy.yaml()))


def directory(fabric):
    os.mkdir(fabric.path("textfile"), 0o755)
    return fabric.path("textfile/pkeyd.prom")


def parse(text):
    """{series: value}; every line that is not a comment must be a series."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'(\w+(?:\{[^}]*\})?) ([0-9.]+)', line)
        check(match, "no series:", line)
        check(match.group(1) not in values, "there twice:", line)
        values[match.group(1)] = float(match.group(2))
    return values


def metrics(path):
    return parse(read_file(path))


def check_with_promtool(path):
    if not shutil.which("promtool"):
        print("promtool is not installed (package prometheus): the format is not checked by it")
        return
    with open(path) as f:
        r = subprocess.run(["promtool", "check", "metrics"], stdin=f, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    check_equal((r.returncode, r.stdout), (0, ""), "what promtool says of the metrics")


def writes_said(daemon):
    """The total number of writes in the journal."""
    return sum(int(n) for n in re.findall(r"(\d+) writes? done", daemon.text()))


def test_values_after_a_reload():
    with Fabric(two_level(2, 2, 4)) as fabric:
        began = time.time()
        policy, path = policy_one(), directory(fabric)
        daemon = start(fabric, policy, QUIET, path)
        check_with_promtool(path)
        m = metrics(path)
        check_equal([n for n in m if n.startswith("pkeyd_build_info")],
                    ['pkeyd_build_info{version="%s"}' % re.search(r"pkeyd (\S+) started", daemon.text()).group(1)], "version")
        verified = int(re.search(r"(\d+) ports verified", daemon.text()).group(1))
        check_equal((m["pkeyd_ports_managed"], m["pkeyd_ports_verified"], m["pkeyd_ports_drifted"],
                     m["pkeyd_ports_unreachable"]), (verified, verified, 0, 0), "ports")
        check_equal((m["pkeyd_policy_generation"], m["pkeyd_policy_accepted"], m["pkeyd_policy_errors"]), (1, 1, 0), "policy")
        check_equal(m["pkeyd_writes_total"], writes_said(daemon), "writes")
        check(writes_said(daemon) > 0 and m["pkeyd_mads_sent_total"] > writes_said(daemon), "few MADs:", m)
        check(began - 1 <= m["pkeyd_start_time_seconds"] <= m["pkeyd_last_success_timestamp_seconds"] <= time.time(), m)
        check(m["pkeyd_plan_duration_seconds"] > 0 and m["pkeyd_apply_duration_seconds"] > 0, m)
        check(m["pkeyd_sweep_duration_seconds"] > m["pkeyd_apply_duration_seconds"], m)

        policy.add("two", 0x0011, {"node[0001-0002]": "full"})
        fabric.write("partitions.yaml", policy.yaml())
        daemon.reload()
        after = metrics(path)
        check_equal(after["pkeyd_policy_generation"], 2, "generation when the reload has ended")
        check_equal(after["pkeyd_writes_total"], writes_said(daemon), "writes of both")
        check(after["pkeyd_writes_total"] > m["pkeyd_writes_total"], "nothing was written")
        check(after["pkeyd_passes_total{result=\"done\"}"] > m["pkeyd_passes_total{result=\"done\"}"], after)

        # refused: reported at once, and the policy in force stays
        fabric.write("partitions.yaml", "version: 1\npartitions: {x: {pkey: 0x18000, members: {}}}\n")
        daemon.reload()
        refused = metrics(path)
        check_equal((refused["pkeyd_policy_generation"], refused["pkeyd_policy_accepted"], refused["pkeyd_policy_errors"]),
                    (2, 0, 1), "policy after a mistake")
        check_equal(daemon.stop(), 0, "exit status")


def test_drift_and_silence():
    with Fabric(two_level(2, 2, 4)) as fabric:
        path = directory(fabric)
        policy = policy_one()
        daemon = start(fabric, policy, SETTINGS + "sweep_interval: 1s\n", path)
        check_equal(metrics(path)["pkeyd_drifts_total"], 0, "drifts")
        port = fabric.tables()[fabric.topology.port_guid("node0006")]
        fabric.set_p_key(port, i9=0x8666)
        wait_for(lambda: metrics(path)["pkeyd_drifts_total"] == 1, "the drift to be counted")
        wait_for(lambda: metrics(path)["pkeyd_ports_drifted"] == 0, "it to be repaired")

        fabric.lose("node0004", 100)
        wait_for(lambda: metrics(path)["pkeyd_ports_unreachable"] == 1, "node0004 to be unreachable")
        m = metrics(path)
        check(m["pkeyd_mads_timed_out_total"] > 0 and m["pkeyd_mads_retried_total"] > 0, m)
        wait_for(lambda: metrics(path)["pkeyd_passes_total{result=\"partial\"}"] > 0, "a pass that was partial")
        fabric.lose("node0004", 0)
        wait_for(lambda: metrics(path)["pkeyd_ports_unreachable"] == 0, "node0004 to be back")

        # a wrong table stays wrong in audit mode
        fabric.settings(SETTINGS + "sweep_interval: 1s\nmode: audit\nmetrics: {textfile: %s}\n" % path)
        daemon.reload()
        fabric.set_p_key(port, i9=0x8667)
        wait_for(lambda: metrics(path)["pkeyd_ports_drifted"] == 1, "the drift to stay")
        m = metrics(path)
        check_equal((m["pkeyd_audit_mode"], m["pkeyd_ports_verified"]), (1, m["pkeyd_ports_managed"] - 1), "in audit mode")
        check_with_promtool(path)
        check_equal(daemon.stop(), 0, "exit status")


def test_silent_pmas():
    """So many PMAs do not answer that the interval is too short to poll each once: this and its end are logged once."""
    with Fabric(two_level(2, 2, 4)) as fabric:
        path = directory(fabric)
        late, in_time = "longer than violations.interval (", "within violations.interval ("
        class_port_info = 1
        for n in range(1, 9):
            fabric.lose("node%04d" % n, 100, class_port_info)
        daemon = start(fabric, policy_one(), "timeout: 1s\nsweep_interval: 2s\nviolations: {interval: 2s}\n", path)
        wait_for(lambda: metrics(path).get("pkeyd_poll_late") == 1, "the interval not to be kept")
        m = metrics(path)
        check_equal(m["pkeyd_silent_ports"], 8, "silent ports")
        check(m["pkeyd_poll_duration_seconds"] >= 3, "8 PMAs, two of them a second:", m)
        check_equal(daemon.text().count(late), 1, "warnings")
        for n in range(1, 9):
            fabric.lose("node%04d" % n, 0, class_port_info)
        wait_for(lambda: metrics(path)["pkeyd_poll_late"] == 0, "the interval to be kept")
        check_equal(metrics(path)["pkeyd_silent_ports"], 0, "silent ports")
        check_equal((daemon.text().count(late), daemon.text().count(in_time)), (1, 1), "warnings, and their ends")
        check_equal(daemon.stop(), 0, "exit status")


class Reader(threading.Thread):
    """Reads the file as fast as possible, and collects errors in it."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.ended, self.seen, self.wrong = path, False, set(), []
        self.start()

    def run(self):
        while not self.ended:
            with open(self.path) as f:
                text = f.read()
                self.seen.add(os.fstat(f.fileno()).st_ino)
            if not text.startswith("# HELP pkeyd_build_info ") or not text.endswith("\n# EOF\n"):
                self.wrong.append(text)


def test_whole_or_not_at_all():
    with Fabric(two_level(2, 2, 4)) as fabric:
        path, mask = directory(fabric), os.umask(0o077)
        try:
            daemon = start(fabric, policy_one(), QUIET, path)
        finally:
            os.umask(mask)
        check_equal(os.stat(path).st_mode & 0o777, 0o644, "mode of the file, which node_exporter reads as somebody else")
        first, reader = read_file(path), Reader(path)
        for _ in range(12):
            daemon.reload()
        reader.ended = True
        reader.join()
        check_equal(reader.wrong, [], "what was read while it was written")
        check(len(reader.seen) > 1 and read_file(path) != first, "it was not written again")
        check_equal(os.listdir(os.path.dirname(path)), ["pkeyd.prom"], "files beside it")
        check_equal(daemon.stop(), 0, "exit status")


def test_no_directory():
    with Fabric(two_level(2, 2, 4)) as fabric:
        policy, path = policy_one(), fabric.path("textfile/pkeyd.prom")
        daemon = start(fabric, policy, QUIET, path)
        policy.add("two", 0x0011, {"node[0001-0002]": "full"})
        fabric.write("partitions.yaml", policy.yaml())
        daemon.reload()
        daemon.reload()
        check("generation 2 is in force" in daemon.text(), "the daemon does not go on:", daemon.text())
        check_equal(daemon.text().count("the metrics cannot be written"), 1, "how often it was said")
        check("error: %s: the metrics cannot be written: No such file or directory" % path in daemon.text(), daemon.text())

        directory(fabric)
        daemon.reload()
        check_equal(metrics(path)["pkeyd_policy_generation"], 2, "generation")
        check_equal(daemon.text().count("the metrics can be written again"), 1, "how often it was said")

        # another path, then none: the old file is removed, because node_exporter would read it forever
        other = fabric.path("textfile/other.prom")
        fabric.settings(QUIET + "metrics: {textfile: %s}\n" % other)
        daemon.reload()
        check_equal(os.listdir(fabric.path("textfile")), ["other.prom"], "files after a move")
        # ... also if it could not be written last
        os.rename(fabric.path("textfile"), fabric.path("away"))
        daemon.reload()
        os.rename(fabric.path("away"), fabric.path("textfile"))
        fabric.settings(QUIET)
        daemon.reload()
        check_equal(os.listdir(fabric.path("textfile")), [], "files without the setting")
        check_equal(daemon.stop(), 0, "exit status")


if __name__ == "__main__":
    main()
