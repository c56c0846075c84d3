# SPDX-License-Identifier: GPL-2.0-only
"""layover top: every turn counted, also those of flows that closed; causes in time; a book that is bounded."""
import itertools
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from conftest import BUILD, LAYOVER, NETNS_DIR, labs, layover, ok, run, serve, wait_for

FLOWS = os.path.join(BUILD, "test-bin", "flows")
serial = itertools.count()

# Sends what says nothing about the flow in two writes, as if it had never heard of Nagle.
STALLED = """
import socket, sys, time
conn = socket.create_connection((sys.argv[1], 5000))
conn.sendall(b"x" * 40)
conn.recv(40)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    conn.sendall(b"x" * 20)
    conn.sendall(b"y" * 20)
    need = 40
    while need:
        need -= len(conn.recv(need))
    time.sleep(0.001)
time.sleep(5)
"""
ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], 5000))
print("ready", flush=True)
conn, _ = listener.accept()
while True:
    data = b""
    while len(data) < 40:
        more = conn.recv(40 - len(data))
        if not more:
            sys.exit()
        data += more
    conn.sendall(data)
"""


@contextmanager
def alone():
    """A namespace with a loopback; yields its name and inode number."""
    netns = f"layovertest-{os.getpid()}-top{next(serial)}"
    ok("ip", "netns", "add", netns)
    try:
        ok("ip", "-n", netns, "link", "set", "lo", "up")
        ok("ip", "netns", "exec", netns, "sysctl", "-qw", "net.core.somaxconn=4096")
        yield netns, os.stat(f"{NETNS_DIR}/{netns}").st_ino
    finally:
        run("ip", "netns", "del", netns)


class Top:
    """top -j, read line by line; counting has begun."""

    def __init__(self, *args, interval=0.3):
        self.child = subprocess.Popen([LAYOVER, "top", "-j", "-d", str(interval), *map(str, args)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.next()

    def next(self):
        line = self.child.stdout.readline()
        assert line, self.child.stderr.read()
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition(self.next()):
            assert time.monotonic() < end, self.lines[-1]
        return self.lines[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.communicate(timeout=10)


class Flows:
    """The flows program, its connections open; go() lets it talk and returns how many trips it made."""

    def __init__(self, netns, *args):
        self.child = subprocess.Popen(["ip", "netns", "exec", netns, FLOWS, *map(str, args)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "ready\n"

    def go(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate(timeout=10)


def of_flow(lines):
    """Turns per flow over all intervals, by the client's address."""
    turns = {}
    for line in lines:
        for flow in line["flows"]:
            turns[flow["local"]] = turns.get(flow["local"], 0) + flow["turns"]
    return turns


@pytest.mark.parametrize("count", [1, 7, 101])
def test_every_turn_is_counted(count):
    """Of open and of closed flows; in the rows, and in the histograms of all flows together."""
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode) as top:
        with Flows(netns, "hold", count, 1009 * count, 2) as flows:
            assert flows.go() == 1009 * count
            line = top.until(lambda line: sum(flow["total_turns"] for flow in line["flows"]) >= 1009 * count, 4)
            assert [flow["total_turns"] for flow in line["flows"]] == [1009] * count
            assert all(flow["peer"] for flow in line["flows"])
        top.until(lambda line: not line["flows"])
        per_flow = of_flow(top.lines)
        assert sorted(per_flow.values()) == [1009] * count
        assert top.lines[-1]["turns"] == {"client": 1009 * count, "server": 1009 * count}
        counters = top.lines[-1]["counters"]
        assert counters["no_place"] == counters["unplaced"] == counters["dropped"] == 0


def test_counts_never_go_backwards():
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode, interval=0.1) as top:
        with Flows(netns, "run", 13, 3) as flows:
            trips = flows.go()
        top.until(lambda line: not line["flows"])
        last = {}
        for line in top.lines:
            for flow in line["flows"]:
                assert flow["total_turns"] >= last.get(flow["local"], 0)
                last[flow["local"]] = flow["total_turns"]
        assert sum(last.values()) == trips


def test_stages_sum():
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode, interval=0.5) as top:
        with Flows(netns, "run", 3, 3) as flows:
            flows.go()
        rows = [flow for line in top.lines for flow in line["flows"] if flow["turns"] > 100]
        while not rows:
            rows = [flow for flow in top.next()["flows"] if flow["turns"] > 100]
        for flow in rows:
            total = sum(stage["mean_ns"] for stage in flow["stages"])
            # The server's last turns may be of the next interval: a part in a hundred.
            assert abs(total - flow["mean_ns"]) < 0.02 * flow["mean_ns"], flow
            keys = {stage["key"] for stage in flow["stages"]}
            assert {"client.send", "server.app", "server.send", "client.receive", "client.network"} <= keys


