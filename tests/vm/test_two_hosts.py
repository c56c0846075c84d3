# SPDX-License-Identifier: GPL-2.0-only
"""The split joined across two kernels: a guest and the host, and two guests."""

import functools
import os
import shutil
import statistics

import pytest

from split import FEWER, LAYOVER, PROTOS, TRIPS, assert_exact, by_turns, covered, read
from steady import steady
from vm.machines import Lab

PORT = 7117
ROUNDS = 3
HOUR = 3600
DELAY_NS = 200_000
HOSTS = [("6.12", "virtio", "host"), ("6.12", "virtio", "guest"), ("6.1", "igb", "guest"), ("7.2", "virtio", "guest")]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
protos = pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])


class TwoHosts:
    """A client in a guest; its server in another guest or in the host's namespace.

    One CPU each: with more, two real CPUs cannot run all of them at once, and the wire is mostly waiting."""

    def __init__(self, lab, kernel, nic, peer):
        self.lab, self.far, self.servers = lab, None, []
        options = {"kernel": kernel, "nic": nic, "queues": 1, "smp": 1, "files": (LAYOVER,)}
        if peer == "guest":
            self.client, self.far = lab.pair(**options)
        else:
            self.client = lab.guest(**options)
        self.target = self.far.address if self.far else self.client.peer_address
        self.far_release = self.far.release if self.far else os.uname().release
        self.serve(PORT)

    def serve(self, port, user=(), binary=LAYOVER):
        serve = ("serve", self.target, "-p", str(port))
        if self.far:
            # setsid is busybox's, which would take its own setpriv.
            words = " ".join((*user, "setsid", "/lab/layover", *serve))
            self.far.check(f"{words} >/tmp/{port} 2>&1 </dev/null &")
            self.far.check(f"until grep -q serving /tmp/{port}; do sleep 0.1; done")
        else:
            self.servers.append(self.lab.network.popen(*user, binary, *serve, stdout=-1))
            assert self.servers[-1].stdout.readline().startswith(b"serving on")

    def stop(self):
        for server in self.servers:
            server.kill()
            server.wait()
            server.stdout.close()

    @functools.cached_property
    def whole(self):
        """A run with all hooks."""
        return self.ping("-i", FEWER)

    def pin(self, cpus, rest):
        """Emulated CPUs of all guests, and all else, on these CPUs of the host."""
        for guest in filter(None, (self.client, self.far)):
            guest.pin(cpus, rest)
        for server in self.servers:
            for task in os.listdir(f"/proc/{server.pid}/task"):
                os.sched_setaffinity(int(task), rest)

    def command(self, options, port):
        words = " ".join(map(str, options))
        # Its notes are of interest when it fails.
        return (f"{{ layover ping {self.target}:{port} --split -j --dump /tmp/rows.csv {words} 2>/tmp/notes || "
                "{ rc=$?; cat /tmp/notes; (exit $rc); }; }")

    def ping(self, *options, rows=False, port=PORT):
        """The split."""
        text = self.client.check(self.command(options, port), 120)
        return read(text, self.client.get("/tmp/rows.csv") if rows else None)

    def ping_while(self, script, *options):
        """The split with its rows, and what the script, which runs meanwhile in the client, printed: [word, time]."""
        text = self.client.check(f"""
            ({script}) >/tmp/changes & other=$!
            {self.command(options, PORT)}; rc=$?
            {{ kill $other; wait $other; }} 2>/dev/null; exit $rc""", 120)
        changes = [line.split() for line in self.client.get("/tmp/changes").decode().splitlines()]
        return read(text, self.client.get("/tmp/rows.csv")), [(word, float(time)) for word, time in changes]


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def hosts(request):
    with Lab() as lab:
        two = TwoHosts(lab, *request.param)
        yield two
        two.stop()


@pytest.mark.parametrize("proto, size, trips", [([], 1, TRIPS), ([], 1448, FEWER), (["--udp"], 64, TRIPS),
                                                (["--udp"], 16384, FEWER)],
                         ids=["tcp-1", "tcp-1448", "udp-64", "udp-16384"])
def test_sums(hosts, proto, size, trips):
    result = covered(lambda: hosts.ping(*proto, "-m", size, "-i", trips, rows=True))
    assert_exact(result, trips)
    assert result["server"]["traced"] and not result["server"]["same_kernel"]
    assert result["server"]["kernel"] == hosts.far_release
    stages = result["stages"]
    assert "client.wire" not in stages and "server.wire" not in stages
    for key in ("client.network", "server.app", "server.send"):
        assert stages[key]["count"] >= 0.9 * trips, key
    # Who has not gone to sleep yet is not woken: on a busy host that is one of five.
    assert stages["server.wakeup"]["count"] >= 0.5 * trips


@pytest.mark.only(hosts="7.2")  # where pings are over soonest
@pytest.mark.parametrize("hook, gone", [
    ("send_tcp", "send"), ("send_exit", ""), ("dev_xmit", "qdisc"), ("irq", "softirq"), ("softirq", "softirq driver"),
    ("stack_in", "driver"), ("data_ready", "socket notify wakeup"), ("wakeup", "notify"), ("running", "notify wakeup")])
