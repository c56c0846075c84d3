# SPDX-License-Identifier: GPL-2.0-only
"""The driver's ways to move messages: I/O methods, transports, writes, socket options."""

import json

import pytest

from conftest import layover, ok, ping, serve
from peer import connect, hello
from test_driver import fails

METHODS = ["block", "spin", "select", "poll", "epoll", "uring", "uring-poll=5000", "uring-fixed"]
TRIPS = 211


def lab(*args, **kwargs):
    return ping("--lab", "-i", TRIPS, "-w", 17, *args, **kwargs)


@pytest.mark.parametrize("size", [1, 64, 65507])
@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_both_ends(method, proto, size):
    out = lab(*proto, "--io", method, "--server-io", method, "-m", size, "--verify", "--no-split")
    assert out["rtt"]["count"] == TRIPS and out["rtt"]["lost"] == 0
    assert out["load"]["io"] == out["load"]["server_io"] == method.split("=")[0]


@pytest.mark.parametrize("method", METHODS)
def test_split_under_every_method(method, tmp_path):
    for proto in ([], ["--udp"]):
        dump = tmp_path / "trips.csv"
        out = lab(*proto, "--io", method, "--server-io", method, "--split", "--dump", dump)
        counters = out["counters"]
        # A datagram may be read on one CPU before it is announced on the other, and missed when the first is preempted.
        least = TRIPS - 2 if not proto else 0.9 * TRIPS
        assert counters["matched"] + counters["partial"] >= least and counters["dropped"] == 0, counters
        header, *rows = (line.split(",") for line in dump.read_text().splitlines())
        stages = [i for i, name in enumerate(header) if name.endswith("_ns") and "." in name]
        rtt = header.index("rtt_ns")
        for row in rows:
            assert sum(int(row[i] or 0) for i in stages) == int(row[rtt]), row
            assert all(int(row[i] or 0) >= 0 for i in stages), row


def test_spinning_needs_no_wakeup():
    """Two CPUs that never sleep answer in less than half the time of two that do."""
    spin = lab("--io", "spin", "--server-io", "spin", "--no-split")
    block = lab("--no-split")
    assert spin["rtt"]["p50_ns"] < 0.5 * block["rtt"]["p50_ns"]


@pytest.mark.parametrize("transport,size", [("mcast", 64), ("mcast", 1448), ("raw", 16), ("raw", 1400), ("unix", 1),
                                            ("unix", 100000)])
@pytest.mark.parametrize("method", ["block", "epoll", "uring"])
def test_transports(transport, size, method):
    out = lab("--transport", transport, "-m", size, "--io", method, "--server-io", method, "--verify")
    assert out["load"]["protocol"] == transport
    assert out["rtt"]["count"] == TRIPS and out["rtt"]["lost"] == 0


def test_raw_over_ipv6():
    assert lab("--transport", "raw", "-6", "--verify")["rtt"]["count"] == TRIPS


def test_multicast_has_a_split():
    out = lab("--transport", "mcast", "--split")
    assert out["counters"]["matched"] >= TRIPS - 2


@pytest.mark.parametrize("args", [["--crr"], ["--transport", "raw"], ["--transport", "unix"]])
def test_what_cannot_be_split_says_so(args):
    done = layover("ping", "--lab", "-i", 11, *args)
    assert done.returncode == 0 and "latency only: the hooks follow" in done.stderr
    fails(layover("ping", "--lab", "-i", 11, "--split", *args), 3, "no split")


def test_two_raw_sessions_do_not_mix(pair):
    """Each end hears the other session's packets, too."""
    with serve(pair.server, pair.server_addr):
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(ping, pair.server_addr, "--transport", "raw", "-i", 503, "--verify",
                                netns=pair.client) for _ in range(2)]
            for run in runs:
                rtt = run.result()["rtt"]
                assert (rtt["count"], rtt["lost"], rtt["duplicated"]) == (503, 0, 0)


def test_connect_request_close():
    crr = lab("--crr", "--verify")
    plain = lab("--no-split")
    assert crr["rtt"]["count"] == TRIPS
    # The handshake alone is one more round trip.
    assert crr["rtt"]["p50_ns"] > 1.5 * plain["rtt"]["p50_ns"]


@pytest.mark.parametrize("sizes", [(100, 10000), (10000, 1), (1, 100000)])
def test_request_and_reply_of_different_sizes(sizes):
    out = lab("-m", "%d,%d" % sizes, "--verify", "--split")
    assert (out["load"]["bytes"], out["load"]["reply_bytes"]) == sizes
    assert out["rtt"]["count"] == TRIPS
    if min(sizes) > 1:
        assert out["counters"]["matched"] + out["counters"]["partial"] == TRIPS


