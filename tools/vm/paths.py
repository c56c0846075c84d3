# SPDX-License-Identifier: GPL-2.0-only
"""Where the lab keeps what it fetched and made: outside the tree, in the user's cache folder."""

import os
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
TREE = SOURCE.parents[1]


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "layover" / "vm"


def kernel(name, flavour):
    return cache() / "kernels" / f"{name}-{flavour}"


def qemu():
    return cache() / "qemu"


def layers():
    return cache() / "layers"
