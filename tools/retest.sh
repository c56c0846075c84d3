#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs pytest (the words given). What failed is run once more, by itself: these tests measure time, and a
# machine that does something else at the wrong moment must not look like a defect. Twice is one.
set -u

# Which ones failed is kept outside the tree: this runs as root, and the tree may be somebody else's.
export PYTHONDONTWRITEBYTECODE=1
cache=$(mktemp -d) || exit 2
trap 'rm -rf "$cache"' EXIT
set -- "$@" -o "cache_dir=$cache"

"$@"
status=$?
if [ $status -eq 1 ]; then
    echo "Once more, what failed:"
    "$@" --last-failed --last-failed-no-failures none
    status=$?
fi
exit $status
