# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel lab: pkeyd on a real kernel's ib_core, ib_umad and ib_uverbs, in a virtual machine.

    lab.py [--build DIR] [--timeout SECONDS] [--trace DIR] [SCENARIO ...]
    lab.py --missing                 prints what this host lacks; exits with 0 if nothing

The guest runs the kernel of Debian with this host's root file system below an overlay, systemd as its first process, the
driver in driver/ for host channel adapters, and ibsim for the fabric behind them. guest.py has the scenarios. The guest
writes a verdict for each scenario to a shared folder; --trace runs the service under strace, without its list of system calls, and
copies the summaries to DIR. A missing verdict, or one other than "pass", is a failure. If the lab
cannot run, it prints what is missing and exits with 77.
"""

import argparse
import glob
import lzma
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import guest  # noqa: E402

PROGRAMS = ("qemu-system-x86_64", "cpio", "depmod", "make", "gcc", "ibsim", "opensm", "rdma", "unshare", "etcd", "etcdctl", "openssl")
MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay")

# The guest must not see /proc, /sys and /dev of this host: a bind mount of / alone, in a separate namespace.
SHELL = 'mount --make-rprivate / && mount --bind / "$0" && exec "$@"'


SKIPPED = 77  # the exit status of skipped tests in automake


def fail(text):
    print("kernel lab: %s" % text, file=sys.stderr)
    sys.exit(1)


# --- requirements -----------------------------------------------------------------------------------------------------


def versions():
    """The kernels with image and headers on this host, newest first."""
    found = []
    for path in glob.glob("/boot/vmlinuz-*"):
        version = path[len("/boot/vmlinuz-"):]
        if os.path.isdir("/usr/src/linux-headers-" + version) and os.path.isdir("/lib/modules/" + version):
            found.append(version)
    return sorted(found, key=lambda v: [int(n) for n in re.findall(r"\d+", v)], reverse=True)


def busybox():
    """A static busybox, whose program headers name no loader."""
    for path in ("/bin/busybox", "/usr/bin/busybox"):
        if os.path.exists(path) and b"/ld-linux" not in open(path, "rb").read(4096):
            return path
    return None


def in_bind_mount(root):
    """The prefix of a command that sees only this host's files below root."""
    return ["unshare", "--mount", "sh", "-c", SHELL, root]


def may_mount():
    """False in a container without CAP_SYS_ADMIN."""
    with tempfile.TemporaryDirectory() as root:
        return subprocess.run([*in_bind_mount(root), "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0


def missing():
    lacks = [program for program in PROGRAMS if not shutil.which(program, path=os.environ["PATH"] + ":/sbin:/usr/sbin")]
    if not versions():
        lacks.append("a kernel image with its headers (linux-image-amd64, linux-headers-amd64)")
    if not busybox():
        lacks.append("busybox-static")
    if not os.path.exists("/lib/systemd/systemd"):
        lacks.append("systemd")
    if os.geteuid() != 0:
        lacks.append("root (the guest reads this host's files)")
    elif "unshare" not in lacks and not may_mount():
        lacks.append("permission to mount (unshare --mount is refused, as in a container without CAP_SYS_ADMIN)")
    if os.uname().machine != "x86_64":
        lacks.append("an x86-64 machine")
    return lacks


# --- build ------------------------------------------------------------------------------------------------------------


def run(argv, log, **more):
    with open(log, "ab") as out:
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **more).returncode
    if status != 0:
        sys.stderr.write("".join(open(log, errors="replace").readlines()[-40:]))
        fail("%s failed, see %s" % (" ".join(argv[:4]), log))


def build_driver(build, version):
    folder = os.path.join(build, "driver")
    os.makedirs(folder, exist_ok=True)
    for name in ("Kbuild", "labhca.c", "labhca.h"):
        source, copy = os.path.join(HERE, "driver", name), os.path.join(folder, name)
        if not os.path.exists(copy) or open(source).read() != open(copy).read():
            shutil.copyfile(source, copy)
    run(["make", "-C", "/usr/src/linux-headers-" + version, "M=" + folder, "modules"], os.path.join(build, "driver.log"))
    return os.path.join(folder, "labhca.ko")


def build_tools(build):
    log = os.path.join(build, "tools.log")
    flags = ["-std=gnu17", "-Wall", "-Wextra", "-O1", "-I", HERE]
    for name, source, libraries in (("bridge", "bridge.c", []), ("p_keys", "p_keys.c", ["-libverbs"]),
                                    ("listener", "listener.c", ["-libumad"]),
                                    ("setpkey", "../system/setpkey.c", ["-libmad", "-libumad"])):
        run(["gcc", *flags, "-o", os.path.join(build, "share", name), os.path.join(HERE, source), *libraries], log)


def source_for(build, log):
    """The tree, or a copy of it if it is configured in place, because configure then refuses to build elsewhere."""
    copy = os.path.join(build, "source")
    if not os.path.exists(os.path.join(TOP, "config.status")):
        return TOP
    run(["make", "-C", TOP, "distdir", "distdir=" + copy], log)
    return copy


def configure_pkeyd(build, log):
    """Builds as a distribution would, independently of the configuration of this tree."""
    folder, source = os.path.join(build, "plain"), source_for(build, log)
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(folder, "Makefile")):
        run([os.path.join(source, "configure"), "--prefix=/usr", "--sysconfdir=/etc", "--localstatedir=/var", "--enable-werror",
             "--with-systemdsystemunitdir=/usr/lib/systemd/system", "--with-systemdcatalogdir=/usr/lib/systemd/catalog"],
            log, cwd=folder)
    return folder


