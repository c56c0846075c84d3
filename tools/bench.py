#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the driver against a bare send/recv loop, sockperf, qperf and netperf (those that are there): interleaved
rounds in two namespaces of its own, both ends pinned, once to one CPU and once to two. Then its spinning against
its blocking, 64 flows of small datagrams against 64 processes of sockperf, and what the hooks of the split cost, and those of watch
where they select nothing.
Needs root."""
import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("LAYOVER_BUILD", os.path.join(HERE, "..", "build")))
CLIENT, SERVER = (f"layover-bench-{os.getpid()}-{side}" for side in "cs")
ADDR = "198.18.1.2"
PORTS = {"layover": 7117, "bareloop": 7118, "sockperf": 7119, "qperf": 7120, "netperf": 7121, "barespin": 7122}
# The median over rounds of the ratio of p50s (of means, where a tool knows no other) must stay below this.
# Connected sockets on both ends are what makes UDP faster than the peers.
GOALS = {"tcp": 1.01, "udp": 0.96}
BAREST = 1.01  # the bare loop's UDP sockets are connected, too
SPINNING = 0.5
UNSELECTED = 1.02  # a flow that `watch` does not select


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


# Each tool's run: (p50, mean) of the round trip in ns; None for what it does not tell.


def layover(o, proto, cpus, *options):
    # --no-split: the driver alone. The server pins its session itself, the others by taskset.
    out = client(cpus[0], o.seconds, f"{BUILD}/layover", "ping", ADDR, "-j", "--no-split",
                 "-t", f"{o.seconds}", "-m", str(o.bytes), "--client-cpu", str(cpus[0]),
                 "--server-cpu", str(cpus[1]), *(["--udp"] if proto == "udp" else []), *options)
    rtt = json.loads(out)["rtt"]
    return rtt["p50_ns"], rtt["mean_ns"]


def bareloop(o, proto, cpus, *spin):
    out = client(cpus[0], o.seconds, f"{BUILD}/tools/bareloop", "client", ADDR,
                 str(PORTS["barespin" if spin else "bareloop"]), proto, str(o.bytes), str(o.seconds), *spin)
    p50, mean, _ = map(int, out.split())
    return p50, mean


def sockperf(o, proto, cpus):
    # It takes whole seconds and drops the first 0.4 of them.
    out = client(cpus[0], 1, "sockperf", "pp", "-i", ADDR, "-p", str(PORTS["sockperf"]),
                 "-m", str(max(o.bytes, 14)), "-t", "1", "--full-rtt",
                 *(["--tcp"] if proto == "tcp" else []))
    return float(re.search(r"percentile 50\.000 = *([0-9.]+)", out).group(1)) * 1000, None


def qperf(o, proto, cpus):
    # Half the mean, and in units of its choice.
    out = client(cpus[0], 1, "qperf", ADDR, "-lp", str(PORTS["qperf"]), "-t", "1", "-m", str(o.bytes), "-e", "5",
                 f"{proto}_lat")
    value, unit = re.search(r"latency *= *([0-9.]+) (ns|us|ms)", out).groups()
    return None, 2 * float(value) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit]


def netperf(o, proto, cpus):
    out = client(cpus[0], 1, "netperf", "-H", ADDR, "-4", "-p", str(PORTS["netperf"]), "-t", f"{proto.upper()}_RR",
                 "-l", "1", "-P", "0", "--", "-r", f"{o.bytes},{o.bytes}", "-D", "-k", "RT_LATENCY")
    return None, float(re.search(r"RT_LATENCY=([0-9.]+)", out).group(1)) * 1000


TOOLS = {"layover": layover, "bareloop": bareloop, "sockperf": sockperf, "qperf": qperf, "netperf": netperf}


def servers(stack, proto, cpus, tools):
    commands = {
        "layover": (None, f"{BUILD}/layover", "serve", f"{ADDR}:{PORTS['layover']}"),
        "bareloop": (cpus[1], f"{BUILD}/tools/bareloop", "server", str(PORTS["bareloop"]), proto),
        "barespin": (cpus[1], f"{BUILD}/tools/bareloop", "server", str(PORTS["barespin"]), proto, "spin"),
        "sockperf": (cpus[1], "sockperf", "sr", "-i", ADDR, "-p", str(PORTS["sockperf"]), "-m", "65507",
                     *(["--tcp"] if proto == "tcp" else [])),
        "qperf": (cpus[1], "qperf", "-lp", str(PORTS["qperf"])),
        "netperf": (cpus[1], "netserver", "-D", "-p", str(PORTS["netperf"]), "-4"),
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
            rounds.append({tool: TOOLS[tool](o, proto, cpus) for tool in order})
            print(f"  {proto} {o.bytes} B CPU {cpus[0]},{cpus[1]}  round {n + 1}: p50 or mean us  " + "  ".join(
                f"{tool} {(rounds[-1][tool][0] or rounds[-1][tool][1]) / 1000:.2f}" for tool in tools), flush=True)
    where = f"{proto} {o.bytes} B CPU {cpus[0]},{cpus[1]}"
    good = all([judge(f"{where}  layover/{tool}", [ratio_of(done["layover"], done[tool]) for done in rounds],
                      BAREST if tool == "bareloop" else GOALS[proto]) for tool in tools[1:]])
    for tool in (tool for tool in tools if tool not in ("layover", "bareloop") and "bareloop" in tools):
        tell(f"{where}  bareloop/{tool}", [ratio_of(done["bareloop"], done[tool]) for done in rounds])
    return good


def ratio_of(ours, theirs):
    return ours[0] / theirs[0] if theirs[0] else ours[1] / theirs[1]


def sure(ratios):
    """The median's 95 % confidence interval, by order statistics (of few values: their range)."""
    values, n = sorted(ratios), len(ratios)
    below = max(0, int(n / 2 - 0.98 * math.sqrt(n)) - 1)
    return values[below], values[n - 1 - below]


