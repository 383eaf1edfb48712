# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion: what `pkeyctl complete` answers, and that bash, zsh and fish offer that answer and evaluate nothing of it."""

import json
import os
import pty
import random
import re
import select
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import time

import madtrace
from harness import PATIENCE, SOURCE, Fabric, Skip, check, check_equal, main, program, two_level

POLICY = """\
version: 1
groups:
  storage: oss[01-02], @leaf07/1-4
partitions:
  lustre:
    pkey: 0x0010
    members:
      storage: full
      node[0001-0003]: limited
      "gpu*": limited
      0x0002c90300000099: full
"""

HOSTILE = ["$(touch hacked)", "`touch hacked`", "x;touch hacked", "a'b", 'a"b', "a\\x20b", "a&b", "a|touch", "${IFS}", "-rf",
           "--yes", "*", "node[1-2]", "!ls", "a,b", "~root", "x\\x1btouch", "<hacked", ">hacked", "%s%n", "#x", "=ls", "a=b", "@x",
           ":files", "", "ALL", "self", "full", "0x12"]


class Place:
    """A directory with a policy and a store, of pkeyctl that completes there."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="pkeyd-test-")
        self.policy = self.write("partitions.yaml", POLICY)
        self.state = os.path.join(self.dir, "state")
        os.mkdir(self.state, 0o700)
        os.mkdir(os.path.join(self.dir, "empty"))
        self.where = ["--policy", self.policy, "--state-dir", self.state]
        self.environment = dict(os.environ, PATH=os.path.dirname(program("pkeyctl")) + ":" + os.environ["PATH"], HOME=self.dir,
                                LC_ALL="C.UTF-8", XDG_CONFIG_HOME=self.dir, XDG_DATA_HOME=self.dir)
        self.database = None
        return self

    def __exit__(self, *_):
        if self.database:
            self.database.close()
        shutil.rmtree(self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def store(self, descriptions, version=1, in_use=False):
        """Makes the store, with endports of these descriptions; those that begin with MF0 are switches. in_use: as pkeyd has it,
        with all records in the -wal."""
        self.database = db = sqlite3.connect(os.path.join(self.state, "state.db"), isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("BEGIN")
        db.execute("PRAGMA application_id = 1886086521")
        db.execute("PRAGMA user_version = %d" % version)
        db.execute("CREATE TABLE record(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        for i, description in enumerate(descriptions):
            guid = "0x%016x" % (0x0002c90300000000 + i)
            record = {"node": guid, "port": 1, "port_guid": guid, "type": 2 if description.startswith("MF0") else 1,
                      "description": description, "switch": "0x%016x" % 0, "switch_port": 0, "seen": 1700000000, "absent": 0}
            db.execute("INSERT INTO record VALUES(?, ?)", ("known/" + guid, json.dumps(record, separators=(",", ":")).encode()))
        db.execute("INSERT INTO record VALUES('known/broken', x'00')")
        db.execute("INSERT INTO record VALUES('table/0x0002c90300000000/1', x'7b7d')")
        db.execute("COMMIT")
        if not in_use:
            db.close()
            self.database = None

    def run(self, *arguments, **how):
        r = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir, env=self.environment,
                           stdin=how.pop("stdin", subprocess.DEVNULL), timeout=PATIENCE, **how)
        return r.returncode, r.stdout.decode(), r.stderr.decode()

    def lines(self, *arguments, **how):
        status, out, err = self.run(program("pkeyctl"), "complete", *arguments, **how)
        check_equal((status, err), (0, ""), "complete %r" % (arguments,))
        return out.splitlines()

    def answer(self, *words, at=None):
        """The candidates for the last word, or for another one."""
        return [line.split("\t")[0] for line in self.lines(str(len(words) if at is None else at), "pkeyctl", *words)]

    def names(self, *words):
        return self.answer(*self.where, *words)


def help_text():
    """{command: its variants}, {option: (its argument, the commands that it is for)} of --help."""
    text = subprocess.run([program("pkeyctl"), "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    commands, options = text.split("Commands:\n")[1].split("\n\n")[0], text.split("Options:\n")[1].split("\n\n")[0]
    commands = dict(re.findall(r"^  (\w+) +(\S*)", commands, re.M))
    found = {}
    for option, argument, help in re.findall(r"^ +(?:-\w, )?--([\w-]+) ?([A-Z]+)?\s+(.*)$", options, re.M):
        m = re.match(r"((?:%s)\b[ ,\w-]*?): " % "|".join(commands), help)
        found[option] = (argument, m.group(1).split(", ") if m else None)
    return commands, found


def test_commands():
    with Place() as p:
        commands, _ = help_text()
        check(len(commands) > 10, commands)
        check_equal(p.answer(""), sorted(commands), "the commands")
        check_equal(p.answer("v"), ["verify", "violations"], "those with v")
        check_equal(p.answer("verify"), ["verify"], "a complete word")
        check_equal(p.answer("xyz"), [":none"], "no command")
        check_equal(p.answer("--json", "--Ca", "show", "doc"), ["doctor"], "after options")
        check_equal(p.answer("-vC", "x", "-P1", "doc"), ["doctor"], "after options of one letter")
        check_equal(p.answer("--", "doc"), ["doctor"], "after --")
        check_equal(p.answer("--", "--"), [":none"], "no option after --")
        check_equal(p.answer("do", "--json", at=1), ["doctor"], "in front of options")
        check_equal(p.answer("xyz", ""), [":none"], "of an unknown command")
        check_equal(p.answer("xyz", "--"), [":none"], "of an unknown command")
        check(all(line.split("\t")[1] for line in p.lines("1", "pkeyctl", "")), "no descriptions")


def test_variants():
    with Place() as p:
        check_equal(p.answer("show", ""), ["held", "matrix", "partitions", "port", "ports", "vouches"], "variants")
        check_equal(p.answer("show", "p"), ["partitions", "port", "ports"], "variants")
        check_equal(p.answer("--quiet", "show", "--json", "v"), ["vouches"], "between options")
        check_equal(p.answer("export", ""), ["opensm"], "variants")
        check_equal(p.answer("export", "opensm", ""), [":files"], "behind a variant")
        for line in (["show", "ports", ""], ["show", "x", ""], ["export", "x", ""], ["status", ""], ["watch", "a", ""],
                     ["plan", "a", ""]):
            check_equal(p.answer(*line), [":none"], line)


def test_options():
    """Each command gets the options that --help names for it."""
    with Place() as p:
        commands, options = help_text()
        check_equal(sorted(p.answer("--")), sorted("--" + o for o in options), "all options")
        for command in commands:
            wanted = [o for o, (_, of) in options.items() if of is None or command in of]
            check_equal(p.answer(command, "--"), sorted("--" + o for o in wanted), "options of " + command)
        check("--interval" in p.answer("violations", "--once", "--"), "--interval is missing")
        check("--interval" not in p.answer("violations", "--"), "--interval is there")
        check_equal(p.answer("check", "--top"), ["--topology"], "a beginning")
        check_equal(p.answer("--top", "check", at=1), ["--topology"], "in front of the command")
        check("--json" not in p.answer("check", "--json", "--"), "one that is given already")
        check("--quiet" not in p.answer("check", "-vq", "--"), "one that is given already")
        check_equal(p.answer("check", "--xyz"), [":none"], "no option")


def test_values():
    with Place() as p:
        _, options = help_text()
        wanted = {"FILE": [":files"], "DIR": [":directories"]}
        check_equal(p.answer("show", "matrix", "--format", ""), ["dot", "json"], "formats")
        check_equal(p.answer("--format=", "show", "matrix", at=1), ["--format=dot", "--format=json"], "formats")
        check_equal(p.answer("env", "--format=s"), ["--format=sh"], "formats")
        for option, (argument, _) in options.items():
            if argument and argument != "NAME":
                check_equal(p.answer("check", "--" + option, "x"), wanted.get(argument, [":none"]), option)
                check_equal(p.answer("check", "--%s=x" % option), wanted.get(argument, [":none"]), option)
            elif not argument:
                check_equal(p.answer("--" + option, "doc"), ["doctor"], option)
                check_equal(p.answer("check", "--%s=x" % option), [":none"], option)
        check_equal(p.answer("check", "--topol", "--"), [":files"], "of an abbreviated option, even if it looks like an option")
        check_equal(p.answer("check", "-C", ""), [":none"], "of a letter")
        check_equal(p.answer("check", "-C", "x", ""), [":files"], "behind it")
        for command in ("check", "plan", "apply", "verify", "import", "doctor"):
            check_equal(p.answer(command, ""), [":files"], command)
        check_equal(p.answer("verify", "--local", "x"), [":files"], "a file")
        check_equal(p.answer("show", "--local", "port", "-C"), [":none"], "letters")


def test_names():
    with Place() as p:
        p.store(["node0004 mlx5_0", "node0004 mlx5_1", "node0001 mlx5_0", "MF0;leaf08:MSB7700/U1", "login-1.example_x mlx5_0",
                 "storage mlx5_0", "SHARP Aggregation Node"])
        hosts = ["login-1.example_x", "node0001", "node0002", "node0003", "node0004", "oss01", "oss02"]
        check_equal(p.names("show", "port", ""), ["@leaf07", "@leaf08", *hosts, "storage"], "all")
        check_equal(p.names("violations", "--node", ""), ["leaf07", "leaf08", *hosts, "storage"], "plain names")
        check_equal(p.names("violations", "--node=l"), ["--node=leaf07", "--node=leaf08", "--node=login-1.example_x"], "=")
        check_equal(p.names("forget", "a", "b", "oss"), ["oss01", "oss02"], "any number")
        check_equal(p.answer("pin", ""), ["accept", "drop"], "variants")
        check_equal(p.names("pin", "accept", "login"), ["login-1.example_x"], "the name to accept")
        check_equal(p.names("pin", "drop", "leaf0"), ["leaf07", "leaf08"], "the name to drop")
        check_equal(p.names("pin", "drop", "leaf07", ""), [":none"], "one name")
        check_equal(p.names("explain", "oss0"), ["oss01", "oss02"], "A")
        check_equal(p.names("explain", "oss01", "oss02"), ["oss02"], "B")
        check_equal(p.names("explain", "oss01", "oss02", ""), [":none"], "no more")
        check_equal(p.names("env", ""), ["default", "lustre"], "partitions")
        check_equal(p.names("env", "lustre", ""), [":none"], "one partition")
        check_equal(p.names("show", "port", "@"), ["@leaf07", "@leaf08"], "switches")
        check_equal(p.names("show", "port", "oss01,n[1,2],node0004,log"), ["oss01,n[1,2],node0004,login-1.example_x"], "a list")
        check_equal(p.names("show", "port", "node[1,"), [":none"], "within brackets")
        check_equal(p.names("show", "port", "0x"), ["0x%016x" % (0x0002c90300000000 + i) for i in range(7)], "GUIDs")
        check_equal(p.lines("7", "pkeyctl", *p.where, "show", "port", "st"), ["storage\tgroup of the policy"], "what a name means")
        check_equal(p.names("show", "port", "0x0002c90300000003"), ["0x0002c90300000003"], "a GUID")
        check_equal(p.answer("show", "port", "oss", "--policy=partitions.yaml", at=3), ["oss01", "oss02"], "the policy behind it")
        check_equal(p.answer("--policy", "~/partitions.yaml", "show", "port", "oss"), ["oss01", "oss02"], "a path as it is typed")


def test_leases():
    with Place() as p:
        p.write("partitions.yaml", POLICY + "pools: {jobs: {pkeys: 0x1000, ports: ALL}, tenants: {pkeys: 0x1001, ports: ALL}}\n")
        p.store(["node0042 mlx5_0"], in_use=True)
        for id_ in ("slurm:a:12", "slurm:a:13", "$(touch hacked)", ""):
            p.database.execute("INSERT INTO record VALUES(?, x'7b7d')", ("lease/" + id_,))
        check_equal(p.answer("lease", ""), ["create", "edit", "list", "release", "renew", "show"], "variants")
        for variant in ("renew", "release", "show"):
            check_equal(p.names("lease", variant, ""), ["slurm:a:12", "slurm:a:13"], variant)
        check_equal(p.names("lease", "list", ""), [":none"], "no argument")
        check_equal(p.names("lease", "create", "--pool", ""), ["jobs", "tenants"], "pools")
        check_equal(p.names("lease", "create", "--members", "oss01,node004"), ["oss01,node0042"], "a list of members")
        check_equal(p.names("lease", "create", "--membership="), ["--membership=full", "--membership=limited"], "memberships")
        check(set(p.answer("lease", "create", "--")) >= {"--pool", "--id", "--members", "--pkey", "--for", "--partial"}, "options")
        check(set(p.answer("lease", "edit", "--")) >= {"--pool", "--add", "--remove", "--set", "--membership", "--index0"}, "options of edit")
        check("--for" in p.answer("lease", "renew", "--") and "--pool" not in p.answer("lease", "renew", "--"), "options of renew")


def test_store_in_use():
    """Records that are only in the -wal are found; nothing is written, and another process can write meanwhile."""
    with Place() as p:
        p.store(["node0042 mlx5_0"], in_use=True)
        p.database.execute("BEGIN IMMEDIATE")
        before = sorted(os.listdir(p.state))
        check_equal(p.names("show", "port", "node004"), ["node0042"], "of a store in use")
        check_equal(sorted(os.listdir(p.state)), before, "the files")
        p.database.execute("COMMIT")


def test_store_of_a_fabric():
    """The names that pkeyctl stored itself."""
    with Fabric(two_level(2, 1, 2), opensm=False) as fabric:
        policy = "version: 1\npartitions: {a: {pkey: 0x0101, members: {ALL: full}}}\n"
        fabric.apply(fabric.write("partitions.yaml", policy)).expect(0)
        line = ["pkeyctl", "--policy", "none", "--state-dir", fabric.path("state"), "show", "port", ""]
        r = fabric.run([program("pkeyctl"), "complete", "7", *line], trace="mads").expect(0)
        check_equal([line.split("\t")[0] for line in r.out.splitlines()],
                    sorted(["node%04d" % (i + 1) for i in range(4)] + ["@leaf01", "@leaf02", "@spine01"]), "names")
        check_equal((r.err, madtrace.read(fabric.path("mads"))), ("", []), "what was sent")


def test_only_reads():
    with Place() as p:
        p.store(["node0042 mlx5_0"])
        os.chmod(p.state, 0o500)
        before = [(f, os.stat(os.path.join(p.state, f)).st_mtime_ns) for f in sorted(os.listdir(p.state))]
        check_equal(p.names("show", "port", "node004"), ["node0042"], "a name")
        check_equal([(f, os.stat(os.path.join(p.state, f)).st_mtime_ns) for f in sorted(os.listdir(p.state))], before, "the files")


def test_many():
    """Of too many, the last one is there, too: a shell must not take what the first ones begin with for what all begin with."""
    with Place() as p:
        p.store(["n%05d mlx5_0" % i for i in range(20001)])
        got = p.answer("--policy", "none", "--state-dir", p.state, "show", "port", "")
        check_equal((len(got), got[0], got[998], got[999]), (1000, "n00000", "n00998", "n20000"), "the first and the last")
        check_equal(p.answer("--policy", "none", "--state-dir", p.state, "show", "port", "n1999"),
                    ["n1999%d" % i for i in range(10)], "few")
        p.write("partitions.yaml", POLICY.replace("node[0001-0003]", "node[0-999999999]"))
        check_equal(len(p.names("show", "port", "node")), 1000, "of a huge hostlist")


def test_unreadable():
    """What cannot be read adds nothing, and nothing waits for it."""
    with Place() as p:
        p.store(["node0042 mlx5_0"], version=2)
        check_equal(p.names("show", "port", "node"), ["node0001", "node0002", "node0003"], "a newer store")
        os.mkfifo(os.path.join(p.dir, "fifo"))
        p.write("bad.yaml", POLICY + "  x")
        p.write("big.yaml", POLICY + "#" * (2 << 20))
        for policy in ("none", "fifo", "empty", "bad.yaml", "big.yaml", "-", "", "/dev/tty"):
            check_equal(p.answer("--policy", policy, "--state-dir", "none", "show", "port", ""), [":none"], policy)
        with open(os.path.join(p.state, "state.db"), "wb") as f:
            f.write(b"SQLite format 3\0" + bytes(range(256)) * 40)
        for state in (p.state, "none", "empty", "partitions.yaml", "fifo", ""):
            check_equal(p.answer("--policy", p.policy, "--state-dir", state, "show", "port", "oss"), ["oss01", "oss02"], state)
        check_equal(os.listdir(p.state), ["state.db"], "the damaged store")
        r, w = os.pipe()
        try:
            check_equal(p.lines("5", "pkeyctl", "--policy", "-", "show", "port", "", stdin=r), [":none"], "standard input")
        finally:
            os.close(r)
            os.close(w)


def test_ordinary_user():
    with Place() as p:
        p.store(["node0042 mlx5_0"])
        os.chmod(p.dir, 0o755)
        if os.geteuid() != 0:
            raise Skip("not root")

        def drop():
            os.setgroups([])
            os.setuid(65534)
        try:
            found = p.lines("7", "pkeyctl", *p.where, "show", "port", "node", preexec_fn=drop)
        except (PermissionError, subprocess.SubprocessError) as e:
            raise Skip("cannot become another user: %s" % e) from None
        check_equal([line.split("\t")[0] for line in found], ["node0001", "node0002", "node0003"], "without the store")


def test_wrong_calls():
    """Whatever the words are: status 0 and nothing on stderr."""
    with Place() as p:
        for line in ([], ["1"], ["x", "pkeyctl"], ["", "pkeyctl", ""], ["0", "pkeyctl", "a"], ["-1", "pkeyctl", "a"],
                     ["3", "pkeyctl", "a"], ["99999999999999999999", "pkeyctl", "a"], ["1x", "pkeyctl", "a"],
                     ["4294967297", "pkeyctl", "a"], ["--help"], ["-h", "pkeyctl"]):
            check_equal(p.lines(*line), [], line)
        check_equal(p.lines("2", "pkeyctl", "check"), [":files"], "a word at the end that is not there yet")
        words = ["", "-", "--", "---", "-=", "--=", "--=x", "-C", "--node=", "show", "port", "pórt", "\t", "\n", "%s", "[", "a,",
                 ",", "]", "--policy", "'", '"', "x" * 5000, "-" * 100, "--node=,", "0x", "@", "forget", "explain", "violations",
                 "--once", "~/", "~"]
        pick = random.Random(1)
        for _ in range(60):
            line = [pick.choice(words) for _ in range(pick.randint(1, 6))]
            p.lines(str(pick.randint(1, len(line) + 1)), "pkeyctl", *line)


# --- shells -----------------------------------------------------------------------------------------------------------

def script(name):
    return os.path.join(SOURCE, "completions", name)


BASH = r"""
source "$1"
compopt() { directive="compopt $*"; }
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
_pkeyctl
printf '%s\n' "${COMPREPLY[@]}" ${directive:+"$directive"}
"""


def bash(p, line):
    """Splits the line as bash does, and completes its last word."""
    words = re.findall(r"\"[^\"]*\"?|'[^']*'?|[@=:]+|[^\s@=:]+", line)
    if line[-1].isspace():
        words.append("")
    status, out, err = p.run("bash", "--norc", "-c", BASH, "bash", script("pkeyctl.bash"), line, *words)
    check_equal((status, err), (0, ""), "bash: " + line)
    return out.split("\n")[:-1] if out.strip() else []


ZSH = r"""
compadd() { print -rl -- "${(@P)argv[-1]}"; }
_files() { print -r -- "_files $* $PREFIX"; }
compset() { PREFIX=${PREFIX#${~2}}; }
pkeyctl_completion() { source "$1"; }
words=("${@:2}") CURRENT=$(($# - 1)) PREFIX=$argv[-1]
_pkeyctl_file=$1
pkeyctl_completion $1
true
"""


def zsh(p, *words):
    status, out, err = p.run("zsh", "-f", "-c", ZSH, "zsh", script("_pkeyctl"), "pkeyctl", *words)
    check_equal((status, err), (0, ""), "zsh: %r" % (words,))
    return out.splitlines()


def fish(p, line):
    status, out, err = p.run("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script("pkeyctl.fish"), line)
    check_equal((status, err), (0, ""), "fish: " + line)
    return [item.split("\t")[0] for item in out.splitlines()]


# What is typed behind pkeyctl goes to a function, which shows it as the shell evaluated it; completion asks the program.
SHOW = "pkeyctl() { printf '<%s>' \"$@\"; printf '%s\\n' .end; }; PS1='re''ady '\n"
INTERACTIVE = {
    "bash": (["bash", "--norc", "-i"], "bind 'set enable-bracketed-paste off'; source %s; " % script("pkeyctl.bash")),
    "zsh": (["zsh", "-f", "-i"], "fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste; "
            % os.path.dirname(script("_pkeyctl"))),
}


def type_line(p, shell, line):
    """Types a line in an interactive shell, with \t where a person presses Tab, and returns the words that become of it."""
    arguments, setup = INTERACTIVE[shell]
    child, fd = pty.fork()
    if child == 0:
        os.chdir(p.dir)
        os.execvpe(arguments[0], arguments, dict(p.environment, TERM="dumb", COLUMNS="1000"))
    out = ""
    try:
        for text, until in ((setup + SHOW, "ready "), (line + "\n", ".end\r\n")):
            os.write(fd, text.encode())
            out, end = "", time.monotonic() + PATIENCE
            while until not in out:
                check(select.select([fd], [], [], max(0, end - time.monotonic()))[0], "timeout in %s: %r" % (shell, out))
                out += os.read(fd, 4096).decode(errors="replace")
    finally:
        os.close(fd)
        os.waitpid(child, 0)
    return re.findall(r"<(.*?)>", re.sub(r"\r\n?", "\n", out).split(".end")[-2].split("\n")[-1])


def needs(shell):
    if not shutil.which(shell):
        raise Skip("%s is not installed (scripts/install-deps --test)" % shell)


def test_bash():
    needs("bash")
    with Place() as p:
        p.store(["node0042 mlx5_0", "MF0;leaf08:MSB7700/U1"])
        where = "pkeyctl --policy partitions.yaml --state-dir=state "
        check_equal(bash(p, "pkeyctl v"), ["verify", "violations"], "commands")
        check_equal(bash(p, "pkeyctl show p"), ["partitions", "port", "ports"], "variants")
        check_equal(bash(p, "pkeyctl xyz "), [], "nothing")
        check_equal(bash(p, "pkeyctl check --top"), ["--topology"], "options")
        check_equal(bash(p, "pkeyctl check "), ["compopt -o default"], "files")
        check_equal(bash(p, "pkeyctl check --topology=/et"), ["compopt -o default"], "files in one word")
        check_equal(bash(p, "pkeyctl check --state-dir "), ["compopt -o dirnames"], "directories")
        check_equal(bash(p, where + "show port node"), ["node0001", "node0002", "node0003", "node0042"], "hosts")
        check_equal(bash(p, where + "show port @le"), ["@leaf07", "@leaf08"], "switches")
        check_equal(bash(p, where + "show port @"), ["@leaf07", "@leaf08"], "switches")
        check_equal(bash(p, where + "show port oss01,@leaf08"), ["@leaf08"], "a list: what begins with the last @")
        check_equal(bash(p, where + "violations --node=oss"), ["oss01", "oss02"], "what follows the =")
        check_equal(bash(p, where + "violations --node="), ["leaf07", "leaf08", "node0001", "node0002", "node0003", "node0042",
                                                            "oss01", "oss02"], "what follows the =")
        check_equal(bash(p, where + "show port 'oss"), ["oss01", "oss02"], "a quote that is open")
        check_equal(bash(p, "pkeyctl --policy 'partitions.yaml' show port oss"), ["oss01", "oss02"], "a quoted path")


def test_zsh():
    needs("zsh")
    with Place() as p:
        p.store(["node0042 mlx5_0", "MF0;leaf08:MSB7700/U1"])
        where = ["--policy", "partitions.yaml", "--state-dir=state"]
        check_equal(zsh(p, "v"), ["verify", "violations"], "commands")
        check_equal(zsh(p, "xyz", ""), [], "nothing")
        check_equal(zsh(p, "check", "--top"), ["--topology"], "options")
        check_equal(zsh(p, "check", "x"), ["_files  x"], "files")
        check_equal(zsh(p, "check", "--topology=x"), ["_files  x"], "files in one word")
        check_equal(zsh(p, "check", "--state-dir", ""), ["_files -/ "], "directories")
        check_equal(zsh(p, *where, "show", "port", "node"), ["node0001", "node0002", "node0003", "node0042"], "hosts")
        check_equal(zsh(p, *where, "show", "port", "@"), ["@leaf07", "@leaf08"], "switches")
        check_equal(zsh(p, *where, "violations", "--node=oss"), ["--node=oss01", "--node=oss02"], "in one word")
        check_equal(zsh(p, "--policy", "'partitions.yaml'", "show", "port", "oss"), ["oss01", "oss02"], "a quoted path")


def test_fish():
    needs("fish")
    with Place() as p:
        p.store(["node0042 mlx5_0", "MF0;leaf08:MSB7700/U1"])
        where = "pkeyctl --policy partitions.yaml --state-dir=state "
        check_equal(fish(p, "pkeyctl v"), ["verify", "violations"], "commands")
        check_equal(fish(p, "pkeyctl xyz "), [], "nothing")
        check_equal(fish(p, "pkeyctl check --top"), ["--topology"], "options")
        check_equal(fish(p, "pkeyctl check par"), ["partitions.yaml"], "files")
        check_equal(fish(p, "pkeyctl check --topology=par"), ["--topology=partitions.yaml"], "files in one word")
        check_equal(fish(p, "pkeyctl check --state-dir st"), ["state/"], "directories")
        check_equal(fish(p, where + "show port node"), ["node0001", "node0002", "node0003", "node0042"], "hosts")
        check_equal(fish(p, where + "show port @"), ["@leaf07", "@leaf08"], "switches")
        check_equal(fish(p, where + "violations --node=oss"), ["--node=oss01", "--node=oss02"], "in one word")
        check_equal(fish(p, "pkeyctl --policy 'partitions.yaml' show port oss"), ["oss01", "oss02"], "a quoted path")


def test_typed():
    """Real shells, with a terminal: what they insert into the line."""
    with Place() as p:
        p.store(["node0042 mlx5_0", "MF0;leaf08:MSB7700/U1"])
        where = "pkeyctl --policy=partitions.yaml --state-dir=state "
        for shell in INTERACTIVE:
            if not shutil.which(shell):
                continue
            for typed, wanted in (("pkeyctl sh\tpo\t", "port"),
                                  (where + "show port @leaf08\t", "@leaf08"), (where + "show port @leaf\t8", "@leaf08"),
                                  (where + "show port oss01,@leaf08\t", "oss01,@leaf08"),
                                  (where + "violations --node=node004\t", "--node=node0042"),
                                  (where + "show port 'node004\t", "node0042"),
                                  ("pkeyctl check --topology=part\t", "--topology=partitions.yaml"),
                                  ("pkeyctl check part\t", "partitions.yaml"), ("pkeyctl --state-dir=st\t", "--state-dir=state")):
                words = type_line(p, shell, typed)
                check_equal(words[-1].rstrip("/"), wanted, "%s: %r becomes %r: the last word" % (shell, typed, words))


# --- hostile names ----------------------------------------------------------------------------------------------------

def test_hostile_names():
    """Names that mean something to a shell or in a selector are left out."""
    with Place() as p:
        p.store([name + " mlx5_0" for name in HOSTILE if name] + ["good mlx5_0"] + ["MF0;%s:X/U1" % name for name in HOSTILE])
        check_equal(p.answer("--policy", "none", "--state-dir", p.state, "show", "port", ""), ["good"], "names")
        check_equal(p.answer("--policy", "none", "--state-dir", p.state, "violations", "--node", ""), ["good"], "names")
        for line, tool in (("show port ", bash), ("show port '", bash), ("show port ", fish)):
            if shutil.which(tool.__name__):
                check_equal(tool(p, "pkeyctl --policy none --state-dir state " + line), ["good"], tool.__name__)
        check(not os.path.exists(os.path.join(p.dir, "hacked")), "a name was evaluated")


def test_line_is_not_evaluated():
    """Nor is what a person typed before Tab."""
    with Place() as p:
        for command in ("$(touch hacked)", "`touch hacked`", "(touch hacked)", "$((1))", "'$(touch hacked)'"):
            if shutil.which("bash"):
                bash(p, "pkeyctl --policy %s show port %s" % (command, command))
            if shutil.which("zsh"):
                zsh(p, "--policy", command, "show", "port", command)
            if shutil.which("fish"):
                fish(p, "pkeyctl --policy %s show port o" % command)
        check(not os.path.exists(os.path.join(p.dir, "hacked")), "the line was evaluated")


def test_hostile_answers():
    """Even if pkeyctl printed such names, no shell would evaluate them."""
    with Place() as p:
        bin = os.path.join(p.dir, "bin")
        os.mkdir(bin)
        names = [name for name in HOSTILE if name and name != ":files"]
        p.write("answer", "".join("%s\thost $(touch hacked)\n" % name for name in ["good", *names]))
        pkeyctl = p.write("bin/pkeyctl", "#!/bin/sh\nexec cat '%s/answer'\n" % p.dir)
        os.chmod(pkeyctl, stat.S_IRWXU)
        p.environment["PATH"] = bin + ":" + p.environment["PATH"]
        if shutil.which("bash"):
            got = bash(p, "pkeyctl show port ")
            status, out, _ = p.run("bash", "--norc", "-c", "printf '%s\\n' " + " ".join(got))
            check_equal((status, out.splitlines()), (0, ["good", *names]), "what bash would insert, evaluated")
        if shutil.which("zsh"):
            check_equal(zsh(p, "show", "port", ""), ["good", *names], "zsh")
        for shell in INTERACTIVE:
            if shutil.which(shell):
                p.write("answer", "$(touch hacked);x\thost\n")
                check_equal(type_line(p, shell, "pkeyctl show port \t"), ["show", "port", "$(touch hacked);x"], shell)
        if shutil.which("fish"):
            p.write("answer", "good\t$(touch hacked)\n(touch hacked)\t$(touch hacked)\n")
            check("good" in fish(p, "pkeyctl show port "), "fish")
        check(not os.path.exists(os.path.join(p.dir, "hacked")), "a name was evaluated")


if __name__ == "__main__":
    main()
