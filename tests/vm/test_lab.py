# SPDX-License-Identifier: GPL-2.0-only
"""The lab itself: the command line, the ways out, what is left behind, what is fetched from where."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import TREE
from vm import leftovers, mirror, packages
from vm.cpio import Archive, guest_path
from vm.errors import GuestDied, LabError
from vm.kernels import KERNELS, Kernel
from vm.machines import Lab

LAB = TREE / "tools/vm/lab.py"


def run_lab(*words, timeout=120):
    return subprocess.run([sys.executable, LAB, *map(str, words)], capture_output=True, text=True, timeout=timeout)


def namespaces():
    return {path.name for path in leftovers.NAMESPACES.glob("layover-vm.*")}


def processes(text):
    """Processes with this text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def links():
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


# --- the command line ----------------------------------------------------------------------------

def test_run_brings_status_output_and_files_back(tmp_path):
    source = tmp_path / "source"
    source.write_text("content\n")
    done = run_lab("run", "--kernel", "6.1", "--nic", "none", "--files", source, f"{source}:/etc/named", "--get",
                   "/tmp/made", "/tmp/folder", "--out", tmp_path / "out", "--console", tmp_path / "console", "--",
                   "cat source /etc/named; mkdir /tmp/folder; echo 1 >/tmp/folder/a; echo 2 >/tmp/made; exit 3")
    assert done.returncode == 3, done.stderr
    assert done.stdout == "content\ncontent\n"
    assert (tmp_path / "out/made").read_text() == "2\n"
    assert (tmp_path / "out/folder/a").read_text() == "1\n"
    assert (tmp_path / "console").exists()


def test_run_with_second_guest():
    done = run_lab("run", "--kernel", "6.12", "--peer", "guest", "--", "ping", "-c", "1", "10.88.0.2")
    assert done.returncode == 0, done.stdout + done.stderr


def test_run_timeout():
    start = time.monotonic()
    done = run_lab("run", "--nic", "none", "--timeout", 2, "--", "echo before; sleep 100")
    assert done.returncode == 124
    assert done.stdout.startswith("before\n")
    assert time.monotonic() - start < 40


def test_guest_that_panics_says_why():
    done = run_lab("run", "--nic", "none", "--append", "rdinit=/nowhere", "--", "true")
    assert done.returncode == 125
    assert "Kernel panic" in done.stderr or "panic+0x" in done.stderr
    kept = re.search(r"console is in (\S+),", done.stderr)[1]
    assert "Kernel panic" in Path(kept).read_text()


@pytest.mark.parametrize("words, status", [
    (["run", "--kernel", "6.1"], 2), (["run", "--kernel", "5.0", "--", "true"], 2), ([], 2),
    (["run", "--nic", "none", "--files", "/nowhere", "--", "true"], 125),
    (["run", "--queues", "99", "--", "true"], 125), (["--help"], 0), (["clean"], 0)])
def test_usage(words, status):
    assert run_lab(*words).returncode == status


def test_deps_is_quick_when_cached():
    start = time.monotonic()
    done = run_lab("deps")
    assert done.returncode == 0
    assert time.monotonic() - start < 2
    for kernel in KERNELS:
        assert re.search(rf"^{re.escape(kernel)} +cloud +{re.escape(kernel)}", done.stdout, re.M)


def test_wall_clock_from_the_start():
    with Lab() as lab:
        guest = lab.guest(nic="none", rtc="2020-01-01T00:00:00")
        assert guest.check("date -u +%F") == "2020-01-01\n"
        assert not guest.address


# --- ways out ------------------------------------------------------------------------------------

def test_dead_guest_is_noticed():
    with Lab() as lab:
        guest = lab.guest(nic="none")
        with pytest.raises(GuestDied, match="ended"):
            guest.run("echo c >/proc/sysrq-trigger; sleep 100")
        assert "sysrq" in guest.console_text()


def test_nothing_is_left_nor_changed():
    before = links()
    with Lab() as lab:
        guest = lab.guest()
        peer = lab.network.popen("sleep", "1000")
        pid = guest.pid
        assert Path(f"/proc/{pid}").exists()
        assert namespaces() >= {lab.network.name}
    assert not Path(f"/proc/{pid}").exists()
    assert peer.wait(10) == -signal.SIGKILL
    assert lab.network.name not in namespaces()
    assert not lab.folder.exists()
    assert links() == before


