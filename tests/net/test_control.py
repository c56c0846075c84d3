# SPDX-License-Identifier: GPL-2.0-only
"""The control connection: who may open a session, what it may take, and when the server ends."""
import hashlib
import hmac
import os
import time

import pytest

from conftest import LAYOVER, layover, ok, ping, serve, started, wait_for
from peer import PLAN, VERSION, connect, frame, hello, read_frame
from test_driver import fails

SENTENCE = "no session with the server 10.77.0.2:7117: "


@pytest.fixture
def token(tmp_path):
    def make(text, mode=0o600, name="token"):
        file = tmp_path / name
        file.write_bytes(text)
        file.chmod(mode)
        return file
    return make


def said(server):
    return server.stderr.read().splitlines()


# --- the end of the server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("proto", [[], ["-u"]])
def test_once(pair, proto):
    with serve(pair.server, pair.server_addr, "--once") as server:
        assert ping(pair.server_addr, "-i", 97, *proto, netns=pair.client)["rtt"]["count"] == 97
        assert server.wait(2) == 0 and said(server) == []


def test_once_is_for_clients_that_measure(pair):
    """A refused one is not the one that the server waits for."""
    with serve(pair.server, pair.server_addr, "--once", "--max-bytes", 100) as server:
        fails(layover("ping", "--no-split", pair.server_addr, "-m", 101, netns=pair.client), 1, "--max-bytes")
        connect(pair.client, pair.server_addr).close()
        assert ping(pair.server_addr, "-i", 97, netns=pair.client)["rtt"]["count"] == 97
        assert server.wait(2) == 0


def test_once_lasts_for_a_sweep_and_for_all_flows(pair):
    with serve(pair.server, pair.server_addr, "--once") as server:
        out = ok(LAYOVER, "ping", "--no-split", pair.server_addr, "-i", 97, "--sweep", "1..4", netns=pair.client)
        assert len(out.splitlines()) >= 4
        assert server.wait(2) == 0
    with serve(pair.server, pair.server_addr, "--once") as server:
        ok(LAYOVER, "load", pair.server_addr, "-P", 5, "-u", "-t", "200ms", "-w", "50ms", "-r", 1000,
           netns=pair.client)
        assert server.wait(2) == 0


def test_shutdown(pair):
    with serve(pair.server, pair.server_addr, "--allow-shutdown") as server:
        ping(pair.server_addr, "-i", 97, netns=pair.client)
        assert server.poll() is None
        ping(pair.server_addr, "-i", 97, "--shutdown-server", netns=pair.client)
        assert server.wait(2) == 0 and said(server) == []


def test_shutdown_waits_for_the_others(pair):
    with serve(pair.server, pair.server_addr, "--allow-shutdown") as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "1500ms", netns=pair.client) as other:
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) >= 3)
        ping(pair.server_addr, "-i", 97, "--shutdown-server", netns=pair.client)
        fails(layover("ping", "--no-split", pair.server_addr, "-i", 1, netns=pair.client), 1,
              SENTENCE + "this server is about to end")
        assert other.wait(5) == 0
        assert server.wait(2) == 0


def test_shutdown_not_allowed(pair):
    with serve(pair.server, pair.server_addr) as server:
        fails(layover("ping", "--no-split", pair.server_addr, "-i", 97, "--shutdown-server", netns=pair.client), 1,
              SENTENCE + "this server does not end at a client's word; start it with --allow-shutdown")
        assert ping(pair.server_addr, "-i", 97, netns=pair.client)["rtt"]["count"] == 97
        assert server.poll() is None


# --- the token ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ours,theirs", [(b"secret", b"secret\n"), (bytes(range(1, 256)), bytes(range(1, 256))),
                                         (b"x" * 4096, b"x" * 4096)])
def test_the_same_token(pair, token, ours, theirs):
    with serve(pair.server, pair.server_addr, "--token-file", token(theirs, name="theirs")) as server:
        mine = token(ours, name="ours")
        for command in (["ping", "--no-split", "-i", 97], ["load", "-t", "100ms", "-w", "10ms", "-P", 2]):
            ok(LAYOVER, *command, pair.server_addr, "--token-file", mine, netns=pair.client)
        server.terminate()
        assert server.wait(2) == 0 and said(server) == []


