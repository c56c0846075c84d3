# SPDX-License-Identifier: GPL-2.0-only
"""Other programs at one end: the real sockperf both ways, and plain echo services."""
import re
import socket
import threading
import time

import pytest

from conftest import LAYOVER, layover, ok, ping, run, serve, started
from peer import namespace
from test_driver import fails

PROTOS = pytest.mark.parametrize("proto", ["tcp", "udp"])


def sockperf_server(pair, proto):
    args = ["--tcp"] if proto == "tcp" else []
    return started("sockperf", "sr", *args, "-i", pair.server_addr, "-p", "11111", netns=pair.server)


def ready(pair, proto):
    """sockperf says nothing when it is ready."""
    kind = "-ltn" if proto == "tcp" else "-lun"
    until = time.monotonic() + 5
    while ":11111 " not in ok("ss", kind, netns=pair.server):
        assert time.monotonic() < until
        time.sleep(0.01)


@PROTOS
@pytest.mark.parametrize("size", [14, 15, 16, 64, 1448, 16384])
def test_a_sockperf_server(pair, proto, size):
    with sockperf_server(pair, proto):
        ready(pair, proto)
        out = ping("--peer", "sockperf", pair.server_addr, "--transport", proto, "-m", size, "-i", 499, "-w", 17,
                   "--verify", netns=pair.client)
    assert (out["rtt"]["count"], out["rtt"]["lost"], out["load"]["bytes"]) == (499, 0, size)


@PROTOS
@pytest.mark.parametrize("mode", [["--rate", 2000], ["--depth", 4], ["--io", "epoll"], ["--io", "uring"]])
def test_a_sockperf_server_in_every_mode(pair, proto, mode):
    with sockperf_server(pair, proto):
        ready(pair, proto)
        rtt = ping("--peer", "sockperf", pair.server_addr, "--transport", proto, "-i", 499, "-w", 17, *mode,
                   netns=pair.client)["rtt"]
    assert (rtt["count"], rtt["lost"], rtt["duplicated"], rtt["out_of_order"]) == (499, 0, 0, 0)


@PROTOS
@pytest.mark.parametrize("size", [14, 64, 1448, 16384])
def test_a_sockperf_client(pair, proto, size):
    """Its count of what it sent and of what came back."""
    with serve(pair.server, pair.server_addr, "--peer", "sockperf") as server:
        assert server.address == f"{pair.server_addr}:11111"
        args = ["--tcp"] if proto == "tcp" else []
        out = ok("sockperf", "pp", *args, "-i", pair.server_addr, "-p", "11111", "-t", "1", "-m", size, "--full-rtt",
                 "--data-integrity", netns=pair.client)
        text = re.sub(r"\x1b\[[0-9;]*m", "", out)
        valid = re.search(r"\[Valid Duration\].*SentMessages=(\d+); ReceivedMessages=(\d+)", text)
        assert valid and int(valid[1]) > 500 and valid[1] == valid[2], text
        assert "dropped messages = 0" in text and "integrity" not in text, text  # it speaks of it when it fails


def test_both_by_layover(pair):
    with serve(pair.server, pair.server_addr, "--peer", "sockperf"):
        for proto in ("tcp", "udp"):
            assert ping("--peer", "sockperf", pair.server_addr, "--transport", proto, "-i", 499, "-m", 65507, "-w", 7,
                        "--verify", netns=pair.client)["rtt"]["count"] == 499


@PROTOS
@pytest.mark.parametrize("size", [1, 64, 5000])
def test_echo(pair, proto, size):
    with serve(pair.server, pair.server_addr, "--peer", "echo") as server:
        assert server.address == f"{pair.server_addr}:7"
        assert ping("--peer", "echo", pair.server_addr, "--transport", proto, "-i", 499, "-m", size, "-w", 7, "--verify",
                    netns=pair.client)["rtt"]["count"] == 499


