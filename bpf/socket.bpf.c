// SPDX-License-Identifier: GPL-2.0-only
/* The socket layer: TCP and UDP take a message, find its socket, announce and copy it. */
#include "turn.bpf.h"

static __always_inline int send_started(struct sock *sk)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(sk);
	struct cpu_state *cpu;

	if (!turn || !turn_begin_send(turn))
		return 0;
	hit(turn, HOOK_send_tcp, now);
	cpu = cpu_state();
	if (cpu->send_pid && cpu->send_pid == (__u32)bpf_get_current_pid_tgid())
		hit(turn, HOOK_send_enter, cpu->send_enter);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(send_tcp, struct sock *sk)
{
	return send_started(sk);
}

SEC("fentry/tcp_sendmsg_locked")
int BPF_PROG(send_tcp_fentry, struct sock *sk)
{
	return send_started(sk);
}

SEC("fentry/udp_sendmsg")
int BPF_PROG(send_udp_fentry, struct sock *sk)
{
	return send_started(sk);
}

SEC("fentry/udpv6_sendmsg")
int BPF_PROG(send_udp6_fentry, struct sock *sk)
{
	return send_started(sk);
}

/* Runs in softirq, or in the reader's context when the packet waited in the socket's backlog. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(sock_in, struct sock *sk, struct sk_buff *skb)
{
	const struct tcp_skb_cb *cb = (const void *)skb->cb;
	__u32 end = cb->end_seq;
	struct turn *turn;
	__u64 now;

	if (end == cb->seq) /* a pure ACK */
		return 0;
	now = bpf_ktime_get_ns();
	turn = turn_of(sk);
	if (!turn)
		return 0;
	if (turn->now.recv_known && !after(end, (__u32)turn->now.recv_id))
		return 0; /* known bytes, sent again */
	turn_begin_receive(turn);
	turn->now.recv_known = 1;
	turn->now.recv_id = end;
	turn_take_arrival(turn, config.by_bytes ? segment_key(sk->__sk_common.skc_num, end)
						: address_of(skb));
	hit(turn, HOOK_sock_in, now);
	return 0;
}

/*
 * UDP: the newest datagram of the socket's queue is the one announced. An empty queue means that a reader
 * was faster than the announcement; then it was the packet that last entered the stack on this CPU. Its
 * memory may be in use again, but then it does not hold the number that is waited for.
 */
static __always_inline __u64 announced_datagram(const struct sock *sk, __u64 *id)
{
	struct sk_buff *skb;

	if (sk->sk_receive_queue.qlen) {
		skb = sk->sk_receive_queue.prev;
		*id = driver_seq(skb->head + skb->transport_header);
		/* The header is off by now: what is not in pages starts with the payload. */
		if (skb->data_len && skb->len - skb->data_len < sizeof(*id))
			*id = SEQ_UNREADABLE;
	} else {
		skb = (void *)cpu_state()->last_skb;
		*id = driver_seq(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, transport_header));
	}
	return address_of(skb);
}

/*
 * Late replies to earlier requests are counted, so that the receive call which takes the wanted one is
 * known. The queue's length corrects the count after a missed hook, which would put it off for good.
 */
static __always_inline bool udp_arrived(struct turn *turn, struct sock *sk)
{
	__u64 id, skb = announced_datagram(sk, &id);
	__u32 ready = sk->sk_receive_queue.qlen == 1 ? turn->taken + 1 : turn->ready + 1;
	bool wanted;

	/* One message is under way at a time, so an unreadable number is the expected one; the server's
	 * is the one that it then sends back (udp_queued). */
	if (id == SEQ_UNREADABLE && turn->now.role == ROLE_CLIENT)
		id = turn->now.send_id;
	wanted =
		turn->now.role != ROLE_CLIENT || !config.driver_seq_mask || id == turn->now.send_id;
	/* What was received and answered meanwhile: see udp_taken() in syscall.bpf.c. */
	if (turn->now.phase == PHASE_SEND && !after(ready, turn->taken))
		wanted = false;
	/* In this order: a reader on another CPU looks at both. */
	if (wanted)
		WRITE_ONCE(turn->wanted, ready);
	WRITE_ONCE(turn->ready, ready);
	if (!wanted)
		return false;
	turn_begin_receive(turn);
	turn->now.recv_id = id;
	turn_take_arrival(turn, skb);
	if (turn->taken == turn->wanted) { /* the faster reader */
		turn_read(turn);
		hit(turn, HOOK_recv_exit, turn->taken_at);
	}
	return true;
}

static __always_inline int announced(struct sock *sk)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(sk);

	if (!turn)
		return 0;
	if (turn->now.proto == IPPROTO_UDP && !udp_arrived(turn, sk))
		return 0;
	hit(turn, HOOK_data_ready, now);
	cpu_state()->ready_sk = (__u64)sk;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(data_ready, struct sock *sk)
{
	return announced(sk);
}

SEC("fentry/sock_def_readable")
int BPF_PROG(data_ready_fentry, struct sock *sk)
{
	return announced(sk);
}

/* TCP owns the packets of its receive queue, so skb->sk is the reader's socket. */
SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(copy, struct sk_buff *skb, int len)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(skb->sk);

	if (!turn || turn->now.phase != PHASE_RECEIVE)
		return 0;
	turn_read(turn);
	hit(turn, HOOK_copy, now);
	return 0;
}
