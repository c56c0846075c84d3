// SPDX-License-Identifier: GPL-2.0-only
/* Holds every announcement of a datagram to 198.51.100.0/24 for LATE_NS: it is in the socket's queue by then. */
#include "hold.h"

#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#define LATE_NS 50000
#define NETWORK 0xc6336400 /* 198.51.100.0 */

struct sock_common {
	__be32 skc_rcv_saddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} __attribute__((preserve_access_index));

SEC("tp_btf/sk_data_ready") /* attached first, it runs first */
int BPF_PROG(late, struct sock *sk)
{
	if (sk->sk_protocol == IPPROTO_UDP &&
	    (bpf_ntohl(sk->__sk_common.skc_rcv_saddr) & 0xffffff00) == NETWORK)
		hold(LATE_NS);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
