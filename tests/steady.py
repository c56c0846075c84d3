# SPDX-License-Identifier: GPL-2.0-only
"""What tests that compare times go by on a machine that does other things too."""


def steady(check, attempts=3):
    """Other load can spoil a run, never turn a wrong result into the right one: check() again, a few times."""
    for attempt in range(attempts):
        try:
            return check()
        except AssertionError:
            if attempt == attempts - 1:
                raise
