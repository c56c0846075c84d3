// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts system calls, of the whole machine and of one process. An object of its own: /proc has no such
 * number, and while this is attached every system call of the machine takes the slow path.
 */
#include "kernel.h"
#include "abi/calls.h"

char LICENSE[] SEC("license") = "GPL";

struct calls_caller caller;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct calls_count);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(count_call, struct pt_regs *regs, long id)
{
	struct bpf_pidns_info own = {0};
	struct calls_count *count;
	__u32 first = 0;

	count = bpf_map_lookup_elem(&counts, &first);
	if (!count)
		return 0;
	count->machine++;
	/* The process knows only the number that it has in its own PID namespace. */
	if (!bpf_get_ns_current_pid_tgid(caller.device, caller.inode, &own, sizeof(own)) &&
	    own.tgid == caller.tgid)
		count->process++;
	return 0;
}
