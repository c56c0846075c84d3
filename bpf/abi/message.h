/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's message, as it lies in TCP and UDP payloads. Compiled by both sides. */
#ifndef LAYOVER_ABI_MESSAGE_H
#define LAYOVER_ABI_MESSAGE_H

#include <linux/types.h>

/*
 * Little endian, cut to the size of the message: a message of 5 bytes holds the low 5 bytes of the
 * sequence number and nothing else. Behind this header the payload is a pattern that follows from
 * sequence number and offset. A reply is the request, byte for byte as far as both reach, then zeros.
 */
struct message_header {
	__u64 seq;     /* 1, 2, 3 … within a session; a trip that was lost has used its number */
	__u32 session; /* low half of the session id */
	__u32 magic;   /* MESSAGE_MAGIC; in a raw IP reply MESSAGE_ANSWER */
};

enum {
	MESSAGE_MAGIC = 0x6f79616c,
	MESSAGE_ANSWER = 0x4f59414c,
	MESSAGE_SEQ_BYTES = 8
}; /* "layo", "LAYO" */

_Static_assert(sizeof(struct message_header) == 16, "as on the wire");

#endif
