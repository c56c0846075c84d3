#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Installs the Debian packages that a target needs, only those that are missing.
# Usage: deps.sh build|test|vm|bench|lint|docs ...
set -eu

build="gcc libc6-dev make pkg-config clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev
    libncurses-dev libjansson-dev libcap-dev libmnl-dev liburing-dev nettle-dev linux-libc-dev iproute2
    python3-docutils"
test="libcmocka-dev python3 python3-pytest python3-pexpect python3-pyte procps git
    sockperf"
lint="clang-format clang-tidy cppcheck shellcheck pyflakes3"
docs="python3-pil fonts-dejavu-core"
bench="sockperf qperf python3"
vm="qemu-system-x86 cpio xz-utils zstd lz4 busybox-static kmod ethtool iproute2 python3 python3-pytest
    python3-pytest-xdist"

wanted=""
for set in "$@"; do
    case $set in
        build) wanted="$wanted $build" ;;
        test) wanted="$wanted $test" ;;
        lint) wanted="$wanted $lint" ;;
        bench) wanted="$wanted $bench" ;;
        docs) wanted="$wanted $docs" ;;
        vm) wanted="$wanted $vm" ;;
        *) echo "deps.sh: no such set: $set" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "deps.sh: this is not Debian; install the equivalents of:$wanted" >&2
    exit 0
fi

missing=""
for package in $wanted; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "deps.sh: missing packages:$missing; run 'apt-get install$missing' as root" >&2
        exit 1
    }
    as_root=sudo
fi

echo "deps: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
    # shellcheck disable=SC2086 # the list is meant to be split
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1
}
# A fresh machine has no package lists, an old one stale ones: try, update, try again.
install || { $as_root apt-get update -q >>"$log" 2>&1 && install; } || {
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get could not install$missing; the lines above say why" >&2
    exit 1
}
