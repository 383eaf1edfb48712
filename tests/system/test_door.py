# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd-rest without a fabric: logins, TLS, limits, hostile clients, reload; and what it makes of pkeyd's answers, which the test
gives in place of pkeyd."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from door import KUBE, PASSWORD, SLURM, Door, basic, descriptors, free_port, hash_of, loopback
from fake_pkeyd import NO_LEASES, FakePkeyd, body_of, edited, listed
from harness import BUILD, Fabric, PATIENCE, Skip, check, check_equal, main, program, read_file, wait_for
from private_bus import Bus, require

VERSION = "/ufmRest/app/ufm_version"


def require_clients():
    for tool in ("curl", "openssl", "prlimit"):
        if not shutil.which(tool):
            raise Skip("%s is not installed (scripts/install-deps --test)" % tool)


class Place(Fabric):
    """A directory and programs, without a fabric."""

    def __init__(self):
        super().__init__(None, opensm=False)
        require_clients()
        program("pkeyd-rest")

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="pkeyd-test-")
        os.mkdir(self.path("san"))
        return self

    def environment(self, *arguments, **more):
        env = super().environment(*arguments, **more)
        del env["LD_PRELOAD"]
        return env


def test_command_line():
    with Place() as place:
        door = [program("pkeyd-rest")]
        check("--config FILE" in place.run([*door, "--help"]).expect(0).out, "help")
        check("pkeyd-rest 0" in place.run([*door, "--version"]).expect(0).out, "version")
        check("unknown option '--cheque'" in place.run([*door, "--cheque"]).expect(1).err, "unknown option")
        check("unexpected argument 'x'" in place.run([*door, "x"]).expect(1).err, "argument")
        good = place.write("good.yaml", "clients: {a: {password: %s, pool: p}}\n" % hash_of("x"))
        os.chmod(good, 0o640)
        check_equal(place.run([*door, "--check", "--config", good]).expect(0).out, good + ": no errors\n", "--check")
        bad = place.write("bad.yaml", "clients: {a: {password: hush, pool: p}}\nlimit: {}\n")
        os.chmod(bad, 0o640)
        r = place.run([*door, "--check", "--config", bad]).expect(1)
        check("clients.a.password" in r.err and "key is unknown" in r.err and "2 errors" in r.out and "hush" not in r.err, r)
        check("clients.a.password" in place.run([*door, "--config", bad]).expect(1).err, "start with a bad file")
        place.write("bad.yaml", "tls: {certificate: /no/crt, key: /no/key, client_ca: /no/ca}\nclients: {}\n")
        os.chmod(bad, 0o640)
        r = place.run([*door, "--check", "--config", bad]).expect(1)
        check(all("/no/%s: error: cannot be read" % name in r.err for name in ("crt", "key", "ca")), r)
        os.chmod(good, 0o644)
        r = place.run([*door, "--check", "--config", good]).expect(1)
        check("it can be read by others" in r.err and "chown root:pkeyd-rest, chmod 640" in r.err, r)
        os.chmod(good, 0o640)
        check("there is no address to listen on" in place.run([*door, "--config", good]).expect(1).err, "no address")
        loopback()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            place.write("good.yaml", "listen: 127.0.0.1:%d\nclients: {}\n" % s.getsockname()[1])
            os.chmod(good, 0o640)
            r = place.run([*door, "--config", good]).expect(1)
            check("cannot listen on 127.0.0.1:%d: Address already in use" % s.getsockname()[1] in r.err, r)


def test_logins():
    with Place() as place:
        door = Door(place)
        check_equal(door.get(VERSION), {"ufm_release_version": "6.19.0"}, "version")
        check_equal(door.get("/ufmRestV3/app/ufm_version", headers=SLURM), {"ufm_release_version": "6.19.0"}, "version by a token")
        r = door.request("GET", VERSION, headers={}).expect(401, "authentication is required")
        check_equal((r.headers["WWW-Authenticate"], r.headers["Cache-Control"]), ('Basic realm="pkeyd", charset="UTF-8"', "no-store"), "headers")
        begun = time.monotonic()
        for headers in (basic("kube", "wr0ng"), basic("nobody", PASSWORD), basic("slurm", "x")):
            door.request("GET", VERSION, headers=headers).expect(401, "is wrong")
        check(time.monotonic() - begun >= 1.75, "answers to wrong logins after", time.monotonic() - begun)  # 0.25 + 0.5 + 1
        for headers in ({"Authorization": "Bearer x"}, {"Authorization": "Basic !"}, SLURM):
            door.request("GET", VERSION, headers=headers).expect(401, "authentication is required")
        door.request("GET", "/ufmRestV3/app/ufm_version").expect(401)
        door.request("GET", "/ufmRestKrb/app/ufm_version").expect(401, "Kerberos")
        door.request("GET", "/other").expect(404)
        door.request("POST", "/other", "x" * 100000, headers={}).expect(404)
        door.request("GET", "/ufmRest/other").expect(404)
        door.request("GET", "/ufmRest/other", headers={}).expect(401)
        door.request("POST", "/ufmRest/resources/pkeys", "x" * 100000, headers=basic("kube", "wr0ng")).expect(401)
        text = door.text()
        check("a login from 127.0.0.1 failed" in text and "1 failed so far" in text and "4 failed so far" in text, text)
        check("3 failed" not in text, "every failure is logged:", text)
        for secret in (PASSWORD, "wr0ng", "nobody", KUBE["Authorization"].split()[1]):
            check(secret not in text, "a secret is in the log:", text)
        door.stop()


