# SPDX-License-Identifier: GPL-2.0-only
"""Statistics and formats of real runs: each is parsed as its readers do, and compared with the samples."""
import csv
import io
import json
import math
import os
import re
import statistics
import subprocess
import time

import pytest

from conftest import BUILD, LAYOVER, inside, layover, ok, ping, serve
from steady import steady
from test_driver import fails

LAB = ("--lab", "--no-split")


def run_with_dump(tmp_path, *args):
    """The output of a run and its round trips in us."""
    dump = str(tmp_path / "dump.csv")
    out = ok(LAYOVER, "ping", *LAB, "--dump", dump, *args)
    with open(dump, encoding="ascii") as file:
        rtts = [int(row["rtt_ns"]) / 1000 for row in csv.DictReader(file)]
    return out, rtts


def rank(rtts, percent):
    """Nearest rank, in us."""
    return sorted(rtts)[math.ceil(len(rtts) * percent / 100 - 1e-9) - 1]


# --- formats ------------------------------------------------------------------------------------------


def test_json_is_the_samples(tmp_path):
    out, rtts = run_with_dump(tmp_path, "--format", "json", "-i", 11000)
    result = json.loads(out)
    rtt = result["rtt"]
    assert rtt["count"] == len(rtts) == 11000
    for key, percent in (("p25", 25), ("p50", 50), ("p75", 75), ("p90", 90), ("p99", 99), ("p99_9", 99.9)):
        assert rtt[key + "_ns"] == round(rank(rtts, percent) * 1000)
        low, high = rtt["interval_95"][key + "_ns"]
        assert (low or 0) <= rtt[key + "_ns"] <= (high or math.inf)
    assert rtt["p99_99_ns"] is None and rtt["p99_999_ns"] is None
    assert rtt["stddev_ns"] == pytest.approx(statistics.stdev(rtts) * 1000, rel=1e-3)
    low, high = rtt["interval_95"]["mean_ns"]
    assert low < rtt["mean_ns"] < high
    assert result["trips_per_s"] == pytest.approx(1e9 / rtt["mean_ns"], rel=0.2)


def test_csv_has_units_and_the_same_numbers(tmp_path):
    out, rtts = run_with_dump(tmp_path, "--format", "csv", "-i", 3000)
    row, = csv.DictReader(io.StringIO(out))
    assert row["protocol"] == "tcp" and row["trips"] == "3000" and row["lost"] == "0"
    assert float(row["rtt_p50_us"]) == pytest.approx(rank(rtts, 50))
    assert float(row["rtt_mean_us"]) == pytest.approx(statistics.mean(rtts), abs=0.001)
    assert row["rtt_p99_99_us"] == "" and row["machine_system_calls_per_s"] == ""


def test_sockperf_as_its_parsers_read_it(tmp_path):
    log = tmp_path / "full.log"
    out, rtts = run_with_dump(tmp_path, "--format", "sockperf", "--full-log", str(log), "-i", 5000)
    assert re.search(r"^sockperf.* (\d+) observations.*", out, re.M).group(1) == "5000"
    found = dict(re.findall(r"---> (\S+ \S+)\s+= +(\d+\.\d{3})$", out, re.M))
    assert list(found) == ["<MAX> observation"] + [f"percentile {p}" for p in (
        "99.999", "99.990", "99.900", "99.000", "90.000", "75.000", "50.000", "25.000")] + ["<MIN> observation"]
    assert float(found["percentile 50.000"]) == pytest.approx(sorted(rtts)[2499])
    assert float(found["<MAX> observation"]) == max(rtts) == float(found["percentile 99.999"])
    assert f"====> avg-rtt={statistics.mean(rtts):.3f} (std-dev={statistics.stdev(rtts):.3f})" in out
    assert re.search(r"\[Valid Duration\] RunTime=\d+\.\d{3} sec; SentMessages=5000; ReceivedMessages=5000", out)
    assert f"Summary: Round trip is {statistics.mean(rtts):.3f} usec" in out

    lines = log.read_text().splitlines()
    assert lines[0] == lines[2] == lines[19] == lines[-1] == "-" * 30
    assert lines[20] == "packet, txTime(sec), rxTime(sec), rtt(usec)"
    rows = [line.split(", ") for line in lines[21:-1]]
    assert [float(row[3]) for row in rows] == pytest.approx(rtts)
    for number, row in enumerate(rows):
        assert int(row[0]) == number
        assert (float(row[2]) - float(row[1])) * 1e6 == pytest.approx(float(row[3]), abs=0.002)


