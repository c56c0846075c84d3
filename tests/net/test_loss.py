# SPDX-License-Identifier: GPL-2.0-only
"""One datagram in 2000 is dropped inside the hosts: counted to the packet, and the others' times are as ever."""
import contextlib
import json
import statistics

import pytest

from conftest import LAYOVER, ok, started

MODES = pytest.mark.parametrize("mode", [[], ["--rate", "15000"], ["--depth", "8"], ["--io", "uring"]],
                                ids=["closed", "rate", "depth", "uring"])


@contextlib.contextmanager
def serving(pair, cgroup):
    with started(*cgroup.inside(pair.server, LAYOVER, "serve", pair.server_addr)) as child:
        assert child.stdout.readline().startswith("serving on ")
        yield


def rtt(pair, cgroup, *args):
    return json.loads(ok(*cgroup.inside(pair.client, LAYOVER, "ping", pair.server_addr, "--no-split", "-j", "-u",
                                        "--timeout", "20ms", *args)))["rtt"]


@MODES
@pytest.mark.parametrize("direction", ["egress", "ingress"])
def test_losses_to_the_packet(pair, cgroups, direction, mode):
    """On the way out the kernel tells the sender (EPERM), on the way in nobody."""
    client, server = cgroups(), cgroups()
    dropping = client if direction == "egress" else server
    dropping.attach("cgroup", direction)
    with serving(pair, server):
        out = rtt(pair, client, "-i", 20011, *mode)
    dropped = dropping.variables("cgroup")["dropped"]
    assert out["lost"] + out["lost_unmeasured"] == dropped >= 10
    assert out["count"] + out["lost"] == 20011


def test_the_mean_stays(pair, cgroups):
    """With losses and without, in turn, each three seconds."""
    whole, lossy, server = cgroups(), cgroups(), cgroups()
    lossy.attach("cgroup", "egress")
    ratios = []
    with serving(pair, server):
        for _ in range(7):
            means = [rtt(pair, cgroup, "-t", "500ms")["mean_ns"] for cgroup in (whole, lossy)]
            ratios.append(means[1] / means[0])
    assert 0.95 < statistics.median(ratios) < 1.05, ratios
