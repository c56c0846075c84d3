// SPDX-License-Identifier: GPL-2.0-only
/* The receiver's device and softirq: no socket is known yet, so times are kept by packet and by CPU. */
#include "turn.bpf.h"

struct napi_struct; /* only passed by */

/* veth and lo have no interrupt: the packet is put on a CPU's backlog here, and a softirq is raised. */
SEC("tp_btf/netif_rx")
int BPF_PROG(virtual_irq, struct sk_buff *skb)
{
	__u64 key = address_of(skb);
	struct arrival *a = arrival_slot(key);

	a->key = key;
	a->irq = bpf_ktime_get_ns();
	a->irq_cpu = this_cpu();
	a->softirq = 0;
	a->stack_in = 0;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_begins)
{
	cpu_state()->irq = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_ends)
{
	cpu_state()->irq = 0;
	return 0;
}

/* A NIC's interrupt is one whose handler raises NET_RX, whatever it is called. Only the first one counts. */
SEC("tp_btf/softirq_raise")
int BPF_PROG(softirq_raised, unsigned int vector)
{
	struct cpu_state *cpu = cpu_state();

	if (vector == NET_RX_SOFTIRQ && cpu->irq && !cpu->raised_by)
		cpu->raised_by = cpu->irq;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq, unsigned int vector)
{
	struct cpu_state *cpu = cpu_state();

	cpu->ready_sk = 0; /* as in running() */
	if (vector != NET_RX_SOFTIRQ)
		return 0;
	cpu->softirq = bpf_ktime_get_ns();
	cpu->softirq_irq = cpu->raised_by;
	cpu->raised_by = 0;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends, unsigned int vector)
{
	if (vector == NET_RX_SOFTIRQ)
		cpu_state()->softirq = cpu_state()->softirq_irq = 0;
	return 0;
}

/*
 * A poll that found packets is over. What later polls of the same softirq find may have come while it ran:
 * it neither waited for the softirq nor had that interrupt.
 */
SEC("tp_btf/napi_poll")
int BPF_PROG(poll_ends, struct napi_struct *napi, int work)
{
	struct reader *thread = reader_slot((__u32)bpf_get_current_pid_tgid());

	if (work <= 0)
		return 0;
	cpu_state()->softirq = cpu_state()->softirq_irq = 0;
	if (thread->waking_sk == WOKEN_BY_IRQ)
		thread->waking_sk = 0;
	return 0;
}

/* With threaded NAPI the interrupt wakes a thread, and the thread on its CPU is what a softirq is else. */
static __always_inline void take_napi_thread(struct arrival *a)
{
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	struct reader *thread = reader_slot(pid);

	if (thread->pid != pid || thread->waking_sk != WOKEN_BY_IRQ || thread->on < thread->waking)
		return;
	a->irq = thread->waking;
	a->irq_cpu = thread->waking_cpu;
	a->softirq = thread->on;
}

/* The driver hands the packet over: RPS may take it to another CPU, its interrupt was on this one. */
SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(from_driver, struct sk_buff *skb)
{
	__u64 key = address_of(skb);
	struct arrival *a = arrival_slot(key);
	struct cpu_state *cpu = cpu_state();

	a->key = key;
	a->irq = cpu->softirq_irq;
	a->irq_cpu = this_cpu();
	a->softirq = cpu->softirq;
	a->stack_in = 0;
	if (!cpu->softirq)
		take_napi_thread(a);
	return 0;
}

/*
 * The key of a data segment of the traced flow, 0 for any other packet. skb->data is at the IP header.
 * IP options and extension headers are not followed: the driver's flows have none.
 */
static __always_inline __u64 flow_segment(const struct sk_buff *skb)
{
	__u8 ip[60];
	__u32 headers;
	struct tcp_wire *tcp;
	__u16 source, destination;

	if (bpf_probe_read_kernel(ip, sizeof(ip), skb->data))
		return 0;
	if (ip[0] == 0x45 && ip[9] == IPPROTO_TCP) {
		tcp = (void *)(ip + 20);
		headers = 20;
	} else if (ip[0] >> 4 == 6 && ip[6] == IPPROTO_TCP) {
		tcp = (void *)(ip + 40);
		headers = 40;
	} else {
		return 0;
	}
	source = bpf_ntohs(tcp->source);
	destination = bpf_ntohs(tcp->dest);
	if (source + destination != config.client_port + config.server_port ||
	    (source != config.client_port && source != config.server_port))
		return 0;
	headers += (tcp->data_offset >> 4) * 4;
	if (skb->len <= headers)
		return 0;
	return segment_key(destination, bpf_ntohl(tcp->seq) + skb->len - headers);
}

static __always_inline void keep_by_bytes(const struct sk_buff *skb, const struct arrival *from)
{
	__u64 key = flow_segment(skb);
	struct arrival *a = arrival_slot(key);

	if (!key)
		return;
	a->key = key;
	a->irq = from->irq;
	a->irq_cpu = from->irq_cpu;
	a->softirq = from->softirq;
	a->stack_in = from->stack_in;
	a->cpu = from->cpu;
}

/* skb->sk must not be used: on veth it is still the sender's socket. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(stack_in, struct sk_buff *skb)
{
	__u64 key = address_of(skb);
	struct arrival *a = arrival_slot(key);
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = &cpu_states[cpu & (CPUS - 1)];

	state->last_skb = key;
	if (a->key != key || a->stack_in) {
		a->key = key;
		a->irq = state->softirq_irq;
		a->irq_cpu = (__u16)cpu;
		a->softirq = 0;
	}
	if (state->softirq)
		a->softirq = state->softirq;
	a->cpu = (__u16)cpu;
	a->stack_in = bpf_ktime_get_ns();
	/* This softirq was already running when the packet was announced: it did not wait for its start. */
	if (a->softirq < a->irq)
		a->softirq = 0;
	if (config.by_bytes)
		keep_by_bytes(skb, a);
	return 0;
}
