# SPDX-License-Identifier: GPL-2.0-only
"""The split across two hosts, on one kernel: a server that sees another boot id is taken for another host.

Both ends then load hooks into the same kernel, so each sees both sockets: they must use their own records only.
"""
import contextlib
import csv
import json
import os
import shutil
import struct
import tempfile
import time

import pytest

from conftest import LAYOVER, layover, run, serve, started, wait_for
from hosts import assert_exact, load, medians
from peer import FakeServer, binary_frame, frame, record, records_body
from steady import steady

TRIPS = 3001
OTHER_BOOT = "12345678-1234-1234-1234-123456789abc"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
CPUS = sorted(os.sched_getaffinity(0))
PROTOS = pytest.mark.parametrize("proto", [[], ["--udp"]], ids=["tcp", "udp"])


@contextlib.contextmanager
def far_serve(pair, *args, user=(), binary=LAYOVER):
    """A server that runs on what looks like another kernel."""
    with tempfile.NamedTemporaryFile("w", prefix="layover-boot-id-") as boot_id:
        boot_id.write(OTHER_BOOT + "\n")
        boot_id.flush()
        os.chmod(boot_id.name, 0o644)
        script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        with started("unshare", "-m", "sh", "-c", script, boot_id.name, *user, binary, "serve", pair.server_addr, *args,
                     netns=pair.server) as child:
            line = child.stdout.readline()
            assert line.startswith("serving on "), line + child.stderr.read()
            yield child


