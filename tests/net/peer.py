# SPDX-License-Identifier: GPL-2.0-only
"""The driver's protocol as a stranger speaks it: a client and a server that can be made to misbehave."""
import contextlib
import ctypes
import json
import os
import socket
import struct
import threading

CLONE_NEWNET = 0x40000000
VERSION = {"protocol": 1, "version": "test"}
PLAN = {"proto": "tcp", "family": "any", "bytes": 64, "iterations": 1, "duration_ns": 0,
        "warmup_trips": 0, "warmup_ns": 0, "timeout_ns": 10 ** 9, "server_delay_ns": 0,
        "unconnected": False, "verify": False, "client_cpu": -1, "server_cpu": -1}

libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def namespace(netns):
    """This thread inside a namespace, and back."""
    with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{netns}") as there:
        assert libc.setns(there.fileno(), CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert libc.setns(own.fileno(), CLONE_NEWNET) == 0


def frame(body):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return b"LAYO" + struct.pack(">I", len(body)) + body


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_frame(sock):
    magic, size = struct.unpack(">4sI", read_exactly(sock, 8))
    assert magic == b"LAYO"
    return json.loads(read_exactly(sock, size))


def connect(netns, addr, port=7117):
    with namespace(netns):
        sock = socket.create_connection((addr, port), timeout=10)
    return sock


def hello(sock, **changes):
    """Says hello with the default plan and these changes; the server's answer."""
    sock.sendall(frame({"type": "hello", **VERSION, "plan": {**PLAN, **changes}}))
    return read_frame(sock)


class FakeServer(threading.Thread):
    """Opens one UDP session properly, then leaves every message to answer(seq, payload, send)."""

    def __init__(self, netns, addr, answer=None, version=None):
        super().__init__(daemon=True)
        self.version = {**VERSION, **(version or {})}
        self.answer = answer
        with namespace(netns):
            self.listener = socket.create_server((addr, 7117))
            self.data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.data.bind((addr, 0))
        self.listener.settimeout(10)
        self.start()

    def run(self):
        control, (peer, _) = self.listener.accept()
        control.settimeout(10)
        read_frame(control)
        control.sendall(frame({"type": "ready", **self.version, "session": os.urandom(8).hex(),
                               "udp_port": self.data.getsockname()[1]}))
        with contextlib.suppress(EOFError, ConnectionError):
            self.data.connect((peer, read_frame(control)["port"]))
            self.data.settimeout(0.05)
            control.sendall(frame({"type": "go", **self.version}))
            control.setblocking(False)
            while self.serve_one(control):
                pass
        for sock in (control, self.listener, self.data):
            sock.close()

    def serve_one(self, control):
        try:
            payload = self.data.recv(65536)
        except TimeoutError:
            try:
                return control.recv(1) != b""  # the client ends the session by closing this
            except BlockingIOError:
                return True
        self.answer(int.from_bytes(payload[:8], "little"), payload, self.data.send)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.join(10)
        assert not self.is_alive()
