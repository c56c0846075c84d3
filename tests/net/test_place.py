# SPDX-License-Identifier: GPL-2.0-only
"""Where both ends run, and what disturbed them there."""
import json
import os
import signal
import time

import pytest

from conftest import BUILD, LAYOVER, layover, ok, ping, run, serve, started, wait_for
from peer import PLAN, VERSION, connect, frame, hello, read_exactly, read_frame
from test_driver import NOBODY, fails, public_binary  # noqa: F401

CPUS = sorted(os.sched_getaffinity(0))
LOCKS = pytest.mark.skipif("san" in BUILD, reason="AddressSanitizer locks no memory")
TWO = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
_ = public_binary  # a fixture


def threads(pid):
    """(CPUs, policy, priority) of each thread."""
    found = []
    for task in map(int, os.listdir(f"/proc/{pid}/task")):
        try:
            policy = os.sched_getscheduler(task) & ~os.SCHED_RESET_ON_FORK
            found.append((tuple(sorted(os.sched_getaffinity(task))), policy, os.sched_getparam(task).sched_priority))
        except ProcessLookupError:
            pass
    return sorted(found)


def ends(client, *args, pair, rows):
    """Runs until both processes have as many threads as wanted rows; then what they are."""
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, *client, pair.server_addr, "-t", "20", *map(str, args), netns=pair.client) as child:
        wanted = [sorted(side) for side in rows]
        seen = None

        def as_wanted():
            nonlocal seen
            seen = [threads(child.pid), threads(server.pid)]
            return seen == wanted
        try:
            wait_for(as_wanted, seconds=4)
        except AssertionError:
            assert seen == wanted
        time.sleep(1.2)  # past the warm-up
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=8)
        assert child.returncode == 0, err
        return out


ALL = tuple(CPUS)
OTHER, FIFO = os.SCHED_OTHER, os.SCHED_FIFO


@TWO
def test_fifo_and_cpus(pair):
    """The measuring threads have the priority, what must run beside them one more."""
    one, two = (CPUS[0],), (CPUS[1],)
    ends(["ping", "--no-split"], "--fifo", 7, "--client-cpu", CPUS[0], "--server-cpu", CPUS[1], pair=pair,
         rows=[[(one, FIFO, 7), (ALL, FIFO, 8)], [(ALL, OTHER, 0), (two, FIFO, 8), (two, FIFO, 7)]])


@TWO
def test_open_loop_has_two_cpus(pair):
    one, two = (CPUS[0],), (CPUS[1],)
    ends(["ping", "--no-split"], "--rate", 1000, "--client-cpus", f"{CPUS[0]},{CPUS[1]}", "--fifo", 3, pair=pair,
         rows=[[(one, FIFO, 3), (two, FIFO, 3), (ALL, FIFO, 4)],
               [(ALL, OTHER, 0), (ALL, FIFO, 3), (ALL, FIFO, 4)]])


@TWO
def test_load_takes_cpus_in_turn(pair):
    one, two = (CPUS[0],), (CPUS[1],)
    ends(["load"], "-P", 3, "-T", 3, "-r", 300, "--client-cpus", f"{CPUS[0]}-{CPUS[1]}", "--server-cpus",
         f"{CPUS[1]},{CPUS[0]}", pair=pair,
         rows=[[(ALL, OTHER, 0), (one, OTHER, 0), (two, OTHER, 0), (one, OTHER, 0)],
               [(ALL, OTHER, 0)] + 2 * [(two, OTHER, 0), (one, OTHER, 0), (two, OTHER, 0)]])


def test_spinning_with_fifo_ends(pair):
    """Both ends on one CPU would wait for ever if neither slept: the watchdog, and the server's control thread, still run."""
    with serve(pair.server, pair.server_addr) as server:
        begun = time.monotonic()
        with started(LAYOVER, "ping", "--no-split", pair.server_addr, "--io", "spin", "--fifo", "5", "-t", "20",
                     "--client-cpu", str(CPUS[0]), "--server-cpu", str(CPUS[-1]), netns=pair.client) as child:
            wait_for(lambda: len(threads(server.pid)) == 3)
            time.sleep(0.3)
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            assert child.wait(5) == 0
            os.kill(server.pid, signal.SIGCONT)
        assert time.monotonic() - begun < 6


