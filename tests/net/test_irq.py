# SPDX-License-Identifier: GPL-2.0-only
"""layover irq on veth devices of the tests' own: what is applied can be verified and undone, whatever happens."""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import LAYOVER, inside, ok, run, serial, wait_for

QUEUES = 4
DEV = "veth0"
ALL_FILES = ("find /sys/class/net/{0}/queues /sys/class/net/{0}/threaded /sys/class/net/{0}/gro_flush_timeout "
             "/sys/class/net/{0}/napi_defer_hard_irqs -type f | sort | "
             "while read -r f; do echo \"$f $(cat $f 2>&1)\"; done; ethtool -l {0}")


class Host:
    """A namespace with veth devices of several queues; their other ends are in it as well."""

    def __init__(self, state):
        self.netns = f"layovertest-{os.getpid()}-{next(serial)}-irq"
        self.state = str(state)
        ok("ip", "netns", "add", self.netns)
        for number in (0, 1):
            ok("ip", "-n", self.netns, "link", "add", f"veth{number}", "numrxqueues", QUEUES, "numtxqueues", QUEUES,
               "type", "veth", "peer", "name", f"peer{number}")
            ok("ip", "-n", self.netns, "link", "set", f"veth{number}", "up")

    def sh(self, script):
        return ok("sh", "-c", script, netns=self.netns)

    def command(self, *words, **env):
        env = {"LAYOVER_STATE": self.state, "SSH_CONNECTION": "", **env}
        return ["env", *(f"{key}={value}" for key, value in env.items()), LAYOVER, "irq", *words]

    def irq(self, *words, rc=0, **env):
        done = run(*self.command(*words, **env), netns=self.netns)
        assert done.returncode == rc, done.stdout + done.stderr
        return done.stdout + done.stderr

    def json(self, *words, **kwargs):
        return json.loads(self.irq(*words, "-j", **kwargs))

    def snapshot(self, device=DEV):
        return self.sh(ALL_FILES.format(device))

    def journals(self):
        return [name for name in os.listdir(self.state) if name.endswith(".journal")]

    def queue_file(self, name):
        return self.sh(f"cat /sys/class/net/{DEV}/queues/{name}").strip()


@pytest.fixture
def host(tmp_path):
    one = None
    try:
        one = Host(tmp_path)
        yield one
    finally:
        if one:
            run("ip", "netns", "del", one.netns)


EVERYTHING = (DEV, "rps", "0-1", "xps", "napi", "gro-flush-timeout=20000,defer-hard-irqs=2")


def test_show(host):
    host.sh(f"echo 3 >/sys/class/net/{DEV}/queues/rx-1/rps_cpus; echo 64 >/sys/class/net/{DEV}/queues/rx-1/rps_flow_cnt")
    out = host.json("show", DEV, "-i", "0")
    device, = out["devices"]
    assert device["name"] == DEV and device["irqs"] == [] and not device["control"]
    assert device["driver"] == "veth"
    queues = {(queue["direction"], queue["index"]): queue for queue in device["queues"]}
    assert set(queues) == {(way, index) for way in ("rx", "tx") for index in range(QUEUES)}
    for (way, index), queue in queues.items():
        for name in ("rps_cpus", "rps_flow_cnt") if way == "rx" else ("xps_cpus", "xps_rxqs"):
            assert queue[name] == host.queue_file(f"{way}-{index}/{name}")
    text = host.irq("show", "-i", "0.1")
    assert all(len(line) < 80 for line in text.splitlines()), text
    assert "RPS to CPUs 0-1, RFS 64 flows" in text


def test_show_of_none(host):
    assert "no network device 'eth9'" in host.irq("show", "eth9", rc=1)
    host.irq("show", "..", rc=1)
    host.irq("show", "a/b", rc=1)


def test_plan_changes_nothing(host):
    before = host.snapshot()
    text = host.irq("plan", *EVERYTHING)
    assert "echo 3 >/sys/class/net/veth0/queues/rx-0/rps_cpus" in text
    assert "Nothing has been changed" in text
    assert host.snapshot() == before and host.journals() == []


def test_apply_verify_undo(host):
    before = host.snapshot()
    host.irq("apply", *EVERYTHING)
    assert [host.queue_file(f"rx-{queue}/rps_cpus") for queue in range(QUEUES)] == ["3"] * QUEUES
    assert host.queue_file("tx-0/xps_cpus") == "1" and host.queue_file("tx-1/xps_cpus") == "2"
    assert host.snapshot() != before
    host.irq("verify", "-i", "0")
    assert "Nothing to change" in host.irq("apply", *EVERYTHING)
    host.irq("undo")
    assert host.snapshot() == before
    assert "Nothing to undo" in host.irq("undo")
    assert "Nothing is applied" in host.irq("verify")


