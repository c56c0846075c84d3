# SPDX-License-Identifier: GPL-2.0-only
"""The split joined across two kernels: a guest and the host, and two guests."""

import functools
import os
import shutil
import statistics

import pytest

from split import LAYOVER, PROTOS, TRIPS, assert_exact, covered, read, steady
from vm.machines import Lab

PORT = 7117
ROUNDS = 5
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
        return self.ping("-i", TRIPS)

    def ping(self, *options, behind=0, rows=False, port=PORT):
        """The split, measured while the client's wall clock is `behind` s behind what it was."""
        words = " ".join(map(str, options))
        text = self.client.check(f"""set -e
            date -s @$(($(date +%s) - {behind})) >/dev/null
            layover ping {self.target}:{port} --split -j --dump /tmp/rows.csv {words}
            date -s @$(($(date +%s) + {behind})) >/dev/null""", 120)
        return read(text, self.client.get("/tmp/rows.csv") if rows else None)


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def hosts(request):
    with Lab() as lab:
        two = TwoHosts(lab, *request.param)
        yield two
        two.stop()


@pytest.mark.parametrize("proto, size", [([], 1), ([], 1448), (["--udp"], 64), (["--udp"], 16384)],
                         ids=["tcp-1", "tcp-1448", "udp-64", "udp-16384"])
def test_sums(hosts, proto, size):
    result = covered(lambda: hosts.ping(*proto, "-m", size, "-i", TRIPS, rows=True))
    assert_exact(result)
    assert result["server"]["traced"] and not result["server"]["same_kernel"]
    assert result["server"]["kernel"] == hosts.far_release
    stages = result["stages"]
    assert "client.wire" not in stages and "server.wire" not in stages
    for key in ("client.network", "server.app", "server.send"):
        assert stages[key]["count"] >= 0.9 * TRIPS, key
    # Who has not gone to sleep yet is not woken: on a busy host that is one of five.
    assert stages["server.wakeup"]["count"] >= 0.5 * TRIPS


@pytest.mark.only(hosts="7.2")  # where pings are over soonest
@pytest.mark.parametrize("hook, gone", [
    ("send_tcp", "send"), ("send_exit", ""), ("dev_xmit", "qdisc"), ("irq", "softirq"), ("softirq", "softirq driver"),
    ("stack_in", "driver"), ("data_ready", "socket notify wakeup"), ("wakeup", "notify"), ("running", "notify wakeup")])
def test_any_hook_may_be_missing(hosts, hook, gone):
    """At both ends: the stages that need it to be told apart are gone, all others are there, the sums exact."""
    result = covered(lambda: hosts.ping("-i", TRIPS, "--hooks", f"-{hook}", rows=True))
    assert_exact(result)
    gone = {f"{side}.{stage}" for side in ("client", "server") for stage in gone.split()}
    usual = {key for key, stage in hosts.whole["stages"].items() if stage["count"] >= 0.5 * TRIPS}
    assert gone <= usual and not gone & result["stages"].keys()
    assert usual - gone <= result["stages"].keys()


# What is changed: options, and how far the client's wall clock is set back. A CPU that has slept longer wakes
# later, and an emulated CPU's sleep is its host's: from none to 200 us of thinking, that would show on the wire.
VARIANTS = {
    "base": (["--server-delay", "200us"], 0),
    "clock": (["--server-delay", "200us"], HOUR),
    "think": (["--server-delay", "400us"], 0),
}


def add_rounds(hosts, proto, results):
    """To {variant: [medians of every stage, of each round]}; the variants take turns."""
    for turn in range(ROUNDS):
        for name in list(VARIANTS)[::-1 if turn % 2 else 1]:
            options, behind = VARIANTS[name]
            stages = hosts.ping(*proto, "-i", 503, *options, behind=behind)["stages"]
            results[name].append({key: stage["p50_ns"] for key, stage in stages.items()})


def median(rounds, key):
    return statistics.median(medians[key] for medians in rounds)


def growth(before, after):
    keys = before[0].keys() | after[0].keys()
    return {key: statistics.median(b.get(key, 0) - a.get(key, 0) for a, b in zip(before, after)) for key in keys}


def differs_from_itself(rounds, key):
    """The quartiles' distance, of the median: what the emulator makes of the same run another time."""
    low, middle, high = statistics.quantiles([medians[key] for medians in rounds], n=4)
    return (high - low) / middle


def assert_only_thought(before, after, think_ns):
    """The wire is the same within 10 % and its own noise, the thinking is in server.app within 5 %, and in no other
    stage. On the wire, 200 us would be as much as all of it, and an hour beyond every noise."""
    wires = median(after, "client.network") / median(before, "client.network")
    noise = max(differs_from_itself(rounds, "client.network") for rounds in (before, after))
    print(f"client.network {wires:.3f} of what it was, which differs by {noise:.3f} from itself")
    assert abs(wires - 1) < 0.1 + min(noise, 0.4), (wires, noise)
    more = growth(before, after)
    more.pop("client.network")
    assert abs(more.pop("server.app") - think_ns) < 0.05 * DELAY_NS
    assert max(map(abs, more.values())) < 0.1 * DELAY_NS, more


@pytest.mark.alone
@pytest.mark.only(hosts="6.12")  # comparing times takes many runs: on one kernel, to the host and to a guest
@protos
def test_wrong_clock_and_think_time(hosts, proto):
    results = {name: [] for name in VARIANTS}

    def check():  # with more rounds each time
        add_rounds(hosts, proto, results)
        for name, think_ns in {"clock": 0, "think": DELAY_NS}.items():
            assert_only_thought(results["base"], results[name], think_ns)
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
    result = covered(lambda: hosts.ping("-i", TRIPS, rows=True, port=PORT + 1))
    assert_exact(result)
    assert not result["server"]["traced"] and "BPF is not allowed" in result["server"]["reason"]
    assert "server.host" in result["stages"] and "client.network" not in result["stages"]
