# SPDX-License-Identifier: GPL-2.0-only
"""The control port in strange company: mutated frames at every step, half-open and slow peers, floods of them.

LAYOVER_SEED chooses another run, LAYOVER_FUZZ how many conversations; what is drawn depends on nothing else."""
import contextlib
import json
import os
import random
import resource
import select
import socket
import struct
import threading
import time

import pytest

from conftest import BUILD, LAYOVER, layover, ok, ping, serve, wait_for
from peer import PLAN, VERSION, binary_frame, connect, frame, namespace, read_exactly, read_frame

SEED = int(os.environ.get("LAYOVER_SEED", "1"))
ROUNDS = int(os.environ.get("LAYOVER_FUZZ", "400"))
SANITIZED = "san" in BUILD
ODD = [None, True, False, 0, -1, 1, 2 ** 31, 2 ** 63 - 1, -2 ** 63, 1e308, "", "x" * 5000, "\u0000", "\x1b[31m", [], {},
       [[]] * 50, {"a": {"b": {}}}, [1] * 5000, "tcp", "echo", "ffffffffffffffff"]


class State:
    """What a process holds: descriptors, threads, memory."""

    def __init__(self, pid):
        self.fds = len(os.listdir(f"/proc/{pid}/fd"))
        self.threads = len(os.listdir(f"/proc/{pid}/task"))
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            self.kib = int(next(line.split()[1] for line in status if line.startswith("VmRSS")))


@contextlib.contextmanager
def sound_server(pair, *args, where=None):
    """A server that has afterwards what it had before, and ends by itself when it is told to."""
    with serve(pair.server, where or pair.server_addr, *args) as server:
        drained = []
        reader = threading.Thread(target=lambda: drained.extend(server.stderr), daemon=True)
        reader.start()
        ping(pair.server_addr, "-i", 17, netns=pair.client)
        wait_for(lambda: State(server.pid).threads == 1)
        before = State(server.pid)
        server.notes = drained
        yield server
        assert server.poll() is None, drained[-20:]
        wait_for(lambda: State(server.pid).threads == 1, seconds=15)
        after = State(server.pid)
        assert after.fds == before.fds
        assert after.kib - before.kib < (400 << 10 if SANITIZED else 8 << 10), (before.kib, after.kib)
        assert ping(pair.server_addr, "-i", 97, netns=pair.client)["rtt"]["count"] == 97
        server.terminate()
        assert server.wait(8) == 0
        reader.join(5)


def served(pair):
    """Another client, in the meantime."""
    begun = time.monotonic()
    assert ping(pair.server_addr, "-i", 17, "-w", 0, netns=pair.client)["rtt"]["count"] == 17
    assert time.monotonic() - begun < 5


# --- what is said ------------------------------------------------------------------------------------------


def paths(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from paths(below, at + (key,))


def change_value(rng, body):
    """One value of the frame's object replaced, dropped or doubled under another name."""
    body = json.loads(json.dumps(body))
    path = rng.choice(list(paths(body)))
    if not path:
        return rng.choice(ODD)
    place = body
    for key in path[:-1]:
        place = place[key]
    kind = rng.randrange(3)
    if kind == 0:
        place[path[-1]] = rng.choice(ODD)
    elif isinstance(place, dict):
        value = place.pop(path[-1])
        if kind == 2:
            place[rng.choice(["", "x", "session", "plan"])] = value
    return body


def change_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 3, 30])):
        kind, at = rng.randrange(4), rng.randrange(len(data) or 1)
        if kind == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.randbytes(rng.choice([1, 4, 300]))
        elif kind == 2:
            del data[at:at + rng.choice([1, 4, 300])]
        elif data:
            data[at] = rng.choice(b'\x00\xff"{}[],:')
    return bytes(data)


def mutated(rng, body):
    """The frame of this body, wrong in some way; sometimes right."""
    kind = rng.randrange(8)
    if kind == 0:
        return frame(body)
    if kind <= 3:
        return frame(change_value(rng, body))
    if kind == 4:
        return change_bytes(rng, frame(body))
    if kind == 5:
        return frame(change_bytes(rng, json.dumps(body).encode()))
    if kind == 6:
        return b"LAYO" + struct.pack(">I", rng.choice([0, 1, 65536, 65537, 2 ** 31, 2 ** 32 - 1])) + rng.randbytes(40)
    return rng.choice([binary_frame(rng.randbytes(60)), rng.randbytes(rng.randrange(200)), b"", b"GET / HTTP/1.0\r\n\r\n",
                       frame(b"[" * 30000), frame(b'{"type":' * 2000), frame(b"\xff" * 65536), frame(body) * 3])


def plan_of(rng):
    return {**PLAN, "proto": rng.choice(["tcp", "udp", "udp", "unix", "mcast", "raw"]), "bytes": rng.choice([1, 64, 5000]),
            "mode": rng.choice(["echo", "echo", "sink"]), "server_io": rng.choice(["block", "spin", "epoll", "uring"])}


