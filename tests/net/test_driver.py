# SPDX-License-Identifier: GPL-2.0-only
"""serve, ping and the lab, without the split."""
import json
import os
import shutil
import signal
import socket
import tempfile
import time

import pytest

from conftest import BUILD, LAYOVER, NETNS_DIR, labs, layover, ok, ping, run, serve, started, wait_for
from peer import VERSION, FakeServer, connect, frame, hello, namespace, read_exactly, read_frame

UDP = {"tcp": [], "udp": ["--udp"]}


def fails(done, code, *words):
    """The run ended with that code and one sentence that has these words."""
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("layover: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


# --- messages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["-4", "-6"])
@pytest.mark.parametrize("proto,size", [("tcp", 1), ("tcp", 14), ("tcp", 1448), ("tcp", 16384),
                                        ("tcp", 1 << 20), ("udp", 1), ("udp", 14), ("udp", 1448),
                                        ("udp", 16384), ("udp", 65507)])
def test_every_size(family, proto, size):
    out = ping("--lab", family, *UDP[proto], "-m", size, "-i", 101, "-w", 17, "--verify")
    assert out["load"]["protocol"] == proto and out["load"]["bytes"] == size
    rtt = out["rtt"]
    assert rtt["count"] == 101 and rtt["lost"] == 0
    assert 0 < rtt["min_ns"] <= rtt["p50_ns"] <= rtt["max_ns"] < 10 ** 9


@pytest.mark.parametrize("args", [[], ["--udp"], ["--udp", "--unconnected"], ["-6"],
                                  ["-6", "--udp", "--unconnected", "--verify"]])
def test_between_two_hosts(pair, args):
    six = "-6" in args
    addr = pair.server_addr6 if six else pair.server_addr
    with serve(pair.server, f"[{addr}]:7117" if six else addr):
        assert ping(addr, *args, "-i", 1009, netns=pair.client)["rtt"]["count"] == 1009


def test_server_on_every_address_and_another_port(pair):
    with serve(pair.server, "::", "-p", 9001):
        for target in (f"{pair.server_addr}:9001", f"[{pair.server_addr6}]:9001"):
            for proto in UDP.values():
                assert ping(target, *proto, "-i", 97, netns=pair.client)["rtt"]["count"] == 97


def test_serves_loopback_only_by_default(pair):
    with serve(pair.server) as server:
        assert server.address == "127.0.0.1:7117"
        assert ping("localhost", "-i", 97, netns=pair.server)["rtt"]["count"] == 97
        fails(layover("ping", pair.server_addr, "-i", 1, netns=pair.client), 1, "refused", "serve")


def test_clients_at_the_same_time(pair):
    with serve(pair.server, "0.0.0.0"):
        args = (LAYOVER, "ping", "--no-split", "-j", pair.server_addr, "-i", "1009")
        with started(*args, netns=pair.client) as a, started(*args, "-u", netns=pair.client) as b, \
                started(*args, "--verify", netns=pair.client) as c:
            for child in (a, b, c):
                out, err = child.communicate(timeout=20)
                assert child.returncode == 0, err
                assert json.loads(out)["rtt"]["count"] == 1009


def test_time_limit_and_first_trip():
    begun = time.monotonic()
    assert ping("--lab", "-i", 1)["rtt"]["count"] == 1
    assert time.monotonic() - begun < 1
    out = ping("--lab", "-t", "300ms")
    assert 290e6 <= out["load"]["duration_ns"] < 600e6


def test_server_delay_is_exact():
    rtt = ping("--lab", "-i", 499, "--server-delay", "300us")["rtt"]
    assert rtt["min_ns"] >= 300_000
    base = ping("--lab", "-i", 499)["rtt"]
    assert abs(rtt["min_ns"] - base["min_ns"] - 300_000) < 60_000


def test_ends_are_pinned(pair):
    cpu = max(os.sched_getaffinity(0))
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "20", "--client-cpu", str(cpu),
                    "--server-cpu", str(cpu), netns=pair.client) as client:
        def pinned(pid):
            # gone threads leave no status
            masks = []
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    masks.append(os.sched_getaffinity(int(task)))
                except ProcessLookupError:
                    pass
            return {cpu} in masks
        wait_for(lambda: pinned(server.pid) and pinned(client.pid))
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=5)
    with serve(pair.server, pair.server_addr):
        fails(layover("ping", pair.server_addr, "--server-cpu", 1023, netns=pair.client), 1, "CPU 1023")


