# SPDX-License-Identifier: GPL-2.0-only
"""The man pages know every option of --help, and no other."""
import os
import re

import pytest

from conftest import TOP, layover

COMMON = {"help", "usage"}


def options_of(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text))


@pytest.mark.parametrize("command", ["ping", "load", "serve", "watch", "diagnose", "remedy"])
def test_man_page_and_help_agree(command):
    helped = options_of(layover(command, "--help").stdout) - COMMON
    with open(os.path.join(TOP, "docs", "man", f"layover-{command}.1.rst"), encoding="utf-8") as file:
        page = file.read()
    described = options_of(page)
    if command == "load":  # the shared ones are described in layover-ping(1)
        with open(os.path.join(TOP, "docs", "man", "layover-ping.1.rst"), encoding="utf-8") as file:
            described |= options_of(file.read())
    assert helped - described == set()
    own = options_of("\n".join(line for line in page.splitlines() if line.startswith("-")))
    assert own - helped == set()


@pytest.mark.parametrize("command", ["ping", "load", "serve", "watch", "diagnose", "remedy", "stages", "doctor"])
def test_help_fits_a_terminal(command):
    assert all(len(line) < 80 for line in layover(command, "--help").stdout.splitlines())
