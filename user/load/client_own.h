/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's inside, for the files that drive it: client.c one trip at a time, overlap.c several at once. */
#ifndef LAYOVER_CLIENT_OWN_H
#define LAYOVER_CLIENT_OWN_H

#include <netinet/in.h>

#include "load/client.h"
#include "load/connect.h"
#include "load/io.h"
#include "load/watchdog.h"

enum { LOST_KEPT = 1024 };

struct load_client {
	struct load_plan plan;
	struct connection link;
	struct watchdog dog;
	bool watched, pinned, broken;

	/* What a trip touches. */
	/* seq is as it stands in the message. */
	int (*trip)(struct load_client *c, uint64_t seq, uint64_t *start, uint64_t *end);
	struct io io;
	uint64_t bytes, reply_bytes, mask;
	void *request, *reply;
	struct sockaddr_storage from; /* of the last reply, when not connected */
	struct nic_clock *nic;        /* NULL: no timestamps of the NIC */
	uint64_t seq;                 /* of the trip under way, or of the last one */

	/* Bookkeeping of trips that went wrong. */
	uint64_t answered; /* highest sequence number with a reply in time */
	struct {
		uint64_t seq; /* 0: its reply came after all */
		struct samples *counters;
	} lost[LOST_KEPT]; /* the last lost trips */
	uint64_t lost_count;
	uint64_t silent_ns;                 /* how long nothing has come back */
	struct samples *block, *last_block; /* of this block, and of the measured one before */
	uint64_t block_first, last_first, last_end;
	struct samples discarded;
};

/* Silence for this long means that the server is gone: with one timeout more, still within 10 s. */
#define CLIENT_SILENCE_NS (9ULL * NS_PER_S)

/* The struct io of this thread for the client's data socket, opened. 0 or -errno with a sentence. */
int client_io_open(struct load_client *c, struct io *io);

/* A datagram of n bytes in `reply` is one of the session's server, as far as can be told. */
bool client_of_session(const struct load_client *c, const void *reply, ssize_t n,
		       const struct sockaddr_storage *from);

/* Locks this process's memory if the plan says so. Not being allowed to is worth a word, not the run. */
void client_lock(const struct load_plan *plan);

/* Places a measuring thread, the client's n-th, as the plan says. 0 or -errno with a sentence. */
int client_place(const struct load_plan *plan, unsigned int n);

/* The sentence for a trip that ended with -errno, with an end of the stream, or by the watchdog. */
int client_failed(struct load_client *c, int rc);

#endif