def build_pkeyd(build):
    log, root = os.path.join(build, "pkeyd.log"), os.path.join(build, "share", "tree")
    folder = configure_pkeyd(build, log)
    # not in one make: both targets would build the libraries at the same time
    run(["make", "-j2", "all"], log, cwd=folder)
    run(["make", "-j2", "tests/kernel/verbs_ports"], log, cwd=folder)
    shutil.copy(os.path.join(folder, "tests/kernel/verbs_ports"), os.path.join(build, "share"))
    shutil.rmtree(root, ignore_errors=True)
    run(["make", "install", "DESTDIR=" + root], log, cwd=folder)


def unpack_kernel(build, version):
    """Extracts the kernel from the compressed image, which boots faster under emulation."""
    image, out = open("/boot/vmlinuz-" + version, "rb").read(), os.path.join(build, "vmlinux-" + version)
    if os.path.exists(out):
        return out
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[(image[0x1F1] + 1) * 512 + offset:][:length]
    if not payload.startswith(b"\xfd7zXZ"):
        return "/boot/vmlinuz-" + version
    with open(out, "wb") as f:
        f.write(lzma.decompress(payload[:-4]))
    return out


def module_files(version):
    """The modules the first process needs, each after those it depends on."""
    folder, needs, order = "/lib/modules/" + version, {}, []
    for line in open(folder + "/modules.dep"):
        path, _, rest = line.partition(":")
        needs[os.path.basename(path).split(".ko")[0]] = (path, rest.split())

    def add(name):
        if name not in needs:
            return
        path, dependencies = needs[name]
        for dependency in reversed(dependencies):
            add(os.path.basename(dependency).split(".ko")[0])
        if path not in order:
            order.append(path)

    for name in MODULES:
        add(name)
    return [os.path.join(folder, path) for path in order]


INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /lower /upper /new
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /lower || exec /bin/busybox poweroff -f
/bin/busybox mount -t tmpfs tmpfs /upper
/bin/busybox mkdir /upper/up /upper/work
/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/upper/up,workdir=/upper/work overlay /new
/bin/busybox rm -f /new/.dockerenv
/bin/busybox mkdir -p /new/lab /new/tmp /new/var/tmp /new/dev /new/proc /new/sys /new/run
/bin/busybox mount -t tmpfs tmpfs /new/tmp
/bin/busybox mount -t tmpfs tmpfs /new/var/tmp
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none share /new/lab
/bin/busybox sh /new/lab/prepare /new
/bin/busybox umount /proc /sys
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /lib/systemd/systemd
"""

# Below the overlay, before systemd starts: the build under test takes its place, and the only target there is ours.
PREPARE = """root=$1
/bin/busybox cp -a $root/lab/tree/. $root/
/bin/busybox rm -rf $root/etc/pkeyd $root/var/lib/pkeyd $root/var/log/journal $root/etc/systemd/system/*.wants
/bin/busybox rm -rf $root/etc/opensm
/bin/busybox mkdir -p $root/etc/pkeyd $root/etc/opensm
# The shipped unit but for its patience: nobody waits two minutes for the watchdog.
/bin/busybox sed -e 's/^WatchdogSec=.*/WatchdogSec=15s/' -e 's/^RestartSec=.*/RestartSec=100ms/' \\
        $root/usr/lib/systemd/system/pkeyd.service > $root/etc/systemd/system/pkeyd-impatient.service
