# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the commands in a manual page or tutorial on a simulated site and compares their output with the text.

A block that begins with ```console has commands (lines that begin with "$ ", with an optional here-document), each followed by its
output. A line "..." stands for any lines; a long line may be folded into indented ones. All blocks of a text share a site: its
directory stands for /, head1 is the host, and OpenSM runs there. HTML comments "<!-- test: VERB ARGUMENTS -->" are directives for
what commands cannot do; "<!-- test: site -->" begins a new site.

In a manual page, a literal display is such a block if its first line begins with "$ ", and comments .\\" test: VERB ARGUMENTS are
directives."""

import os
import re
import subprocess
import time
from contextlib import ExitStack

from etcd import Cluster
from harness import PATIENCE, PRELOAD, SOURCE, Fabric, check, check_equal, end, program, read_file, two_level, wait_for, wait_poll_rounds
from private_bus import Bus, require

HOSTS = ["head1", "mds01", "oss01", "oss02"] + ["node%04d" % i for i in range(1, 17)]
# Parts of the output that differ between runs.
VARIES = ((r"\bin (\d+ min )?\d+ s, at\b", "in N s, at"), (r"\b\d+(\.\d+)? (ms|s|seconds?)\b", "N s"), (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"), (r"\b20\d\d-\d\d-\d\d\b", "DATE"),
          (r"\b\d+ records", "N records"), (r"/(var/lib/pkeyd|state)/state\.db\.copied-\w+", "STATE"),
          (r"\bpkeyd \d+\.\d+\.\d+", "pkeyd VERSION"), (r"\bLID +\d+", "LID N"), (r"[ \t]+$", ""))
MDOC = {"&": "", "-": "-", "e": "\\", "(aq": "'", "(dq": '"'}
ONE_ARGUMENT = ("run", "console", "logged")  # directives whose argument is the rest of the line

# The commands of the site: the programs under test with the files of the site, and replacements for systemd, ssh and journalctl,
# and for what asks for a password, needs the users of the services, or a name server.
PRELUDE = r"""
on_head1() { LD_PRELOAD=%(preload)s SIM_HOST=head1 "$@"; }
pkeyctl() {
        case "$1 $*" in
        import*|*.yaml*|status*|reload*|watch*|violations*|store*) ;;
        doctor*) [[ ! -e %(root)s/etc/pkeyd/partitions.yaml ]] || set -- "$@" %(root)s/etc/pkeyd/partitions.yaml ;;
        *) set -- "$@" --policy %(root)s/etc/pkeyd/partitions.yaml ;;
        esac
        on_head1 %(build)s/pkeyctl "$@" --config %(root)s/etc/pkeyd/pkeyd.yaml --state-dir %(root)s/state
}
pkeyd=(%(build)s/pkeyd --config %(root)s/etc/pkeyd/pkeyd.yaml --policy %(root)s/etc/pkeyd/partitions.yaml
        --state-dir %(root)s/state)
pkeyd() { on_head1 "${pkeyd[@]}" "$@"; }
stop_pkeyd() {
        kill "$(cat %(root)s/pkeyd.pid)"
        for ((i = 0; i < 900; i++)); do
                kill -0 "$(cat %(root)s/pkeyd.pid)" 2>/dev/null || return 0
                sleep 0.1
        done
}
pkeyd_rest=(%(build)s/pkeyd-rest --config %(root)s/etc/pkeyd/rest.yaml)
pkeyd-rest() { "${pkeyd_rest[@]}" "$@"; }
listen_for_pkeyd_rest() {
        ip link set lo up
        systemd-socket-activate -l 127.0.0.1:443 -E DBUS_SYSTEM_BUS_ADDRESS -E ASAN_OPTIONS -E UBSAN_OPTIONS -E LSAN_OPTIONS \
                "${pkeyd_rest[@]}" >>%(root)s/journal-rest 2>&1 </dev/null &
        echo $! >%(root)s/pkeyd-rest.pid
        for ((i = 0; i < 900; i++)); do
                grep -qs "^Listening" %(root)s/journal-rest && return
                sleep 0.1
        done
        echo "systemd-socket-activate does not listen"; cat %(root)s/journal-rest
}
mkpasswd() { printf 'Password:\n'; printf secret | command mkpasswd -s "$@"; }
chgrp() { [[ $1 == pkeyd || $1 == pkeyd-rest ]]; }
chmod() { command chmod "${1/640/600}" "${@:2}"; } # without these groups
curl() { command curl -s --resolve head1:443:127.0.0.1 "$@" && echo; }
sweep_opensm() {
        local before
        before=$(grep -c "SUBNET UP" %(root)s/../osm.log)
        kill -HUP "$(cat %(root)s/opensm.pid)"
        for ((i = 0; i < 900; i++)); do
                [[ $(grep -c "SUBNET UP" %(root)s/../osm.log) -gt $before ]] && return
                sleep 0.1
        done
        echo "OpenSM does not sweep"
}
systemctl() {
        local said
        case "$*" in
        "disable --now pkeyd") stop_pkeyd; return ;;
        "reload opensm") sweep_opensm; sweep_opensm; return ;; # the first one may be a sweep that had already begun
        "restart opensm") return ;; # the directive restart_opensm does it
        "restart pkeyd") stop_pkeyd ;;
        "enable --now pkeyd-rest.socket") listen_for_pkeyd_rest; return ;;
        esac
        said=$(grep -cs "ports verified" %(root)s/journal)
        case "$*" in
        "enable --now pkeyd"|"restart pkeyd")
                # Not through a function, because $! would be the PID of a shell.
                LD_PRELOAD=%(preload)s SIM_HOST=head1 "${pkeyd[@]}" >>%(root)s/journal 2>&1 </dev/null &
                echo $! >%(root)s/pkeyd.pid ;;
        "reload pkeyd") kill -HUP "$(cat %(root)s/pkeyd.pid)" ;;
        *) echo "no such unit here: $*"; return 1 ;;
        esac
        for ((i = 0; i < 900; i++)); do
                [[ $(grep -cs "ports verified" %(root)s/journal) -gt $said ]] && return
                sleep 0.1
        done
        echo "pkeyd did not end its sweep"; cat %(root)s/journal
}
ssh() { LD_PRELOAD=%(preload)s SIM_HOST=$1 "${@:2}"; } # HOST COMMAND
journalctl() { # -u pkeyd -o cat [-n N]
        tail -n "${6:-1000}" %(root)s/journal | sed 's/^pkeyd: //'
}
cd %(root)s
"""


class Site:
    """A fabric with HOSTS, and a directory that stands for the root of head1's file system."""

    def __init__(self):
        require()
        self.seen = 0  # length of the journal at the last console command
        self.fabric = Fabric(two_level(2, 2, 10, HOSTS), home="head1", opensm=False)

    def __enter__(self):
        f = self.fabric.__enter__()
        try:
            self.root = f.path("root")
            for name in ("etc/opensm", "etc/pkeyd", "state"):
                os.makedirs(os.path.join(self.root, name))
            os.symlink(os.path.join(self.root, "etc/opensm/partitions.conf"), f.path("partitions.conf"))
            self.bus = Bus(f)
        except BaseException:
            self.__exit__(Exception, None, None)
            raise
        return self

    def __exit__(self, *how):
        for name in ("pkeyd-rest.pid", "pkeyd.pid"):
            pid = read_file(os.path.join(self.root, name))
            if pid:
                subprocess.run(["kill", pid.strip()], check=False, stderr=subprocess.DEVNULL)
        self.fabric.__exit__(*how)

    def path(self, name):
        return self.root + name

    def bash(self, text):
        """Runs commands and returns their output with the paths of a real host."""
        prelude = PRELUDE % {"preload": PRELOAD, "build": os.path.dirname(program("pkeyctl")), "root": self.root}
        text = re.sub(r"(?<![\w.])/etc/(?=opensm|pkeyd)", self.root + "/etc/", text)
        text = text.replace("systemd:opensm.service", "pidfile:%s/opensm.pid" % self.root)
        environment = self.fabric.environment(**self.bus.environment())
        del environment["LD_PRELOAD"]  # for the programs alone, see PRELUDE
        r = subprocess.run(["bash", "-c", prelude + text], cwd=self.root, env=environment, text=True, timeout=3 * PATIENCE,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return r.stdout.replace("pidfile:%s/opensm.pid" % self.root, "systemd:opensm.service").replace(self.root, "")

    # --- directives ------------------------------------------------------------------------------------------------------

    def opensm(self):
        self.fabric.start_opensm()
        with open(self.path("/opensm.pid"), "w") as f:
            f.write("%d\n" % self.fabric.opensm.pid)

    def etcd(self):
        """Starts a member; it takes the place of those in pkeyd.yaml."""
        name = self.path("/etc/pkeyd/pkeyd.yaml")
        settings = re.sub(r"(?ms)^store: etcd$.*", Cluster(self.fabric, 1).settings(), read_file(name))
        with open(name, "w") as f:
            f.write(settings)

    def restart_opensm(self):
        """Restarts OpenSM, which reads /etc/opensm/opensm.conf."""
        end(self.fabric.opensm)
        os.unlink(self.fabric.path("osm.log"))
        self.fabric.opensm_conf = read_file(self.path("/etc/opensm/opensm.conf"))
        self.opensm()

    def run(self, command):
        """Runs a command that the text does not show."""
        check_equal(self.bash(command), "", command)

    def console(self, command):
        """Sends a command to ibsim; a later `logged` waits for text after it."""
        self.seen = len(read_file(self.path("/journal")))
        self.fabric.console(command)

    def verified(self):
        wait_for(lambda: "every table matches the policy" in self.bash("pkeyctl verify"), "every table to match the policy")

    def file(self, name, source):
        """Copies a file from the source tree."""
        with open(self.path(name), "w") as f:
            f.write(read_file(os.path.join(SOURCE, source)))

    def dropped(self, host, count):
        """Sets the counter of dropped incoming packets at the switch port of this host."""
        i = HOSTS.index(host)
        self.fabric.console('PerformanceSet "leaf%02d"[%d] PortCounters.PortRcvConstraintErrors=%s' % (i // 10 + 1, i % 10 + 1, count))

    def short_intervals(self):
        """Lets pkeyd sweep and poll often, and write metrics after each sweep."""
        with open(self.path("/etc/pkeyd/pkeyd.yaml"), "a") as f:
            f.write("sweep_interval: 1s\nmetrics: {textfile: %s}\n" % self.path("/metrics"))

    def polled(self):
        wait_poll_rounds(self.path("/metrics"))

    def logged(self, text):
        wait_for(lambda: text in read_file(self.path("/journal"))[self.seen:], "the journal to have " + text)


def plain(line):
    for pattern, to in VARIES:
        line = re.sub(pattern, to, line)
    return line


def is_as_shown(shown, printed):
    """Compares two lists of lines."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(is_as_shown(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    if not printed:
        return False
    if plain(shown[0]) == plain(printed[0]) and is_as_shown(shown[1:], printed[1:]):
        return True
    goes_on = len(shown) > 1 and shown[1].startswith(" ")
    return goes_on and is_as_shown([shown[0] + " " + shown[1].strip(), *shown[2:]], printed)


def as_markdown(page):
    """Converts the displays and directives of a manual page to Markdown, line by line."""
    lines, ret = page.splitlines(), []
    for line, following in zip(lines, [*lines[1:], ""]):
        if line.startswith('.\\" test: '):
            ret.append("<!-- %s -->" % line[4:])
        elif line.startswith(".Bd -literal"):
            ret.append("```console" if following.startswith("$ ") else "```")
        elif line == ".Ed":
            ret.append("```")
        else:
            ret.append(re.sub(r"\\(&|-|e|\((?:aq|dq))", lambda m: MDOC[m.group(1)], line))
    return "\n".join(ret)


