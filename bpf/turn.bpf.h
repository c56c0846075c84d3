/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state machine that all rooms call. One `struct turn` lives in each traced socket's storage; a room
 * finds it with turn_of() and reports what happened. A turn alternates between sending and receiving:
 *
 *   client: [send … receive …] → over when it sends again
 *   server: [receive … send …] → over when the send call returns; told again when the next message comes
 *           if the turn went on after that (a further write, a retransmission)
 *
 * Records are emitted when a send call returns: by then the message is on its way, and on another CPU the
 * peer does not wait for this one any more.
 */
#ifndef LAYOVER_TURN_BPF_H
#define LAYOVER_TURN_BPF_H

#include "kernel.h"
#include "abi/config.h"
#include "abi/stall.h"
#include "abi/state.h"
#include "abi/turn.h"

enum phase { PHASE_NONE, PHASE_SEND, PHASE_RECEIVE };

struct turn {
	struct turn_lines now;
	__u64 tx_skb;               /* the packet that carried the last byte to the device layer */
	__u64 taken_at;             /* UDP: when the last datagram was received */
	__u32 ready, taken, wanted; /* UDP: datagrams queued, received, which one counts */
	__u8 written;               /* UDP: the send returned: the next packet is a new message */
	__u8 resent;                /* tx_skb is a retransmission */
	__u8 send_known;            /* send_id holds a number */
	__u8 waiting;               /* `before` is to be emitted */
	__u32 introduced;           /* watched: who it is was told */
	__u32 closed;               /* `top`: nothing more is added for this connection */
	__u32 ending;               /* `top`: the turn is being added, or was already */
	struct turn_lines before;   /* a client's last turn, until its next send call returns */
};

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

/*
 * Whether turns go into the book of `top` (top.bpf.h). It is constant when the programs are loaded, so that the verifier
 * removes what hangs on it where nobody wants it, and `ping` pays nothing.
 */
const volatile __u8 keeps_book __weak = 0;

/* One cache line each: neighbours belong to other CPUs. */
#define LINED __attribute__((aligned(64)))

struct config config SEC(".bss") __weak LINED;
struct counters counters SEC(".bss") __weak LINED;
struct cpu_state cpu_states[CPUS] SEC(".bss") __weak LINED;
struct arrival arrivals[SLOTS] SEC(".bss") __weak LINED;
struct reader readers[SLOTS] SEC(".bss") __weak LINED;

/* For what another CPU looks at meanwhile: the compiler keeps the order of such stores. */
#define WRITE_ONCE(place, value) (*(volatile __typeof__(place) *)&(place) = (value))

/* TCP sequence numbers wrap (RFC 9293, 3.4). */
static __always_inline bool after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

/* Where the transport header starts, counted from skb->data (which is at the link header here). */
static __always_inline __u32 transport_offset(const struct sk_buff *skb)
{
	return skb->transport_header - (__u32)(skb->data - skb->head);
}

/* The sequence number after the segment's last byte; false when it carries no data. */
static __always_inline bool segment_end(const struct sk_buff *skb, __u32 *end)
{
	struct tcp_wire tcp;
	__u32 headers;

	if (bpf_probe_read_kernel(&tcp, sizeof(tcp), skb->head + skb->transport_header))
		return false;
	headers = transport_offset(skb) + (tcp.data_offset >> 4) * 4;
	if (skb->len <= headers)
		return false;
	*end = bpf_ntohl(tcp.seq) + skb->len - headers;
	return true;
}

/* No number of the driver's: the payload cannot be read, because the device put it into pages. */
#define SEQ_UNREADABLE (~0ULL)

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

/* Of a flow that others made. Without a port to go by, the lower one is taken for the service's. */
static __always_inline enum role watched_role(__u16 local, __u16 remote)
{
	if (config.watch_port && local != config.watch_port && remote != config.watch_port)
		return ROLE_NONE;
	if (!remote)
		return ROLE_NONE; /* not connected */
	if (config.watch_port)
		return local == config.watch_port ? ROLE_SERVER : ROLE_CLIENT;
	return local < remote ? ROLE_SERVER : ROLE_CLIENT;
}

