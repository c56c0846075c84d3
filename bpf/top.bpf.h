/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The book of `top`: each turn that is over is added to what is kept of its socket, instead of being told as a record.
 */
#ifndef LAYOVER_TOP_BPF_H
#define LAYOVER_TOP_BPF_H

#include "abi/top.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct top_head);
} top_heads SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct top_hist);
} top_hists SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TOP_ROLES *TOP_ROWS);
	__type(key, __u32);
	__type(value, struct top_part_hist);
} top_parts SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__type(value, struct top_cpu);
} top_cpus SEC(".maps") __weak;

/* Indexes of heads that nobody has. Only the user side puts some in, after it has read what they held last. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} top_free SEC(".maps") __weak;

/* Indexes of heads whose socket is closed, for the user side. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, __u32);
} top_done SEC(".maps") __weak;

/* The socket's head; NULL when it has none, or none any more. */
static __always_inline struct top_head *top_head_of(struct turn *turn)
{
	__u32 index = turn->now.entry - 1;
	struct top_head *head;

	if (!turn->now.entry)
		return NULL;
	head = bpf_map_lookup_elem(&top_heads, &index);
	if (head && head->who.socket == turn->now.socket)
		return head;
	turn->now.entry = 0; /* it was idle, and another one needed the place */
	return NULL;
}

/* Tells the user side that nothing more comes; whoever is first does. */
static __always_inline void top_retire(struct turn *turn)
{
	struct top_head *head = top_head_of(turn);
	__u32 index = turn->now.entry - 1;

	if (head && __sync_lock_test_and_set(&head->state, TOP_CLOSED) == TOP_OPEN)
		bpf_map_push_elem(&top_done, &index, 0);
}

static __always_inline void top_seems_over(struct turn *turn);

/* It is not one of those without a place any more. */
static __always_inline void top_has_no_need(struct turn *turn)
{
	if (__sync_lock_test_and_set(&turn->introduced, 0))
		__sync_fetch_and_add(&counters.no_place, -1);
}

/* Gives the socket a head. Called where the current task is the one that uses the socket, at every send. */
static __always_inline void top_introduce(struct turn *turn, const struct sock *sk)
{
	struct top_head *head;
	__u32 index;

	if (turn->closed || top_head_of(turn))
		return;
	if (bpf_map_pop_elem(&top_free, &index)) {
		if (turn->introduced)
			return;
		__sync_fetch_and_add(&counters.no_place, 1);
		turn->introduced = 1;
		if (__sync_fetch_and_add(&turn->closed, 0)) /* by another CPU, meanwhile */
			top_has_no_need(turn);
		return;
	}
	head = bpf_map_lookup_elem(&top_heads, &index);
	if (!head)
		return;
	top_has_no_need(turn);        /* it has a place after all */
	head->turns = head->complete; /* the former socket's last one is not going on */
	head->slow_ns = config.slow_ns;
	head->wanted = 0;
	head->last_ns = bpf_ktime_get_ns();
	head->state = TOP_OPEN;
	tell_who(turn, sk, &head->who);
	turn->now.entry = index + 1;
	/* It was closed meanwhile, by another CPU, which found no head. */
	if (__sync_fetch_and_add(&turn->closed, 0))
		top_retire(turn);
	else if (turn->now.role == ROLE_SERVER)
		top_seems_over(turn); /* its first turn */
}

struct top_walk {
	__u64 now;
	__u64 part[TOP_PARTS];
	bool gap; /* the next hook ends the gap, whichever it is */
};

static __always_inline void top_step(struct top_walk *w, enum top_part part, __u64 t, __u64 limit)
{
	if (t < w->now || t > limit)
		return; /* it did not fire, or belongs to another message */
	w->part[w->gap ? TOP_GAP : part] += t - w->now;
	w->gap = false;
	w->now = t;
}