def test_an_echo_service_of_somebody_else(pair):
    with namespace(pair.server):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((pair.server_addr, 7))
    sock.settimeout(10)

    def echo():
        for _ in range(97):
            sock.sendto(*sock.recvfrom(65536))
    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    # The warm-up and the trips around the blocks are answered as well: as long as they are, and no longer.
    done = layover("ping", "--no-split", "--peer", "echo", "-u", pair.server_addr, "-i", 30, "-w", 5, "-j",
                   netns=pair.client)
    assert done.returncode == 0, done.stderr
    sock.close()


def test_split_of_the_own_side(pair):
    with sockperf_server(pair, "udp"):
        ready(pair, "udp")
        out = ok(LAYOVER, "ping", "--split", "-u", "--peer", "sockperf", pair.server_addr, "-i", 499, netns=pair.client)
    assert "server.host" in out and "the server is not layover's own" in out
    assert re.search(r"^trips 499, matched \d+", out, re.MULTILINE)


def test_nobody_there(pair):
    fails(layover("ping", "--no-split", "--peer", "sockperf", pair.server_addr, netns=pair.client), 1,
          "cannot reach a server at 10.77.0.2:11111: Connection refused")
    fails(layover("ping", "--no-split", "--peer", "echo", "-u", pair.server_addr, netns=pair.client), 1,
          "the server 10.77.0.2:7 is gone")


@PROTOS
def test_a_server_that_goes_away(pair, proto):
    with serve(pair.server, pair.server_addr, "--peer", "echo") as server, \
            started(LAYOVER, "ping", "--no-split", "--peer", "echo", pair.server_addr, "--transport", proto, "-t", "20",
                    netns=pair.client) as client:
        time.sleep(0.7)
        server.terminate()
        assert server.wait(3) == 0
        out, err = client.communicate(timeout=5)
        assert client.returncode == 1 and out == "" and "10.77.0.2:7 is gone" in err


def test_what_the_answering_server_refuses(pair):
    """A header that lies about its length ends its connection, not the server; a short datagram is nothing."""
    with serve(pair.server, pair.server_addr, "--peer", "sockperf") as server:
        for length in (0, 13, (1 << 20) + 1, 0xffffffff):
            with namespace(pair.client):
                sock = socket.create_connection((pair.server_addr, 11111), timeout=5)
            sock.sendall(bytes(8) + b"\0\3" + length.to_bytes(4, "big") + b"x")
            try:
                assert sock.recv(1) == b""
            except ConnectionResetError:
                pass
            sock.close()
        with namespace(pair.client):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(0.2)
        sock.connect((pair.server_addr, 11111))
        for data in (b"", b"x" * 13, bytes(8) + b"\0\1" + b"\0\0\0\x0e", bytes(8) + b"\0\2" + b"\0\0\0\x0e"):
            sock.send(data)
            with pytest.raises(TimeoutError):
                sock.recv(100)
        sock.send(bytes(7) + b"\x09\0\3\0\0\0\x0e")
        assert sock.recv(100) == bytes(7) + b"\x09\0\2\0\0\0\x0e"
        server.terminate()
        assert server.wait(3) == 0


@pytest.mark.parametrize("args,words", [
    (["--server-cpu", 0], ["sockperf takes no settings"]), (["--server-io", "spin"], ["takes no settings"]),
    (["-m", "64,32"], ["takes no settings"]), (["--receive-first"], ["takes no settings"]),
    (["--crr"], ["takes no settings"]), (["--shutdown-server"], ["takes no settings"]),
    (["--server-delay", "1ms"], ["takes no settings"]), (["--transport", "unix"], ["TCP or UDP"]),
    (["-m", 13], ["14 to 65507"]), (["-m", "64k"], ["14 to 65507"]),
])
def test_options_for_the_server_are_refused(args, words):
    fails(layover("ping", "--peer", "sockperf", "127.0.0.1", *args), 2, *words)


def test_wrong_command_lines():
    fails(layover("ping", "--peer", "latte", "127.0.0.1"), 2, "none of layover, sockperf, echo")
    fails(layover("ping", "--peer", "echo", "--lab"), 2, "--lab makes its own server")
    fails(layover("serve", "--peer", "echo", "--once"), 2, "--peer echo has no sessions")
    assert run(LAYOVER, "serve", "--help").stdout.count("sockperf") >= 1
