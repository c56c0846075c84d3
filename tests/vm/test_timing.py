# SPDX-License-Identifier: GPL-2.0-only
"""Which stage grows when time is added: in guests whose clocks count instructions, so that a busy host does not show."""

import re

import pytest

from conftest import TREE
from split import BUILD, FEWER, LAYOVER, TRIPS, pinging, quick_means
from steady import steady
from vm.kernels import KERNELS
from vm.machines import Lab

# One CPU: emulated ones whose clock counts take turns anyway.
COUNTED = {"smp": 1, "icount": True}
SCRIPTS = ("steady.py", "net/hosts.py", "net/test_split.py")
FILES = (LAYOVER, BUILD / "test-bpf" / "spin.o", *(TREE / "tests" / name for name in SCRIPTS))
# Every hook is switched off on the host and, in test_two_hosts.py, on 7.2; here those that are taken elsewhere on some
# kernel. On 6.1 a ping takes longest: function entries are hooks there, and the kernel waits when they come and go.
HOOKS = "any_hook and not udp and (send_tcp or data_ready or send_exit)"
DELAYS = {"7.2": "think_time or spin_in_tc and tcp or stages_of_tcp"}
FEWER_DELAYS = "not udp and (think_time or client-egress or server-ingress)"


@pytest.mark.parametrize("machine", [(kernel, "none") for kernel in KERNELS], ids="-".join)
def test_injected_delays(machine):
    """The split's own kernel tests, with the bounds they have on the host."""
    kernel, nic = machine
    tests = f"{HOOKS} or {DELAYS.get(kernel, FEWER_DELAYS)}"
    with Lab() as lab:
        guest = lab.guest(kernel=kernel, nic=nic, memory=2048, files=FILES, python=True, **COUNTED)
        guest.check("mkdir -p build/test-bpf tests/net && mv spin.o build/test-bpf/ && cp layover build/ && "
                    "mv steady.py hosts.py test_split.py tests/net/")
        run = guest.run(f"python3 -m pytest -q -p no:cacheprovider tests/net/test_split.py -k '{tests}'", 500)
        assert run.rc == 0 and "skipped" not in run.out, run.out[-4000:]


@pytest.mark.alone  # the other end is the host
def test_coalescing_shows_before_the_interrupt():
    """What neither host sees, wire and NIC, grows by what the NIC holds its interrupts back; nothing else does."""
    def measure(usecs):
        machine.guest.check(f"ethtool -C eth0 rx-usecs {usecs}")
        return quick_means(machine.ping(machine.guest.peer_address, "-i", FEWER))

    def check():  # with one more round each time
        runs.extend((usecs, measure(usecs)) for usecs in (0, 100, 250))
        best = {usecs: min((means for each, means in runs if each == usecs), key=lambda means: means["rtt_ns"])
                for usecs in (0, 100, 250)}
        for usecs in (100, 250):
            grown = {key: best[usecs][key] - best[0].get(key, 0) for key in best[usecs]}
            slower = grown["rtt_ns"]
            # It is held back from the interrupt before on: less by what the other end takes.
            assert slower > 250 * usecs, (usecs, grown)
            # The server wakes later, too: the host's CPU has slept longer.
            assert grown["client.network_ns"] > 0.7 * slower, (usecs, grown)
            own = {key: ns for key, ns in grown.items() if key.startswith("client.") and key != "client.network_ns"}
            assert max(map(abs, own.values())) < max(0.05 * slower, 5000), (usecs, grown)

    runs = []
    with pinging("7.2", "igb", queues=1, **COUNTED) as machine:
        steady(check)
        # Still at 250 us.
        text = machine.guest.check(f"layover ping --split {machine.guest.peer_address} -i {TRIPS}")
    assert re.search(r"Of the median trip, \d+ % is client\.network.*: driver, wire and NIC before the interrupt",
                     " ".join(text.split())), text
