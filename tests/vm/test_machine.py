# SPDX-License-Identifier: GPL-2.0-only
"""Every kernel and every NIC (test_matrix.py has all pairs): what tests and people may rely on in a guest."""

import json
import re
import time

import pytest

from vm.errors import GuestTimeout, LabError

QUEUES = 4
# A guest's CPUs are emulated and share the host's with everything else.
SLOWEST_BOOT = 30
RX_QUEUE = {"virtio": r"virtio\d+-input\.(\d+)$", "igb": r"eth0-rx-(\d+)$"}


def rx_interrupts(guest):
    """{queue: interrupts on all CPUs} of the NIC's receive queues."""
    counts = {}
    for line in guest.check("cat /proc/interrupts").splitlines():
        match = re.search(RX_QUEUE[guest.options.nic], line)
        if match:
            counts[int(match[1])] = sum(int(word) for word in line.split()[1:1 + guest.options.smp])
    return counts


def busy_queues(machine, flows=16, count=20):
    """The receive queues that got more than a stray interrupt while flows were exchanged."""
    before = rx_interrupts(machine.guest)
    assert machine.ping(flows, count)["trips"] == flows * count
    after = rx_interrupts(machine.guest)
    return {queue for queue in after if after[queue] - before[queue] > count / 2}


def test_boots(machine):
    guest = machine.guest
    assert guest.boot_seconds < SLOWEST_BOOT
    assert guest.check("uname -r").startswith(guest.options.kernel + ".")
    assert guest.check("nproc") == f"{guest.options.smp}\n"
    assert f"inet {guest.address}/24" in guest.check("ip addr show eth0")
    assert "LOWER_UP" in guest.check("ip link show eth0")


def test_emulated_clock_is_cheap(machine):
    clock = machine.guest.check("cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
    assert clock == "tsc\n"


def test_everything_is_mounted(machine):
    machine.guest.check("ls /sys/kernel/tracing/events/net/net_dev_queue /sys/kernel/btf/vmlinux")
    mounts = machine.guest.check("cat /proc/mounts")
    for kind in ("proc", "sysfs", "devtmpfs", "tracefs", "bpf", "cgroup2", "tmpfs"):
        assert f" {kind} rw" in mounts


def test_every_queue_has_its_interrupt(machine):
    guest = machine.guest
    channels = guest.check("ethtool -l eth0").split("Current hardware settings:")[1]
    assert int(re.search(r"Combined:\s*(\d+)", channels)[1]) == QUEUES
    assert set(rx_interrupts(guest)) == set(range(QUEUES))


def test_flows_spread_over_queues(machine):
    """RSS in the device: 16 flows all on one queue of four would be a chance of 1 in 4^15."""
    assert len(busy_queues(machine)) > 1


def test_indirection_table_steers(machine):
    guest = machine.guest
    guest.check("ethtool -X eth0 weight 0 1 0 0")
    try:
        assert busy_queues(machine) == {1}
    finally:
        guest.check("ethtool -X eth0 default")


def test_bytes_pass(machine):
    assert machine.stream(5)["mb_per_s"] > 1
    machine.guest.check(f"ping -c 2 -i 0.2 {machine.guest.peer_address}")


def test_network_lab_inside(machine):
    """What `--lab` needs in a guest: veth between namespaces, shaping, delays, tc with BPF."""
    machine.guest.check("""set -e
        ip netns add a; ip netns add b
        ip link add va netns a type veth peer name vb netns b
        ip -n a addr add 10.1.0.1/24 dev va; ip -n a link set va up
        ip -n b addr add 10.1.0.2/24 dev vb; ip -n b link set vb up
        tc -n a qdisc add dev va root tbf rate 100mbit burst 16k latency 50ms
        tc -n b qdisc add dev vb root netem delay 5ms
        tc -n b qdisc add dev vb clsact
        nsenter --net=/run/netns/a -- ping -c 1 10.1.0.2
        ip tuntap add dev t0 mode tap
        ip link del t0; ip netns del a; ip netns del b""")


def test_exit_status_and_output(machine):
    assert machine.guest.run("echo to stdout; echo to stderr >&2; exit 42") == (42, "to stdout\nto stderr\n")
    assert machine.guest.run(["sh", "-c", "printf '%s' \"$0\"", "a 'b' $c"]) == (0, "a 'b' $c")
    assert machine.guest.run("kill -9 $$").rc == 137
    with pytest.raises(LabError, match="ended with 1"):
        machine.guest.check("false")


def test_files_go_and_come_back(machine, tmp_path):
    guest = machine.guest
    data = bytes(range(256)) * 4096
    guest.put(data, "/tmp/there/data")
    assert guest.get("/tmp/there/data") == data
    (tmp_path / "up").mkdir()
    (tmp_path / "up/script").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "up/script").chmod(0o755)
    guest.put(tmp_path / "up", "/tmp/up")
    assert guest.check("/tmp/up/script") == "hello\n"
    guest.get("/tmp/up", tmp_path / "down")
    assert (tmp_path / "down/script").read_text() == "#!/bin/sh\necho hello\n"
    guest.get("/tmp/there/data", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == data
    with pytest.raises(LabError, match="could not get"):
        guest.get("/tmp/absent")


def test_timeout_kills_the_command_only(machine):
    guest = machine.guest
    start = time.monotonic()
    with pytest.raises(GuestTimeout) as caught:
        guest.run("echo before; (sleep 300; true) & sleep 300", timeout=2)
    assert time.monotonic() - start < 10
    assert caught.value.output.startswith("before\n")
    assert "sleep 300" not in guest.check("ps")


def test_background_process_lives_on(machine):
    guest = machine.guest
    pid = guest.check("sleep 300 >/dev/null 2>&1 & echo $!").strip()
    assert guest.run(f"kill {pid}").rc == 0


def test_clock_can_be_wrong(machine):
    guest = machine.guest
    guest.check("date -s '2001-02-03 04:05:06'")
    assert guest.check("date +%F") == "2001-02-03\n"
    assert guest.check("true") == ""


def test_python_inside(machine):
    guest = machine.guest
    guest.put(b"def test_one():\n    assert 1 + 1 == 2\n", "/tmp/test_one.py")
    assert "1 passed" in guest.check("python3 -m pytest -q -p no:cacheprovider /tmp/test_one.py")


def test_console_shows_no_trouble(machine):
    """The last of this file: all the others are done, and the kernel has not complained."""
    text = machine.guest.check("dmesg")
    assert not re.search(r"BUG:|Oops|WARNING:|Call Trace|rcu.*stall", text), text[-3000:]
    assert json.dumps(machine.ping(16, 5))  # no queue is stuck
