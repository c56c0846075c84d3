# SPDX-License-Identifier: GPL-2.0-only
"""Fetches and unpacks kernels and QEMU into the cache. Quick and quiet when all is there."""

import fcntl
import json
import lzma
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from . import image, kernels, paths
from .apt import PrivateApt
from .errors import LabError

# Packages that hold a kernel or its modules; from 7.x on the image package itself is empty.
HOLDS_KERNEL = re.compile(r"linux-(image|binary|modules|base)-\d")
QEMU_PARTS = ("./usr/bin/qemu-system-x86_64", "./usr/lib", "./usr/share/qemu")


def _unpack(deb, folder, patterns=()):
    """Unpacks the paths that match (all, if none given) from a Debian package."""
    folder.mkdir(parents=True, exist_ok=True)
    reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    command = ["tar", "-C", folder, "-xf", "-", "--no-same-owner"]
    if patterns:
        command += ["--wildcards", "--no-wildcards-match-slash", *patterns]
    done = subprocess.run(command, stdin=reader.stdout, capture_output=True, text=True)
    reader.stdout.close()
    # tar says 2 when a pattern matches nothing: layouts differ from kernel to kernel.
    missing_only = "Not found in archive" in done.stderr
    if reader.wait() or (done.returncode and not missing_only):
        raise LabError(f"could not unpack {deb.name}: {done.stderr.strip()}")


def _kernel_patterns():
    folders = [f"{kernels_folder}/{part}" for part in kernels.MODULE_FOLDERS
               for kernels_folder in ("./lib/modules/*/kernel", "./usr/lib/modules/*/kernel")]
    listings = [f"{base}/modules/*/modules.*" for base in ("./lib", "./usr/lib")]
    return [*folders, *listings, "./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz"]


def _decompress(modules):
    """busybox and depmod then need to know no compression, and the guest spends no time on it."""
    for path in modules.rglob("*.ko.xz"):
        path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
        path.unlink()
    for path in modules.rglob("*.ko.zst"):
        subprocess.run(["zstd", "-q", "-d", "--rm", path], check=True)


def _package_set(apt, package, version):
    """The package and all it needs that hold the kernel, each once."""
    found = {package: version}
    for name, wanted in apt.needs(package, version):
        if HOLDS_KERNEL.match(name) and name not in found:
            found.update(_package_set(apt, name, wanted or version))
    return found


def _install_kernel(apt, kernel, flavour):
    meta = kernels.META_PACKAGES[flavour]
    version = next(filter(kernel.accepts, apt.versions(meta, kernel.suite)), None)
    if not version:
        raise LabError(f"{kernel.suite} has no {meta} for kernel {kernel.name}")
    target = paths.kernel(kernel.name, flavour)
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    wanted = _package_set(apt, meta, version)
    del wanted[meta]
    for name, exact in wanted.items():
        deb = apt.download(name, exact)
        _unpack(deb, fresh / "unpacked", _kernel_patterns())
        deb.unlink()
    _arrange(fresh, version)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


def _arrange(fresh, version):
    """unpacked/… -> vmlinux, lib/modules/RELEASE, info.json; the last one marks it complete."""
    unpacked = fresh / "unpacked"
    packed = next(iter([*unpacked.glob("boot/vmlinuz-*"), *unpacked.glob("usr/lib/modules/*/vmlinuz")]), None)
    modules = next(iter([*unpacked.glob("lib/modules/*"), *unpacked.glob("usr/lib/modules/*")]), None)
    if not packed or not modules:
        raise LabError(f"the packages of kernel {version} hold no kernel or no modules where expected")
    packed.rename(fresh / "vmlinuz")
    (fresh / "lib/modules").mkdir(parents=True)
    release = modules.name
    modules.rename(fresh / "lib/modules" / release)
    shutil.rmtree(unpacked)
    _decompress(fresh / "lib/modules")
    # Symbols of modules that were not unpacked are missing; the ones that are used are complete.
    subprocess.run(["/sbin/depmod", "-b", fresh, release], check=True, stderr=subprocess.DEVNULL)
    _unpack_image(fresh)
    (fresh / "info.json").write_text(json.dumps({"release": release, "version": version}) + "\n")


def _unpack_image(folder):
    """vmlinuz -> vmlinux"""
    fresh = folder / "vmlinux.new"
    fresh.write_bytes(image.unpack((folder / "vmlinuz").read_bytes()))
    fresh.rename(folder / "vmlinux")
    (folder / "vmlinuz").unlink()


def _install_qemu(apt):
    fresh = paths.qemu().with_name("qemu.new")
    shutil.rmtree(fresh, ignore_errors=True)
    for package in kernels.QEMU_PACKAGES:
        version = next(apt.versions(package, kernels.QEMU_SUITE), None)
        if not version:
            raise LabError(f"{kernels.QEMU_SUITE} has no {package}")
        deb = apt.download(package, version)
        _unpack(deb, fresh, QEMU_PARTS)
        deb.unlink()
    (fresh / "info.json").write_text(json.dumps({"version": version}) + "\n")
    shutil.rmtree(paths.qemu(), ignore_errors=True)
    fresh.rename(paths.qemu())


@contextmanager
def _locked():
    """Two runs at once must not unpack into the same folder."""
    paths.cache().mkdir(parents=True, exist_ok=True)
    with open(paths.cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _missing(refresh):
    """What has to be installed, as (text, function)."""
    for kernel in kernels.KERNELS.values():
        for flavour in kernels.META_PACKAGES:
            if refresh or not info(paths.kernel(kernel.name, flavour)):
                yield (f"kernel {kernel.name} {flavour}",
                       lambda apt, k=kernel, f=flavour: _install_kernel(apt, k, f))
    if refresh or not info(paths.qemu()):
        yield "QEMU with igb", _install_qemu


def ensure(refresh=False, say=lambda text: None):
    """Fetches what is not in the cache; with refresh, the newest of everything."""
    with _locked():
        for packed in paths.cache().glob("kernels/*/vmlinuz"):  # fetched when they were started as they come
            _unpack_image(packed.parent)
        missing = list(_missing(refresh))
        if not missing:
            return
        suites = sorted({k.suite for k in kernels.KERNELS.values()} | {kernels.QEMU_SUITE})
        apt = PrivateApt(paths.cache() / "apt", suites)
        say("reading package lists")
        apt.update()
        for text, install in missing:
            say(f"fetching {text}")
            install(apt)


def info(folder):
    """{'release': …, 'version': …} of an installed kernel or QEMU, or None."""
    try:
        return json.loads((Path(folder) / "info.json").read_text())
    except (OSError, ValueError):
        return None
