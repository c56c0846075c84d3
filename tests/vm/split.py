# SPDX-License-Identifier: GPL-2.0-only
"""layover ping in a guest; what -j and --dump say, read and checked."""

import csv
import io
import json
import os
from contextlib import contextmanager

from conftest import TREE
from vm.machines import Lab

BUILD = (TREE / os.environ.get("LAYOVER_BUILD", "build")).resolve()
LAYOVER = BUILD / "layover"
TRIPS = 2003
FEWER = 503  # where the question is another than how many of them are covered
PROTOS = [[], ["--udp"]]


def read(text, dump=None):
    """The JSON, with `stages` by key and, of a dump, `rows`: a trip's stages and its round trip, in ns."""
    result = json.loads(text)
    result["stages"] = {stage["key"]: stage for stage in result["split"]["stages"]}
    if dump is not None:
        result["rows"] = [{key: int(ns) for key, ns in row.items() if key.endswith("_ns")}
                          for row in csv.DictReader(io.StringIO(dump.decode()))]
    return result


class Machine:
    """A guest with layover."""

    def __init__(self, guest):
        self.guest = guest
        self.kernel, self.nic = guest.options.kernel, guest.options.nic

    def ping(self, *options, rows=True):
        words = " ".join(map(str, options))
        text = self.guest.check(f"layover ping --split -j --dump /tmp/rows.csv {words}", 120)
        return read(text, self.guest.get("/tmp/rows.csv") if rows else None)


@contextmanager
def pinging(kernel, nic, **options):
    """A Machine, and its server in the host's namespace."""
    with Lab() as lab:
        guest = lab.guest(kernel=kernel, nic=nic, memory=2048, files=(LAYOVER,), **options)
        server = lab.network.popen(LAYOVER, "serve", guest.peer_address, stdout=-1)
        assert server.stdout.readline().startswith(b"serving on")
        yield Machine(guest)
        server.kill()
        server.wait()
        server.stdout.close()


def missed(result):
    return result["counters"]["trips"] - result["counters"]["matched"]


def assert_exact(result, trips=TRIPS):
    """Every trip has a row that sums to its round trip, 99.9 % of them have every hook, no record was lost."""
    rows, counters = result["rows"], result["counters"]
    stages = [key for key in rows[0] if "." in key]
    assert len(rows) == counters["trips"] == trips
    for row in rows:
        assert sum(row[key] for key in stages) == row["rtt_ns"], row
        assert min(row[key] for key in stages) >= 0, row
    assert missed(result) <= max(2, 0.001 * trips) and counters["dropped"] == 0, counters


def covered(run, attempts=3):
    """A run of which no trip went missing, or the best: other load can starve an emulated CPU for milliseconds."""
    results = []
    while len(results) < attempts and not any(missed(each) <= 2 for each in results):
        results.append(run())
    return min(results, key=missed)


def by_turns(pin):
    """For a test: all emulated CPUs take turns on one of the host's, all else has the other; pin(CPUs, CPUs) does it.

    On CPUs of their own, next to all else, they wake in parallel to what they would wait for."""
    cpus = os.sched_getaffinity(0)
    pin({max(cpus)}, {min(cpus)})
    yield
    pin(cpus, cpus)


def quick_means(result):
    """Means of the quickest four fifths of the trips: a machine that does something else shows in the others."""
    rows = sorted(result["rows"], key=lambda row: row["rtt_ns"])[:len(result["rows"]) * 4 // 5]
    return {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
