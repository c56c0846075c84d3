# SPDX-License-Identifier: GPL-2.0-only
"""Names that say who made a thing, and the removal of things whose maker is gone.

A name carries the maker's process id and its start time, so that a process id used again by
somebody else is not taken for the maker."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

NAMESPACES = Path("/run/netns")
NAME = re.compile(r"layover-vm\.(\d+)\.(\d+)\.\d+")
_number = count()


def _started(pid):
    """Start time of a process in clock ticks since boot, or None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def new_name():
    pid = os.getpid()
    return f"layover-vm.{pid}.{_started(pid)}.{next(_number)}"


def _maker_gone(name):
    match = NAME.fullmatch(name)
    return bool(match) and _started(int(match[1])) != int(match[2])


def namespace_pids(name):
    done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, timeout=20)
    return [int(pid) for pid in done.stdout.split()]


def remove_namespace(name):
    """Ends what runs in it (nobody else has a reason to) and removes it."""
    deadline = time.monotonic() + 10
    while (pids := namespace_pids(name)) and time.monotonic() < deadline:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


def dead():
    """(namespaces, folders) of runs whose process is gone."""
    namespaces = [entry.name for entry in NAMESPACES.glob("layover-vm.*") if _maker_gone(entry.name)]
    folders = [entry for entry in Path(tempfile.gettempdir()).glob("layover-vm.*") if _maker_gone(entry.name)]
    return namespaces, folders


def sweep():
    namespaces, folders = dead()
    for name in namespaces:
        remove_namespace(name)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return len(namespaces) + len(folders)