def test_any_hook_may_be_missing(hosts, hook, gone):
    """At both ends: the stages that need it to be told apart are gone, all others are there, the sums exact."""
    result = covered(lambda: hosts.ping("-i", FEWER, "--hooks", f"-{hook}", rows=True))
    assert_exact(result, FEWER)
    gone = {f"{side}.{stage}" for side in ("client", "server") for stage in gone.split()}
    usual = {key for key, stage in hosts.whole["stages"].items() if stage["count"] >= 0.5 * FEWER}
    assert gone <= usual and not gone & result["stages"].keys()
    assert usual - gone <= result["stages"].keys()


@pytest.fixture
def cpus_by_turns(hosts):
    """A ping-pong keeps one emulated CPU busy at a time."""
    yield from by_turns(hosts.pin)


# While it is measured, a dozen times a second; what is printed is on the clock that the rows' times are on.
CLOCK_GOES_BACK_AND_FORTH = f"""
while :; do
    date -s @$(($(date +%s) - {HOUR})) >/dev/null; read now rest </proc/uptime; echo back $now; sleep 0.12
    date -s @$(($(date +%s) + {HOUR})) >/dev/null; read now rest </proc/uptime; echo fore $now; sleep 0.12
done"""
SETTLED = 0.02  # s from the clock's last change, and to the next one
SEGMENT_TRIPS = 20
MANY = 4001


def segments(rows, changes):
    """[how the clock was, the median of the wire while it was so]"""
    out = []
    for (how, begin), (_, end) in zip(changes, changes[1:]):
        wires = [row["client.network_ns"] for row in rows
                 if begin + SETTLED < row["start_ns"] / 1e9 < end - SETTLED]
        if len(wires) >= SEGMENT_TRIPS:
            out.append((how, statistics.median(wires)))
    return out


@pytest.mark.alone
@pytest.mark.only(hosts="6.12")  # comparing times takes long: on one kernel, to the host and to a guest
@pytest.mark.usefixtures("cpus_by_turns")
@protos
def test_clock_that_jumps(hosts, proto):
    """Set back by an hour and forth again, within one run: the wire is the same within 10 %."""
    ratios = []

    def check():  # with more segments each time
        result, changes = hosts.ping_while(CLOCK_GOES_BACK_AND_FORTH, *proto, "-i", MANY)
        assert_exact(result, MANY)
        found = segments(result["rows"], changes)
        for (how, wire), (then, after) in zip(found, found[1:]):
            if how != then:  # one that was too short to tell may lie between
                ratios.append(wire / after if how == "back" else after / wire)
        print(f"client.network with the clock set back: {statistics.median(ratios):.3f}, {len(ratios)} pairs")
        assert len(ratios) > 10 and abs(statistics.median(ratios) - 1) < 0.1
    steady(check)


def median_growth(before, after, key):
    return statistics.median(b.get(key, 0) - a.get(key, 0) for a, b in zip(before, after))


# A CPU that has slept longer wakes later, and an emulated CPU's sleep is its host's: from none to 200 us of thinking, or
# from 200 to 400 (1.29 times the wire), that shows on the wire. So the server thinks for a millisecond to begin with.
@pytest.mark.alone
@pytest.mark.only(hosts="6.12")
@pytest.mark.usefixtures("cpus_by_turns")
def test_think_time(hosts):
    """200 us more, in turns: in server.app and no other stage; the wire is the same within 10 %."""
    runs = {"1000us": [], "1200us": []}

    def check():  # with more rounds each time
        for turn in range(ROUNDS):
            for delay in sorted(runs, reverse=turn % 2):
                stages = hosts.ping("-i", FEWER, "--server-delay", delay)["stages"]
                runs[delay].append({key: stage["p50_ns"] for key, stage in stages.items()})
        before, after = runs.values()
        wires = [b["client.network"] / a["client.network"] for a, b in zip(before, after)]
        print(f"client.network with 200 us more: {statistics.median(wires):.3f}, {len(wires)} pairs")
        assert abs(statistics.median(wires) - 1) < 0.1, wires
        keys = {key for run in before + after for key in run} - {"client.network"}
        more = {key: median_growth(before, after, key) for key in keys}
        assert abs(more.pop("server.app") - DELAY_NS) < 0.05 * DELAY_NS
        for key, ns in more.items():
            usual = statistics.median(run.get(key, 0) for run in before)
            assert abs(ns) < max(0.1 * DELAY_NS, 0.15 * usual), (key, ns, usual)
    steady(check)


@pytest.fixture
def public_binary(tmp_path_factory):
    """A copy that everybody may run, wherever the tree lies."""
    where = tmp_path_factory.mktemp("public")
    for folder in (where, *where.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    return shutil.copy(LAYOVER, where)


def test_server_without_privileges(hosts, public_binary):
    """In the host's namespace, and on every kernel."""
    hosts.serve(PORT + 1, NOBODY, public_binary)
    result = covered(lambda: hosts.ping("-i", FEWER, rows=True, port=PORT + 1))
    assert_exact(result, FEWER)
    assert not result["server"]["traced"] and "BPF is not allowed" in result["server"]["reason"]
    assert "server.host" in result["stages"] and "client.network" not in result["stages"]
