/* SPDX-License-Identifier: GPL-2.0-only */
/* What the counter of system calls and its reader share. */
#ifndef LAYOVER_ABI_CALLS_H
#define LAYOVER_ABI_CALLS_H

#include <linux/types.h>

/* The process that is counted apart: its PID namespace and its number there. */
struct calls_caller {
	__u64 device, inode;
	__u32 tgid;
};

struct calls_count {
	__u64 machine, process;
};

#endif
