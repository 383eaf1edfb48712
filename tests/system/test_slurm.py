# SPDX-License-Identifier: GPL-2.0-or-later
"""contrib/slurm with a real Slurm: while a job runs, its nodes and no others hold the P_Key of its lease.

slurmctld, one slurmd for each host of the fabric, and munged run in the directory of the test, on loopback of its network
namespace. Only `pkeyctl env` is replaced, because ibsim has no verbs devices: the scenario reads the table of the node itself."""

import contextlib
import datetime
import os
import shlex
import shutil
import signal
import socket
import subprocess

import harness
from harness import SOURCE, Daemon, Fabric, Skip, check, check_equal, end, main, read_file, two_level, wait_for
from oracle import Policy
from private_bus import Bus, require

NODES = ["node%04d" % i for i in range(1, 5)]
SETTINGS = "sweep_interval: 1h\ntimeout: 100ms\n"
POOLS = """pools:
  jobs:
    pkeys: 0x1000-0x100f
    ports: node[0001-0004]
    lease: 48h
    rest: 0s
    allow: root
"""
CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=10,socket={dir}/munge.socket
StateSaveLocation={dir}/slurm-state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/slurmctld.err
SlurmdLogFile={dir}/slurmd-%n.err
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SchedulerType=sched/backfill
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=1
MinJobAge=2
MaxJobCount=1000
PrologSlurmctld={dir}/scripts/prologslurmctld-pkeyd
EpilogSlurmctld={dir}/scripts/epilogslurmctld-pkeyd
TaskProlog={dir}/scripts/taskprolog-pkeyd
"""
# Each task writes its environment, and ends when it may.
JOB = """#!/bin/sh
srun sh -c 'file={dir}/out/$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}.$SLURMD_NODENAME
        env >{dir}/out/part.$SLURMD_NODENAME.$$
        mv {dir}/out/part.$SLURMD_NODENAME.$$ "$file"
        while ! test -e {dir}/out/go.$SLURM_JOB_ID -o -e {dir}/out/go; do sleep 0.1; done'
"""
# `pkeyctl env` of a node whose tables the reader reads.
ENV = """import fcntl, json, os, subprocess, sys, tempfile
base = int(sys.argv[1], 16) & 0x7fff
with open({lock!r}) as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with tempfile.TemporaryDirectory() as directory:
        out = subprocess.check_output([{reader!r}], cwd=directory, env=dict(os.environ, **{environment!r}))
for port in json.loads(out)["ports"]:
    if port["description"].split()[0] == os.environ["SLURMD_NODENAME"]:
        for index, key in enumerate(port["table"]):
            if int(key, 16) & 0x7fff == base:
                print("# a comment\\nexport UCX_IB_PKEY=0x%04x\\nexport NCCL_IB_PKEY=%d" % (base, index))
                sys.exit(0)