def test_another_token(pair, token):
    with serve(pair.server, pair.server_addr, "--token-file", token(b"secret", name="theirs")) as server:
        for command in (["ping", "--no-split"], ["load", "-j"]):
            fails(layover(*command, pair.server_addr, "--token-file", token(b"Secret"), netns=pair.client), 1,
                  SENTENCE + "the token is not this server's")
        fails(layover("ping", "--no-split", pair.server_addr, netns=pair.client), 1,
              SENTENCE + "it wants a token; --token-file FILE names it")
        server.terminate()
        lines = said(server)
        assert len(lines) == 3 and all(line.startswith("layover: client 10.77.0.1:") for line in lines)
        assert lines[0].endswith("the token is not this server's")


def test_a_server_without_the_token(pair, token):
    """It might be anybody's."""
    with serve(pair.server, pair.server_addr):
        fails(layover("ping", "--no-split", pair.server_addr, "--token-file", token(b"secret"), netns=pair.client), 1,
              SENTENCE + "it has no token; start it with --token-file as well")


def test_the_token_never_travels(pair, token):
    """Both proofs are HMAC-SHA256 over the two numbers, each number is used once, and no frame has the secret."""
    def proof(role, ours, theirs):
        text = b"\0".join([b"layover session", role, ours.encode(), theirs.encode(), b""])
        return hmac.new(b"secret", text, hashlib.sha256).hexdigest()

    with serve(pair.server, pair.server_addr, "--token-file", token(b"secret\n")):
        seen = set()
        for good in (True, True, False):
            control = connect(pair.client, pair.server_addr)
            challenge = hello(control)
            assert challenge["type"] == "challenge" and "secret" not in str(challenge)
            seen.add(challenge["nonce"])
            mine = os.urandom(16).hex()
            role = b"client" if good else b"server"
            control.sendall(frame({"type": "proof", "nonce": mine, "proof": proof(role, challenge["nonce"], mine)}))
            answer = read_frame(control)
            if good:
                assert answer["type"] == "ready" and answer["proof"] == proof(b"server", challenge["nonce"], mine)
            else:
                assert (answer["type"], answer["text"]) == ("error", "the token is not this server's")
            control.close()
        assert len(seen) == 3


@pytest.mark.parametrize("body", [{"type": "hello"}, {"type": "proof"}, {"type": "proof", "nonce": "12", "proof": "12"},
                                  {"type": "proof", "nonce": "0" * 32}, {"type": "proof", "nonce": "0" * 33},
                                  {"type": "proof", "nonce": 7, "proof": 7},
                                  {"type": "proof", "nonce": "0" * 32, "proof": "0" * 63}])
def test_no_proof(pair, token, body):
    with serve(pair.server, pair.server_addr, "--token-file", token(b"secret")):
        control = connect(pair.client, pair.server_addr)
        assert hello(control)["type"] == "challenge"
        control.sendall(frame(body))
        answer = read_frame(control)
        assert answer["type"] == "error"
        assert answer["text"] in ("the client did not answer the challenge", "the token is not this server's")


@pytest.mark.parametrize("text,mode,word", [(b"secret", 0o604, "chmod o="), (b"", 0o600, "is empty"),
                                            (b"\n\n", 0o600, "is empty"), (b"x" * 4097, 0o600, "4096")])
def test_token_files_that_are_refused(token, text, mode, word):
    file = token(text, mode)
    for command in (["ping", "127.0.0.1"], ["serve"], ["load", "127.0.0.1"]):
        fails(layover(*command, "--token-file", file), 2, str(file), word)
        fails(layover(*command, "--token-file", file.parent), 2, "no regular file")
        fails(layover(*command, "--token-file", "/nonexistent"), 2, "/nonexistent", "No such file")


@pytest.mark.parametrize("option", ["--shutdown-server", "--token-file"])
def test_not_in_the_lab(token, option):
    value = [token(b"secret")] if option == "--token-file" else []
    for command in ("ping", "load"):
        fails(layover(command, "--lab", option, *value), 2, "--lab makes its own server; leave out " + option)