def test_no_pkeyd():
    with Place() as place:
        door = Door(place)
        for method, path, body in (("GET", "resources/pkeys", None), ("GET", "resources/ports", None),
                                   ("POST", "resources/pkeys", {"pkey": "0x2000", "guids": ["0x1"]}),
                                   ("POST", "resources/pkeys/hosts", {"pkey": "0x2000", "hosts_names": "a"}),
                                   ("DELETE", "resources/pkeys/0x2000", None)):
            r = door.request(method, "/ufmRest/" + path, body).expect(503, "pkeyd is not available")
            check_equal(r.headers["Retry-After"], "1", "Retry-After")
        text = door.text()
        check_equal(text.count("pkeyd is not available: the system bus"), 1, "entries about pkeyd:\n" + text)
        check("warning: client kube at 127.0.0.1: add P_Key 0x2000: unavailable" in text and "0x0000000000000001" in text, text)
        # what is wrong is refused all the same
        door.request("POST", "/ufmRest/resources/pkeys", {"pkey": "0x2000"}).expect(400, "guids is missing")
        door.request("POST", "/ufmRest/resources/pkeys", "{").expect(400, "not JSON")
        door.request("DELETE", "/ufmRest/resources/pkeys/0x7fff").expect(400, "default partition")
        r = door.request("PATCH", "/ufmRest/resources/pkeys").expect(405)
        check_equal(r.headers["Allow"], "GET, POST, PUT", "Allow")
        door.stop()


ABSENT, FOUND, NOT_KNOWN = "clients get 503 until it is", "pkeyd answers again", "whether the change is stored is not known"
PKEYS, V3_PKEYS = "/ufmRest/resources/pkeys", "/ufmRestV3/resources/pkeys"


def change(base):
    return {"pkey": "0x%x" % base, "guids": ["0x1"]}


def test_errors_of_pkeyd():
    """pkeyd that answers with an error is there. Whether a change is stored is not known only if it may be."""
    with Place() as place, ThreadPoolExecutor() as threads:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus), FakePkeyd(bus)
        pkeyd.on["Ports"] = lambda call: call.refuse("org.pkeyd1.Error.NotReady", "not yet")
        for _ in range(3):  # one of its answers is an error
            door.request("GET", PKEYS + "?port_info=true").expect(503, "pkeyd is not available: not yet")
            answer = door.request("POST", PKEYS + "/hosts", {"pkey": "0x2000", "hosts_names": "a"}).expect(503, "not yet")
            check(NOT_KNOWN not in str(answer), answer)

        def edit(end):
            """The answer to a change, when pkeyd has done this with the call."""
            answer = threads.submit(door.request, "POST", PKEYS, change(0x2000))
            end(pkeyd.next_call("EditWith"))
            return answer.result()

        for name, may_be_stored in (("org.pkeyd1.Error.TooManyCallers", False), ("org.pkeyd1.Error.Stopping", False),
                                    ("org.freedesktop.DBus.Error.AccessDenied", False), ("org.pkeyd1.Error.NoAnswer", True),
                                    ("org.freedesktop.DBus.Error.NoMemory", True)):
            answer = edit(lambda call, name=name: call.refuse(name, "a reason")).expect(503, "pkeyd is not available: a reason")
            check_equal(NOT_KNOWN in str(answer), may_be_stored, "%s: %s" % (name, answer))
        edit(lambda call: call.refuse("org.freedesktop.DBus.Error.InvalidArgs", "a reason")).expect(400, "a reason")
        answer = edit(lambda call: call.answer("s", body_of(("s", "edited")))).expect(503, "cannot parse pkeyd's answer")
        check(NOT_KNOWN in str(answer), answer)
        for findings, status in (((("warning", "lease.none", "a warning"), ("error", "lease.index0-taken", "an error"),
                                   ("error", "lease.refused", "another")), 409), ((("note", "lease.none", "a note"),), 503)):
            answer = edit(lambda call, findings=findings: call.answer(*edited("refused", "the answer", findings)))
            answer.expect(status, "an error" if status == 409 else "the answer")
        edit(lambda call: call.answer(*edited())).expect(200)
        check_equal([ABSENT in door.text(), FOUND in door.text()], [False, False], "logged:\n" + door.text())
        check(NOT_KNOWN in str(edit(lambda call: pkeyd.end())), "pkeyd ended with a change")
        check(ABSENT in door.text(), door.text())
        for _ in range(2):
            answer = door.request("POST", PKEYS, change(0x2000)).expect(503, "pkeyd is not available: it is not running, or is not on the system bus")
            check(NOT_KNOWN not in str(answer), answer)
        check_equal([door.text().count(ABSENT), FOUND in door.text()], [1, False], "logged:\n" + door.text())
        pkeyd = FakePkeyd(bus)
        edit(lambda call: call.answer(*edited())).expect(200)
        check_equal([door.text().count(ABSENT), door.text().count(FOUND)], [1, 1], "logged:\n" + door.text())
        door.stop()


