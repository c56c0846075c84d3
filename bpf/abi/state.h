/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel side remembers between hooks that do not know the socket. It lives in .bss, which the
 * user side maps, hence its place here; the user side does not touch it.
 */
#ifndef LAYOVER_ABI_STATE_H
#define LAYOVER_ABI_STATE_H

#include <linux/types.h>

enum {
	CPUS = 1024,  /* power of two; CPUs beyond share a state, and lose hooks to it */
	SLOTS = 1024, /* power of two */
};

/* What the CPU is doing, for hooks that see the CPU only. */
struct cpu_state {
	__u64 softirq;     /* when its NET_RX softirq started; 0: not running, or polled a device */
	__u64 softirq_irq; /* when the interrupt came that raised it, 0: something else did */
	__u64 irq;         /* when the interrupt came that is being handled, 0: none */
	__u64 raised_by;   /* the interrupt that raised NET_RX since it last started, 0: none */
	__u64 ready_sk;    /* the socket that is announcing data: the next wake-up is its doing */
	__u64 pointer;     /* scratch of address_of() */
	__u64 last_skb;    /* the packet that last entered the stack here */
	__u64 send_enter;  /* when a task entered a send call here … */
	__u32 send_pid;    /* … and which */
	__u32 pad;
	__u64 pad2[7];
};

/*
 * A packet on its way to a socket. Its key is the sk_buff's address, unique while the packet lives (and
 * entering the stack overwrites what an earlier packet at that address left), or for a TCP segment, which
 * may be merged into its predecessor in the socket's backlog, its port and last byte. Two packets that
 * share a slot lose the older one's hooks, never mix them: the key is compared.
 */
struct arrival {
	__u64 key;
	__u64 irq, softirq, stack_in; /* stack_in is 0 until the packet enters the stack */
	__u16 irq_cpu, cpu;
	__u32 pad;
	__u64 pad2[3];
};

/*
 * A thread that reads from traced sockets, or polls a device (threaded NAPI), by thread id: when it last
 * left and entered a CPU, and what last woke it. Same rule for shared slots: `pid` is compared.
 */
enum { WOKEN_BY_IRQ = 1 }; /* no socket's address */

struct reader {
	/* It does not run between off and on, when off < on; it still waits when off > on. */
	__u64 off, on;
	__u64 waking, waking_sk; /* the socket whose data woke it, or WOKEN_BY_IRQ */
	__u32 pid;
	__u16 on_cpu, waking_cpu;
	__u8 preempted; /* when it left its CPU it wanted to run on */
	__u8 pad;
	__u16 pad2;
	__u32 pad3;
	__u64 pad4[2];
};

#endif
