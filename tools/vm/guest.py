# SPDX-License-Identifier: GPL-2.0-only
"""One guest: QEMU, its console, its agent."""

import io
import os
import shlex
import socket
import subprocess
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from . import kernels, layers, nics, packages, paths
from .agent import Agent
from .errors import GuestDied, LabError

# For emulation on a busy machine; an idle one needs 2 to 5 s.
BOOT_TIMEOUT = 90
# QEMU's own folder first; the firmware is a package of its own.
FIRMWARE = ("/usr/share/seabios", "/usr/share/qemu")
# All that is emulated, but for what is quick in silicon only: where a CPU says that it copies and clears bytes fast, the
# kernel does so byte by byte, of which the emulator makes a loop; and a fifth level of page tables is walked in vain.
# Without them a traced run of 16 KiB messages takes half the time.
CPU = "max,erms=off,fsrm=off,la57=off"
# 2^1 ns for an instruction; while the guest waits, its clock goes on as the host's.
ICOUNT = "shift=1,sleep=on"


class Run(NamedTuple):
    """What a command did: exit status, and output and errors in the order they were written."""
    rc: int
    out: str


@dataclass
class Options:
    """What a guest is made of. None for the flavour: the smallest that has the NIC's driver."""
    kernel: str = "6.1"
    nic: str = "virtio"
    queues: int = 4
    smp: int = 2
    memory: int = 1024
    flavour: str = None
    files: tuple = ()
    python: bool = False
    modules: tuple = ()
    append: str = ""          # more words for the kernel's command line
    icount: bool = False      # its clock counts instructions, however busy the host is
    rtc: str = None           # the guest's wall clock at boot, 2020-01-01T00:00:00
    boot_timeout: float = BOOT_TIMEOUT


@dataclass
class Wire:
    """Where the NIC's cable ends: QEMU's -netdev, the files it needs open, the guest's address."""
    netdev: str = ""
    mac: str = ""
    address: str = ""
    links: tuple = ()         # what the host brings up once the guest is
    files: list = field(default_factory=list)


def qemu_program():
    """The command line that starts the QEMU fetched beside the system's.

    Debian 12's own (7.2) has no igb, and under it kernel 6.12 dies in one boot of four: flags come back
    wrong from emulated instructions."""
    root = paths.qemu()
    folders = [str(root / "usr/share/qemu"), *FIRMWARE]
    return [str(root / "usr/bin/qemu-system-x86_64"), *(word for each in folders for word in ("-L", each))]


