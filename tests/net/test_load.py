# SPDX-License-Identifier: GPL-2.0-only
"""layover load: what leaves, what arrives, by three independent counts."""
import json
import signal
import time

import pytest

from conftest import LAYOVER, layover, ok, serve, started
from steady import steady
from test_driver import fails
from test_place import CPUS


def load(*args, **kwargs):
    return json.loads(ok(LAYOVER, "load", "-j", *args, **kwargs))


def interface(pair):
    return json.loads(ok("ip", "-s", "-j", "-n", pair.server, "link", "show", pair.dev))[0]["stats64"]["rx"]


@pytest.mark.parametrize("args", [["-u", "-m", 1, "-P", 64], ["-u", "-m", 1, "-P", 64, "-T", 2], ["-u", "-m", 1000, "-r", 20000]])
def test_our_count_is_the_interfaces(args):
    out = load("--lab", "-t", 1, "-w", 0, *args)
    rx, ours = out["interface"]["rx_packets"], out["received"]["messages"]
    # What the interface took and a full socket did not is lost, and said so.
    assert -0.02 * ours < rx - ours < out["lost"] + 0.02 * ours, out


def test_the_interfaces_count_is_the_kernels(pair):
    """Headers are part of it: 14 + 20 + 8 bytes."""
    with serve(pair.server, pair.server_addr):
        before = interface(pair)
        out = load(pair.server_addr, "-u", "-m", 100, "-r", 5000, "-t", 1, "-w", 0, netns=pair.client)
        after = interface(pair)
    packets, size = (after[key] - before[key] for key in ("packets", "bytes"))
    assert out["interface"]["name"] == pair.dev
    assert 0 <= packets - out["interface"]["rx_packets"] < 60  # the control connection's
    assert 142 * out["received"]["messages"] <= size < 142 * out["received"]["messages"] + 20000


@pytest.mark.parametrize("flows,threads", [(1, 1), (7, 1), (7, 3)])
@pytest.mark.parametrize("proto", [[], ["--udp"], ["--udp", "--unconnected"]], ids=["tcp", "udp", "unconnected"])
def test_rate_is_kept(proto, flows, threads):
    def check():
        out = load("--lab", *proto, "-m", 14, "-r", 7000, "-P", flows, "-T", threads, "-t", 1)
        # Wide, because on a busy machine the sender may be without its CPU for a while, and then catches up.
        assert 0.7 * 7000 < out["sent"]["per_second"] < 1.3 * 7000
        assert 0.7 * 7000 < out["received"]["per_second"] < 1.3 * 7000
    steady(check)


@pytest.mark.parametrize("size", [1, 1448, 100003])
def test_streams_arrive_whole(size):
    out = load("--lab", "-m", size, "-P", 2, "-t", "500ms", "-w", 0)
    # What was under way when the counting began has arrived since.
    assert 0 <= out["received"]["bytes"] // size - out["received"]["messages"] <= 2
    assert abs(out["received"]["messages"] - out["sent"]["messages"]) < 4 + 0.05 * out["sent"]["messages"]


def test_losses_are_counted(pair):
    """A bottleneck that passes 1 Mbit/s and queues nothing for long."""
    ok("tc", "-n", pair.client, "qdisc", "add", "dev", pair.dev, "root", "tbf", "rate", "1mbit", "burst", "5k",
       "limit", "5k")
    with serve(pair.server, pair.server_addr):
        out = load(pair.server_addr, "-u", "-m", 100, "-r", 5000, "-t", 1, "-w", 0, netns=pair.client)
    dropped = int(ok("tc", "-n", pair.client, "-s", "qdisc", "show", "dev", pair.dev).split("dropped ")[1].split(",")[0])
    assert out["lost"] > 1000 and 0 <= dropped - out["lost"] < 40, (out, dropped)  # some of the control connection too


def test_text_has_a_line_a_second():
    done = layover("load", "--lab", "-u", "-m", 1, "-r", 1000, "-t", "1.2", "-i", "200ms")
    rows = [line.split() for line in done.stdout.splitlines() if line[:8].strip().replace(".", "").isdigit()]
    assert len(rows) >= 6 and all(len(row) == 6 for row in rows), done.stdout
    assert all(len(line) < 80 for line in done.stdout.splitlines())


def test_interrupted():
    with started(LAYOVER, "load", "--lab", "-j", "-t", "20") as child:
        time.sleep(1.5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=5)
    assert child.returncode == 0 and json.loads(out)["received"]["messages"] > 0, err


def test_server_gone(pair):
    with serve(pair.server, pair.server_addr) as server:
        with started(LAYOVER, "load", pair.server_addr, "-t", "20", netns=pair.client) as child:
            time.sleep(1.5)
            server.kill()
            out, err = child.communicate(timeout=10)
    assert child.returncode == 1 and err.count("\n") == 1, err


@pytest.mark.parametrize("args,words", [([], ["TARGET"]), (["--lab", "-T", 2], ["threads"]), (["--lab", "-r", "fast"], ["rate"]),
                                        (["--lab", "-P", 0], ["flows"]), (["--lab", "-u", "-m", "70k"], ["65507"])])
def test_bad_lines(args, words):
    done = layover("load", "-j", *args)
    fails(done, 2, *words)


@pytest.mark.parametrize("where", ["here", "there", "both"])
def test_noise_names_a_shared_cpu(where):
    """Three flows from one CPU; the server's threads where they are told to be."""
    here, there = CPUS[0], CPUS[-1]
    server = {"here": [here], "there": [there], "both": [here, there]}[where]
    noise = load("--lab", "-P", 3, "-t", "300ms", "--client-cpu", here, "--server-cpus", ",".join(map(str, server)))["noise"]
    assert noise["shared_cpu"] == (here if here in server else None)
    assert noise["client"]["cpus"] == [here] and sorted(noise["server"]["cpus"]) == sorted(set(server))
    assert noise["client"]["wall_ns"] >= 300e6
