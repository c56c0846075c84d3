#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the driver against a bare send/recv loop and against sockperf: interleaved rounds in two
namespaces of its own, both ends pinned, once to one CPU and once to two. Then measures what the hooks
of the split cost. Needs root."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("LAYOVER_BUILD", os.path.join(HERE, "..", "build")))
CLIENT, SERVER = (f"layover-bench-{os.getpid()}-{side}" for side in "cs")
ADDR = "198.18.1.2"
PORTS = {"layover": 7117, "bareloop": 7118, "sockperf": 7119}
# The median over rounds of the ratio of p50s must stay below this.
GOALS = {("bareloop", "tcp"): 1.01, ("bareloop", "udp"): 1.01,
         ("sockperf", "tcp"): 1.01, ("sockperf", "udp"): 0.97}


def sh(*command):
    subprocess.run(command, check=True, timeout=10)


@contextmanager
def namespaces():
    """Two namespaces and a veth pair, as the lab makes them, but with addresses of their own."""
    try:
        for name in (CLIENT, SERVER):
            sh("ip", "netns", "add", name)
        sh("ip", "-n", CLIENT, "link", "add", "bench0", "type", "veth", "peer", "name", "bench0",
           "netns", SERVER)
        for name, addr in ((CLIENT, "198.18.1.1/30"), (SERVER, ADDR + "/30")):
            sh("ip", "-n", name, "addr", "add", addr, "dev", "bench0")
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("ip", "-n", name, "link", "set", "bench0", "up")
        yield
    finally:
        for name in (CLIENT, SERVER):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


@contextmanager
def server(cpu, *command):
    """A server in its namespace; cpu None: it pins itself."""
    pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
    child = subprocess.Popen(["ip", "netns", "exec", SERVER, *pin, *command],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.1)
        if child.poll() is not None:
            sys.exit(f"bench: the server '{' '.join(command)}' ended at once")
        yield
    finally:
        child.terminate()
        child.wait(5)


def client(cpu, seconds, *command):
    run = subprocess.run(["ip", "netns", "exec", CLIENT, "taskset", "-c", str(cpu), *command],
                         capture_output=True, text=True, timeout=seconds + 10, check=False)
    if run.returncode:
        sys.exit(f"bench: '{' '.join(command)}' failed:\n{run.stdout}{run.stderr}")
    return run.stdout


def layover(o, proto, cpus):
    # --no-split: the driver alone. The server pins its session itself, the others by taskset.
    out = client(cpus[0], o.seconds, f"{BUILD}/layover", "ping", ADDR, "-j", "--no-split",
                 "-t", f"{o.seconds}", "-m", str(o.bytes), "--client-cpu", str(cpus[0]),
                 "--server-cpu", str(cpus[1]), *(["--udp"] if proto == "udp" else []))
    return json.loads(out)["rtt"]["p50_ns"]


def bareloop(o, proto, cpus):
    out = client(cpus[0], o.seconds, f"{BUILD}/tools/bareloop", "client", ADDR,
                 str(PORTS["bareloop"]), proto, str(o.bytes), str(o.seconds))
    return int(out.split()[0])


def sockperf(o, proto, cpus):
    # It takes whole seconds and drops the first 0.4 of them.
    out = client(cpus[0], 1, "sockperf", "pp", "-i", ADDR, "-p", str(PORTS["sockperf"]),
                 "-m", str(max(o.bytes, 14)), "-t", "1", "--full-rtt",
                 *(["--tcp"] if proto == "tcp" else []))
    return float(re.search(r"percentile 50\.000 = *([0-9.]+)", out).group(1)) * 1000


TOOLS = {"layover": layover, "bareloop": bareloop, "sockperf": sockperf}


