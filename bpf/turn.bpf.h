/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state machine that all rooms call. One `struct turn` lives in each traced socket's storage; a room
 * finds it with turn_of() and reports what happened. A turn alternates between sending and receiving:
 *
 *   client: [send … receive …] → record when the next send starts
 *   server: [receive … send …] → record when the send call returns, and again when the next receive
 *           starts if the turn went on after that (a further write, a retransmission)
 *
 * The sending half is touched by the application's CPU, the receiving half by the softirq's, so a softirq
 * neither clears nor emits the other half if it can help it: that would cost cache misses in the trip.
 */
#ifndef LAYOVER_TURN_BPF_H
#define LAYOVER_TURN_BPF_H

#include "kernel.h"
#include "abi/config.h"
#include "abi/record.h"
#include "abi/state.h"

enum phase { PHASE_NONE, PHASE_SEND, PHASE_RECEIVE };

struct turn {
	struct turn_record record;
	__u64 tx_skb; /* the packet that carried the last byte to the device layer */
	__u64 taken_at;             /* UDP: when the last datagram was received */
	__u32 ready, taken, wanted; /* UDP: datagrams queued, received, index of the one that counts */
	__u8 phase;                 /* enum phase */
	__u8 written;               /* UDP: the send call returned: the next packet is a new message */
	__u8 resent;                /* tx_skb is a retransmission */
	__u8 seen_ids;              /* SEEN_SEND, SEEN_RECV: the ids hold a number */
	__u8 unsaid;                /* the sending half has changed since the record was emitted */
};

enum { SEEN_SEND = 1, SEEN_RECV = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct turn);
} turns SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps") __weak;

/* One cache line each: neighbours belong to other CPUs. */
#define LINED __attribute__((aligned(64)))

struct config config SEC(".bss") __weak LINED;
struct counters counters SEC(".bss") __weak LINED;
struct cpu_state cpu_states[CPUS] SEC(".bss") __weak LINED;
struct arrival arrivals[SLOTS] SEC(".bss") __weak LINED;
struct reader readers[SLOTS] SEC(".bss") __weak LINED;

/* TCP sequence numbers wrap (RFC 9293, 3.4). */
static __always_inline bool after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

/* The driver's own sequence number behind a UDP header (abi/message.h); 0 in other traffic. */
static __always_inline __u64 driver_seq(const unsigned char *udp)
{
	__u64 seq = 0;

	if (config.driver_seq_mask)
		bpf_probe_read_kernel(&seq, sizeof(seq), udp + 8);
	return seq & config.driver_seq_mask;
}

static __always_inline __u16 this_cpu(void)
{
	return (__u16)bpf_get_smp_processor_id();
}

static __always_inline struct cpu_state *cpu_state(void)
{
	return &cpu_states[bpf_get_smp_processor_id() & (CPUS - 1)];
}

/*
 * A pointer as a number. The verifier forbids to compute with a kernel pointer but not to store one, and
 * what is read back from a map is a number. (Preempted in between, since 7.2, it may be another number:
 * then a slot does not match and a hook is missed, no more.)
 */
static __always_inline __u64 address_of(const void *pointer)
{
	volatile __u64 *scratch = &cpu_state()->pointer;

	*scratch = (__u64)pointer;
	return *scratch;
}

/* Addresses differ above bit 8 (the slab's object size), sequence numbers by any stride: mix them all. */
static __always_inline struct arrival *arrival_slot(__u64 key)
{
	return &arrivals[(key * 0x9e3779b97f4a7c15ULL >> 54) & (SLOTS - 1)];
}

/* Kernel addresses have their top bit set; this key has not. */
static __always_inline __u64 segment_key(__u16 destination, __u32 end)
{
	return (__u64)destination << 32 | end;
}

static __always_inline struct reader *reader_slot(__u32 pid)
{
	return &readers[pid & (SLOTS - 1)];
}

/* The slot, taken over from another thread if need be. */
static __always_inline struct reader *reader_claim(__u32 pid)
{
	struct reader *reader = reader_slot(pid);

	if (reader->pid != pid) {
		reader->off = reader->on = reader->waking = 0;
		reader->pid = pid;
	}
	return reader;
}

