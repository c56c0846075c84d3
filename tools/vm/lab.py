#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Debian kernels with real multi-queue NICs under QEMU: run a command in one, or have a look around.

  lab.py deps                                        fetch the kernels and QEMU into the cache
  lab.py run --kernel 6.12 --files build/layover -- layover doctor
  lab.py run --kernel 7.2 --nic igb --peer guest -- ping -c 3 10.88.0.2
  lab.py shell --kernel 6.1
"""

import argparse
import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vm import kernels, leftovers, nics, packages, paths  # noqa: E402
from vm.errors import GuestTimeout, LabError  # noqa: E402
from vm.guest import Options  # noqa: E402
from vm.machines import Lab  # noqa: E402

EXIT_LAB = 125       # as timeout(1): the tool itself failed, not the command
EXIT_TIMEOUT = 124


def say(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def _exit_on_signal(number, _frame):
    # An exception, so that every `with` on the way out cleans up.
    raise SystemExit(128 + number)


def _options(arguments):
    return Options(kernel=arguments.kernel, nic=arguments.nic, queues=arguments.queues, smp=arguments.smp,
                   memory=arguments.memory, flavour=arguments.flavour, files=tuple(arguments.files or ()),
                   python=arguments.python, rtc=arguments.rtc, append=arguments.append,
                   icount=arguments.icount)


def do_deps(arguments):
    packages.ensure(arguments.refresh, say)
    for kernel in kernels.KERNELS:
        for flavour in kernels.META_PACKAGES:
            print(f"{kernel:5} {flavour:8} {packages.info(paths.kernel(kernel, flavour))['release']}")
    print(f"qemu           {packages.info(paths.qemu())['version']}")


def _start(lab, arguments):
    if arguments.peer == "guest":
        return lab.pair(_options(arguments))
    return (lab.guest(_options(arguments)),)


def do_run(arguments):
    with Lab(say) as lab:
        guests = _start(lab, arguments)
        guest = guests[0]
        for each in guests:
            say(f"{each.release}, {each.options.nic}: up in {each.boot_seconds:.1f} s {each.address}")
        try:
            script = arguments.command[0] if len(arguments.command) == 1 else arguments.command
            done = guest.run(script, timeout=arguments.timeout)
        except GuestTimeout as error:
            sys.stdout.write(error.output)
            say(str(error))
            return EXIT_TIMEOUT
        sys.stdout.write(done.out)
        sys.stdout.flush()
        for path in arguments.get or ():
            guest.get(path, Path(arguments.out) / Path(path).name)
        if arguments.console:
            Path(arguments.console).write_text(guest.console_text())
        return done.rc


def do_shell(arguments):
    with Lab(say) as lab:
        guest = lab.prepare(_options(arguments))
        say("the guest's console; leave with `exit`, or Ctrl-A X")
        guest.spawn(shell=True)
        return guest.wait_end()


def do_clean(_arguments):
    print(f"{leftovers.sweep()} leftovers removed")


def _guest_arguments(parser):
    add = parser.add_argument
    add("--kernel", default="6.12", choices=kernels.KERNELS)
    add("--nic", default="virtio", choices=nics.NICS)
    add("--queues", type=int, default=4, metavar="N", help="queue pairs of the NIC (default 4)")
    add("--smp", type=int, default=2, metavar="N", help="CPUs of the guest (default 2)")
    add("--memory", type=int, default=1024, metavar="MB")
    add("--flavour", choices=kernels.META_PACKAGES, help="default: the smallest that has the NIC's driver")
    add("--files", nargs="+", metavar="FILE[:PATH]",
        help="take these along, to /lab unless told; programs with their libraries")
    add("--python", action="store_true", help="with python3 and pytest (half a second more)")
    add("--rtc", metavar="TIME", help="the guest's wall clock at boot, 2020-01-01T00:00:00")
    add("--icount", action="store_true", help="its clock counts instructions, however busy the host is")
    add("--append", default="", metavar="WORDS", help="more words for the kernel's command line")


def _parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    deps = commands.add_parser("deps", help="fetch kernels and QEMU into the cache, if they are not there")
    deps.add_argument("--refresh", action="store_true", help="look for newer ones")
    deps.set_defaults(do=do_deps)
    run = commands.add_parser("run", help="boot, run a command, bring its output, files and exit status back")
    _guest_arguments(run)
    run.add_argument("--peer", default="tap", choices=("tap", "guest"),
                     help="the other end of the cable: a tap on the host (10.88.0.1), or a second guest (10.88.0.2)")
    run.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="for the command (default 60)")
    run.add_argument("--get", nargs="+", metavar="PATH", help="files and folders to bring back afterwards")
    run.add_argument("--out", default=".", metavar="FOLDER", help="where they go (default .)")
    run.add_argument("--console", metavar="FILE", help="keep the guest's console here, also when all went well")
    run.set_defaults(do=do_run)
    shell = commands.add_parser("shell", help="boot and give me a shell on the console")
    _guest_arguments(shell)
    shell.set_defaults(do=do_shell)
    clean = commands.add_parser("clean", help="remove what dead runs left; every run does this too")
    clean.set_defaults(do=do_clean)
    return parser


def _split_command(words):
    """Everything behind the first -- belongs to the guest."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1:]


def main():
    own, command = _split_command(sys.argv[1:])
    parser = _parser()
    arguments = parser.parse_args(own)
    arguments.command = command
    if arguments.do is do_run and not command:
        parser.error("run needs a command behind --")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_on_signal)
    try:
        return arguments.do(arguments) or 0
    except LabError as error:
        say(str(error))
        return EXIT_LAB
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
