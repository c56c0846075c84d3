# SPDX-License-Identifier: GPL-2.0-only
"""layover irq on real queues and interrupts: what it shows is what the kernel and ethtool say."""

import json
import re
import subprocess
import sys

import pytest

from conftest import TRAFFIC, Echo
from split import LAYOVER
from vm.machines import Lab

# Both ways to tell whose an interrupt is: by name alone (6.1, virtio anywhere), and by the kernel (igb on 7.2).
MACHINES = [("6.1", "virtio"), ("6.12", "igb"), ("7.2", "igb"), ("7.2", "virtio")]


@pytest.fixture(scope="module", params=MACHINES, ids=lambda pair: "-".join(pair))
def machine(request):
    kernel, nic = request.param
    with Lab() as lab:
        guest = lab.guest(kernel=kernel, nic=nic, queues=4, smp=4, files=(TRAFFIC, LAYOVER), python=True)
        server = lab.network.popen(sys.executable, TRAFFIC, "serve", guest.peer_address, stdout=subprocess.PIPE)
        assert server.stdout.readline() == b"ready\n"
        yield Echo(lab, guest)
        server.kill()
        server.wait()
        server.stdout.close()


def layover(machine, *words, rc=0, env=""):
    done = machine.guest.run(f"{env} layover irq " + " ".join(words), timeout=60)
    assert done.rc == rc, done.out
    return done.out


def show(machine, interval="0"):
    out = json.loads(layover(machine, "show", "eth0", "-j", "-i", interval))
    return out["devices"][0]


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


def test_agrees_with_proc(machine):
    guest, device, rows = machine.guest, show(machine), interrupts(machine)
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
        assert irq["effective"] == guest.check(f"cat {folder}/effective_affinity_list").strip()


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
    traffic = f"python3 /lab/traffic.py ping {machine.guest.peer_address} 4 100000 >/dev/null 2>&1 & echo $!"
    pid = machine.guest.check(traffic).strip()
    device = show(machine, "2")
    machine.guest.check(f"kill {pid}")
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
