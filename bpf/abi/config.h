/* SPDX-License-Identifier: GPL-2.0-only */
/* What the user side tells the kernel side, and the counters it reads back. Both live in .bss. */
#ifndef LAYOVER_ABI_CONFIG_H
#define LAYOVER_ABI_CONFIG_H

#include <linux/types.h>

enum { SEND_CALLS = 5 };

struct config {
	__u16 client_port, server_port; /* of the flow to trace, host order; 0/0: none */
	__u8 proto;                     /* IPPROTO_TCP, IPPROTO_UDP */
	__u8 by_bytes; /* TCP: find arrivals by sequence number, because packets may be merged */
	__u8 watch;    /* not the driver's flow, but every TCP flow from or to watch_port */
	__u8 emit_late; /* a client's turn is emitted when its next send call returns, not when it starts */
	__u64 driver_seq_mask; /* UDP: which bits of the payload's first 8 bytes are the driver's number */
	__u16 watch_port; /* host order, 0: any */
	__u8 wakeups;     /* the hook wakeup is loaded */
	__u8 pad;
	__u32 send_calls[SEND_CALLS]; /* this machine's numbers of the send system calls */
	__u64 delack_timer;           /* where the kernel has tcp_delack_timer(), 0 unknown */
	__u64 slow_ns; /* `top`: turns from this long on are told, until more is known of the flow */
};

struct counters {
	__u64 records;    /* handed to the ring buffer */
	__u64 dropped;    /* not taken by the ring buffer: it was full */
	__u64 sockets;    /* watched so far: the last one's number */
	__u64 unfinished; /* turns given up because a new message started first */
	__u64 no_place;   /* `top`: sockets that have no head, because all are given out */
	__u64 unplaced; /* `top`: turns of sockets without a head: all are given out, or it closed before it had one */
};

#endif
