# SPDX-License-Identifier: GPL-2.0-only
"""The split joined across two kernels: a guest and the host, and two guests."""

import csv
import io
import json
import os
import shutil
import statistics

import pytest

from conftest import TREE
from vm.machines import Lab

BUILD = (TREE / os.environ.get("LAYOVER_BUILD", "build")).resolve()
LAYOVER = BUILD / "layover"
TRIPS = 2003
PAIRS = 5
HOUR = 3600
DELAY_NS = 200_000
PROTOS = pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])
HOSTS = [("6.12", "virtio", "host"), ("6.12", "virtio", "guest"), ("6.1", "igb", "guest"), ("7.2", "virtio", "guest")]


class TwoHosts:
    """A client in a guest; its server in another guest or in the host's namespace.

    One CPU each: with more, two real CPUs cannot run all of them at once, and the wire is mostly waiting."""

    def __init__(self, lab, kernel, nic, peer):
        self.lab, self.kernel, self.peer, self.server = lab, kernel, peer, None
        options = {"kernel": kernel, "nic": nic, "queues": 1, "smp": 1, "files": (LAYOVER,)}
        if peer == "guest":
            self.client, self.far = lab.pair(**options)
            self.target = self.far.address
            self.far.check(f"setsid layover serve {self.target} >/tmp/log 2>&1 </dev/null &")
            self.far.check("until grep -q serving /tmp/log; do sleep 0.1; done")
        else:
            self.client = lab.guest(**options)
            self.target = self.client.peer_address
            self.serve()

    def serve(self, *user, binary=LAYOVER, port=7117):
        """On the host. A server that was there before is ended."""
        self.stop()
        self.server = self.lab.network.popen(*user, binary, "serve", self.target, "-p", port, stdout=-1)
        assert self.server.stdout.readline().startswith(b"serving on")

    def stop(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
        self.server = None

    def ping(self, *options, behind=0, rows=False, target=None):
        """The split's JSON, measured while the client's wall clock is `behind` s behind what it was."""
        words = " ".join(map(str, options))
        text = self.client.check(f"""set -e
            date -s @$(($(date +%s) - {behind})) >/dev/null
            layover ping {target or self.target} --split -j --dump /tmp/rows.csv {words}
            date -s @$(($(date +%s) + {behind})) >/dev/null""", 120)
        result = json.loads(text)
        result["stages"] = {stage["key"]: stage for stage in result["split"]["stages"]}
        if rows:
            result["rows"] = list(csv.DictReader(io.StringIO(self.client.get("/tmp/rows.csv").decode())))
        return result


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def hosts(request):
    with Lab() as lab:
        two = TwoHosts(lab, *request.param)
        yield two
        two.stop()


def assert_exact(result):
    rows, counters = result["rows"], result["counters"]
    columns = [key for key in rows[0] if "." in key and key.endswith("_ns")]
    assert len(rows) == counters["trips"] == TRIPS
    for row in rows:
        assert sum(int(row[key]) for key in columns) == int(row["rtt_ns"]), row
        assert min(int(row[key]) for key in columns) >= 0, row
    assert counters["matched"] >= 0.999 * TRIPS and counters["dropped"] == 0, counters


@pytest.mark.parametrize("proto,size", [([], 1), ([], 64), ([], 16384), (["--udp"], 1), (["--udp"], 64),
                                        (["--udp"], 300)])
def test_sums(hosts, proto, size):
    for attempt in range(3):  # the host's other load can starve an emulated CPU for milliseconds
        result = hosts.ping(*proto, "-m", size, "-i", TRIPS, rows=True)
        if result["counters"]["matched"] >= 0.999 * TRIPS:
            break
    assert_exact(result)
    assert result["server"]["traced"] and not result["server"]["same_kernel"]
    release = os.uname().release if hosts.peer == "host" else hosts.far.release
    assert result["server"]["kernel"] == release
    stages = result["stages"]
    assert "client.wire" not in stages and "server.wire" not in stages
    for key in ("client.network", "server.app", "server.wakeup", "server.send"):
        assert stages[key]["count"] >= 0.9 * TRIPS, key


def in_turns(hosts, options, changed, behind):
    """Medians of every stage with the one and the other options, measured in turns: [(stages, stages), …]."""
    pairs = []
    for turn in range(PAIRS):
        order = [(0, options, 0), (1, changed, behind)]
        results = [None, None]
        for which, words, seconds in order if turn % 2 else order[::-1]:
            result = hosts.ping(*words, "-i", 503, behind=seconds)
            results[which] = {key: stage["p50_ns"] for key, stage in result["stages"].items()}
        pairs.append(results)
    return pairs


def ratio(pairs, key):
    """Of the quietest run's medians: what else runs on the machine's few CPUs only ever adds to the wire."""
    return min(after[key] for _, after in pairs) / min(before[key] for before, _ in pairs)


def growth(pairs):
    keys = pairs[0][0].keys() | pairs[0][1].keys()
    return {key: statistics.median(after.get(key, 0) - before.get(key, 0) for before, after in pairs) for key in keys}


@pytest.fixture
def timed_hosts(hosts):
    """Comparing times takes many runs in turns: on one kernel, guest to host and guest to guest."""
    if hosts.kernel != "6.12":
        pytest.skip("on one kernel only")
    return hosts


@PROTOS
def test_clock_set_back(timed_hosts, proto):
    def attempt():
        return in_turns(timed_hosts, proto, proto, HOUR)
    assert steady(lambda pairs: abs(ratio(pairs, "client.network") - 1) < 0.1, attempt)


@PROTOS
def test_think_time(timed_hosts, proto):
    """200 us more, on top of 200 us: a CPU that has slept longer wakes later, and an emulated CPU's sleep is
    its host's, so that the first of them would show on the wire as well."""
    before, after = [*proto, "--server-delay", "200us"], [*proto, "--server-delay", "400us"]

    def holds(pairs):
        more = growth(pairs)
        app = more.pop("server.app")
        more.pop("client.network")
        return (abs(app - DELAY_NS) < 0.05 * DELAY_NS and abs(ratio(pairs, "client.network") - 1) < 0.1 and
                max(map(abs, more.values())) < 0.1 * DELAY_NS)
    assert steady(holds, lambda: in_turns(timed_hosts, before, after, 0))


def steady(holds, attempt, attempts=3):
    """Other load on the machine can spoil a run, not make a wrong split right."""
    return any(holds(attempt()) for _ in range(attempts))


def test_server_without_privileges(hosts, tmp_path_factory):
    if hosts.peer != "host":
        pytest.skip("the guests are all root's")
    where = tmp_path_factory.mktemp("public")
    binary = shutil.copy(LAYOVER, where)
    for folder in (where, *where.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    hosts.serve("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", binary=binary)
    result = hosts.ping("-i", TRIPS, rows=True)
    hosts.serve()
    assert_exact(result)
    assert not result["server"]["traced"] and "BPF is not allowed" in result["server"]["reason"]
    assert "server.host" in result["stages"] and "client.network" not in result["stages"]
