# SPDX-License-Identifier: GPL-2.0-only
"""apt with its own sources, lists and cache: nothing of the system's configuration is changed."""

import os
import re
import subprocess
from pathlib import Path

from . import mirror
from .errors import LabError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
STANZA = """Types: deb
URIs: {uri}
Suites: {suites}
Components: main
Architectures: amd64
Targets: Packages
Signed-By: {keyring}
"""


class PrivateApt:
    """Everything lives in one folder; the machine's proxies (apt.conf.d) still hold."""

    def __init__(self, folder, suites):
        self.folder = Path(folder)
        self.suites = suites
        for part in ("lists/partial", "cache/archives/partial", "debs"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)

    def _options(self):
        mine = {
            "Dir::Etc::sourcelist": self.folder / "layover.sources",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": self.folder / "cache",
            "Dir::Cache::archives": self.folder / "cache/archives",
            "APT::Architecture": "amd64",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        if os.geteuid() == 0:
            # apt's own user cannot read a cache folder below root's home.
            mine["APT::Sandbox::User"] = "root"
        return [word for name, value in mine.items() for word in ("-o", f"{name}={value}")]

    def _apt(self, program, *words, timeout=900):
        command = [program, *self._options(), *words]
        done = subprocess.run(command, cwd=self.folder / "debs", stdin=subprocess.DEVNULL, timeout=timeout,
                              capture_output=True, text=True, errors="replace")
        if done.returncode:
            tail = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise LabError(f"{program} {' '.join(words)} failed:\n{tail}")
        return done.stdout

    def update(self):
        archive, security = mirror.find()
        text = STANZA.format(uri=archive, suites=" ".join(self.suites), keyring=KEYRING)
        if security and "bookworm" in self.suites:
            text += "\n" + STANZA.format(uri=security, suites="bookworm-security", keyring=KEYRING)
        (self.folder / "layover.sources").write_text(text)
        self._apt("apt-get", "update", "-q", "--error-on=any")

    def versions(self, package, suite):
        """The versions a suite (or its security suite) has, newest first."""
        for line in self._apt("apt-cache", "madison", package).splitlines():
            _, version, source = (part.strip() for part in line.split("|"))
            where = source.split()[1].split("/")[0]
            if where in (suite, f"{suite}-security"):
                yield version

    def needs(self, package, version):
        """The packages it depends on, as (name, version or None)."""
        shown = self._apt("apt-cache", "show", "--no-all-versions", f"{package}={version}")
        field = re.search(r"^Depends: (.*)$", shown, re.M)
        for need in field[1].split(",") if field else ():
            match = re.match(r"\s*([^\s:(|]+)(?::\w+)?(?:\s*\(= ([^)]+)\))?", need)
            yield match[1], match[2]

    def download(self, package, version):
        """Fetches one package and returns its path."""
        self._apt("apt-get", "download", "-q", f"{package}={version}")
        found = sorted((self.folder / "debs").glob(f"{package}_*.deb"))
        if not found:
            raise LabError(f"apt-get download {package}={version} left no package behind")
        return found[-1]
