# SPDX-License-Identifier: GPL-2.0-only
"""remedy: a socket option of somebody else's live socket, planned, applied, read back, undone."""
import json
import signal
import sys
from contextlib import contextmanager

import pytest

from conftest import LAYOVER, layover, ok, run, started, wait_for
from test_diagnose import SERVER
from test_driver import fails

# Two small writes a trip; tells its median trip in ms over every half second, and its socket option when asked.
CLIENT = """
import socket, sys, time
conn = socket.create_connection((sys.argv[1], 5000))
print("ready", flush=True)
while True:
    end, times = time.monotonic() + 0.5, []
    while time.monotonic() < end:
        begun = time.monotonic()
        conn.sendall(b"x" * 20)
        conn.sendall(b"y" * 20)
        need = 40
        while need:
            need -= len(conn.recv(need))
        times.append(time.monotonic() - begun)
    print(sorted(times)[len(times) // 2] * 1000, conn.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
          conn.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), flush=True)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A journal of the test's own."""
    monkeypatch.setenv("LAYOVER_STATE", str(tmp_path))
    return tmp_path / "remedy.json"


@contextmanager
def sick_pair_client(pair):
    with started(sys.executable, "-c", CLIENT, pair.server_addr, netns=pair.client) as client:
        assert client.stdout.readline() == "ready\n"
        yield client


@contextmanager
def sick_pair(pair):
    with started(sys.executable, "-c", SERVER, pair.server_addr, netns=pair.server) as server:
        assert server.stdout.readline() == "ready\n"
        with sick_pair_client(pair) as client:
            yield client


def next_report(client):
    """(median ms, TCP_NODELAY, SO_RCVBUF) of a half second that begins after now."""
    client.stdout.readline()
    words = client.stdout.readline().split()
    return float(words[0]), int(words[1]), int(words[2])


def remedy(pair, *args):
    return ok(LAYOVER, "remedy", *args, netns=pair.client)


def test_nodelay_heals_and_undo_brings_the_stall_back(pair, state):
    with sick_pair(pair) as client:
        assert next_report(client)[0] > 30
        plan = remedy(pair, "--port", 5000, "nodelay")
        assert f"process {client.pid}" in plan and "0 -> 1" in plan and "Nothing was changed" in plan
        assert next_report(client)[1] == 0 and not state.exists()
        done = json.loads(remedy(pair, "--port", 5000, "nodelay", "--apply", "-j"))
        assert done["applied"] and [(s["pid"], s["before"], s["after"], s["error"]) for s in done["sockets"]] == [
            (client.pid, 0, 1, 0)]
        median, nodelay, _ = next_report(client)
        assert median < 5 and nodelay == 1
        assert len(json.loads(state.read_text())) == 1
        # A second time: the journal keeps the oldest value.
        remedy(pair, "--port", 5000, "nodelay", "--apply")
        assert [entry["before"] for entry in json.loads(state.read_text())] == [0]
        assert "1 restored" in remedy(pair, "undo")
        median, nodelay, _ = next_report(client)
        assert median > 30 and nodelay == 0 and not state.exists()
        assert "nothing to undo" in remedy(pair, "undo")


def test_from_another_namespace_by_pid(pair, state):
    with sick_pair(pair) as client:
        fails(layover("remedy", "--port", 5000, "nodelay"), 1, "no connected TCP socket", "--pid")
        out = json.loads(ok(LAYOVER, "remedy", "--port", 5000, "--pid", client.pid, "nodelay", "--apply", "-j"))
        assert len(out["sockets"]) == 1
        assert next_report(client)[1] == 1
        assert "1 restored" in ok(LAYOVER, "remedy", "undo")
        assert next_report(client)[1] == 0


def test_rcvbuf_is_restored_to_the_byte(pair, state):
    with sick_pair(pair) as client:
        before = next_report(client)[2]
        out = json.loads(remedy(pair, "--port", 5000, "rcvbuf=50000", "--apply", "-j"))
        assert out["sockets"][0]["before"] == before and out["sockets"][0]["after"] == 100000
        assert next_report(client)[2] == 100000
        remedy(pair, "undo")
        assert next_report(client)[2] == before


def test_a_closed_socket_is_no_failure(pair, state):
    with sick_pair(pair):
        remedy(pair, "--port", 5000, "nodelay", "--apply")
    assert "0 restored, 1 closed" in remedy(pair, "undo")


def test_undo_after_kill_between_journal_and_change(pair, state):
    """A journal that tells of what was never done restores what is there already."""
    with sick_pair(pair) as client:
        remedy(pair, "--port", 5000, "nodelay", "--apply")
        kept = state.read_text()
        remedy(pair, "undo")
        state.write_text(kept)
        assert "1 restored" in remedy(pair, "undo")
        assert next_report(client)[1] == 0


