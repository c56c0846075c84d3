/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run of the driver does: one struct, checked in one place, sent to the server as JSON. */
#ifndef LAYOVER_PLAN_H
#define LAYOVER_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What carries the messages. */
enum plan_proto { PLAN_TCP, PLAN_UDP, PLAN_MULTICAST, PLAN_RAW, PLAN_UNIX, PLAN_PROTOS };
/* What the server does with messages: answer them, or only count them. */
enum plan_mode { PLAN_ECHO, PLAN_SINK };
enum plan_family { PLAN_ANY, PLAN_IPV4, PLAN_IPV6 };
enum plan_cork { PLAN_CORK_OFF, PLAN_CORK_FLUSH, PLAN_CORK_HOLD };

#define PLAN_TRIPS_MAX     1000000000ULL
#define PLAN_UDP_BYTES_MAX 65507ULL
#define PLAN_TCP_BYTES_MAX (1ULL << 30)
enum {
	PLAN_WRITES_MAX = 16,
	PLAN_WORD_MAX = 16,
	PLAN_CPUS_MAX = 64,
	PLAN_WINDOW_MAX = 64 << 10,
	PLAN_WINDOW_UNIX =
		128, /* net.core.wmem_default is 208 KiB, a message takes 768 bytes of it at least */
	PLAN_WINDOW_ONE_BYTE =
		128,         /* messages whose number has 8 bits, half of them for late ones */
	PLAN_RAW_PROTO = 253 /* RFC 3692: experiments */
};

/* CPUs in the order in which they were named. */
struct plan_cpus {
	int count; /* 0: client_cpu, server_cpu say where */
	int cpu[PLAN_CPUS_MAX];
};

struct token;

/* The sizes of the writes that make up one message; count 0: one write. */
struct plan_writes {
	uint64_t count;
	uint64_t bytes[PLAN_WRITES_MAX];
};

/* Every field but the last ones has one row in the table of plan.c, which says its JSON name and its limits. */
struct load_plan {
	int proto;            /* enum plan_proto */
	int mode;             /* enum plan_mode */
	int family;           /* enum plan_family: which addresses of the target may be used */
	uint64_t bytes;       /* of a request */
	uint64_t reply_bytes; /* of a reply; 0: as many */
	struct plan_writes writes, reply_writes;
	uint64_t iterations;  /* trips to measure; 0: as many as duration_ns allows */
	uint64_t duration_ns; /* how long to measure; 0: until iterations are done */
	/* The warm-up ends at whichever comes first; 0: no such limit. */
	uint64_t warmup_trips, warmup_ns;
	uint64_t timeout_ns;      /* after this a datagram's trip counts as lost */
	uint64_t server_delay_ns; /* the server spins this long between receiving and replying */
	bool unconnected;         /* UDP sockets without connect(), on both ends */
	bool verify; /* fill and check the payload of every trip, outside the measured time */
	bool crr;    /* a connection for every trip */
	bool receive_first;         /* the server sends the first message */
	int client_cpu, server_cpu; /* -1: not pinned */
	int numa;                   /* the node whose CPUs and memory both ends take; -1: any */
	int fifo;          /* SCHED_FIFO's priority of both ends' measuring threads; 0: normal */
	bool lock_memory;  /* both ends */
	int io, server_io; /* enum io_method */
	uint64_t polls;    /* io_uring: look so often for a completion before waiting */
	/* Socket options of both ends; 0 (or ""): the system's default. */
	uint64_t sndbuf, rcvbuf, mss, busy_poll_us;
	int tos;  /* -1: default */
	int cork; /* enum plan_cork */
	bool nodelay, quickack;
	char congestion[PLAN_WORD_MAX];

	/* These stay on this side. */
	bool time_given;                           /* duration_ns is not the default */
	struct plan_cpus client_cpus, server_cpus; /* threads and flows take them in turn */
	uint64_t rate;        /* messages per second, whether replies come or not; 0: closed loop */
	uint64_t depth;       /* messages under way at the same time; 1: ping-pong */
	const char *playback; /* a file that says when to send how much; NULL: none */
	const char *bind;     /* "ADDR[:PORT]" of the client's data socket; NULL: any */
	int peer;             /* enum peer: what is at the other end */
	const struct token
		*token;       /* shared with the server, which must have it as well; NULL: none */
	bool shutdown_server; /* the server is asked to end after the session */
	bool more;            /* another session of this command follows */
};

/* The defaults of the command line: TCP, 64 bytes, 2 s, warm-up of 1000 trips or 400 ms, nothing
 * pinned. */
void plan_default(struct load_plan *plan);

/* Messages may get lost, and arrive whole or not at all. */
bool plan_datagrams(const struct load_plan *plan);

/* Several messages are under way at the same time. */
bool plan_overlaps(const struct load_plan *plan);

/* They leave when they are due, whether replies come or not. */
bool plan_open_loop(const struct load_plan *plan);

uint64_t plan_reply_bytes(const struct load_plan *plan);

/* Where the client's n-th thread and the server's n-th session run; -1: anywhere. */
int plan_client_cpu(const struct load_plan *plan, unsigned int n);
int plan_server_cpu(const struct load_plan *plan, unsigned int n);

/* What the writes sum to. */
uint64_t plan_writes_bytes(const struct plan_writes *writes);

/* The larger of request and reply. */
uint64_t plan_bytes_max(const struct load_plan *plan);

/* IPPROTO_TCP, IPPROTO_UDP, or 0: the kernel's hooks know no turns of it. */
int plan_traced_proto(const struct load_plan *plan);

/* As on the command line and in JSON: "tcp" …; ends with NULL. */
extern const char *const plan_proto_names[];
extern const char *const plan_cork_names[];

/* 0, or -EINVAL/-ERANGE with a sentence that names the field. */
int plan_check(const struct load_plan *plan);

/* A new JSON object with every field; the caller owns it. NULL when memory is short. */
json_t *plan_to_json(const struct load_plan *plan);

/*
 * Reads an object written by plan_to_json() and checks it as plan_check() does. A missing, unknown
 * or mistyped field is refused: -EINVAL/-ERANGE with a sentence.
 */
int plan_from_json(const json_t *object, struct load_plan *plan);

#endif
