/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel side seen from the user side: open, attach, point at a flow, read records. */
#ifndef LAYOVER_COLLECT_H
#define LAYOVER_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "collect/probes.h"

struct collect;

struct collect_counters {
	uint64_t dropped;          /* records the ring buffer had no room for */
	uint64_t unfinished;       /* turns given up because a new message started first */
	uint64_t recursion_misses; /* program runs that the kernel skipped */
	uint64_t no_place;         /* `top`: sockets that have no head at the moment */
	uint64_t unplaced;         /* `top`: turns of such sockets */
};

/*
 * Probes, chooses hooks, loads; nothing is attached yet. 0 or -errno with a sentence (-EPERM: not
 * allowed, -ENOENT and others: this kernel cannot). The caller owns *out, freed by collect_close().
 */
int collect_open(struct collect **out, const struct probe_wish *wish);
void collect_close(struct collect *c);

/* Attaches all chosen hooks, or none: 0 or -errno with a sentence. Detaching is idempotent. */
int collect_attach(struct collect *c);
void collect_detach(struct collect *c);

/* Bit mask of enum hook: the hooks that are loaded. */
uint32_t collect_hooks(const struct collect *c);

/*
 * Points the hooks at one flow of the driver (ports in host order) that carries messages of `bytes`. It
 * decides what tells packets apart: the driver's number in UDP payloads, bytes where TCP may segment.
 */
void collect_set_flow(struct collect *c, uint16_t client_port, uint16_t server_port,
		      uint64_t bytes);

struct flow_record;
struct stall_record;
struct hog_record;

/* What comes of watched flows besides turns (abi/stall.h). */
struct watch_sinks {
	void (*flow)(void *arg, const struct flow_record *record);
	void (*stall)(void *arg, const struct stall_record *record);
	void (*hog)(void *arg, const struct hog_record *record);
	void *arg;
};

/*
 * Points the hooks at every TCP flow from or to that port (host order; 0: every one). False when the kernel does not
 * tell where its delayed-ACK timer is: then that evidence is missing.
 */
bool collect_watch(struct collect *c, uint16_t port, const struct watch_sinks *sinks);

typedef void collect_sink(void *arg, const struct turn_record *record);

/* Hands all waiting records to sink, oldest first per CPU. Returns their number or -errno. */
int collect_drain(struct collect *c, collect_sink *sink, void *arg);

void collect_counters(const struct collect *c, struct collect_counters *out);

/* The descriptor of a map, which stays collect's own; -errno with a sentence. */
int collect_map(const struct collect *c, const char *name);

/* `top`: turns from this long on are told as records, as long as nothing else was said of their socket. 0: none. */
void collect_set_slow(struct collect *c, uint64_t ns);

/* Has libbpf say nothing unless LAYOVER_DEBUG is set. */
void collect_quiet(void);

#endif