def test_typed_commands_do_the_same(host):
    plan = host.json("plan", *EVERYTHING)
    before = host.snapshot()
    for change in plan["changes"]:
        host.sh(change["command"])
    typed = host.snapshot()
    assert typed != before
    assert "Nothing to change" in host.irq("apply", *EVERYTHING)


def test_drift_is_found(host):
    host.irq("apply", *EVERYTHING)
    host.sh(f"echo 1 >/sys/class/net/{DEV}/queues/rx-2/rps_cpus")
    text = host.irq("verify", "-i", "0", rc=4)
    drifted, = (line for line in text.splitlines() if line.startswith("drifted"))
    assert "rps_cpus of queue 2" in drifted and "was set to 0-1, is 0" in drifted
    out = host.json("verify", "-i", "0", rc=4)
    assert out["drifted"] == 1 and [row["now"] for row in out["changes"] if row["drifted"]] == ["1"]
    host.irq("undo")


def test_several_are_undone_in_turn(host):
    before = host.snapshot()
    host.irq("apply", DEV, "rps", "0")
    between = host.snapshot()
    host.irq("apply", DEV, "rps", "1", "--queue", "0-1")
    host.irq("verify", "-i", "0")  # the newer one counts
    host.irq("undo", "--last")
    assert host.snapshot() == between
    host.irq("apply", DEV, "rps", "0-1")
    host.irq("undo")
    assert host.snapshot() == before and host.journals() == []


def test_refused_is_rolled_back(host):
    """A veth has no NAPI before GRO is on: it cannot be threaded."""
    before = host.snapshot()
    text = host.irq("apply", DEV, "rps", "0", "napi", "gro-flush-timeout=20000,threaded=1,defer-hard-irqs=1", rc=1)
    assert "refused   veth0: threaded" in text and "the driver cannot do this" in text
    assert "all is restored" in text
    assert host.snapshot() == before and host.journals() == []


def test_refused_is_left_out(host):
    before = host.snapshot()
    text = host.irq("apply", DEV, "rps", "0", "napi", "threaded=1,defer-hard-irqs=1", "--keep-going", rc=1)
    assert "1 change was refused" in text
    assert host.queue_file("rx-0/rps_cpus") == "1"
    assert host.sh(f"cat /sys/class/net/{DEV}/napi_defer_hard_irqs") == "1\n"
    host.irq("verify", "-i", "0")
    host.irq("undo")
    assert host.snapshot() == before


def kill_at_each_step(host, words, after):
    """Runs the words, killed at their first step, their second, ... until they come to their end."""
    for step in range(1, 200):
        done = run(*host.command(*words, LAYOVER_IRQ_STOP=step), netns=host.netns)
        if done.returncode in (0, 1):
            return step - 1
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done
        after(step)
    raise AssertionError("it does not come to its end")


def test_killed_at_each_step_of_apply(host):
    before = host.snapshot()

    def undo(step):
        host.irq("undo")
        assert host.snapshot() == before, step
        assert host.journals() == []

    changes = len(host.json("plan", *EVERYTHING)["changes"])
    steps = kill_at_each_step(host, ("apply", *EVERYTHING), undo)
    assert steps >= 3 * changes + 4
    host.irq("undo")
    assert host.snapshot() == before


def test_killed_at_each_step_of_undo(host):
    before = host.snapshot()

    def again(step):
        host.irq("undo")
        assert host.snapshot() == before, step
        host.irq("apply", *EVERYTHING)

    host.irq("apply", *EVERYTHING)
    assert kill_at_each_step(host, ("undo",), again) > 5
    assert host.snapshot() == before


def test_killed_at_each_step_of_fewer_queues(host):
    """Channels take queues away and with them their settings."""
    host.sh(f"for q in 0 1 2 3; do echo 2 >/sys/class/net/{DEV}/queues/rx-$q/rps_cpus; "
            f"echo 1 >/sys/class/net/{DEV}/queues/tx-$q/xps_cpus; done")
    before = host.snapshot()

    def undo(step):
        host.irq("undo")
        assert host.snapshot() == before, step

    assert kill_at_each_step(host, ("apply", DEV, "queues", "2"), undo) > 5
    assert "rx-3" not in host.sh(f"ls /sys/class/net/{DEV}/queues")
    host.irq("verify", "-i", "0")
    host.irq("undo")
    assert host.snapshot() == before


def test_unfinished_apply_stands_in_the_way(host):
    before = host.snapshot()
    run(*host.command("apply", *EVERYTHING, LAYOVER_IRQ_STOP=8), netns=host.netns)
    assert "did not come to its end" in host.irq("apply", DEV, "rps", "1", rc=1)
    host.irq("undo")
    assert host.snapshot() == before


