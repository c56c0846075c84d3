// SPDX-License-Identifier: GPL-2.0-only
/* The scheduler: from the wake-up of a reader until it runs. */
#include "turn.bpf.h"

/* Fires on the waker's CPU, directly after the socket announced its data there. */
SEC("tp_btf/sched_waking")
int BPF_PROG(wakeup, struct task_struct *p)
{
	struct cpu_state *cpu = cpu_state();
	struct reader *reader;

	if (!cpu->ready_sk && !cpu->irq)
		return 0;
	reader = reader_claim(p->pid);
	reader->waking_cpu = this_cpu();
	if (cpu->irq) { /* perhaps a thread that polls the device; since it interrupts, time it so */
		reader->waking = cpu->irq;
		reader->waking_sk = WOKEN_BY_IRQ;
		return 0;
	}
	reader->waking = bpf_ktime_get_ns();
	reader->waking_sk = cpu->ready_sk;
	cpu->ready_sk = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(running, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u32 out = prev->pid, in = next->pid;
	struct reader *leaves = reader_slot(out), *enters = reader_slot(in);
	__u64 now;

	/* Whoever announced data here is done: later wake-ups are not its. */
	cpu_state()->ready_sk = 0;
	/* The idle task's pid is 0, as that of a free slot. */
	if ((leaves->pid != out || !out) && (enters->pid != in || !in))
		return 0;
	now = bpf_ktime_get_ns();
	if (leaves->pid == out) {
		leaves->off = now;
		leaves->preempted = preempt || !prev_state; /* the state: since 5.18 */
	}
	if (enters->pid == in) {
		enters->on = now;
		enters->on_cpu = this_cpu();
	}
	return 0;
}
