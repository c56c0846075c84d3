/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known of one turn of one socket. abi/turn.h has it as the kernel side emits it. */
#ifndef LAYOVER_ABI_RECORD_H
#define LAYOVER_ABI_RECORD_H

#include <linux/types.h>

enum hook {
#define HOOK(name, role, kind, layer, text) HOOK_##name,
#include "abi/hooks.def"
#undef HOOK
	HOOKS
};

enum { HOOKS_PADDED = (HOOKS + 3) & ~3 }; /* so that 16-bit fields fill 64-bit words */

enum role { ROLE_NONE, ROLE_CLIENT, ROLE_SERVER };

enum record_flags {
	RECORD_RETRANSMITTED = 1 << 0, /* some byte of the message was sent more than once */
};

/*
 * A client's turn is send → receive, a server's is receive → send. Times are CLOCK_MONOTONIC ns, 0 where
 * the hook did not fire. The ids name the message to both ends: for TCP the sequence number after its
 * last byte (32 bits), for UDP the driver's own sequence number in the payload.
 */
struct turn_record {
	__u64 t[HOOKS];
	__u16 cpu[HOOKS_PADDED];
	__u64 send_id, recv_id;
	__u32 flow;       /* client port << 16 | server port */
	__u32 send_bytes; /* as the send calls returned */
	__u32 recv_bytes; /* as the receive calls returned */
	__u16 writes, reads;
	__u8 role;  /* enum role */
	__u8 proto; /* IPPROTO_TCP, IPPROTO_UDP */
	__u8 flags; /* enum record_flags */
	__u8 pad;
	__u32 entry; /* `top`: the index of its head + 1; 0: it has none */
	__u64 socket; /* a watched socket's number; 0: the driver's flow, of which there is only one */
};

_Static_assert(sizeof(struct turn_record) == HOOKS * 8 + HOOKS_PADDED * 2 + 16 + 32,
	       "no hidden padding");

#endif