def test_device_goes_away(host):
    before = host.snapshot("veth1")
    host.irq("apply", "veth1", "rps", "0-1")
    host.irq("apply", *EVERYTHING)
    ok("ip", "-n", host.netns, "link", "del", DEV)
    assert "the device is not there" in host.irq("verify", "-i", "0", rc=4)
    text = host.irq("undo")
    assert "gone      veth0" in text and "restored  veth1" in text
    assert host.snapshot("veth1") == before
    assert "Nothing to undo" in host.irq("undo")


@contextlib.contextmanager
def applied_for(host, seconds):
    child = subprocess.Popen(inside(host.netns, host.command("apply", *EVERYTHING, "--for", seconds)),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: host.journals() and '"complete"' in (open(os.path.join(host.state, host.journals()[0]),
                                                                   encoding="utf-8").read()))
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=10)


def test_for_a_while(host):
    before, start = host.snapshot(), time.monotonic()
    text = host.irq("apply", *EVERYTHING, "--for", "1.5")
    assert 1.5 <= time.monotonic() - start < 8
    assert "restoring in 2 s" in text and "restored" in text
    assert host.snapshot() == before and host.journals() == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_for_a_while_stopped(host, stop):
    before = host.snapshot()
    with applied_for(host, "60") as child:
        assert host.snapshot() != before
        child.send_signal(stop)
        assert child.wait(10) == 0
    assert host.snapshot() == before and host.journals() == []


def test_for_a_while_undone_or_killed(host):
    before = host.snapshot()
    with applied_for(host, "60") as child:
        host.irq("undo")
        assert host.snapshot() == before
        child.send_signal(signal.SIGINT)
        assert "undone in the meantime" in child.communicate(timeout=10)[0]
        assert child.returncode == 0
    with applied_for(host, "60") as child:
        child.kill()
        child.wait(10)
    assert host.snapshot() != before
    host.irq("undo")
    assert host.snapshot() == before


def test_for_a_while_with_another_on_top(host):
    """What was applied since goes as well; a later journal of the same number is not its own."""
    before = host.snapshot()
    with applied_for(host, "60") as child:
        host.irq("apply", DEV, "rps", "1")
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 0
    assert host.snapshot() == before and host.journals() == []
    with applied_for(host, "60") as child:
        host.irq("undo")
        host.irq("apply", DEV, "rps", "1")
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 0
    assert host.queue_file("rx-0/rps_cpus") == "2"
    host.irq("undo")
    assert host.snapshot() == before


def test_control_connection(host):
    ok("ip", "-n", host.netns, "addr", "add", "10.99.0.1/24", "dev", DEV)
    ssh = {"SSH_CONNECTION": "10.99.0.2 5000 10.99.0.1 22"}
    before = host.snapshot()
    text = host.irq("apply", DEV, "rps", "0", rc=1, **ssh)
    assert "this ssh session came by it" in text and "--yes" in text
    assert host.snapshot() == before and host.journals() == []
    host.irq("apply", "veth1", "rps", "0", **ssh)  # another device
    host.irq("apply", DEV, "rps", "0", "--yes", **ssh)
    host.irq("undo", **ssh)
    ok("ip", "-n", host.netns, "route", "add", "default", "via", "10.99.0.2", "dev", DEV)
    assert "it has the default route" in host.irq("apply", DEV, "rps", "0", rc=1)
    assert host.snapshot() == before


def test_control_connection_of_ipv6(host):
    ok("ip", "-n", host.netns, "addr", "add", "fd99::1/64", "dev", DEV, "nodad")
    host.irq("apply", DEV, "rps", "0")
    host.irq("undo")
    ssh = {"SSH_CONNECTION": "fd99::2 5000 fd99::1 22"}
    assert "--yes" in host.irq("apply", DEV, "rps", "0", rc=1, **ssh)
    ok("ip", "-n", host.netns, "link", "set", "peer0", "up")
    ok("ip", "-n", host.netns, "-6", "route", "add", "default", "dev", DEV)
    assert "it has the default route" in host.irq("apply", DEV, "rps", "0", rc=1)


def test_control_connection_through_a_bridge(host):
    for words in (("add", "br0", "type", "bridge"), ("set", DEV, "master", "br0"), ("set", "br0", "up")):
        ok("ip", "-n", host.netns, "link", *words)
    ok("ip", "-n", host.netns, "addr", "add", "10.99.0.1/24", "dev", "br0")
    assert "--yes" in host.irq("apply", DEV, "rps", "0", rc=1, SSH_CONNECTION="10.99.0.2 5000 10.99.0.1 22")