def tell(what, ratios):
    """What a goal can be held against: the floor."""
    print("{}: {:.3f} ({:.3f} to {:.3f})".format(what, statistics.median(ratios), *sure(ratios)), flush=True)


def judge(what, ratios, goal, least=False):
    """Prints the median ratio and how sure it is. True when it is on the good side of the goal."""
    ratio, (low, high) = statistics.median(ratios), sure(ratios)
    met = ratio >= goal if least else ratio <= goal
    maybe = high >= goal if least else low <= goal
    print(f"{what}: {ratio:.3f} ({low:.3f} to {high:.3f}), goal {goal:.2f}: "
          f"{'met' if met else 'not told from it' if maybe else 'NOT MET'}", flush=True)
    return met


def spinning(o, proto, cpus):
    """Polling of every kind against blocking, on two CPUs; and the same of bare loops: less is not to be had here."""
    good, where = True, f"{proto} {o.bytes} B CPU {cpus[0]},{cpus[1]}"
    ratios = {"spin": [], "uring-poll=1000000": [], "bare spin": [], "spin/bare spin": []}
    methods = ("spin", "uring-poll=1000000")
    with ExitStack() as stack:
        servers(stack, proto, cpus, ["layover", "bareloop", "barespin"])
        for _ in range(max(3, o.rounds // 2)):
            block, bare_block = layover(o, proto, cpus), bareloop(o, proto, cpus)
            for method in methods:
                polls = layover(o, proto, cpus, "--io", method, "--server-io", method)
                ratios[method].append(ratio_of(polls, block))
                if method == "spin":
                    bare_spin = bareloop(o, proto, cpus, "spin")
                    ratios["bare spin"].append(ratio_of(bare_spin, bare_block))
                    ratios["spin/bare spin"].append(ratio_of(polls, bare_spin))
    for method in methods:
        good &= judge(f"{where}  {method}/block", ratios[method], SPINNING)
    tell(f"{where}  bare loop, spin/block", ratios["bare spin"])
    return judge(f"{where}  spin/bare spin", ratios["spin/bare spin"], BAREST) and good


def rx_packets():
    out = subprocess.run(["ip", "-s", "-j", "-n", SERVER, "link", "show", "bench0"], capture_output=True, check=True,
                         timeout=5).stdout
    return json.loads(out)[0]["stats64"]["rx"]["packets"]


def packets_per_second(cpu, seconds, *commands):
    """What the server's interface counts while the clients run at full speed."""
    children = [subprocess.Popen(["ip", "netns", "exec", CLIENT, "taskset", "-c", str(cpu), *command],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    time.sleep(1)
    before, begun = rx_packets(), time.monotonic()
    time.sleep(seconds)
    rate = (rx_packets() - before) / (time.monotonic() - begun)
    for child in children:
        child.wait(20)
    return rate


def flood(o, cpus, flows=64):
    """Small datagrams, as many as can be: one process of ours against one per flow."""
    ratios, last = [], 3
    theirs = ["sockperf", "tp", "-i", ADDR, "-p", str(PORTS["sockperf"]), "-m", "14", "-t", str(last)]
    ours = [f"{BUILD}/layover", "load", ADDR, "-u", "-m", "14", "-P", str(flows), "-t", str(last), "-w", "0", "-j",
            "--client-cpu", str(cpus[0]), "--server-cpu", str(cpus[1])]
    with ExitStack() as stack:
        servers(stack, "udp", cpus, ["layover", "sockperf"])
        for _ in range(3):
            rates = (packets_per_second(cpus[0], 1.5, ours), packets_per_second(cpus[0], 1.5, *[theirs] * flows))
            print(f"  udp 14 B, {flows} flows: {rates[0]:.0f} and sockperf {rates[1]:.0f} packets/s", flush=True)
            ratios.append(rates[0] / rates[1])
    return judge(f"udp 14 B, {flows} flows, layover/sockperf packets per second", ratios, 1.0, least=True)


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


def watch_cost(o, cpus, port, goal):
    """What `watch` of that port costs a flow of the driver's."""
    ratios = []
    with ExitStack() as stack:
        servers(stack, "tcp", cpus, ["layover"])
        for _ in range(max(5, o.rounds // 2)):
            quiet = layover(o, "tcp", cpus)
            watcher = subprocess.Popen([f"{BUILD}/layover", "watch", "--port", str(port), "-i", "60"],
                                       stdout=subprocess.DEVNULL)
            time.sleep(1.5)  # until its hooks are attached
            ratios.append(ratio_of(layover(o, "tcp", cpus), quiet))
            watcher.terminate()
            watcher.wait(20)
    return judge(f"tcp {o.bytes} B CPU {cpus[0]},{cpus[1]}  beside 'watch --port {port}'/alone", ratios, goal)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-r", "--rounds", type=int, default=15)
    parser.add_argument("-t", "--seconds", type=float, default=0.3, help="per tool and round")
    parser.add_argument("-m", "--sizes", default="14,64,16384")
    parser.add_argument("--proto", choices=("tcp", "udp"), action="append")
    parser.add_argument("--cpus", choices=("same", "cross"), action="append")
    parser.add_argument("--effect-seconds", type=int, default=10, help="for the cost of the hooks; 0: not measured")
    parser.add_argument("--tools", default="bareloop,sockperf,qperf,netperf")
    o = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: it makes network namespaces; run it as root")
    for number in (signal.SIGINT, signal.SIGTERM):  # by way of what takes the namespaces away again
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    there = {tool: tool == "bareloop" or shutil.which(tool) for tool in o.tools.split(",") if tool in TOOLS}
    for tool in (tool for tool, found in there.items() if not found):
        print(f"{tool} is not installed: left out")
    tools = ["layover"] + [tool for tool, found in there.items() if found]
    allowed = sorted(os.sched_getaffinity(0))
    pairs = {"same": (allowed[0], allowed[0]), "cross": (allowed[0], allowed[-1])}
    good = True
    with namespaces():
        for o.bytes in (int(size) for size in o.sizes.split(",")):
            for proto in o.proto or ("tcp", "udp"):
                for cpus in o.cpus or ("same", "cross"):
                    good &= compare(o, proto, pairs[cpus], tools)
                if "cross" in (o.cpus or ("same", "cross")):
                    good &= spinning(o, proto, pairs["cross"])
        if "sockperf" in tools:
            good &= flood(o, pairs["cross"])
        o.bytes = 64
        for cpus in o.cpus or ("same", "cross"):
            good &= watch_cost(o, pairs[cpus], 9, UNSELECTED)
    for cpus in (o.cpus or ("same", "cross")) if o.effect_seconds else ():
        good &= probe_effect(o, pairs[cpus])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