def test_percentiles_against_the_driver():
    """The driver's own median of the same trips, to the width of a bin and what lies outside the kernel."""
    with Top("--port", 7117, interval=8) as top:
        done = layover("ping", "--lab", "--no-split", "-j", "-t", 5, timeout=40)
        ping = json.loads(done.stdout)
        flow = max(top.next()["flows"], key=lambda flow: flow["turns"])
        assert flow["turns"] >= ping["rtt"]["count"]
        assert 0.75 * ping["rtt"]["p50_ns"] < flow["p50_ns"] < 1.04 * ping["rtt"]["p50_ns"]


def test_a_stall_is_seen_with_its_cause_in_two_seconds(pair):
    with subprocess.Popen(["ip", "netns", "exec", pair.server, sys.executable, "-c", ECHO, pair.server_addr],
                          stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        with Top("--port", 5000, interval=1) as top, \
                subprocess.Popen(["ip", "netns", "exec", pair.client, sys.executable, "-c", STALLED,
                                  pair.server_addr, "31"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True) as client:
            try:
                assert client.stdout.readline() == "ready\n"
                top.next()
                begin = time.monotonic()
                client.stdin.write("go\n")
                client.stdin.flush()
                line = top.until(lambda line: any(flow["cause"] for flow in line["flows"]), 5)
                took = time.monotonic() - begin
                assert took < 2
                flow = line["flows"][0]
                assert flow["cause"] == "nagle" and flow["stalls"] >= 1
                assert any(event["kind"] == "stall" and event["cause"] == "nagle" and
                           35e6 < event["took_ns"] < 300e6 for event in line["events"])
                line = top.until(lambda line: line["flows"] and line["flows"][0]["total_turns"] == 32)
                assert sum(flow["stalls"] for one in top.lines for flow in one["flows"]) >= 25
            finally:
                client.kill()
                server.kill()


def test_more_flows_than_places_are_counted_and_said():
    """40 places are 20 flows of two ends. What has no place is in the stages, and counted as such."""
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode, "--sockets", 40) as top:
        with Flows(netns, "hold", 53, 53 * 11, 4) as flows:
            assert flows.go() == 53 * 11
            line = top.until(lambda line: line["counters"]["no_place"] > 0)
            assert line["sockets"]["open"] == 40
            assert line["counters"]["no_place"] == 2 * 53 - 40
        line = top.until(lambda line: line["sockets"]["open"] == 0)
        assert line["counters"]["no_place"] == 0
        # The two roles, those with and those without a place.
        assert line["turns"]["client"] + line["turns"]["server"] + line["counters"]["unplaced"] == 2 * 53 * 11
        text = layover("top", "-b", "-n", 1, "-d", 0.2, "--sockets", 40)
        assert text.returncode == 0, text.stderr


def test_idle_flows_leave_for_others():
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode, "--sockets", 64) as top, \
            alone() as (second, _):
        with Flows(netns, "hold", 32, 32, 60) as idle:
            assert idle.go() == 32
            top.until(lambda line: line["sockets"]["open"] == 64)
            # The book is full and its sockets are idle: some leave, so that there is room.
            line = top.until(lambda line: line["sockets"]["open"] <= 60)
            assert line["counters"]["no_place"] == 0
            with Flows(second, "hold", 2, 2 * 211, 3) as busy:
                assert busy.go() == 2 * 211
        line = top.until(lambda line: line["sockets"]["open"] == 0)
        assert line["turns"] == {"client": 32 + 2 * 211, "server": 32 + 2 * 211}


def test_flows_that_come_and_go_leave_nothing():
    """More than there are places, one after the other: each is counted, none keeps its place."""
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode) as top:
        with Flows(netns, "churn", 20011) as flows:
            assert flows.go() == 20011
            line = top.until(lambda line: line["sockets"]["open"] == 0 and line["sockets"]["seen"] > 20011)
        # Usually all have a place in time; on a busy machine some are only counted.
        assert sum(line["turns"].values()) + line["counters"]["unplaced"] == 2 * 20011
        assert line["sockets"]["closed"] == line["sockets"]["seen"]
        assert line["counters"]["no_place"] == 0
        with open(f"/proc/{top.child.pid}/status", encoding="ascii") as file:
            assert int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) < 100_000


