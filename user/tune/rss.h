/* SPDX-License-Identifier: GPL-2.0-only */
/* Receive-side scaling: tables, and what they do with a flow. Pure computation. */
#ifndef LAYOVER_RSS_H
#define LAYOVER_RSS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The addresses and ports of a packet, as the receiver sees it: from is the remote end. */
struct rss_flow {
	struct sockaddr_storage from, to; /* of one family */
};

/*
 * Toeplitz, as Microsoft's "RSS hashing functions" defines it: for every set bit of the input, the 32 bits of the
 * key that begin at that bit's place are added (xor). The key must be at least 4 bytes longer than the input.
 */
uint32_t rss_toeplitz(const uint8_t *key, size_t key_size, const uint8_t *input, size_t size);

/*
 * The hash of a flow over the fields (RXH_* bits; addresses and ports only) that the device hashes. 0, or -EINVAL
 * with a sentence when the key is too short or the ends are of two families.
 */
int rss_hash(const uint8_t *key, size_t key_size, const struct rss_flow *flow, uint64_t fields,
	     uint32_t *hash);

/* The flow in "FROM:PORT,TO:PORT" (IPv6 in brackets). 0 or -EINVAL with a sentence. */
int rss_flow_parse(const char *text, struct rss_flow *flow);

/* table[i] = i modulo queues, as `ethtool -X equal` has it. */
void rss_equal(uint32_t *table, uint32_t size, uint32_t queues);

/* Shares of the table by weight, in runs, as `ethtool -X weight` has it. Some weight must not be 0. */
void rss_weighted(uint32_t *table, uint32_t size, const uint32_t *weights, uint32_t queues);

/* "0,1,0,1" to a table of at most max. Number of entries, or -EINVAL. No sentence. */
int rss_table_parse(const char *text, uint32_t *table, uint32_t max);

/* The reverse; as much as fits. */
void rss_table_format(const uint32_t *table, uint32_t size, char *text, size_t text_size);

/* For people: "queue 0 25 %, 1 75 %" or, when all used queues have the same share, "queues 0-3 equally". */
void rss_table_say(const uint32_t *table, uint32_t size, char *text, size_t text_size);

#endif
