// SPDX-License-Identifier: GPL-2.0-only
/* A wire that loses packets, for the lab: no kernel module (netem) is needed for it. */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* Shorter ones are handshakes and acknowledgements: Ethernet 14, IPv6 40, TCP with timestamps 32, and a little. */
enum { PAYLOAD_FROM = 100 };

__u32 every; /* of so many packets with a payload … */
__u32 lost;  /* … so many in a row are lost, 0: none */
__u32 passed;

SEC("tc")
int lose_some(struct __sk_buff *skb)
{
	if (!every || skb->len < PAYLOAD_FROM)
		return TC_ACT_OK;
	return (__sync_fetch_and_add(&passed, 1) + lost) % every < lost ? TC_ACT_SHOT : TC_ACT_OK;
}