@pytest.mark.parametrize("method", ["block", "epoll", "uring"])
def test_messages_in_several_writes(method):
    for args in (["--writes", "20,20,24"], ["--reply-writes", "1,63"], ["--writes", "1,2", "--reply-writes", "2,1"]):
        out = lab(*args, "--verify", "--io", method, "--server-io", method)
        assert out["rtt"]["count"] == TRIPS


def test_nagle_holds_the_second_write():
    """RFC 896 and RFC 1122, 4.2.3.2: the second small write waits for a delayed ACK, about 40 ms."""
    slow = ping("--lab", "-i", 23, "-w", 1, "--writes", "20,20", "--no-nodelay", "--no-split")
    assert 30e6 < slow["rtt"]["p50_ns"] < 220e6
    for cure in (["--nodelay"], ["--no-nodelay", "--cork", "flush"]):
        assert ping("--lab", "-i", 23, "-w", 1, "--writes", "20,20", "--no-split", *cure)["rtt"]["p50_ns"] < 5e6


def test_cork_without_flush_waits_for_its_timer():
    slow = ping("--lab", "-i", 7, "-w", 1, "--cork", "hold", "--no-split")
    assert slow["rtt"]["p50_ns"] > 150e6  # tcp(7): 200 ms, on either end


def test_server_first():
    for transport in ("tcp", "unix"):
        assert lab("--receive-first", "--transport", transport, "--verify")["rtt"]["count"] == TRIPS


def test_socket_options_reach_the_socket(pair):
    with serve(pair.server, pair.server_addr) as server, connect(pair.server, pair.server_addr) as control:
        answer = hello(control, crr=True, sndbuf=20000, rcvbuf=30000, mss=700, congestion="reno")
        shown = ok("ip", "netns", "exec", pair.server, "ss", "-tlnmi", f"sport = :{answer['port']}")
        assert "rb60000" in shown and "tb40000" in shown and "reno" in shown, shown
        assert server.poll() is None


def test_bind(pair):
    with serve(pair.server, pair.server_addr):
        for args in ([], ["--udp"]):
            ping(pair.server_addr, *args, "-i", 11, "--bind", f"{pair.client_addr}:23456", netns=pair.client)
        done = layover("ping", pair.server_addr, "-i", 11, "--bind", "192.0.2.99", netns=pair.client)
        fails(done, 1, "cannot bind", "192.0.2.99")


@pytest.mark.parametrize("args,words", [
    (["--io", "magic"], ["--io", "magic", "block, spin"]),
    (["--io", "uring-poll=x"], ["--io", "whole number"]),
    (["--transport", "sctp"], ["--transport", "tcp, udp, mcast, raw, unix"]),
    (["--writes", "20,"], ["--writes"]),
    (["--writes", "20,20", "-m", "50"], ["writes", "40", "50"]),
    (["--udp", "--writes", "20,20"], ["datagram", "one write"]),
    (["--udp", "-m", "10,20"], ["reply", "larger"]),
    (["--udp", "--crr"], ["TCP only"]),
    (["--udp", "--receive-first"], ["stream"]),
    (["--transport", "raw", "-m", "15"], ["at least 16"]),
    (["--congestion", "x" * 20], ["congestion"]),
    (["--transport", "mcast", "-6"], ["IPv4 only"]),
    (["--cork", "tight"], ["--cork", "off, flush, hold"]),
    (["-m", "1,2,3"], ["at most 2"]),
])
def test_bad_plans(args, words):
    fails(layover("ping", "--lab", *args), 2, *words)


def test_unknown_congestion_control():
    fails(layover("ping", "--lab", "--congestion", "nosuch"), 1, "nosuch", "tcp_allowed_congestion_control")


def test_sweep(tmp_path):
    done = layover("ping", "--lab", "--no-split", "--sweep", "1..100", "-i", 101, "-w", 3)
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [int(row[0]) for row in rows] == [1, 2, 4, 8, 16, 32, 64, 100], done.stdout
    done = layover("ping", "--lab", "--split", "--sweep", "14,1448", "-i", 101, "-j", "-u")
    reports = [json.loads(text) for text in done.stdout.replace("}\n{", "}\0{").split("\0")]
    assert [report["load"]["bytes"] for report in reports] == [14, 1448]
    assert all(report["rtt"]["count"] == 101 and report["split"] for report in reports)
    done = layover("ping", "--lab", "--no-split", "--sweep", "14,1448", "-i", 11, "--format", "csv")
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("args,words", [(["--sweep", "64..1"], ["between 64"]), (["--sweep", "1..x"], ["size"]),
                                        (["--sweep", "1..1M", "-u"], ["65507"]), (["--sweep", ""], ["size"]),
                                        (["--sweep", "1,2", "--dump", "x"], ["--dump"]),
                                        (["--sweep", "1,2", "--format", "sockperf"], ["sockperf"])])
def test_bad_sweeps(args, words):
    fails(layover("ping", "--lab", *args), 2, *words)
