# SPDX-License-Identifier: GPL-2.0-only
"""The split on every kernel: exact sums over veth and real NICs, injected delays in their stages.

LAYOVER_DOCS=1 writes what was found into docs/kernels.md."""

import csv
import io
import json
import os

import pytest

from conftest import MACHINES, TREE
from vm.kernels import KERNELS
from vm.machines import Lab

BUILD = (TREE / os.environ.get("LAYOVER_BUILD", "build")).resolve()
LAYOVER = BUILD / "layover"
FILES = (LAYOVER, BUILD / "test-bpf" / "spin.o", TREE / "tests/net/hosts.py", TREE / "tests/net/test_split.py")
TRIPS = 2003
PROTOS = [[], ["--udp"]]

found = {"doctor": {}, "coverage": {}}


class Machine:
    def __init__(self, lab, guest, kernel, nic):
        self.lab, self.guest, self.kernel, self.nic = lab, guest, kernel, nic

    def ping(self, *options, rows=True):
        words = " ".join(map(str, options))
        text = self.guest.check(f"layover ping --split -j --dump /tmp/rows.csv {words}", 120)
        result = json.loads(text)
        result["stages"] = {stage["key"]: stage for stage in result["split"]["stages"]}
        if rows:
            dump = self.guest.get("/tmp/rows.csv")
            result["rows"] = list(csv.DictReader(io.StringIO(dump.decode())))
        return result


@pytest.fixture(scope="module", params=MACHINES, ids="-".join)
def machine(request):
    kernel, nic = request.param
    with Lab() as lab:
        guest = lab.guest(kernel=kernel, nic=nic, queues=2, memory=2048, files=FILES, python=True)
        server = lab.network.popen(str(LAYOVER), "serve", guest.peer_address, stdout=-3)
        yield Machine(lab, guest, kernel, nic)
        server.kill()
        server.wait()


def assert_exact(result, trips):
    rows, counters = result["rows"], result["counters"]
    columns = [key for key in rows[0] if "." in key and key.endswith("_ns")]
    assert len(rows) == counters["trips"] == trips
    for row in rows:
        assert sum(int(row[key]) for key in columns) == int(row["rtt_ns"]), row
    assert trips - counters["matched"] <= max(2, 0.001 * trips) and counters["dropped"] == 0, counters


def note(machine, path, proto, result):
    counters = result["counters"]
    found["coverage"][machine.kernel, path, "UDP" if proto else "TCP"] = counters["matched"] / counters["trips"]


def test_doctor(machine):
    doctor = json.loads(machine.guest.check("layover doctor -j"))
    assert doctor["split"] is True
    found["doctor"][machine.kernel] = doctor


@pytest.mark.parametrize("size", [14, 16384])
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_veth(machine, proto, size):
    if machine.nic != "virtio":
        pytest.skip("veth is the same under another NIC")
    for attempt in range(3):  # the host's other load can starve an emulated CPU for milliseconds
        result = machine.ping("--lab", "-i", TRIPS, "-m", size, *proto)
        if result["counters"]["matched"] >= 0.999 * TRIPS:
            break
    assert_exact(result, TRIPS)
    assert "server.host" not in result["stages"]
    note(machine, "veth", proto, result)


@pytest.mark.parametrize("size", [64, 1448, 16384])
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_nic(machine, proto, size):
    result = machine.ping(machine.guest.peer_address, "-i", TRIPS, "-m", size, *proto)
    assert_exact(result, TRIPS)
    stages = result["stages"]
    assert stages["client.driver"]["p50_ns"] > 0
    if size == 64:  # of larger messages, the last packet may come while the poll is running
        # The NIC's interrupt is seen, and the softirq it raised.
        assert stages["client.softirq"]["count"] >= 0.95 * TRIPS
        note(machine, machine.nic, proto, result)


def test_injected_delays(machine):
    """The split's own kernel tests, on this kernel."""
    if machine.nic != "virtio":
        pytest.skip("once per kernel")
    tests = "think_time or spin_in_tc or stages_of_tcp"
    if machine.kernel == "6.1":  # the kernel with the fewest hooks stands for the others: emulation is slow
        tests += " or any_hook"
    run = machine.guest.run("cd /lab && mkdir -p build/test-bpf tests/net && cp spin.o build/test-bpf/ && "
                            "cp layover build/ && cp hosts.py test_split.py tests/net/ && "
                            "LAYOVER_SLACK=20 python3 -m pytest -q -p no:cacheprovider tests/net/test_split.py "
                            f"-k '{tests}'", 400)
    assert run.rc == 0, run.out[-4000:]


