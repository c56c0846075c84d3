// SPDX-License-Identifier: GPL-2.0-only
/*
 * The beginning and the end of a socket: who connected is the client; when it is closed its last turn is added, and its
 * head goes back to the user side. Loaded for `top` only.
 */
#include "turn.bpf.h"

/* Of a connection that began before, only the ports can tell (watched_role()). */
static __always_inline void connected(struct sock *sk, enum role role)
{
	struct turn *turn = bpf_sk_storage_get(&turns, sk, NULL, 0);

	if (turn && turn->closed) /* it was another connection's before */
		bpf_sk_storage_delete(&turns, sk);
	turn = turn_of(sk);
	if (turn && !config.watch_port && turn->now.phase == PHASE_NONE)
		take_role(turn, sk, role);
}

/*
 * The turn stays: a hook on another CPU may be at work on it, or be about to look for it, and a new one would be given a
 * head that nobody gives back.
 */
static __always_inline void closed(struct sock *sk)
{
	struct turn *turn = bpf_sk_storage_get(&turns, sk, NULL, 0);

	/* From here on no head is given to it any more; at 2 nothing is added either. */
	if (!turn || __sync_fetch_and_add(&turn->closed, 1))
		return;
	if (turn->now.phase == (turn->now.role == ROLE_CLIENT ? PHASE_RECEIVE : PHASE_SEND) &&
	    turn->now.reader_t[HOOK_recv_exit - HOOK_wakeup])
		top_turn_is_over(turn);
	__sync_fetch_and_add(&turn->closed, 1);
	if (turn->now.entry)
		top_retire(turn);
	else
		top_has_no_need(turn);
}

static __always_inline int changed(struct sock *sk, int before, int state)
{
	if (state == TCP_ESTABLISHED)
		connected(sk, before == TCP_SYN_SENT ? ROLE_CLIENT : ROLE_SERVER);
	else if (state == TCP_CLOSE)
		closed(sk);
	return 0;
}

/*
 * A connection may be closed long after its program closed it, but TCP_CLOSE is always its last state. Twice, because the
 * kernel skips a program that is running on that CPU already (a softirq came in between), and an end that is missed would
 * leave its head behind: while one of them is interrupted, the other one is not. A second time there is nothing to do.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(top_state, struct sock *sk, int before, int state)
{
	return changed(sk, before, state);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(top_state_too, struct sock *sk, int before, int state)
{
	return changed(sk, before, state);
}
