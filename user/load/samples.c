// SPDX-License-Identifier: GPL-2.0-only
#include "load/samples.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

enum { STEP = 1 << 16 }; /* 512 KiB per array: touched in well under a millisecond */

/* Grows *array to `to` elements, the new ones touched. Moves page tables, never copies. */
static int grow(uint64_t **array, size_t from, size_t to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *moved;

	if (*array)
		moved = mremap(*array, from * sizeof(**array), to * sizeof(**array),
			       MREMAP_MAYMOVE);
	else
		moved = mmap(NULL, to * sizeof(**array), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (moved == MAP_FAILED)
		return -ENOMEM;
	for (size_t at = from * sizeof(**array); *array && at < to * sizeof(**array); at += page)
		*(volatile char *)(moved + at) = 0;
	*array = (uint64_t *)(void *)moved;
	return 0;
}

/* Undoes grow(), so that capacity is true for both arrays. */
static void shrink(uint64_t **array, size_t from, size_t to)
{
	if (to) {
		mremap(*array, from * sizeof(**array), to * sizeof(**array), 0);
		return;
	}
	munmap(*array, from * sizeof(**array));
	*array = NULL;
}

int samples_reserve(struct samples *samples, size_t more)
{
	size_t want = samples->count + more;
	size_t to = (want + STEP - 1) / STEP * STEP;
	uint64_t **const all[] = {&samples->start_ns, &samples->rtt_ns, &samples->service_ns};
	size_t arrays = samples->with_service ? 3 : 2, grown = 0;

	if (want <= samples->capacity)
		return 0;
	for (; grown < arrays; grown++)
		if (grow(all[grown], samples->capacity, to))
			goto short_of_memory;
	samples->capacity = to;
	return 0;

short_of_memory:
	while (grown--)
		shrink(all[grown], to, samples->capacity);
	return err_set(-ENOMEM, "no memory for %zu samples (%zu MiB); measure fewer trips", to,
		       to * arrays * sizeof(uint64_t) >> 20);
}

void samples_swap(struct samples *a, struct samples *b)
{
	struct samples old = *a;

	a->start_ns = b->start_ns;
	a->rtt_ns = b->rtt_ns;
	a->service_ns = b->service_ns;
	a->count = b->count;
	a->capacity = b->capacity;
	b->start_ns = old.start_ns;
	b->rtt_ns = old.rtt_ns;
	b->service_ns = old.service_ns;
	b->count = old.count;
	b->capacity = old.capacity;
}

int samples_append(struct samples *samples, const struct samples *more)
{
	size_t bytes = more->count * sizeof(uint64_t);
	int rc = samples_reserve(samples, more->count);

	if (rc || !bytes || !samples->start_ns) /* the last one only if the first two are */
		return rc;
	memcpy(samples->start_ns + samples->count, more->start_ns, bytes);
	memcpy(samples->rtt_ns + samples->count, more->rtt_ns, bytes);
	if (samples->service_ns)
		memcpy(samples->service_ns + samples->count, more->service_ns, bytes);
	samples->count += more->count;
	return 0;
}

void samples_count(struct samples *samples, const struct samples *more)
{
	samples->lost += more->lost;
	samples->late += more->late;
	samples->duplicated += more->duplicated;
	samples->out_of_order += more->out_of_order;
}

void samples_free(struct samples *samples)
{
	if (samples->start_ns)
		munmap(samples->start_ns, samples->capacity * sizeof(uint64_t));
	if (samples->rtt_ns)
		munmap(samples->rtt_ns, samples->capacity * sizeof(uint64_t));
	if (samples->service_ns)
		munmap(samples->service_ns, samples->capacity * sizeof(uint64_t));
	memset(samples, 0, sizeof(*samples));
}
