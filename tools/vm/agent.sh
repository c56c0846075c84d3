#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs what the host asks for. It knows one verb:
#   host:  SECONDS SCRIPT-BYTES INPUT-BYTES \n script input
#   guest: done STATUS OUTPUT-BYTES ERROR-BYTES \n output error
# Files travel as tar streams through the input and the output.

files=/run/agent
mkdir -p "$files"

# Without udev nobody makes /dev/virtio-ports; the port's name is in sysfs.
port=""
for name in /sys/class/virtio-ports/*/name; do
    [ "$(cat "$name" 2>/dev/null)" = layover.agent ] && port=/dev/$(basename "$(dirname "$name")")
done
if [ -z "$port" ]; then
    echo "agent: there is no port named layover.agent"
    exit 1
fi

# Exactly so many bytes: what follows belongs to the next reader.
take() {
    [ "$1" -eq 0 ] || dd bs="$1" count=1 iflag=fullblock <&3 2>/dev/null
}

exec 3<>"$port"
echo "ready $(cut -d ' ' -f 1 /proc/uptime)" >&3
number=0
while read -r seconds script_size input_size <&3; do
    # New files each time: a process left in the background may still write to the old ones.
    number=$((number + 1))
    base=$files/$number
    take "$script_size" >"$base.sh"
    take "$input_size" >"$base.in"
    cd /lab || cd /
    timeout -s KILL "$seconds" sh "$base.sh" <"$base.in" >"$base.out" 2>"$base.err" 3>&-
    status=$?
    output_size=$(stat -c %s "$base.out")
    error_size=$(stat -c %s "$base.err")
    {
        echo "done $status $output_size $error_size"
        head -c "$output_size" "$base.out"
        head -c "$error_size" "$base.err"
    } >&3
    rm -f "$base".*
done
