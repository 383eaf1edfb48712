# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that create, renew and release leases all the time, and remember what they were told."""

import collections
import contextlib
import json
import threading
import time

from etcd_proxy import boot_time

ASKED, GRANTED, ENDING = "asked", "granted", "ending"
LONG = 3600
WAIT = 4  # seconds for which pkeyd may try to grant a lease
CODE = 4  # of a finding: the index of its code


def plain(value):
    """A value of busctl --json without its types."""
    if isinstance(value, dict) and set(value) == {"type", "data"}:
        return plain(value["data"])
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def call(bus, member, *arguments, seconds=WAIT + 2):
    """The answer of a method of org.pkeyd1.Leases; None: there is none, so what was asked for may have been done."""
    r = bus.busctl("--json=short", "--timeout=%d" % seconds, "call", "org.pkeyd1", "/org/pkeyd1", "org.pkeyd1.Leases", member,
                   *arguments)
    return plain(json.loads(r.stdout)["data"]) if r.returncode == 0 else None


class Lease:
    def __init__(self, lease_id, hosts, membership, seconds):
        self.id, self.hosts, self.membership, self.seconds = lease_id, hosts, membership, seconds
        self.state = ASKED  # also: it was asked for, and there was no answer
        self.ends = 0       # CLOCK_REALTIME in seconds; if a renewal had no answer, the earlier one
        self.base, self.entries = None, {}  # {host: (index, P_Key)}
        self.may_come_back = False
        self.since = 0      # CLOCK_BOOTTIME in ns when it was asked for

    def granted(self, answer):
        self.state, self.base, self.ends = GRANTED, answer["PKey"], answer["Ends"] / 1e6
        self.entries = {m[3].split()[0]: (m[4], m[5]) for m in answer["Members"] if m[6] == "confirmed"}

    def holds(self):
        """pkeyd has granted it, and it has not ended since."""
        return self.state == GRANTED and time.time() < self.ends

    def __repr__(self):
        return "<lease %s of %s: %s 0x%04x>" % (self.id, ",".join(self.hosts), self.state, self.base or 0)


class Client(threading.Thread):
    """Leases P_Keys for its own hosts, up to two at a time, from any head node."""

    def __init__(self, load, number, hosts, rng):
        super().__init__(daemon=True)
        self.load, self.number, self.hosts, self.rng = load, number, hosts, rng
        self.leases, self.count = [], 0
        self.busy = threading.Lock()
        self.start()

    def run(self):
        while True:
            self.load.runs.wait()
            with self.busy:
                if self.load.runs.is_set():
                    try:
                        self._step()
                    except Exception as e:
                        self.load.wrong.append("client %d: %r" % (self.number, e))
                        raise
            time.sleep(self.rng.uniform(0, 0.2))

    def _ask(self, member, *arguments):
        """Asks one of the head nodes. [outcome, text, lease, findings]; None: no answer."""
        answer = call(self.load.buses[self.rng.choice(list(self.load.buses))], member, *arguments)
        outcome = "no answer" if answer is None else answer[3][0][CODE] if answer[0] == "refused" else answer[0]
        self.load.outcomes["%s: %s" % (member, outcome)] += 1
        return answer

    def _drop(self, lease):
        self.leases.remove(lease)
        if lease.may_come_back:
            self.load.may_come_back.add(lease.id)

    def _step(self):
        lease = self.rng.choice(self.leases) if self.leases else None
        if len(self.leases) < 2 and self.rng.random() < 0.6:
            self.count += 1
            lease = Lease("client%d-%d" % (self.number, self.count), self.rng.sample(self.hosts, self.rng.randint(1, len(self.hosts))),
                          self.rng.choice(("full", "limited")), self.rng.choice((LONG, LONG, 5)))
            self.leases.append(lease)
        if not lease:
            return
        if lease.state == GRANTED and not lease.holds():
            lease.state = ENDING
        if lease.state == ASKED:
            self._create(lease)
        elif lease.state == ENDING or self.rng.random() < 0.5:
            self._release(lease)
        else:
            self._renew(lease)

    def _create(self, lease):
        lease.since = boot_time()
        answer = self._ask("Create", "sssqsttb", "jobs", lease.id, ",".join(lease.hosts), "0", lease.membership, str(lease.seconds),
                           str(WAIT), "false")
        outcome = answer and answer[0]
        if outcome == "granted":
            lease.granted(answer[2])
            if sorted(lease.entries) != sorted(lease.hosts):
                self.load.wrong.append("%r was granted without some members: %r" % (lease, answer))
        elif outcome == "refused" and answer[3][0][CODE] == "lease.p-key":  # no P_Key is free
            self._drop(lease)
        elif outcome == "failed":
            lease.state = ENDING
        elif not outcome:
            lease.may_come_back = True

    def _renew(self, lease):
        answer = self._ask("Renew", "st", lease.id, str(LONG))
        if answer and answer[0] == "renewed":
            lease.ends = answer[2]["Ends"] / 1e6
        elif answer and answer[3][0][CODE] == "lease.none":
            if lease.holds():
                self.load.wrong.append("%r is unknown: %r" % (lease, answer))
            self._drop(lease)

    def _release(self, lease):
        """A writer may end after it has begun a release and before it answers; the other head node carries the request out once more, and
        may have ended the lease before: then there is none."""
        lease.state = ENDING
        answer = self._ask("Release", "s", lease.id)
        if answer and (answer[0] == "released" or (answer[0] == "refused" and answer[3][0][CODE] == "lease.none")):
            self._drop(lease)


class Load:
    """hosts: of each client."""

    def __init__(self, buses, hosts, rng):
        self.buses, self.wrong, self.outcomes = buses, [], collections.Counter()
        self.may_come_back = set()  # leases of which a request to create them had no answer, and is carried out late
        self.runs = threading.Event()
        self.clients = [Client(self, i, names, type(rng)(rng.random())) for i, names in enumerate(hosts)]

    def leases(self):
        return [lease for client in self.clients for lease in client.leases]

    @contextlib.contextmanager
    def paused(self):
        """Meanwhile no request is under way."""
        was_running = self.runs.is_set()
        self.runs.clear()
        with contextlib.ExitStack() as stack:
            for client in self.clients:
                stack.enter_context(client.busy)
            yield
        if was_running:
            self.runs.set()
