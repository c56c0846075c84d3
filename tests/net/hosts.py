# SPDX-License-Identifier: GPL-2.0-only
"""Two hosts of a test's own: namespaces joined by a veth pair, a server in one, pings from the other."""
import contextlib
import csv
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("LAYOVER_BUILD", "build")).resolve()
LAYOVER = str(BUILD / "layover")
SERVER = "198.51.100.2"
PORT = 7117


def sh(*words, check=True, timeout=20, **kwargs):
    return subprocess.run(words, check=check, timeout=timeout, capture_output=True, text=True, **kwargs)


class Hosts:
    """`client` and `server` namespaces; everything made here is removed by close()."""

    def __init__(self):
        self.client, self.server = (f"lotest-{os.getpid()}-{side}" for side in ("c", "s"))
        self.processes = []
        for ns in (self.client, self.server):
            sh("ip", "netns", "add", ns)
        sh("ip", "link", "add", "veth0", "netns", self.client, "type", "veth",
           "peer", "name", "veth0", "netns", self.server)
        for ns, address in ((self.client, "198.51.100.1"), (self.server, SERVER)):
            sh("ip", "-n", ns, "addr", "add", address + "/24", "dev", "veth0")
            sh("ip", "-n", ns, "link", "set", "veth0", "up")
            sh("ip", "-n", ns, "link", "set", "lo", "up")

    def close(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait(10)
        for ns in (self.client, self.server):
            sh("ip", "netns", "del", ns, check=False)

    def run(self, ns, *words, **kwargs):
        return sh("ip", "netns", "exec", ns, *words, **kwargs)

    def start(self, ns, *words, **kwargs):
        process = subprocess.Popen(["ip", "netns", "exec", ns, *words], **kwargs)
        self.processes.append(process)
        return process

    def serve(self):
        self.start(self.server, LAYOVER, "serve", f"{SERVER}:{PORT}", stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while f":{PORT} " not in self.run(self.server, "ss", "-ltn").stdout:
            assert time.monotonic() < deadline, "serve does not listen"
            time.sleep(0.02)

    def ping(self, *options, dump=None, timeout=60):
        """The JSON of one ping, with `stages` by key and, with dump, `rows`."""
        words = [LAYOVER, "ping", SERVER, "--split", "-j", *map(str, options)]
        if dump:
            words += ["--dump", str(dump)]
        done = self.run(self.client, *words, timeout=timeout, check=False)
        assert done.returncode == 0, done.stderr
        return load(done.stdout, dump)


def load(text, dump=None):
    out = json.loads(text)
    out["stages"] = {stage["key"]: stage for stage in out["split"]["stages"]}
    if dump:
        out["rows"] = read_rows(dump)
    return out


def read_rows(path):
    """Numbers as int, empty CPU columns as None."""
    def value(text):
        return int(text) if text.lstrip("-").isdigit() else (text or None)
    with open(path, newline="", encoding="ascii") as file:
        return [{key: value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def stage_columns(row):
    return [key for key in row if "." in key and key.endswith("_ns")]


def assert_sums(result, trips):
    """Every measured trip has a row, every row sums to its round trip, nothing is negative."""
    rows = result["rows"]
    assert len(rows) == result["counters"]["trips"] == trips
    columns = stage_columns(rows[0])
    for row in rows:
        assert sum(row[key] for key in columns) == row["rtt_ns"], row
        assert min(row[key] for key in columns) >= 0, row


def assert_exact(result, trips):
    """As assert_sums(), and nothing is lost."""
    assert_sums(result, trips)
    counters = result["counters"]
    assert counters["matched"] >= 0.999 * trips, counters
    assert counters["dropped"] == 0, counters
    assert counters["matched"] + counters["partial"] + counters["unmatched"] == trips


def medians(result):
    return {key: stage["p50_ns"] for key, stage in result["stages"].items()}
