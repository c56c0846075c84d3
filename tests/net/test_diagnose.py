# SPDX-License-Identifier: GPL-2.0-only
"""watch and diagnose: other programs' flows, the causes of their waits, each made on purpose."""
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from conftest import LAYOVER, inside, layover, ok, serve, started, wait_for
from steady import steady
from test_driver import fails

two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")

# A command channel as others write it: a header, then a body.
SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 5000))
print("ready", flush=True)
while True:
    conn, _ = listener.accept()
    import threading
    def talk(conn):
        while True:
            need, data = 40, b""
            while len(data) < need:
                more = conn.recv(need - len(data))
                if not more:
                    return
                data += more
            conn.sendall(data)
    threading.Thread(target=talk, args=(conn,), daemon=True).start()
"""
CLIENT = """
import socket, sys, time
conn = socket.create_connection((sys.argv[1], 5000))
if sys.argv[2] == "nodelay":
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
end = time.monotonic() + float(sys.argv[3])
print("ready", flush=True)
while time.monotonic() < end:
    if sys.argv[2] == "one":
        conn.sendall(b"x" * 40)
    else:
        conn.sendall(b"x" * 20)
        conn.sendall(b"y" * 20)
    need = 40
    while need:
        need -= len(conn.recv(need))
    time.sleep(0.001)
"""


def diagnose(*args, seconds=2, code=0):
    done = layover("diagnose", "-j", "-t", seconds, *args, timeout=40)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def causes(flow):
    return {(cause["cause"], cause["grade"]) for cause in flow["causes"]}


@contextmanager
def program(netns, script, *args):
    with started(sys.executable, "-c", script, *args, netns=netns) as child:
        assert child.stdout.readline() == "ready\n"
        yield child


def known(flow):
    """Without the waits for a CPU that others on this machine cause: they are real, but not the scenario's."""
    return {(cause["cause"], cause["grade"]) for cause in flow["causes"] if cause["cause"] != "run_queue"}


def scenario(name, seconds=3):
    def check():
        out = diagnose("--lab", name, seconds=seconds)
        assert len(out["flows"]) == 1 and out["counters"]["dropped"] == 0, out
        flow = out["flows"][0]
        assert flow["both_ends"] and flow["turns"] > 5
        return flow
    return steady(check)


@pytest.mark.parametrize("name", ["write-write-read-nodelay", "one-write"])
def test_healthy(name):
    flow = scenario(name)
    assert not known(flow) and not flow["placement"], flow


def test_healthy_over_a_hundred_thousand_trips():
    flow = scenario("healthy", seconds=9)
    assert flow["turns"] > 100_000 and not known(flow) and not flow["placement"], flow


def test_write_write_read():
    flow = scenario("write-write-read")
    assert known(flow) == {("nagle", "proven"), ("delayed_ack", "proven")}, flow
    verdicts = [cause for cause in flow["causes"] if cause["cause"] != "run_queue"]
    assert {cause["cause"]: cause["end"] for cause in verdicts} == {"nagle": "client", "delayed_ack": "server"}
    for cause in verdicts:
        assert 35e6 < cause["wait_p50_ns"] < 60e6 and cause["saving"] > 0.7, cause
    slow = flow["clusters"][-1]
    assert (slow["speed"], slow["writes"], slow["sent_bytes"], slow["received_bytes"]) == ("slow", 2, 40, 40)
    # Both ends, in the order of things.
    story = [(moment["end"], moment["what"]) for moment in flow["timeline"]]
    assert [end for end, _ in story][-5:] == ["server", "server", "client", "client", "client"], story
    times = [moment["at_ns"] for moment in flow["timeline"]]
    assert times == sorted(times) and times[-1] - times[0] > 35e6
    words = " ".join(what for _, what in story)
    for word in ("held back", "put off", "timer fires", "held bytes leave", "reply is received"):
        assert word in words, story


