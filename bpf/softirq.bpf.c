// SPDX-License-Identifier: GPL-2.0-only
/* The receiver's device and softirq: no socket is known yet, so times are kept by packet and by CPU. */
#include "turn.bpf.h"

/* veth and lo have no interrupt: the packet is put on a CPU's backlog here, and a softirq is raised. */
SEC("tp_btf/netif_rx")
int BPF_PROG(virtual_irq, struct sk_buff *skb)
{
	struct arrival *a = arrival_slot(skb);

	a->skb = (__u64)skb;
	a->irq = bpf_ktime_get_ns();
	a->irq_cpu = this_cpu();
	a->stack_in = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq, unsigned int vector)
{
	struct cpu_state *cpu = cpu_state();

	cpu->ready_sk = 0; /* as in running() */
	if (vector == NET_RX_SOFTIRQ)
		cpu->softirq = bpf_ktime_get_ns();
	return 0;
}

/* skb->sk must not be used: on veth it is still the sender's socket. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stack_in, struct sk_buff *skb)
{
	struct arrival *a = arrival_slot(skb);
	__u32 cpu = bpf_get_smp_processor_id();

	if (a->skb != (__u64)skb || a->stack_in) {
		a->skb = (__u64)skb;
		a->irq = 0;
	}
	a->softirq = cpu_states[cpu & (CPUS - 1)].softirq;
	a->cpu = (__u16)cpu;
	a->stack_in = bpf_ktime_get_ns();
	/* This softirq was already running when the packet was announced: it did not wait for its start. */
	if (a->softirq < a->irq)
		a->softirq = 0;
	return 0;
}
