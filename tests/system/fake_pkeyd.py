# SPDX-License-Identifier: GPL-2.0-or-later
"""In place of pkeyd on a private bus: it answers calls as the test says, or not at all. The D-Bus protocol by hand, without pkeyd's
libraries."""

import queue
import socket
import struct
import threading

from harness import PATIENCE, check

CALL, RETURN, ERROR = 1, 2, 3
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE = range(1, 9)
NUMBERS = {"y": "B", "q": "H", "b": "I", "u": "I", "t": "Q"}
TYPES = {PATH: "o", INTERFACE: "s", MEMBER: "s", ERROR_NAME: "s", REPLY_SERIAL: "u", DESTINATION: "s", SENDER: "s", SIGNATURE: "g"}


def align(data, n):
    return data + bytes(-len(data) % n)


def put(data, kind, value):
    """Appends a value. kind: s, o, g, a number, or a and the alignment of an element, as a8; the value then is the bytes of the elements."""
    if kind == "g":
        return data + struct.pack("<B", len(value)) + value.encode() + b"\0"
    if kind in NUMBERS:
        return align(data, struct.calcsize("<" + NUMBERS[kind])) + struct.pack("<" + NUMBERS[kind], value)
    data = align(data, 4)
    if kind[0] == "a":
        return align(data + struct.pack("<I", len(value)), int(kind[1:])) + value
    return data + struct.pack("<I", len(value.encode())) + value.encode() + b"\0"


def body_of(*values):
    data = b""
    for kind, value in values:
        data = put(data, kind, value)
    return data


def listed(*leases):
    """The answer to ListWhole. leases: {key: (kind, value)} of each."""
    elements = bytes(4)  # what is before the elements counts for their alignment
    for lease in leases:
        entries = b""
        for key, (kind, value) in lease.items():
            entries = put(put(put(align(entries, 8), "s", key), "g", kind), kind, value)
        elements = put(elements, "a8", entries)
    return "aa{sv}", body_of(("a4", elements[4:]))


NO_LEASES = listed()
NO_PORTS = "a(ttyqsyy)", body_of(("a8", b""))


def edited(outcome="edited", text="it is stored", findings=()):
    """The answer to EditWith and ReleaseWith. findings: (severity, code, text) of each."""
    elements = b""
    for severity, code, sentence in findings:
        elements = align(elements, 8)
        for kind, value in zip("suusssss", ("", 0, 0, severity, code, sentence, "", "")):
            elements = put(elements, kind, value)
    return "ssa{sv}a(suusssss)", body_of(("s", outcome), ("s", text), ("a8", b""), ("a8", elements))


def first_texts(signature, body, order):
    """The texts at the beginning of a body."""
    texts, at = [], 0
    for _ in range(len(signature) - len(signature.lstrip("s"))):
        at += -at % 4
        size = struct.unpack_from(order + "I", body, at)[0]
        texts.append(body[at + 4:at + 4 + size].decode())
        at += 4 + size + 1
    return texts


class Call:
    """texts: its first arguments, as the pool and the ID of EditWith."""

    def __init__(self, pkeyd, fields, serial, texts):
        self.pkeyd, self.serial, self.texts = pkeyd, serial, texts
        self.member, self.sender = fields.get(MEMBER), fields.get(SENDER)

    def answer(self, signature, body):
        self.pkeyd.send(RETURN, {REPLY_SERIAL: self.serial, DESTINATION: self.sender, SIGNATURE: signature}, body)

    def refuse(self, name, text):
        self.pkeyd.send(ERROR, {REPLY_SERIAL: self.serial, DESTINATION: self.sender, ERROR_NAME: name, SIGNATURE: "s"},
                        body_of(("s", text)))


class FakePkeyd:
    """With the name of pkeyd on the bus. ListWhole and Ports are answered: there is nothing; so is DefaultMembership. Other calls are in
    `calls`, in their order; `on` has other answers by the name of the method, or None: then its calls are in `calls`, too."""

    def __init__(self, bus):
        self.calls, self.serial, self.lock = queue.Queue(), 0, threading.Lock()
        self.on = {"ListWhole": lambda call: call.answer(*NO_LEASES), "Ports": lambda call: call.answer(*NO_PORTS),
                   "DefaultMembership": lambda call: call.answer("s", body_of(("s", "limited")))}
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(bus.socket)
        self.socket.sendall(b"\0AUTH EXTERNAL 30\r\n")  # root
        check(self.socket.recv(4096).startswith(b"OK "), "the bus does not accept root")
        self.socket.sendall(b"BEGIN\r\n")
        self.ask("Hello", "", b"")
        self.ask("RequestName", "su", body_of(("s", "org.pkeyd1"), ("u", 0)))
        bus.wait_name()
        self.socket.settimeout(None)
        threading.Thread(target=self.serve, daemon=True).start()

    def send(self, kind, fields, body):
        array = b""
        for code, value in fields.items():
            array = put(put(align(array, 8) + struct.pack("<B", code), "g", TYPES[code]), TYPES[code], value)
        with self.lock:
            self.serial += 1
            head = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), self.serial, len(array))
            self.socket.sendall(align(head + array, 8) + body)

    def ask(self, member, signature, body):
        bus = "org.freedesktop.DBus"
        fields = {PATH: "/org/freedesktop/DBus", INTERFACE: bus, MEMBER: member, DESTINATION: bus}
        self.send(CALL, {**fields, SIGNATURE: signature} if signature else fields, body)

    def receive(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def next_message(self):
        """(type, fields, serial, first texts)"""
        head = self.receive(16)
        order = "<" if head[:1] == b"l" else ">"
        n_body, serial, n = struct.unpack(order + "III", head[4:])
        array, fields, at = self.receive(n + -n % 8)[:n], {}, 0
        body = self.receive(n_body)
        while at < n:
            at += -at % 8
            code, kind = array[at], array[at + 2:at + 3].decode()
            at += 4
            if kind == "u":
                fields[code], at = struct.unpack_from(order + "I", array, at)[0], at + 4
                continue
            size = array[at] if kind == "g" else struct.unpack_from(order + "I", array, at)[0]
            at += 1 if kind == "g" else 4
            fields[code], at = array[at:at + size].decode(), at + size + 1
        return head[1], fields, serial, first_texts(fields.get(SIGNATURE, ""), body, order)

    def serve(self):
        try:
            while True:
                kind, fields, serial, texts = self.next_message()
                if kind != CALL:
                    continue
                call = Call(self, fields, serial, texts)
                answer = self.on.get(call.member)
                if answer:
                    answer(call)
                else:
                    self.calls.put(call)
        except (OSError, EOFError):
            pass

    def next_call(self, member):
        call = self.calls.get(timeout=PATIENCE)
        check(call.member == member, "wanted the call", member, "but:", call.member)
        return call

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
