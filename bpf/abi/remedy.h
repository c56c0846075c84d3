/* SPDX-License-Identifier: GPL-2.0-only */
/* What the iterator over TCP sockets reads and writes for `remedy`. */
#ifndef LAYOVER_ABI_REMEDY_H
#define LAYOVER_ABI_REMEDY_H

#include <linux/types.h>

enum { REMEDY_SOCKETS_MAX = 4096 };

struct remedy_config {
	__s32 level, option;
	__u16 port; /* host order; sockets from or to it are told */
	__u8 apply; /* set the values of the map `wanted`, else only look */
	__u8 pad;
	__s32 value; /* for new connections */
};

/* One socket, as it is told. */
struct remedy_row {
	__u64 socket; /* cookie */
	__u64 inode; /* of the socket's file: what /proc/PID/fd shows; 0: nobody has opened it yet */
	__u64 netns; /* inode number */
	__u8 local[16], remote[16];
	__u16 local_port, remote_port; /* host order */
	__u16 family;
	__u16 pad;
	__s32 before, after; /* the option's value; after is before where nothing was set */
	__s32 error;         /* of reading or setting it: 0 or -errno */
	__u32 bound_ifindex; /* as in struct flow_record */
};

_Static_assert(sizeof(struct remedy_row) == 80, "no hidden padding");

#endif