def test_reply_in_two_writes():
    flow = scenario("reply-in-two-writes")
    assert known(flow) == {("nagle", "proven"), ("delayed_ack", "proven")}, flow
    ends = {cause["cause"]: cause["end"] for cause in flow["causes"] if cause["cause"] != "run_queue"}
    assert ends == {"nagle": "server", "delayed_ack": "client"}


@pytest.mark.parametrize("name,cause,end,low,high", [
    ("slow-server", "slow_server", "server", 2.9e6, 6e6),
    ("loss", "tail_loss", "client", 150e6, 400e6),
    ("loss-rto", "rto", "client", 350e6, 700e6),
    ("tbf", "qdisc", "client", 1e6, 50e6),
    ("slow-reader", "slow_reader", "server", 4.9e6, 9e6),
    ("zero-window", "zero_window", "server", 290e6, 400e6),
    ("small-rcvbuf", "receive_window", "server", 1e6, 50e6),
])
def test_one_cause(name, cause, end, low, high):
    flow = scenario(name)
    assert known(flow) == {(cause, "proven")}, flow
    verdict = next(verdict for verdict in flow["causes"] if verdict["cause"] == cause)
    assert verdict["end"] == end and low < verdict["wait_p50_ns"] < high, flow


@two_cpus
def test_another_task_on_the_readers_cpu():
    flow = scenario("cpu-hog")
    assert causes(flow) == {("run_queue", "proven")}, flow
    verdict = max(flow["causes"], key=lambda verdict: verdict["saving"])
    assert verdict["end"] == "server" and 5e6 < verdict["wait_p50_ns"] < 60e6, flow
    # It has the CPU 20 of 25 ms. Others may have it when it sleeps.
    assert verdict["behind"]["comm"] == "hog" and verdict["behind"]["turns"] > 0.3 * verdict["turns"], verdict


def fast(flow):
    return sum(cluster["count"] for cluster in flow["clusters"] if cluster["p50_ns"] < 1e6)


def test_a_small_rcvbuf_cures_some():
    """600 bytes are no small segment to a sender whose MSS is half of a tiny window; how many turns still wait is
    chance, and as each takes a thousand times as long, so does nearly all of the time."""
    def check():  # a server without its CPU lets the tiny window fill
        sick, cured = [[scenario(name) for _ in range(3)] for name in ("header-body", "header-body-small-rcvbuf")]
        for flow in sick:
            assert known(flow) == {("nagle", "proven"), ("delayed_ack", "proven")}
        for flow in cured:
            assert known(flow) <= known(sick[0])
        assert max(fast(flow) for flow in cured) > 2 * max(1, *(fast(flow) for flow in sick))
    steady(check)


def test_one_of_many_in_the_lab():
    out = diagnose("--lab", "one-of-many", seconds=3)
    ill = [flow for flow in out["flows"] if known(flow)]
    assert len(out["flows"]) == 17 and len(ill) == 1, out
    assert known(ill[0]) == {("nagle", "proven"), ("delayed_ack", "proven")}


def placements(flow):
    return {(place["key"], place["end"], place["cpu_from"], place["cpu_to"]) for place in flow["placement"]}


@two_cpus
def test_wake_ups_across_cpus():
    """The lab's client is on the first CPU and its server on the second; veth's softirq runs where the sender is."""
    first, second = sorted(os.sched_getaffinity(0))[:2]

    def check():  # a reader whose CPU was taken away may find its message there
        flow = scenario("cross-cpu")
        assert not known(flow)
        assert placements(flow) == {("cross_cpu_wakeup", "server", first, second),
                                    ("cross_cpu_wakeup", "client", second, first)}
        for place in flow["placement"]:
            assert place["turns"] > 0.9 * flow["turns"] and 0.05 < place["time"] < 0.9
    steady(check)


@two_cpus
def test_a_hop_by_rps():
    first, second = sorted(os.sched_getaffinity(0))[:2]
    flow = scenario("rps")
    assert not known(flow)
    assert placements(flow) == {("rps_hop", "server", first, second), ("cross_cpu_wakeup", "server", second, first)}


