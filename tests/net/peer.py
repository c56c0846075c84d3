# SPDX-License-Identifier: GPL-2.0-only
"""The driver's protocol as a stranger speaks it: a client and a server that can be made to misbehave."""
import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import threading

CLONE_NEWNET = 0x40000000
VERSION = {"protocol": 4, "version": "test"}
PLAN = {"proto": "tcp", "mode": "echo", "family": "any", "bytes": 64, "iterations": 1, "duration_ns": 0,
        "warmup_trips": 0, "warmup_ns": 0, "timeout_ns": 10 ** 9, "server_delay_ns": 0,
        "unconnected": False, "verify": False, "client_cpu": -1, "server_cpu": -1, "reply_bytes": 0,
        "numa": -1, "fifo": 0, "lock_memory": False,
        "writes": [], "reply_writes": [], "crr": False, "receive_first": False, "io": "block",
        "server_io": "block", "polls": 1000, "sndbuf": 0, "rcvbuf": 0, "mss": 0, "busy_poll_us": 0, "tos": -1,
        "cork": "off", "nodelay": True, "quickack": False, "congestion": ""}

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


def binary_frame(body):
    return b"LAYR" + struct.pack(">I", len(body)) + body


def records_body(records, hooks, count=None, version=1, last=True, clock=1, counters=(0, 0, 0)):
    """The body of a frame of records: each record is its bytes, hooks their number of times."""
    header = struct.pack("<4H4Q", version, last, len(records) if count is None else count, hooks, clock, *counters)
    return header + b"".join(records)


def record(send_id, recv_id, times, flags=0):
    fixed = struct.pack("<QQIIHHI", send_id, recv_id, 64, 64, 1, 1, flags)
    return fixed + struct.pack(f"<{len(times)}Q", *times) + bytes(2 * len(times))


class FakeServer(threading.Thread):
    """Opens one UDP session properly, then leaves every message to answer(seq, payload, send), and every
    request on the control connection to control_answers[type]: bytes, or a function of no argument. It says
    that it runs on another kernel."""

    def __init__(self, netns, addr, answer=None, version=None, control_answers=None):
        super().__init__(daemon=True)
        self.version = {**VERSION, **(version or {})}
        self.answer = answer
        self.control_answers = {"noise": frame({"type": "noise", "noise": None}), **(control_answers or {})}
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
        control.sendall(frame({"type": "ready", **self.version, "session": os.urandom(8).hex(), "path": "",
                               "port": self.data.getsockname()[1],
                               "boot_id": "00000000-0000-0000-0000-000000000000", "kernel": "0.0-test",
                               "clock_ns": 1}))
        with contextlib.suppress(EOFError, ConnectionError):
            self.data.connect((peer, read_frame(control)["port"]))
            control.sendall(frame({"type": "go", **self.version}))
            while self.serve_one(control):
                pass
        for sock in (control, self.listener, self.data):
            sock.close()

    def serve_one(self, control):
        ready, _, _ = select.select([self.data, control], [], [], 10)
        if self.data in ready:
            payload = self.data.recv(65536)
            self.answer(int.from_bytes(payload[:8], "little"), payload, self.data.send)
        if control in ready:  # the client ends the session by closing this: EOFError
            answer = self.control_answers[read_frame(control)["type"]]
            control.sendall(answer() if callable(answer) else answer)
        return bool(ready)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.join(10)
        assert not self.is_alive()
