# SPDX-License-Identifier: GPL-2.0-only
"""A terminal that a test types into and looks at: pexpect holds the program, pyte draws what it prints."""
import contextlib
import os
import signal
import sys
import time

import pexpect
import pyte
import pytest

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "net"))
BUILD = os.path.join(TOP, os.environ.get("LAYOVER_BUILD", "build"))
LAYOVER = os.path.join(BUILD, "layover")

# As the terminfo entry screen-256color has them, whose output pyte understands (but for what Screen adds).
KEYS = {"up": "\x1bOA", "down": "\x1bOB", "pgup": "\x1b[5~", "pgdn": "\x1b[6~", "home": "\x1b[1~", "end": "\x1b[4~",
        "f1": "\x1bOP", "f4": "\x1bOS", "f6": "\x1b[17~", "f10": "\x1b[21~", "esc": "\x1b", "enter": "\r",
        "tab": "\t", "ctrl-l": "\x0c", "ctrl-c": "\x03", "ctrl-z": "\x1a"}


def pytest_configure(config):
    if os.geteuid() != 0:
        raise pytest.UsageError("top needs root")


class Screen(pyte.Screen):
    """With the two sequences that curses uses and pyte does not know: a region scrolls by several lines."""

    def at_top(self, change, count):
        at, self.cursor.y = self.cursor.y, self.margins.top if self.margins else 0
        change(count)
        self.cursor.y = at

    def scroll_up(self, count=1):
        self.at_top(self.delete_lines, count)

    def scroll_down(self, count=1):
        self.at_top(self.insert_lines, count)


class Stream(pyte.ByteStream):
    csi = dict(pyte.ByteStream.csi, S="scroll_up", T="scroll_down")
    events = pyte.ByteStream.events | {"scroll_up", "scroll_down"}


class Terminal:
    """A program in a terminal of so many columns and lines."""

    def __init__(self, command, columns=80, lines=24, **env):
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        environment.update({"TERM": "screen-256color", "LC_ALL": "C.UTF-8"}, **env)
        self.screen = Screen(columns, lines)
        self.stream = Stream(self.screen)
        self.raw = b""
        self.child = pexpect.spawn(command[0], [str(word) for word in command[1:]], env=environment,
                                   dimensions=(lines, columns), timeout=10)
        self.child.delaybeforesend = None

    def read(self, seconds=0.05):
        """Draws what comes within that time. False when the program has closed the terminal."""
        try:
            data = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self.stream.feed(data)
        return True

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def line(self, number):
        return self.screen.display[number].rstrip()

    def wait(self, condition, seconds=10):
        """Until a text is there, or condition(self) is true; returns its value."""
        until = time.monotonic() + seconds
        while True:
            value = condition in self.text if isinstance(condition, str) else condition(self)
            if value:
                return value
            open_ = self.read()
            assert open_ and time.monotonic() < until, f"{condition} did not happen:\n{self.text}"

    def press(self, *keys):
        for key in keys:
            self.child.send(KEYS.get(key, key))
            self.read(0.05)

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)

    def click(self, x, y):
        """The first mouse button, down and up; from 0."""
        for button in (32, 35):
            self.child.send(b"\x1b[M" + bytes((button, 33 + x, 33 + y)))

    def end(self, seconds=10):
        """Until the program has ended; its exit status."""
        until = time.monotonic() + seconds
        while self.read() and self.child.isalive():
            assert time.monotonic() < until, "it does not end"
        while self.read(0.2):
            if not self.child.isalive():
                break
        self.child.close()
        return self.child.exitstatus

    def colours(self):
        """The foreground colours that are on the screen."""
        return {cell.fg for row in self.screen.buffer.values() for cell in row.values() if cell.data.strip()}


@contextlib.contextmanager
def terminal(*args, columns=80, lines=24, command=None, **env):
    term = Terminal(command or [LAYOVER, "top", *args], columns, lines, **env)
    try:
        yield term
    finally:
        if not term.child.closed and term.child.isalive():
            term.child.kill(signal.SIGTERM)
            with contextlib.suppress(AssertionError):
                term.end()
            term.child.close(force=True)