@pytest.mark.parametrize("fifo", [0, 5])
def test_numa(pair, fifo):
    with open("/sys/devices/system/node/node0/cpulist", encoding="ascii") as file:
        cpus = {cpu for part in file.read().strip().split(",")
                for cpu in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
    node = tuple(sorted(cpus & set(CPUS)))
    policy = [OTHER, FIFO][fifo > 0]
    options = ["--fifo", fifo] if fifo else []
    ends(["ping", "--no-split"], "--numa", 0, *options, pair=pair,
         rows=[[(node, policy, fifo), (ALL, policy, fifo and fifo + 1)],
               [(ALL, OTHER, 0), (node, policy, fifo), (node, policy, fifo and fifo + 1)]])


def test_numa_binds_memory(pair):
    with serve(pair.server, pair.server_addr), \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "20", "--numa", "0",
                    netns=pair.client) as child:
        def maps():
            with open(f"/proc/{child.pid}/numa_maps", encoding="ascii") as file:
                return file.read()
        if not os.path.exists(f"/proc/{child.pid}/numa_maps"):
            pytest.skip("a kernel without NUMA")
        wait_for(lambda: " bind:0 " in maps())
        time.sleep(0.8)
        child.send_signal(signal.SIGINT)
        assert child.wait(5) == 0


@LOCKS
def test_locked_memory(pair):
    def locked(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "20", "-m", "1M", "--mlock",
                    netns=pair.client) as child:
        wait_for(lambda: locked(child.pid) > 2048 and locked(server.pid) >= 1024)
        time.sleep(0.8)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=5)
        assert child.returncode == 0 and "memory" not in err
        wait_for(lambda: locked(server.pid) == 0)


@LOCKS
def test_what_is_not_allowed(pair, public_binary):  # noqa: F811
    """Without privileges: --fifo ends the run at either end, --mlock is a word."""
    limits = ["prlimit", "--memlock=4096", "--rtprio=0"]
    with serve(pair.server, pair.server_addr, "-p", 7117), \
            started(*limits, *NOBODY, public_binary, "serve", f"{pair.server_addr}:7118", netns=pair.server) as weak:
        assert weak.stdout.readline().startswith("serving on")
        mine = [*limits, *NOBODY, public_binary, "ping", "--no-split", "-i", "97"]
        fails(run(*mine, pair.server_addr, "--fifo", 5, netns=pair.client), 3, "SCHED_FIFO is not allowed here",
              "leave out --fifo")
        fails(layover("ping", "--no-split", f"{pair.server_addr}:7118", "--fifo", 5, netns=pair.client), 1,
              "no session with the server", "SCHED_FIFO is not allowed here")
        done = run(*mine, f"{pair.server_addr}:7118", "-m", "64k", "--mlock", netns=pair.client)
        assert done.returncode == 0
        lines = done.stderr.splitlines()
        assert len(lines) == 2 and all("memory is not locked" in line and "4 KiB" in line for line in lines), lines
        assert sum("the server: memory" in line for line in lines) == 1


@pytest.mark.parametrize("args,words", [
    (["--numa", "1024"], ["--numa", "1023"]), (["--fifo", "0"], ["--fifo", "1 and 98"]), (["--fifo", "99"], ["98"]),
    (["--client-cpus", ""], ["0,2-5"]), (["--client-cpus", "0,"], ["0,2-5"]), (["--client-cpus", "1-0"], ["0,2-5"]),
    (["--client-cpus", "0-x"], ["0,2-5"]), (["--client-cpus", "1023"], ["--client-cpus", "1023", "allowed"]),
    (["--server-cpus", "0-64"], ["--server-cpus", "at most 64"]), (["--server-cpus", "1024"], ["0,2-5"]),
    (["--client-cpus", "0", "--client-cpu", str(CPUS[-1])], ["one of client-cpu and client-cpus"]),
])
def test_wrong_command_lines(args, words):
    fails(layover("ping", "127.0.0.1", *args), 2, *words)


def test_a_node_that_is_not_there(pair):
    with serve(pair.server, pair.server_addr):
        fails(layover("ping", "--no-split", pair.server_addr, "--numa", 1000, netns=pair.client), 1,
              "there is no NUMA node 1000 here")


# --- noise -------------------------------------------------------------------------------------------------


def test_quiet_ends():
    """Pinned to two CPUs, nobody moves."""
    out = ping("--lab", "-t", "500ms")
    noise = out["noise"]
    for side in ("client", "server"):
        assert noise[side]["migrations"] == 0 and noise[side]["cpus"] == [out["load"][side + "_cpu"]]
        assert 0.45e9 < noise[side]["wall_ns"] < 3e9 and noise[side]["steal_ns"] >= 0
    assert noise["shared_cpu"] is None or len(CPUS) == 1


