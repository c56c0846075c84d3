#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs pytest (the words given). What failed is run once more, by itself: these tests measure time, and a
# machine that does something else at the wrong moment must not look like a defect. Twice is one.
set -u

"$@"
status=$?
[ $status -eq 1 ] || exit $status
echo "Once more, what failed:"
exec "$@" --last-failed --last-failed-no-failures none
