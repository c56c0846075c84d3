# SPDX-License-Identifier: GPL-2.0-only
"""The split against injected causes: a delay shows in its stage, and nowhere else."""
import contextlib
import os
import statistics
import subprocess
import sys
import time

import pytest

from hosts import BUILD, LAYOVER, Hosts, assert_exact, assert_sums, load, medians, sh
from steady import steady

TRIPS = 3001
CPUS = sorted(os.sched_getaffinity(0))
SPIN_NS = 200_000
SPIN_OBJECT = str(BUILD / "test-bpf" / "spin.o")
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@pytest.fixture
def hosts():
    pair = Hosts()
    pair.serve()
    yield pair
    pair.close()


def same_cpu():
    """Both ends on one CPU: no idle exits, so that the stages hold still."""
    return ["--client-cpu", CPUS[0], "--server-cpu", CPUS[0]]


def lab(tmp_path, *options):
    dump = tmp_path / "rows.csv"
    done = sh(LAYOVER, "ping", "--lab", "--split", "-j", "--dump", str(dump), *map(str, options), timeout=60)
    return load(done.stdout, dump)


def assert_only(pairs, stage, delay_ns):
    """From run to run of each pair the stage grew by delay_ns within 5 % or 2 us, no other by more than that."""
    slack = max(0.05 * delay_ns, 2000)
    runs = [[{**medians(run), "rtt": run["rtt"]["p50_ns"]} for run in pair] for pair in pairs]
    keys = {key for pair in runs for run in pair for key in run}
    growth = {key: statistics.median(after.get(key, 0) - before.get(key, 0) for before, after in runs) for key in keys}
    assert abs(growth.pop(stage) - delay_ns) <= slack, (stage, runs)
    assert abs(growth.pop("rtt") - delay_ns) <= 2 * slack, runs
    elsewhere = {key: ns for key, ns in growth.items() if abs(ns) > slack}
    assert not elsewhere


@pytest.mark.parametrize("family", ["-4", "-6"])
@pytest.mark.parametrize("size", [1, 14, 1448, 16384])
@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
def test_sums(tmp_path, proto, size, family):
    result = lab(tmp_path, *proto, "-m", size, family, "-i", TRIPS)
    assert_exact(result, TRIPS)
    assert result["rtt"]["count"] == TRIPS
    # Either end does the same between its reads and its writes.
    user, app = (result["stages"][key]["p50_ns"] for key in ("client.user", "server.app"))
    assert 0 < user < 2 * app and 0 < app < 2 * user
    # The view's figures are those of the rows: means of all stages add up to the mean round trip.
    total = sum(stage["mean_ns"] for stage in result["stages"].values())
    assert abs(total - result["rtt"]["mean_ns"]) <= len(result["stages"])
    assert abs(sum(stage["share"] for stage in result["stages"].values()) - 1) < 1e-9


def test_stages_of_tcp_over_veth(tmp_path):
    leg = ["softirq", "driver", "stack", "socket", "notify", "wakeup", "receive"]
    sends = ["send", "qdisc", "wire"]
    assert list(lab(tmp_path, "-i", 101)["stages"]) == keys_of(sends, leg)
    sends.insert(0, "syscall")
    leg.insert(-1, "reader")
    assert list(lab(tmp_path, "-i", 101, "--hooks", "+copy,+send_enter")["stages"]) == keys_of(sends, leg)


def keys_of(sends, leg):
    return (["client.user"] + [f"client.{s}" for s in sends] + [f"server.{s}" for s in leg] +
            ["server.app"] + [f"server.{s}" for s in sends] + [f"client.{s}" for s in leg])


@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
def test_server_think_time(hosts, proto):
    options = ["-i", 1009, *proto, *same_cpu()]
    pairs = []

    def check():  # with one more pair each time
        pairs.append((hosts.ping(*options), hosts.ping(*options, "--server-delay", "200us")))
        assert_only(pairs, "server.app", SPIN_NS)
    steady(check)