def test_coalescing_shows_before_the_interrupt(machine):
    if machine.nic != "igb":
        pytest.skip("only igb delays its interrupts")
    seen = {}
    for usecs in (0, 100, 0, 100):
        machine.guest.check(f"ethtool -C eth0 rx-usecs {usecs}")
        result = machine.ping(machine.guest.peer_address, "-i", 503, "--client-cpu", 0, rows=False)
        seen.setdefault(usecs, []).append(result)
    machine.guest.check("ethtool -C eth0 rx-usecs 3")

    def mean(usecs, key):
        return min(result["stages"][key]["mean_ns"] for result in seen[usecs])

    slower = min(r["rtt"]["mean_ns"] for r in seen[100]) - min(r["rtt"]["mean_ns"] for r in seen[0])
    grown = {key: mean(100, key) - mean(0, key) for key in seen[0][0]["stages"]}
    assert slower > 60_000
    # Before the interrupt is what neither host sees: wire and NIC.
    assert grown["client.network"] > 0.7 * slower, (grown, slower)
    for key in ("client.softirq", "client.stack", "client.wakeup"):
        assert grown[key] < 0.2 * slower, (grown, slower)


def test_threaded_napi(machine):
    if machine.nic != "igb":
        pytest.skip("virtio's NAPI threads are the same")
    machine.guest.check("echo 1 > /sys/class/net/eth0/threaded")
    result = machine.ping(machine.guest.peer_address, "-i", 503)
    machine.guest.check("echo 0 > /sys/class/net/eth0/threaded")
    assert_exact(result, 503)
    assert result["stages"]["client.softirq"]["count"] >= 0.9 * 503  # the thread's wake-up


@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_hardware_timestamps(machine, proto):
    words = [machine.guest.peer_address, "-i", 503, "--hw-timestamps", *proto]
    if machine.nic != "igb":
        run = machine.guest.run("layover ping " + " ".join(map(str, words)), 60)
        assert run.rc == 3 and "no hardware transmit timestamps" in run.out
        return
    result = machine.ping(*words)
    assert_exact(result, 503)
    assert result["nic"]["stamped"] >= 0.95 * 503
    assert 0 < result["nic"]["clock_uncertainty_ns"] < 100_000
    stage = result["stages"]["client.nic"]
    # Between dev_xmit and the reply's first hook: after the one, and well before the other.
    assert stage["count"] >= 0.95 * 503
    assert 0 < stage["p50_ns"] < result["rtt"]["p50_ns"] / 2
    # And off again.
    assert "client.nic" not in machine.ping(*words[:3], rows=False)["stages"]


def hook_table():
    names = list(KERNELS)
    yield "| hook | taken at | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(names)
    for row, first in enumerate(found["doctor"][names[0]]["hooks"]):
        states = (found["doctor"][name]["hooks"][row]["state"] for name in names)
        kind = {"tracepoint": "tracepoint", "entry": "entry of", "return": "return of"}[first["kind"]]
        yield f"| {first['hook']} | {kind} `{first['target']}` ({first['protocol']}) | " + " | ".join(states) + " |"


def coverage_table():
    names = list(KERNELS)
    yield "| path | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for path in ("veth", "virtio", "igb"):
        for proto in ("TCP", "UDP"):
            shares = (f"{100 * found['coverage'][name, path, proto]:.2f} %" for name in names)
            yield f"| {path}, {proto} | " + " | ".join(shares) + " |"


def test_write_the_matrix():
    if os.environ.get("LAYOVER_DOCS") != "1":
        pytest.skip("LAYOVER_DOCS=1 writes docs/kernels.md")
    releases = ", ".join(found["doctor"][name]["kernel"] for name in KERNELS)
    text = "\n".join([
        "# Kernels", "",
        "Written by `LAYOVER_DOCS=1 make test-vm` from a real run in the VM lab (emulated CPUs) on the kernels "
        f"{releases}.", "",
        "## Where each hook is taken", "",
        "`used` is what is chosen, `spare` is not needed there, `not in this kernel` and `refused` are what the "
        "kernel says when it is tried. `layover doctor` prints the same for the machine at hand.", "",
        *hook_table(), "",
        "## Coverage", "",
        "Trips with every hook that must fire, of all trips that the driver measured; every row of every run sums "
        "to its round trip. Over virtio and igb the other end is another host.", "",
        *coverage_table(), ""])
    (TREE / "docs/kernels.md").write_text(text, encoding="utf-8")