static __always_inline enum role role_of(const struct sock *sk)
{
	__u16 local = sk->__sk_common.skc_num;
	__u16 remote = bpf_ntohs(sk->__sk_common.skc_dport);

	/* What a closed socket still sends (a reset) is nobody's turn, and it is not closed a second time. */
	if (keeps_book && sk->__sk_common.skc_state == TCP_CLOSE)
		return ROLE_NONE;
	if (config.watch)
		return sk->sk_protocol == IPPROTO_TCP ? watched_role(local, remote) : ROLE_NONE;
	if (!config.server_port || sk->sk_protocol != config.proto)
		return ROLE_NONE;
	/* An unconnected UDP socket has no remote port. */
	if (local == config.server_port && (remote == config.client_port || !remote))
		return ROLE_SERVER;
	if (local == config.client_port && (remote == config.server_port || !remote))
		return ROLE_CLIENT;
	return ROLE_NONE;
}

static __always_inline void take_role(struct turn *turn, const struct sock *sk, enum role role)
{
	__u16 local = sk->__sk_common.skc_num;
	__u16 remote = bpf_ntohs(sk->__sk_common.skc_dport);

	turn->now.role = role;
	turn->now.flow =
		role == ROLE_CLIENT ? (__u32)local << 16 | remote : (__u32)remote << 16 | local;
}

static __always_inline void watch_begins(struct turn *turn, struct sock *sk, enum role role)
{
	take_role(turn, sk, role);
	/* Not its cookie: bpf_get_socket_cookie() does not take the socket of an sk_buff. */
	turn->now.socket = __sync_fetch_and_add(&counters.sockets, 1) + 1;
}

/* Who the socket is. Called where the current task is the one that uses it. */
static __always_inline void tell_who(const struct turn *turn, const struct sock *sk,
				     struct flow_record *who)
{
	__builtin_memset(who, 0, sizeof(*who));
	who->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	read_addresses(&sk->__sk_common, &who->family, who->local, who->remote);
	who->local_port = sk->__sk_common.skc_num;
	who->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	who->cgroup = bpf_get_current_cgroup_id();
	who->role = turn->now.role;
	who->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(who->comm, sizeof(who->comm));
	if (bpf_core_field_exists(sk->sk_rx_dst_ifindex))
		who->rx_ifindex = BPF_CORE_READ(sk, sk_rx_dst_ifindex);
	who->bound_ifindex = sk->__sk_common.skc_bound_dev_if;
	who->rx_queue = FLOW_NO_QUEUE;
	if (bpf_core_field_exists(sk->__sk_common.skc_rx_queue_mapping))
		who->rx_queue = BPF_CORE_READ(sk, __sk_common.skc_rx_queue_mapping);
	who->socket = turn->now.socket;
}

#include "top.bpf.h"

/* A port is watched and this socket has another one: most sockets of a busy host, so it is asked first. */
static __always_inline bool is_elsewhere(const struct sock *sk)
{
	__u16 port = config.watch_port;

	return port && sk->__sk_common.skc_num != port &&
	       sk->__sk_common.skc_dport != bpf_htons(port);
}

/* The turn of a traced socket, made when a socket of the traced flow is first seen; NULL otherwise. */
static __always_inline struct turn *turn_of(struct sock *sk)
{
	struct turn *turn;
	enum role role;

	if (!sk || is_elsewhere(sk))
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
	turn->now.role = role;
	turn->now.proto = config.proto;
	turn->now.flow = (__u32)config.client_port << 16 | config.server_port;
	if (config.watch)
		watch_begins(turn, sk, role);
	return turn;
}

/* hook is a constant wherever this is called, so that one store of each remains. */
static __always_inline void hit(struct turn *turn, enum hook hook, __u64 now)
{
	struct turn_lines *n = &turn->now;

	if (hook <= HOOK_re_xmit) {
		n->send_t[hook] = now;
		n->send_cpu[hook] = this_cpu();
	} else if (hook <= HOOK_data_ready) {
		n->softirq_t[hook - HOOK_irq] = now;
	} else {
		n->reader_t[hook - HOOK_wakeup] = now;
		n->reader_cpu[hook - HOOK_wakeup] = this_cpu();
	}
}

