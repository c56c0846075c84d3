# SPDX-License-Identifier: GPL-2.0-only
"""The host's end of the guests' network: a namespace of its own, with taps and bridges in it."""

import subprocess

from . import leftovers
from .errors import LabError


class Network:
    """One network namespace. Every process of a lab runs in it, none outlives it."""

    def __init__(self, name):
        self.name = name
        self._ip("netns", "add", name)
        # Packets that reach a multi-queue tap before the guest's driver is up can leave single queues
        # stuck for good when RSS is on. So links stay down until connect(), and IPv6, which sends by
        # itself, stays off until asked for.
        self._sysctl("net/ipv6/conf/default/disable_ipv6", 1)
        self._ip("-n", name, "link", "set", "lo", "up")

    @staticmethod
    def _ip(*words):
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise LabError(f"ip {' '.join(words)}: {done.stderr.strip()} (root is needed)")

    def _sysctl(self, path, value):
        script = f"[ ! -e /proc/sys/{path} ] || echo {value} >/proc/sys/{path}"
        subprocess.run(self.inside("sh", "-c", script), check=True, timeout=20)

    def inside(self, *argv):
        """The command line that runs argv in the namespace and ends it when this process ends.

        nsenter instead of `ip netns exec`: that one mounts a new /sys, without tracefs and bpffs."""
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/run/netns/{self.name}", "--", *map(str, argv)]

    def run(self, *argv, timeout=30, **options):
        return subprocess.run(self.inside(*argv), timeout=timeout, capture_output=True, text=True, **options)

    def popen(self, *argv, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.inside(*argv), **options)

    def tap(self, name, queues, address=None, bridge=None):
        """A tap for QEMU. It must be made with as many queues (one or several) as it is opened with."""
        kind = ["multi_queue"] if queues > 1 else []
        self._ip("-n", self.name, "tuntap", "add", "dev", name, "mode", "tap", *kind)
        if bridge:
            self._ip("-n", self.name, "link", "set", name, "master", bridge)
        if address:
            self._ip("-n", self.name, "addr", "add", address, "dev", name)

    def bridge(self, name):
        self._ip("-n", self.name, "link", "add", name, "type", "bridge", "forward_delay", "0", "stp_state", "0")

    def connect(self, names):
        """Lets packets pass, now that the guests' drivers are up; see __init__."""
        for name in names:
            self._ip("-n", self.name, "link", "set", name, "up")

    def enable_ipv6(self, name, address):
        """An IPv6 address for a link whose guest is up; see __init__."""
        self._sysctl(f"net/ipv6/conf/{name}/disable_ipv6", 0)
        self._ip("-n", self.name, "addr", "add", address, "dev", name, "nodad")

    def close(self):
        leftovers.remove_namespace(self.name)