def test_pkeyctl_without_an_answer():
    """It says that nothing was sent only if pkeyd does not have the request any more."""
    with Place() as place:
        require()
        bus = Bus(place)
        pkeyd = FakePkeyd(bus)

        def create():
            return subprocess.run([program("pkeyctl"), "lease", "create", "--pool", "jobs", "--id", "a", "--members", "node0001"], check=False,
                                  env=dict(os.environ, **bus.environment()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)

        for name, is_known in (("NoAnswer", False), ("TooManyCallers", True)):
            pkeyd.on["Create"] = lambda call, name=name: call.refuse("org.pkeyd1.Error." + name, "a reason")
            result = create()
            check_equal(result.returncode, 1, "exit status")
            check_equal(["whether the request is carried out is not known" in result.stderr, "nothing was sent" in result.stderr],
                        [not is_known, is_known], "%s: %s" % (name, result.stderr))
        pkeyd.on["Create"] = lambda call: pkeyd.end()
        err = create().stderr
        check("nothing was sent" not in err, "pkeyd ended with the request:", err)
        err = create().stderr
        check("nothing was sent" in err, "no pkeyd:", err)


def test_leases_of_pkeyd():
    """Unknown keys, and keys of an unexpected type, are skipped. A list with a lease that lacks something, or with a number that is too
    large, is refused."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus), FakePkeyd(bus)
        one = {"Id": ("s", "rest:0x2000"), "State": ("s", "active"), "PKey": ("q", 0x2000), "Open": ("b", 1), "Keep": ("b", 1)}
        other = {**one, "Id": ("s", "rest:0x2001"), "PKey": ("q", 0x2001), "Mtu": ("y", 4), "RateLimit": ("q", 25)}

        def answer(*leases):
            pkeyd.on["ListWhole"] = lambda call: call.answer(*listed(*leases))
            return door.request("GET", PKEYS + "?qos_conf=true")

        expected = answer(one, other).expect(200).json()
        check("0x2000" in expected and "0x2001" in expected, expected)
        odd = {"New": ("s", "x"), "Index0": ("s", "0x1"), "Members": ("t", 1), "Mtu": ("s", "2")}
        check_equal(answer({**odd, **one}, other).expect(200).json(), expected, "with odd keys")
        for bad in ({"State": ("u", 1)}, {"Id": ("t", 1)}, {"PKey": ("q", 0)}, {"PKey": ("u", 0x12000)}, {"Mtu": ("q", 0x104)},
                    {"ServiceLevel": ("u", 0x100)}, {"RateLimit": ("t", 1 << 32)}):
            answer(one, {**other, **bad}).expect(503, "cannot parse pkeyd's answer")
        door.stop()


def send(door, method, path, body=None, headers=KUBE):
    """A connection with a request that the door has read. The request may have no answer yet."""
    c = door.connect()
    c.request(method, path, json.dumps(body) if body else None, headers)
    door.get(VERSION)
    return c


def connect_from(address, door):
    return socket.create_connection(("127.0.0.1", door.port), PATIENCE, (address, 0))


def answer_of(c):
    with contextlib.closing(c):
        r = c.getresponse()
        return r.status, r.read().decode()


def status_of(c):
    return answer_of(c)[0]


def test_order_of_changes():
    """Of each pool one change is with pkeyd at a time, in the order of their requests; the next one sees what it has done. Reads, and
    changes of another pool, do not wait."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 30m}\n"), FakePkeyd(bus)
        first = send(door, "POST", PKEYS, change(0x2000))
        edit = pkeyd.next_call("EditWith")
        pkeyd.on["ListWhole"] = None
        bases = (0x2009, 0x2001, 0x2005, 0x2003)
        others = [send(door, "POST", PKEYS, change(base)) for base in bases]
        read = send(door, "GET", V3_PKEYS, headers=SLURM)
        call = pkeyd.next_call("ListWhole")
        check_equal(call.texts, ["jobs"], "the pool of the read, before those of the changes")
        call.answer(*NO_LEASES)
        check_equal(status_of(read), 200, "a read while a change waits for pkeyd")
        of_slurm, edits = [send(door, "POST", V3_PKEYS, change(base), headers=SLURM) for base in (0x1001, 0x1000)], []
        for base in 0x1001, 0x1000:
            for e in edits:
                e.answer(*edited())
            call = pkeyd.next_call("ListWhole")
            check_equal(call.texts, ["jobs"], "the pool of the next change")
            check(pkeyd.calls.empty(), "two changes of a pool at a time")
            call.answer(*NO_LEASES)
            edits.append(pkeyd.next_call("EditWith"))
            check_equal(edits[-1].texts[:2], ["jobs", "rest:0x%04x" % base], "the next change of this pool")
        check_equal(status_of(of_slurm[0]), 200, "a change while one of another pool waits for pkeyd")
        edit.answer(*edited())
        check_equal(status_of(first), 200, "the first change")
        for c, base in zip(others, bases):
            pkeyd.next_call("ListWhole").answer(*NO_LEASES)
            edit = pkeyd.next_call("EditWith")
            check_equal(edit.texts[1], "rest:0x%04x" % base, "the next change")
            edit.answer(*edited())
            check_equal(status_of(c), 200, "the next change")
        edits[-1].answer(*edited())
        check_equal(status_of(of_slurm[1]), 200, "a change of another pool")
        reads = [send(door, "GET", PKEYS) for _ in range(9)]  # 8 at a time
        calls = [pkeyd.next_call("ListWhole") for _ in range(8)]
        check(pkeyd.calls.empty(), "another read")
        for call in calls:
            call.answer(*NO_LEASES)
        pkeyd.next_call("ListWhole").answer(*NO_LEASES)
        check_equal([status_of(c) for c in reads], [200] * 9, "reads")
        door.stop()


