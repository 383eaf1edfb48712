# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness: the reader reads what OpenSM and another tool wrote, and smpquery agrees."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile

from harness import BUILD, PATIENCE, SOURCE, Fabric, Skip, check, check_equal, k_ary, main, two_level


def smpquery_keys(fabric, port):
    out = fabric.run(["smpquery", "pkeys", str(port.lid)]).expect(0).out
    return [int(k, 16) for k in re.findall(r"0x([0-9a-f]{4})", out)]


def test_reader_sees_the_fabric():
    with Fabric(k_ary(8)) as fabric:
        tables = fabric.tables()
        check_equal(len(tables), 128 + 80, "endports of a fat tree of 8-port switches")
        check_equal(sum(p.type == 1 for p in tables.values()), 128, "hosts")
        port = tables[fabric.topology.port_guid("node0128")]
        check_equal((port.name, port.device, port.cap, port.keys()), ("node0128", "mlx5_0", 64, [0xFFFF]), "node0128")
        leaf, number = fabric.topology.peer("node0128")
        check_equal((port.switch, port.switch_port), (fabric.topology.guid(leaf), number), "what node0128 is plugged into")


def test_reader_agrees_with_smpquery():
    with Fabric(two_level(2, 1, 3)) as fabric:
        guid = fabric.topology.port_guid("node0005")
        fabric.set_p_key(fabric.tables()[guid], i3=0x8123, i40=0x0456)
        port = fabric.tables()[guid]
        check_equal((port.table[3], port.table[40]), (0x8123, 0x0456), "what another tool wrote")
        check_equal(smpquery_keys(fabric, port), port.table, "smpquery's view of node0005")


def test_unplugged_hosts_are_gone():
    with Fabric(two_level(2, 1, 3)) as fabric:
        fabric.console('Unlink "node0002"')
        check(fabric.topology.port_guid("node0002") not in fabric.tables(), "node0002 is unplugged and still there")
        fabric.console('ReLink "node0002"')
        check(fabric.topology.port_guid("node0002") in fabric.tables(), "node0002 did not come back")


@contextlib.contextmanager
def unshare_refused():
    """An environment as in a container without CAP_SYS_ADMIN."""
    with tempfile.TemporaryDirectory() as directory:
        refused = os.path.join(directory, "unshare")
        with open(refused, "w") as f:
            f.write("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
        os.chmod(refused, 0o755)
        environment = dict(os.environ, PATH=directory + ":" + os.environ["PATH"])
        del environment["PKEYD_APART"]
        yield environment


def test_without_namespaces():
    """Parallel scenarios are separate also if unshare is refused."""
    with unshare_refused() as environment:
        both = [subprocess.Popen([sys.executable, __file__, "test_unplugged_hosts_are_gone"], env=environment, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
        for child in both:
            said = child.communicate(timeout=2 * PATIENCE)[0]
            check_equal(child.returncode, 0, "exit status of a scenario that unshare is refused to; it said:\n" + said)


def test_kernel_lab_without_mounts():
    """scripts/check skips the lab if --missing prints a reason."""
    if os.geteuid() != 0:
        raise Skip("root may mount, and others may not")
    with unshare_refused() as environment:
        lab = subprocess.run([os.path.join(SOURCE, "tests", "kernel", "lab"), "--missing"], env=environment, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        check_equal(lab.returncode, 1, "exit status of lab --missing; it said:\n" + lab.stderr)
        check("permission to mount" in lab.stdout, "what the lab lacks:", lab.stdout)


def test_kernel_lab_from_a_tree_configured_in_place():
    """configure refuses to build elsewhere from such a tree."""
    with tempfile.TemporaryDirectory() as directory:
        tree, build = os.path.join(directory, "tree"), os.path.join(directory, "build")

        def run(*arguments, cwd=directory):
            r = subprocess.run(arguments, cwd=cwd, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=5 * PATIENCE)
            check_equal(r.returncode, 0, "exit status of %s; it said:\n%s" % (arguments[0], r.stdout[-3000:]))
        os.mkdir(build)
        run("make", "-C", BUILD, "distdir", "distdir=" + tree)
        run("./configure", "--quiet", cwd=tree)
        run(sys.executable, "-B", "-c", "import lab; lab.configure_pkeyd(%r, %r)" % (build, build + "/log"),
            cwd=os.path.join(tree, "tests", "kernel"))
        check(os.path.exists(os.path.join(build, "plain", "Makefile")), "nothing was configured")


if __name__ == "__main__":
    main()
