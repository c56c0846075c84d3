# SPDX-License-Identifier: GPL-2.0-only
"""The host's end of the agent in the guest (agent.sh): one command at a time over a virtio-serial port."""

import socket
import time
from typing import NamedTuple

from .errors import GuestDied, GuestTimeout

# Above the command's own limit: what the guest may need to kill it and to send the answer.
GRACE = 30


class Result(NamedTuple):
    status: int
    output: bytes
    errors: bytes


class Agent:
    def __init__(self, channel):
        self._channel = channel
        self._buffer = b""

    def wait_ready(self, deadline):
        """Returns the guest's uptime in seconds when its agent came up."""
        line = self._line(deadline)
        if not line.startswith("ready "):
            raise GuestDied(f"the guest's agent said {line!r} instead of ready")
        return float(line.split()[1])

    def run(self, script, data=b"", timeout=60):
        """Runs a shell script with data on its standard input; raises GuestTimeout after `timeout` seconds."""
        body = script.encode()
        started = time.monotonic()
        deadline = started + timeout + GRACE
        self._send(f"{timeout} {len(body)} {len(data)}\n".encode() + body + data, deadline)
        line = self._line(deadline)
        took = time.monotonic() - started
        word, *numbers = line.split()
        if word != "done" or len(numbers) != 3:
            raise GuestDied(f"the guest's agent said {line!r} instead of done")
        status, output_size, errors_size = map(int, numbers)
        output = self._bytes(output_size, deadline)
        errors = self._bytes(errors_size, deadline)
        # 137: killed, together with `timeout` itself, which is in the same process group.
        if status == 137 and took >= timeout:
            raise GuestTimeout(f"a command in the guest did not end in {timeout} s and was killed",
                               (output + errors).decode(errors="replace"))
        return Result(status, output, errors)

    def _send(self, data, deadline):
        self._channel.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            self._channel.sendall(data)
        except OSError as error:
            raise GuestDied(f"the guest took no command: {error}") from error

    def _more(self, deadline):
        self._channel.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            data = self._channel.recv(1 << 20)
        except socket.timeout as error:
            raise GuestDied("the guest did not answer in time") from error
        except OSError as error:
            raise GuestDied(f"the connection to the guest broke: {error}") from error
        if not data:
            raise GuestDied("the guest ended")
        self._buffer += data

    def _line(self, deadline):
        while b"\n" not in self._buffer:
            self._more(deadline)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def _bytes(self, size, deadline):
        parts = bytearray()
        while True:
            wanted = size - len(parts)
            parts += self._buffer[:wanted]
            self._buffer = self._buffer[wanted:]
            if len(parts) == size:
                return bytes(parts)
            self._more(deadline)
