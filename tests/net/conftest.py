# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel tests share: the binary, namespaces of their own, bounded runs. They need root."""
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(TOP, os.environ.get("LAYOVER_BUILD", "build"))
LAYOVER = os.path.join(BUILD, "layover")
NETNS_DIR = "/run/netns"

serial = itertools.count()


def pytest_configure(config):
    if os.geteuid() != 0:
        raise pytest.UsageError("the kernel tests make network namespaces: run them as root")


def inside(netns, command):
    """The command, run inside a namespace (None: here)."""
    return (["ip", "netns", "exec", netns] if netns else []) + [str(word) for word in command]


def run(*command, netns=None, timeout=20, stdin=None):
    """Runs to the end; a run that takes longer than timeout fails the test."""
    return subprocess.run(inside(netns, command), capture_output=True, text=True, timeout=timeout,
                          check=False, stdin=stdin or subprocess.DEVNULL)


def ok(*command, **kwargs):
    """As run(), for what must succeed. Returns stdout."""
    done = run(*command, **kwargs)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def layover(*args, **kwargs):
    return run(LAYOVER, *args, **kwargs)


def ping(*args, **kwargs):
    """A ping without the split that must succeed; its JSON."""
    return json.loads(ok(LAYOVER, "ping", "--no-split", "-j", *args, **kwargs))


@contextlib.contextmanager
def started(*command, netns=None, **kwargs):
    """A process that is ended, by its pid, when the block is left."""
    child = subprocess.Popen(inside(netns, command), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=10)


@contextlib.contextmanager
def serve(netns, *args):
    """A server in a namespace that is ready for clients."""
    with started(LAYOVER, "serve", *args, netns=netns) as child:
        line = child.stdout.readline()
        assert line.startswith("serving on "), line + child.stderr.read()
        child.address = line.split()[-1]
        yield child


def wait_for(condition, seconds=5):
    """Waits until condition() is true and returns its value."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


class Pair:
    """Two namespaces joined by a veth pair: two hosts."""

    def __init__(self):
        name = f"layovertest-{os.getpid()}-{next(serial)}"
        self.client, self.server = name + "-c", name + "-s"
        self.client_addr, self.server_addr = "10.77.0.1", "10.77.0.2"
        self.client_addr6, self.server_addr6 = "fd77::1", "fd77::2"
        self.dev = "veth0"

    def make(self):
        for netns in (self.client, self.server):
            ok("ip", "netns", "add", netns)
        ok("ip", "-n", self.client, "link", "add", self.dev, "type", "veth", "peer", "name", self.dev,
           "netns", self.server)
        for netns, addr, addr6 in ((self.client, self.client_addr, self.client_addr6),
                                   (self.server, self.server_addr, self.server_addr6)):
            ok("ip", "-n", netns, "link", "set", "lo", "up")
            ok("ip", "-n", netns, "addr", "add", addr + "/24", "dev", self.dev)
            ok("ip", "-n", netns, "addr", "add", addr6 + "/64", "dev", self.dev, "nodad")
            ok("ip", "-n", netns, "link", "set", self.dev, "up")
        wait_for(lambda: " UP " in ok("ip", "-n", self.client, "-br", "link", "show", self.dev))
        return self

    def overflows(self):
        """Datagrams that found a socket's buffer full, at both ends: a reader that had no CPU."""
        found = 0
        for netns in (self.client, self.server):
            lines = ok("cat", "/proc/net/snmp", netns=netns).splitlines()
            names, values = (line.split() for line in lines if line.startswith("Udp:"))
            found += int(values[names.index("RcvbufErrors")])
        return found

    def missing(self, rtt):
        """How many of a ping's datagrams were taken away on purpose: not for want of a CPU."""
        return rtt["lost"] + rtt["lost_unmeasured"] - self.overflows()

    def remove(self):
        for netns in (self.client, self.server):
            run("ip", "netns", "del", netns)


@pytest.fixture
def pair():
    hosts = Pair()
    try:
        yield hosts.make()
    finally:
        hosts.remove()


class Cgroup:
    """A cgroup (v2) of the test's own, and programs from tests/net/bpf attached to it."""

    def __init__(self, tmp_path):
        lines = (line.split() for line in open("/proc/mounts", encoding="utf-8"))
        mounts = [words[1] for words in lines if words[2] == "cgroup2"]
        assert mounts, "no cgroup2 file system is mounted"
        self.path = os.path.join(mounts[0], f"layovertest-{os.getpid()}-{next(serial)}")
        self.pins = tmp_path / "bpf"

    def make(self):
        os.mkdir(self.path)
        self.pins.mkdir()
        ok("mount", "-t", "bpf", "bpf", self.pins)
        return self

    def inside(self, netns, *command):
        """The command, run in this cgroup and then in the namespace, where /sys is another one."""
        return ("sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh", *inside(netns, command))

    def attach(self, name, direction):
        ok("bpftool", "prog", "loadall", os.path.join(BUILD, "test-bpf", name + ".o"), self.pins / name,
           "pinmaps", self.pins / (name + "-maps"))
        ok("bpftool", "cgroup", "attach", self.path, direction, "pinned",
           self.pins / name / f"drop_{direction}")

    def variables(self, name):
        """The program's global variables."""
        [bss] = os.listdir(self.pins / (name + "-maps"))
        [section] = json.loads(ok("bpftool", "-j", "map", "dump", "pinned", self.pins / (name + "-maps") / bss))
        [variables] = section["formatted"]["value"].values()
        return {key: value for entry in variables for key, value in entry.items()}

    def remove(self):
        run("umount", self.pins)  # the programs are gone when the cgroup is
        wait_for(lambda: not open(f"{self.path}/cgroup.procs", encoding="utf-8").read())
        os.rmdir(self.path)


@pytest.fixture
def cgroups(tmp_path):
    """Makes cgroups that are removed afterwards."""
    made = []

    def make():
        made.append(Cgroup(tmp_path / str(len(made))))
        made[-1].pins.parent.mkdir()
        return made[-1].make()

    yield make
    for cgroup in made:
        cgroup.remove()


def labs():
    """The namespaces of labs, living or left over."""
    names = os.listdir(NETNS_DIR) if os.path.isdir(NETNS_DIR) else []
    return sorted(n for n in names if n.startswith("layover-") and n.endswith(("-client", "-server")))