def test_latte_csv(tmp_path):
    out, rtts = run_with_dump(tmp_path, "--format", "latte-csv", "-i", 2000, "--io", "spin", "--count-syscalls")
    head, row = csv.reader(io.StringIO(out))
    assert head == ("Protocol,SendMethod,ReceiveMethod,SO_SNDBUF,SO_RCVBUF,MsgSize(byte),Iterations,Latency(usec),"
                    "CPU(%),CtxSwitch/sec,SysCall/sec,Interrupt/sec").split(",")
    assert row[:7] == ["TCP", "NonBlocking", "NonBlocking", "Default", "Default", "64", "2000"]
    assert float(row[7]) == pytest.approx(statistics.mean(rtts), abs=0.006)
    assert 0 < float(row[8]) <= 100 and all(int(field) > 0 for field in row[9:])


def test_netperf_key_value_and_csv(tmp_path):
    out, rtts = run_with_dump(tmp_path, "--format", "netperf-kv", "-i", 3000)
    values = dict(line.split("=") for line in out.splitlines())
    assert values["THROUGHPUT_UNITS"] == "Trans/s"
    assert float(values["MEAN_LATENCY"]) == pytest.approx(statistics.mean(rtts), abs=0.006)
    assert int(values["P50_LATENCY"]) == pytest.approx(rank(rtts, 50), abs=0.6)
    assert int(values["P99_LATENCY"]) == pytest.approx(rank(rtts, 99), abs=0.6)
    assert float(values["THROUGHPUT"]) * float(values["RT_LATENCY"]) == pytest.approx(1e6, rel=1e-3)
    head, row = csv.reader(io.StringIO(ok(LAYOVER, "ping", *LAB, "-i", 500, "--format", "netperf-csv")))
    assert len(head) == len(row) == len(values)
    assert head[5] == "50th Percentile Latency Microseconds" and int(row[5]) > 0
    assert row[7] == "-1"  # 500 trips have no p99


def test_netperf_knows_nothing_of_another_host(pair):
    with serve(pair.server, pair.server_addr):
        out = ok(LAYOVER, "ping", pair.server_addr, "-i", 500, "--no-split", "--format", "netperf-kv",
                 netns=pair.client)
    assert "REMOTE_CPU_UTIL=-1.00\n" in out and "REMOTE_SD=-1.000\n" in out


def test_hgrm(tmp_path):
    out, rtts = run_with_dump(tmp_path, "--format", "hgrm", "-i", 4000)
    lines = out.splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"] and lines[1] == ""
    rows = [[float(word) for word in line.split()] for line in lines[2:-3]]
    ordered = sorted(rtts)
    for value, share, count, *inverse in rows:
        assert value == pytest.approx(ordered[int(count) - 1]) and count / 4000 >= share - 1e-12
        assert not inverse or inverse[0] == pytest.approx(1 / (1 - share), abs=0.006)
    assert rows[-1][1] == 1.0 and rows[-1][0] == max(rtts)
    assert re.match(r"#\[Mean    = +[\d.]+, StdDeviation   = +[\d.]+\]$", lines[-3])


def test_formats_and_names_that_do_not_exist():
    fails(layover("ping", *LAB, "--format", "sockpref"), 2, "did you mean 'sockperf'?")
    fails(layover("ping", *LAB, "--format", "text", "-j"), 2, "leave out one")


# --- what is computed ----------------------------------------------------------------------------------


