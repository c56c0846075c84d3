// SPDX-License-Identifier: GPL-2.0-only
/* tc programs that mistreat the driver's UDP messages, chosen by their sequence numbers. */
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi/message.h"

enum {
	FIRST = 17, /* the first measured trip when there is no warm-up */
	LAST = 29,
	MARK = 0x6c61, /* this skb is already the copy */
};

/* The sequence number of an IPv4 UDP message of the driver, else 0. */
static __u64 sequence(struct __sk_buff *skb)
{
	__u32 at = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr);
	struct message_header message;
	__u8 proto;

	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, protocol), &proto, 1) ||
	    proto != IPPROTO_UDP || bpf_skb_load_bytes(skb, at, &message, sizeof(message)) ||
	    message.magic != MESSAGE_MAGIC)
		return 0;
	return message.seq;
}

SEC("drop")
int drop_some(struct __sk_buff *skb)
{
	__u64 seq = sequence(skb);

	return seq >= FIRST && seq <= LAST ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("double")
int double_some(struct __sk_buff *skb)
{
	__u64 seq = sequence(skb);

	if (seq >= FIRST && seq <= LAST && skb->mark != MARK) {
		skb->mark = MARK;
		bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
	}
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
