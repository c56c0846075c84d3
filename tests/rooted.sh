#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs a command where / is a mount point, as `ip netns exec` and `unshare --mount` want it. In a chroot it
# is none; then the command gets mounts of its own, in which the same tree is. Nothing of that stays behind.
# Usage: rooted.sh COMMAND [ARGUMENT ...]      as root
set -eu

if awk '$5 == "/" { found = 1 } END { exit !found }' /proc/self/mountinfo; then
    exec "$@"
fi
# What is mounted below the mount that the chroot lies in might show up outside, and that mount cannot be
# made private from here. /sys can: it carries the new root.
# shellcheck disable=SC2016 # the inner shells expand them
exec unshare --mount --propagation unchanged sh -euc '
    mount --make-rprivate /sys
    mount -t tmpfs none /sys
    mkdir /sys/root
    mount --rbind / /sys/root
    mount --make-rprivate /sys/root
    umount /sys/root/sys
    exec chroot /sys/root sh -euc "cd \"\$1\"; shift; exec \"\$@\"" sh "$PWD" "$@"
' sh "$@"
