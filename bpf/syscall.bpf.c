// SPDX-License-Identifier: GPL-2.0-only
/* The system call layer: where the application enters and leaves. */
#include "turn.bpf.h"

struct msghdr; /* only passed by */

char LICENSE[] SEC("license") = "GPL";

/*
 * Every system call of the machine takes the slow path while this is attached (about 0.4 us per end of a
 * round trip), so it is used only where nothing else tells when a send starts.
 */
SEC("tp_btf/sys_enter")
int BPF_PROG(send_enter, struct pt_regs *regs, long id)
{
	struct cpu_state *cpu;
	bool is_send = false;

	for (int i = 0; i < SEND_CALLS; i++)
		is_send |= id == config.send_calls[i];
	if (!is_send)
		return 0;
	cpu = cpu_state();
	cpu->send_pid = (__u32)bpf_get_current_pid_tgid();
	cpu->send_enter = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int sent(struct sock *sk, int ret)
{
	struct turn *turn = turn_of(sk);

	if (!turn || ret <= 0)
		return 0;
	hit(turn, HOOK_send_exit, bpf_ktime_get_ns());
	turn->now.send_bytes += ret;
	turn->now.writes++;
	turn->written = turn->now.proto == IPPROTO_UDP;
	turn_end_send(turn);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(send_exit, struct sock *sk, int ret, int flags)
{
	return sent(sk, ret);
}

SEC("fexit/inet_sendmsg")
int BPF_PROG(send_exit_fexit, struct socket *sock, struct msghdr *msg, unsigned long size, int ret)
{
	return sent(sock->sk, ret);
}

SEC("fexit/inet6_sendmsg")
int BPF_PROG(send_exit6_fexit, struct socket *sock, struct msghdr *msg, unsigned long size, int ret)
{
	return sent(sock->sk, ret);
}

/* If the reader was off its CPU when the data was announced: how it came back. */
static __always_inline void take_wakeup(struct turn *turn, const struct sock *sk)
{
	struct reader *reader = reader_claim((__u32)bpf_get_current_pid_tgid());
	struct turn_lines *n = &turn->now;
	__u64 announced = n->softirq_t[HOOK_data_ready - HOOK_irq];
	bool woken = reader->waking_sk == (__u64)sk && reader->waking >= announced;

	if (!announced || reader->on < announced || reader->off > announced)
		return;
	/* It slept, but not for this: until it reads, the data waits for the program, not the program for its CPU. */
	if (config.wakeups && !woken && !reader->preempted)
		return;
	n->reader_t[HOOK_running - HOOK_wakeup] = reader->on;
	n->reader_cpu[HOOK_running - HOOK_wakeup] = reader->on_cpu;
	if (!woken)
		return;
	n->reader_t[0] = reader->waking;
	n->reader_cpu[0] = reader->waking_cpu;
}

/*
 * Counts a received datagram. True when it is the one that the turn waits for. It is taken for that, too, when it is not
 * announced yet: the CPU that queued it may stand still in between, and the reader have answered when it goes on.
 */
static __always_inline bool udp_taken(struct turn *turn, int ret, __u64 now)
{
	struct turn_lines *n = &turn->now;

	/* A call that does not wait: another CPU may be queueing just now, so this tells nothing. */
	if (ret < 0)
		return false;
	turn->taken_at = now;
	turn->taken++;
	if (n->phase == PHASE_RECEIVE)
		return turn->taken == turn->wanted;
	if (turn->taken != turn->wanted && !after(turn->taken, turn->ready))
		return false;
	turn_begin_receive(turn);
	n->recv_id = n->role == ROLE_CLIENT ? n->send_id : SEQ_UNREADABLE;
	return true;
}

static __always_inline int received(struct sock *sk, int ret, int flags)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(sk);

	if (!turn || (flags & (MSG_PEEK | MSG_ERRQUEUE)))
		return 0;
	if (turn->now.proto == IPPROTO_UDP ? !udp_taken(turn, ret, now) : ret <= 0)
		return 0;
	if (turn->now.proto == IPPROTO_TCP)
		turn_begin_receive(turn); /* its arrival was not seen: go on without it */
	turn_read(turn);
	take_wakeup(turn, sk);
	hit(turn, HOOK_recv_exit, now);
	turn->now.recv_bytes += ret;
	turn->now.reads++;
	if (keeps_book && turn->now.role == ROLE_CLIENT)
		top_seems_over(turn);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(recv_exit, struct sock *sk, int ret, int flags)
{
	return received(sk, ret, flags);
}

SEC("fexit/inet_recvmsg")
int BPF_PROG(recv_exit_fexit, struct socket *sock, struct msghdr *msg, unsigned long size,
	     int flags, int ret)
{
	return received(sock->sk, ret, flags);
}

SEC("fexit/inet6_recvmsg")
int BPF_PROG(recv_exit6_fexit, struct socket *sock, struct msghdr *msg, unsigned long size,
	     int flags, int ret)
{
	return received(sock->sk, ret, flags);
}
