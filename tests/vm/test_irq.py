# SPDX-License-Identifier: GPL-2.0-only
"""layover irq on real queues and interrupts: what it shows is what the kernel and ethtool say."""

import json
import re
from contextlib import contextmanager

import pytest

from conftest import echo
from split import LAYOVER
from traffic import PORT

# Both ways to tell whose an interrupt is: by name alone (6.1, virtio anywhere), and by the kernel (igb on 7.2).
MACHINES = [("6.1", "igb"), ("7.2", "igb"), ("7.2", "virtio")]


@pytest.fixture(scope="module", params=MACHINES, ids="-".join)
def machine(request):
    with echo(*request.param, files=(LAYOVER,), smp=4) as machine:
        yield machine


def layover(machine, *words, rc=0, env=""):
    done = machine.guest.run(f"{env} layover irq " + " ".join(words), timeout=60)
    assert done.rc == rc, done.out
    return done.out


def show(machine, interval="0"):
    out = json.loads(layover(machine, "show", "eth0", "-j", "-i", interval))
    return out["devices"][0]


@contextmanager
def traffic(guest, flows):
    """Ping-pong over so many flows, all of them connected; the client's process ID in the guest."""
    start = f"python3 /lab/traffic.py ping {guest.peer_address} {flows} 100000 >/dev/null 2>&1 & echo $!"
    pid = guest.check(start).strip()
    try:
        guest.check(f"until [ $(grep -c ':{PORT:04X} 01 ' /proc/net/tcp) -ge {flows} ]; do sleep 0.1; done")
        yield int(pid)
    finally:
        guest.check(f"kill {pid}")


def interrupts(machine):
    """{irq: (name, {cpu: count})}"""
    lines = machine.guest.check("cat /proc/interrupts").splitlines()
    cpus = [word.removeprefix("CPU") for word in lines[0].split()]
    rows = {}
    for line in lines[1:]:
        words = line.split()
        if words[0][:-1].isdigit():
            rows[int(words[0][:-1])] = (words[-1], dict(zip(cpus, map(int, words[1:]))))
    return rows


def ethtool_numbers(text):
    return {name.strip(): int(value) for name, value in re.findall(r"^([\w -]+):\s+(\d+)\s*$", text, re.M)}


def effective(machine):
    """{irq: CPUs}; an interrupt that was bound elsewhere moves when it comes the next time, so at any moment."""
    text = machine.guest.check("cd /proc/irq; grep . */effective_affinity_list")
    return {int(line.split("/")[0]): line.partition(":")[2] for line in text.splitlines()}


def test_agrees_with_proc(machine):
    before, guest, device = effective(machine), machine.guest, show(machine)
    after, rows = effective(machine), interrupts(machine)
    # virtio's are those of the PCI device above it
    path = "/sys/class/net/eth0/device/msi_irqs"
    path = path if guest.run(f"test -d {path}").rc == 0 else "/sys/class/net/eth0/device/../msi_irqs"
    mine = {int(irq) for irq in guest.check(f"ls {path}").split()} & set(rows)
    assert {irq["irq"] for irq in device["irqs"]} == mine
    for irq in device["irqs"]:
        name, counts = rows[irq["irq"]]
        assert irq["name"] == name and irq["mode"] == "msix"
        assert set(irq["counts"]) == set(counts)
        assert all(irq["counts"][cpu] <= counts[cpu] for cpu in counts)
        folder = f"/proc/irq/{irq['irq']}"
        assert irq["affinity"] == guest.check(f"cat {folder}/smp_affinity_list").strip()
        assert irq["effective"] in (before[irq["irq"]], after[irq["irq"]])