class Guest:
    """start() and stop(), or a with statement; in between run(), put(), get()."""

    def __init__(self, network, folder, options, wire=None):
        self.network = network
        self.folder = Path(folder)
        self.options = options
        self.wire = wire or Wire()
        self.nic = nics.find(options.nic)
        self.flavour = options.flavour or self.nic.flavour
        kernels.find(options.kernel)
        self.console = self.folder / "console.log"
        self.boot_seconds = None   # wall time until the agent answered
        self.boot_uptime = None    # the same on the guest's own clock
        self._process = self._agent = self._channel = None
        self._started = 0.0

    @property
    def address(self):
        return self.wire.address.partition("/")[0]

    @property
    def pid(self):
        return self._process.pid if self._process else None

    def pin(self, cpus, rest):
        """All emulated CPUs on these CPUs of the host, the emulator's other threads on those."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            emulates = (task / "comm").read_text().startswith("CPU ")
            os.sched_setaffinity(int(task.name), cpus if emulates else rest)

    @property
    def release(self):
        return packages.info(paths.kernel(self.options.kernel, self.flavour))["release"]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.spawn()
        return self.wait_ready()

    # Two guests that talk to each other are spawned first and waited for then.
    def spawn(self, shell=False):
        self.folder.mkdir(parents=True, exist_ok=True)
        initrd = self.folder / "initrd"
        options = self.options
        layers.build(initrd, options.kernel, self.flavour, options.files, options.python)
        own, theirs = socket.socketpair()
        self._started = time.monotonic()
        command = self._command(initrd, theirs.fileno(), shell)
        files = [theirs.fileno(), *(each.fileno() for each in self.wire.files)]
        streams = {} if shell else {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                                    "stderr": open(self.folder / "qemu.log", "wb")}
        self._process = subprocess.Popen(self.network.inside(*command), pass_fds=files, **streams)
        for each in (theirs, *self.wire.files):
            each.close()
        if not shell:
            streams["stderr"].close()
        self._channel = own
        self._agent = Agent(own)

    def wait_ready(self):
        try:
            self.boot_uptime = self._agent.wait_ready(self._started + self.options.boot_timeout)
        except GuestDied as error:
            raise self._obituary(error) from error
        self.boot_seconds = time.monotonic() - self._started
        (self.folder / "initrd").unlink()
        self.network.connect(self.wire.links)
        return self

    def wait_end(self):
        """For an interactive guest: until its user leaves."""
        return self._process.wait()

    def _command(self, initrd, agent_fd, shell):
        options = self.options
        command = [*qemu_program(), "-name", "layover,debug-threads=on",  # threads have names: pin()
                   "-M", "q35,accel=tcg", "-cpu", CPU, "-smp", options.smp, "-m", options.memory,
                   "-no-reboot", "-nodefaults", "-display", "none",
                   "-kernel", paths.kernel(options.kernel, self.flavour) / "vmlinux", "-initrd", initrd,
                   "-append", self._kernel_words(shell)]
        if shell:
            command += ["-serial", "mon:stdio"]
        else:
            command += ["-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console"]
        if options.icount:
            command += ["-icount", ICOUNT]
        if options.rtc:
            command += ["-rtc", f"base={options.rtc}"]
        if self.nic.device:
            command += ["-netdev", self.wire.netdev, "-device", self.nic.arguments(options.queues, self.wire.mac)]
        return command + ["-device", "virtio-serial-pci,addr=0x8", "-chardev", f"socket,id=agent,fd={agent_fd}",
                          "-device", "virtserialport,chardev=agent,name=layover.agent"]

    def _kernel_words(self, shell):
        modules = [self.nic.module] if self.nic.module else []
        # Under emulation all CPUs read one TSC. The kernel's watchdog doubts it when the host is busy, and
        # the clock it takes instead (hpet) costs each reader, BPF programs too, a trip through QEMU.
        words = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "net.ifnames=0", "tsc=reliable"]
        words.append("lab.modules=" + ",".join([*modules, *self.options.modules]))
        if self.wire.address:
            words += [f"lab.address={self.wire.address}", f"lab.queues={self.options.queues}"]
        if shell:
            words.append("lab.shell=1")
        return " ".join([*words, self.options.append]).strip()

    def execute(self, script, data=b"", timeout=60):
        """run() with bytes: a Result of status, output, errors."""
        try:
            return self._agent.run(script, data, timeout)
        except GuestDied as error:
            raise self._obituary(error) from error

    def run(self, command, timeout=60, data=b""):
        """Runs a shell command (or a list of words); raises GuestTimeout when it takes too long."""
        if not isinstance(command, str):
            command = shlex.join(map(str, command))
        result = self.execute(f"exec 2>&1\n{command}\n", data, timeout)
        return Run(result.status, result.output.decode(errors="replace"))

    def check(self, command, timeout=60):
        """run() for commands that must succeed; returns the output."""
        done = self.run(command, timeout)
        if done.rc:
            raise LabError(f"in the guest: {command} ended with {done.rc}:\n{done.out}")
        return done.out

    def put(self, source, path):
        """Copies a file (or bytes) or a folder of the host to a path in the guest."""
        stream = io.BytesIO()
        name = str(path).lstrip("/")
        with tarfile.open(fileobj=stream, mode="w") as tar:
            if isinstance(source, bytes):
                member = tarfile.TarInfo(name)
                member.size = len(source)
                tar.addfile(member, io.BytesIO(source))
            else:
                tar.add(source, name)
        done = self.execute("tar -C / -xf -", stream.getvalue())
        if done.status:
            raise LabError(f"could not put {path} into the guest: {done.errors.decode(errors='replace')}")

    def get(self, path, target=None, timeout=120):
        """Copies a file of the guest to `target`, or returns its bytes; a folder goes into `target`."""
        words = "cat --" if target is None else "tar -chf - -C /"
        name = str(path) if target is None else str(path).lstrip("/")
        done = self.execute(f"{words} {shlex.quote(name)}", timeout=timeout)
        if done.status:
            raise LabError(f"could not get {path} from the guest: {done.errors.decode(errors='replace').strip()}")
        return done.output if target is None else _unpack(done.output, name, Path(target))

    def stop(self):
        """Ends QEMU; the guest has nothing to lose."""
        if self._process:
            self._process.kill()
            self._process.wait()
        if self._channel:
            self._channel.close()
        self._process = self._channel = None

    def console_text(self):
        try:
            return self.console.read_text(errors="replace")
        except OSError:
            return ""

    def _obituary(self, error):
        """The same failure with what the guest and QEMU said last, and where all of it is kept."""
        kept = paths.cache() / f"console-{self.options.kernel}-{self.nic.name}.log"
        log = self.folder / "qemu.log"
        said = log.read_text(errors="replace") if log.exists() else ""
        text = self.console_text() + said
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text)
        tail = "\n".join(text.splitlines()[-15:])
        return GuestDied(f"kernel {self.options.kernel} with {self.nic.name}: {error}; "
                         f"all of its console is in {kept}, the end of it:\n{tail}")


def _unpack(stream, name, target):
    """A single file becomes `target`; a folder's contents go into it."""
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        for member in tar.getmembers():
            inner = member.name[len(name):].lstrip("/")
            path = target / inner if inner else target
            if ".." in Path(inner).parts:
                raise LabError(f"the guest sent a path that leads elsewhere: {member.name}")
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
                path.chmod(member.mode & 0o777)
    return target