# Nothing to update because /usr is new: caches and the hardware database cost half a minute here.
/bin/busybox touch $root/etc/.updated $root/var/.updated
for unit in systemd-hwdb-update.service ldconfig.service systemd-sysusers.service systemd-journal-catalog-update.service \\
        systemd-update-done.service systemd-firstboot.service systemd-random-seed.service systemd-timesyncd.service \\
        systemd-update-utmp.service systemd-udev-trigger.service systemd-modules-load.service kmod-static-nodes.service \\
        modprobe@.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \\
        proc-sys-fs-binfmt_misc.automount apparmor.service keyboard-setup.service lvm2-monitor.service; do
        /bin/busybox ln -sf /dev/null $root/etc/systemd/system/$unit
done
/bin/busybox mkdir -p $root/etc/systemd/system-generators
for path in $root/usr/lib/systemd/system-generators/*; do
        /bin/busybox ln -sf /dev/null $root/etc/systemd/system-generators/$(/bin/busybox basename $path)
done
echo labhost > $root/etc/hostname
: > $root/etc/machine-id
/bin/busybox cat > $root/etc/systemd/system/lab.target <<END
[Unit]
Description=kernel lab
Requires=basic.target lab.service
After=basic.target
AllowIsolate=yes
END
/bin/busybox cat > $root/etc/systemd/system/lab.service <<END
[Unit]
Description=kernel lab scenarios
After=basic.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -B /lab/guest.py $(/bin/busybox cat $root/lab/scenarios)
ExecStopPost=/lab/off
StandardOutput=file:/lab/results/log
StandardError=inherit
TimeoutStartSec=infinity
KillSignal=SIGKILL
END
"""

OFF = """#!/bin/sh
sync
systemctl poweroff --force --force
"""


def write(path, text, mode=0o644):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def make_initramfs(build, version):
    folder, archive = os.path.join(build, "initramfs"), os.path.join(build, "initramfs.cpio")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/bin")
    os.makedirs(folder + "/modules")
    shutil.copy(busybox(), folder + "/bin/busybox")
    files = module_files(version)
    for path in files:
        shutil.copy(path, folder + "/modules")
    write(folder + "/modules/order", "\n".join(os.path.basename(path) for path in files) + "\n")
    write(folder + "/init", INIT, 0o755)
    names = subprocess.run(["find", ".", "-print0"], cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    with open(archive, "wb") as out:
        subprocess.run(["cpio", "--null", "--create", "--format=newc", "--quiet"], cwd=folder, input=names, stdout=out,
                       check=True)
    return archive


def fill_share(build, driver, scenarios, trace):
    share = os.path.join(build, "share")
    shutil.rmtree(os.path.join(share, "results"), ignore_errors=True)
    os.makedirs(os.path.join(share, "results"))
    shutil.copy(driver, share)
    for path in ("tests/kernel/guest.py", "src/events/events.def", "contrib/slurm/prolog-pkeyd", "contrib/nhc/pkeyd.nhc"):
        shutil.copy(os.path.join(TOP, path), share)
    write(os.path.join(share, "prepare"), PREPARE)
    write(os.path.join(share, "trace"), "yes" if trace else "")
    write(os.path.join(share, "off"), OFF, 0o755)
    write(os.path.join(share, "scenarios"), " ".join(scenarios))
    return share


# --- the guest --------------------------------------------------------------------------------------------------------

def boot(build, kernel, initramfs, share, timeout):
    root = os.path.join(build, "host-root")
    os.makedirs(root, exist_ok=True)
    argv = [*in_bind_mount(root), "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", "2", "-m", "1024", "-nodefaults", "-no-reboot", "-display", "none", "-net", "none", "-serial", "stdio",
            "-kernel", kernel, "-initrd", initramfs,
            "-virtfs", "local,path=%s,mount_tag=root,security_model=none,readonly=on,multidevs=remap" % root,
            "-virtfs", "local,path=%s,mount_tag=share,security_model=none,multidevs=remap" % share,
            "-append", "console=ttyS0 panic=-1 quiet systemd.unit=lab.target systemd.show_status=no "
                       "systemd.journald.forward_to_console=no audit=0 mitigations=off"]
    with open(os.path.join(build, "console.log"), "wb") as console:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            process.wait(timeout)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def judge(results, scenarios, in_time):
    """Checks that each requested scenario has the verdict "pass". Returns the names of the others."""
    said, bad = {}, []
    path = os.path.join(results, "verdict")
    for line in open(path, errors="replace") if os.path.exists(path) else []:
        name, _, word = line.rstrip("\n").partition(": ")
        said[name] = "%s; %s" % (said[name], word) if name in said else word
    for name in scenarios:
        word = said.get(name, "no verdict" + ("" if in_time else ", the guest was ended for want of time"))
        if word != "pass":
            bad.append(name)
        print("%s: %s%s" % ("PASS" if word == "pass" else "FAIL", name, "" if word == "pass" else ": " + word))
    if said.get("end") != "pass":
        bad.append("end")
        print("FAIL: the guest did not come to its end")
    return bad


def tail(path, n):
    if os.path.exists(path):
        sys.stdout.write("--- %s\n" % path)
        sys.stdout.write("".join(open(path, errors="replace").readlines()[-n:]))


def show_scenario(path, name):
    """The log of one scenario, which begins with "=== NAME"."""
    log = open(path, errors="replace").read() if os.path.exists(path) else ""
    for part in re.split(r"(?m)^(?=\[ *[0-9.]+\] === )", log):
        if re.match(r"\[ *[0-9.]+\] === %s\n" % re.escape(name), part):
            sys.stdout.write("--- %s: %s\n%s" % (path, name, part))


def main():
    parser = argparse.ArgumentParser(description="pkeyd on a real kernel, in a virtual machine")
    parser.add_argument("--build", default=os.path.join(TOP, "build-kernel"))
    parser.add_argument("--timeout", type=int, default=3600)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--trace", metavar="DIR")
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    lacks = missing()
    if options.missing:
        if lacks:
            print(", ".join(lacks))
        return 1 if lacks else 0
    if lacks:
        print("kernel lab: skipped: this host lacks %s (scripts/install-deps --kernel installs what can be)" % ", ".join(lacks))
        return SKIPPED
    scenarios = options.scenario or [name for name in guest.SCENARIOS if not options.trace or name not in guest.OF_THE_SANDBOX]
    for name in scenarios:
        if name not in guest.SCENARIOS:
            fail("there is no scenario '%s'; there are %s" % (name, " ".join(guest.SCENARIOS)))
    build, version, began = os.path.abspath(options.build), versions()[0], time.monotonic()
    os.makedirs(os.path.join(build, "share"), exist_ok=True)
    driver = build_driver(build, version)
    build_tools(build)
    build_pkeyd(build)
    share = fill_share(build, driver, scenarios, bool(options.trace))
    kernel, initramfs = unpack_kernel(build, version), make_initramfs(build, version)
    built = time.monotonic()
    in_time = boot(build, kernel, initramfs, share, options.timeout)
    bad = judge(os.path.join(share, "results"), scenarios, in_time)
    for path in glob.glob(share + "/results/calls.*") if options.trace else ():
        shutil.copy(path, options.trace)
    if bad:
        tail(os.path.join(build, "console.log"), 30)
        for name in bad:
            show_scenario(os.path.join(share, "results", "log"), name)
        tail(os.path.join(share, "results", "log"), 40)
    print("kernel lab: Linux %s, %d scenarios, %d failed; built in %.0f s, ran %.0f s" %
          (version, len(scenarios), len(bad), built - began, time.monotonic() - built))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
