// SPDX-License-Identifier: GPL-2.0-only
/* tc classifier: holds every packet of at least 200 bytes for SPIN_NS, to see in which stage it shows. */
#include "hold.h"

#define SPIN_NS   200000
#define TC_ACT_OK 0

enum { SMALL = 200 };

SEC("tc")
int spin(struct __sk_buff *skb)
{
	if (skb->len >= SMALL)
		hold(SPIN_NS);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
