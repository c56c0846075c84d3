#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints layover-causes(7) as reStructuredText, from the table of causes. Usage: causes.py bpf/abi/causes.def"""
import re
import sys

HEAD = """==============
layover-causes
==============

-----------------------------------------
what small messages over TCP may wait for
-----------------------------------------

:Manual section: 7

DESCRIPTION
===========

**layover diagnose** names these causes. A verdict is *proven* when all of its evidence was seen, *likely* when a part
was; nothing is concluded from a duration alone. Each names the end whose program or host must change.

CAUSES
======
"""

TAIL = """
SEE ALSO
========

**layover-diagnose**\\ (1), **layover-watch**\\ (1), **tcp**\\ (7)
"""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table = file.read().split("*/", 2)[2]
    rows = re.findall(r'CAUSE\((\w+), (\w+), "([^"]*)",\s*"([^"]*)"\)', table)
    assert len(rows) == table.count("CAUSE("), "a row does not have the form of the others"
    print(HEAD)
    for key, end, text, remedy in rows:
        print(f"{key}\n    {text[0].upper()}{text[1:]}. To change, on the message's {end.lower()}: {remedy}.\n")
    print(TAIL)


main()
