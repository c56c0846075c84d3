# SPDX-License-Identifier: GPL-2.0-only
"""layover irq show --flows and irq tune on veth: who handles a flow is counted right; what is bad is found, and all restored."""
import contextlib
import json
import os
import pty
import signal
import subprocess
import time

import pytest

from conftest import LAYOVER, inside, layover, ok, run, serve, started, wait_for

CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
ONE, TWO = (CPUS + CPUS)[:2]

# --- the flows behind the queues ---------------------------------------------------------------------

PORT = 5000
ECHO = """
import os, socket, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
with socket.create_server((sys.argv[1], 5000)) as listener:
    print("ready", flush=True)
    conn, _ = listener.accept()
    while data := conn.recv(100):
        conn.sendall(data)
"""
# Says when it is connected; exchanges when it is told to, so often.
ASK = """
import os, socket, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
conn = socket.create_connection((sys.argv[1], 5000))
conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    conn.sendall(b"x" * 40)
    conn.recv(100)
print("done", flush=True)
sys.stdin.readline()
"""
EXCHANGES = 499


def rps(netns, cpu):
    mask = "0" if cpu is None else f"{1 << cpu:x}"
    ok("sh", "-c", f"for f in /sys/class/net/veth0/queues/rx-*/rps_cpus; do echo {mask} >$f; done", netns=netns)


def links(pid):
    """How many hooks a process has attached."""
    fds = f"/proc/{pid}/fd"
    return sum("bpf_link" in link(f"{fds}/{fd}") for fd in os.listdir(fds))


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def wait_attached(pid):
    """All of them: their number does not grow any more."""
    before = -1
    while not before or before != links(pid):
        before = wait_for(lambda: links(pid), 20)
        time.sleep(1)


