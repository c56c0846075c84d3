#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A new user's first command: clones the last commit into a new Debian tree that holds nothing but apt and
# make, and runs `make TARGET` there as root, before anything else. Needs root, debootstrap and git.
# Usage: fresh.sh [--keep] SUITE [TARGET ...]        fresh.sh trixie demo
set -eu
cd "$(dirname "$0")/.."

keep=""
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
fi
[ $# -ge 1 ] || { echo "usage: fresh.sh [--keep] SUITE [TARGET ...]" >&2; exit 2; }
suite=$1
shift

tree=$(mktemp -d "${TMPDIR:-/var/tmp}/layover-fresh.XXXXXX")
chmod 755 "$tree" # it becomes /, and some tests are not root
leave() {
    # The mounts were in a namespace that is gone; should one be here all the same, it is not entered.
    [ -n "$keep" ] || rm -rf --one-file-system "$tree"
}
trap leave EXIT
trap 'exit 130' INT TERM

echo "fresh: $suite in $tree"
debootstrap --variant=minbase --include=make "$suite" "$tree" >"$tree.log" 2>&1 || {
    tail -n 20 "$tree.log" >&2
    rm -f "$tree.log"
    exit 1
}
rm -f "$tree.log"
git clone -q . "$tree/root/layover"

# As in any chroot, there is /proc and /sys, and of /dev only what debootstrap makes.
# shellcheck disable=SC2016 # the inner shell expands them
unshare --mount --propagation private sh -euc '
    tree=$1
    shift
    mount -t proc proc "$tree/proc"
    mount -t sysfs sysfs "$tree/sys"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" \
        chroot "$tree" sh -c "cd /root/layover && exec make \"\$@\"" sh "$@"
' sh "$tree" "$@"
