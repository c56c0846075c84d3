# SPDX-License-Identifier: GPL-2.0-only
"""layover top as a person uses it: every key, every page, sizes, colours, and how it leaves the terminal."""
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from conftest import BUILD, LAYOVER, TOP, terminal

FLOWS = os.path.join(BUILD, "test-bin", "flows")


@contextmanager
def in_namespace(*command, links=()):
    """A program that says when it is ready, in a namespace of its own with such links; yields the namespace's inode number
    and the program."""
    netns = f"layovertest-{os.getpid()}-tui"
    subprocess.run(["ip", "netns", "add", netns], check=True)
    child = None
    try:
        for line in ("link set lo up", *links):
            subprocess.run(["ip", "-n", netns, *line.split()], check=True)
        child = subprocess.Popen(["ip", "netns", "exec", netns, *map(str, command)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout.readline() == "ready\n"
        yield os.stat(f"/run/netns/{netns}").st_ino, child
    finally:
        if child:
            child.kill()
            child.communicate(timeout=10)
        subprocess.run(["ip", "netns", "del", netns], check=False)


@contextmanager
def flows(*args):
    """Flows that began to talk; yields their namespace's inode number and what lets them go on."""
    with in_namespace(FLOWS, *args) as (inode, child):
        yield inode, lambda: go(child)


def go(child):
    child.stdin.write("go\n")
    child.stdin.flush()


@pytest.fixture(scope="module")
def lab():
    """One top on the lab's three flows, used by many tests, each of which leaves it on the flows' page."""
    with terminal("--lab", "-d", "0.5") as term:
        term.wait(" 3 flows", 20)
        term.wait(lambda t: "nagle" in t.text, 10)
        yield term


@pytest.fixture
def top(lab):
    yield lab
    if "FROZEN" in lab.text:
        lab.press("p")
    lab.press("esc")
    time.sleep(0.1)
    lab.press("esc")
    time.sleep(0.1)
    lab.press("1")
    lab.wait("PROGRAM")


def rows(term):
    return [line for line in term.text.split("\n") if line.startswith("layover ")]


def test_flows(top):
    """Three flows; the stalled one is told by its cause, and is the slow one."""
    assert len(rows(top)) == 3
    stalled = [row for row in rows(top) if "nagle" in row]
    assert len(stalled) == 1
    p50 = float(stalled[0].split()[3])
    assert 35000 < p50 < 60000  # TCP_DELACK_MIN is 40 ms
    assert "██ held" in top.text and top.line(23).endswith("qQuit")
    # The bar of the stalled flow is of the colour that the legend gives to `held`.
    y = next(i for i, line in enumerate(top.screen.display) if "nagle" in line)
    x = top.line(22).index("██ held")
    bar = top.line(y).index("█")
    assert top.screen.buffer[y][bar].fg == top.screen.buffer[22][x].fg


def test_pages(top):
    for key, head in (("2", "STAGE"), ("3", "NET_RX/S"), ("4", "WHAT"), ("1", "PROGRAM")):
        top.press(key)
        top.wait(lambda t, head=head: head in t.line(2))
    for head in ("STAGE", "NET_RX/S", "WHAT", "PROGRAM"):
        top.press("tab")
        top.wait(lambda t, head=head: head in t.line(2))


def test_stages(top):
    """Of all flows together, the stalled one's hold is most of the time."""
    top.press("2")
    held = top.wait(lambda t: re.search(r"client.held .* ([\d.]+)% █+", t.text))
    assert float(held[1]) > 50
    top.press("end")
    top.wait("client.receive")


def test_cpus(top):
    top.press("3")
    top.wait("NET_RX/S")
    cpu = top.wait(lambda t: re.search(r"^ +0 .*", t.text, re.M))[0].split()
    assert len(cpu) == 9 and cpu[1].endswith("%")
    top.wait(lambda t: re.search(r"^ IRQ DEVICE", t.text, re.M))  # drawn after the CPUs


def test_events_open_as_timelines(top):
    top.press("4")
    top.wait(lambda t: re.search(r"stall .*bytes held: nagle", t.text))
    top.press("p")
    top.wait("FROZEN")
    found = next(i for i, line in enumerate(top.text.split("\n")[3:]) if "bytes held: nagle" in line)
    top.press("home", *["down"] * found, "enter")
    top.wait("a write returns and leaves bytes behind")
    assert "20 bytes, with 1 packets not acknowledged" in top.text
    after = [float(line.split()[0]) for line in top.text.split("\n")
             if line.endswith(("frees them", "they leave"))]
    assert len(after) == 2 and 35000 < after[0] <= after[1] < 300000
    top.press("esc")
    top.wait("WHY")
    top.press("p")


def open_stalled(top):
    top.read()
    if "FROZEN" in top.text:  # by the test before
        top.press("p")
        top.wait(lambda t: "FROZEN" not in t.text)
    top.press("home")
    top.wait(lambda t: any("nagle" in row for row in rows(t)))
    # It is the slowest: the first one by its median.
    top.press("s", "home", *["down"] * 7, "enter")
    top.wait(lambda t: rows(t) and "nagle" in rows(t)[0])
    top.press("home", "enter")
    top.wait("1 Split")


def test_one_flow(top):
    """A flow's pages: its split, heat map, histogram, slowest trips, socket and cause."""
    open_stalled(top)
    held = top.wait(lambda t: re.search(r"client.held +([\d.]+) +([\d.]+)%", t.text))
    assert float(held[2]) > 80
    top.press("2")
    top.wait("the newest at the right")
    top.wait(lambda t: re.search(r"^ +4\d{4} .*█", t.text, re.M))
    top.press("3")
    top.wait(lambda t: re.search(r"^ +4\d{4} +\d+ █", t.text, re.M))
    top.press("4")
    top.wait("stages in path order")
    top.wait(lambda t: re.search(r"^ +[45]\d{4} █", t.text, re.M))
    top.press("enter")
    top.wait(lambda t: re.search(r"client.held +[\d.]+ +[4-9]\d{4}", t.text))
    top.press("esc")
    top.wait("stages in path order")
    top.press("5")
    top.wait(lambda t: re.search(r"^state +ESTABLISHED", t.text, re.M))
    top.wait(lambda t: re.search(r"^mss +1448 bytes", t.text, re.M))  # drawn below: it may come later
    top.press("6")
    top.wait("nagle (proven)")
    top.wait("set TCP_NODELAY")
    top.press("esc")
    top.wait("PROGRAM")


def test_filter(top):
    top.press("/")
    top.wait("Filter:")
    top.press(*"nagle", "enter")
    top.wait(lambda t: len(rows(t)) == 1)
    top.wait("filter: nagle (1 of 3)")
    top.press("f4")
    top.press("\x15", *"no such flow", "enter")
    top.wait("No flow has this text in it")
    top.press("esc")
    top.wait(lambda t: len(rows(t)) == 3)


def test_sort_and_reverse(top):
    def order(term):
        return ["nagle" in row for row in rows(term)]
    top.press("s", "home", *["down"] * 7, "enter")  # P50
    top.wait(lambda t: order(t) == [True, False, False])
    top.press("I")
    top.wait(lambda t: order(t) == [False, False, True])
    top.press("I")
    top.press("f6")
    top.wait("Sort by")
    top.press("esc")
    top.wait(lambda t: "Sort by" not in t.text)


def test_mouse(top):
    """A click on a head sorts, on a line selects, on a page opens it."""
    x = top.line(2).index("P50")
    top.click(x, 2)
    top.wait(lambda t: rows(t) and "nagle" in rows(t)[0])
    top.click(5, 4)
    top.wait(lambda t: t.screen.buffer[4][70].bg not in ("default",))
    top.click(top.line(1).index("Stages"), 1)
    top.wait(lambda t: "STAGE" in t.line(2))


def test_freeze(top):
    top.press(" ")
    top.wait("FROZEN")
    before = rows(top)
    time.sleep(1.6)
    top.read()
    assert rows(top) == before
    top.press("p")
    top.wait(lambda t: "FROZEN" not in t.text)
    top.wait(lambda t: rows(t) != before)


def test_baseline(top):
    top.press("r")
    first = int(top.wait(lambda t: re.search(r"since (\d+) s ago", t.text))[1])
    top.wait(lambda t: int((re.search(r"since (\d+) s ago", t.text) or [0, 0])[1]) > first + 1)
    top.press("r")
    top.wait(lambda t: "s ago" not in t.text)


def test_interval_and_unit(top):
    top.press("+")
    top.wait(lambda t: "1.0s " in t.line(0))
    top.press("-")
    top.wait(lambda t: "0.5s " in t.line(0))
    top.press("u")
    top.wait(lambda t: t.line(0).endswith(" ms"))
    top.wait(lambda t: any(re.search(r" 4\d\.\d\d\d ", row) for row in rows(t)))
    top.press("u")
    top.wait(lambda t: t.line(0).endswith(" auto"))
    top.wait(lambda t: any(re.search(r" 4\d\.\dm ", row) for row in rows(t)))
    top.press("u")
    top.wait(lambda t: t.line(0).endswith(" µs"))


def test_columns(top):
    top.press("c", "home", "enter", "esc")
    top.wait(lambda t: "PROGRAM" not in t.line(2))
    top.press("c", "home", "enter", "esc")
    top.wait(lambda t: "PROGRAM" in t.line(2))


def test_help_has_every_key(top):
    text = ""
    top.press("?")
    top.wait("this help")
    for _ in range(12):
        top.read(0.2)
        text += top.text
        top.press(*["down"] * 4)
        top.read()
    with open(os.path.join(TOP, "user", "tui", "keys.def"), encoding="utf-8") as file:
        names = re.findall(r'^KEY\(\w+, "([^"]+)"', file.read(), re.M)
    assert len(names) > 20
    for name in names:
        assert name in text, name
    top.press("q")  # closes the help, not the program
    top.wait("PROGRAM")


def test_keys_move_the_cursor(top):
    def selected(term):
        return [y for y in range(3, 6) if term.screen.buffer[y][75].bg != "default"]
    top.press("home")
    top.wait(lambda t: selected(t) == [3])
    top.press("j")
    top.wait(lambda t: selected(t) == [4])
    top.press("down")
    top.wait(lambda t: selected(t) == [5])
    top.press("k")
    top.wait(lambda t: selected(t) == [4])
    top.press("end")
    top.wait(lambda t: selected(t) == [5])
    top.press("pgup")
    top.wait(lambda t: selected(t) == [3])
    top.press("pgdn")
    top.wait(lambda t: selected(t) == [5])


def test_redraw(top):
    before = len(top.raw)
    top.press("ctrl-l")
    top.wait(lambda t: b"\x1b[H\x1b[J" in t.raw[before:] and len(t.raw) - before > 1000, 2)


def test_only_changes_are_drawn(top):
    time.sleep(0.6)
    top.read()
    before = len(top.raw)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        top.read()
    drawn = top.raw[before:]
    assert b"\x1b[H\x1b[J" not in drawn
    assert len(drawn) < 12000, len(drawn)  # six intervals; a whole screen is more than 2500


def test_a_key_answers_at_once(top):
    """50 ms, with room for a machine that does something else."""
    times = []
    for page, head in (("2", "STAGE"), ("3", "NET_RX/S"), ("4", "WHAT"), ("1", "PROGRAM")) * 3:
        begin = time.monotonic()
        top.child.send(page)
        while head not in top.line(2):
            top.read(0.2)
        times.append(time.monotonic() - begin)
    assert sorted(times)[len(times) // 2] < 0.05, times


def test_resize(top):
    try:
        top.resize(200, 50)
        top.wait(lambda t: "LOCAL" in t.line(2) and "IDLE" in t.line(2))
        assert "qQuit" in top.line(49)
        top.resize(40, 10)
        top.wait(lambda t: "PROGRAM" in t.line(2) and "IDLE" not in t.line(2))
        top.resize(30, 9)
        top.wait("Sampling goes on")
    finally:
        top.resize(80, 24)
    top.wait(lambda t: len(rows(t)) == 3 and "qQuit" in t.line(23))


@pytest.mark.parametrize("columns, lines", [(80, 24), (40, 10), (200, 50)])
def test_no_page_leaves_its_lines(columns, lines):
    """Every page of every size: nothing wraps, the last line is the footer."""
    with terminal("--lab", "-d", "0.5", columns=columns, lines=lines) as term:
        term.wait(lambda t: " 3 flows" in t.line(0), 20)
        term.wait(lambda t: len(rows(t)) == 3)
        for keys in ("2", "3", "4", "1", "?", "esc", "s", "esc", "c", "esc", "enter", "2", "3", "4", "5", "6"):
            term.press(keys)
            time.sleep(0.15)
            term.read()
            assert term.line(0).startswith(" layover top"), term.text
            if keys not in "?sc":
                assert term.line(lines - 1).startswith("F1Help"), term.text
        term.press("q")
        assert term.end() == 0


def test_no_colours_by_option_environment_and_terminal():
    for args, env in ((["--mono"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "vt100"})):
        with terminal("--lab", "-d", "0.5", *args, **env) as term:
            term.wait(" 3 flows", 20)
            term.wait(lambda t: any("hhhhh" in row for row in rows(t)))
            assert term.colours() <= {"default"}, term.colours()
            assert "h held" in term.line(22)


def test_ascii():
    for args, env in ((["--ascii"], {}), ([], {"LC_ALL": "C"})):
        with terminal("--lab", "-d", "0.5", *args, **env) as term:
            term.wait(" 3 flows", 20)
            term.wait(lambda t: any("->198.18.0.2:7117" in row for row in rows(t)))
            term.press("2")
            term.wait("client.held")
            assert term.text.isascii(), term.text


def test_eight_colours():
    with terminal("--lab", "-d", "0.5", TERM="screen") as term:
        term.wait(" 3 flows", 20)
        term.wait(lambda t: "red" in t.colours())


# --- leaving -------------------------------------------------------------------------------------

ALT_ON, ALT_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.mark.parametrize("how", ["q", "f10", "ctrl-c", "term", "hup"])
def test_leaving_restores_the_terminal(how):
    with terminal("-d", "0.5") as term:
        term.wait("layover top", 20)
        if how == "term":
            term.child.kill(signal.SIGTERM)
        elif how == "hup":
            term.child.kill(signal.SIGHUP)
        else:
            term.press(how)
        assert term.end() == 0
        assert term.raw.count(ALT_ON) == 1 and term.raw.count(ALT_OFF) == 1
        # What was on the screen is printed after it was given back.
        after = term.raw[term.raw.index(ALT_OFF):].decode()
        assert "layover top" in after and "F1Help" in after
        assert b"\x1b[?1000l" in term.raw or b"\x1b[?1006;1000l" in term.raw


def test_no_report_on_exit():
    with terminal("-d", "0.5", "--no-report-on-exit") as term:
        term.wait("layover top", 20)
        term.press("q")
        assert term.end() == 0
        assert b"layover top" not in term.raw[term.raw.index(ALT_OFF):]


def test_a_lost_terminal_ends_it():
    """As when the window is closed: it detaches, and no process is left."""
    with terminal("-d", "0.5") as term:
        term.wait("layover top", 20)
        pid = term.child.pid
        os.close(term.child.child_fd)
        until = time.monotonic() + 10
        while True:
            done, _ = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            assert time.monotonic() < until
            time.sleep(0.05)
        term.child.closed = True


def test_suspend_and_resume():
    """Ctrl-Z under a shell gives the terminal back; fg draws it again."""
    shell = ["/bin/bash", "--norc", "--noprofile", "-i"]
    with terminal(command=shell, PS1="PROMPT> ", HISTFILE="/dev/null") as term:
        term.wait("PROMPT>")
        term.child.send(f"{LAYOVER} top -d 0.5 --no-report-on-exit\n")
        term.wait("1 Flows", 20)
        term.press("ctrl-z")
        term.wait(lambda t: b"Stopped" in t.raw)
        assert term.raw.count(ALT_OFF) == 1
        term.child.send("fg\n")
        term.wait(lambda t: t.raw.count(ALT_ON) == 2 and "1 Flows" in t.text)
        term.press("q")
        term.wait(lambda t: t.raw.count(ALT_OFF) == 2)
        term.child.send("stty -a; exit\n")
        term.wait(lambda t: b" echo " in t.raw and b" icanon " in t.raw)


def test_write_report(tmp_path):
    command = ["/bin/sh", "-c", f"cd {tmp_path} && exec {LAYOVER} top --lab -d 0.5"]
    with terminal(command=command) as term:
        term.wait(" 3 flows", 20)
        term.press("w")
        term.wait("Written: layover-top-")
        files = list(tmp_path.iterdir())
        assert len(files) == 1
        text = files[0].read_text(encoding="utf-8")
        assert "PROGRAM" in text and text.count("198.18.0.2:7117") == 3


def test_not_a_terminal():
    done = subprocess.run([LAYOVER, "top"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=20)
    assert done.returncode == 3 and "top -b" in done.stderr


def test_unknown_terminal():
    with terminal(TERM="no-such-terminal") as term:
        assert term.end() == 3
        assert b"not known here" in term.raw


def test_count_ends_it():
    with terminal("-d", "0.2", "-n", "3") as term:
        assert term.end(20) == 0


# --- what is shown -------------------------------------------------------------------------------

def test_many_flows_scroll():
    with flows("run", 211, 20) as (netns, begin):
        with terminal("--netns", str(netns), "-d", "0.5") as term:
            term.wait("1 Flows", 20)
            begin()
            term.wait(" 211 flows", 10)
            term.press("end")
            term.wait(lambda t: t.screen.buffer[21][75].bg != "default")
            term.press("home")
            term.wait(lambda t: t.screen.buffer[3][75].bg != "default")


HOSTILE = """
import ctypes, socket, sys, threading, time
libc = ctypes.CDLL(None)
name = bytes.fromhex(sys.argv[1])
zone = int(sys.argv[3]) if sys.argv[3:] else 0
listener = socket.socket(socket.AF_INET6)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[2], 5998, 0, zone))
listener.listen()
def serve():
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=answer, args=(conn,), daemon=True).start()
def answer(conn):
    while data := conn.recv(100):
        conn.sendall(data)
threading.Thread(target=serve, daemon=True).start()
conn = socket.socket(socket.AF_INET6)
conn.connect(listener.getsockname())
libc.prctl(15, name, 0, 0, 0)
print("ready", flush=True)
while True:
    conn.sendall(b"x" * 40)
    conn.recv(100)
    time.sleep(0.01)
"""


@pytest.mark.parametrize("name, shown", [
    (b"\x1b[2J\x1b]0;evil\x07", "?[2J?]0;evil?"),
    (b"123456789012345", "123456789012"),
    (b"\xff\xfe\xc3(", "???("),
    ("žluť€".encode(), "??lu????"),
])
def test_hostile_names(name, shown):
    with subprocess.Popen([sys.executable, "-c", HOSTILE, name.hex(), "::1"], stdout=subprocess.PIPE,
                          text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            with terminal("--pid", child.pid, "-d", "0.5", columns=100) as term:
                term.wait("1 Flows", 20)
                term.wait(lambda t: any(line.startswith(shown[:12]) for line in t.text.split("\n")))
                term.wait("[::1]:")
                assert name not in term.raw and b"\xff" not in term.raw and b"]0;evil\x07" not in term.raw
                term.press("enter")
                term.wait("1 Split")
                term.press("q")
                assert term.end() == 0
        finally:
            child.kill()


def test_link_local_addresses():
    """A link-local address means something only with its device: it is told by number, as RFC 4007 has it."""
    index = 47
    links = (f"link add v0 index {index} type veth peer name v1", "link set v0 up", "link set v1 up",
             "addr add fe80::7/64 dev v0 nodad")
    with in_namespace(sys.executable, "-c", HOSTILE, b"link".hex(), "fe80::7", index, links=links) as (inode, _):
        with terminal("--netns", str(inode), "-d", "0.5", columns=140) as term:
            term.wait(f"[fe80::7%{index}]:", 20)
            term.press("enter")
            term.wait("1 Split")
            term.wait(f"[fe80::7%{index}]:5998")
            term.press("q")
            assert term.end() == 0