static __always_inline void emit(struct turn_lines *lines)
{
	/* No wake-up: the reader comes between trips, not during one. */
	if (bpf_ringbuf_output(&records, lines, sizeof(*lines), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counters.dropped, 1);
}

static __always_inline void emit_before(struct turn *turn)
{
	if (turn->waiting)
		emit(&turn->before);
	turn->waiting = 0;
}

static __always_inline void clear_sending(struct turn_lines *n)
{
	__builtin_memset(n->send_t, 0, sizeof(n->send_t));
	n->send_bytes = 0;
	n->writes = 0;
	n->flags = 0;
}

static __always_inline void client_turn_is_over(struct turn *turn)
{
	struct turn_lines *n = &turn->now;

	if (keeps_book && !top_turn_is_over(turn)) {
		; /* it is in the book, and that is all that is wanted */
	} else if (n->reader_t[HOOK_recv_exit - HOOK_wakeup]) {
		emit_before(turn);
		turn->before = *n;
		turn->waiting = 1;
		if (!config.emit_late)
			emit_before(turn);
	} else if (n->phase != PHASE_NONE) {
		__sync_fetch_and_add(&counters.unfinished, 1);
	}
	__builtin_memset(n->softirq_t, 0, sizeof(n->softirq_t));
	__builtin_memset(n->reader_t, 0, sizeof(n->reader_t));
}

/* The socket starts to send a message. Returns false when it is a further write of the same one. */
static __always_inline bool turn_begin_send(struct turn *turn)
{
	struct turn_lines *n = &turn->now;

	if (n->phase == PHASE_SEND && !turn->written)
		return false;
	if (n->role == ROLE_CLIENT)
		client_turn_is_over(turn);
	clear_sending(n);
	n->phase = PHASE_SEND;
	turn->written = 0;
	if (n->role == ROLE_CLIENT)
		top_turn_begins(turn);
	return true;
}

/* The send call returned: what is over, as far as can be told, is emitted. */
static __always_inline void turn_end_send(struct turn *turn)
{
	struct turn_lines *n = &turn->now;

	emit_before(turn);
	if (n->role != ROLE_SERVER || !n->unsaid || !n->send_t[HOOK_dev_xmit])
		return;
	if (keeps_book) {
		top_seems_over(turn);
		return; /* told when it really is over, and once */
	}
	emit(n);
	n->unsaid = 0;
}

/* A message starts to arrive at the socket. Nothing happens for a further packet of the same one. */
static __always_inline void turn_begin_receive(struct turn *turn)
{
	struct turn_lines *n = &turn->now;

	if (n->phase == PHASE_RECEIVE)
		return;
	if (n->role == ROLE_SERVER) {
		if (n->unsaid && (!keeps_book || top_turn_is_over(turn)))
			emit(n);
		n->unsaid = 0;
		__builtin_memset(n->softirq_t, 0, sizeof(n->softirq_t));
	}
	n->unread = 1;
	n->phase = PHASE_RECEIVE;
	if (n->role == ROLE_SERVER)
		top_turn_begins(turn);
}

/* Something is read: at the start of a message, what is known of the reader is of the message before. */
static __always_inline void turn_read(struct turn *turn)
{
	struct turn_lines *n = &turn->now;

	if (!n->unread)
		return;
	n->unread = 0;
	__builtin_memset(n->reader_t, 0, sizeof(n->reader_t));
	n->recv_bytes = 0;
	n->reads = 0;
}

/* The hooks that the packet passed before its socket was known. */
static __always_inline void turn_take_arrival(struct turn *turn, __u64 key)
{
	struct arrival *a = arrival_slot(key);
	struct turn_lines *n = &turn->now;
	bool mine = a->key == key;

	n->softirq_t[0] = mine ? a->irq : 0;
	n->softirq_t[HOOK_softirq - HOOK_irq] = mine ? a->softirq : 0;
	n->softirq_t[HOOK_stack_in - HOOK_irq] = mine ? a->stack_in : 0;
	n->softirq_cpu[CPU_OF_IRQ] = a->irq_cpu;
	n->softirq_cpu[CPU_OF_SOFTIRQ] = a->cpu;
}

#endif