def servers(stack, proto, cpus, tools):
    commands = {
        "layover": (None, f"{BUILD}/layover", "serve", f"{ADDR}:{PORTS['layover']}"),
        "bareloop": (cpus[1], f"{BUILD}/tools/bareloop", "server", str(PORTS["bareloop"]), proto),
        "sockperf": (cpus[1], "sockperf", "sr", "-i", ADDR, "-p", str(PORTS["sockperf"]),
                     *(["--tcp"] if proto == "tcp" else [])),
    }
    for tool in tools:
        stack.enter_context(server(*commands[tool]))


def compare(o, proto, cpus, tools):
    """Runs the rounds and prints them. True when every goal is met."""
    rounds = []
    with ExitStack() as stack:
        servers(stack, proto, cpus, tools)
        for n in range(o.rounds):
            order = tools if n % 2 == 0 else tools[::-1]  # so that a drift meets all alike
            p50 = {tool: TOOLS[tool](o, proto, cpus) for tool in order}
            rounds.append(p50)
            print(f"  {proto} CPU {cpus[0]},{cpus[1]}  round {n + 1}: p50 us  " +
                  "  ".join(f"{tool} {p50[tool] / 1000:.2f}" for tool in tools), flush=True)
    good = True
    for tool in tools[1:]:
        ratios = sorted(p50["layover"] / p50[tool] for p50 in rounds)
        ratio = statistics.median(ratios)
        goal = GOALS[tool, proto]
        good &= ratio <= goal
        print(f"{proto} CPU {cpus[0]},{cpus[1]}  layover/{tool}: {ratio:.3f} "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f}), goal {goal:.2f}: "
              f"{'met' if ratio <= goal else 'NOT MET'}", flush=True)
    return good


def probe_effect(o, cpus):
    """What the hooks cost, both ends traced: blocks without and with them in turn. True within the goal."""
    out = subprocess.run([f"{BUILD}/layover", "ping", "--lab", "--overhead", "-j", "-m", "14",
                          "-t", str(o.effect_seconds), "--client-cpu", str(cpus[0]), "--server-cpu", str(cpus[1])],
                         capture_output=True, text=True, timeout=o.effect_seconds + 30, check=True).stdout
    overhead = json.loads(out)["overhead"]
    p50 = overhead["p50"]
    goal = 3500 if cpus[0] == cpus[1] else 0.05 * p50["off_ns"]
    good = p50["difference_ns"] <= goal
    print(f"hooks tcp CPU {cpus[0]},{cpus[1]}  p50 without {p50['off_ns']} ns, with {p50['on_ns']} ns: "
          f"{p50['difference_ns']:+d} ns ({p50['low_ns']:+d} to {p50['high_ns']:+d}, "
          f"{overhead['pairs']} pairs), goal {goal:.0f}: {'met' if good else 'NOT MET'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-r", "--rounds", type=int, default=15)
    parser.add_argument("-t", "--seconds", type=float, default=0.3, help="per tool and round")
    parser.add_argument("-m", "--bytes", type=int, default=64)
    parser.add_argument("--proto", choices=("tcp", "udp"), action="append")
    parser.add_argument("--cpus", choices=("same", "cross"), action="append")
    parser.add_argument("--effect-seconds", type=int, default=10, help="for the cost of the hooks; 0: not measured")
    parser.add_argument("--tools", default="bareloop,sockperf")
    o = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: it makes network namespaces; run it as root")
    tools = ["layover"] + [t for t in o.tools.split(",") if t != "sockperf" or shutil.which(t)]
    allowed = sorted(os.sched_getaffinity(0))
    pairs = {"same": (allowed[0], allowed[0]), "cross": (allowed[0], allowed[-1])}
    good = True
    with namespaces():
        for proto in o.proto or ("tcp", "udp"):
            for cpus in o.cpus or ("same", "cross"):
                good &= compare(o, proto, pairs[cpus], tools)
    for cpus in (o.cpus or ("same", "cross")) if o.effect_seconds else ():
        good &= probe_effect(o, pairs[cpus])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
