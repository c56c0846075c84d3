# SPDX-License-Identifier: GPL-2.0-only
"""Several messages under way: open loop by a rate or a file, windows of a depth."""
import json
import os
import signal
import time

import pytest

from conftest import LAYOVER, layover, ping, serve, started
from steady import steady
from test_driver import attach, fails

PROTOS = pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])


@PROTOS
def test_rate_is_kept(proto):
    out = ping("--lab", *proto, "--rate", 2000, "-t", 1, "-w", 0)
    assert abs(out["rtt"]["count"] + out["rtt"]["lost"] - 2000) <= 2
    assert 0.99e9 < out["load"]["duration_ns"] < 1.2e9
    # The service time is a part of the response time.
    for key in ("min_ns", "p50_ns", "max_ns"):
        assert 0 < out["service"][key] <= out["rtt"][key]


OVERLAPS = pytest.mark.parametrize("mode", [["--rate", 20000], ["-u", "--rate", 20000], ["--depth", 8], ["-u", "--depth", 8]],
                                   ids=["rate", "udp-rate", "depth", "udp-depth"])


@OVERLAPS
def test_bins_instead_of_samples(pair, mode):
    """Taken by another thread meanwhile, and nothing is lost on the way."""
    with serve(pair.server, pair.server_addr):
        out = ping(pair.server_addr, *mode, "-i", 20011, "--histogram-only", netns=pair.client)
    assert out["rtt"]["binned"] and out["rtt"]["count"] + out["rtt"]["lost"] == 20011 and pair.missing(out["rtt"]) == 0
    assert 0 < out["rtt"]["min_ns"] <= out["rtt"]["p50_ns"] <= out["rtt"]["max_ns"]
    if "--rate" in mode:
        for key in ("min_ns", "p50_ns", "max_ns"):
            assert 0 < out["service"][key] <= out["rtt"][key]


@OVERLAPS
def test_interim_lines(mode):
    """What the lines count is what is counted at the end, but for what came after the last one."""
    done = layover("ping", "--lab", "--no-split", "-j", *mode, "-t", "1.3s", "--interval", "200ms")
    trips = [int(words[2]) for words in map(str.split, done.stderr.splitlines()) if words[3:4] == ["trips"]]
    out = json.loads(done.stdout)["rtt"]
    # A datagram that gets lost is waited for: then nothing comes for a second.
    assert 4 <= sum(n > 0 for n in trips) <= 8, done.stderr
    assert 0.6 * out["count"] < sum(trips) <= out["count"]


@OVERLAPS
def test_until_the_mean_is_known(mode):
    def check():
        out = ping("--lab", *mode, "--until-ci", "50%", "-t", 15)
        assert out["until_ci"]["reached"] and 0.4e9 < out["load"]["duration_ns"] < 14e9
        interval = out["rtt"]["interval_95"]["mean_ns"]
        assert interval[1] - interval[0] <= 1.01 * out["rtt"]["mean_ns"]
    steady(check)


@PROTOS
def test_exact_number_of_messages(pair, proto):
    with serve(pair.server, pair.server_addr):
        out = ping(pair.server_addr, *proto, "--rate", 50000, "-i", 1009, "-w", 97, netns=pair.client)
    assert out["rtt"]["count"] + out["rtt"]["lost"] == 1009 and pair.missing(out["rtt"]) == 0
    assert out["load"]["warmup_trips"] == 97


@PROTOS
def test_a_stalled_server_cannot_hide(pair, proto):
    """Stopped for 1 of 4 s: a quarter of the messages wait, on average for half a second."""
    rate = 250 if proto else 1000  # a UDP socket's default buffer holds no more than some 270 of them
    with serve(pair.server, pair.server_addr) as server:
        command = (LAYOVER, "ping", pair.server_addr, "--no-split", "-j", *proto, "--rate", str(rate), "-t", "4",
                   "--timeout", "3s", "-w", "0")
        with started(*command, netns=pair.client) as client:
            time.sleep(1.5)
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(1.0)
            os.kill(server.pid, signal.SIGCONT)
            out = json.loads(client.communicate(timeout=20)[0])
    assert out["rtt"]["lost"] == 0 and out["rtt"]["count"] >= 3.99 * rate
    assert 0.9e9 < out["rtt"]["p99_ns"] < 1.0e9
    assert out["rtt"]["p50_ns"] < 20e6


