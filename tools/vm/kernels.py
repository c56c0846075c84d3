# SPDX-License-Identifier: GPL-2.0-only
"""The table of kernels. A new kernel is one row."""

from dataclasses import dataclass

from .errors import LabError


@dataclass(frozen=True)
class Kernel:
    name: str            # what the command line and the tests call it
    suite: str           # the Debian suite whose meta packages lead to it
    or_newer: bool = False  # the suite moves on: take what it has, if not older than the name

    def accepts(self, version):
        """Is the Debian version (6.12.95-1~bpo12+1) one of this kernel's?"""
        mine = _numbers(self.name)
        theirs = _numbers(version)[:len(mine)]
        return theirs >= mine if self.or_newer else theirs == mine


# The cloud flavour is small and boots fastest, but has no drivers for physical NICs.
META_PACKAGES = {"cloud": "linux-image-cloud-amd64", "generic": "linux-image-amd64"}

KERNELS = {kernel.name: kernel for kernel in (
    Kernel("6.1", "bookworm"),
    Kernel("6.12", "bookworm-backports"),
    Kernel("7.2", "sid", or_newer=True),
)}

# igb as a QEMU device came with QEMU 8; Debian 12 has 7.2, which also emulates less reliably.
QEMU_SUITE = "bookworm-backports"
QEMU_PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data")

# The only parts of a kernel's modules the lab needs; the rest (200 MB) is not even unpacked.
MODULE_FOLDERS = (
    "drivers/net/*.ko*",
    "drivers/net/ethernet/intel/igb/*",
    "drivers/virtio/*",
    "drivers/char/virtio_console.ko*",
    "drivers/i2c/algos/*",
    "drivers/i2c/i2c-core.ko*",
    "drivers/dca/*",
    "drivers/ptp/*",
    "drivers/pps/*",
    "net/802/*",
    "net/8021q/*",
    "net/bridge/*",
    "net/core/*",
    "net/ipv4/*",
    "net/llc/*",
    "net/sched/*",
    "lib/*",
)


def _numbers(version):
    """6.12.95-1~bpo12+1 -> [6, 12, 95]"""
    upstream = version.split(":")[-1].split("-")[0].split("+")[0].split("~")[0]
    return [int(part) for part in upstream.split(".") if part.isdigit()]


def find(name):
    if name not in KERNELS:
        raise LabError(f"no such kernel: {name}; there are {', '.join(KERNELS)}")
    return KERNELS[name]