TALK = [{"type": "count"}, {"type": "noise"}, {"type": "trace", "with": [], "without": []}, {"type": "records", "attach": True},
        {"type": "trace", "with": ["copy"], "without": ["sock_write"]}]


class Conversation:
    """A client that goes the right way up to a step, where it says something strange."""

    def __init__(self, rng, pair):
        self.rng, self.pair = rng, pair
        self.socks = [connect(pair.client, pair.server_addr)]
        self.socks[0].settimeout(3)

    def hello(self, plan):
        return {"type": "hello", **VERSION, "plan": plan, "shutdown": False, "more": False}

    def open(self, plan):
        """Until the server says go, as far as it comes: raw sockets and multicast do without an answer."""
        control = self.socks[0]
        control.sendall(frame(self.hello(plan)))
        ready = read_frame(control)
        if ready["type"] != "ready":
            return False
        if plan["proto"] == "tcp":
            data = connect(self.pair.client, self.pair.server_addr)
            self.socks.append(data)
            data.sendall(frame({"type": "data", "session": ready["session"]}))
        elif plan["proto"] == "unix":
            return False
        else:
            control.sendall(frame({"type": "peer", "port": 0 if plan["proto"] == "raw" else 9}))
        return read_frame(control)["type"] == "go"

    def run(self):
        rng, control, plan = self.rng, self.socks[0], plan_of(self.rng)
        step = rng.choice(["hello", "hello", "data", "peer", "talk", "talk", "messages"])
        if step == "hello":
            control.sendall(mutated(rng, self.hello(plan)))
        elif step == "data":
            control.sendall(mutated(rng, {"type": "data", "session": rng.randbytes(8).hex()}))
        elif step == "peer":
            control.sendall(frame(self.hello({**plan, "proto": "udp"})))
            read_frame(control)
            control.sendall(mutated(rng, {"type": "peer", "port": rng.randrange(65536)}))
        elif self.open(plan) and step == "talk":
            for _ in range(rng.randrange(1, 4)):
                control.sendall(mutated(rng, rng.choice(TALK)))
        elif step == "messages" and len(self.socks) == 2:
            self.socks[1].sendall(rng.randbytes(rng.choice([1, 64, 10000])))

    def close(self):
        for sock in self.socks:
            if self.rng.randrange(2):  # with a reset
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()


def test_strange_clients(pair):
    rng = random.Random(SEED)
    with sound_server(pair) as server:
        lingering = []
        for i in range(ROUNDS):
            conversation = Conversation(rng, pair)
            with contextlib.suppress(OSError, EOFError):
                conversation.run()
            lingering.append(conversation)  # so that some are under way at the same time
            if len(lingering) > 20:
                lingering.pop(rng.randrange(len(lingering))).close()
            if i % 40 == 0:
                served(pair)
                assert server.poll() is None
        for conversation in lingering:
            conversation.close()


