# SPDX-License-Identifier: GPL-2.0-only
"""TCP traffic for the tests of the VM lab: traffic.py serve ADDRESS | ping ADDRESS FLOWS COUNT | stream ADDRESS MB"""

import json
import socket
import sys
import threading
import time

PORT = 7777
MESSAGE = b"x" * 40


def _echo(connection):
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def serve(address):
    with socket.create_server((address, PORT)) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_echo, args=(connection,), daemon=True).start()


def _connect(address):
    connection = socket.create_connection((address, PORT), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _exchange(connection, message):
    connection.sendall(message)
    left = len(message)
    while left:
        left -= len(connection.recv(left))


def ping(address, flows, count):
    """Round trips on each flow in turn; a flow that hangs raises a timeout."""
    times = []
    connections = [_connect(address) for _ in range(flows)]
    for _ in range(count):
        for connection in connections:
            start = time.monotonic_ns()
            _exchange(connection, MESSAGE)
            times.append(time.monotonic_ns() - start)
    times.sort()
    print(json.dumps({"trips": len(times), "p50_us": times[len(times) // 2] / 1000, "min_us": times[0] / 1000}))


def stream(address, megabytes):
    connection = _connect(address)
    start = time.monotonic()
    for _ in range(megabytes * 16):
        _exchange(connection, b"y" * 65536)
    print(json.dumps({"mb_per_s": megabytes / (time.monotonic() - start)}))


if __name__ == "__main__":
    VERBS = {"serve": serve, "ping": ping, "stream": stream}
    VERBS[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
