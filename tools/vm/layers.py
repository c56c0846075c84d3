# SPDX-License-Identifier: GPL-2.0-only
"""The guest's root file system, in layers: tools, modules of the kernel, python, the run's own files.

The kernel unpacks concatenated archives one over the other, so each layer is made and cached alone."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from . import paths
from .cpio import MERGED, Archive
from .errors import LabError

# Real programs where busybox has only a part of their options or none. The optional ones make
# guests nicer to work in.
TOOLS = ("dash", "ip", "tc", "ethtool", "nsenter", "unshare", "setpriv", "taskset", "chrt", "timeout", "tar")
OPTIONAL_TOOLS = ("bpftool", "nstat", "ss", "bash", "strace", "sysctl")
TOOL_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")

# Drivers of NICs and tests; what they depend on comes along.
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "igb", "veth", "tun", "dummy", "ifb", "bridge", "macvlan",
           "8021q", "act_*", "cls_*", "em_*", "sch_*", "tcp_*")

PYTHON_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "attr", "attrs", "exceptiongroup",
                   "tomli", "pexpect", "ptyprocess", "pyte", "wcwidth")
PYTHON_SKIP = ("test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "pydoc_data", "distutils", "turtledemo",
               "dist-packages", "site-packages")


def find_tool(name):
    return next((Path(folder) / name for folder in TOOL_FOLDERS if (Path(folder) / name).exists()), None)


def libraries(program):
    """The shared libraries a program or library is linked with, and its loader."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.M)
    if missing:
        raise LabError(f"{program} needs {', '.join(missing)}, not installed here")
    return re.findall(r"(/\S+) \(0x", done.stdout)


def add_program(archive, program, path=None):
    archive.add_file(program, path)
    for library in libraries(program):
        archive.add_file(library)


def tools_layer():
    archive = Archive()
    for name, target in MERGED.items():
        archive.add_folder(target)
        archive.add_link(name, target)
    for folder in ("dev", "proc", "sys", "run", "tmp", "root", "etc", "lab", "var/tmp"):
        archive.add_folder(folder)
    archive.add_console()
    archive.add_text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    archive.add_text("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    archive.add_text("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    archive.add_file(paths.SOURCE / "init.sh", "init")
    archive.entries["init"] = (0o100755, archive.entries["init"][1])
    archive.add_file(paths.SOURCE / "agent.sh", "agent.sh")
    _add_tools(archive)
    return archive


def _add_tools(archive):
    present = set()
    for name in (*TOOLS, *OPTIONAL_TOOLS):
        program = find_tool(name)
        if program:
            add_program(archive, program)
            present.add(name)
        elif name in TOOLS:
            raise LabError(f"{name} is not installed; tools/deps.sh vm installs what the lab needs")
    busybox = find_tool("busybox")
    if not busybox:
        raise LabError("busybox is not installed; tools/deps.sh vm installs what the lab needs")
    add_program(archive, busybox, "/usr/bin/busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    # dash as the shell: busybox's prefers its own ip and tc to the real ones.
    archive.add_link("usr/bin/sh", "dash")
    for applet in set(applets) - present - {"sh", "busybox"}:
        archive.add_link(f"usr/bin/{applet}", "busybox")
    archive.add_link("usr/sbin/modprobe", "../bin/busybox")  # where the kernel looks for it


def modules_layer(kernel, flavour):
    folder = paths.kernel(kernel, flavour)
    base = next((folder / "lib/modules").iterdir())
    archive = Archive()
    for listing in base.glob("modules.*"):
        if listing.suffix != ".bin":
            archive.add_file(listing, f"/lib/modules/{base.name}/{listing.name}")
    wanted = set()
    dependencies = dict(line.split(":") for line in (base / "modules.dep").read_text().splitlines())
    patterns = re.compile("|".join(name.replace("_", "[-_]").replace("*", ".*") for name in MODULES))
    for path, needs in dependencies.items():
        if patterns.fullmatch(Path(path).stem):
            wanted |= {path, *needs.split()}
    for path in sorted(wanted):
        archive.add_file(base / path, f"/lib/modules/{base.name}/{path}")
    return archive


def python_layer():
    """The python this runs in, with its standard library and pytest: about 30 MB, half a second of boot."""
    archive = Archive()
    program = Path(sys.executable).resolve()
    add_program(archive, program)
    archive.add_link("usr/bin/python3", str(program))
    standard = Path(sysconfig.get_paths()["stdlib"])
    config = next((entry.name for entry in standard.glob("config-*")), "")
    archive.add_tree(standard, skip=(*PYTHON_SKIP, config))
    for extension in (standard / "lib-dynload").glob("*.so"):
        add_program(archive, extension)
    for name in PYTHON_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            archive.add_tree(spec.submodule_search_locations[0], skip=("tests",))
        elif spec:
            archive.add_file(spec.origin)
    return archive


def files_layer(files):
    """The run's own files: SOURCE or SOURCE:PATH; without a path they go to /lab."""
    archive = Archive()
    for item in files:
        source, _, path = str(item).partition(":")
        source = Path(source)
        path = path or f"/lab/{source.resolve().name}"
        if source.is_dir():
            archive.add_tree(source, path, skip=("__pycache__",))
        elif os.access(source, os.X_OK) and source.read_bytes()[:4] == b"\x7fELF":
            add_program(archive, source, path)
        elif source.exists():
            archive.add_file(source, path)
        else:
            raise LabError(f"there is no {source} to take into the guest")
    return archive


def _recipe():
    """Changes when the code that makes layers does."""
    code = b"".join((paths.SOURCE / name).read_bytes() for name in ("layers.py", "cpio.py"))
    return hashlib.sha256(code).hexdigest()


def _stamps(files):
    stamps = {}
    for path in files:
        try:
            found = os.stat(path)
            stamps[str(path)] = [found.st_size, found.st_mtime_ns]
        except OSError:
            stamps[str(path)] = None
    return stamps


def cached(name, make):
    """The archive of a layer, made again only if a file in it or this code changed."""
    target = paths.layers() / f"{name}.cpio"
    manifest = target.with_suffix(".json")
    try:
        known = json.loads(manifest.read_text())
        if known["recipe"] == _recipe() and known["files"] == _stamps(known["files"]) and target.exists():
            return target
    except (OSError, ValueError, KeyError):
        pass
    target.parent.mkdir(parents=True, exist_ok=True)
    archive = make()
    fresh = target.with_suffix(f".{os.getpid()}")
    archive.write(fresh)
    fresh.rename(target)
    manifest.write_text(json.dumps({"recipe": _recipe(), "files": _stamps(archive.sources)}))
    return target


def build(target, kernel, flavour, files=(), python=False):
    """One initramfs from all layers."""
    parts = [cached("tools", tools_layer),
             cached(f"modules-{kernel}-{flavour}", lambda: modules_layer(kernel, flavour))]
    if python:
        parts.append(cached("python", python_layer))
    own = Path(target).with_suffix(".files")
    files_layer(files).write(own)
    with open(target, "wb") as out:
        for part in (*parts, own):
            with open(part, "rb") as layer:
                shutil.copyfileobj(layer, out, 1 << 20)
    own.unlink()
