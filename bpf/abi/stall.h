/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel side tells of watched flows besides their turns: who they are, and what held them up. */
#ifndef LAYOVER_ABI_STALL_H
#define LAYOVER_ABI_STALL_H

#include <linux/types.h>

enum { FLOW_COMM = 16, FLOW_NO_QUEUE = 0xffff };

/* A watched socket, told when a program first sends or receives through it. */
struct flow_record {
	__u64 socket; /* its number, as in turn records */
	__u64 netns;  /* inode number */
	__u64 cgroup; /* of the program, by its id, which is the inode number of its directory */
	__u8 local[16], remote[16];
	__u16 local_port, remote_port; /* host order */
	__u16 family;
	__u8 role; /* enum role */
	__u8 pad;
	__u32 pid; /* thread group */
	char comm[FLOW_COMM];
	__u32 rx_ifindex; /* the device that its packets come by, in netns; 0: not known */
	__u16 rx_queue;   /* of that device, FLOW_NO_QUEUE: the driver does not tell */
	__u16 pad2;
	__u32 bound_ifindex; /* the device it is bound to, as by a link-local address; 0: none */
};

_Static_assert(sizeof(struct flow_record) == 96, "no hidden padding");

/* Why written bytes did not leave with the write. Checked in this order. */
enum hold_reason {
	HOLD_NONE,
	HOLD_WINDOW,      /* beyond what the receiver allows */
	HOLD_ZERO_WINDOW, /* it allows nothing, then or for a tenth of the time */
	HOLD_CWND,        /* beyond the congestion window */
	HOLD_CORK,        /* TCP_CORK or MSG_MORE */
	HOLD_NAGLE,       /* a small segment, while another one is not acknowledged (RFC 896) */
	HOLD_TSQ,         /* too much of this socket below TCP already (TSQ, autocork) */
	HOLD_OTHER,       /* pacing and whatever else */
	HOLD_REASONS,
};

/*
 * A message that the window cuts leaves in parts, and waits until the last one has left. Otherwise the first part is all.
 */
#define HOLDS_TO_THE_END(reason) ((reason) >= HOLD_WINDOW && (reason) <= HOLD_CWND)

enum resend_reason { RESEND_RTO, RESEND_TLP, RESEND_FAST, RESEND_REASONS };

enum stall_kind {
	STALL_HELD, /* begin: the write returned; cause: an ACK arrived that freed it (or 0); end: it left */
	STALL_DELACK, /* begin: data arrived; cause: the delayed-ACK timer fired; end: the ACK left */
	STALL_RESENT, /* begin: 0; end: it was sent again */
};

struct stall_record {
	__u64 socket;            /* its number, as in turn records */
	__u64 begin, cause, end; /* CLOCK_MONOTONIC ns */
	__u32 bytes;             /* that were held */
	__u32 in_flight;         /* packets not acknowledged when the hold began */
	__u8 kind;               /* enum stall_kind */
	__u8 reason;             /* enum hold_reason, enum resend_reason */
	__u8 pad[2];
	__u32 entry; /* as in turn records */
};

_Static_assert(sizeof(struct stall_record) == 48, "no hidden padding");

/* A reader that was woken by data had to wait for a CPU on which another task ran. */
struct hog_record {
	__u64 begin, end;     /* woken, running; CLOCK_MONOTONIC ns */
	__u32 reader;         /* thread group of the reader … */
	__u32 pid;            /* … and of the task which had the CPU longest */
	char comm[FLOW_COMM]; /* of that task */
};

_Static_assert(sizeof(struct hog_record) == 40, "no hidden padding");

#endif
