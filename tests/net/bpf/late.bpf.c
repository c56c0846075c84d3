// SPDX-License-Identifier: GPL-2.0-only
/* Holds every announcement of a datagram to 198.51.100.0/24 for LATE_NS: it is in the socket's queue by then. */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define LATE_NS 50000
#define NETWORK 0xc6336400 /* 198.51.100.0 */

enum { ROUNDS = 1 << 20 };

struct sock_common {
	__be32 skc_rcv_saddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} __attribute__((preserve_access_index));

static long step(__u32 round, void *end)
{
	return bpf_ktime_get_ns() >= *(__u64 *)end;
}

SEC("tp_btf/sk_data_ready") /* attached first, it runs first */
int BPF_PROG(late, struct sock *sk)
{
	__u64 end = bpf_ktime_get_ns() + LATE_NS;

	if (sk->sk_protocol == IPPROTO_UDP &&
	    (bpf_ntohl(sk->__sk_common.skc_rcv_saddr) & 0xffffff00) == NETWORK)
		bpf_loop(ROUNDS, step, &end, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