# --- limits ------------------------------------------------------------------------------------------------


def test_max_bytes(pair):
    with serve(pair.server, pair.server_addr, "--max-bytes", "1k"):
        assert ping(pair.server_addr, "-i", 97, "-m", "1k", netns=pair.client)["rtt"]["count"] == 97
        for sizes in ("1025", "64,1025"):
            fails(layover("ping", "--no-split", pair.server_addr, "-m", sizes, netns=pair.client), 1,
                  SENTENCE + "messages of 1025 bytes, this server takes at most 1024 (--max-bytes)")


def test_max_sessions(pair):
    with serve(pair.server, "0.0.0.0", "--max-sessions", 3) as server:
        def load(flows):
            return layover("load", pair.server_addr, "-P", flows, "-t", "200ms", "-w", "50ms", netns=pair.client)
        assert load(3).returncode == 0
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) == 1)
        fourth = load(4)
        assert fourth.returncode == 1
        assert "this server gives a client at most 3 sessions at the same time (--max-sessions)" in fourth.stderr
        # Another client has its own three.
        wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) == 1)
        with started(LAYOVER, "load", pair.server_addr, "-P", "3", "-t", "2", netns=pair.client):
            wait_for(lambda: len(os.listdir(f"/proc/{server.pid}/task")) == 7)
            assert ping("127.0.0.1", "-i", 97, netns=pair.server)["rtt"]["count"] == 97


@pytest.mark.parametrize("proto", [[], ["-u"]])
def test_max_time(pair, proto):
    with serve(pair.server, pair.server_addr, "--max-time", "700ms"):
        begun = time.monotonic()
        done = layover("ping", "--no-split", *proto, pair.server_addr, "-i", 10 ** 7, "-w", 10, netns=pair.client)
        assert 0.69 < time.monotonic() - begun < 1.5
        fails(done, 1, "the server 10.77.0.2:7117 ended the session: its time is over, "
                       "this server gives a client at most 0.7 s (--max-time)")
        assert ping(pair.server_addr, "-t", "300ms", "-w", 10, netns=pair.client)["rtt"]["count"] > 97


def test_a_run_that_is_too_long(pair):
    with serve(pair.server, pair.server_addr, "--max-time", 1):
        fails(layover("ping", "--no-split", pair.server_addr, netns=pair.client), 1,
              SENTENCE + "a run of 2.4 s with its warm-up, this server gives a client at most 1 s (--max-time)")


@pytest.mark.parametrize("proto", [[], ["-u"]])
def test_max_time_of_a_load(pair, proto):
    """Its plan promises less time than it takes: a client that lies is ended all the same."""
    with serve(pair.server, pair.server_addr, "--max-time", "500ms"):
        control = connect(pair.client, pair.server_addr)
        plan = {"proto": "udp" if proto else "tcp", "mode": "sink", "iterations": 0, "duration_ns": 10 ** 8}
        answer = hello(control, **plan)
        if proto:
            control.sendall(frame({"type": "peer", "port": 1}))
        else:
            data = connect(pair.client, pair.server_addr)
            data.sendall(frame({"type": "data", "session": answer["session"]}))
        assert read_frame(control)["type"] == "go"
        begun = time.monotonic()
        answer = read_frame(control)
        assert 0.4 < time.monotonic() - begun < 1
        assert answer["type"] == "error" and "(--max-time)" in answer["text"]


@pytest.mark.parametrize("args,words", [
    (["--max-bytes", "0"], ["--max-bytes"]), (["--max-bytes", "2G"], ["--max-bytes"]),
    (["--max-sessions", "0"], ["--max-sessions", "between 1 and"]), (["--max-sessions", "1000"], ["256"]),
    (["--max-time", "soon"], ["soon"]), (["one", "two"], ["two"]), (["--onec"], ["--once"]),
    (["-p", "65536"], ["65535"]),
])
def test_wrong_command_lines(args, words):
    fails(layover("serve", *args), 2, *words)


def test_the_protocol_of_the_tests():
    """PLAN and VERSION follow the program's, or the other tests test nothing."""
    assert len(PLAN) >= 31 and VERSION["protocol"] == 4
