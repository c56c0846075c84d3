# SPDX-License-Identifier: GPL-2.0-only
"""The split on every kernel: exact sums over veth and real NICs, the NIC's own stages, the causes of stalls.

LAYOVER_DOCS=1 writes what was found into docs/kernels.md."""

import json
import os
import subprocess

import pytest

from conftest import MACHINES, TREE
from split import FEWER, LAYOVER, PROTOS, TRIPS, assert_exact, covered, missed, pinging, read
from steady import steady
from vm.kernels import KERNELS

DOCUMENT = TREE / "docs/kernels.md"
RELEASE = os.uname().release.partition("-")[0]
HOST = ".".join(RELEASE.split(".")[:2]) + ", the host"
COLUMNS = [*KERNELS, HOST]

WRITE = os.environ.get("LAYOVER_DOCS") == "1"

found = {"doctor": {}, "coverage": {}}


def places(doctor):
    """[(hook, where it is taken, what the kernel says)]"""
    kinds = {"tracepoint": "tracepoint", "entry": "entry of", "return": "return of"}
    return [(row["hook"], f"{kinds[row['kind']]} `{row['target']}` ({row['protocol']})", row["state"])
            for row in doctor["hooks"]]


def hook_table():
    yield "| hook | taken at | " + " | ".join(COLUMNS) + " |"
    yield "|---|---|" + "---|" * len(COLUMNS)
    for rows in zip(*(places(found["doctor"][name]) for name in COLUMNS)):
        yield "| " + " | ".join([*rows[0][:2], *(state for _, _, state in rows)]) + " |"


def coverage_table():
    yield "| path | " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    for path in ("veth", "virtio", "igb"):
        for proto in ("TCP", "UDP"):
            shares = (found["coverage"].get((name, path, proto)) for name in COLUMNS)
            cells = ("has none" if share is None else f"{100 * share:.2f} %" for share in shares)
            yield f"| {path}, {proto} | " + " | ".join(cells) + " |"


def look_at_the_host(dump):
    """Which is not emulated, and has no such NIC."""
    def layover(*words):
        return subprocess.run([LAYOVER, *words], check=True, capture_output=True, text=True, timeout=120).stdout
    found["doctor"][HOST] = json.loads(layover("doctor", "-j"))
    for proto in PROTOS:
        text = layover("ping", "--lab", "-j", "--dump", dump, "-i", str(TRIPS), *proto)
        result = read(text, dump.read_bytes())
        assert_exact(result)
        note(HOST, "veth", proto, result)


def document():
    releases = ", ".join(found["doctor"][name]["kernel"] for name in KERNELS)
    return "\n".join([
        "# Kernels", "",
        "Written by `LAYOVER_DOCS=1 make test-vm` from a real run in the VM lab (emulated CPUs) on the kernels "
        f"{releases}, and on its host ({RELEASE}).", "",
        "## Where each hook is taken", "",
        "`used` is what is chosen, `spare` is not needed there, `not in this kernel` and `refused` are what the "
        "kernel says when it is tried. `layover doctor` prints the same for the machine at hand.", "",
        *hook_table(), "",
        "## Coverage", "",
        "Trips with every hook that must fire, of all trips that the driver measured; every row of every run sums "
        "to its round trip. Over virtio and igb the other end is another host.", "",
        *coverage_table(), ""])