def test_cork_on_both_ends():
    flow = scenario("cork", seconds=4)
    assert known(flow) == {("cork", "proven")}, flow
    assert {cause["end"] for cause in flow["causes"] if cause["cause"] == "cork"} == {"client", "server"}
    assert all(150e6 < cause["wait_p50_ns"] < 450e6 for cause in flow["causes"] if cause["cause"] == "cork")


def test_other_programs(pair):
    """The sick pair among healthy ones on the same port, all running before the hooks were there."""
    with program(pair.server, SERVER, pair.server_addr), \
            program(pair.client, CLIENT, pair.server_addr, "two", "8") as sick, \
            program(pair.client, CLIENT, pair.server_addr, "nodelay", "8"), \
            program(pair.client, CLIENT, pair.server_addr, "one", "8"):
        out = diagnose("--port", 5000, "--netns", namespace_number(pair.client), seconds=3)
    assert len(out["flows"]) == 3 and not out["healthy"]
    ill = [flow for flow in out["flows"] if known(flow)]
    assert len(ill) == 1 and f"[{sick.pid}]" in ill[0]["client"], out
    assert known(ill[0]) == {("nagle", "proven"), ("delayed_ack", "proven")}


PERL_CLIENT = """
use IO::Socket::INET;
my $conn = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 5000) or die;
$| = 1;
print "ready\n";
while (1) {
    syswrite($conn, "x" x 20);
    syswrite($conn, "y" x 20);
    for (my $need = 40; $need; $need -= sysread($conn, my $data, $need) || die) {}
}
"""


def test_a_client_in_another_language_is_cured(pair):
    """Perl's sockets come without TCP_NODELAY; --try takes the stall off the running program, and puts it back."""
    with program(pair.server, SERVER, pair.server_addr), \
            started("perl", "-e", PERL_CLIENT, pair.server_addr, netns=pair.client) as client:
        assert client.stdout.readline() == "ready\n"
        args = ("--port", 5000, "--netns", namespace_number(pair.client))
        out = diagnose(*args, "--try")
        flow, = out["flows"]
        assert f"perl[{client.pid}]" == flow["client"] and known(flow) == {("nagle", "proven"), ("delayed_ack", "proven")}
        assert out["try"]["before_p50_ns"] > 35e6 and out["try"]["with_p50_ns"] < 1e6, out["try"]
        flow, = diagnose(*args)["flows"]
        assert known(flow) == {("nagle", "proven"), ("delayed_ack", "proven")}


if shutil.which("redis-server") and shutil.which("redis-benchmark"):  # not asked for: its package starts a service
    def test_redis_is_healthy(pair):
        with started("redis-server", "--bind", pair.server_addr, "--port", "6379", "--save", "", "--protected-mode", "no",
                     netns=pair.server):
            wait_for(lambda: ":6379 " in ok("ss", "-ltn", netns=pair.server))
            with started("redis-benchmark", "-h", pair.server_addr, "-c", "5", "-n", "100000000", "-t", "set,get", "-q",
                         netns=pair.client):
                out = diagnose("--port", 6379, "--netns", namespace_number(pair.client))
        assert out["flows"] and not [flow for flow in out["flows"] if known(flow)], out


def test_exit_4_for_a_proven_stall(pair):
    with program(pair.server, SERVER, pair.server_addr), program(pair.client, CLIENT, pair.server_addr, "two", "9"):
        assert not diagnose("--port", 5000, "--netns", namespace_number(pair.client), "--fail-if", "stall", code=4)["healthy"]

    def check():  # that others on this machine had the CPU is a stall, too
        with program(pair.server, SERVER, pair.server_addr), program(pair.client, CLIENT, pair.server_addr, "one", "9"):
            assert diagnose("--port", 5000, "--netns", namespace_number(pair.client), "--fail-if", "stall", code=0)["flows"]
    steady(check)


def test_list_of_scenarios_fits_a_terminal():
    done = layover("diagnose", "--lab", "list")
    assert done.returncode == 0 and "header-body" in done.stdout
    assert all(len(line) < 80 for line in done.stdout.splitlines()), done.stdout