def test_delack_max(pair, state):
    """Either it works and can be undone, or nothing is changed and it says why."""
    with sick_pair(pair):
        done = run(LAYOVER, "remedy", "--port", "5000", "delack-max=20", "--apply", netns=pair.client)
        if done.returncode:
            assert done.returncode == 1 and "could not be undone" in done.stderr and not state.exists()
        else:
            assert "20000" in done.stdout
            assert "1 restored" in remedy(pair, "undo")


@pytest.mark.parametrize("args,words", [([], ["name a remedy"]), (["nodelay"], ["--port"]), (["magic", "-p", 1], ["none of"]),
                                        (["nodelay=1", "-p", 1], ["no value"]), (["rcvbuf", "-p", 1], ["NAME=VALUE"]),
                                        (["rcvbuf=x", "-p", 1], ["rcvbuf"]), (["delack-max=1", "-p", 1], ["between 8"]),
                                        (["nodelay", "-p", 1, "--new"], ["--apply"]), (["nodelay", "-p", 1, "-t", 1], ["--new"])])
def test_bad_lines(args, words):
    fails(layover("remedy", *args), 2, *words)


def test_diagnose_tries_it_and_takes_it_back(pair, state):
    with sick_pair(pair) as client:
        out = json.loads(ok(LAYOVER, "diagnose", "--pid", client.pid, "--port", 5000, "-t", 2, "--try", "-j"))
        trial = out["try"]
        assert trial["before_p50_ns"] > 30e6 and trial["with_p50_ns"] < 1e6, trial
        assert trial["with_turns"] > 10 * trial["before_turns"]
        median, nodelay, _ = next_report(client)
        assert median > 30 and nodelay == 0 and not state.exists()


def test_diagnose_tries_nothing_on_top_of_a_remedy(pair, state):
    with sick_pair(pair) as client:
        ok(LAYOVER, "remedy", "--pid", client.pid, "--port", 5000, "rcvbuf=50000", "--apply")
        done = layover("diagnose", "--pid", client.pid, "--port", 5000, "-t", 2, "--try")
        assert done.returncode == 1 and "remedy undo" in done.stderr
        ok(LAYOVER, "remedy", "undo")


def test_diagnose_try_in_the_lab(state):
    out = json.loads(ok(LAYOVER, "diagnose", "--lab", "write-write-read", "-t", 2, "--try", "-j"))
    assert out["try"]["before_p50_ns"] > 30e6 and out["try"]["with_p50_ns"] < 1e6
    assert not state.exists()


@contextmanager
def changing_new(*args):
    with started(LAYOVER, "remedy", "--port", "5000", "nodelay", "--new", "--apply", *args) as child:
        assert child.stdout.readline().startswith("Watching for new")
        yield child


def attached():
    """How many of our programs the cgroups of this machine have."""
    return json.dumps(json.loads(ok("bpftool", "-j", "cgroup", "tree") or "[]")).count("remedy_new")


def test_new_connections(pair, state):
    """Those made while it runs, and no other ones; undo brings the stall back."""
    with sick_pair(pair) as old:
        with changing_new() as child:
            with sick_pair_client(pair) as client:
                median, nodelay, _ = next_report(client)
                assert median < 5 and nodelay == 1
                assert next_report(old)[1] == 0
                child.send_signal(signal.SIGINT)
                out = child.communicate(timeout=10)[0]
                assert child.returncode == 0 and f"process {client.pid}" in out, out
                # Both ends of it: the server's, too.
                assert out.count("0 -> 1") == 2 and "2 new connections" in out
                with sick_pair_client(pair) as later:
                    assert next_report(later)[1] == 0
                assert "2 restored" in ok(LAYOVER, "remedy", "undo")
                # Reports from before it are still to be read.
                wait_for(lambda: next_report(client)[:2] > (30, -1), 10)
                assert next_report(client)[1] == 0 and not state.exists()


def test_new_connections_of_a_cgroup(pair, state, cgroups):
    cgroup = cgroups()
    with sick_pair(pair), changing_new("--cgroup", cgroup.path) as child:
        with started(*cgroup.inside(pair.client, sys.executable, "-c", CLIENT, pair.server_addr)) as inner:
            assert inner.stdout.readline() == "ready\n"
            with sick_pair_client(pair) as outer:
                assert (next_report(inner)[1], next_report(outer)[1]) == (1, 0)
        child.send_signal(signal.SIGTERM)
        assert "1 new connections" in child.communicate(timeout=10)[0]
    ok(LAYOVER, "remedy", "undo")


def test_new_connections_for_a_time(pair, state):
    done = json.loads(ok(LAYOVER, "remedy", "--port", 5000, "nodelay", "--new", "--apply", "-t", "300ms", "-j"))
    assert done["applied"] and done["sockets"] == []


def test_killed_while_it_waits_for_new_connections(pair, state):
    before = attached()
    with changing_new() as child:
        assert attached() == before + 1
        child.kill()
        child.wait(10)
    wait_for(lambda: attached() == before)