# --- wrong command lines ------------------------------------------------------------------------------


@pytest.mark.parametrize("args,words", [
    (["--lab", "--byte-size", "1"], ["--byte-size", "--bytes"]),
    (["--lab", "-m", "0"], ["--bytes", "between 1 and"]),
    (["--lab", "-m", "2G"], ["--bytes", "1073741824"]),
    (["--lab", "-u", "-m", "65508"], ["65507"]),
    (["--lab", "-m", "64x"], ["64x"]),
    (["--lab", "-i", "0"], ["--iterations"]),
    (["--lab", "-t", "soon"], ["soon"]),
    (["--lab", "-t", "0"], ["nothing to measure"]),
    (["--lab", "--unconnected"], ["UDP"]),
    (["--lab", "--client-cpu", "1000"], ["--client-cpu", "allowed"]),
    (["--lab", "somewhere"], ["--lab", "somewhere"]),
    (["one", "two"], ["two"]),
    ([], ["TARGET", "--lab"]),
    (["host:0", "-i", "1"], None),
])
def test_wrong_command_line(args, words):
    if words is None:
        fails(layover("ping", *args), 1, "port")
    else:
        fails(layover("ping", *args), 2, *words)


def test_help_is_an_answer():
    for command in ("ping", "serve"):
        done = layover(command, "--help")
        assert done.returncode == 0 and done.stderr == "" and "Examples:" in done.stdout


# --- servers that cannot be reached --------------------------------------------------------------------


def test_port_in_use(pair):
    with serve(pair.server, pair.server_addr):
        fails(layover("serve", pair.server_addr, netns=pair.server), 1, "10.77.0.2:7117", "in use", "-p")
    fails(layover("serve", "192.0.2.1", netns=pair.server), 1, "192.0.2.1:7117")


def test_unreachable(pair):
    """No route, no such host on the link, a host that swallows everything, a name nobody knows."""
    ok("ip", "-n", pair.client, "neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", pair.dev)
    for target in ("192.0.2.1", "10.77.0.8", "10.77.0.9", "no-such-host.invalid"):
        begun = time.monotonic()
        fails(layover("ping", target, "-i", 1, netns=pair.client), 1, target)
        assert time.monotonic() - begun < 10


def test_something_else_on_the_port(pair):
    with namespace(pair.server):
        listener = socket.create_server((pair.server_addr, 7117))
    with started(LAYOVER, "ping", "--no-split", pair.server_addr, "-i", "1", netns=pair.client) as client:
        stranger, _ = listener.accept()
        stranger.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        out, err = client.communicate(timeout=10)
        assert client.returncode == 1 and out == "" and "does not speak layover" in err
        stranger.close()
    listener.close()


def test_something_silent_on_the_port(pair):
    with namespace(pair.server):
        listener = socket.create_server((pair.server_addr, 7117))
    begun = time.monotonic()
    fails(layover("ping", "--no-split", pair.server_addr, "-i", 1, netns=pair.client), 1, "in time")
    assert time.monotonic() - begun < 10
    listener.close()


def test_server_of_another_version(pair):
    with FakeServer(pair.server, pair.server_addr, version={"protocol": 977, "version": "9.8.7"}):
        fails(layover("ping", pair.server_addr, "-u", "-i", 1, netns=pair.client), 1,
              "protocol 977 (layover 9.8.7)", f"protocol {VERSION['protocol']} (layover 0.")


# --- clients that misbehave -----------------------------------------------------------------------------


def serves_on(pair):
    return ping(pair.server_addr, "-i", 97, netns=pair.client)["rtt"]["count"] == 97


def said(server):
    """What the server has said, after ending it."""
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=5)
    assert server.returncode == 0 and out == ""
    return err.splitlines()