def steps(text):
    """A list of (line number, "test" or "command", text, expected output)."""
    in_block, ends_with, ret = False, None, []
    for number, line in enumerate(text.splitlines(), 1):
        directive = re.fullmatch(r"<!-- test: (.*) -->", line)
        if directive:
            ret.append((number, "test", directive.group(1), []))
        elif line.startswith("```"):
            in_block = line == "```console"
        elif in_block and ends_with:
            ret[-1] = (*ret[-1][:2], ret[-1][2] + "\n" + line, [])
            ends_with = None if line == ends_with else ends_with
        elif in_block and line.startswith("$ "):
            here = re.search(r"<<'(\w+)'", line)
            ends_with = here and here.group(1)
            ret.append((number, "command", line[2:], []))
        elif in_block:
            ret[-1][3].append(line)
    return ret


def difference(site, what, shown):
    """Runs a command and compares its output; returns "" if it is as shown. Retries journalctl, because the log may lag behind."""
    printed = site.bash(what).splitlines()
    until = time.monotonic() + (PATIENCE if what.startswith("journalctl ") else 0)
    while not is_as_shown(shown, printed) and time.monotonic() < until:
        time.sleep(0.1)
        printed = site.bash(what).splitlines()
    if os.environ.get("SHOW"):
        print("$ " + what + "\n" + "\n".join(printed))
    return "" if is_as_shown(shown, printed) else "%s prints\n%s\n--- instead of\n%s" % (what, "\n".join(printed), "\n".join(shown))


def run(name):
    """Runs a document of the source tree. With SHOW=1 in the environment, prints the output of each command."""
    text = read_file(os.path.join(SOURCE, name))
    n, wrong = 0, []
    with ExitStack() as stack:
        site = stack.enter_context(Site())
        for number, kind, what, shown in steps(text if name.endswith(".md") else as_markdown(text)):
            verb, _, rest = what.partition(" ")
            if kind == "command":
                n += 1
                differs = difference(site, what, shown)
                wrong += ["\n%s:%d: %s" % (name, number, differs)] if differs else []
            elif verb == "site":
                stack.close()
                site = stack.enter_context(Site())
            else:
                getattr(site, verb)(*([rest] if verb in ONE_ARGUMENT else rest.split()))
            if wrong and not os.environ.get("SHOW"):
                break
    check(n > 0, name, "has no commands")
    check(not wrong, *wrong)