def start_long_run():
    """lab.py with a guest that is up and busy, and the name of all it made."""
    known = namespaces()
    # What runs in the background of a script ignores SIGINT, and so would its children.
    process = subprocess.Popen(["env", "--default-signal=INT", sys.executable, LAB, "run", "--timeout", "300", "--",
                                "sleep 300"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while "up in" not in process.stderr.readline():
        assert process.poll() is None
    (name,) = {each for each in namespaces() - known if f".{process.pid}." in each}
    assert processes(f"/{name}/")
    return process, name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_clean_up(number):
    process, name = start_long_run()
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    process.stderr.close()
    assert name not in namespaces()
    assert not processes(f"/{name}/")


def test_kill_leaves_nothing_running_and_next_run_sweeps():
    process, name = start_long_run()
    process.kill()
    process.wait()
    process.stderr.close()
    wait_until(lambda: not processes(f"/{name}/"))
    assert name in namespaces()
    assert run_lab("clean").returncode == 0
    assert name not in namespaces()
    assert not list(Path(leftovers.tempfile.gettempdir()).glob(name))


def test_living_runs_are_not_swept():
    with Lab() as lab:
        leftovers.sweep()
        assert lab.network.name in namespaces()
        assert lab.folder.exists()


def test_process_id_used_again_is_another_process():
    """The name holds the start time too: same id, other time, is not the maker."""
    pid = os.getpid()
    name = f"layover-vm.{pid}.1.0"
    subprocess.run(["ip", "netns", "add", name], check=True)
    leftovers.sweep()
    assert name not in namespaces()


# --- packages ------------------------------------------------------------------------------------

DEB822 = """# a comment
Types: deb
URIs: https://vendor.invalid/apt
Suites: bookworm
Components: main

Types: deb deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm
 bookworm-updates
Components: main contrib

Types: deb
URIs: http://mirror.invalid/debian-security
Suites: bookworm-security
Components: main
"""


def apt_folder(tmp_path, **files):
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name.replace("__", "/").replace("_", ".")).write_text(text)
    return tmp_path


def test_mirror_from_deb822(tmp_path, monkeypatch):
    monkeypatch.delenv("LAYOVER_VM_MIRROR", raising=False)
    folder = apt_folder(tmp_path)
    (folder / "sources.list.d/debian.sources").write_text(DEB822)
    assert mirror.find(folder) == ("http://mirror.invalid/debian", "http://mirror.invalid/debian-security")


def test_mirror_from_one_line_style(tmp_path, monkeypatch):
    monkeypatch.delenv("LAYOVER_VM_MIRROR", raising=False)
    folder = apt_folder(tmp_path)
    (folder / "sources.list").write_text(
        "# deb http://old.invalid/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k] https://tools.invalid/apt tools-bookworm main\n"
        "deb http://mirror.invalid/debian/ bookworm main # ours\n"
        "deb http://mirror.invalid/debian-security bookworm-security main\n")
    assert mirror.find(folder) == ("http://mirror.invalid/debian/", "http://mirror.invalid/debian-security")


def test_mirror_chosen_or_missing(tmp_path, monkeypatch):
    folder = apt_folder(tmp_path)
    monkeypatch.delenv("LAYOVER_VM_MIRROR", raising=False)
    with pytest.raises(LabError, match="LAYOVER_VM_MIRROR"):
        mirror.find(folder)
    monkeypatch.setenv("LAYOVER_VM_MIRROR", "http://chosen.invalid/debian")
    assert mirror.find(folder) == ("http://chosen.invalid/debian", None)


def test_which_versions_belong_to_a_kernel():
    assert KERNELS["6.1"].accepts("6.1.192-2")
    assert not KERNELS["6.1"].accepts("6.12.95-1~bpo12+1")
    assert KERNELS["6.12"].accepts("6.12.95-1~bpo12+1")
    newest = Kernel("7.2", "sid", or_newer=True)
    assert newest.accepts("7.2.13-1") and newest.accepts("7.10-1") and newest.accepts("8.0~rc1-1")
    assert not newest.accepts("7.1.9-1")


def test_paths_in_the_guest():
    assert guest_path("/lib/x86_64-linux-gnu/libc.so.6") == "usr/lib/x86_64-linux-gnu/libc.so.6"
    assert guest_path("/usr/lib/../bin/x") == "usr/bin/x"
    assert guest_path("/lab/layover") == "lab/layover"


def test_archive_can_be_read_by_cpio(tmp_path):
    archive = Archive()
    archive.add_text("/etc/motd", "hello\n")
    archive.add_link("usr/bin/sh", "dash")
    archive.add_console()
    archive.write(tmp_path / "archive")
    listed = subprocess.run(["cpio", "-itv", "--quiet"], stdin=open(tmp_path / "archive", "rb"), capture_output=True,
                            text=True, check=True).stdout
    assert re.search(r"^-rw-r--r--.* 6 .*etc/motd$", listed, re.M)
    assert re.search(r"usr/bin/sh -> dash$", listed, re.M)
    assert re.search(r"^crw------- .*5, +1 .*dev/console$", listed, re.M)


def test_system_apt_configuration_is_only_read():
    assert packages.info("/nowhere") is None
    sources = (packages.paths.cache() / "apt/layover.sources").read_text()
    archive, _ = mirror.find()
    assert f"URIs: {archive}\n" in sources and "Signed-By: " in sources
