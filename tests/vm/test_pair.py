# SPDX-License-Identifier: GPL-2.0-only
"""Two guests on one wire: two hosts with two clocks."""

import json

import pytest

from conftest import TRAFFIC
from vm.guest import Options
from vm.machines import Lab

HOUR = 3600
MACHINES = [("6.1", "virtio"), ("7.2", "igb")]  # the wire is QEMU's: other kernels' are the same


@pytest.fixture(scope="module", params=MACHINES, ids="-".join)
def pair(request):
    kernel, nic = request.param
    files = {"files": (TRAFFIC,), "python": True, "queues": 2}
    first = Options(kernel=kernel, nic=nic, **files)
    with Lab() as lab:
        client, server = lab.pair(first)
        server.check(f"setsid python3 /lab/traffic.py serve {server.address} >/tmp/log 2>&1 &")
        server.check("until grep -q ready /tmp/log; do sleep 0.1; done")
        yield client, server


def test_exchange(pair):
    client, server = pair
    client.check(f"ping -c 2 -i 0.2 {server.address}")
    trips = json.loads(client.check(f"python3 /lab/traffic.py ping {server.address} 8 20", 120))
    assert trips["trips"] == 160
    stream = json.loads(client.check(f"python3 /lab/traffic.py stream {server.address} 4", 120))
    assert stream["mb_per_s"] > 0.5


def test_clocks_differ(pair):
    client, server = pair
    server.check("date -s @$(($(date +%s) - 3600))")
    ahead = int(client.check("date +%s")) - int(server.check("date +%s"))
    assert abs(ahead - HOUR) < 10
    trips = json.loads(client.check(f"python3 /lab/traffic.py ping {server.address} 1 20", 120))
    assert trips["trips"] == 20


def test_wall_clock_from_the_start():
    with Lab() as lab:
        guest = lab.guest(nic="none", rtc="2020-01-01T00:00:00")
        assert guest.check("date -u +%F") == "2020-01-01\n"
        assert not guest.address
