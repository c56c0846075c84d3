/* SPDX-License-Identifier: GPL-2.0-only */
/* To keep a CPU where it is for a while: the verifier wants to see an end. */
#ifndef HOLD_H
#define HOLD_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum { HOLD_ROUNDS = 1 << 20 };

static long hold_step(__u32 round, void *end)
{
	return bpf_ktime_get_ns() >= *(__u64 *)end;
}

static __always_inline void hold(__u64 ns)
{
	__u64 end = bpf_ktime_get_ns() + ns;

	bpf_loop(HOLD_ROUNDS, hold_step, &end, 0);
}

#endif
