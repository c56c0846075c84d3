# SPDX-License-Identifier: GPL-2.0-only
"""What all tests share: with LAYOVER_NO_SKIP, as in CI, a skipped test is a failure."""
import os

SKIPPED = 6  # an exit status of our own: running the failed ones again does not help


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", [])
    if os.environ.get("LAYOVER_NO_SKIP") and skipped:
        reporter.write_line(f"\nLAYOVER_NO_SKIP: {len(skipped)} skipped, of which each is a failure:")
        for report in skipped:
            reporter.write_line(f"  {report.nodeid}: {report.longrepr[2]}")
        session.exitstatus = SKIPPED