def test_changes_and_reload():
    """Requests from before a reload keep their client and its pool."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 30m}\n"), FakePkeyd(bus)
        first = send(door, "POST", PKEYS, change(0x2000))
        edit = pkeyd.next_call("EditWith")
        second = send(door, "POST", PKEYS, change(0x2001))
        place.write("rest.yaml", read_file(door.file).replace("kube:", "cube:").replace("tenants", "others"))
        os.chmod(door.file, 0o640)
        door.reload("was reloaded")
        door.request("GET", VERSION).expect(401)
        pkeyd.on["ListWhole"] = None
        edit.answer(*edited())
        check_equal(status_of(first), 200, "the change that was sent")
        call = pkeyd.next_call("ListWhole")
        check_equal(call.texts, ["tenants"], "the pool of the change that waited")
        call.answer(*NO_LEASES)
        pkeyd.next_call("EditWith").answer(*edited())
        check_equal(status_of(second), 200, "the change that waited")
        check_equal(door.text().count("client kube at 127.0.0.1: add"), 2, "logged:\n" + door.text())
        door.stop()


def test_late_answer():
    """A client gets 503 in time. Its change is logged when pkeyd answers, and one that was not sent yet is dropped."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 3s}\n"), FakePkeyd(bus)
        sent = send(door, "POST", PKEYS, change(0x2000))
        edit = pkeyd.next_call("EditWith")
        waits = send(door, "POST", PKEYS, change(0x2001))
        answer = pkeyd.on.pop("ListWhole")
        reads = send(door, "POST", V3_PKEYS, change(0x1000), headers=SLURM)
        for c, may_be_stored in ((sent, True), (waits, False), (reads, False)):
            status, text = answer_of(c)
            check_equal((status, NOT_KNOWN in text), (503, may_be_stored), "pkeyd does not answer: " + text)
        check("P_Key 0x2000" not in door.text(), door.text())
        pkeyd.on["ListWhole"] = answer
        pkeyd.next_call("ListWhole").answer(*NO_LEASES)
        edit.answer(*edited())
        door.wait_text("client kube at 127.0.0.1: add P_Key 0x2000: stored")
        door.configure("limits: {time: 30m}\n")
        door.reload("was reloaded")
        last = send(door, "POST", PKEYS, change(0x2002))
        edit = pkeyd.next_call("EditWith")
        check_equal(edit.texts[1], "rest:0x2002", "the next change")
        edit.answer(*edited())
        check_equal(status_of(last), 200, "the last change")
        check("P_Key 0x2001" not in door.text(), door.text())
        door.stop()


def test_many_changes():
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 30m, connections: 400, requests: 1000}\n"), FakePkeyd(bus)
        waiting = [send(door, "POST", PKEYS, change(0x2000))]
        pkeyd.next_call("EditWith")
        waiting += [send(door, "POST", PKEYS, change(0x2000)) for _ in range(64)]
        door.request("POST", PKEYS, change(0x2000)).expect(503, "too many changes of this pool are already waiting")
        door.get(V3_PKEYS, headers=SLURM)
        of_slurm = send(door, "POST", V3_PKEYS, change(0x1000), headers=SLURM)
        pkeyd.next_call("EditWith").answer(*edited())
        check_equal(status_of(of_slurm), 200, "a change of another pool")
        pkeyd.end()
        check_equal([status_of(c) for c in waiting], [503] * 65, "without pkeyd")
        door.stop()