def flows_while_exchanging(pair, netns, client_cpu, server_cpu):
    """What `irq show --flows` says in netns of 499 exchanges that begin when its hooks are attached."""
    with started("/usr/bin/python3", "-c", ECHO, pair.server_addr, server_cpu, netns=pair.server) as server:
        assert server.stdout.readline() == "ready\n"
        client = subprocess.Popen(
            inside(pair.client, ["/usr/bin/python3", "-c", ASK, pair.server_addr, client_cpu, EXCHANGES]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert client.stdout.readline() == "ready\n"
            with started(LAYOVER, "irq", "show", pair.dev, "--flows", "-i", "5", "-j", netns=netns) as show:
                wait_attached(show.pid)
                client.stdin.write("\n")
                client.stdin.flush()
                assert client.stdout.readline() == "done\n"
                out, err = show.communicate(timeout=20)
                assert show.returncode == 0, err
        finally:
            client.kill()
            client.communicate(timeout=10)
    device, = json.loads(out)["devices"]
    return device["flows"]


def turns_of_known_softirq(flow):
    """6.18 leaves out programs on top of one system task: where such a turn's softirq ran is not known."""
    known = sum(way["turns"] for way in flow["ways"] if way["softirq_cpu"] is not None)
    assert known > 0.7 * flow["turns"], flow["ways"]
    return known


# The reply's softirq runs where its sender ran, unless RPS sends it elsewhere.
PLACES = [(ONE, TWO, None, TWO), (ONE, TWO, ONE, ONE), (ONE, ONE, None, ONE), (ONE, ONE, TWO, TWO)]


@two_cpus
@pytest.mark.parametrize("client_cpu,server_cpu,rps_cpu,softirq_cpu", PLACES)
def test_flows_of_a_client(pair, client_cpu, server_cpu, rps_cpu, softirq_cpu):
    rps(pair.client, rps_cpu)
    flow, = flows_while_exchanging(pair, pair.client, client_cpu, server_cpu)
    assert flow["role"] == "client" and flow["remote"] == f"{pair.server_addr}:{PORT}"
    assert EXCHANGES - 2 <= flow["turns"] <= EXCHANGES
    ways = {(way["softirq_cpu"], way["reader_cpu"]): 0 for way in flow["ways"]}
    for way in flow["ways"]:
        ways[way["softirq_cpu"], way["reader_cpu"]] += way["turns"]
    assert sum(ways.values()) == flow["turns"]
    known = turns_of_known_softirq(flow)
    # A softirq that comes late is ksoftirqd's: a few of them run elsewhere than they should.
    assert ways[softirq_cpu, client_cpu] >= 0.97 * known, ways
    wrong = sum(turns for (softirq, reader), turns in ways.items() if None not in (softirq, reader) and softirq != reader)
    assert flow["wrong_cpu"] == wrong
    assert flow["wakeups_across"] <= flow["wakeups"] <= flow["turns"]
    if softirq_cpu == client_cpu:
        assert flow["wakeups_across"] <= 0.03 * flow["turns"]
    else:
        assert flow["wakeups"] > 0  # with both ends on one CPU the reader is often still awake
        assert flow["wakeups_across"] >= 0.9 * flow["wakeups"]


@two_cpus
def test_flows_of_a_server(pair):
    flow, = flows_while_exchanging(pair, pair.server, ONE, TWO)
    assert flow["role"] == "server" and flow["local"] == f"{pair.server_addr}:{PORT}"
    assert EXCHANGES - 2 <= flow["turns"] <= EXCHANGES
    assert flow["wrong_cpu"] >= 0.97 * turns_of_known_softirq(flow)
    assert {way["reader_cpu"] for way in flow["ways"]} == {TWO}
    assert flow["rx_queue"] == 0 and flow["rss_queue"] is None


def test_flows_of_a_veth_have_no_queue(pair):
    """Where a driver would note its receive queue the kernel keeps the sender's transmit queue: that is not told."""
    name = "veth4"
    ok("ip", "-n", pair.client, "link", "add", name, "numrxqueues", 4, "numtxqueues", 4, "type", "veth", "peer", "name",
       name, "numrxqueues", 4, "numtxqueues", 4, "netns", pair.server)
    for netns, addr in ((pair.client, "10.78.0.1"), (pair.server, "10.78.0.2")):
        ok("ip", "-n", netns, "addr", "add", addr + "/24", "dev", name)
        ok("ip", "-n", netns, "link", "set", name, "up")
    every = f"{sum(1 << cpu for cpu in CPUS):x}"
    ok("sh", "-c", f"for q in 0 1 3; do echo 0 >/sys/class/net/{name}/queues/tx-$q/xps_cpus; done; "
       f"echo {every} >/sys/class/net/{name}/queues/tx-2/xps_cpus", netns=pair.client)
    pair.server_addr, pair.dev = "10.78.0.2", name
    flow, = flows_while_exchanging(pair, pair.server, ONE, TWO)
    assert flow["rx_queue"] is None


def test_flows_without_privilege(pair):
    user = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all"]
    done = run(*user, LAYOVER, "irq", "show", pair.dev, "--flows", "-i", "0.1", netns=pair.client)
    assert done.returncode == 0 and "veth0:" in done.stdout
    assert done.stderr.startswith("layover: no flows: ") and done.stderr.count("\n") == 1
    assert "needs an --interval" in layover("irq", "show", "--flows", "-i", "0").stderr


def test_flows_as_text(pair):
    with serve(pair.server, pair.server_addr), \
            started(LAYOVER, "ping", pair.server_addr, "--no-split", "-t", "20", "--client-cpu", ONE, netns=pair.client):
        text = ok(LAYOVER, "irq", "show", pair.dev, "--flows", "-i", "1", netns=pair.client)
    assert all(len(line) < 80 for line in text.splitlines()), text
    row = next(line for line in text.splitlines() if "10.77.0.2:7117" in line)
    assert "layover" in row and f">{ONE}" in row
    idle = ok(LAYOVER, "irq", "show", pair.dev, "--flows", "-i", "0.1", netns=pair.client)
    assert "no TCP flow had turns" in idle


# --- tune --------------------------------------------------------------------------------------------

SETTINGS = ("cd /sys/class/net/veth0; grep -r . queues/*/rps* queues/*/xps* threaded gro_flush_timeout "
            "napi_defer_hard_irqs 2>/dev/null | sort")


class Tuned:
    """A pair whose client's settings are to be tuned, against a server in the other namespace."""

    def __init__(self, hosts, state):
        self.pair, self.state = hosts, str(state)
        self.before = None

    def settings(self):
        return ok("sh", "-c", SETTINGS, netns=self.pair.client)

    def command(self, verb, *words, **env):
        env = {"LAYOVER_STATE": self.state, "SSH_CONNECTION": "", **env}
        return ["env", *(f"{key}={value}" for key, value in env.items()), LAYOVER, "irq", verb, *map(str, words)]

    def tune_words(self, *words):
        return self.command("tune", self.pair.server_addr, "--client-cpu", ONE, "--server-cpu", ONE, *words)

    def tune(self, *words, rc=0):
        done = run(*self.tune_words(*words, "-j"), netns=self.pair.client, timeout=90)
        assert done.returncode == rc, done.stdout + done.stderr
        return json.loads(done.stdout)

    def irq(self, *words, rc=0):
        done = run(*self.command(*words), netns=self.pair.client)
        assert done.returncode == rc, done.stdout + done.stderr
        return done.stdout + done.stderr

    def journals(self):
        return [name for name in os.listdir(self.state) if name.endswith(".journal")]


@pytest.fixture
def tuned(pair, tmp_path):
    with serve(pair.server, pair.server_addr):
        yield Tuned(pair, tmp_path)


def best_of(out):
    return out["combinations"][out["best"]]["values"]


def gains(out):
    """By stage, the largest first."""
    return {stage["key"]: stage["gain_ns"] for stage in out["stages"]}


def assert_consistent(out, by="p50"):
    """What can be told without knowing the machine."""
    sizes = [len(axis["values"]) for axis in out["axes"]]
    count = 1
    for size in sizes:
        count *= size
    assert len(out["combinations"]) == count
    assert out["combinations"][0]["values"] == {axis["axis"]: axis["values"][0]["label"] for axis in out["axes"]}
    assert all(len(one["rounds"]) <= out["rounds"] + 1 for one in out["combinations"])
    if out["matters"]:
        figure = out["gain"][by]
        assert 0 < figure["low_ns"] <= figure["gain_ns"] <= figure["high_ns"]


@two_cpus
def test_bad_rps_is_found(tuned):
    """Both ends on one CPU; RPS sends every reply to the other one, which must wake the reader's."""
    rps(tuned.pair.client, TWO)
    before = tuned.settings()
    out = tuned.tune("--axes", "rps,busy-poll", "-t", 12)
    assert_consistent(out)
    assert out["matters"] and best_of(out)["rps"] in ("rps off", f"rps {ONE}")
    figure = out["gain"]["p50"]
    assert figure["gain_ns"] > 0.15 * figure["now_ns"]
    # With the hop the softirq waits for the other CPU, and the reader for the way back.
    stages = gains(out)
    assert set(list(stages)[:2]) == {"client.softirq", "client.wakeup"}, stages
    assert tuned.settings() == before and tuned.journals() == []


@two_cpus
def test_bad_reader_is_found(tuned):
    out = tuned.tune("--axes", "reader", "-t", 8, "--client-cpu", TWO)
    assert_consistent(out)
    assert out["matters"] and best_of(out) == {"reader": f"reader {ONE}"}
    stages = gains(out)
    assert set(list(stages)[:2]) == {"client.wakeup", "server.wakeup"}, stages


@two_cpus
def test_slow_candidate_is_given_up(tuned):
    """A reader that shares its CPU with nobody needs no hop; what makes one is given up before the last round."""
    before = tuned.settings()
    out = tuned.tune("--axes", "rps", "--try", "napi gro-flush-timeout=20000", "-t", 12)
    assert_consistent(out)
    assert {axis["axis"] for axis in out["axes"]} == {"rps", "napi"}
    hops = [one for one in out["combinations"] if one["values"]["rps"] == f"rps {TWO}"]
    assert hops and all(one["given_up"] and len(one["rounds"]) < out["rounds"] for one in hops)
    assert not out["combinations"][0]["given_up"]
    assert tuned.settings() == before and tuned.journals() == []


@two_cpus
def test_exhaustive_gives_up_nothing(tuned):
    out = tuned.tune("--axes", "rps", "-t", 6, "--exhaustive")
    assert len({len(one["rounds"]) for one in out["combinations"]}) <= 2
    assert not any(one["given_up"] for one in out["combinations"])


@two_cpus
def test_nothing_matters(tuned):
    """Without GRO a veth has no NAPI: what is set there changes nothing."""
    before = tuned.settings()
    words = ("--axes", "irq", "--try", "napi gro-flush-timeout=20000", "--try", "napi defer-hard-irqs=2", "-t", 8)
    for _ in range(2):  # by chance once in forty
        out = tuned.tune(*words, "--apply-best")
        assert_consistent(out)
        if not out["matters"]:
            break
        tuned.irq("undo")
    assert not out["matters"] and not out["applied"]
    assert tuned.settings() == before and tuned.journals() == []
    done = run(*tuned.tune_words(*words[:-1], 4), netns=tuned.pair.client, timeout=60)
    assert done.returncode == 0 and "Nothing matters" in done.stdout or "Best" in done.stdout


@two_cpus
def test_best_is_applied_and_undone(tuned):
    rps(tuned.pair.client, TWO)
    before = tuned.settings()
    out = tuned.tune("--axes", "rps", "-t", 8, "--apply-best")
    assert out["matters"] and out["applied"]
    mask = {"rps off": "0", f"rps {ONE}": f"{1 << ONE:x}"}[best_of(out)["rps"]]
    assert f"rx-0/rps_cpus:{mask}" in tuned.settings()
    tuned.irq("verify", "-i", "0")
    tuned.irq("undo")
    assert tuned.settings() == before and tuned.journals() == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped(tuned, stop):
    before = tuned.settings()
    with started(*tuned.tune_words("--axes", "rps,busy-poll", "-t", 60), netns=tuned.pair.client) as child:
        wait_for(lambda: tuned.settings() != before, 20)
        child.send_signal(stop)
        out, err = child.communicate(timeout=20)
        assert child.returncode == 0, err
    assert "stored" in out and tuned.settings() == before and tuned.journals() == []


def test_killed(tuned):
    before = tuned.settings()
    with started(*tuned.tune_words("--axes", "rps", "-t", 60), netns=tuned.pair.client) as child:
        wait_for(lambda: tuned.settings() != before, 20)
        assert "another layover" in tuned.irq("undo", rc=1)
        child.kill()
        child.wait(10)
    wait_for(lambda: tuned.journals(), 1)
    assert "did not come to its end" in tuned.irq("apply", "veth0", "napi", "gro-flush-timeout=1", rc=1)
    tuned.irq("undo")
    assert tuned.settings() == before and tuned.journals() == []


def test_killed_at_each_step(tuned):
    """Up to the second combination's settings: from there on it repeats itself."""
    before = tuned.settings()
    for step in range(1, 12):
        done = run(*tuned.command("tune", tuned.pair.server_addr, "--axes", "rps", "-t", 10, LAYOVER_IRQ_STOP=step),
                   netns=tuned.pair.client, timeout=30)
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), (step, done)
        tuned.irq("undo")
        assert tuned.settings() == before and tuned.journals() == [], step


def test_target_goes_away(pair, tmp_path):
    tuned = Tuned(pair, tmp_path)
    with serve(pair.server, pair.server_addr) as server:
        before = tuned.settings()
        with started(*tuned.tune_words("--axes", "rps", "-t", 60), netns=pair.client) as child:
            wait_for(lambda: tuned.settings() != before, 20)
            server.kill()
            _, err = child.communicate(timeout=60)
            assert child.returncode == 1 and err.startswith("layover: ")
    assert tuned.settings() == before and tuned.journals() == []


def test_own_connection_is_kept(tuned):
    before = tuned.settings()
    ssh = {"SSH_CONNECTION": f"{tuned.pair.server_addr} 5000 {tuned.pair.client_addr} 22"}
    done = run(*tuned.command("tune", tuned.pair.server_addr, "--axes", "rps", **ssh), netns=tuned.pair.client)
    assert done.returncode == 1 and "--yes" in done.stderr
    assert tuned.settings() == before and tuned.journals() == []


def test_time_is_bounded(tuned):
    start = time.monotonic()
    out = tuned.tune("-t", 3)
    assert time.monotonic() - start < 3 + 4
    assert out["rounds"] >= 1


def test_progress(tuned):
    """On a terminal a line that says how far it is and how long it will take."""
    own, terminal = pty.openpty()
    seen = b""
    try:
        child = subprocess.Popen(inside(tuned.pair.client, tuned.tune_words("--axes", "rps", "-t", 4)),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while data := os.read(own, 4096):
                seen += data
        assert child.wait(30) == 0
    finally:
        os.close(own)
    assert b"round 1: " in seen and b" combinations, " in seen and b" s left" in seen
    assert seen.endswith(b"\r\x1b[K")


@two_cpus
def test_lab():
    """Both ends made here; the bad setting is the reader's CPU."""
    before = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
    done = run(LAYOVER, "irq", "tune", "--lab", "--client-cpu", TWO, "--server-cpu", ONE, "-t", "15", "-j", timeout=60)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert_consistent(out)
    assert {axis["axis"] for axis in out["axes"]} == {"reader", "rps", "busy-poll"}
    assert out["matters"] and best_of(out)["reader"] == f"reader {ONE}"
    assert (set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()) <= before
    text = ok(LAYOVER, "irq", "tune", "--lab", "-t", "4", timeout=60)
    assert all(len(line) < 80 for line in text.splitlines()), text
    assert "= as it is now" in text


def test_wrong_words():
    for words, said in (((), "name a TARGET"), (("--lab", "x"), "leave out the TARGET"), (("--lab", "--axes", "irqs"), "irq"),
                        (("--lab", "--try", "queues 2"), "none of the policies"), (("--lab", "-t", "1"), "at least 2 s"),
                        (("--lab", "--cpus", "999"), "cannot be used"), (("--lab", "--apply-best"), "gone afterwards"),
                        (("--lab", "--axes", "irq"), "nothing to choose"), (("--lab", "--rate", "100"), "at a time"),
                        (("127.0.0.1:1", "-t", "2"), "127.0.0.1")):
        done = layover("irq", "tune", *words)
        assert done.returncode in (1, 2) and said in done.stderr, (words, done)
        assert done.stderr.startswith("layover: ") and done.stderr.count("\n") == 1, done.stderr
