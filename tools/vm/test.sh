#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# test.sh WORKERS TESTS... runs tests/vm with pytest ($PYTEST): those that may share the machine by as many processes,
# then, one at a time, those marked `alone`, which compare times or look at all guests.
set -u

workers=$1
shift
here=$(dirname "$0")
nothing=5 # what pytest says when no test was chosen

# A CPU of a virtual machine that rests is back when the hypervisor gets round to it: a guest's 2003 trips, four wake-ups
# each, took 2 s or 27. Work that gives way to all other keeps the CPUs up; it ends with this script, however that ends.
awake=
for _ in $(seq "$(nproc)"); do
    setpriv --pdeathsig KILL chrt --idle 0 sh -c 'while :; do :; done' &
    awake="$awake $!"
done
trap 'kill $awake' EXIT

phase() {
    # shellcheck disable=SC2086  # words
    "$here/../retest.sh" $PYTEST "$@"
}

if [ "$workers" -gt 1 ]; then
    phase -n "$workers" --dist loadgroup -m "not alone" "$@"
else
    phase -m "not alone" "$@"
fi
shared=$?
phase -m alone "$@"
alone=$?
# One of them may have nothing to do.
[ $shared -ne $nothing ] || shared=$alone
[ $alone -ne $nothing ] || alone=$shared
[ $shared -eq 0 ] || exit $shared
exit $alone