def test_changes_that_nobody_awaits():
    """They do not count."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 3s, connections: 400, requests: 1000}\n"), FakePkeyd(bus)
        waiting = [send(door, "POST", PKEYS, change(0x2000))]
        edit = pkeyd.next_call("EditWith")
        waiting += [send(door, "POST", PKEYS, change(0x2001)) for _ in range(64)]
        check_equal([status_of(c) for c in waiting], [503] * 65, "pkeyd does not answer")
        door.configure("limits: {time: 30m}\n")
        door.reload("was reloaded")
        others = [send(door, "POST", PKEYS, change(base)) for base in (0x2002, 0x2003)]
        edit.answer(*edited())
        for c, base in zip(others, (0x2002, 0x2003)):
            edit = pkeyd.next_call("EditWith")
            check_equal(edit.texts[1], "rest:0x%04x" % base, "the next change")
            edit.answer(*edited())
            check_equal(status_of(c), 200, "the next change")
        door.stop()


def test_full():
    """A connection that waits for a request makes room for a new one; none that waits for its answer does."""
    with Place() as place:
        require()
        bus = Bus(place)
        door, pkeyd = Door(place, bus, more="limits: {time: 30m, connections: 4}\n"), FakePkeyd(bus)  # 2 of one address
        busy = door.connect()
        busy.request("POST", PKEYS, json.dumps(change(0x2000)), KUBE)
        edit = pkeyd.next_call("EditWith")
        idle = door.connect()
        door.request("GET", VERSION, connection=idle).expect(200)
        also_busy = door.connect()
        also_busy.request("POST", PKEYS, json.dumps(change(0x2001)), KUBE)
        check_equal(idle.sock.recv(1), b"", "an idle connection")
        with connect_from("127.0.0.2", door) as s:  # another address has a place; with its answer, the door has read what came before
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            check(s.recv(100).startswith(b"HTTP/1.1 404 "), "a connection of another address")
        with door.raw() as s:
            check_equal(s.recv(1), b"", "a connection without a place")
        edit.answer(*edited())
        check_equal(status_of(busy), 200, "a change")
        pkeyd.next_call("EditWith").answer(*edited())
        check_equal(status_of(also_busy), 200, "a change")
        door.stop()


def test_sizes():
    with Place() as place:
        door = Door(place, more="limits: {body: 2048, time: 5s}\n")
        pkeys = "/ufmRest/resources/pkeys"
        door.request("POST", pkeys, " " * 2048).expect(400, "not JSON")
        door.request("POST", pkeys, " " * 2049).expect(413, "longer than 2048 bytes")
        status, body = door.curl(pkeys, "-u", "kube:" + PASSWORD, "-H", "Transfer-Encoding: chunked", "-d", " " * 3000)
        check_equal(status, 413, body)
        with door.raw() as s:  # at once, before the body comes
            s.sendall(("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000000\r\n\r\n" % pkeys).encode())
            check(s.recv(100).startswith(b"HTTP/1.1 413 "), "answer to a long body")
        with door.raw() as s:  # chunks without end
            s.sendall(("POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" % pkeys).encode())
            try:
                for _ in range(3000):
                    s.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
                check(not s.recv(1), "the connection should end")
            except (BrokenPipeError, ConnectionResetError):
                pass
        door.request("GET", VERSION + "?" + "x" * 60000).expect(200)
        check(door.request("GET", VERSION + "?" + "x" * 70000).status in (400, 414), "a long path")
        check(door.request("GET", VERSION + "?" + "x" * 200000).status in (400, 414, 431), "a longer path")
        check(door.request("GET", VERSION, headers={**KUBE, "X": "x" * 200000}).status in (400, 413, 431), "a long header")
        for junk in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500,
                     b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\nab"):
            with door.raw() as s:
                s.sendall(junk)
                s.shutdown(socket.SHUT_WR)
                answer = s.recv(100)
                check(not answer.startswith(b"HTTP/1.1 200"), junk, answer)
        with door.raw() as s:
            s.sendall(b"GET / HTTP/1.1\r\n\r\n")
            check(s.recv(100).startswith(b"HTTP/1.1 400 "), "a request without a host")
        door.get(VERSION)
        door.stop()


def test_requests_in_a_second():
    with Place() as place:
        door = Door(place, more="limits: {requests: 3}\n")
        check_equal([door.request("GET", VERSION).status for _ in range(3)], [200] * 3, "statuses")

        def refused():
            answers = [door.request("GET", VERSION) for _ in range(17)]
            check({a.status for a in answers} <= {200, 429}, [a.status for a in answers])
            return next((a for a in answers if a.status == 429), None)

        check_equal(wait_for(refused, "a request to be refused").headers["Retry-After"], "1", "Retry-After")
        door.get("/ufmRestV3/app/ufm_version", headers=SLURM)  # another client
        door.stop()


def test_many_wrong_logins():
    """The number of hashes in a second is limited, and so is the number of answers that wait. A client that was logged in is served."""
    with Place() as place:
        door = Door(place)
        door.get(VERSION)
        sockets = []
        for i in range(60):
            s = door.raw()
            header = basic("kube", "wrong%d" % i)["Authorization"]
            s.sendall(("GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\n\r\n" % (VERSION, header)).encode())
            sockets.append(s)
        door.get(VERSION)
        answers = [s.recv(12) if not s.settimeout(PATIENCE) else None for s in sockets[-20:]]
        check(b"HTTP/1.1 200" not in answers, answers)
        check(b"HTTP/1.1 429" in answers, answers)
        door.get(VERSION)
        for s in sockets:
            s.close()
        door.stop()


def test_wrong_logins_of_another():
    """An address with failed logins does not keep the others from logging in."""
    with Place() as place:
        door = Door(place)
        sockets = []
        for i in range(60):
            s = connect_from("127.0.0.2", door)
            s.sendall(("GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\n\r\n" % (VERSION, basic("kube", "wrong%d" % i)["Authorization"])).encode())
            sockets.append(s)
        for n in range(1, 9):  # with another number of blanks it is another credential, which has to be checked
            door.get(VERSION, headers={"Authorization": KUBE["Authorization"].replace(" ", " " * n)})
        for s in sockets:
            s.close()
        door.process.kill()  # SIGTERM would wait for the delayed answers


def test_delayed_answers():
    """No more than 16 wait at a time; in all there can be more."""
    with Place() as place:
        door = Door(place)
        for batch in range(2):
            sockets = []
            for i in range(9):
                name = "%d.%d" % (batch, i + 1)
                s = connect_from("127.0." + name, door)
                s.sendall(("GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\n\r\n" % (VERSION, basic(name, "wrong")["Authorization"])).encode())
                sockets.append(s)
            for s in sockets:
                with s:
                    answer = s.recv(100)
                    check(answer.startswith(b"HTTP/1.1 401 "), "batch", batch, answer)
        door.stop()


def test_slow_clients():
    """With few descriptors: connections that send nothing, or a little at a time, end in time and do not keep others out."""
    with Place() as place:
        door = Door(place, files=64, more="limits: {time: 5s, connections: 1000}\n")
        check("with a limit of 64 open files there can be" in door.text(), door.text())
        slow = []
        for i in range(200):
            s = door.raw()
            s.sendall((b"", b"G", b"GET / HTTP/1.1\r\nX: ", b"POST /ufmRest/resources/pkeys HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")[i % 4])
            slow.append(s)
            if i % 20 == 0:
                door.get(VERSION)
        check(descriptors(door.process) <= 64, "descriptors:", descriptors(door.process))
        door.get(VERSION)
        door.request("GET", VERSION, headers=basic("kube", "wr0ng")).expect(401)

        def ended(s):
            s.setblocking(False)
            try:
                s.send(b"x")
                return not s.recv(4096)
            except BlockingIOError:
                return False
            except OSError:
                return True
        for s in slow:  # a byte now and then does not help
            wait_for(lambda s=s: ended(s), "a slow connection to end")
            s.close()
        door.get(VERSION)
        wait_for(lambda: descriptors(door.process) < 24, lambda: "the descriptors to be closed: %d" % descriptors(door.process))
        door.stop()


def test_idle_connection():
    with Place() as place:
        door = Door(place, more="limits: {time: 3s}\n")
        c = door.connect()
        for _ in range(3):
            door.request("GET", VERSION, connection=c).expect(200)
        check_equal(c.sock.recv(1), b"", "an idle connection")
        door.stop()


def test_time_of_a_request():
    """The time that a client was idle does not count for its request."""
    with Place() as place:
        door = Door(place, more="limits: {time: 5s}\n")
        with door.raw() as s:
            time.sleep(1)
            begun = time.monotonic()
            s.sendall(("POST /ufmRest/resources/pkeys HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\nContent-Length: 100\r\n\r\n{" %
                       KUBE["Authorization"]).encode())
            while s.recv(4096):
                pass
            check(time.monotonic() - begun >= 5, "a request was cut off after", time.monotonic() - begun)
        door.stop()


def make_certificates(place):
    """A CA, and certificates of the server, of a client and of a client of another CA."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=place.dir, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for ca in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", ca + ".key", "-out",
                ca + ".crt", "-days", "2", "-subj", "/CN=" + ca)
    for name, ca, subject, usage in (("server", "ca", "/CN=localhost", "serverAuth"), ("nico", "ca", "/O=Example/CN=nico", "clientAuth"),
                                     ("forged", "other", "/O=Example/CN=nico", "clientAuth"), ("nobody", "ca", "/CN=nobody", "clientAuth"),
                                     ("misused", "ca", "/O=Example/CN=nico", "serverAuth")):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
        place.write(name + ".ext", "subjectAltName=DNS:localhost\nextendedKeyUsage=%s\n" % usage)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "2", "-extfile",
                name + ".ext", "-out", name + ".crt")


