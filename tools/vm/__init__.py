# SPDX-License-Identifier: GPL-2.0-only
"""The VM lab: Debian kernels with real multi-queue NICs under QEMU, for tests and by hand."""
