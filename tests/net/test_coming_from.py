# SPDX-License-Identifier: GPL-2.0-only
"""docs/coming-from.md keeps its word: everything that a row offers is run, as it stands there."""
import json
import os
import re
import shlex

import pytest

from conftest import LAYOVER, TOP, inside, ok, run, serve, started

TRIPS = 40


def table():
    """(tool, their option, the cell of ours) of every row."""
    tool, rows = None, []
    with open(os.path.join(TOP, "docs", "coming-from.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                tool = line[3:].strip()
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if tool and line.startswith("| ") and cells[0] != tool:
                assert len(cells) == 3, line
                rows.append((tool, cells[0], cells[2]))
    return rows


def offers():
    """(where, command, coming) of everything offered."""
    for tool, theirs, ours in table():
        if re.match(r"no\b", ours):
            continue
        coming = False
        for before, command in re.findall(r"([^`]*)`([^`]+)`", re.sub(r" \([^)]*\)", "", ours)):
            coming |= "coming:" in before
            yield pytest.param(command, coming, id=f"{tool} {theirs.replace('`', '')}: {command}")


def known(words):
    """Whether the program has this command and all of its options."""
    command = words[1] if words[0] == "layover" else "ping"
    done = run(LAYOVER, command, "--help")
    options = [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z0-9]", word)]
    return done.returncode == 0 and all(
        re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", done.stdout) for option in options)


def ping_result(words, **kwargs):
    """A short ping; its JSON, unless it prints something else."""
    limits = [] if {"-i", "-t"} & set(words) else ["-i", TRIPS]
    limits += [] if "-w" in words else ["-w", 10]
    plain = [] if "--split" in words else ["--no-split"]
    form = [] if {"--format", "-j"} & set(words) else ["-j"]
    out = ok(LAYOVER, "ping", *words, *limits, *plain, *form, **kwargs)
    if "--format" in words and "json" not in words:
        assert len(out.splitlines()) >= 2
        return None
    return json.loads(out)


def check(result, words):
    if result is None:
        return
    count = result.get("rtt", result.get("half_rtt"))["count"]
    if "-i" in words:
        assert count == int(words[words.index("-i") + 1])
    elif "-t" in words or "--playback" in words:
        assert count > 0
    else:
        assert count == TRIPS


def test_every_option_of_theirs_has_a_row():
    """No row without an answer, none twice, and not fewer than there were."""
    rows = table()
    assert len(rows) == len({(tool, theirs) for tool, theirs, _ in rows})
    assert {tool: sum(row[0] == tool for row in rows) >= least
            for tool, least in (("latte", 35), ("sockperf", 45), ("netperf", 45))} == {
                "latte": True, "sockperf": True, "netperf": True}
    for _, theirs, ours in rows:
        assert re.match(r"`|coming: `|no: \w", ours), f"{theirs}: {ours}"


@pytest.mark.parametrize("command,coming", offers())
def test_offer(command, coming, pair, tmp_path, monkeypatch):
    words = shlex.split(command)
    if coming and not known(words):
        return  # the table says so
    assert known(words), f"{command}: there is no such option; the table must say that it is coming"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "times.csv").write_text("".join(f"{i / 1000},{14 + i}\n" for i in range(20)))
    (tmp_path / "token").write_text("between us\n")
    (tmp_path / "token").chmod(0o600)
    if words[:2] == ["layover", "serve"]:
        with started(*inside(pair.server, [LAYOVER, *words[1:]])) as server:
            line = server.stdout.readline()
            assert line.startswith("serving on " + words[2]), line + server.stderr.read()
    elif words[:2] == ["layover", "ping"]:
        secret = ["--token-file", "token"] if "--token-file" in words else []
        with serve(pair.server, words[2], *secret):
            check(ping_result(words[2:], netns=pair.server), words)
    elif words[:2] == ["layover", "load"]:
        result = json.loads(ok(LAYOVER, *words[1:], "-j"))
        assert result["received"]["messages"] > 0 and result["sent"]["messages"] > 0
    else:
        check(ping_result(["--lab", *words]), words)