@pytest.mark.parametrize("garbage", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    bytes(4096),
    os.urandom(4096).replace(b"L", b"l"),
    b"LAYO\xff\xff\xff\xff",
    frame(b"[" * 60000),
    frame(b"\xff\xfe{}"),
    frame([]),
    frame({"type": "hello"}),
    frame({"type": "hello", "protocol": VERSION["protocol"], "version": "x", "plan": {}}),
    frame({"type": "data", "session": "0123456789abcdef"}),
    frame({"type": "data", "session": 5}),
    frame({"type": "go", "protocol": VERSION["protocol"]}),
], ids=range(12))
def test_garbage_on_the_control_port(pair, garbage):
    with serve(pair.server, pair.server_addr) as server:
        stranger = connect(pair.client, pair.server_addr)
        stranger.sendall(garbage)
        try:
            while stranger.recv(4096):
                pass
        except ConnectionResetError:
            pass  # it was closed with our bytes unread
        assert serves_on(pair)
        lines = said(server)
        assert len(lines) == 1 and lines[0].startswith("layover: client 10.77.0.1:"), lines


def test_half_open_and_slow_clients(pair):
    with serve(pair.server, pair.server_addr) as server:
        strangers = [connect(pair.client, pair.server_addr) for _ in range(31)]
        begun = time.monotonic()
        for stranger in strangers[:5]:
            stranger.sendall(b"LAYO\0\0")
        assert serves_on(pair)
        drip = frame({"type": "hello"})
        strangers[6].settimeout(0.4)
        for i in range(len(drip)):
            try:
                strangers[6].sendall(drip[i:i + 1])
                if strangers[6].recv(1) == b"":
                    break
            except TimeoutError:
                pass
            except ConnectionError:
                break
        for stranger in strangers:
            stranger.settimeout(8)
            try:
                assert stranger.recv(1) == b""
            except ConnectionError:
                pass
        assert 4.5 < time.monotonic() - begun < 8
        assert serves_on(pair)
        assert len(said(server)) == 31


def test_client_of_another_version(pair):
    with serve(pair.server, pair.server_addr) as server:
        stranger = connect(pair.client, pair.server_addr)
        stranger.sendall(frame({"type": "hello", "protocol": 977, "version": "9.8.7"}))
        answer = read_frame(stranger)
        assert answer["type"] == "error" and answer["protocol"] == VERSION["protocol"]
        assert "protocol 977 (layover 9.8.7)" in answer["text"] and f"protocol {VERSION['protocol']} (" in answer["text"]
        assert serves_on(pair)
        lines = said(server)
        assert len(lines) == 1 and "protocol 977 (layover 9.8.7)" in lines[0], lines


def test_sessions_are_bounded(pair):
    with serve(pair.server, pair.server_addr):
        sessions = [connect(pair.client, pair.server_addr) for _ in range(257)]
        answers = [hello(s, bytes=1) for s in sessions]
        assert [a["type"] for a in answers] == ["ready"] * 256 + ["error"]
        assert "256 sessions" in answers[-1]["text"]
        for sock in sessions:
            sock.close()
        wait_for(lambda: layover("ping", pair.server_addr, "-i", 97, "--no-split",
                                 netns=pair.client).returncode == 0, 15)


def test_session_ends_with_its_control_connection(pair):
    with serve(pair.server, pair.server_addr) as server:
        control = connect(pair.client, pair.server_addr)
        session = hello(control, bytes=5)["session"]
        data = connect(pair.client, pair.server_addr)
        data.sendall(frame({"type": "data", "session": session}) + b"12345")
        assert read_frame(control)["type"] == "go"
        assert read_exactly(data, 5) == b"12345"
        control.close()
        assert data.recv(1) == b""
        tasks = f"/proc/{server.pid}/task"
        wait_for(lambda: len(os.listdir(tasks)) == 1)
        assert said(server) == []


def udp_session(pair, control, port, **changes):
    answer = hello(control, proto="udp", **changes)
    control.sendall(frame({"type": "peer", "port": port}))
    assert read_frame(control)["type"] == "go"
    return answer["port"]


