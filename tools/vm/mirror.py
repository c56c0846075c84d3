# SPDX-License-Identifier: GPL-2.0-only
"""Finds the Debian mirror in the machine's own apt configuration, which is only read."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError

APT_FOLDER = Path("/etc/apt")
SUITES = ("bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing", "unstable")


@dataclass(frozen=True)
class Source:
    uri: str
    suite: str
    components: tuple


def _one_line_style(text):
    """deb [options] URI SUITE COMPONENT...   (sources.list)"""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match:
            yield Source(match[1], match[2], tuple(match[3].split()))


def _deb822_style(text):
    """Stanzas of Types:, URIs:, Suites:, Components:   (*.sources)"""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", kept):
        pairs = re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t]+.*)*)", stanza, re.M)
        fields = {name.lower(): value.split() for name, value in pairs}
        if "deb" not in fields.get("types", []) or fields.get("enabled", ["yes"])[0] == "no":
            continue
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield Source(uri, suite, tuple(fields.get("components", [])))


def sources(folder=APT_FOLDER):
    """Every package source the machine knows."""
    parts = sorted(folder.glob("sources.list.d/*"))
    for path in [folder / "sources.list", *parts]:
        if not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".sources":
            yield from _deb822_style(text)
        elif path.suffix == ".list":
            yield from _one_line_style(text)


def _is_debian(source):
    return "main" in source.components and source.suite in SUITES


def _is_security(source):
    return "main" in source.components and re.search(r"[-/](security|updates)$", source.suite) \
        and "security" in source.uri + source.suite


def find(folder=APT_FOLDER):
    """(archive URI, security archive URI or None)."""
    known = list(sources(folder))
    chosen = os.environ.get("LAYOVER_VM_MIRROR")
    archives = [s.uri for s in known if _is_debian(s)]
    # Other vendors use Debian's suite names too; Debian's own path is /debian on nearly every mirror.
    archives.sort(key=lambda uri: not uri.rstrip("/").endswith("/debian"))
    archive = chosen or next(iter(archives), None)
    if not archive:
        raise LabError("no Debian mirror found in the apt configuration; "
                       "set LAYOVER_VM_MIRROR to the URI of one")
    security = next((s.uri for s in known if _is_security(s)), None)
    return archive, None if chosen else security
