# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures: the kernels and NICs of the VM lab, each pair booted once for all of a file's tests."""

import json
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tools"))

from vm.kernels import KERNELS  # noqa: E402
from vm.machines import Lab  # noqa: E402

TRAFFIC = Path(__file__).with_name("traffic.py")
MACHINES = [(kernel, nic) for kernel in KERNELS for nic in ("virtio", "igb")]
EACH_ONCE = [("6.1", "virtio"), ("6.12", "virtio"), ("7.2", "igb")]


def pytest_configure(config):
    config.addinivalue_line("markers", "only(fixture=word): a test for machines with this word in their name alone")
    config.addinivalue_line("markers", "alone: compares times, or looks at all guests: tools/vm/test.sh runs it by itself")
    config.addinivalue_line("markers", "xdist_group(name): by one process; pytest-xdist's, which need not be there")


def machine_of(item):
    """What a test's guests are known by: tests with the same ones run one after the other, in one process."""
    params = getattr(item, "callspec", None) and item.callspec.params
    pair = params and next((params[name] for name in ("machine", "pair", "hosts") if name in params), None)
    return "-".join((item.fspath.purebasename, *(pair or ())))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What a machine cannot show is not a skipped test there, but none at all."""
    def fits(item):
        wanted = [pair for mark in item.iter_markers("only") for pair in mark.kwargs.items()]
        return all(word in "-".join(item.callspec.params[fixture]) for fixture, word in wanted)
    items[:] = filter(fits, items)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(machine_of(item)))


@pytest.fixture(scope="session", autouse=True)
def needs():
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        pytest.skip("guests need root and /dev/net/tun")
    if not shutil.which("busybox"):
        pytest.skip("tools/deps.sh vm installs what guests need")


class Echo:
    """A guest and an echo server at the other end of its cable."""

    def __init__(self, lab, guest):
        self.lab = lab
        self.guest = guest

    def ping(self, flows=1, count=200, timeout=120):
        return json.loads(self.guest.check(f"python3 /lab/traffic.py ping {self.guest.peer_address} {flows} {count}",
                                           timeout))

    def stream(self, megabytes):
        return json.loads(self.guest.check(f"python3 /lab/traffic.py stream {self.guest.peer_address} {megabytes}"))


@contextmanager
def echo(kernel, nic, files=(), **options):
    """A guest with four queues, and its peer in the host's namespace."""
    with Lab() as lab:
        guest = lab.guest(kernel=kernel, nic=nic, queues=4, files=(TRAFFIC, *files), python=True, **options)
        server = lab.network.popen(sys.executable, TRAFFIC, "serve", guest.peer_address, stdout=-1)
        assert server.stdout.readline() == b"ready\n"
        yield Echo(lab, guest)
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture(scope="module", params=EACH_ONCE, ids="-".join)
def machine(request):
    """A guest of each kernel and each NIC."""
    with echo(*request.param) as machine:
        yield machine
