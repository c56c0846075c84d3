// SPDX-License-Identifier: GPL-2.0-only
/* The device layer on the way out: from TCP/IP to the qdisc, from the qdisc to the driver. */
#include "turn.bpf.h"

/*
 * A first transmission reaches the device before TCP moves snd_nxt past it; a retransmission lies behind
 * snd_nxt. (The sk_buff's address tells nothing: both leave from the same one. And a packet passes here
 * once per stacked device, so "seen before" tells nothing either.)
 */
static __always_inline void tcp_known_bytes(struct turn *turn, const struct sock *sk, __u32 end,
					    const struct sk_buff *skb, __u64 now)
{
	if (after(end, BPF_CORE_READ((const struct tcp_sock *)sk, snd_nxt)))
		return; /* the same packet again, one device further down */
	turn->now.flags |= RECORD_RETRANSMITTED;
	turn->now.unsaid = 1;
	if (end != (__u32)turn->now.send_id)
		return;
	turn->resent = 1;
	turn->tx_skb = (__u64)skb;
	hit(turn, HOOK_re_queue, now);
}

static __always_inline void tcp_queued(struct turn *turn, const struct sock *sk,
				       const struct sk_buff *skb, __u64 now)
{
	struct turn_lines *n = &turn->now;
	__u32 end;

	if (!segment_end(skb, &end))
		return;
	if (turn->send_known && !after(end, (__u32)n->send_id)) {
		tcp_known_bytes(turn, sk, end, skb, now);
		return;
	}
	turn_begin_send(turn);
	turn->send_known = 1;
	turn->resent = 0;
	turn->now.unsaid = 1;
	turn->tx_skb = (__u64)skb;
	n->send_id = end;
	hit(turn, HOOK_dev_queue, now);
}

/* UDP: every fragment passes here, the last one counts. The first one holds the driver's number. */
static __always_inline void udp_queued(struct turn *turn, const struct sk_buff *skb, __u64 now)
{
	struct cpu_state *cpu = cpu_state();

	if (turn_begin_send(turn)) {
		if (cpu->send_pid && cpu->send_pid == (__u32)bpf_get_current_pid_tgid())
			hit(turn, HOOK_send_enter, cpu->send_enter);
	}
	if (!turn->now.send_t[HOOK_dev_queue])
		turn->now.send_id = driver_seq(skb->head + skb->transport_header);
	if (turn->now.recv_id == SEQ_UNREADABLE)
		turn->now.recv_id = turn->now.send_id;
	hit(turn, HOOK_dev_queue, now);
	turn->now.unsaid = 1;
	turn->tx_skb = (__u64)skb;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(dev_queue, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	struct sock *sk = skb->sk;
	struct turn *turn = turn_of(sk);

	if (!turn)
		return 0;
	if (turn->now.proto == IPPROTO_TCP)
		tcp_queued(turn, sk, skb, now);
	else
		udp_queued(turn, skb, now);
	return 0;
}

/* A packet split in software (GSO) below the qdisc comes out as new ones: the last byte tells. */
static __always_inline bool carries_last_byte(const struct turn *turn, const struct sk_buff *skb)
{
	__u32 end;

	if (turn->tx_skb == (__u64)skb)
		return true;
	return turn->now.proto == IPPROTO_TCP && segment_end(skb, &end) &&
	       end == (__u32)turn->now.send_id;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(dev_xmit, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(skb->sk);

	if (!turn || !carries_last_byte(turn, skb))
		return 0;
	if (turn->resent)
		hit(turn, HOOK_re_xmit, now);
	else
		hit(turn, HOOK_dev_xmit, now);
	turn->now.unsaid = 1;
	return 0;
}
