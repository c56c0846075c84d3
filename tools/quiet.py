#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""quiet.py SECONDS waits, no longer than that, until this machine's CPUs are there for who wants them: others' load, and
a hypervisor that gives the CPU to others, spoil what compares times."""
import multiprocessing
import os
import sys
import time

PART = 0.001      # s, of spinning and of sleep by turns: both come back late when the CPU is somebody else's
TURNS = 500
PROMPT = 0.0002   # s, what a timer and a wake-up may take
QUIET = 0.1       # of the time


def taken(cpu):
    """The share of the time by which what is done on that CPU comes late."""
    os.sched_setaffinity(0, {cpu})
    late = 0
    begun = last = time.monotonic()
    for _ in range(TURNS):
        end = last + PART
        while last < end:
            now = time.monotonic()
            late += now - last if now - last > PROMPT else 0
            last = now
        time.sleep(PART)
        now = time.monotonic()
        late += max(0, now - last - PART - PROMPT)
        last = now
    return late / (last - begun)


def main():
    until = time.monotonic() + float(sys.argv[1])
    cpus = sorted(os.sched_getaffinity(0))
    with multiprocessing.Pool(len(cpus)) as pool:
        while True:
            worst = max(pool.map(taken, cpus, 1))
            left = until - time.monotonic()
            if worst < QUIET or left < 0:
                break
            print(f"{worst:.0%} of a CPU is taken by others: waiting, for {left:.0f} s at most", flush=True)
            time.sleep(min(10, left))


main()