def test_a_stalled_client_goes_on(pair):
    """The replies to what was under way lie in its socket, all of them late: each makes room for a new message."""
    with serve(pair.server, pair.server_addr):
        with started(LAYOVER, "ping", pair.server_addr, "--no-split", "-j", "-u", "--depth", "2", "-t", "2.5",
                     "--timeout", "20ms", "-w", "0", netns=pair.client) as client:
            time.sleep(0.5)
            for _ in range(5):
                os.kill(client.pid, signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(client.pid, signal.SIGCONT)
                time.sleep(0.1)
            out, err = client.communicate(timeout=20)
    assert client.returncode == 0, err
    rtt = json.loads(out)["rtt"]
    assert pair.missing(rtt) == rtt["late"] >= 3 and rtt["count"] > 1000


@pytest.mark.parametrize("mode", [["--rate", "2000"], ["--depth", "8"]])
@pytest.mark.parametrize("side", ["client", "server"])
def test_losses_are_counted(pair, mode, side):
    attach(getattr(pair, side), pair.dev, "egress", "drop")
    with serve(pair.server, pair.server_addr):
        rtt = ping(pair.server_addr, "-u", "-w", 0, "-i", 1009, "--timeout", "200ms", *mode,
                   netns=pair.client)["rtt"]
    assert (pair.missing(rtt), rtt["count"] + rtt["lost"], rtt["duplicated"], rtt["late"]) == (13, 1009, 0, 0)


@pytest.mark.parametrize("mode", [["--rate", "2000"], ["--depth", "8"]])
def test_doubles_are_counted(pair, mode):
    attach(pair.server, pair.dev, "ingress", "double")
    with serve(pair.server, pair.server_addr):
        rtt = ping(pair.server_addr, "-u", "-w", 0, "-i", 1009, *mode, netns=pair.client)["rtt"]
    assert (rtt["duplicated"], rtt["count"] + rtt["lost"], pair.missing(rtt)) == (13, 1009, 0)


@pytest.mark.parametrize("args", [["--depth", 16], ["--depth", 16, "-u"], ["--depth", 4, "--transport", "unix"],
                                  ["--depth", 16, "-u", "--io", "uring", "--server-io", "uring"],
                                  ["--depth", 16, "--io", "uring-fixed"], ["--depth", 16, "--io", "epoll"],
                                  ["--depth", 7, "-m", "100,10"], ["--depth", 128, "-u", "-m", 1],
                                  ["--depth", 512, "-m", 1], ["--depth", 128, "--transport", "unix", "-m", 1]])
def test_depth(args):
    out = ping("--lab", *args, "-i", 5003, "-w", 101)
    assert (out["rtt"]["count"], out["rtt"]["lost"], out["rtt"]["out_of_order"]) == (5003, 0, 0)


def test_depth_fills_the_pipe():
    """More trips in the same time than one after the other, and each of them takes longer."""
    one, many = (ping("--lab", "-t", "500ms", "--depth", n) for n in (1, 16))
    assert many["rtt"]["count"] > 1.5 * one["rtt"]["count"]


def test_playback(tmp_path):
    file = tmp_path / "times"
    file.write_text("# seconds, bytes\n" + "".join(f"{0.002 * i:.6f}, {1 + i % 200}\n" for i in range(211)))
    out = ping("--lab", "-u", "-m", 200, "--playback", file)
    assert (out["rtt"]["count"], out["rtt"]["lost"]) == (211, 0)
    assert 0.41e9 < out["load"]["duration_ns"] < 0.8e9


@pytest.mark.parametrize("text,words", [("", ["no line"]), ("0.1\n", ["line 1"]), ("0,10\nx,y\n", ["line 2"]),
                                        ("1,10\n0.5,10\n", ["line 2", "before"]), ("0,201\n", ["line 1", "200"])])
def test_bad_playback(tmp_path, text, words):
    file = tmp_path / "times"
    file.write_text(text)
    fails(layover("ping", "--lab", "--no-split", "-u", "-m", 200, "--playback", file), 1, *words)


def test_missing_playback():
    fails(layover("ping", "--lab", "--no-split", "-u", "--playback", "/nonexistent"), 1, "/nonexistent")


@PROTOS
@pytest.mark.parametrize("mode", [["--rate", "1000"], ["--depth", "8"]])
def test_server_gone(pair, proto, mode):
    with serve(pair.server, pair.server_addr) as server:
        with started(LAYOVER, "ping", pair.server_addr, "--no-split", *proto, *mode, "-t", "8",
                     netns=pair.client) as client:
            time.sleep(1)
            server.kill()
            begun = time.monotonic()
            out, err = client.communicate(timeout=12)
    assert client.returncode == 1 and "gone" in err and time.monotonic() - begun < 10, err


@pytest.mark.parametrize("mode", [["--rate", "1000"], ["--depth", "8"]])
def test_interrupted(mode):
    with started(LAYOVER, "ping", "--lab", "--no-split", "-j", *mode, "-t", "20") as client:
        time.sleep(1.2)
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=5)
    assert client.returncode == 0 and '"count"' in out, err


@pytest.mark.parametrize("args,words", [
    (["--rate", 0], ["--rate"]), (["--rate", 10, "--depth", 2], ["one of"]),
    (["--rate", 10, "--io", "uring"], ["io_uring"]), (["--depth", 129, "-u", "-m", 1], ["told apart"]),
    (["--depth", 129, "--transport", "unix"], ["unix"]), (["--depth", 64, "-m", "4k"], ["depth", "bytes"]),
    (["--playback", "x"], ["datagrams"]), (["--rate", 10, "--crr"], ["one message at a time"]),
])
def test_bad_plans(args, words):
    fails(layover("ping", "--lab", *args), 2, *words)


def test_no_split_says_why():
    done = layover("ping", "--lab", "--rate", 1000, "-i", 11)
    assert done.returncode == 0 and "overlap" in done.stderr