@pytest.mark.parametrize("unconnected", [False, True])
def test_udp_session_is_no_reflector(pair, unconnected):
    with serve(pair.server, pair.server_addr):
        control = connect(pair.client, pair.server_addr)
        with namespace(pair.client):
            peer, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for sock in (peer, other):
            sock.bind((pair.client_addr, 0))
            sock.settimeout(0.2)
        port = udp_session(pair, control, peer.getsockname()[1], bytes=8, unconnected=unconnected)
        other.sendto(b"x" * 8, (pair.server_addr, port))
        with pytest.raises((TimeoutError, ConnectionRefusedError)):
            other.recv(100)
        for size, replied in ((3, 3), (8, 8), (1000, 8)):
            peer.sendto(b"y" * size, (pair.server_addr, port))
            assert peer.recv(2000) == b"y" * replied
        with pytest.raises(TimeoutError):
            peer.recv(100)
        control.close()


# --- servers that go away --------------------------------------------------------------------------------


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_server_killed(pair, proto):
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, *UDP[proto], "-t", "60",
                    netns=pair.client) as client:
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 3)
        time.sleep(0.2)
        server.send_signal(signal.SIGKILL)
        begun = time.monotonic()
        out, err = client.communicate(timeout=10)
        assert time.monotonic() - begun < 2
        assert client.returncode == 1 and out == "", out
        assert err.count("\n") == 1 and "10.77.0.2:7117 is gone" in err, err


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_server_ended_while_serving(pair, proto):
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, *UDP[proto], "-t", "60",
                    netns=pair.client) as client:
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 3)
        server.send_signal(signal.SIGINT)
        assert server.wait(5) == 0
        out, err = client.communicate(timeout=5)
        assert client.returncode == 1 and out == "" and "gone" in err


def test_server_that_stops_answering(pair):
    with serve(pair.server, pair.server_addr) as server:
        args = (LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "60")
        with started(*args, netns=pair.client) as tcp, started(*args, "-u", netns=pair.client) as udp:
            wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 5)
            time.sleep(0.3)
            server.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            for client in (tcp, udp):
                out, err = client.communicate(timeout=15)
                assert client.returncode == 1 and out == ""
                assert "stopped answering" in err and err.count("\n") == 1
            assert time.monotonic() - begun < 10.5
            server.send_signal(signal.SIGCONT)


def test_vanished_client_is_noticed(pair):
    """Killed without a word: its control connection ends, and so does the session."""
    with serve(pair.server, pair.server_addr) as server:
        with started(LAYOVER, "ping", "--no-split", pair.server_addr, "-u", "-t", "60",
                     netns=pair.client) as client:
            wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 3)
            client.kill()
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) == 1)


# --- loss ------------------------------------------------------------------------------------------------


def attach(netns, dev, direction, section):
    ok("tc", "-n", netns, "qdisc", "add", "dev", dev, "clsact")
    ok("tc", "-n", netns, "filter", "add", "dev", dev, direction, "bpf", "da", "obj",
       os.path.join(BUILD, "test-bpf", "udp.o"), "sec", section)


@pytest.mark.parametrize("side", ["client", "server"])
def test_lost_requests_and_replies(pair, side):
    attach(getattr(pair, side), pair.dev, "egress", "drop")
    with serve(pair.server, pair.server_addr):
        rtt = ping(pair.server_addr, "-u", "-w", 0, "-i", 1009, "--timeout", "100ms",
                   netns=pair.client)["rtt"]
    assert pair.missing(rtt) == 13 and rtt["count"] == 1009 - rtt["lost"]
    assert rtt["duplicated"] == 0 and rtt["out_of_order"] == 0


def test_doubled_messages(pair):
    attach(pair.server, pair.dev, "ingress", "double")
    with serve(pair.server, pair.server_addr):
        rtt = ping(pair.server_addr, "-u", "-w", 0, "-i", 1009, netns=pair.client)["rtt"]
    assert rtt["duplicated"] == 13 and rtt["count"] == 1009 and rtt["lost"] == 0


def test_everything_lost(pair):
    ok("tc", "-n", pair.server, "qdisc", "add", "dev", pair.dev, "clsact")
    with FakeServer(pair.server, pair.server_addr, answer=lambda *message: None):
        fails(layover("ping", "--no-split", pair.server_addr, "-u", "-t", "200ms", "--timeout", "20ms",
                      netns=pair.client), 1, "nothing was measured")


