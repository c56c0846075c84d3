// SPDX-License-Identifier: GPL-2.0-only
/*
 * Evidence of what holds up watched TCP flows: bytes that a write left behind and what freed them, ACKs that a
 * timer had to send, segments sent again. Loaded for `watch` and `diagnose` only.
 */
#include "turn.bpf.h"

#include "abi/stall.h"

struct msghdr; /* only passed by */

#define ICSK_ACK_TIMER    2 /* include/net/inet_connection_sock.h: the delayed-ACK timer is armed */
#define TCP_NAGLE_OFF     1
#define TCP_NAGLE_CORK    2
#define TCP_CA_RECOVERY   3 /* include/uapi/linux/tcp.h, an enum */
#define TCP_CA_LOSS       4
#define TSQ_THROTTLED_BIT 1 /* include/linux/tcp.h: TSQ_THROTTLED is bit 0 */
#define SAME_OCCASION_NS                                                                           \
	2000000ULL /* from a cause to its effect within one softirq, interrupted perhaps */
#define HOGGED_FROM_NS 500000ULL /* a reader that waits less for its CPU is not told of */

/* What is going on in one socket. */
struct stall {
	__u64 held_at;  /* a write returned and left bytes behind; 0: none are */
	__u64 freed_at; /* since then an ACK of older bytes arrived */
	__u64 zero_at;  /* since then the receiver's window is closed; 0: it is open */
	__u64 zero_ns;  /* how long it was closed before that, in this hold */
	__u64 data_at;  /* data arrived that no packet of ours has acknowledged yet; 0: none has */
	__u32 held_from, held_to; /* sequence numbers */
	__u32 in_flight;
	__u8 reason; /* enum hold_reason */
	__u8 pad[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stall);
} stalls SEC(".maps");

/* The timer knows its socket as an address only: when it last fired for it with an ACK to send. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} fired SEC(".maps");

static __always_inline struct stall *stall_of(struct sock *sk)
{
	return bpf_sk_storage_get(&stalls, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void tell(const struct turn *turn, const struct stall_record *what)
{
	struct stall_record record = *what;

	record.socket = turn->now.socket;
	record.entry = turn->now.entry;
	if (bpf_ringbuf_output(&records, &record, sizeof(record), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counters.dropped, 1);
}

/* Called where the current task is the one that uses the socket. */
static __always_inline void introduce(struct turn *turn, const struct sock *sk)
{
	struct flow_record f;

	if (keeps_book) {
		top_introduce(turn, sk);
		return;
	}
	if (turn->introduced)
		return;
	tell_who(turn, sk, &f);
	if (!bpf_ringbuf_output(&records, &f, sizeof(f), BPF_RB_NO_WAKEUP))
		turn->introduced = 1; /* else: again next time */
}

/* Conditions as tcp_write_xmit() and tcp_nagle_check() have them; same in 6.1 to 7.2. */
static __always_inline enum hold_reason reason_of(const struct sock *sk, __u32 unsent)
{
	const struct tcp_sock *tp = (const void *)sk;
	__u32 window_end = BPF_CORE_READ(tp, snd_una) + BPF_CORE_READ(tp, snd_wnd);
	__u32 in_flight = BPF_CORE_READ(tp, packets_out);
	__u8 nagle = BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle);

	if (after(BPF_CORE_READ(tp, write_seq), window_end))
		return BPF_CORE_READ(tp, snd_wnd) ? HOLD_WINDOW : HOLD_ZERO_WINDOW;
	if (in_flight >= BPF_CORE_READ(tp, snd_cwnd))
		return HOLD_CWND;
	if (nagle & TCP_NAGLE_CORK)
		return HOLD_CORK;
	if (!(nagle & TCP_NAGLE_OFF) && in_flight && unsent < BPF_CORE_READ(tp, mss_cache))
		return HOLD_NAGLE;
	return sk->sk_tsq_flags & TSQ_THROTTLED_BIT ? HOLD_TSQ : HOLD_OTHER;
}