sys.exit("error: no port of this host is a member of 0x%04x" % base)
"""


def require_slurm():
    require()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for tool in ("slurmctld", "slurmd", "munged", "srun", "ip"):
        if not shutil.which(tool):
            raise Skip("%s is not installed (scripts/install-deps --test)" % tool)
    if os.environ.get("IBSIM_SOCKNAME") != "sim":
        raise Skip("slurmctld needs a network namespace of its own")


class Slurm:
    """pkeyd on a private bus, and Slurm, on a fabric."""

    def __init__(self, fabric):
        self.fabric, self.dir = fabric, fabric.dir
        fabric.settings(SETTINGS)
        fabric.write("partitions.yaml", Policy().add("storage", 0x0011, {"ALL_CAS": "limited"}).yaml() + POOLS)
        self.bus = Bus(fabric)
        self.start_pkeyd()
        self.before = self.tables()
        for name in ("bin", "scripts", "out", "slurm-state", *("spool-" + node for node in NODES)):
            os.mkdir(fabric.path(name))
        os.chmod(fabric.path("out"), 0o777)
        self.install()
        self.environment = dict(os.environ, SLURM_CONF=fabric.path("slurm.conf"))
        # Slurm resolves no address, not even a numeric one, while loopback has the only address of the host.
        subprocess.run("ip link set lo up; ip address replace 192.0.2.1/32 dev lo", shell=True, check=True)
        host = socket.gethostname().split(".")[0]
        conf = CONF.format(host=host, dir=self.dir)
        for i, node in enumerate(NODES):
            conf += "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=1\n" % (node, host, 17001 + i)
        conf += "PartitionName=compute Nodes=node[0001-0004] Default=YES OverSubscribe=EXCLUSIVE MaxTime=UNLIMITED\n"
        fabric.write("slurm.conf", conf + "PartitionName=open Nodes=node[0001-0004]\n")
        self.start_munge()
        self.start_slurmctld()
        for node in NODES:
            self.start(["slurmd", "-D", "-N", node], "slurmd-%s.out" % node)
        wait_for(lambda: self.run("sinfo", "-h", "-p", "compute", "-o", "%t %D").out == "idle 4\n", "all nodes to be idle")

    def install(self):
        """The scripts, with another path of their settings, and the programs that they run."""
        fabric = self.fabric
        for name in ("prologslurmctld-pkeyd", "epilogslurmctld-pkeyd", "taskprolog-pkeyd", "reconcile-pkeyd"):
            text = read_file(os.path.join(SOURCE, "contrib", "slurm", name))
            check("/etc/pkeyd/slurm.conf" in text, name, "has no settings")
            self.script("scripts/" + name, text.replace("/etc/pkeyd/slurm.conf", fabric.path("pkeyd-slurm.conf")))
        self.configure()
        environment = fabric.environment(**self.bus.environment())
        words = ("SIM_HOST", "LD_PRELOAD", "IBSIM_SOCKNAME")
        fabric.write("lock", "")
        fabric.write("env.py", ENV.format(lock=fabric.path("lock"), reader=fabric.copy_program("readtables"),
                                          environment={name: environment[name] for name in words}))
        exports = "".join("export %s=%s\n" % (name, shlex.quote(environment[name]))
                          for name in ("DBUS_SYSTEM_BUS_ADDRESS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"))
        pkeyctl = " ".join(fabric.pkeyctl_arguments()[:1] + ['"$@"'] + fabric.pkeyctl_arguments()[1:])
        self.script("bin/pkeyctl", '#!/bin/sh\n%s[ "$1" != env ] || exec python3 %s "$2"\nexec %s\n' % (
            exports, fabric.path("env.py"), pkeyctl))
        self.script("bin/logger", "#!/bin/sh\necho \"$@\" >>%s\n" % fabric.path("syslog.err"))
        open(fabric.path("syslog.err"), "w").close()
        os.chmod(fabric.path("syslog.err"), 0o666)

    def configure(self, more=""):
        self.fabric.write("pkeyd-slurm.conf", "PATH=%s:$PATH\nexport SLURM_CONF=%s\ntimeout=20s\nslurm_partitions=compute\n%s" % (
            self.fabric.path("bin"), self.fabric.path("slurm.conf"), more))

    def script(self, name, text):
        os.chmod(self.fabric.write(name, text), 0o755)

    # --- daemons ---

    def start(self, arguments, log):
        child = subprocess.Popen(arguments, cwd=self.dir, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=open(self.fabric.path(log), "a"), stderr=subprocess.STDOUT)
        self.fabric.children.append(child)
        return child

    def start_munge(self):
        with open(self.fabric.path("munge.key"), "wb") as f:
            f.write(os.urandom(128))
        os.chmod(self.fabric.path("munge.key"), 0o400)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        options = ["--%s=%s/munge.%s" % (option, self.dir, name) for option, name in files.items()]
        self.start(["munged", "--foreground", "--force", *options], "munge.err")
        wait_for(lambda: os.path.exists(self.fabric.path("munge.socket")), "munged")

    def start_slurmctld(self):
        self.slurmctld = self.start(["slurmctld", "-D"], "slurmctld.out")
        wait_for(lambda: "UP" in self.run("scontrol", "ping").out, "slurmctld")

    def stop_slurmctld(self):
        end(self.slurmctld)

    def start_pkeyd(self):
        self.pkeyd = Daemon(self.fabric, self.fabric.path("partitions.yaml"), environment=self.bus.environment())
        self.bus.wait_name()

    def stop_pkeyd(self):
        check_equal(self.pkeyd.stop(), 0, "exit status of pkeyd after SIGTERM; it said:\n" + self.pkeyd.text())

    def kill_rest(self):
        """Steps are no children of slurmd, and would go on after a scenario that failed."""
        ours = b"SLURM_CONF=" + self.environment["SLURM_CONF"].encode()

        def some_are_left():
            left = False
            for process in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    with open("/proc/%s/environ" % process, "rb") as f:
                        if ours in f.read().split(b"\0"):
                            os.kill(int(process), signal.SIGKILL)
                            left = True
            return left

        wait_for(lambda: not some_are_left(), "the processes of Slurm to end")

    # --- what is ---

    def run(self, *arguments):
        r = subprocess.run(arguments, cwd="/", env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=2 * harness.PATIENCE)
        return harness.Result(list(arguments), r.returncode, r.stdout, r.stderr)

    def pkeyctl(self, *arguments):
        return self.run(self.fabric.path("bin/pkeyctl"), *arguments)

    def reconcile(self):
        return self.run(self.fabric.path("scripts/reconcile-pkeyd"))

    def submit(self, *options, script=JOB):
        """Returns the number of the job."""
        job = self.fabric.write("job.sh", script.format(dir=self.dir))
        r = self.run("sbatch", "--parsable", "--chdir=/", "-o", self.fabric.path("out/%j.txt"), "-t", "10", *options, job).expect(0)
        return int(r.out)

    def go(self, job=None):
        open(self.fabric.path("out/go" + ("" if job is None else ".%d" % job)), "w").close()

    def state(self, job):
        return self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").out.strip()

    def hosts(self, job):
        # of all components of a heterogeneous job, but of one task of an array
        out = self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%A %i %N").expect(0).out
        rows = [row.split() for row in out.splitlines()]
        nodes = [row[2] for row in rows if int(row[0]) == job or "+" in row[1]]
        return sorted(self.run("scontrol", "show", "hostnames", ",".join(nodes)).expect(0).out.split())

    def environments(self, job, restarts=0):
        """{node: the environment of the task there}."""
        found = {}
        for name in os.listdir(self.fabric.path("out")):
            if name.startswith("%d.%d." % (job, restarts)):
                lines = read_file(self.fabric.path("out/" + name)).splitlines()
                found[name.split(".")[2]] = dict(line.split("=", 1) for line in lines if "=" in line)
        return found

    def wait_run(self, job, n_tasks):
        """Waits until a job runs that was requeued any number of times, and returns that number."""
        runs = wait_for(lambda: [n for n in range(50) if len(self.environments(job, n)) == n_tasks],
                        lambda: "job %d to run; the log: %s" % (job, self.log()))
        self.wait_running(job, n_tasks, runs[0])
        return runs[0]

    def running(self):
        """The numbers of all jobs and array tasks that run."""
        return [int(number) for number in self.run("squeue", "-h", "-t", "RUNNING", "-o", "%A").expect(0).out.split()]

    def output(self, job):
        return read_file(self.fabric.path("out/%d.txt" % job))

    def leases(self):
        """{ID: lease}."""
        return {x["id"]: x for x in self.pkeyctl("lease", "list", "--json").expect(0).json()["leases"]}

    def tables(self):
        return {p.name: p.table for p in self.fabric.tables().values() if p.name in NODES}

    def holders(self, base):
        """{node: index} of those that hold the base, by the independent reader."""
        return {name: i for name, table in self.tables().items() for i, key in enumerate(table) if key & 0x7FFF == base}

    def log(self):
        return read_file(self.fabric.path("syslog.err"))

    def wait_running(self, job, n_nodes, restarts=0):
        """The job runs: its lease, which is checked against the tables of all nodes and against what its tasks got."""
        wait_for(lambda: len(self.environments(job, restarts)) == n_nodes, lambda: "job %d to run %d tasks; its output: %s; the log: %s" % (
            job, n_nodes, self.output(job), self.log()))
        lease = self.leases()["slurm:test:%d:%d" % (job, restarts)]
        base = int(lease["pkey"], 16)
        holders = self.holders(base)
        check_equal(sorted(holders), self.hosts(job), "nodes that hold the P_Key of job %d" % job)
        check(len(holders) >= n_nodes, holders)
        for node, environment in self.environments(job, restarts).items():
            check_equal((environment.get("UCX_IB_PKEY"), environment.get("NCCL_IB_PKEY")), ("0x%04x" % base, str(holders[node])),
                        "settings of the task on " + node)
        return lease

    def wait_nothing_left(self):
        wait_for(lambda: not self.leases(), lambda: "all leases to end; the log: " + self.log())
        check_equal(self.tables(), self.before, "tables when no lease is left")

    def finish(self):
        self.go()
        wait_for(lambda: not self.run("squeue", "-h").out, "all jobs to end")
        self.wait_nothing_left()
        self.stop_pkeyd()


@contextlib.contextmanager
def slurm_of():
    require_slurm()
    with Fabric(two_level(2, 1, 2)) as fabric:
        slurm = Slurm(fabric)
        try:
            yield slurm
        finally:
            slurm.kill_rest()


# --- jobs -----------------------------------------------------------------------------------------------------------------


def test_jobs():
    """Two jobs at the same time, one of a user without rights, and a job in a partition of Slurm that has no leases. A P_Key that
    a job inherits from the shell of the user, as if that was part of another job, is ignored."""
    with slurm_of() as slurm:
        inherited = "--export=ALL,PKEYD_SLURM_JOB=999:0x0011"
        first, second = slurm.submit("-N2", inherited), slurm.submit("-N2", "--uid=nobody", inherited)
        leases = [slurm.wait_running(job, 2) for job in (first, second)]
        check_equal(len({lease["pkey"] for lease in leases}), 2, "different P_Keys")
        check_equal(set(slurm.hosts(first)) & set(slurm.hosts(second)), set(), "nodes of both jobs")
        slurm.go(first)
        wait_for(lambda: list(slurm.leases()) == ["slurm:test:%d:0" % second], "the lease of the first job to end")
        slurm.wait_running(second, 2)
        slurm.go(second)
        slurm.wait_nothing_left()
        r = slurm.run("srun", "-p", "open", "-N2", "-t1", "env").expect(0)
        check("UCX_IB_PKEY" not in r.out, r)
        slurm.finish()


def test_time_limits():
    """A lease lasts ten minutes longer than the job may, or as long as the pool allows."""
    with slurm_of() as slurm:
        for limit, seconds in (("5", 900), ("65", 4500), ("1-01:01:00", 90660), ("UNLIMITED", 172800)):
            job = slurm.submit("-N1", "-t", limit)
            lease = slurm.wait_running(job, 1)
            created, ends = (datetime.datetime.fromisoformat(lease[name][:19]) for name in ("created", "ends"))
            check_equal((ends - created).total_seconds(), seconds, "seconds of the lease of a job of " + limit)
        slurm.go()
        job = slurm.submit("-N1", "-t", "3-0")
        wait_for(lambda: "job %d does not start" % job in slurm.log(), "the job to be refused")
        check("leases of up to 48h" in slurm.log(), slurm.log())
        wait_for(lambda: slurm.state(job) == "PENDING", "the job to wait again")
        slurm.run("scancel", str(job)).expect(0)
        slurm.finish()


def test_requeue_and_cancel():
    with slurm_of() as slurm:
        job = slurm.submit("-N3", "--requeue", "--hold")
        slurm.run("scontrol", "update", "JobId=%d" % job, "AdminComment=a note").expect(0)
        slurm.run("scontrol", "release", str(job)).expect(0)
        slurm.wait_running(job, 3)
        slurm.run("scontrol", "requeue", str(job)).expect(0)
        wait_for(lambda: not slurm.leases() or "slurm:test:%d:0" % job not in slurm.leases(), "the lease of the first run to end")
        lease = slurm.wait_running(job, 3, restarts=1)
        comment = slurm.run("squeue", "-h", "-j", str(job), "-O", "admin_comment:200").out.strip()
        check_equal(comment, "a note pkeyd:%d:1:%s" % (job, lease["pkey"]), "AdminComment")
        check_equal(list(slurm.leases()), ["slurm:test:%d:1" % job], "leases of a job that was requeued")
        slurm.run("scancel", str(job)).expect(0)
        slurm.wait_nothing_left()
        slurm.finish()


def test_cancelled_before_it_starts():
    """Slurm kills PrologSlurmctld, which waits for a port, and now and then EpilogSlurmctld, too."""
    with slurm_of() as slurm:
        slurm.fabric.lose("node0004", 100)
        job = slurm.submit("-N2", "-w", "node[0003-0004]")
        wait_for(lambda: slurm.leases().get("slurm:test:%d:0" % job, {}).get("state") == "granting", "the lease to be granted")
        slurm.run("scancel", str(job)).expect(0)
        slurm.fabric.lose("node0004", 0)
        slurm.pkeyctl("reload").expect(0)
        wait_for(lambda: slurm.state(job) == "", "slurmctld to forget the job")
        slurm.reconcile().expect(0)
        check_equal(slurm.environments(job), {}, "tasks of a job that was cancelled")
        slurm.finish()


def test_array():
    with slurm_of() as slurm:
        slurm.submit("-N1", "--array=1-6")
        wait_for(lambda: len(slurm.running()) == 4, "four tasks of the array to run")
        jobs = slurm.running()
        leases = [slurm.wait_running(job, 1) for job in jobs]
        check_equal(len({lease["pkey"] for lease in leases}), 4, "different P_Keys")
        for job in jobs:
            slurm.go(job)
        wait_for(lambda: len(set(slurm.running()) - set(jobs)) == 2, "the other tasks to run")
        for job in set(slurm.running()) - set(jobs):
            slurm.wait_running(job, 1)
        slurm.finish()


def test_heterogeneous():
    """One partition for all components."""
    with slurm_of() as slurm:
        job = slurm.submit("-N1", ":", "-N2", script=JOB.replace("srun", "srun --het-group=0,1"))
        wait_for(lambda: sum(len(slurm.environments(component)) for component in (job, job + 1)) == 3,
                 lambda: "three tasks; the output: %s; the log: %s" % (slurm.output(job), slurm.log()))
        check_equal(list(slurm.leases()), ["slurm:test:%d:0" % job], "leases")
        holders = slurm.holders(int(slurm.leases()["slurm:test:%d:0" % job]["pkey"], 16))
        check_equal(sorted(holders), slurm.hosts(job), "nodes with the P_Key")
        check_equal(len(holders), 3, "number of nodes with the P_Key")
        slurm.finish()


def test_task_without_key():
    """A step of a job whose P_Key cannot be found, and of one whose node does not hold it, does not run."""
    with slurm_of() as slurm:
        job = slurm.submit("-N1")
        slurm.wait_running(job, 1)
        slurm.run("scontrol", "update", "JobId=%d" % job, "AdminComment=pkeyd:%d:1:0x1000" % job).expect(0)
        r = slurm.run("srun", "--overlap", "--jobid=%d" % job, "echo", "it-runs")
        check(r.status != 0 and "it-runs" not in r.out and "the job has no P_Key" in r.out and "does not run on" in r.out, r)
        slurm.run("scontrol", "update", "JobId=%d" % job, "AdminComment=pkeyd:%d:0:0x1234" % job).expect(0)
        r = slurm.run("srun", "--overlap", "--jobid=%d" % job, "echo", "it-runs")
        check(r.status != 0 and "it-runs" not in r.out and "no port of this host is a member of 0x1234" in r.out, r)
        slurm.finish()


# --- pkeyd or slurmctld is down -------------------------------------------------------------------------------------------


def test_slurmctld_restarts():
    """While a job runs, and while a lease is being granted."""
    with slurm_of() as slurm:
        job = slurm.submit("-N2")
        slurm.wait_running(job, 2)
        slurm.stop_slurmctld()
        r = slurm.reconcile()
        check(r.status == 1 and "slurmctld does not answer; no lease was released" in r.err, r)
        slurm.start_slurmctld()
        slurm.wait_running(job, 2)
        slurm.reconcile().expect(0)
        slurm.wait_running(job, 2)
        free = [node for node in NODES if node not in slurm.hosts(job)]
        slurm.fabric.lose(free[0], 100)
        # without srun: after this, Slurm 22.05 lets steps of the job wait for ever, whatever PrologSlurmctld does
        other = slurm.submit("-N2", script=JOB.replace("srun ", ""))
        wait_for(lambda: slurm.leases().get("slurm:test:%d:0" % other, {}).get("state") == "granting", "the lease to be granted")
        slurm.stop_slurmctld()
        slurm.fabric.lose(free[0], 0)
        slurm.start_slurmctld()
        slurm.wait_running(other, 1)
        slurm.finish()


def test_pkeyd_is_down():
    """No job starts without its partition; the lease of a job that ends is released later."""
    with slurm_of() as slurm:
        first = slurm.submit("-N2")
        slurm.wait_running(first, 2)
        slurm.stop_pkeyd()
        job = slurm.submit("-N1")
        wait_for(lambda: "job %d does not start" % job in slurm.log(), "the job to be refused")
        wait_for(lambda: slurm.state(job) == "PENDING", "the job to wait again")
        check("pkeyd is not running" in slurm.log(), slurm.log())
        r = slurm.run("srun", "-N1", "-t1", "echo", "it-runs")
        check(r.status != 0 and "it-runs" not in r.out, r)
        check_equal(slurm.environments(job), {}, "tasks of a job without a lease")
        slurm.go(first)
        wait_for(lambda: "job %d has ended, and its lease cannot be released now" % first in slurm.log(), "the first job to end")
        check_equal(slurm.reconcile().status, 1, "exit status of the reconciler without pkeyd")
        slurm.start_pkeyd()
        check("slurm:test:%d:0" % first in slurm.leases(), slurm.leases())
        run = slurm.wait_run(job, 1)
        check(run > 0, "the job was not requeued")
        wait_for(lambda: slurm.state(first) == "", "slurmctld to forget the first job")
        r = slurm.reconcile().expect(0)
        check_equal(r.out, "release slurm:test:%d:0: done\n" % first, "output of the reconciler")
        slurm.wait_running(job, 1, run)
        slurm.finish()


def test_port_that_does_not_answer():
    """The job is refused, and the P_Key is on no node that can be read."""
    with slurm_of() as slurm:
        slurm.configure("timeout=5s\n")
        slurm.fabric.lose("node0004", 100)
        job = slurm.submit("-N2", "-w", "node[0003-0004]")
        wait_for(lambda: "job %d does not start" % job in slurm.log(), "the job to be refused")
        check("1 of 2 ports could not be confirmed" in slurm.log(), slurm.log())
        check_equal(slurm.environments(job), {}, "tasks of a job without a lease")
        slurm.fabric.lose("node0004", 0)
        slurm.pkeyctl("reload").expect(0)  # the next sweep is in an hour
        check(slurm.wait_run(job, 2) > 0, "the job was not requeued")
        slurm.finish()


def test_reconcile():
    with slurm_of() as slurm:
        job = slurm.submit("-N1", "-t", "5", "-w", "node0001")
        ends = slurm.wait_running(job, 1)["ends"]
        others = {"slurm:test:999:0": "node0002", "slurm:test:%d:7" % job: "node0003", "slurm:other:999:0": "node0004",
                  "mine": "node0004"}
        for id_, node in others.items():
            slurm.pkeyctl("lease", "create", "--pool", "jobs", "--id", id_, "--members", node).expect(0)
        slurm.run("scontrol", "update", "JobId=%d" % job, "TimeLimit=50").expect(0)
        r = slurm.reconcile().expect(0)
        check_equal(sorted(r.out.splitlines()), sorted(["release slurm:test:999:0: done", "release slurm:test:%d:7: done" % job,
                                                         "renew slurm:test:%d:0: done" % job]), "output of the reconciler")
        check_equal(sorted(slurm.leases()), sorted(["mine", "slurm:other:999:0", "slurm:test:%d:0" % job]), "leases")
        check(slurm.leases()["slurm:test:%d:0" % job]["ends"] > ends, "the lease was not renewed")
        check_equal(slurm.reconcile().expect(0).out, "", "output of the reconciler when there is nothing to do")
        slurm.wait_running(job, 1)
        for id_ in ("mine", "slurm:other:999:0"):
            slurm.pkeyctl("lease", "release", id_).expect(0)
        slurm.finish()


if __name__ == "__main__":
    main()
