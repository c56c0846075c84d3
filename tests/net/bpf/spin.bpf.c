// SPDX-License-Identifier: GPL-2.0-only
/* tc classifier: holds every packet of at least 200 bytes for SPIN_NS, to see in which stage it shows. */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SPIN_NS   200000
#define TC_ACT_OK 0

enum { ROUNDS = 1 << 20, SMALL = 200 };

static long step(__u32 round, void *end)
{
	return bpf_ktime_get_ns() >= *(__u64 *)end;
}

SEC("tc")
int spin(struct __sk_buff *skb)
{
	__u64 end = bpf_ktime_get_ns() + SPIN_NS;

	if (skb->len >= SMALL)
		bpf_loop(ROUNDS, step, &end, 0);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