def test_every_queue_has_its_interrupt(machine):
    device = show(machine)
    names = {irq["irq"]: irq["name"] for irq in device["irqs"]}
    assert [(queue["direction"], queue["index"]) for queue in device["queues"]] \
        == [(direction, index) for direction in ("rx", "tx") for index in range(4)]
    for queue in device["queues"]:
        word = {"rx": "(input|rx|TxRx)", "tx": "(output|tx|TxRx)"}[queue["direction"]]
        assert re.search(rf"{word}[.-]{queue['index']}$", names[queue["irq"]]), names[queue["irq"]]
        irq = next(irq for irq in device["irqs"] if irq["irq"] == queue["irq"])
        assert queue["index"] in irq[queue["direction"] + "_queues"]


def test_agrees_with_ethtool(machine):
    guest, device = machine.guest, show(machine)
    limits, now = guest.check("ethtool -l eth0").split("Current hardware settings:")
    for key, text in (("channels", now), ("channels_max", limits)):
        said = ethtool_numbers(text)
        for name in ("RX", "TX", "Other", "Combined"):
            assert device[key][name.lower()] == said.get(name, 0)
    text = guest.run("ethtool -c eth0").out
    said = ethtool_numbers(text)
    for name, value in device["coalesce"].items():
        if name.startswith("adaptive"):
            continue
        assert value == said.get(name, 0), name
    text = guest.check("ethtool -x eth0")
    assert f"with {device['rss']['rings']} RX ring(s)" in text
    table = [int(word) for line in re.findall(r"^\s+\d+:(.*)$", text, re.M) for word in line.split()]
    assert device["rss"]["table"] == table
    assert device["rss"]["feeds"] == {str(queue): table.count(queue) for queue in sorted(set(table))}
    key = re.search(r"RSS hash key:\s*\n(\S+)", text)[1]
    assert device["rss"]["key"] == ("" if key.startswith("Operation") else key)


def test_agrees_with_sysfs(machine):
    guest, device = machine.guest, show(machine)
    folder = "/sys/class/net/eth0"
    for queue in device["queues"]:
        for name in ("rps_cpus", "rps_flow_cnt") if queue["direction"] == "rx" else ("xps_cpus", "xps_rxqs"):
            assert queue[name] == guest.check(f"cat {folder}/queues/{queue['direction']}-{queue['index']}/{name}").strip()
    for key, name in (("threaded", "threaded"), ("gro_flush_timeout_ns", "gro_flush_timeout"),
                      ("defer_hard_irqs", "napi_defer_hard_irqs")):
        assert device[key] == int(guest.check(f"cat {folder}/{name}"))
    assert device["driver"] == {"virtio": "virtio_net", "igb": "igb"}[guest.options.nic]


def test_netdev_family_is_used(machine):
    """Which kernel and driver tell what: see the table of sources in the documentation."""
    device, kernel, nic = show(machine), machine.guest.options.kernel, machine.guest.options.nic
    assert device["netdev_family"] == (kernel != "6.1")
    told = kernel == "7.2" and nic == "igb"
    assert any(napi["irq"] for napi in device["napis"]) == told
    if told:
        by_id = {napi["id"]: napi["irq"] for napi in device["napis"]}
        assert all(by_id[queue["napi"]] == queue["irq"] for queue in device["queues"])


def test_rates(machine):
    with traffic(machine.guest, 4):
        device = show(machine, "2")
    assert sum(sum(irq["per_s"].values()) for irq in device["irqs"]) > 20


def test_without_privilege(machine):
    """The rest of the guest's rights is taken away: what is left suffices."""
    out = machine.guest.check("setpriv --reuid 65534 --clear-groups --bounding-set -all layover irq show eth0 -j -i 0")
    device, root = json.loads(out)["devices"][0], show(machine)
    assert {key: value for key, value in device.items() if key != "irqs"} \
        == {key: value for key, value in root.items() if key != "irqs"}
    for one, two in zip(device["irqs"], root["irqs"]):
        assert {**one, "counts": 0} == {**two, "counts": 0}


def test_text_fits_a_terminal(machine):
    out = layover(machine, "show", "-i", "0.2")
    assert all(len(line) < 80 for line in out.splitlines()), out
    assert "eth0: " in out


# --- changes ---------------------------------------------------------------------------------------

