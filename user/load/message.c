// SPDX-License-Identifier: GPL-2.0-only
#include "load/message.h"

#include <sys/mman.h>

static size_t allocated(uint64_t bytes)
{
	return MESSAGE_ROOM + (size_t)bytes + sizeof(struct message_header);
}

void *message_alloc(uint64_t bytes)
{
	void *memory = mmap(NULL, allocated(bytes), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : (char *)memory + MESSAGE_ROOM;
}

void message_free(void *message, uint64_t bytes)
{
	if (message)
		munmap((char *)message - MESSAGE_ROOM, allocated(bytes));
}

void message_label(void *message, uint64_t bytes, uint64_t session)
{
	struct message_header header = {
		.session = htole32((uint32_t)session),
		.magic = htole32(MESSAGE_MAGIC),
	};

	memcpy(message, &header, bytes < sizeof(header) ? bytes : sizeof(header));
}

/* splitmix64: neighbouring inputs give unrelated outputs, so a shifted or stale payload is noticed.
 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

void message_fill(void *message, uint64_t bytes, uint64_t seq)
{
	unsigned char *at = message;
	uint64_t base = mix(seq);

	for (uint64_t i = sizeof(struct message_header); i < bytes; i += 8) {
		uint64_t word = htole64(mix(base + i));

		memcpy(at + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

bool message_equal(const void *request, const void *reply, uint64_t bytes, uint64_t *at)
{
	const unsigned char *a = request, *b = reply;

	if (!memcmp(a, b, bytes))
		return true;
	for (*at = 0; a[*at] == b[*at]; (*at)++)
		;
	return false;
}
