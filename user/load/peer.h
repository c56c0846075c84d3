/* SPDX-License-Identifier: GPL-2.0-only */
/* Other programs at the far end: what they speak, and where they listen. */
#ifndef LAYOVER_PEER_H
#define LAYOVER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PEER_LAYOVER has a control connection; the others are spoken to without one. */
enum peer { PEER_LAYOVER, PEER_SOCKPERF, PEER_ECHO, PEERS };

struct peer_info {
	const char *name;
	uint16_t port;    /* its usual one */
	uint64_t minimum; /* the least bytes of a message */
};

extern const struct peer_info peer_infos[PEERS];

/* 0 and *peer, or -EINVAL with a sentence that lists the names. */
int peer_parse(const char *what, const char *text, int *peer);

/*
 * sockperf's header is 14 bytes in network order: number (8), flags (2), length of the message (4). Makes a message
 * of `bytes` a client's request for an answer. Others need nothing.
 */
void peer_label(int peer, void *message, uint64_t bytes);

/* Makes a reply look like its request again, to be compared with it. */
void peer_unanswer(int peer, void *reply);

/* Makes a request of at least the minimum size its reply. False when it asks for none. */
bool peer_answer(int peer, void *message);

/* The whole message's size by its header; *bytes is untouched for a peer without one. */
void peer_length(int peer, const void *header, size_t *bytes);

/* A number as the peer writes it into the first 8 bytes, given as our own format reads them; its own inverse. */
static inline uint64_t peer_seq(int peer, uint64_t seq)
{
	return peer == PEER_SOCKPERF ? __builtin_bswap64(seq) : seq;
}

#endif
