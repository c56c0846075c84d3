# SPDX-License-Identifier: GPL-2.0-only
"""The table of NICs. A new one is one row: QEMU's device, the guest's driver, the flavour of kernel."""

from dataclasses import dataclass

from .errors import LabError


@dataclass(frozen=True)
class Nic:
    name: str
    device: str = ""         # QEMU's device model
    module: str = ""         # the driver in the guest
    flavour: str = "cloud"   # the smallest kernel flavour that has the driver
    host_queues: bool = False  # the queues are the tap's (virtio) or the device's own (igb)
    max_queues: int = 8

    def tap_queues(self, queues):
        return queues if self.host_queues else 1

    def arguments(self, queues, mac):
        """What QEMU's -device says; the address makes it the first PCI device of the guest."""
        common = f"{self.device},netdev=n0,mac={mac},addr=0x2,romfile="
        if not self.host_queues:
            return common
        # One vector per queue and direction, one for configuration changes, one spare.
        vectors = 2 * queues + 2
        several = f",mq=on,vectors={vectors},rss=on,hash=on" if queues > 1 else ""
        return common + several


NICS = {nic.name: nic for nic in (
    Nic("none"),
    Nic("virtio", "virtio-net-pci", "virtio_net", host_queues=True),
    Nic("igb", "igb", "igb", flavour="generic"),
)}


def find(name):
    if name not in NICS:
        raise LabError(f"no such NIC: {name}; there are {', '.join(NICS)}")
    return NICS[name]