static __always_inline int write_returned(struct sock *sk, int ret)
{
	struct turn *turn = turn_of(sk);
	const struct tcp_sock *tp = (const void *)sk;
	struct stall *stall;
	__u32 next, end;

	if (!turn || ret <= 0)
		return 0;
	introduce(turn, sk);
	next = BPF_CORE_READ(tp, snd_nxt);
	end = BPF_CORE_READ(tp, write_seq);
	stall = stall_of(sk);
	if (!stall)
		return 0;
	if (end == next) {
		stall->held_at = 0;
		return 0;
	}
	/* More behind what is held already. */
	if (stall->held_at && (stall->held_from == next ||
			       (HOLDS_TO_THE_END(stall->reason) && after(stall->held_to, next)))) {
		stall->held_to = end;
		return 0;
	}
	stall->held_at = bpf_ktime_get_ns();
	stall->freed_at = stall->zero_at = stall->zero_ns = 0;
	stall->held_from = next;
	stall->held_to = end;
	stall->in_flight = BPF_CORE_READ(tp, packets_out);
	stall->reason = reason_of(sk, end - next);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(stall_sent, struct sock *sk, int ret, int flags)
{
	return write_returned(sk, ret);
}

SEC("fexit/inet_sendmsg")
int BPF_PROG(stall_sent_fexit, struct socket *sock, struct msghdr *msg, unsigned long size, int ret)
{
	return write_returned(sock->sk, ret);
}

SEC("fexit/inet6_sendmsg")
int BPF_PROG(stall_sent6_fexit, struct socket *sock, struct msghdr *msg, unsigned long size,
	     int ret)
{
	return write_returned(sock->sk, ret);
}

static __always_inline void note_window(struct stall *stall, bool open, __u64 now)
{
	if (!open && !stall->zero_at)
		stall->zero_at = now;
	if (!open || !stall->zero_at)
		return;
	stall->zero_ns += now - stall->zero_at;
	stall->zero_at = 0;
}

/* A window that was too small may have been closed in the meantime. */
#define CLOSED_PARTS 10 /* for at least one of so many parts */
static __always_inline enum hold_reason reason_in_the_end(const struct stall *stall, __u64 now)
{
	__u64 closed = stall->zero_ns + (stall->zero_at ? now - stall->zero_at : 0);

	return stall->reason == HOLD_WINDOW && CLOSED_PARTS * closed >= now - stall->held_at
		       ? HOLD_ZERO_WINDOW
		       : stall->reason;
}

/* A segment has found its socket, which has not looked into it yet. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(stall_in, struct sock *sk, struct sk_buff *skb)
{
	const struct tcp_skb_cb *cb = (const void *)skb->cb;
	bool data = cb->end_seq != cb->seq;
	struct stall *stall;
	struct tcp_wire tcp;
	__u64 now;

	if (!turn_of(sk))
		return 0;
	stall = stall_of(sk);
	if (!stall)
		return 0;
	if (data && !stall->data_at)
		stall->data_at = bpf_ktime_get_ns();
	if (!stall->held_at ||
	    bpf_probe_read_kernel(&tcp, sizeof(tcp), skb->head + skb->transport_header))
		return 0;
	now = bpf_ktime_get_ns();
	note_window(stall, tcp.window, now);
	if (after(bpf_ntohl(tcp.ack), BPF_CORE_READ((const struct tcp_sock *)sk, snd_una)))
		stall->freed_at = now;
	return 0;
}

/* It may expire long after its work was done: only with an ACK to send does it count. */
SEC("tp_btf/timer_expire_entry")
int BPF_PROG(stall_timer, struct timer_list *timer)
{
	const struct inet_connection_sock *icsk;
	__u64 now = bpf_ktime_get_ns(), sk;

	if (!config.delack_timer || (__u64)timer->function != config.delack_timer)
		return 0;
	sk = address_of(timer) -
	     bpf_core_field_offset(struct inet_connection_sock, icsk_delack_timer);
	icsk = (const void *)sk;
	if (BPF_CORE_READ(icsk, icsk_ack.pending) & ICSK_ACK_TIMER)
		bpf_map_update_elem(&fired, &sk, &now, BPF_ANY);
	return 0;
}

/* The socket sends, and with that acknowledges what it has got. */
static __always_inline void acknowledges(const struct turn *turn, struct stall *stall,
					 struct sock *sk, bool data, __u64 now)
{
	__u64 key = address_of(sk), *at;

	if (!stall->data_at)
		return;
	at = bpf_map_lookup_elem(&fired, &key);
	if (at && !data && now - *at < SAME_OCCASION_NS)
		tell(turn, &(struct stall_record){.begin = stall->data_at,
						  .cause = *at,
						  .end = now,
						  .kind = STALL_DELACK});
	if (at)
		bpf_map_delete_elem(&fired, &key);
	stall->data_at = 0;
}

static __always_inline enum resend_reason why_again(const struct sock *sk)
{
	__u8 state = BPF_CORE_READ_BITFIELD_PROBED((const struct inet_connection_sock *)sk,
						   icsk_ca_state);

	if (state == TCP_CA_LOSS)
		return RESEND_RTO;
	return state == TCP_CA_RECOVERY ? RESEND_FAST : RESEND_TLP;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(stall_out, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	struct turn *turn = turn_of(sk);
	struct stall *stall;
	__u64 now;
	__u32 end = 0;
	bool data;

	if (!turn)
		return 0;
	stall = stall_of(sk);
	if (!stall)
		return 0;
	now = bpf_ktime_get_ns();
	data = segment_end(skb, &end);
	acknowledges(turn, stall, sk, data, now);
	if (!data)
		return 0;
	if (!after(end, BPF_CORE_READ((const struct tcp_sock *)sk, snd_nxt))) {
		tell(turn, &(struct stall_record){
				   .end = now, .kind = STALL_RESENT, .reason = why_again(sk)});
		return 0;
	}
	if (!stall->held_at || !after(end, stall->held_from) ||
	    (HOLDS_TO_THE_END(stall->reason) && after(stall->held_to, end)))
		return 0;
	tell(turn, &(struct stall_record){
			   .begin = stall->held_at,
			   .cause = stall->freed_at && now - stall->freed_at < SAME_OCCASION_NS
					    ? stall->freed_at
					    : 0,
			   .end = now,
			   .bytes = stall->held_to - stall->held_from,
			   .in_flight = stall->in_flight,
			   .kind = STALL_HELD,
			   .reason = reason_in_the_end(stall, now),
		   });
	stall->held_at = 0;
	return 0;
}

/* Who ran longest on this CPU of late: the task that ran last before a reader may be a short one. */
struct runner {
	__u64 since;      /* when the task that runs now came */
	__u64 ran, until; /* how long the longest of late ran, and when it left */
	__u32 pid;        /* its thread group */
	char comm[FLOW_COMM];
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runner);
} runners SEC(".maps");

/* prev leaves. A run is of late for as long as it was. */
static __always_inline void note_run(struct runner *longest, const struct task_struct *prev,
				     __u64 now)
{
	__u64 ran = longest->since ? now - longest->since : 0; /* 0: the first one seen */

	longest->since = now;
	if (!prev->pid || (ran < longest->ran && now - longest->until < longest->ran))
		return;
	longest->ran = ran;
	longest->until = now;
	longest->pid = prev->tgid;
	bpf_probe_read_kernel_str(longest->comm, sizeof(longest->comm), prev->comm);
}

/* A reader gets its CPU, long after it was woken: who had it? (The idle task's pid is 0.) */
SEC("tp_btf/sched_switch")
int BPF_PROG(stall_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 pid = next->pid, zero = 0;
	const struct reader *reader = reader_slot(pid);
	struct runner *longest = bpf_map_lookup_elem(&runners, &zero);
	struct hog_record hog = {};

	if (!longest)
		return 0;
	hog.end = bpf_ktime_get_ns();
	note_run(longest, prev, hog.end);
	if (!pid || reader->pid != pid || reader->waking_sk == WOKEN_BY_IRQ ||
	    reader->waking < reader->off || hog.end - reader->waking < HOGGED_FROM_NS ||
	    longest->until < reader->waking)
		return 0;
	hog.begin = reader->waking;
	hog.reader = next->tgid;
	hog.pid = longest->pid;
	__builtin_memcpy(hog.comm, longest->comm, sizeof(hog.comm));
	if (bpf_ringbuf_output(&records, &hog, sizeof(hog), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counters.dropped, 1);
	return 0;
}
