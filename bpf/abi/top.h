/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel side keeps of every watched socket for `top`: counters and histograms that only grow. The user side
 * takes snapshots and subtracts them; it never resets anything.
 */
#ifndef LAYOVER_ABI_TOP_H
#define LAYOVER_ABI_TOP_H

#include <linux/types.h>

#include "abi/stall.h"

/* The parts of a socket's own turn, in the order in which a message passes them, first out, then in. */
enum top_part {
	TOP_SYSCALL,
	TOP_SEND,
	TOP_HELD,
	TOP_RETRANS,
	TOP_QDISC,
	TOP_GAP, /* a client's: all that is not seen from it; a server's: its program */
	TOP_SOFTIRQ,
	TOP_DRIVER,
	TOP_STACK,
	TOP_SOCKET,
	TOP_NOTIFY,
	TOP_WAKEUP,
	TOP_READER,
	TOP_RECEIVE,
	TOP_PARTS
};

enum top_state { TOP_FREE, TOP_OPEN, TOP_CLOSED };

/* One socket. The first lines are written when it is given out and by the user side, the others by every turn. */
struct top_head {
	struct flow_record who; /* its socket is 0 where the head is given back */
	__u32 state;            /* enum top_state */
	__u8 wanted;            /* every turn is told as a record */
	__u8 pad[3];
	__u64 slow_ns; /* turns from this long on are, 0: none */
	__u64 pad2[2];

	__u64 turns; /* in the histogram and the sums */
	__u64 complete; /* the same and perhaps one more: the turn that is over unless it goes on, which took open_ns */
	__u64 open_ns;
	__u64 sum_ns;
	__u64 last_ns; /* CLOCK_MONOTONIC of the last one's end */
	__u64 one_way; /* messages without an answer */
	__u64 part_ns[TOP_PARTS];
	__u16 cpu_softirq, cpu_waker, cpu_reader,
		cpu_send; /* of the last turn; waker: 0xffff none */
	__u64 pad3[3];
};

_Static_assert(sizeof(struct top_head) == 128 + 48 + 112 + 32, "no hidden padding");

/*
 * Log-linear bins: 2^TOP_BITS per octave, so that the middle of a bin is at most 1/32 off (3.2 %). Those of a flow's
 * turns count units of 2^TOP_SHIFT ns: no round trip takes less than 1 us, above which the error holds.
 */
enum {
	TOP_BITS = 4,
	TOP_SHIFT = 6,
	TOP_BINS = 432,      /* up to 2^36 ns, 68 s; the last one holds what is longer */
	TOP_PART_BINS = 496, /* units of 1 ns, up to 2^34 ns, 17 s */
};

struct top_hist {
	__u32 bins[TOP_BINS];
};

/* All sockets together, per CPU: index role_index * TOP_ROWS + enum top_part, or + TOP_WHOLE for the turn itself. */
enum { TOP_WHOLE = TOP_PARTS, TOP_ROWS, TOP_ROLES = 2 };

struct top_part_hist {
	__u64 count, sum_ns; /* turns that passed the part */
	__u32 bins[TOP_PART_BINS];
};

/* By CPU number. */
struct top_cpu {
	__u64 turns;           /* whose reader ran here */
	__u64 woken;           /* readers that were woken to run here … */
	__u64 woken_by_others; /* … from another CPU */
	__u64 arrivals;        /* turns whose softirq ran here */
	__u64 pad[4];
};

/* The bin of a value that is in units already. Written so that it compiles to shifts for BPF, which cannot count zeros. */
static inline __u32 top_bin(__u64 value, __u32 bins)
{
	__u64 rest = value;
	__u32 log = 0, bin;

	if (rest >> 32) {
		log += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		log += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		log += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		log += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		log += 2;
		rest >>= 2;
	}
	log += rest >> 1;
	if (log < TOP_BITS)
		return (__u32)value;
	bin = (log - TOP_BITS + 1) * (1 << TOP_BITS) +
	      (__u32)((value >> (log - TOP_BITS)) & ((1 << TOP_BITS) - 1));
	return bin < bins ? bin : bins - 1;
}

#endif
