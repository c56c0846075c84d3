// SPDX-License-Identifier: GPL-2.0-only
/* The system call layer: where the application enters and leaves. */
#include "turn.bpf.h"

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

SEC("tp_btf/sock_send_length")
int BPF_PROG(send_exit, struct sock *sk, int ret, int flags)
{
	struct turn *turn = turn_of(sk);

	if (!turn || ret <= 0)
		return 0;
	hit(turn, HOOK_send_exit, bpf_ktime_get_ns());
	turn->record.send_bytes += ret;
	turn->record.writes++;
	turn->written = turn->record.proto == IPPROTO_UDP;
	return 0;
}

/* The reader's own wake-up, if it slept for this socket's data. */
static __always_inline void take_wake(struct turn *turn, const struct sock *sk)
{
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	struct wake *wake = wake_slot(pid);
	struct turn_record *r = &turn->record;

	if (wake->pid != pid || wake->sk != (__u64)sk || !wake->running)
		return;
	r->t[HOOK_wakeup] = wake->waking;
	r->cpu[HOOK_wakeup] = wake->waking_cpu;
	r->t[HOOK_running] = wake->running;
	r->cpu[HOOK_running] = wake->running_cpu;
	wake->sk = 0;
}

/* UDP: is the datagram that was just received the one that the turn waits for? */
static __always_inline bool is_wanted(struct turn *turn, int ret)
{
	if (ret < 0) {
		turn->taken = turn->ready; /* nothing queued: the counts agree again */
		return false;
	}
	return ++turn->taken == turn->wanted;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(recv_exit, struct sock *sk, int ret, int flags)
{
	__u64 now = bpf_ktime_get_ns();
	struct turn *turn = turn_of(sk);

	if (!turn || (flags & MSG_PEEK))
		return 0;
	if (turn->record.proto == IPPROTO_UDP ? !is_wanted(turn, ret) : ret <= 0)
		return 0;
	if (turn->phase != PHASE_RECEIVE)
		return 0;
	take_wake(turn, sk);
	hit(turn, HOOK_recv_exit, now);
	turn->record.recv_bytes += ret;
	turn->record.reads++;
	return 0;
}
