#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Fills the keys, columns and colours into the man page of `top` from the tables that the program itself is built from.
Usage: top_man.py PAGE.rst KEYS.def COLUMNS.c MODEL.c >OUT.rst"""
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def text(literals):
    """Adjacent C string literals as one text."""
    return "".join(re.findall(r'"([^"]*)"', literals))


def definitions(rows):
    assert len(rows) > 5, "the table was not understood"
    return "\n\n".join(f"{name}\n    {meaning}" for name, meaning in rows)


page, keys, columns, model = (read(path) for path in sys.argv[1:5])
table = columns[columns.index("top_columns[] = {"):]
tables = {
    "@KEYS@": [(f"**{names}**", meaning) for names, meaning in
               re.findall(r'^KEY\(\w+, "([^"]+)", "[^"]*", "([^"]+)"', keys, re.M)],
    "@COLUMNS@": [(f"**{title}** (*{key}*)", text(meaning)) for key, title, meaning in
                  re.findall(r'\{"(\w+)",\s*"([^"]+)",[^"]*((?:"[^"]*"\s*)+),', table)],
    "@GROUPS@": [(f"**{key}** ({letter})", meaning) for key, meaning, letter in
                 re.findall(r"\[GROUP_\w+\] = \{\"(\w+)\", \"([^\"]+)\", '(\w)'\}", model)],
}
for mark, rows in tables.items():
    assert mark in page, mark
    page = page.replace(mark, definitions(rows))
print(page, end="")
