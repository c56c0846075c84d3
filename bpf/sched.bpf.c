// SPDX-License-Identifier: GPL-2.0-only
/* The scheduler: from the wake-up of a reader until it runs. */
#include "turn.bpf.h"

/* Fires on the waker's CPU, directly after the socket announced its data there. */
SEC("tp_btf/sched_waking")
int BPF_PROG(wakeup, struct task_struct *p)
{
	struct cpu_state *cpu = cpu_state();
	struct wake *wake;
	__u32 pid;

	if (!cpu->ready_sk)
		return 0;
	pid = p->pid;
	wake = wake_slot(pid);
	wake->pid = 0;
	wake->sk = cpu->ready_sk;
	wake->waking = bpf_ktime_get_ns();
	wake->waking_cpu = this_cpu();
	wake->running = 0;
	wake->pid = pid;
	cpu->ready_sk = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(running, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 pid = next->pid;
	struct wake *wake = wake_slot(pid);

	cpu_state()->ready_sk = 0; /* whoever announced data here is done: later wake-ups are not its */
	if (!wake->sk || wake->pid != pid || wake->running)
		return 0;
	wake->running = bpf_ktime_get_ns();
	wake->running_cpu = this_cpu();
	return 0;
}
