/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A turn as the kernel side keeps and emits it, ordered by who writes what: a cache line that the softirq's
 * CPU and the application's CPU both write costs both of them a miss in every trip. The socket storage puts
 * one pointer, read by every look-up, before the value: with it the first part fills the first line.
 */
#ifndef LAYOVER_ABI_TURN_H
#define LAYOVER_ABI_TURN_H

#include "abi/record.h"

enum {
	SOFTIRQ_HOOKS = HOOK_data_ready - HOOK_irq + 1,
	READER_HOOKS = HOOK_recv_exit - HOOK_wakeup + 1,
	SEND_HOOKS = HOOK_re_xmit - HOOK_send_enter + 1,
};

enum { CPU_OF_IRQ, CPU_OF_SOFTIRQ, SOFTIRQ_CPUS };

struct turn_lines {
	/* the softirq's */
	__u64 softirq_t[SOFTIRQ_HOOKS]; /* irq … data_ready */
	__u64 recv_id;
	__u16 softirq_cpu[SOFTIRQ_CPUS];
	__u8 phase;      /* enum phase */
	__u8 recv_known; /* recv_id holds a number */
	__u8 unread;     /* a message has started to arrive and nothing of it was read yet */
	__u8 unsaid;     /* something was sent that no record tells of */
	/* the application's */
	__u64 send_t[SEND_HOOKS]; /* send_enter … re_xmit */
	__u64 send_id;
	__u64 reader_t[READER_HOOKS]; /* wakeup … recv_exit */
	__u16 reader_cpu[READER_HOOKS];
	__u16 send_cpu[SEND_HOOKS];
	__u8 role;  /* enum role */
	__u8 proto; /* IPPROTO_TCP, IPPROTO_UDP */
	__u32 flow, send_bytes, recv_bytes;
	__u16 writes, reads;
	__u8 flags; /* enum record_flags */
	__u8 pad[3];
	__u32 entry; /* `top`: the index of its head + 1; 0: it has none */
	__u64 socket; /* a watched socket's number; 0: the driver's flow, of which there is only one */
};

_Static_assert(sizeof(struct turn_lines) == 56 + 64 + 40 + 16 + 32, "no hidden padding");

#endif