@pytest.mark.parametrize("mode", [[], ["--rate", 2000], ["--depth", 4]])
def test_a_shared_cpu_is_named(mode):
    args = ["--lab", "-t", "300ms", "--client-cpu", CPUS[-1], "--server-cpu", CPUS[-1], *mode]
    assert ping(*args)["noise"]["shared_cpu"] == CPUS[-1]
    text = ok(LAYOVER, "ping", "--no-split", *args)
    assert f"\nnote: both ends ran on CPU {CPUS[-1]}\n" in text


def cpu_of(task):
    with open(f"/proc/{task}/stat", encoding="ascii") as stat:
        return int(stat.read().rpartition(")")[2].split()[36])


@TWO
@pytest.mark.parametrize("mode", [[], ["--rate", 2000]])
def test_migrations_are_counted(pair, mode):
    """The measuring threads are moved by hand, eleven times each."""
    with serve(pair.server, pair.server_addr) as server, \
            started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "2500ms", "-w", 10, *map(str, mode),
                    "--client-cpu", str(CPUS[0]), "--server-cpu", str(CPUS[0]), netns=pair.client) as child:
        wait_for(lambda: len(threads(server.pid)) == 3)
        time.sleep(0.5)
        tid = max(map(int, os.listdir(f"/proc/{server.pid}/task")))
        for i in range(11):
            for task in (child.pid, tid):
                os.sched_setaffinity(task, {CPUS[(i + 1) % 2]})
            wait_for(lambda: all(cpu_of(task) == CPUS[(i + 1) % 2] for task in (child.pid, tid)))
        out, err = child.communicate(timeout=10)
        assert child.returncode == 0, err
    for side in ("client", "server"):
        assert f"note: the {side} moved to another CPU 11 times; --{side}-cpu keeps it in place" in out, out


def interrupts():
    """{(name, cpu): count} of the devices."""
    found = {}
    with open("/proc/interrupts", encoding="ascii") as file:
        cpus = [int(word[3:]) for word in file.readline().split()]
        for line in file:
            label, _, rest = line.partition(":")
            if label.strip().isdigit():
                counts = rest.split()[:len(cpus)]
                name = line.rstrip("\n").split("  ")[-1].strip()
                for cpu, count in zip(cpus, counts):
                    found[name, cpu] = found.get((name, cpu), 0) + int(count)
    return found


def test_foreign_interrupts_are_real(tmp_path):
    """What a disk does meanwhile: no name that is not there, no count above what happened."""
    before = interrupts()
    with started("sh", "-c", f'while :; do dd if=/dev/zero of={tmp_path}/x bs=4k count=64 oflag=direct; done'):
        out = ping("--lab", "-t", "700ms")
    after = interrupts()
    for side in ("client", "server"):
        cpu = out["load"][side + "_cpu"]
        reported = {row["name"]: row["count"] for row in out["noise"][side]["interrupts"]}
        assert all(row["cpu"] == cpu for row in out["noise"][side]["interrupts"])
        for name, count in reported.items():
            assert 0 < count <= after[name, cpu] - before.get((name, cpu), 0)
        loud = [name for (name, at), n in after.items() if at == cpu and n - before.get((name, at), 0) > 1000]
        assert len(reported) >= 16 or set(loud) <= set(reported), (loud, reported)


def test_the_server_answers_about_noise(pair):
    with serve(pair.server, pair.server_addr):
        control = connect(pair.client, pair.server_addr)
        session = hello(control, bytes=5)["session"]
        data = connect(pair.client, pair.server_addr)
        data.sendall(frame({"type": "data", "session": session}) + b"12345")
        assert read_frame(control)["type"] == "go" and read_exactly(data, 5) == b"12345"
        for _i in range(2):
            control.sendall(frame({"type": "noise"}))
            noise = read_frame(control)["noise"]
            assert noise["migrations"] >= 0 and noise["cpu"] in CPUS and noise["wall_ns"] >= 0
            assert set(noise["cpus"]) <= set(CPUS) and isinstance(noise["interrupts"], list)


def test_fields_of_the_plan_may_not_be_missing(pair):
    plan = {key: value for key, value in PLAN.items() if key != "fifo"}
    with serve(pair.server, pair.server_addr):
        control = connect(pair.client, pair.server_addr)
        control.sendall(frame({"type": "hello", **VERSION, "plan": plan}))
        assert "fifo" in json.dumps(read_frame(control))