def test_strange_proofs(pair, tmp_path):
    rng = random.Random(SEED)
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    with serve(pair.server, pair.server_addr, "--token-file", token) as server:
        ok(LAYOVER, "ping", "--no-split", pair.server_addr, "-i", 17, "--token-file", token, netns=pair.client)
        wait_for(lambda: State(server.pid).threads == 1)
        before = State(server.pid)
        for _ in range(ROUNDS // 4):
            control = connect(pair.client, pair.server_addr)
            control.sendall(frame({"type": "hello", **VERSION, "plan": PLAN}))
            assert read_frame(control)["type"] == "challenge"
            with contextlib.suppress(EOFError, OSError):
                control.sendall(mutated(rng, {"type": "proof", "nonce": "0" * 32, "proof": "0" * 64}))
                control.shutdown(socket.SHUT_WR)
                assert read_frame(control)["type"] == "error"
            control.close()
        wait_for(lambda: State(server.pid).threads == 1, seconds=15)
        assert State(server.pid).fds == before.fds
        ok(LAYOVER, "ping", "--no-split", pair.server_addr, "-i", 17, "--token-file", token, netns=pair.client)


class StrangeServer(threading.Thread):
    """Answers a client's frames with mutated ones of the right kind."""

    def __init__(self, rng, netns, addr):
        super().__init__(daemon=True)
        self.rng = rng
        with namespace(netns):
            self.listener = socket.create_server((addr, 7117))
        self.listener.settimeout(10)
        self.start()

    def run(self):
        answers = [{"type": "ready", **VERSION, "session": "0" * 15 + "1", "path": "", "port": 9, "proof": "",
                    "boot_id": "", "kernel": "0", "clock_ns": 1}, {"type": "go", **VERSION}]
        strange = self.rng.randrange(2)
        control, _ = self.listener.accept()
        control.settimeout(3)
        with control, self.listener, contextlib.suppress(EOFError, OSError):
            for i, answer in enumerate(answers):
                read_frame(control)
                control.sendall(mutated(self.rng, answer) if i >= strange else frame(answer))


def test_strange_servers(pair):
    rng = random.Random(SEED)
    for _ in range(ROUNDS // 8):
        server = StrangeServer(rng, pair.server, pair.server_addr)
        begun = time.monotonic()
        done = layover("ping", "--no-split", "-u", pair.server_addr, "-i", 1, "--timeout", "10ms", "-w", 0,
                       netns=pair.client)
        assert time.monotonic() - begun < 10
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done
        server.join(10)
        assert not server.is_alive()


# --- who says nothing --------------------------------------------------------------------------------------


def half_open(pair, step):
    """Sockets of a client that stops at this step."""
    control = connect(pair.client, pair.server_addr)
    plan = {**PLAN, "proto": "tcp" if step == "data" else "udp"}
    whole = frame({"type": "hello", **VERSION, "plan": plan})
    if step == "header":
        control.sendall(whole[:5])
    elif step == "body":
        control.sendall(whole[:-1])
    elif step != "nothing":
        control.sendall(whole)
        assert read_frame(control)["type"] == "ready"
    return control


@pytest.mark.parametrize("step", ["nothing", "header", "body", "peer", "data"])
def test_half_open_clients(pair, step):
    """Each of them is told, and gone, after 5 s; the others do not notice."""
    with sound_server(pair) as server:
        begun = time.monotonic()
        controls = [half_open(pair, step) for _ in range(50)]
        wait_for(lambda: State(server.pid).threads == 51)
        served(pair)
        for control in controls:
            control.settimeout(8)
            if step in ("peer", "data"):
                answer = read_frame(control)
                assert answer["type"] == "error" and "in time" in answer["text"]
            assert control.recv(1) == b""
        assert 4.5 < time.monotonic() - begun < 8


def test_slow_clients(pair):
    """A byte per second is no progress: a frame has 5 s as a whole."""
    whole = frame({"type": "hello", **VERSION, "plan": PLAN})
    with sound_server(pair):
        begun, alive = time.monotonic(), [connect(pair.client, pair.server_addr) for _ in range(20)]
        for i in range(8):
            for control in alive:
                with contextlib.suppress(ConnectionError):
                    control.send(whole[i:i + 1])
            served(pair)
            ended, _, _ = select.select(alive, [], [], 0)
            if ended:
                break
            time.sleep(max(0.0, begun + i + 1 - time.monotonic()))
        assert 4.5 < time.monotonic() - begun < 7
        wait_for(lambda: len(select.select(alive, [], [], 0)[0]) == 20)


def test_slow_reader(pair):
    """Who asks and never reads costs its own session only."""
    with sound_server(pair):
        rng = random.Random(SEED)
        talkers = [Conversation(rng, pair) for _ in range(10)]
        for talker in talkers:
            assert talker.open({**PLAN, "proto": "udp"})
            control = talker.socks[0]
            control.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                for _ in range(20000):
                    control.send(frame({"type": "count"}))
        served(pair)
        for talker in talkers:
            talker.close()


# --- many at once ------------------------------------------------------------------------------------------


@pytest.fixture
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def flood(pair, count, data=b""):
    socks = []
    with namespace(pair.client):
        for _ in range(count):
            sock = socket.create_connection((pair.server_addr, 7117), timeout=10)
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
            socks.append(sock)
    return socks


@pytest.mark.parametrize("data", [b"", b"LAYO\0", frame({"type": "hello"})[:-1]])
def test_a_thousand_connections(pair, descriptors, data):
    """They say nothing to the end; the oldest ones make room, so that whoever speaks is served."""
    with sound_server(pair) as server:
        socks = flood(pair, 1000, data)
        for _ in range(5):
            served(pair)
        assert State(server.pid).threads <= 1 + 576
        assert len(server.notes) < 300
        for sock in socks:
            sock.close()


def test_a_thousand_sessions(pair, descriptors):
    """Of one client; with a limit for each, others are served."""
    hello = frame({"type": "hello", **VERSION, "plan": {**PLAN, "proto": "udp"}})
    with sound_server(pair, "--max-sessions", 100, where="0.0.0.0") as server:
        socks = flood(pair, 1000, hello)
        assert ping("127.0.0.1", "-i", 17, netns=pair.server)["rtt"]["count"] == 17
        answers = {"ready": 0, "error": 0}
        for sock in socks:
            with contextlib.suppress(EOFError, ConnectionError):
                answers[read_frame(sock)["type"]] += 1
        assert answers["ready"] == 100 and answers["error"] > 600, answers
        assert State(server.pid).threads <= 1 + 576
        for sock in socks:
            sock.close()


def test_connections_that_come_and_go(pair):
    with sound_server(pair):
        for _ in range(2000):
            connect(pair.client, pair.server_addr).close()
        served(pair)
        control = half_open(pair, "peer")
        control.close()
        with pytest.raises((EOFError, OSError)):
            read_exactly(control, 1)