def test_tls():
    with Place() as place:
        make_certificates(place)
        tls = "tls: {certificate: %s, key: %s, client_ca: %s}\n" % tuple(place.path(x) for x in ("server.crt", "server.key", "ca.crt"))
        os.chmod(place.path("server.key"), 0o640)
        door = Door(place, tls=tls, clients="  nico: {certificate: 'CN=nico,O=Example', pool: tenants}\n")

        def status(*arguments, path=VERSION):
            return door.curl(path, "--cacert", place.path("ca.crt"), *arguments, scheme="https")[0]

        def certificate(name):
            return "--cert", place.path(name + ".crt"), "--key", place.path(name + ".key")

        check_equal(status("-u", "kube:" + PASSWORD), 200, "a password")
        check_equal(status(), 401, "nothing")
        check_equal(status(*certificate("nico")), 200, "a certificate")
        check_equal(status(*certificate("nico"), "-H", "Authorization;"), 200, "a certificate beside an empty header")
        check_equal(status(*certificate("nico"), path="/ufmRestV3/app/ufm_version"), 401, "a certificate for a token")
        check_equal(status(*certificate("nico"), "-u", "kube:wrong"), 401, "a wrong password beside a certificate")
        for name in ("forged", "nobody", "misused"):
            check_equal(status(*certificate(name)), 401, "the certificate " + name)
        check_equal(status("-u", "kube:" + PASSWORD, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"), 0, "TLS 1.1")
        check_equal(door.curl(VERSION, "-u", "kube:" + PASSWORD)[0], 0, "http")
        # another certificate: new connections get it
        place.write("server.crt", read_file(place.path("misused.crt")))
        place.write("server.key", read_file(place.path("misused.key")))
        os.chmod(place.path("server.key"), 0o640)
        door.reload("was reloaded")
        r = subprocess.run(["curl", "-sv", "--cacert", place.path("ca.crt"), "https://localhost:%d/" % door.port], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
        check("O=Example; CN=nico" in r.stderr, r.stderr)
        # files that do not belong together, or are not readable for good reasons
        for name, text, mode, words in (("server.key", read_file(place.path("nico.key")), 0o640, "GnuTLS cannot use it"),
                                        ("server.key", read_file(place.path("misused.key")), 0o644, "it can be read by others"),
                                        ("server.key", "", 0o640, "GnuTLS cannot use it"), ("ca.crt", "x", 0o644, "GnuTLS cannot use it")):
            before = read_file(place.path(name))
            place.write(name, text)
            os.chmod(place.path(name), mode)
            door.reload("was refused; the previous configuration stays in force")
            check(words in door.text(), door.text())
            place.write(name, before)
            os.chmod(place.path(name), 0o640)
        door.reload("was reloaded")
        door.stop()


def test_reload():
    with Place() as place:
        door = Door(place)
        c = door.connect()
        door.request("GET", VERSION, connection=c).expect(200)
        door.configure(clients="  new: {password: %s, pool: p}\n" % hash_of("y"), more="limits: {requests: 2}\n")
        door.request("GET", VERSION, headers=basic("new", "y")).expect(401)
        door.reload("was reloaded")
        check_equal(c.sock.recv(1), b"", "an idle connection from before")
        door.request("GET", VERSION, headers=basic("new", "y")).expect(200)
        good = read_file(door.file)
        for text, words in (("clients: {a: {password: hush, pool: p}}\n", "clients.a.password"), ("", "clients")):
            place.write("rest.yaml", text)
            os.chmod(door.file, 0o640)
            door.reload("was refused; the previous configuration stays in force")
            check(words in door.text() and "hush" not in door.text(), door.text())
            door.request("GET", VERSION, headers=basic("new", "y"))
        place.write("rest.yaml", good.replace("127.0.0.1:%d" % door.port, "127.0.0.1:%d" % free_port()).replace("kube:", "cube:"))
        os.chmod(door.file, 0o640)
        door.reload("restart pkeyd-rest to listen on other addresses")
        door.request("GET", VERSION).expect(401)  # kube is gone, though its password was right before
        door.request("GET", VERSION, headers=basic("cube", PASSWORD)).expect(200)
        for _ in range(10):
            door.reload("was reloaded")
        wait_for(lambda: descriptors(door.process) < 20, lambda: "the descriptors of former servers to be closed: %d" % descriptors(door.process))
        door.stop()


def begin_request(door):
    """The socket of a client whose request the door has begun to read; its body is missing."""
    s = door.raw()
    s.sendall(("POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n" %
               (PKEYS, KUBE["Authorization"])).encode())
    check(s.recv(4096).startswith(b"HTTP/1.1 100 "), "the door does not want the body")
    return s


def test_half_a_request():
    """A request whose body is on its way is answered after a reload, by its former configuration, and before the end."""
    with Place() as place:
        door = Door(place, more="limits: {time: 30m}\n")

        def finish(s):
            with s:
                s.sendall(b"{}")
                answer = b"".join(iter(lambda: s.recv(4096), b""))
            check(answer.startswith(b"HTTP/1.1 400 ") and b"Connection: close" in answer and b"the key pkey is missing" in answer, answer)

        before = begin_request(door)
        door.configure(clients="", more="limits: {body: 1024, time: 30m}\n")
        door.reload("was reloaded")
        after = begin_request(door)
        finish(before)
        idle = door.connect()
        door.request("GET", VERSION, connection=idle).expect(200)
        door.process.send_signal(signal.SIGTERM)
        check_equal(idle.sock.recv(1), b"", "an idle connection")
        try:
            door.raw().close()
            check(False, "it still accepts connections")
        except ConnectionRefusedError:
            pass
        finish(after)
        check_equal(door.process.wait(timeout=PATIENCE), 0, "exit status; it said:\n" + door.text())


def test_hardening():
    """The exposure of the unit, by systemd's own measure: at most 1.5 of 10."""
    program("pkeyd-rest")
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15",
                        os.path.join(BUILD, "systemd/pkeyd-rest.service")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check_equal(r.returncode, 0, r.stdout[-2000:])
    check("Overall exposure level" in r.stdout, r.stdout)


def test_addresses():
    """[::] takes IPv4, too, and then logs its addresses as such; with an IPv4 address beside it, each takes its own."""
    with Place() as place:
        loopback()
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            raise Skip("there is no IPv6: %s" % error)
        for listen, count in (("'[::]:{0}'", "1 address"), ("['[::]:{0}', '127.0.0.1:{0}']", "2 addresses")):
            door = Door(place, listen=listen)
            check("serving 2 clients on %s," % count in door.text(), door.text())
            door.get(VERSION)
            door.get(VERSION, connection=http.client.HTTPConnection("::1", door.port, timeout=PATIENCE))
            door.request("GET", VERSION, headers=basic("kube", "wr0ng")).expect(401)
            check("a login from 127.0.0.1 failed" in door.text(), door.text())
            door.stop()


def start_with_socket(place, s):
    """The process of a pkeyd-rest that systemd gave the socket."""
    conf = place.write("rest.yaml", "listen: 127.0.0.1:%d\nclients: {kube: {password: %s, pool: p}}\n" % (free_port(), hash_of(PASSWORD)))
    os.chmod(conf, 0o640)
    log = open(place.path("passed.err"), "w")
    pid = os.fork()
    if pid == 0:
        os.dup2(s.fileno(), 3)
        os.set_inheritable(3, True)
        os.dup2(log.fileno(), 2)
        env = place.environment()
        env.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), DBUS_SYSTEM_BUS_ADDRESS="unix:path=/nowhere")
        os.execve(program("pkeyd-rest"), ["pkeyd-rest", "--config", conf], env)
    log.close()
    return pid


def end(pid):
    os.kill(pid, signal.SIGTERM)
    check_equal(os.waitpid(pid, 0)[1], 0, "exit status")


def passed_socket():
    loopback()
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    return s


def test_sockets_of_systemd():
    """Passed sockets count, `listen` does not."""
    with Place() as place, passed_socket() as s:
        pid = start_with_socket(place, s)
        try:
            wait_for(lambda: "serving 1 client on 1 address" in read_file(place.path("passed.err")), "pkeyd-rest to listen")
            status = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", "kube:" + PASSWORD,
                                     "http://127.0.0.1:%d%s" % (s.getsockname()[1], VERSION)], stdout=subprocess.PIPE, text=True).stdout
            check_equal(status, "200", "status at the passed socket")
        finally:
            end(pid)
        conf = place.path("rest.yaml")
        r = place.run(["sh", "-c", "exec 3<%s; LISTEN_FDS=1 LISTEN_PID=$$ exec %s --config %s" % (conf, program("pkeyd-rest"), conf)]).expect(1)
        check("systemd passed descriptor 3, which is not a listening" in r.err, r)


def test_request_before_the_start():
    """A request for which systemd starts pkeyd-rest finds a connection to the bus that was tried."""
    with Place() as place:
        for i in range(10):
            with passed_socket() as s, socket.create_connection(s.getsockname()) as client:
                client.sendall(("GET /ufmRest/resources/pkeys HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\nConnection: close\r\n\r\n" %
                                basic("kube", PASSWORD)["Authorization"]).encode())
                pid = start_with_socket(place, s)
                try:
                    client.settimeout(PATIENCE)
                    answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
                finally:
                    end(pid)
            check(answer.startswith("HTTP/1.1 503 "), answer)
            text = read_file(place.path("passed.err"))
            check("pkeyd is not available: the system bus: " in text, "attempt %d:" % i, text)


if __name__ == "__main__":
    main()
