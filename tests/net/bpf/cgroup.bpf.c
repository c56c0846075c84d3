// SPDX-License-Identifier: GPL-2.0-only
/* cgroup_skb programs that drop every PERIOD-th UDP message of the driver, and count what they dropped. */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>

#include "abi/message.h"

enum { PERIOD = 2000, DROP = 0, PASS = 1 };

__u64 seen SEC(".bss");
__u64 dropped SEC(".bss");

static int drop_some(struct __sk_buff *skb)
{
	struct message_header message;
	__u8 proto;

	/* The packet starts at its IP header here. */
	if (bpf_skb_load_bytes(skb, offsetof(struct iphdr, protocol), &proto, 1) ||
	    proto != IPPROTO_UDP ||
	    bpf_skb_load_bytes(skb, sizeof(struct iphdr) + sizeof(struct udphdr), &message,
			       sizeof(message)) ||
	    message.magic != MESSAGE_MAGIC)
		return PASS;
	if (__sync_add_and_fetch(&seen, 1) % PERIOD)
		return PASS;
	__sync_fetch_and_add(&dropped, 1);
	return DROP;
}

SEC("cgroup_skb/egress")
int drop_egress(struct __sk_buff *skb)
{
	return drop_some(skb);
}

SEC("cgroup_skb/ingress")
int drop_ingress(struct __sk_buff *skb)
{
	return drop_some(skb);
}

char LICENSE[] SEC("license") = "GPL";
