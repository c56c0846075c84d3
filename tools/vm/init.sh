#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The guest's first process: mounts, modules, the NIC's address, then the agent or a shell.
# Reads lab.address=, lab.queues=, lab.modules=a,b,c, lab.shell=1 from the kernel's command line.

export PATH=/lab:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root TERM="${TERM:-linux}"
export PYTHONDONTWRITEBYTECODE=1

value() {
    tr ' ' '\n' </proc/cmdline | sed -n "s/^lab\.$1=//p"
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for folder in /dev/shm /run /tmp; do
    mount -t tmpfs tmpfs "$folder"
done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p /run/netns /run/lock /tmp /root /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200 # its first opener loads the module
hostname guest

# The transports first (built in or module, as the kernel has it), then what the run asked for.
for module in virtio_pci virtio_console $(value modules | tr ',' ' '); do
    modprobe -q "$module" || echo "init: no module $module" >/dev/kmsg
done

# Drivers use no more queues than there are CPUs unless told; the run asked for a number.
# (virtio on 6.1, when that number is above the CPUs: `ethtool -X` afterwards makes the device forget
# it, and the queues above the CPUs get nothing more.)
set_queues() {
    [ -z "$1" ] || ethtool -L eth0 combined "$1" 2>/dev/null || echo "init: not $1 queues" >/dev/kmsg
}

# igb needs a second to find its link; a run that starts before would measure that.
wait_for_link() {
    tries=0
    until [ "$(cat /sys/class/net/eth0/carrier 2>/dev/null)" = 1 ] || [ "$tries" -ge 100 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

ip link set lo up
address=$(value address)
if [ -n "$address" ]; then
    set_queues "$(value queues)"
    ip addr add "$address" dev eth0
    ip link set eth0 up
    wait_for_link
fi

if [ "$(value shell)" = 1 ]; then
    cd /lab || cd /
    shell=/usr/bin/sh
    [ -x /usr/bin/bash ] && shell=/usr/bin/bash
    setsid cttyhack "$shell" -i
    poweroff -f
fi
sh /agent.sh
poweroff -f