def split(pair, *options, dump=None, timeout=60):
    words = ["ping", pair.server_addr, "--split", "-j", *options]
    if dump:
        words += ["--dump", dump]
    done = layover(*words, netns=pair.client, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return load(done.stdout, dump)


def programs():
    """How many programs of ours the kernel holds."""
    bpftool = next(p for p in ("/usr/sbin/bpftool", "/sbin/bpftool", "/usr/bin/bpftool") if os.path.exists(p))
    return run(bpftool, "prog", "show").stdout.count("name dev_queue")


def programs_at_rest():
    """The same, once it has not changed for half a second: an earlier test's are freed late."""
    counts = [programs()]
    while len(counts) < 6 or len(set(counts[-6:])) > 1:
        assert len(counts) < 100
        time.sleep(0.1)
        counts.append(programs())
    return counts[-1]


# --- the join -----------------------------------------------------------------------------------------


@PROTOS
@pytest.mark.parametrize("size", [1, 3, 64, 1448, 16384])
def test_sums(pair, tmp_path, proto, size):
    with far_serve(pair):
        result = split(pair, *proto, "-m", size, "-i", TRIPS, dump=tmp_path / "rows.csv")
    assert_exact(result, TRIPS)
    assert result["server"]["traced"] and not result["server"]["same_kernel"]
    assert result["server"]["reason"] is None
    stages = result["stages"]
    assert "client.wire" not in stages and "server.wire" not in stages and "server.host" not in stages
    assert stages["client.network"]["p50_ns"] > 0
    assert stages["server.app"]["count"] >= 0.999 * TRIPS


@PROTOS
def test_same_as_with_one_clock(pair, proto):
    """The server's stages and the wires are those that one kernel's hooks see."""
    options = [*proto, "-i", TRIPS, "--client-cpu", CPUS[0], "--server-cpu", CPUS[0]]

    def check():
        with serve(pair.server, pair.server_addr):
            near = split(pair, *options)
        with far_serve(pair):
            far = split(pair, *options)
        assert near["server"]["same_kernel"] and near["server"]["traced"]
        wires = medians(near)["client.wire"] + medians(near)["server.wire"]
        differences = {key: abs(ns - medians(far).get(key, 0)) for key, ns in medians(near).items()
                       if not key.endswith(".wire")}
        differences["network"] = abs(medians(far)["client.network"] - wires)
        # twice the hooks, so everything is a little slower
        assert max(differences.values()) < 3000, differences
    steady(check)


@PROTOS
def test_think_time(pair, proto):
    options = [*proto, "-i", 1009, "--client-cpu", CPUS[0], "--server-cpu", CPUS[0]]

    def check():
        base, slow = medians(split(pair, *options)), medians(split(pair, *options, "--server-delay", "200us"))
        growth = {key: slow[key] - base.get(key, 0) for key in slow}
        assert abs(growth.pop("server.app") - 200_000) < 10_000 and max(map(abs, growth.values())) < 10_000, growth
    with far_serve(pair):
        steady(check)


def test_hooks_left_out_are_left_out_there_too(pair):
    with far_serve(pair):
        stages = split(pair, "-i", 503, "--hooks", "-data_ready,-copy")["stages"]
    for side in ("client", "server"):
        assert f"{side}.reader" not in stages and f"{side}.socket" not in stages
        assert f"{side}.wakeup" in stages or f"{side}.notify" in stages or f"{side}.receive" in stages


def test_overhead_switches_both_ends(pair):
    with far_serve(pair):
        result = split(pair, "--overhead", "-t", "2")
    assert result["overhead"]["pairs"] >= 2
    assert result["counters"]["matched"] >= 0.999 * result["counters"]["trips"]
    assert result["server"]["traced"]


def test_text_names_the_other_kernel(pair):
    with far_serve(pair):
        done = layover("ping", pair.server_addr, "-i", 503, netns=pair.client)
    assert "client.network" in done.stdout and "its own kernel, " + os.uname().release in done.stdout


# --- who traces -----------------------------------------------------------------------------------------


def test_one_kernel_traces_once(pair):
    before = programs_at_rest()
    with serve(pair.server, pair.server_addr), \
            started(LAYOVER, "ping", pair.server_addr, "-t", "20", netns=pair.client) as client:
        wait_for(lambda: programs() > before)
        time.sleep(0.5)
        assert programs() == before + 1
        client.kill()


def test_server_traces_only_when_asked(pair):
    before = programs_at_rest()
    with far_serve(pair):
        assert layover("ping", pair.server_addr, "--no-split", "-t", "200ms", netns=pair.client).returncode == 0
        with started(LAYOVER, "ping", "--no-split", pair.server_addr, "-t", "20", netns=pair.client) as client:
            time.sleep(0.5)
            assert programs() == before
            client.kill()
        split(pair, "-i", 503)
        wait_for(lambda: programs() == before, 10)


def test_client_killed_while_traced(pair):
    before = programs_at_rest()
    with far_serve(pair):
        with started(LAYOVER, "ping", pair.server_addr, "-t", "20", netns=pair.client) as client:
            wait_for(lambda: programs() == before + 2)
            client.kill()
        wait_for(lambda: programs() == before, 10)
        assert split(pair, "-i", 503)["server"]["traced"]


def test_second_client_is_told_busy(pair):
    before = programs_at_rest()
    with far_serve(pair), \
            started(LAYOVER, "ping", pair.server_addr, "-t", "30", netns=pair.client) as first:
        wait_for(lambda: programs() == before + 2)
        second = split(pair, "-i", 503)
        assert not second["server"]["traced"] and "busy" in second["server"]["reason"]
        assert "server.host" in second["stages"] and "client.network" not in second["stages"]
        first.kill()
        first.wait()
        wait_for(lambda: split(pair, "-i", 101)["server"]["traced"], 10)


def test_server_told_not_to(pair, tmp_path):
    with far_serve(pair, "--no-trace"):
        result = split(pair, "-i", TRIPS, dump=tmp_path / "rows.csv")
        text = layover("ping", pair.server_addr, "-i", 503, netns=pair.client).stdout
    assert_exact(result, TRIPS)
    assert result["server"]["reason"] == "this server does not trace"
    assert "server.host" in result["stages"]
    assert "not traced (this server does not trace)" in " ".join(text.split())


@pytest.fixture
def public_binary():
    """A copy that everybody may run, wherever the tree lies."""
    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        yield shutil.copy(LAYOVER, where)


def test_server_without_privileges(pair, tmp_path, public_binary):
    with far_serve(pair, user=NOBODY, binary=public_binary):
        result = split(pair, "-i", TRIPS, dump=tmp_path / "rows.csv")
    assert_exact(result, TRIPS)
    assert not result["server"]["traced"] and "BPF is not allowed" in result["server"]["reason"]
    assert "server.host" in result["stages"] and "server.app" not in result["stages"]


def test_client_without_privileges(pair, public_binary):
    """No split here, then none is asked for there."""
    before = programs_at_rest()
    with far_serve(pair), \
            started(*NOBODY, public_binary, "ping", "-j", pair.server_addr, "-t", "1s", netns=pair.client) as client:
        time.sleep(0.6)
        assert programs() == before
        out, err = client.communicate(timeout=10)
    assert client.returncode == 0 and "no split" in err
    assert "server" not in json.loads(out)


# --- ends that vanish, stall, or say nonsense --------------------------------------------------------------


def test_server_killed_while_traced(pair):
    before = programs_at_rest()
    with far_serve(pair) as server, \
            started(LAYOVER, "ping", pair.server_addr, "-t", "30", netns=pair.client) as client:
        wait_for(lambda: programs() == before + 2)
        time.sleep(0.3)
        server.kill()
        out, err = client.communicate(timeout=12)
        assert client.returncode == 1 and out == "" and err.count("\n") == 1, err
    wait_for(lambda: programs() == before, 10)


def echo(seq, payload, send):
    send(payload)


def fetched(pair, *bodies, hooks=("dev_xmit", "recv_exit")):
    """A ping against a server that answers with these frames when it is asked for records."""
    answers = {"trace": frame({"type": "trace", "protocol": 2, "traced": True, "hooks": list(hooks)}),
               "records": b"".join(bodies)}
    with FakeServer(pair.server, pair.server_addr, echo, control_answers=answers):
        return layover("ping", "--split", pair.server_addr, "-u", "-i", 101, "-w", 0, "-j", netns=pair.client,
                       timeout=15)


GOOD = record(1, 1, [5, 6])


@pytest.mark.parametrize("answer,word", [
    (binary_frame(b""), "cut short"),
    (binary_frame(records_body([GOOD], 2)[:-1]), "bytes of records"),
    (binary_frame(records_body([GOOD], 2) + b"x"), "bytes of records"),
    (binary_frame(records_body([GOOD], 3)), "bytes of records"),
    (binary_frame(records_body([GOOD], 2, count=65535)), "bytes of records"),
    (binary_frame(records_body([GOOD], 2, version=7)), "version 7"),
    (binary_frame(records_body([GOOD], 2, clock=1 << 63)), "impossible clock"),
    (binary_frame(os.urandom(5000)), "records"),
    (b"LAYR\xff\xff\xff\xff", "frame of 4294967295 bytes"),
    (b"garbage that is no frame", "does not speak layover"),
    (frame({"type": "surprise"}), "not expected"),
    (frame({"type": "error", "text": "out of \x1b[31mpaper"}), "out of ?[31mpaper"),
    (binary_frame(records_body([], 2, last=False)) * 5000, "come to an end"),
], ids=range(13))
def test_garbage_instead_of_records(pair, answer, word):
    done = fetched(pair, answer)
    assert done.returncode == 1 and done.stdout == ""
    assert word in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_no_records_in_time(pair):
    done = fetched(pair, b"LAYR")
    assert done.returncode == 1 and "in time" in done.stderr


@pytest.mark.parametrize("answer,word", [
    (b"LAYR\0\0\0\0", "binary frame"),
    (frame({"type": "trace", "traced": True}), "list of hooks"),
    (frame({"type": "trace", "traced": True, "hooks": [1]}), "without their names"),
    (frame({"type": "trace", "traced": True, "hooks": ["copy"] * 65}), "list of hooks"),
], ids=range(4))
def test_garbage_instead_of_an_answer(pair, answer, word):
    with FakeServer(pair.server, pair.server_addr, echo, control_answers={"trace": answer}):
        done = layover("ping", "--split", pair.server_addr, "-u", "-i", 101, netns=pair.client)
    assert done.returncode == 1 and word in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("times", [[5, 6], [2 ** 64 - 1, 1], [0, 0], [1, 2 ** 64 - 1], [2 ** 63, 2 ** 63]])
def test_well_formed_nonsense(pair, tmp_path, times):
    """Records with the right ids and impossible times cost their trips the server's stages, nothing more."""
    body = records_body([record(i, i, times) for i in range(1, 65)], 2, counters=(7, 8, 9))
    more = records_body([record(i, i, times) for i in range(65, 125)], 2, last=True, counters=(7, 8, 9))
    body = body[:2] + struct.pack("<H", 0) + body[4:]
    answers = {"trace": frame({"type": "trace", "traced": True, "hooks": ["dev_xmit", "recv_exit"]}),
               "records": binary_frame(body) + binary_frame(more)}
    dump = tmp_path / "rows.csv"
    with FakeServer(pair.server, pair.server_addr, echo, control_answers=answers):
        done = layover("ping", "--split", pair.server_addr, "-u", "-i", 101, "-j", "--dump", dump, netns=pair.client)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["counters"]["dropped"] == 7 and result["server"]["counters"]["recursion_misses"] == 9
    with open(dump, encoding="ascii") as rows:
        for row in csv.DictReader(rows):
            stages = [int(value) for key, value in row.items() if "." in key and key.endswith("_ns")]
            assert sum(stages) == int(row["rtt_ns"]) and min(stages) >= 0


@pytest.mark.parametrize("request_", [
    frame({"type": "records", "attach": True}),
    frame({"type": "trace", "with": 5, "without": []}),
    frame({"type": "trace", "with": [], "without": ["x"] * 65}),
    frame({"type": "hello"}),
    binary_frame(b"\0" * 100),
    b"r",
], ids=range(6))
def test_clients_that_misbehave_in_a_session(pair, request_):
    from peer import connect, hello, read_frame
    with far_serve(pair) as server:
        control, data = connect(pair.client, pair.server_addr), connect(pair.client, pair.server_addr)
        ready = hello(control)
        assert ready["boot_id"] == OTHER_BOOT and ready["kernel"] == os.uname().release
        data.sendall(frame({"type": "data", "session": ready["session"]}))
        assert read_frame(control)["type"] == "go"
        control.sendall(request_)
        assert read_frame(control)["type"] == "error"
        assert control.recv(1) == b""
        assert split(pair, "-i", 503)["server"]["traced"]
        server.terminate()
        assert server.wait(10) == 0
