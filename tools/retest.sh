#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs pytest (the words given). What failed is run again by itself, twice at most, when the machine is quiet: these
# tests measure time, and a machine that does something else for a minute must not look like a defect. Thrice is one.
set -u

# Which ones failed is kept outside the tree: this runs as root, and the tree may be somebody else's.
export PYTHONDONTWRITEBYTECODE=1
cache=$(mktemp -d) || exit 2
trap 'rm -rf "$cache"' EXIT
set -- "$@" -o "cache_dir=$cache"

"$@"
status=$?
for again in "Once more" "And once more"; do
    [ $status -eq 1 ] || break
    "$(dirname "$0")/quiet.py" 90
    echo "$again, what failed:"
    "$@" --last-failed --last-failed-no-failures none
    status=$?
done
exit $status