def test_half_is_half_and_says_so(tmp_path):
    dump = tmp_path / "dump.csv"
    result = json.loads(ok(LAYOVER, "ping", "--lab", "-j", "--half", "-i", 2000, "--dump", str(dump)))
    whole = ping("--lab", "-i", 2000)["rtt"]
    assert "rtt" not in result and "split" not in result
    assert result["half_rtt"]["p50_ns"] < 0.8 * whole["p50_ns"]
    rows = list(csv.DictReader(dump.open()))
    assert sorted(int(row["half_rtt_ns"]) for row in rows)[999] == result["half_rtt"]["p50_ns"]
    out = ok(LAYOVER, "ping", "--lab", "--half", "-i", 500, "--format", "sockperf")
    assert "avg-latency=" in out and "Summary: Latency is" in out
    assert "half trip" in ok(LAYOVER, "ping", "--lab", "--half", "-i", 500)
    fails(layover("ping", "--lab", "--half", "--split"), 2, "--half", "--split")
    fails(layover("ping", "--lab", "--half", "--format", "netperf-kv"), 2, "--half", "netperf-kv")


def test_histogram_counts_every_trip(tmp_path):
    out, rtts = run_with_dump(tmp_path, "-j", "-i", 3000, "--hist", "10,5,12")
    hist = json.loads(out)["histogram"]
    wanted = [sum(10 + 5 * i <= rtt < 15 + 5 * i for rtt in rtts) for i in range(12)]
    while wanted and not wanted[-1]:
        wanted.pop()
    assert hist["counts"] == wanted
    assert hist["below"] == sum(rtt < 10 for rtt in rtts) and hist["above"] == sum(rtt >= 70 for rtt in rtts)
    out = ok(LAYOVER, "ping", *LAB, "-i", 500, "--hist", "0,1,9998")
    rows = re.search(r"^Interval\(usec\)\t Frequency\n((?: *\d+ \t \d+\n)+)", out, re.M).group(1)
    last = rows.splitlines()[-1].split()
    assert len(rows.splitlines()) == int(last[0]) + 1 and int(last[1]) > 0
    fails(layover("ping", *LAB, "--hist", "0,0,10"), 2, "LENGTH")
    fails(layover("ping", *LAB, "--hist", "0,1"), 2, "START,LENGTH,COUNT")
    fails(layover("ping", *LAB, "--hist", "0,1,5", "--format", "csv"), 2, "csv")


def test_until_the_mean_is_known():
    def check():  # one trip of 100 ms among those of 20 us, and the mean is not known for long
        result = ping("--lab", "--until-ci", "20%", "-t", 15)
        assert result["until_ci"] == {"percent": 20.0, "reached": True}
        low, high = result["rtt"]["interval_95"]["mean_ns"]
        assert high - low <= 2 * 0.2 * result["rtt"]["mean_ns"] * 1.001
        assert 400e6 < result["load"]["duration_ns"] < 14e9
    steady(check)
    result = ping("--lab", "--until-ci", "0.01%", "-t", "700ms")
    assert result["until_ci"]["reached"] is False
    assert 690e6 <= result["load"]["duration_ns"] < 1.2e9


@pytest.mark.parametrize("form,stream", [("text", "stdout"), ("json", "stderr")])
def test_interim_lines(form, stream):
    done = layover("ping", *LAB, "-t", "1.1s", "--interval", "200ms", "--format", form)
    lines = re.findall(r"^ +([\d.]+) s +(\d+) trips +(\d+)/s  mean ([\d.]+) p50 ([\d.]+) max ([\d.]+) us", getattr(done, stream),
                       re.M)
    assert 3 <= len(lines) <= 5, done.stderr
    for _, trips, rate, mean, p50, highest in lines:
        # 200 ms, or as much longer as a block of trips took
        assert int(trips) > 0 and 0.15 < int(trips) / int(rate) < 0.5
        assert 5 < float(p50) <= float(highest) and 5 < float(mean) <= float(highest)
    if form == "json":
        assert sum(int(line[1]) for line in lines) <= json.loads(done.stdout)["rtt"]["count"]