# Everything of eth0 that is set, interrupts by name. Few processes: under emulation each costs 10 ms.
SNAPSHOT = r"""
awk '$NF ~ /virtio0|eth0/ {
    folder = "/proc/irq/" substr($1, 1, length($1) - 1)
    getline list <(folder "/smp_affinity_list")
    getline mask <(folder "/smp_affinity")
    print $NF, list, mask
}' /proc/interrupts | sort
cd /sys/class/net/eth0
grep . queues/*/rps* queues/*/xps* threaded gro_flush_timeout napi_defer_hard_irqs 2>&1
cat /proc/sys/net/core/busy_read /proc/sys/net/core/busy_poll
ethtool -l eth0; ethtool -x eth0; ethtool -c eth0; true"""


def snapshot(machine):
    return machine.guest.check(SNAPSHOT)


def policies(machine):
    """All that both NICs can do; igb has moderation as well."""
    words = ["rss", "queues", "2", "spread", "--step", "2", "rps", "0-1", "xps", "busy-poll", "50",
             "napi", "gro-flush-timeout=1000,defer-hard-irqs=1"]
    return words + (["coalesce", "rx-usecs=20"] if machine.guest.options.nic == "igb" else [])


@pytest.fixture
def restored(machine):
    """A test that fails leaves nothing behind for the next."""
    before = snapshot(machine)
    yield before
    layover(machine, "undo")
    assert snapshot(machine) == before


def moved(machine, names):
    """{cpu: interrupts of these names while 4 flows exchanged}"""
    before = interrupts(machine)
    machine.ping(4, 100)
    sums = {}
    for irq, (name, counts) in interrupts(machine).items():
        for cpu, count in counts.items():
            if name in names:
                sums[cpu] = sums.get(cpu, 0) + count - before[irq][1][cpu]
    return sums


def test_applied_interrupts_move(machine, restored):
    """All flows go to queue 1, whose interrupt goes to CPU 3, then to CPU 2."""
    names = {irq["name"] for irq in show(machine)["irqs"] if 1 in irq["rx_queues"]}
    for cpu in ("3", "2"):
        layover(machine, "apply", "eth0", "rss", "weights", "0,1,0,0", "near-reader", cpu, "--queue", "1")
        machine.ping(1, 5)  # the old CPU gets one more
        sums = moved(machine, names)
        assert sums[cpu] > 100 and sum(sums.values()) - sums[cpu] <= 1, sums
        device = show(machine)
        assert device["rss"]["feeds"] == {"1": len(device["rss"]["table"])}
        assert all(irq["affinity"] == irq["effective"] == cpu for irq in device["irqs"] if 1 in irq["rx_queues"])
        layover(machine, "verify", "-i", "0")
    layover(machine, "undo")
    assert snapshot(machine) == restored
    assert "Nothing to undo" in layover(machine, "undo")


def test_spread(machine, restored):
    layover(machine, "apply", "eth0", "spread", "--step", "2")
    cpus = {irq["rx_queues"][0]: irq["affinity"] for irq in show(machine)["irqs"] if irq["rx_queues"]}
    assert cpus == {0: "0", 1: "2", 2: "1", 3: "3"}
    layover(machine, "apply", "eth0", "isolate", "2-3")
    assert {irq["affinity"] for irq in show(machine)["irqs"]} <= {"0", "1", "0-1"}
    assert "no online CPU" in layover(machine, "plan", "eth0", "isolate", "0-3", rc=2)


def test_everything_and_back(machine, restored):
    layover(machine, "apply", "eth0", *policies(machine))
    assert snapshot(machine) != restored
    layover(machine, "verify", "-i", "0")
    assert "Nothing to change" in layover(machine, "apply", "eth0", *policies(machine))
    layover(machine, "undo")
    assert snapshot(machine) == restored


