# SPDX-License-Identifier: GPL-2.0-only
"""The man pages know every option of --help, and no other."""
import os
import re

import pytest

from conftest import TOP, layover

COMMON = {"help", "usage"}


def options_of(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text))


def help_of(command):
    """Of a command with verbs: all of theirs."""
    text = layover(command, "--help").stdout
    verbs = re.findall(r"^  (\w+) ", text.partition("Verbs:")[2], re.M)
    return text + "".join(layover(command, verb, "--help").stdout for verb in verbs)


@pytest.mark.parametrize("command", ["ping", "load", "serve", "watch", "diagnose", "remedy", "irq"])
def test_man_page_and_help_agree(command):
    helped = options_of(help_of(command)) - COMMON
    with open(os.path.join(TOP, "docs", "man", f"layover-{command}.1.rst"), encoding="utf-8") as file:
        page = file.read()
    described = options_of(page)
    if command in ("load", "irq"):  # the shared ones are described in layover-ping(1)
        with open(os.path.join(TOP, "docs", "man", "layover-ping.1.rst"), encoding="utf-8") as file:
            described |= options_of(file.read())
    assert helped - described == set()
    own = options_of("\n".join(line for line in page.splitlines() if line.startswith("-")))
    assert own - helped == set()


@pytest.mark.parametrize("command", ["ping", "load", "serve", "watch", "diagnose", "remedy", "irq", "stages", "doctor"])
def test_help_fits_a_terminal(command):
    assert all(len(line) < 80 for line in help_of(command).splitlines())