def mistreated(pair, answer, *args):
    with FakeServer(pair.server, pair.server_addr, answer):
        return ping(pair.server_addr, "-u", "-w", 0, "-i", 499, "--timeout", "60ms", *args,
                    netns=pair.client)["rtt"]


@pytest.mark.parametrize("size", [1, 8, 64])
@pytest.mark.parametrize("after,late,overtaken", [(None, 0, 0), ("before 32", 1, 0), ("before 33", 1, 1)])
def test_late_and_out_of_order_replies(pair, size, after, late, overtaken):
    """Trip 31's reply comes never, while 32 waits for its own, or after 32's."""
    kept = []

    def answer(seq, payload, send):
        answer.trip += 1  # a message of 1 byte holds no more than that of its number
        if answer.trip == 31:
            kept.append(payload)
            return
        if after == f"before {answer.trip}":
            send(kept[0])
        send(payload)
    answer.trip = 0
    rtt = mistreated(pair, answer, "-m", size)
    assert rtt["lost"] == 1 and rtt["count"] == 498
    assert rtt["late"] == late and rtt["out_of_order"] == overtaken and rtt["duplicated"] == 0


def test_duplicated_and_foreign_replies(pair):
    def answer(seq, payload, send):
        if seq == 97:  # numbers that were never sent, and another size
            send((10 ** 9).to_bytes(8, "little") + payload[8:])
            send(payload[:5])
        for _ in range(3 if seq == 101 else 1):
            send(payload)
    rtt = mistreated(pair, answer)
    assert rtt["duplicated"] == 2 and rtt["lost"] == 0 and rtt["count"] == 499


def test_wrong_payload_is_found_with_verify(pair):
    def answer(seq, payload, send):
        send(payload[:-1] + b"?" if seq == 101 else payload)
    with FakeServer(pair.server, pair.server_addr, answer):
        fails(layover("ping", "--no-split", pair.server_addr, "-u", "-i", 499, "--verify", "-w", 0,
                      netns=pair.client), 1, "trip 101", "byte 63")


def test_stalled_server_loses_and_catches_up(pair):
    """What arrives late is late: lost trips have no sample, and every trip is accounted for."""
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", "-j", pair.server_addr, "-u", "-t", "1500ms",
                    "--timeout", "50ms", netns=pair.client) as client:
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 3)
        time.sleep(0.4)
        server.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        server.send_signal(signal.SIGCONT)
        out, err = client.communicate(timeout=10)
        assert client.returncode == 0, err
        rtt = json.loads(out)["rtt"]
        assert 6 <= rtt["lost"] <= 10 and rtt["count"] > 1000
        assert rtt["late"] == rtt["lost"] and rtt["out_of_order"] == 0
        assert rtt["max_ns"] < 60_000_000


# --- the lab ------------------------------------------------------------------------------------------------


def lab_run(*args, **kwargs):
    return started(LAYOVER, "ping", "--no-split", "--lab", "-j", *args, **kwargs)


def names_of(child):
    return [f"layover-{child.pid}-{side}" for side in ("client", "server")]


def lab_is_up(child):
    return wait_for(lambda: set(names_of(child)) <= set(labs()) and measuring(child))


def measuring(child):
    """The client's watchdog runs, so the session is open."""
    return len(os.listdir(f"/proc/{child.pid}/task")) >= 2


def lab_is_gone(child):
    return not set(names_of(child)) & set(labs())


def test_lab_can_be_entered():
    with lab_run("-t", "20") as child:
        lab_is_up(child)
        client, server = names_of(child)
        for netns, addr in ((client, "198.18.0.1/30"), (server, "198.18.0.2/30")):
            shown = ok("ip", "netns", "exec", netns, "ip", "-br", "addr")
            assert addr in shown and "layover0" in shown and "fd6c:6179:6f76::" in shown
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=5)
    assert lab_is_gone(child)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_signal_prints_what_was_measured(sig):
    with lab_run("-t", "60") as child:
        lab_is_up(child)
        time.sleep(0.8)  # past the warm-up, also on a busy machine
        child.send_signal(sig)
        begun = time.monotonic()
        out, err = child.communicate(timeout=5)
        assert time.monotonic() - begun < 2
        assert child.returncode == 0, err
        assert json.loads(out)["rtt"]["count"] > 100
        assert lab_is_gone(child)