static __always_inline enum role role_of(const struct sock *sk)
{
	__u16 local = sk->__sk_common.skc_num;
	__u16 remote = bpf_ntohs(sk->__sk_common.skc_dport);

	if (!config.server_port || sk->sk_protocol != config.proto)
		return ROLE_NONE;
	/* An unconnected UDP socket has no remote port. */
	if (local == config.server_port && (remote == config.client_port || !remote))
		return ROLE_SERVER;
	if (local == config.client_port && (remote == config.server_port || !remote))
		return ROLE_CLIENT;
	return ROLE_NONE;
}

/* The turn of a traced socket, made when a socket of the traced flow is first seen; NULL otherwise. */
static __always_inline struct turn *turn_of(struct sock *sk)
{
	struct turn *turn;
	enum role role;

	if (!sk)
		return NULL;
	turn = bpf_sk_storage_get(&turns, sk, NULL, 0);
	if (turn)
		return turn;
	role = role_of(sk);
	if (role == ROLE_NONE)
		return NULL;
	turn = bpf_sk_storage_get(&turns, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!turn)
		return NULL;
	turn->record.role = role;
	turn->record.proto = config.proto;
	turn->record.flow = (__u32)config.client_port << 16 | config.server_port;
	return turn;
}

static __always_inline void hit(struct turn *turn, enum hook hook, __u64 now)
{
	turn->record.t[hook] = now;
	turn->record.cpu[hook] = this_cpu();
}

static __always_inline void turn_emit(struct turn *turn)
{
	/* No wake-up: the reader comes between trips, not during one. */
	if (bpf_ringbuf_output(&records, &turn->record, sizeof(turn->record), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counters.dropped, 1);
}

static __always_inline void clear_sending(struct turn_record *r)
{
	__builtin_memset(r->t, 0, HOOK_irq * sizeof(r->t[0]));
	r->send_bytes = 0;
	r->writes = 0;
	r->flags = 0;
}

static __always_inline void clear_receiving(struct turn_record *r)
{
	__builtin_memset(&r->t[HOOK_irq], 0, (HOOKS - HOOK_irq) * sizeof(r->t[0]));
	r->recv_bytes = 0;
	r->reads = 0;
}

/* The socket starts to send a message. Returns false when it is a further write of the same one. */
static __always_inline bool turn_begin_send(struct turn *turn)
{
	if (turn->phase == PHASE_SEND && !turn->written)
		return false;
	if (turn->record.role == ROLE_CLIENT) {
		if (turn->record.t[HOOK_recv_exit])
			turn_emit(turn);
		else if (turn->phase != PHASE_NONE)
			__sync_fetch_and_add(&counters.unfinished, 1);
		clear_receiving(&turn->record);
	}
	clear_sending(&turn->record);
	turn->phase = PHASE_SEND;
	turn->written = 0;
	return true;
}

/* The send call of a server returned: its turn is over, as far as can be told. */
static __always_inline void turn_end_send(struct turn *turn)
{
	if (turn->record.role != ROLE_SERVER || !turn->unsaid || !turn->record.t[HOOK_dev_xmit])
		return;
	turn_emit(turn);
	turn->unsaid = 0;
}

/* A message starts to arrive at the socket. Nothing happens for a further packet of the same one. */
static __always_inline void turn_begin_receive(struct turn *turn)
{
	if (turn->phase == PHASE_RECEIVE)
		return;
	if (turn->record.role == ROLE_SERVER) {
		if (turn->unsaid && turn->record.t[HOOK_dev_queue])
			turn_emit(turn);
		turn->unsaid = 0;
		clear_receiving(&turn->record);
	}
	turn->phase = PHASE_RECEIVE;
}

/* The hooks that the packet passed before its socket was known. */
static __always_inline void turn_take_arrival(struct turn *turn, __u64 key)
{
	struct arrival *a = arrival_slot(key);
	struct turn_record *r = &turn->record;
	bool mine = a->key == key;

	r->t[HOOK_irq] = mine ? a->irq : 0;
	r->cpu[HOOK_irq] = a->irq_cpu;
	r->t[HOOK_softirq] = mine ? a->softirq : 0;
	r->t[HOOK_stack_in] = mine ? a->stack_in : 0;
	r->cpu[HOOK_softirq] = r->cpu[HOOK_stack_in] = a->cpu;
}

#endif