/* The rules are those of model/path.c: what lies after a hook of the last byte is not on the path. */
static __always_inline void top_walk_out(struct top_walk *w, const struct turn_lines *n, __u64 end)
{
	const __u64 *t = n->send_t;
	__u64 queued = t[HOOK_dev_queue] ? t[HOOK_dev_queue] : end;
	__u64 came = n->softirq_t[HOOK_stack_in - HOOK_irq];
	bool held = t[HOOK_send_exit] && t[HOOK_send_exit] <= queued;

	top_step(w, TOP_SYSCALL, t[HOOK_send_enter], queued);
	top_step(w, TOP_SYSCALL, t[HOOK_send_tcp], queued);
	top_step(w, TOP_SEND, t[HOOK_send_exit], queued);
	if (held)
		top_step(w, TOP_HELD, t[HOOK_dev_queue], end);
	else
		top_step(w, TOP_SEND, t[HOOK_dev_queue], end);
	top_step(w, TOP_QDISC, t[HOOK_dev_xmit], end);
	if (n->role == ROLE_CLIENT && came && came < t[HOOK_re_xmit])
		return; /* sent again after the first copy had been answered */
	top_step(w, TOP_RETRANS, t[HOOK_re_queue], end);
	top_step(w, TOP_QDISC, t[HOOK_re_xmit], end);
}

static __always_inline void top_walk_in(struct top_walk *w, const struct turn_lines *n, __u64 end)
{
	const __u64 *t = n->softirq_t, *r = n->reader_t;

	top_step(w, TOP_GAP, t[0], end);
	top_step(w, TOP_SOFTIRQ, t[HOOK_softirq - HOOK_irq], end);
	top_step(w, TOP_DRIVER, t[HOOK_stack_in - HOOK_irq], end);
	top_step(w, TOP_STACK, t[HOOK_sock_in - HOOK_irq], end);
	top_step(w, TOP_SOCKET, t[HOOK_data_ready - HOOK_irq], end);
	top_step(w, TOP_NOTIFY, r[0], end);
	top_step(w, TOP_WAKEUP, r[HOOK_running - HOOK_wakeup], end);
	top_step(w, TOP_READER, r[HOOK_copy - HOOK_wakeup], end);
	top_step(w, TOP_RECEIVE, r[HOOK_recv_exit - HOOK_wakeup], end);
}

static __always_inline __u64 top_first_sent(const struct turn_lines *n)
{
	if (n->send_t[HOOK_send_enter])
		return n->send_t[HOOK_send_enter];
	return n->send_t[HOOK_send_tcp] ? n->send_t[HOOK_send_tcp] : n->send_t[HOOK_dev_queue];
}

static __always_inline __u64 top_arrived(const struct turn_lines *n)
{
	for (int i = 0; i < SOFTIRQ_HOOKS; i++)
		if (n->softirq_t[i])
			return n->softirq_t[i];
	return n->reader_t[HOOK_recv_exit - HOOK_wakeup];
}

/* When the turn began and ended; false: it is not a whole one. */
static __always_inline bool top_span(const struct turn_lines *n, __u64 *begin, __u64 *end)
{
	__u64 received = n->reader_t[HOOK_recv_exit - HOOK_wakeup];

	*begin = *end = 0;
	if (!received)
		return false;
	if (n->role == ROLE_CLIENT) {
		*begin = top_first_sent(n);
		*end = received;
	} else {
		*begin = top_arrived(n);
		*end = n->send_t[HOOK_re_xmit]    ? n->send_t[HOOK_re_xmit]
		       : n->send_t[HOOK_dev_xmit] ? n->send_t[HOOK_dev_xmit]
						  : n->send_t[HOOK_dev_queue];
	}
	return *begin && *end > *begin;
}

/*
 * The turn seems to be over: a client's has been read, a server's sent. The call has let go of the socket's lock by now, so
 * another CPU may be ending the turn (the next request came, or a reset): whoever does has set `ending` before it adds to
 * `turns`, and after that number was read here the turn is counted once, whichever of the two is first.
 */
static __always_inline void top_seems_over(struct turn *turn)
{
	enum phase last = turn->now.role == ROLE_CLIENT ? PHASE_RECEIVE : PHASE_SEND;
	struct top_head *head = top_head_of(turn);
	__u64 begin, end, turns;

	if (!head)
		return;
	turns = __sync_fetch_and_add(&head->turns, 0);
	if (__sync_fetch_and_add(&turn->ending, 0) || turn->now.phase != last ||
	    !top_span(&turn->now, &begin, &end))
		return;
	head->open_ns = end - begin;
	head->last_ns = end;
	__sync_val_compare_and_swap(&head->complete, turns, turns + 1);
}

/* The counterpart of `ending`; after `phase` was set, so that top_seems_over() takes neither turn for the other. */
static __always_inline void top_turn_begins(struct turn *turn)
{
	if (keeps_book)
		__sync_lock_test_and_set(&turn->ending, 0);
}

