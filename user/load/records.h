/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turn records of the server's end on their way to the client: the body of a binary control frame, little
 * endian, without gaps. Neither end trusts the other's memory layout or table of hooks.
 *
 *   header  u16 version, u16 flags, u16 records, u16 hooks, u64 clock, u64 dropped, u64 unfinished,
 *           u64 recursion_misses
 *   record  u64 send_id, u64 recv_id, u32 send_bytes, u32 recv_bytes, u16 writes, u16 reads, u8 flags,
 *           3 × u8 zero, hooks × u64 time, hooks × u16 CPU
 */
#ifndef LAYOVER_RECORDS_H
#define LAYOVER_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"

enum {
	RECORDS_VERSION = 1,
	RECORDS_HEADER = 40,
	RECORDS_FIXED = 32, /* of a record, without its hooks */
	RECORDS_HOOKS_MAX = 64,
	RECORDS_PER_FRAME = 64, /* even with all hooks less than a control frame may hold */
	RECORDS_FRAME_MAX =
		RECORDS_HEADER + RECORDS_PER_FRAME * (RECORDS_FIXED + RECORDS_HOOKS_MAX * 10),
};

/* Which hooks a record's times belong to, in their order: the server names them, hooks may be added. */
struct records_layout {
	int count;
	int hook[RECORDS_HOOKS_MAX]; /* enum hook, or -1: not known here */
};

struct records_counters {
	uint64_t dropped, unfinished, recursion_misses; /* as in collect_counters */
};

struct records_header {
	bool last;      /* no further frame answers this request */
	uint64_t clock; /* the server's CLOCK_MONOTONIC when the request arrived */
	struct records_counters counters;
};

/* The hooks of a mask, in the order of the table; their names as a new JSON array, and back. */
void records_layout(uint32_t hooks, struct records_layout *layout);
json_t *records_layout_to_json(const struct records_layout *layout);

/* -EPROTO with a sentence when it is not a list of names. */
int records_layout_from_json(const json_t *names, struct records_layout *layout);

/* The mask of the hooks that both ends know. */
uint32_t records_hooks(const struct records_layout *layout);

/* A frame's body that is being filled. Starts with records_begin(). */
struct records_body {
	const struct records_layout *layout;
	unsigned int count;
	size_t size;
	unsigned char bytes[RECORDS_FRAME_MAX];
};

void records_begin(struct records_body *body, const struct records_layout *layout);

/* Appends one record. Returns false when the body is full, then it was not taken. */
bool records_put(struct records_body *body, const struct turn_record *record);

void records_end(struct records_body *body, const struct records_header *header);

typedef int records_sink(void *arg, const struct turn_record *record);

/*
 * Reads a body from a peer that may be anything. Every record goes to sink with the role of a server; its
 * negative result ends the reading. 0, -EPROTO with a sentence, or sink's result.
 */
int records_read(const unsigned char *bytes, size_t size, const struct records_layout *layout,
		 struct records_header *header, records_sink *sink, void *arg);

#endif