def documented(kernel):
    """As places(), from the document."""
    lines = [line.strip("| ").split(" | ") for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    table = [words for words in lines if len(words) == 2 + len(COLUMNS) and "`" in words[1]]
    return [(hook, where, states[COLUMNS.index(kernel)]) for hook, where, *states in table]


@pytest.fixture(scope="module", autouse=True)
def writing(tmp_path_factory):
    yield
    if WRITE and len(found["coverage"]) == 6 * len(KERNELS):  # else some test has failed
        look_at_the_host(tmp_path_factory.mktemp("host") / "rows.csv")
        DOCUMENT.write_text(document(), encoding="utf-8")


@pytest.fixture(scope="module", params=MACHINES, ids="-".join)
def machine(request):
    with pinging(*request.param, queues=2) as machine:
        yield machine


def note(kernel, path, proto, result):
    counters = result["counters"]
    found["coverage"][kernel, path, "UDP" if proto else "TCP"] = counters["matched"] / counters["trips"]


def test_doctor(machine):
    doctor = json.loads(machine.guest.check("layover doctor -j"))
    assert doctor["split"] is True
    found["doctor"][machine.kernel] = doctor
    assert WRITE or places(doctor) == documented(machine.kernel)


@pytest.mark.only(machine="virtio")  # veth is the same under another NIC
@pytest.mark.parametrize("size", [14, 16384])
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_veth(machine, proto, size):
    trips = TRIPS if size == 14 else FEWER
    result = covered(lambda: machine.ping("--lab", "-i", trips, "-m", size, *proto))
    assert_exact(result, trips)
    # One clock: the server's end is its own stages, but in a trip that lacks its record.
    assert result["stages"].get("server.host", {"count": 0})["count"] <= missed(result)
    if size == 14:
        note(machine.kernel, "veth", proto, result)


# Of the trips. igb's interrupt for the request that was sent polls the queue by which the reply comes: the slower the
# machine, the more replies come in that poll (95 to 89 % had their own). virtio has none for what was sent.
OWN_INTERRUPT = {"virtio": 0.95, "igb": 0.7}


@pytest.mark.parametrize("size", [64, 16384])
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_nic(machine, proto, size):
    trips = TRIPS if size == 64 else FEWER

    def check():
        result = covered(lambda: machine.ping(machine.guest.peer_address, "-i", trips, "-m", size, *proto))
        assert_exact(result, trips)
        assert result["stages"]["client.driver"]["p50_ns"] > 0
        # The NIC's interrupt is seen, and the softirq it raised. A packet that comes while the queue is still polled has
        # none: the last ones of larger messages.
        assert size > 64 or result["stages"]["client.softirq"]["count"] >= OWN_INTERRUPT[machine.nic] * trips
        return result
    result = steady(check)
    if size == 64:
        note(machine.kernel, machine.nic, proto, result)


# What an emulated CPU hiccups is told by where the time went: it is real, but not the scenario's.
HICCUPS = {"run_queue", "softirq", "slow_server", "slow_reader"}


@pytest.mark.only(machine="virtio")  # the lab's veth is the same under another NIC
@pytest.mark.parametrize("scenario, causes, wait", [
    ("healthy", {}, None),
    ("write-write-read", {"nagle": "proven", "delayed_ack": "proven"}, (30e6, 70e6)),
    ("write-write-read-nodelay", {}, None),
    ("cork", {"cork": "proven"}, (150e6, 500e6)),
    ("loss", {"tail_loss": "proven"}, (100e6, 500e6)),
    ("loss-rto", {"rto": "proven"}, (300e6, 900e6)),
    ("zero-window", {"zero_window": "proven"}, (280e6, 700e6)),
])
def test_causes(machine, scenario, causes, wait):
    """The same evidence on every kernel, with whatever hooks it has."""
    out = json.loads(machine.guest.check(f"layover diagnose --lab {scenario} -t 4 -j", 120))
    flow, = out["flows"]
    told = [cause for cause in flow["causes"] if cause["cause"] not in HICCUPS]
    assert {cause["cause"]: cause["grade"] for cause in told} == causes, out
    assert all(wait[0] < cause["wait_p50_ns"] < wait[1] for cause in told), told


@pytest.mark.only(machine="igb")  # virtio's NAPI threads are the same
def test_threaded_napi(machine):
    machine.guest.check("echo 1 > /sys/class/net/eth0/threaded")
    result = machine.ping(machine.guest.peer_address, "-i", FEWER)
    machine.guest.check("echo 0 > /sys/class/net/eth0/threaded")
    assert_exact(result, FEWER)
    # The thread's wake-up; on a busy host it is often awake when the next packet comes.
    assert result["stages"]["client.softirq"]["count"] >= 0.5 * FEWER


@pytest.mark.only(machine="igb")
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_busy_polling(machine, proto):
    """The reader polls the NIC itself: it does not sleep."""
    machine.guest.check("echo 2000 >/proc/sys/net/core/busy_read")
    result = covered(lambda: machine.ping(machine.guest.peer_address, "-i", FEWER, *proto))
    machine.guest.check("echo 0 >/proc/sys/net/core/busy_read")
    assert_exact(result, FEWER)
    assert result["stages"].get("client.wakeup", {"count": 0})["count"] < 0.3 * FEWER


@pytest.mark.only(machine="igb")
def test_beside_other_traffic(machine):
    """One interrupt announces packets of several flows, and some arrive while the poll is running."""
    for proto in ("", "--udp"):
        machine.guest.check(f"setsid layover ping {machine.guest.peer_address} --no-split {proto} -m 1000 -t 60 "
                            ">/dev/null 2>&1 </dev/null & echo $! >>/tmp/others")

    def check():
        result = covered(lambda: machine.ping(machine.guest.peer_address, "-i", FEWER))
        assert_exact(result, FEWER)
        # Some come while a poll for the others is running: on a busy host one of ten.
        assert result["stages"]["client.driver"]["count"] >= 0.9 * FEWER
    steady(check)
    machine.guest.check("kill $(cat /tmp/others)")


@pytest.mark.only(machine="igb")
@pytest.mark.parametrize("proto", PROTOS, ids=["tcp", "udp"])
def test_hardware_timestamps(machine, proto):
    words = [machine.guest.peer_address, "-i", FEWER, *proto]
    result = covered(lambda: machine.ping(*words, "--hw-timestamps"))
    assert_exact(result, FEWER)
    assert result["nic"]["stamped"] >= 0.95 * FEWER
    assert 0 < result["nic"]["clock_uncertainty_ns"] < 100_000
    stage = result["stages"]["client.nic"]
    # Between dev_xmit and the reply's first hook: after the one, and well before the other.
    assert stage["count"] >= 0.95 * FEWER
    assert 0 < stage["p50_ns"] < result["rtt"]["p50_ns"] / 2
    if not proto:  # and off again
        assert "client.nic" not in machine.ping(*words, rows=False)["stages"]


@pytest.mark.only(machine="virtio")
def test_no_hardware_timestamps(machine):
    run = machine.guest.run(f"layover ping {machine.guest.peer_address} -i {FEWER} --hw-timestamps", 60)
    assert run.rc == 3 and "no hardware transmit timestamps" in run.out