/* Softirqs come in between: hence atomic. */
__weak __noinline int top_count_part(__u32 row, __u64 ns)
{
	struct top_part_hist *hist = bpf_map_lookup_elem(&top_parts, &row);
	__u32 bin = top_bin(ns, TOP_PART_BINS);

	if (!hist || bin >= TOP_PART_BINS)
		return 0;
	__sync_fetch_and_add(&hist->count, 1);
	__sync_fetch_and_add(&hist->sum_ns, ns);
	__sync_fetch_and_add(&hist->bins[bin], 1);
	return 0;
}

static __always_inline void top_count_cpus(const struct turn_lines *n)
{
	__u32 reader = n->reader_cpu[HOOK_recv_exit - HOOK_wakeup] & (CPUS - 1);
	__u32 softirq = n->softirq_cpu[CPU_OF_SOFTIRQ] & (CPUS - 1);
	struct top_cpu *cpu = bpf_map_lookup_elem(&top_cpus, &reader);

	if (cpu) {
		__sync_fetch_and_add(&cpu->turns, 1);
		if (n->reader_t[0])
			__sync_fetch_and_add(&cpu->woken, 1);
		if (n->reader_t[0] && n->reader_cpu[0] != (__u16)reader)
			__sync_fetch_and_add(&cpu->woken_by_others, 1);
	}
	cpu = bpf_map_lookup_elem(&top_cpus, &softirq);
	if (cpu && n->softirq_t[HOOK_stack_in - HOOK_irq])
		__sync_fetch_and_add(&cpu->arrivals, 1);
}

static __always_inline void top_keep(struct top_head *head, const struct turn_lines *n, __u64 took)
{
	head->sum_ns += took;
	head->turns++;
	head->complete = head->turns;
	head->cpu_softirq = n->softirq_cpu[CPU_OF_SOFTIRQ];
	head->cpu_waker = n->reader_t[0] ? n->reader_cpu[0] : 0xffff;
	head->cpu_reader = n->reader_cpu[HOOK_recv_exit - HOOK_wakeup];
	head->cpu_send = n->send_cpu[HOOK_dev_queue];
}

/*
 * Adds a turn that is over. Returns whether its record is wanted as well. The socket's lock is held wherever a turn
 * ends, so that a flow's own counters need no atomics. A function of its own, because the verifier then looks at it once.
 */
__weak __noinline int top_turn_is_over(struct turn *turn)
{
	struct top_walk w = {};
	struct top_head *head;
	struct top_hist *hist;
	__u64 begin, end, took;
	__u32 index, bin, row;

	if (!turn || turn->closed > 1)
		return 0;
	__sync_lock_test_and_set(&turn->ending, 1);
	head = top_head_of(turn);
	if (!top_span(&turn->now, &begin, &end)) {
		if (head && turn->now.phase != PHASE_NONE)
			head->one_way++;
		return 0;
	}
	took = end - begin;
	w.now = begin;
	if (turn->now.role == ROLE_CLIENT) {
		top_walk_out(&w, &turn->now, end);
		w.gap = true;
		top_walk_in(&w, &turn->now, end);
	} else {
		__u64 left = top_first_sent(&turn->now);

		top_walk_in(&w, &turn->now, left ? left : end);
		w.gap = true;
		top_walk_out(&w, &turn->now, end);
	}
	row = turn->now.role == ROLE_CLIENT ? 0 : TOP_ROWS;
	top_count_part(row + TOP_WHOLE, took);
	for (int i = 0; i < TOP_PARTS; i++) {
		if (!w.part[i])
			continue;
		top_count_part(row + i, w.part[i]);
		if (head)
			head->part_ns[i] += w.part[i];
	}
	top_count_cpus(&turn->now);
	if (!head) {
		__sync_fetch_and_add(&counters.unplaced, 1);
		return 0;
	}
	index = turn->now.entry - 1;
	hist = bpf_map_lookup_elem(&top_hists, &index);
	bin = top_bin(took >> TOP_SHIFT, TOP_BINS);
	if (hist && bin < TOP_BINS)
		hist->bins[bin]++;
	top_keep(head, &turn->now, took);
	return head->wanted || (head->slow_ns && took >= head->slow_ns);
}

#endif