def kill_at_each_step(machine, words, restored, first="true", last="layover irq undo"):
    """`first`, the command that is killed, `last`, and all is restored; again until it ends by itself. Returns how many
    steps that took. A step is one command to the guest: each costs as much as ten processes there."""
    for step in range(1, 300):
        done = machine.guest.execute(f"""{{ {first} && LAYOVER_IRQ_STOP={step} layover irq {" ".join(words)}; }} >&2
            rc=$?
            [ $rc != 137 ] || {{ {last}; }} >&2 || exit 99
            {SNAPSHOT}
            exit $rc""")
        if done.status != 137:
            assert done.status == 0, done
            return step - 1
        assert done.output.decode() == restored, step
    raise AssertionError("it does not come to its end")


@pytest.mark.only(machine="7.2-igb")  # it has all that can be changed
def test_killed_at_each_step(machine, restored):
    plan = json.loads(layover(machine, "plan", "eth0", *policies(machine), "-j"))
    assert kill_at_each_step(machine, ("apply", "eth0", *policies(machine)), restored) >= 3 * len(plan["changes"]) + 4


@pytest.mark.only(machine="7.2-igb")
def test_killed_at_each_step_of_undo(machine, restored):
    apply = "layover irq apply eth0 " + " ".join(policies(machine))
    assert kill_at_each_step(machine, ("undo",), restored, first=apply) >= len(policies(machine))
    assert snapshot(machine) == restored


def test_fewer_queues(machine, restored):
    """The driver drops interrupts and sets the others anew; whatever was bound before comes back."""
    layover(machine, "apply", "eth0", "spread", "--step", "2", "rps", "1")
    bound = snapshot(machine)
    steps = kill_at_each_step(machine, ("apply", "eth0", "queues", "2"), bound, last=UNDO_WHAT_BEGAN)
    assert steps >= 5
    device = show(machine)
    assert device["channels"]["combined"] == 2 and set(device["rss"]["feeds"]) == {"0", "1"}
    assert machine.ping(8, 5)["trips"] == 40
    layover(machine, "undo", "--last")
    assert snapshot(machine) == bound


# With an earlier plan below that stays; a journal that never came to be needs no undo.
UNDO_WHAT_BEGAN = "[ $(ls /run/layover | grep -c journal) = 1 ] || layover irq undo --last"


def test_fewer_queues_below_the_table(machine, restored):
    """ethtool refuses this on its own: the table names the queues that go away."""
    layover(machine, "apply", "eth0", "rss", "weights", "1,1,1,2")
    before = snapshot(machine)
    assert machine.guest.run("ethtool -L eth0 combined 2").rc != 0
    text = layover(machine, "plan", "eth0", "queues", "2")
    assert text.index("eth0: rss") < text.index("eth0: channels")
    layover(machine, "apply", "eth0", "queues", "2")
    layover(machine, "undo", "--last")
    assert snapshot(machine) == before


def test_refused(machine, restored):
    """A value that the driver does not take: all is as it was; with --keep-going the rest is done."""
    words = {"virtio": ("coalesce", "rx-frames=7"), "igb": ("coalesce", "rx-usecs=1000000")}[machine.guest.options.nic]
    text = layover(machine, "apply", "eth0", "rps", "0", *words, rc=1)
    assert "refused   eth0: coalesce" in text and "all is restored" in text
    assert snapshot(machine) == restored
    assert "1 change was refused" in layover(machine, "apply", "eth0", "rps", "0", *words, "--keep-going", rc=1)
    layover(machine, "verify", "-i", "0")


def test_drift_of_interrupts(machine, restored):
    layover(machine, "apply", "eth0", "near-reader", "3")
    irq = next(irq for irq in show(machine)["irqs"] if irq["rx_queues"] == [0])
    machine.guest.check(f"echo 1 >/proc/irq/{irq['irq']}/smp_affinity_list")
    text = layover(machine, "verify", "-i", "0", rc=4)
    drifted, = (line for line in text.splitlines() if line.startswith("drifted"))
    assert irq["name"] in drifted and "was set to 3, is 1" in drifted