def test_text_fits_a_terminal():
    done = layover("diagnose", "--lab", "write-write-read", "-t", 1)
    assert done.returncode == 0
    assert all(len(line) < 80 for line in done.stdout.splitlines()), done.stdout
    for word in ("nagle (proven)", "delayed_ack (proven)", "TCP_NODELAY", "the delayed-ACK timer fires"):
        assert word in done.stdout


@pytest.mark.parametrize("args,words", [(["--lab", "nonsense"], ["scenario", "--lab list"]), (["--port", "0"], ["--port"]),
                                        (["--addr", "x"], ["IPv4 or IPv6"]), (["--fail-if", "rain"], ["stall"]),
                                        (["-t", "0"], ["--time"]), (["--cgroup", "/nonexistent"], ["no cgroup"]), (["x"], ["no argument"])])
def test_bad_lines(args, words):
    fails(layover("diagnose", *args), 2, *words)


def test_nothing_to_see():
    fails(layover("diagnose", "--port", 9, "-t", "200ms"), 1, "nothing was seen")


def watch(*args):
    return [json.loads(line) for line in ok(LAYOVER, "watch", "-j", *args, timeout=30).splitlines()]


def namespace_number(netns):
    return os.stat(f"/run/netns/{netns}").st_ino


def test_watch_counts_every_turn(pair):
    """The driver knows how many trips there were."""
    with serve(pair.server, pair.server_addr), \
            started(LAYOVER, "watch", "-j", "--port", "7117", "-i", "500ms", "--netns",
                    str(namespace_number(pair.client))) as watcher:
        time.sleep(1.5)
        trips = json.loads(ok(LAYOVER, "ping", "--no-split", "-j", pair.server_addr, "-i", 5003, "-w", 0,
                              netns=pair.client))["rtt"]
        time.sleep(1)
        watcher.send_signal(signal.SIGINT)
        lines = [json.loads(line) for line in watcher.communicate(timeout=10)[0].splitlines()]
    flows = [flow for line in lines for flow in line["flows"] if flow["role"] == "client" and flow["turn"]["count"] > 50]
    count = sum(flow["turn"]["count"] for flow in flows)
    # 16 unmeasured trips precede each block; a client's last turn is told when the next one begins.
    assert 5003 <= count <= 5003 + 16 * 60, count
    longest = max(flow["turn"]["max_ns"] for flow in flows)
    assert longest <= trips["max_ns"] * 3 + 10e6
    for flow in flows:
        assert abs(sum(stage["share"] for stage in flow["stages"]) - 1) < 1e-6


def test_watch_filters(pair):
    def check(args, seen):
        flows = watch("-n", 1, "-i", "700ms", "--port", 5000, *args)[0]["flows"]
        assert bool(flows) == seen, (args, flows)
        for flow in flows:
            assert flow["turn"]["count"] > 50 and flow["both_ends"] and flow["remote"] == f"{pair.server_addr}:5000"

    with program(pair.server, SERVER, pair.server_addr) as server, \
            program(pair.client, CLIENT, pair.server_addr, "one", "30") as client:
        for args, seen in ((["--pid", client.pid], True), (["--pid", server.pid], True), (["--pid", os.getpid()], False),
                           (["--addr", pair.client_addr], True), (["--addr", "192.0.2.9"], False),
                           (["--comm", "nosuch"], False)):
            steady(functools.partial(check, args, seen))


def test_watch_by_cgroup(pair, cgroups):
    """The server runs in one, the client in another; each of them is enough for the flow to fit."""
    here, there, empty = cgroups(), cgroups(), cgroups()
    with started(*here.inside(pair.server, sys.executable, "-c", SERVER, pair.server_addr)) as server:
        assert server.stdout.readline() == "ready\n"
        with started(*there.inside(pair.client, sys.executable, "-c", CLIENT, pair.server_addr, "one", "10")) as client:
            assert client.stdout.readline() == "ready\n"
            for cgroup, seen in ((here.path, True), (os.path.basename(there.path), True), (empty.path, False)):
                flows = watch("-n", 1, "-i", "700ms", "--port", 5000, "--cgroup", cgroup)[0]["flows"]
                assert [flow["remote"] for flow in flows] == [f"{pair.server_addr}:5000"] * seen, (cgroup, flows)


