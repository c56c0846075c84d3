// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads and sets one socket option of live TCP sockets of other programs. An object of its own: the others only look.
 * bpf_setsockopt() in an iterator over TCP sockets holds the socket's lock (since 5.16).
 */
#include "kernel.h"
#include "abi/remedy.h"

char LICENSE[] SEC("license") = "GPL";

struct remedy_config config;

/* The new value by cookie: only these sockets are changed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REMEDY_SOCKETS_MAX);
	__type(key, __u64);
	__type(value, __s32);
} wanted SEC(".maps");

/* New connections, as they are changed. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} changed SEC(".maps");

__u64 untold; /* connections that were changed and found no room there */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket___file {
	struct file *file;
};

struct sock___socket {
	struct socket___file *sk_socket;
};
#pragma clang attribute pop

static __always_inline bool is_wanted(const struct sock_common *skc)
{
	__u16 remote = bpf_ntohs(skc->skc_dport);

	return remote && (skc->skc_num == config.port || remote == config.port);
}

static __always_inline void describe(struct sock_common *skc, struct remedy_row *row)
{
	read_addresses(skc, &row->family, row->local, row->remote);
	row->local_port = skc->skc_num;
	row->remote_port = bpf_ntohs(skc->skc_dport);
	row->bound_ifindex = skc->skc_bound_dev_if;
	row->inode = BPF_CORE_READ((struct sock___socket *)skc, sk_socket, file, f_inode, i_ino);
	row->netns = BPF_CORE_READ(skc, skc_net.net, ns.inum);
}

SEC("iter/tcp")
int remedy_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct remedy_row row = {};
	struct tcp_sock *tp;
	__s32 *value, wish;

	if (!skc || !is_wanted(skc))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	describe(skc, &row);
	row.socket = bpf_get_socket_cookie(tp);
	row.error = (__s32)bpf_getsockopt(tp, config.level, config.option, &row.before,
					  sizeof(row.before));
	row.after = row.before;
	value = bpf_map_lookup_elem(&wanted, &row.socket);
	if (config.apply && !value)
		return 0;
	if (config.apply && value && !row.error) {
		wish = *value;
		row.error =
			(__s32)bpf_setsockopt(tp, config.level, config.option, &wish, sizeof(wish));
		if (!row.error)
			row.error = (__s32)bpf_getsockopt(tp, config.level, config.option,
							  &row.after, sizeof(row.after));
	}
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

/* A connection of the cgroup is ready: either end's. */
SEC("sockops")
int remedy_new(struct bpf_sock_ops *ctx)
{
	struct remedy_row row = {};
	struct tcp_sock *tp;

	if ((ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	     ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) ||
	    !ctx->sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(ctx->sk);
	if (!tp || !is_wanted((struct sock_common *)tp))
		return 1;
	describe((struct sock_common *)tp, &row);
	row.socket = bpf_get_socket_cookie(ctx);
	row.error = (__s32)bpf_getsockopt(ctx, config.level, config.option, &row.before,
					  sizeof(row.before));
	row.after = row.before;
	if (!row.error)
		row.error = (__s32)bpf_setsockopt(ctx, config.level, config.option, &config.value,
						  sizeof(config.value));
	if (!row.error)
		row.error = (__s32)bpf_getsockopt(ctx, config.level, config.option, &row.after,
						  sizeof(row.after));
	if (bpf_ringbuf_output(&changed, &row, sizeof(row), 0))
		__sync_fetch_and_add(&untold, 1);
	return 1;
}
