// SPDX-License-Identifier: GPL-2.0-only
#include "load/peer.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

enum { FLAGS_AT = 8, LENGTH_AT = 10, HEADER = 14, OUR_HEADER = 16 };
enum { FLAG_CLIENT = 1, FLAG_PONG = 2 };

const struct peer_info peer_infos[PEERS] = {
	[PEER_LAYOVER] = {"layover", 7117, 1},
	[PEER_SOCKPERF] = {"sockperf", 11111, HEADER},
	[PEER_ECHO] = {"echo", 7, 1},
};

int peer_parse(const char *what, const char *text, int *peer)
{
	for (*peer = 0; *peer < PEERS; (*peer)++)
		if (!strcmp(text, peer_infos[*peer].name))
			return 0;
	return err_set(-EINVAL, "%s: '%s' is none of layover, sockperf, echo", what, text);
}

static uint16_t get_flags(const void *message)
{
	uint16_t flags;

	memcpy(&flags, (const char *)message + FLAGS_AT, sizeof(flags));
	return be16toh(flags);
}

static void put_flags(void *message, uint16_t flags)
{
	flags = htobe16(flags);
	memcpy((char *)message + FLAGS_AT, &flags, sizeof(flags));
}

void peer_label(int peer, void *message, uint64_t bytes)
{
	uint32_t length = htobe32((uint32_t)bytes);

	if (peer != PEER_SOCKPERF)
		return;
	memset(message, 0, bytes < OUR_HEADER ? bytes : OUR_HEADER);
	put_flags(message, FLAG_CLIENT | FLAG_PONG);
	memcpy((char *)message + LENGTH_AT, &length, sizeof(length));
}

void peer_unanswer(int peer, void *reply)
{
	if (peer == PEER_SOCKPERF)
		put_flags(reply, get_flags(reply) | FLAG_CLIENT);
}

bool peer_answer(int peer, void *message)
{
	uint16_t flags;

	if (peer != PEER_SOCKPERF)
		return true;
	flags = get_flags(message);
	put_flags(message, flags & (uint16_t)~FLAG_CLIENT);
	return (flags & (FLAG_CLIENT | FLAG_PONG)) == (FLAG_CLIENT | FLAG_PONG);
}

void peer_length(int peer, const void *header, size_t *bytes)
{
	uint32_t length;

	if (peer != PEER_SOCKPERF)
		return;
	memcpy(&length, (const char *)header + LENGTH_AT, sizeof(length));
	*bytes = be32toh(length);
}
