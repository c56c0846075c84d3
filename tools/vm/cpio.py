# SPDX-License-Identifier: GPL-2.0-only
"""Writes the kernel's initramfs format (cpio "newc") without root and without temporary trees."""

import os
import stat
from pathlib import Path, PurePosixPath

# Where Debian's merged /usr keeps what programs ask for at the old places.
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "lib32": "usr/lib32"}


def guest_path(path):
    """The one place a file has in the guest: without a leading /, below /usr if it belongs there."""
    first, _, rest = os.path.normpath(str(path)).lstrip("/").partition("/")
    return f"{MERGED.get(first, first)}/{rest}" if rest else first


class Archive:
    """A set of files, by their path in the guest."""

    def __init__(self):
        self.entries = {}   # path -> (mode, bytes or Path or link target)
        self.sources = []   # the host's files in it

    def add_folder(self, path):
        for parent in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            if str(parent) != ".":
                self.entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))

    def _add(self, path, mode, content):
        self.add_folder(PurePosixPath(path).parent)
        self.entries[path] = (mode, content)

    def add_file(self, source, path=None):
        """A file of the host, links followed; same path in the guest unless told."""
        source = Path(source)
        self.sources.append(source)
        mode = stat.S_IFREG | (source.stat().st_mode & 0o777)
        self._add(guest_path(path or source), mode, source)

    def add_tree(self, source, path=None, skip=()):
        """A folder; `skip` holds names of files and folders left out."""
        source = Path(source)
        base = PurePosixPath(guest_path(path or source))
        self.add_folder(base)
        for folder, folders, files in os.walk(source):
            folders[:] = sorted(set(folders) - set(skip))
            inner = base / Path(folder).relative_to(source)
            for name in sorted(set(files) - set(skip)):
                if (Path(folder) / name).exists():
                    self.add_file(Path(folder) / name, inner / name)

    def add_text(self, path, text, mode=0o644):
        self._add(guest_path(path), stat.S_IFREG | mode, text.encode())

    def add_link(self, path, target):
        path = path if path in MERGED else guest_path(path)
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def add_console(self):
        """The one device node the first process needs before it mounts /dev."""
        self._add("dev/console", stat.S_IFCHR | 0o600, (5, 1))

    def write(self, target):
        with open(target, "wb") as out:
            for number, path in enumerate(self.entries, 1):
                self._write_entry(out, number, path)
            _write_header(out, 0, "TRAILER!!!", 0, 0, (0, 0))
            _pad(out)

    def _write_entry(self, out, number, path):
        mode, content = self.entries[path]
        device = (0, 0)
        time = 0
        if isinstance(content, Path):
            # Python takes its compiled files only if the source's time is the one it knows.
            time = int(content.stat().st_mtime)
            content = content.read_bytes()
        elif isinstance(content, tuple):
            device, content = content, b""
        _write_header(out, number, path, mode, len(content), device, time)
        out.write(content)
        _pad(out)


def _pad(out):
    out.write(b"\0" * (-out.tell() % 4))


def _write_header(out, number, path, mode, size, device, time=0):
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, time, size, 0, 0, *device, len(name), 0)
    out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
    _pad(out)