def test_saved_plan(host, tmp_path):
    before, file = host.snapshot(), tmp_path / "plan.json"
    file.write_text(json.dumps(host.json("plan", *EVERYTHING)))
    out = host.json("apply", "--plan", file)
    assert {row["state"] for row in out["changes"]} == {"done"} and not out["rolled_back"]
    assert "plan again" in host.irq("apply", "--plan", file, rc=1)
    host.irq("undo")
    assert host.snapshot() == before


@pytest.mark.parametrize("change", [
    {"kind": "nonsense"}, {"device": "../../../proc/sys/net"}, {"device": ""}, {"key": "0/../../x"}, {"key": ""},
    {"key": "-1"}, {"old": 5}, {"device": None}])
def test_saved_plan_is_not_trusted(host, tmp_path, change):
    row = {"kind": "rps_cpus", "device": DEV, "key": "0", "old": "0", "new": "1", "why": ""}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"changes": [{**row, **change}]}))
    before = host.snapshot()
    host.irq("apply", "--plan", file, rc=2)
    assert host.snapshot() == before and host.journals() == []


def test_wrong_words(host):
    for words, said in ((("plan", DEV), "a policy must follow"), (("plan",), "name a DEVICE"),
                        (("plan", DEV, "sprad"), "the nearest is spread"), (("plan", DEV, "rss", "x"), "equal, weights"),
                        (("plan", DEV, "rps"), "CPUS|off must follow"), (("plan", DEV, "rps", "999"), "not online"),
                        (("plan", DEV, "rps", "x"), "not a list of CPUs"),
                        (("plan", DEV, "isolate", "0-1023"), "no online CPU"),
                        (("plan", DEV, "queues", "2", "xps"), "goes alone"), (("plan", DEV, "queues", "99"), "between"),
                        (("plan", DEV, "spread"), "no interrupts"), (("plan", DEV, "spread", "isolate", "1"), "only one"),
                        (("plan", DEV, "coalesce", "x=1"), ""), (("plan", DEV, "napi", "x=1"), "not one of"),
                        (("apply", "--plan", "/nonexistent"), "cannot read"), (("shwo",), "the nearest is show"),
                        (("apply", DEV, "rps", "0", "--numa", "far"), "only 'local'")):
        done = run(*host.command(*words), netns=host.netns)
        assert done.returncode in (1, 2) and said in done.stderr, (words, done)
        assert done.stderr.startswith("layover: ") and done.stderr.count("\n") == 1, done.stderr
    assert host.journals() == []


def test_one_at_a_time(host):
    with open(os.path.join(host.state, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (("apply", DEV, "rps", "0"), ("undo",)):
            assert "another layover" in host.irq(*words, rc=1)


def test_another_namespace(host):
    host.irq("apply", DEV, "rps", "0")
    name = host.netns + "-2"
    ok("ip", "netns", "add", name)
    try:
        done = run(*host.command("undo"), netns=name)
        assert done.returncode == 1 and "another network namespace" in done.stderr
        assert "another network namespace" in run(*host.command("verify"), netns=name).stderr
    finally:
        run("ip", "netns", "del", name)
    host.irq("undo")


def test_another_boot(host):
    host.irq("apply", DEV, "rps", "0")
    path = os.path.join(host.state, host.journals()[0])
    lines = open(path, encoding="utf-8").read().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "boot": "another"})
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    assert "undo" in host.irq("apply", DEV, "rps", "1", rc=1)
    assert "gone by itself" in host.irq("undo")
    assert host.journals() == []


def test_last_line_cut_short(host):
    before = host.snapshot()
    host.irq("apply", *EVERYTHING)
    path = os.path.join(host.state, host.journals()[0])
    with open(path, "rb+") as file:
        file.truncate(os.path.getsize(path) - 5)
    host.irq("undo")
    assert host.snapshot() == before


def test_damaged_journal_is_said(host):
    host.irq("apply", DEV, "rps", "0")
    path = os.path.join(host.state, host.journals()[0])
    for content in (b"", b"rubbish\n", b"\0" * 100, open(path, "rb").read()[:150]):
        with open(path, "wb") as file:
            file.write(content)
        assert path in host.irq("undo", rc=1)
    host.irq("undo", "--forget")
    assert host.journals() == []


def test_without_privilege(host, tmp_path):
    """Planning needs none; applying says what is missing and changes nothing."""
    before = host.snapshot()
    os.chmod(tmp_path, 0o755)
    user = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all"]
    done = run(*user, *host.command("plan", *EVERYTHING, "-j"), netns=host.netns)
    assert done.returncode == 0 and json.loads(done.stdout)["changes"]
    done = run(*user, *host.command("apply", *EVERYTHING), netns=host.netns)
    assert done.returncode == 3 and "root may" in done.stderr
    assert host.snapshot() == before