def test_irqbalance_is_in_the_way(machine, restored):
    machine.guest.put(b"#!/bin/sh\nsleep 60\n", "/tmp/irqbalance")
    pid = machine.guest.check("chmod +x /tmp/irqbalance; /tmp/irqbalance >/dev/null 2>&1 & echo $!").strip()
    try:
        assert f"irqbalance (process {pid})" in layover(machine, "apply", "eth0", "spread", "--step", "2", rc=1)
        assert f"irqbalance runs (process {pid})" in layover(machine, "show", "-i", "0")
        assert snapshot(machine) == restored
        layover(machine, "apply", "eth0", "rps", "0")  # no interrupt is moved
        layover(machine, "apply", "eth0", "spread", "--step", "2", "--despite-irqbalance")
    finally:
        machine.guest.run(f"kill {pid}")


def test_own_connection_is_kept(machine, restored):
    ssh = f"SSH_CONNECTION='{machine.guest.peer_address} 5000 {machine.guest.address} 22'"
    assert "--yes" in layover(machine, "apply", "eth0", "rps", "0", rc=1, env=ssh)
    assert snapshot(machine) == restored
    layover(machine, "apply", "eth0", "rps", "0", "--yes", env=ssh)


FLOWS = r"""
import json, socket, sys
sys.path.insert(0, "/lab")
import traffic
def counts():
    return {row.split()[-1]: sum(int(word) for word in row.split()[1:5])
            for row in open("/proc/interrupts") if row.split()[-1] in sys.argv[3:]}
found = {}
# Far apart: neighbours differ in four bits, which with one key of 256 all lead to one queue.
for port in range(int(sys.argv[2]), int(sys.argv[2]) + 16 * 61, 61):
    with socket.create_connection((sys.argv[1], traffic.PORT), 10, ("", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = counts()
        for _ in range(40):
            traffic._exchange(connection, b"x")
        after = counts()
    found[port] = max(after, key=lambda name: after[name] - before[name])
print(json.dumps(found))
"""


@pytest.mark.parametrize("first,weights", [(20000, None), (21000, "1,2,3,4")])
def test_flows_go_where_they_are_said_to(machine, restored, first, weights):
    """Own Toeplitz over the device's key and table, against the interrupts that each of 16 flows makes."""
    guest = machine.guest
    if weights:
        layover(machine, "apply", "eth0", "rss", "weights", weights)
    names = [irq["name"] for irq in show(machine)["irqs"] if irq["rx_queues"]]
    guest.put(FLOWS.encode(), "/tmp/flows.py")
    found = json.loads(guest.check(f"python3 /tmp/flows.py {guest.peer_address} {first} {' '.join(names)}"))
    words = [f"{guest.peer_address}:7777,{guest.address}:{port}" for port in found]
    flows = json.loads(layover(machine, "flow", "eth0", *words, "-j", "2>/dev/null"))["flows"]
    assert [flow["name"] for flow in flows] == list(found.values())
    assert len({flow["queue"] for flow in flows}) > 1


def test_flows_and_readers(machine, restored):
    """The kernel's queue of each of 16 flows is the one that the table says, and its softirq runs where that queue's
    interrupt goes."""
    guest = machine.guest
    layover(machine, "apply", "eth0", "spread")
    with traffic(guest, 16) as pid:
        out = json.loads(layover(machine, "show", "eth0", "--flows", "-i", "6", "-j"))
    device, = out["devices"]
    flows = [flow for flow in device["flows"] if flow["remote"] == f"{guest.peer_address}:7777"]
    assert len(flows) == 16 and {flow["pid"] for flow in flows} == {pid}
    assert [flow["rx_queue"] for flow in flows] == [flow["rss_queue"] for flow in flows]
    assert len({flow["rx_queue"] for flow in flows}) > 1
    cpus = {queue: int(irq["affinity"]) for irq in device["irqs"] for queue in irq["rx_queues"]}
    for flow in flows:
        assert flow["turns"] > 10
        there = sum(way["turns"] for way in flow["ways"]
                    if way["softirq_cpu"] == way["irq_cpu"] == cpus[flow["rx_queue"]])
        assert there >= 0.9 * flow["turns"], flow