@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
@pytest.mark.parametrize("end, hook, stage", [
    ("client", "egress", "client.send"), ("server", "egress", "server.send"),
    ("server", "ingress", "server.stack"), ("client", "ingress", "client.stack")])
def test_spin_in_tc(hosts, proto, end, hook, stage):
    # UDP has no hook at the socket look-up: its stack time counts up to data_ready.
    if proto and hook == "ingress":
        stage = stage.replace("stack", "socket")
    options = ["-i", 1009, "-m", 300, *proto, *same_cpu()]
    ns = getattr(hosts, end)
    pairs = []

    def check():  # with one more pair each time
        before = hosts.ping(*options)
        hosts.run(ns, "tc", "qdisc", "add", "dev", "veth0", "clsact")
        hosts.run(ns, "tc", "filter", "add", "dev", "veth0", hook, "bpf", "da", "obj", SPIN_OBJECT, "sec", "tc")
        after = hosts.ping(*options)
        hosts.run(ns, "tc", "qdisc", "del", "dev", "veth0", "clsact")
        pairs.append((before, after))
        assert_only(pairs, stage, SPIN_NS)
    steady(check)


@contextlib.contextmanager
def late_announcements():
    """Readers have their datagrams before the socket says so, as when a CPU stands still in between."""
    words = [str(BUILD / "test-bin" / "attach"), str(BUILD / "test-bpf" / "late.o")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attached:
        if attached.stdout.readline() != "ready\n":
            pytest.skip("this kernel has no sk_data_ready: since 6.3")
        yield


@two_cpus
def test_answered_before_it_was_announced(hosts, tmp_path):
    """Where packets came in is not known then, but all else is; that is a split."""
    with late_announcements():
        result = hosts.ping("-i", 1009, "--udp", "--io", "spin", "--server-io", "spin", "--client-cpu", CPUS[0],
                            "--server-cpu", CPUS[1], dump=tmp_path / "rows.csv")
    assert_sums(result, 1009)
    # Either CPU may be anywhere in the turn's hooks when the other one's come: seldom, here, where each trip is such a one.
    counters = result["counters"]
    assert counters["partial"] > 0.95 * 1009 and counters["unmatched"] < 0.02 * 1009, counters
    assert sum(row["server.app_ns"] == 0 for row in result["rows"]) < 0.02 * 1009


def slow_down(hosts, rate):
    """What the client sends queues before its device."""
    hosts.run(hosts.client, "tc", "qdisc", "add", "dev", "veth0", "root",
              "tbf", "rate", rate, "burst", "1600", "limit", "100000")


@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
def test_tbf_queue(hosts, proto):
    options = ["-i", 211, "-m", 1000, "-w", "20", *proto, *same_cpu()]
    before = hosts.ping(*options)
    slow_down(hosts, "4mbit")
    after = hosts.ping(*options)
    queued = after["stages"]["client.qdisc"]["p50_ns"] - before["stages"]["client.qdisc"]["p50_ns"]
    slower = after["rtt"]["p50_ns"] - before["rtt"]["p50_ns"]
    assert queued > 1_000_000  # 1000 bytes at 4 Mbit/s take 2 ms
    # An expiring timer starts what follows, on a CPU that was asleep: some us go elsewhere.
    assert abs(slower - queued) <= 0.05 * slower
    assert max(after["stages"].values(), key=lambda s: s["p50_ns"])["key"] == "client.qdisc"
    assert_exact_counts(after, 211)


def assert_exact_counts(result, trips):
    counters = result["counters"]
    assert counters["trips"] == trips and counters["matched"] >= 0.97 * trips and counters["dropped"] == 0


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
print("ready", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    stop = time.monotonic() + 0.020
    while time.monotonic() < stop:
        pass
    time.sleep(0.005)
"""


@two_cpus
def test_busy_task_on_the_readers_cpu(hosts):
    # A server without pauses runs when the task comes, in half of the cases, and is stopped at whatever it does.
    slow_down(hosts, "8mbit")  # 1 ms for each message
    options = ["-i", 503, "-m", 1000, "-w", "20", "--client-cpu", CPUS[0], "--server-cpu", CPUS[1]]

    def check():
        before = hosts.ping(*options)
        hog = subprocess.Popen([sys.executable, "-c", HOG, str(CPUS[1])], stdout=subprocess.PIPE)
        try:
            hog.stdout.readline()
            after = hosts.ping(*options)
        finally:
            hog.kill()
            hog.wait()
        slower = after["rtt"]["mean_ns"] - before["rtt"]["mean_ns"]
        growth = {key: stage["mean_ns"] - before["stages"].get(key, {"mean_ns": 0})["mean_ns"]
                  for key, stage in after["stages"].items()}
        assert slower > 100_000
        # The hog also interrupts the server when it runs. The wait for the CPU is the bulk.
        assert max(growth, key=growth.get) == "server.wakeup", growth
        assert growth["server.wakeup"] > 0.8 * slower, (growth, slower)
    steady(check)


def cpus(result, column):
    return {row[column] for row in result["rows"] if "matched" in row["flags"] and "alone" not in row["flags"]}


@two_cpus
@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
def test_rps_to_the_other_cpu(hosts, tmp_path, proto):
    options = ["-i", TRIPS, *proto, *same_cpu()]
    rps_cpus = "/sys/class/net/veth0/queues/rx-0/rps_cpus"

    def steer(mask):
        hosts.run(hosts.server, "sh", "-c", f"echo {mask:x} > {rps_cpus}")

    def check():
        steer(0)
        before = hosts.ping(*options, dump=tmp_path / "before.csv")
        steer(1 << CPUS[1])
        after = hosts.ping(*options, dump=tmp_path / "after.csv")
        assert cpus(before, "request_softirq_cpu") == {CPUS[0]}
        assert cpus(after, "request_softirq_cpu") == {CPUS[1]}
        assert cpus(after, "request_irq_cpu") == {CPUS[0]}
        hop, stay = after["stages"]["server.softirq"], before["stages"]["server.softirq"]
        assert (hop["cpu_from"], hop["cpu_to"]) == (CPUS[0], CPUS[1])
        assert hop["p50_ns"] > stay["p50_ns"] + 300
        # The reply is not steered: its softirq stays where it was.
        assert cpus(after, "reply_softirq_cpu") == {CPUS[0]}
        assert_exact(after, TRIPS)
    steady(check)


# Where two stages meet: the one before the hook and the one after it.
MEETING = {
    "send_enter": (("user", "app"), ("syscall", "send")), "send_tcp": (("syscall",), ("send",)),
    "dev_xmit": (("qdisc",), ("wire",)), "irq": (("wire",), ("softirq",)), "softirq": (("softirq",), ("driver",)),
    "stack_in": (("driver",), ("stack", "socket")), "data_ready": (("socket",), ("notify",)),
    "wakeup": (("notify",), ("wakeup",)), "running": (("wakeup",), ("reader", "receive")),
    "copy": (("reader",), ("receive",)), "send_exit": ((), ())}
# Hooks that others are found through, and all that are off then.
THROUGH = {"stack_in": ["softirq", "stack_in"], "data_ready": ["data_ready", "wakeup", "running"],
           "running": ["wakeup", "running"], "send_tcp": ["send_tcp", "send_enter"]}
GAPS = ("user", "app", "wire")  # they end at whichever hook comes first


def shares(result):
    """Of the median round trip: a machine that is slower for a while is so in all stages."""
    return {key: ns / result["rtt"]["p50_ns"] for key, ns in medians(result).items()}


def without(stages, hook):
    """The shares when a hook is off: where two stages met there is one, a gap or else the second of them."""
    merged = dict(stages)
    keys = list(stages)
    for before, after in zip(keys, keys[1:]):
        first, second = (key.split(".")[1] for key in (before, after))
        if first in MEETING[hook][0] and second in MEETING[hook][1]:
            gone, heir = (after, before) if first in GAPS else (before, after)
            merged[heir] = stages[before] + stages[after]
            del merged[gone]
    return merged


wholes = {}  # shares with all hooks


@pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
@pytest.mark.parametrize("hook", MEETING)
def test_any_hook_may_be_missing(tmp_path, proto, hook):
    if hook == "data_ready" and proto:
        return  # nothing else tells which datagram arrived: see the next test
    off = [hook] if proto and hook == "send_tcp" else THROUGH.get(hook, [hook])
    options = [*proto, "-i", 503, *same_cpu(), "--hooks"]
    all_hooks = "+send_enter,+copy"

    def check():
        whole = wholes.pop(bool(proto), None) or shares(lab(tmp_path, *options, all_hooks))
        expected = whole
        for each in off:
            expected = without(expected, each)
        result = lab(tmp_path, *options, f"{all_hooks},-{hook}")
        assert_exact(result, 503)
        seen = shares(result)
        assert not (whole.keys() - expected.keys()) & seen.keys()
        # A stage that few trips pass may be missing: its median is 0 anyway.
        both = {key: (seen.get(key, 0), expected.get(key, 0)) for key in seen.keys() | expected.keys()}
        assert not {key: pair for key, pair in both.items() if abs(pair[0] - pair[1]) > 0.08}
        wholes[bool(proto)] = whole  # good enough for the next hook, too
    steady(check)


@pytest.mark.parametrize("proto, hook", [
    ([], "dev_queue"), ([], "sock_in"), ([], "recv_exit"), (["--udp"], "data_ready")])
def test_a_hook_that_cannot_be_missed(proto, hook):
    done = sh(LAYOVER, "ping", "--lab", "--split", *proto, "--hooks", f"-{hook}", check=False)
    assert done.returncode == 3 and hook in done.stderr and done.stdout == ""
    done = sh(LAYOVER, "ping", "--lab", *proto, "-i", "101", "--hooks", f"-{hook}", check=False)
    assert done.returncode == 0 and hook in done.stderr and "unattributed" not in done.stdout


def test_overhead_is_measured_in_pairs(tmp_path):
    result = lab(tmp_path, "--overhead", "-t", 1, *same_cpu())
    effect = result["overhead"]["p50"]
    assert result["overhead"]["pairs"] >= 2
    assert effect["low_ns"] < effect["difference_ns"] < effect["high_ns"]
    assert 200 < effect["difference_ns"] < 20000
    assert result["counters"]["matched"] >= 0.999 * result["counters"]["trips"]


def test_nothing_stays_behind(hosts):
    before = programs()
    hosts.ping("-i", 101)
    wait_for(lambda: programs() == before)  # the kernel frees them after a grace period
    process = subprocess.Popen([LAYOVER, "ping", "--lab", "-t", "30"], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: programs() > before)
    finally:
        process.kill()
        process.wait(10)
    wait_for(lambda: programs() == before)


def programs():
    """How many BPF programs of ours the kernel holds."""
    bpftool = next(p for p in ("/usr/sbin/bpftool", "/sbin/bpftool", "/usr/bin/bpftool") if os.path.exists(p))
    return sh(bpftool, "prog", "show").stdout.count("name dev_queue")


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_hooks_agree_with_the_kernels_own_timestamps():
    """SO_TIMESTAMPING stamps the same packets at the driver and on arrival, by another clock."""
    def check():
        out = sh(str(BUILD / "test-bin" / "stamps"), "2003", timeout=60).stdout
        for line in out.splitlines():
            words = line.split()
            figures = dict(zip(words[1::2], map(int, words[2::2])))
            assert figures["count"] >= 0.99 * 2003, line
            assert figures["p99"] < 5000, line
    steady(check)