def server_of(child):
    kids = open(f"/proc/{child.pid}/task/{child.pid}/children").read().split()
    assert len(kids) == 1
    return int(kids[0])


def is_dead(pid):
    """Gone, or waiting for init to notice, which may take its time."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_signal_during_a_trip_that_hangs():
    with lab_run("-t", "60") as child:
        lab_is_up(child)
        time.sleep(0.3)
        os.kill(server_of(child), signal.SIGSTOP)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=3)
        assert child.returncode == 0, err
        assert json.loads(out)["rtt"]["count"] > 100
        assert lab_is_gone(child)


def test_second_signal_leaves_at_once():
    """While the server is busy getting memory for its session, the first signal ends nothing yet."""
    for _ in range(5):
        with lab_run("-t", "60", "-m", "1G") as child:
            wait_for(lambda: open(f"/proc/{child.pid}/task/{child.pid}/children").read())
            server = server_of(child)
            time.sleep(0.03)
            child.send_signal(signal.SIGINT)
            time.sleep(0.15)
            if child.poll() is not None:
                continue
            begun = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=5)
            assert time.monotonic() - begun < 0.5
            assert child.returncode == 1 and out == ""
            assert lab_is_gone(child)
            wait_for(lambda: is_dead(server))
            return
    pytest.fail("the first signal was always enough")


def test_lab_server_killed():
    with lab_run("-t", "60") as child:
        lab_is_up(child)
        time.sleep(0.2)
        os.kill(server_of(child), signal.SIGKILL)
        out, err = child.communicate(timeout=5)
        assert child.returncode == 1 and out == "" and "gone" in err
        assert lab_is_gone(child)


def test_killed_lab_is_removed_by_the_next_start():
    with lab_run("-t", "60") as living, lab_run("-t", "60") as dead:
        lab_is_up(living)
        lab_is_up(dead)
        server = server_of(dead)
        dead.kill()
        dead.communicate(timeout=5)
        assert not lab_is_gone(dead)
        wait_for(lambda: is_dead(server))
        ok("ip", "netns", "add", f"layover-{os.getpid()}-client")  # this pid lives, but has no lab
        ok("ip", "netns", "add", f"layover-{os.getpid()}-other")   # not a lab's name
        try:
            assert ping("--lab", "-i", 97)["rtt"]["count"] == 97
            assert lab_is_gone(dead)
            assert f"layover-{os.getpid()}-client" not in os.listdir(NETNS_DIR)
            assert f"layover-{os.getpid()}-other" in os.listdir(NETNS_DIR)
        finally:
            ok("ip", "netns", "del", f"layover-{os.getpid()}-other")
        assert set(names_of(living)) <= set(labs())
        living.send_signal(signal.SIGINT)
        assert json.loads(living.communicate(timeout=5)[0])["rtt"]["count"] > 0
    assert lab_is_gone(living)


def test_lab_where_nothing_is_prepared():
    """A machine, or a chroot, without /run/netns."""
    script = 'mount -t tmpfs none /run && "$1" ping --lab --no-split -i 97 && ls /run/netns'
    done = run("unshare", "-m", "sh", "-c", script, "sh", LAYOVER)
    assert done.returncode == 0, done.stderr
    assert "layover-" not in done.stdout


# --- without privileges ------------------------------------------------------------------------------------


@pytest.fixture
def public_binary():
    """A copy that everybody may run, wherever the tree lies."""
    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        yield shutil.copy(LAYOVER, where)


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def test_without_privileges(pair, public_binary):
    with started(*NOBODY, public_binary, "serve", pair.server_addr, netns=pair.server) as server:
        assert server.stdout.readline() == f"serving on {pair.server_addr}:7117\n"
        for proto in UDP.values():
            out = ok(*NOBODY, public_binary, "ping", "--no-split", "-j", pair.server_addr, "-i", 97,
                     *proto, netns=pair.client)
            assert json.loads(out)["rtt"]["count"] == 97
    fails(run(*NOBODY, public_binary, "ping", "--lab", "--no-split"), 3, "CAP_SYS_ADMIN", "root")
    assert not [n for n in labs() if not os.path.exists(f"/proc/{n.split('-')[1]}")]