def test_bins_instead_of_samples():
    result = ping("--lab", "--histogram-only", "-i", 20000)
    rtt = result["rtt"]
    assert rtt["binned"] and rtt["count"] == 20000
    assert rtt["min_ns"] <= rtt["p25_ns"] <= rtt["p50_ns"] <= rtt["p99_9_ns"] <= rtt["max_ns"]
    assert "exact to 0.1 %" in ok(LAYOVER, "ping", *LAB, "--histogram-only", "-i", 500)
    fails(layover("ping", *LAB, "--histogram-only", "--dump", "/dev/null"), 2, "--dump")
    fails(layover("ping", "--lab", "--histogram-only", "--split"), 2, "--split")


# --- memory --------------------------------------------------------------------------------------------


def peak_rss(*args):
    """MiB that a ping took at most."""
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);" \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(ok("/usr/bin/python3", "-c", script, LAYOVER, "ping", *args)) / 1024


def test_small_runs_stay_small():
    sanitizers = 50 if "san" in os.path.basename(BUILD) else 0
    assert peak_rss("--lab", "-i", 1000) < 50 + sanitizers


def test_bins_do_not_grow():
    assert peak_rss(*LAB, "--histogram-only", "-t", 2) < peak_rss(*LAB, "--histogram-only", "-i", 1000) + 1


def test_much_memory_is_said_and_too_much_refused():
    begun = time.monotonic()
    fails(layover("ping", *LAB, "-i", 10 ** 9), 1, "GiB", "--histogram-only")
    assert time.monotonic() - begun < 1
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE") < 4 << 30:
        return
    done = layover("ping", *LAB, "-i", 5 * 10 ** 7, "-t", "200ms")
    assert done.returncode == 0 and "50000000 trips will take up to 1.5 GiB" in done.stderr
    done = layover("ping", *LAB, "-i", 10 ** 9, "-t", "200ms", "--histogram-only")
    assert done.returncode == 0 and done.stderr == ""


# --- what it costs the operating system ------------------------------------------------------------------


def test_own_costs_of_a_blocking_and_of_a_spinning_client():
    def check():
        block = ping("--lab", "-t", 1)["os"]
        spin = ping("--lab", "-t", 1, "--io", "spin")["os"]
        assert 0.9 < block["process"]["context_switches_per_trip"] < 1.5  # it sleeps once for each reply
        assert spin["process"]["context_switches_per_trip"] < 0.5
        assert spin["process"]["cpu_percent"] > 20  # more, if nobody else wants the CPU
        return block, spin
    block, spin = steady(check)
    for cost in (block, spin):
        assert cost["cpus"] == os.cpu_count()
        assert 0 < cost["machine"]["cpu_percent"] <= 100
        assert cost["machine"]["context_switches_per_s"] >= cost["process"]["context_switches_per_s"]
        assert cost["machine"]["interrupts_per_s"] > 0 and cost["process"]["interrupts_per_s"] is None
        assert cost["process"]["system_calls_per_s"] is None


def test_system_calls_are_counted():
    cost = ping("--lab", "-i", 20000, "--count-syscalls")["os"]
    # send and receive of each trip; between blocks little more
    assert 2.0 <= cost["process"]["system_calls_per_trip"] < 2.1
    # the server's too
    assert cost["machine"]["system_calls_per_trip"] > 3.9


def test_system_calls_without_privileges(pair):
    with serve(pair.server, pair.server_addr):
        done = layover("ping", pair.server_addr, "-i", 500, "--no-split", "--count-syscalls", netns=pair.client)
        assert done.returncode == 0 and "SysCall/sec" in done.stdout
        user = ["setpriv", "--reuid", "65534", "--clear-groups"]
        done = subprocess.run(inside(pair.client, [*user, LAYOVER, "ping", pair.server_addr, "-i", "500",
                                                   "--no-split", "--count-syscalls", "-j"]),
                              capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert "system calls cannot be counted" in done.stderr
    assert json.loads(done.stdout)["os"]["machine"]["system_calls_per_s"] is None