def test_more_come_and_go_than_the_book_can_take():
    """What found no place in time is counted as well, and none is lost for those that come later."""
    with alone() as (netns, inode), Top("--port", 5999, "--netns", inode, "--sockets", 256) as top:
        for number in (2003, 2011):
            with Flows(netns, "churn", number) as flows:
                assert flows.go() == number
                line = top.until(lambda line: line["sockets"]["open"] == 0 and line["sockets"]["seen"] > 0)
        line = top.next()
        assert sum(line["turns"].values()) + line["counters"]["unplaced"] == 2 * (2003 + 2011)
        assert line["sockets"]["open"] == line["counters"]["no_place"] == 0
        with Flows(netns, "hold", 101, 101 * 3, 3) as flows:
            assert flows.go() == 303
            line = top.until(lambda line: sum(flow["total_turns"] for flow in line["flows"]) == 303)
            assert [flow["total_turns"] for flow in line["flows"]] == [3] * 101


def test_filters():
    with alone() as (netns, inode), alone() as (other, _):
        with Flows(netns, "hold", 3, 3 * 101, 20) as wanted, Flows(other, "hold", 5, 5 * 101, 20) as unwanted:
            with Top("--port", 5999, "--netns", inode) as top, Top("--pid", wanted.child.pid) as by_pid, \
                    Top("--comm", "flows") as by_comm, Top("--comm", "nothing") as by_none:
                wanted.go()
                unwanted.go()
                top.until(lambda line: len(line["flows"]) == 3)
                by_pid.until(lambda line: len(line["flows"]) == 3)
                by_comm.until(lambda line: len(line["flows"]) == 8)
                assert not by_none.next()["flows"]


def test_lab():
    before = labs()
    done = layover("top", "--lab", "-j", "-n", 4, timeout=40)
    assert done.returncode == 0, done.stderr
    flows = json.loads(done.stdout.splitlines()[-1])["flows"]
    assert len(flows) == 3
    stalled = [flow for flow in flows if flow["cause"] == "nagle"]
    assert len(stalled) == 1 and 35e6 < stalled[0]["p50_ns"] < 60e6
    if len(os.sched_getaffinity(0)) > 1:
        assert sum(flow["cpu_softirq"] != flow["cpu_reader"] for flow in flows) >= 1
    assert set(labs()) <= set(before)


def test_batch():
    with alone() as (netns, inode), Flows(netns, "run", 3, 3) as flows:
        child = subprocess.Popen([LAYOVER, "top", "-b", "-n", "4", "-d", "0.5", "--netns", str(inode)],
                                 stdout=subprocess.PIPE, text=True)
        wait_for(lambda: child.stdout.readline().strip())
        flows.go()
        out = child.stdout.read()
        assert child.wait(20) == 0
        lines = out.splitlines()
        assert sum(line.startswith("PROGRAM ") for line in lines) == 4
        assert sum(line.startswith("flows ") for line in lines) >= 6
        assert max(map(len, lines)) <= 80, max(lines, key=len)


@pytest.mark.parametrize("args, code, said", [
    (["--sort", "nonsense"], 2, "there is no column 'nonsense'"),
    (["-d", "0"], 2, "at least 100ms"),
    (["-n", "0"], 2, "--count"),
    (["--addr", "x"], 2, "not an IPv4 or IPv6 address"),
    (["extra"], 2, "takes no argument"),
])
def test_usage_errors(args, code, said):
    done = layover("top", "-b", *args)
    assert done.returncode == code and said in done.stderr, done.stderr


def test_needs_privileges():
    done = run("setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", LAYOVER,
               "top", "-b", "-n", "1")
    assert done.returncode == 3 and "not allowed" in done.stderr, done.stderr


def programs_of(pid):
    """The ids of the BPF programs that a process has open."""
    ids = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as file:
            ids |= set(re.findall(r"^prog_id:\s+(\d+)", file.read(), re.M))
    return sorted(ids)


def loaded(pid):
    """The same once they do not change any more: probing is over."""
    first = programs_of(pid)
    time.sleep(0.3)
    return len(first) >= 10 and first == programs_of(pid) and first


def test_ping_is_not_slowed(pair):
    """Without top no program of ours looks into the book: the verifier has removed every call."""
    with serve(pair.server, pair.server_addr) as server:
        child = subprocess.Popen(["ip", "netns", "exec", pair.client, LAYOVER, "ping", server.address, "--split",
                                  "-t", "60"], stdout=subprocess.DEVNULL)
        try:
            ids = wait_for(lambda: loaded(child.pid), 15)
            for number in ids:
                code = ok("bpftool", "prog", "dump", "xlated", "id", number)
                assert "call pc" not in code and "top_heads" not in code, code
        finally:
            child.kill()
            child.wait()
