# SPDX-License-Identifier: GPL-2.0-or-later
"""The sandbox of the services: the kernel ends them if they make a system call that the unit does not list. scripts/trace-syscalls
traces all tests; this is a run of pkeyd that uses most of the system."""

import os
import re
import shutil
import subprocess

from harness import BUILD, SOURCE, Daemon, Fabric, Skip, check, check_equal, main, program, read_file, two_level, wait_for
from private_bus import Bus, require

POLICY = """version: 1
partitions:
  storage: {pkey: 0x0010, members: {"ALL": limited, SELF: full}}
pools:
  jobs: {pkeys: 0x0100-0x0101, ports: ALL, lease: 1h, allow: root}
"""
# The tests run as root, and only then SQLite gives files to the owner of the database (fchown). The simulated fabric removes its
# directory (rmdir).
OF_TESTS = {"fchown", "rmdir"}
# What the sanitizers add.
OF_SANITIZERS = {"sigaltstack", "personality"}


def unit(name="pkeyd"):
    return read_file(os.path.join(SOURCE, "systemd", name + ".service.in"))


def listed(name="pkeyd"):
    return {call for line in re.findall(r"^SystemCallFilter=(.*)$", unit(name), re.M) for call in line.split()}


def is_sanitized():
    with open(program("pkeyd"), "rb") as f:
        return b"__asan_init" in f.read()


def tracer(fabric):
    """A program that runs pkeyd under strace, which stays in the background and writes a summary when pkeyd ends."""
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False).returncode:
        raise Skip("strace is not installed, or may not trace (scripts/install-deps --test)")
    path = fabric.write("traced", '#!/bin/sh\nexec env -u LD_PRELOAD strace -D -f -c -qq -o "%s" -E LD_PRELOAD="$LD_PRELOAD" "%s" "$@"\n' %
                        (fabric.path("calls"), program("pkeyd")))
    os.chmod(path, 0o755)
    return path


def summary(fabric):
    """The names in the table of strace -c, between two lines of dashes."""
    wait_for(lambda: read_file(fabric.path("calls")).count("------") >= 2, "the summary of strace")
    rows = re.split(r"(?m)^------.*\n", read_file(fabric.path("calls")))[1]
    return {row.split()[-1] for row in rows.splitlines()}


def test_list():
    """A run with the bus, a reload, a lease, metrics and a refused policy makes only calls that the unit lists."""
    require()
    with Fabric(two_level(2, 1, 2)) as fabric:
        bus = Bus(fabric)
        fabric.settings("timeout: 200ms\nsweep_interval: 1s\nviolations: {interval: 1s}\nmetrics: {textfile: %s}\n" %
                        fabric.path("pkeyd.prom"))
        policy = fabric.write("partitions.yaml", POLICY)
        # the leak sanitizer does not work under strace
        sanitizer = fabric.environment()["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")
        daemon = Daemon(fabric, policy, name=tracer(fabric), environment={**bus.environment(), "ASAN_OPTIONS": sanitizer})
        fabric.write("partitions.yaml", POLICY.replace("limited", "full"))
        fabric.pkeyctl("reload", **bus.environment()).expect(0)
        fabric.pkeyctl("lease", "create", "--pool", "jobs", "--id", "job-1", "--members", "node0002", **bus.environment()).expect(0)
        fabric.write("partitions.yaml", "version: 2\n")
        fabric.pkeyctl("reload", **bus.environment()).expect(1)
        wait_for(lambda: os.path.exists(fabric.path("pkeyd.prom")), "the metrics")
        check_equal(daemon.stop(), 0, "exit status")
        calls = summary(fabric)
        check({"openat", "fdatasync", "epoll_ctl", "sendmsg"} <= calls, "strace did not see pkeyd:", calls)
        check_equal(sorted(calls - listed() - OF_TESTS - (OF_SANITIZERS if is_sanitized() else set())), [],
                    "calls that SystemCallFilter= of pkeyd.service.in lacks")


def test_unlisted_calls_are_fatal():
    """Without an error number, and without sets, whose content depends on the version of systemd."""
    for service in ("pkeyd", "pkeyd-rest"):
        check("SystemCallErrorNumber=" not in re.sub(r"(?m)^#.*", "", unit(service)), service, "gets an error")
        calls = listed(service)
        check_equal(sorted(call for call in calls if not re.fullmatch("[a-z0-9_]+", call)), [], "names in " + service)
        for call in ("ptrace", "mount", "bpf", "keyctl", "setuid", "chroot", "unshare", "io_uring_setup", "kill", "chmod", "chown"):
            check(call not in calls, call, "is in the list of", service)
    check(not {"unlink", "unlinkat", "rename", "renameat", "mkdir", "clone3"} & listed("pkeyd-rest"), "pkeyd-rest writes files")


def test_exposure():
    """The exposure of the unit, by systemd's own measure: at most 1.2 of 10."""
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=12",
                        os.path.join(BUILD, "systemd/pkeyd.service")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check_equal(r.returncode, 0, r.stdout[-3000:])
    check("Overall exposure level" in r.stdout, r.stdout)


if __name__ == "__main__":
    main()
