/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that are read, with only the fields that are read. preserve_access_index makes
 * libbpf find the real offsets in the running kernel's BTF, so the build needs no kernel's headers.
 */
#ifndef LAYOVER_KERNEL_H
#define LAYOVER_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
/* include/net/tcp_states.h, an enum */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT    2
#define TCP_CLOSE       7
#define MSG_PEEK        0x2
#define MSG_ERRQUEUE    0x2000

/* include/linux/interrupt.h, an anonymous enum, so CO-RE cannot look it up; unchanged since 2.6. */
#define NET_RX_SOFTIRQ 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct possible_net {
	struct net *net;
};

struct in6_addr {
	unsigned char in6_u[16];
};

struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	__be32 skc_daddr, skc_rcv_saddr;
	unsigned short skc_family;
	unsigned short skc_rx_queue_mapping; /* CONFIG_SOCK_RX_QUEUE_MAPPING */
	unsigned char skc_state;
	int skc_bound_dev_if;
	struct possible_net skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u16 sk_protocol;
	unsigned long sk_tsq_flags;
	int sk_rx_dst_ifindex; /* since 5.17 */
};

struct socket {
	struct sock *sk;
};

struct sk_buff {
	struct sock *sk;
	char cb[48];
	unsigned int len, data_len;
	__u16 transport_header;
	unsigned char *head, *data;
};

/* Overlays sk_buff.cb while TCP owns the packet. */
struct tcp_skb_cb {
	__u32 seq, end_seq;
};

struct tcp_sock {
	__u32 snd_nxt, snd_una, write_seq, packets_out, mss_cache, snd_wnd, snd_cwnd;
	__u8 nonagle : 4;
};

struct timer_list {
	void (*function)(struct timer_list *);
};

struct ack_state {
	__u8 pending;
};

struct inet_connection_sock {
	struct timer_list icsk_delack_timer;
	__u8 icsk_ca_state : 5;
	struct ack_state icsk_ack;
};

struct task_struct {
	int pid;
	int tgid;
	char comm[16];
};

#pragma clang attribute pop

/* The start of a TCP header (RFC 9293, 3.1). */
struct tcp_wire {
	__be16 source, dest;
	__be32 seq, ack;
	__u8 data_offset; /* high four bits, in 32-bit words */
	__u8 flags;
	__be16 window;
};

/* Both ends' addresses, 16 bytes each, of which IPv4 uses the first four. */
static __always_inline void read_addresses(const struct sock_common *skc, __u16 *family,
					   __u8 *local, __u8 *remote)
{
	*family = skc->skc_family;
	if (*family == 10 /* AF_INET6 */) {
		bpf_probe_read_kernel(local, 16, &skc->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(remote, 16, &skc->skc_v6_daddr);
	} else {
		__builtin_memcpy(local, &(__be32){skc->skc_rcv_saddr}, 4);
		__builtin_memcpy(remote, &(__be32){skc->skc_daddr}, 4);
	}
}

#endif
