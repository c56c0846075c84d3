# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong in the lab, as one sentence: what failed, why, what to do."""


class LabError(Exception):
    """The lab itself failed: a package, the host's network, QEMU."""


class GuestDied(LabError):
    """The guest did not come up, or ended, or stopped answering."""


class GuestTimeout(LabError):
    """A command in the guest did not end in its time; the guest killed it and lives on."""

    def __init__(self, message, output=""):
        super().__init__(message)
        self.output = output