def test_a_server_alone_is_told_so(pair):
    """The client's host cannot be seen: here it is a client whose flow has no turns of its own to match."""
    with program(pair.server, SERVER, pair.server_addr), program(pair.client, CLIENT, pair.server_addr, "two", "6"):
        text = ok(LAYOVER, "watch", "-n", 1, "-i", "700ms", "--port", 5000, "-s")
    assert "client.held" in text and all(len(line) < 100 for line in text.splitlines())


def test_one_way_flows_are_not_forced_into_turns(pair):
    with serve(pair.server, pair.server_addr), \
            started(LAYOVER, "load", pair.server_addr, "-j", "-m", "100", "-r", "2000", "-t", "5", netns=pair.client):
        time.sleep(1)
        flows = watch("-n", 1, "-i", "1s", "--port", 7117, "--netns", namespace_number(pair.client))[0]["flows"]
    bulk = [flow for flow in flows if flow["turn"]["count"] == 0 or flow["one_way"] > 0]
    assert not [flow for flow in flows if flow["turn"]["count"] > 1500], flows
    assert bulk or not flows, flows


def test_without_privileges():
    drop = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    for command in ("watch", "diagnose"):
        done = subprocess.run(inside(None, [*drop, LAYOVER, command, "--port", "1"]), capture_output=True, text=True,
                              timeout=20, check=False)
        assert done.returncode == 3 and "setcap" in done.stderr, done.stderr


MANY_SERVER = """
import selectors, socket, sys
poller, listener = selectors.DefaultSelector(), socket.create_server((sys.argv[1], 5000), backlog=1024)
poller.register(listener, selectors.EVENT_READ)
owed = {}
print("ready", flush=True)
while True:
    for key, _ in poller.select():
        if key.fileobj is listener:
            conn, _ = listener.accept()
            poller.register(conn, selectors.EVENT_READ)
            owed[conn] = 0
            continue
        data = key.fileobj.recv(4096)
        if not data:
            poller.unregister(key.fileobj)
            key.fileobj.close()
            continue
        owed[key.fileobj] += len(data)
        while owed[key.fileobj] >= 40:
            key.fileobj.send(b"r" * 40)
            owed[key.fileobj] -= 40
"""
MANY_CLIENT = """
import socket, sys, threading
def trip(conn, *parts):
    for part in parts:
        conn.send(part)
    need = 40
    while need:
        need -= len(conn.recv(need))
healthy = [socket.create_connection((sys.argv[1], 5000)) for _ in range(211)]
sick = socket.create_connection((sys.argv[1], 5000))
def ill():
    while True:
        trip(sick, b"x" * 20, b"y" * 20)
threading.Thread(target=ill, daemon=True).start()
print(sick.getsockname()[1], flush=True)
while True:
    for conn in healthy:
        trip(conn, b"x" * 40)
"""


def test_one_sick_flow_among_many(pair):
    with program(pair.server, MANY_SERVER, pair.server_addr), \
            started(sys.executable, "-c", MANY_CLIENT, pair.server_addr, netns=pair.client) as client:
        sick = client.stdout.readline().strip()
        out = diagnose("--port", 5000, "--netns", namespace_number(pair.client), seconds=4)
    assert len(out["flows"]) == 212 and out["counters"]["dropped"] == 0
    accused = [flow for flow in out["flows"] if causes(flow) & {("nagle", "proven"), ("delayed_ack", "proven")}]
    assert [flow["client_addr"].rsplit(":", 1)[1] for flow in accused] == [sick]
    assert not [flow for flow in out["flows"] if flow not in accused and known(flow)]
