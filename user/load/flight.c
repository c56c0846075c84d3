// SPDX-License-Identifier: GPL-2.0-only
#include "load/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { ROOM = 4096 }; /* samples that memory is touched for at a time */

int flight_open(struct flight *f, uint64_t mask, uint64_t timeout_ns, uint64_t warm,
		struct samples *out, pthread_mutex_t *lock)
{
	*f = (struct flight){
		.mask = mask, .timeout_ns = timeout_ns, .warm = warm, .out = out, .lock = lock};
	f->slots = calloc(FLIGHT_SLOTS, sizeof(*f->slots));
	if (!f->slots)
		return err_set(-ENOMEM, "no memory for %d messages on their way", FLIGHT_SLOTS);
	memset(f->slots, 0, FLIGHT_SLOTS * sizeof(*f->slots)); /* touched */
	return samples_reserve(out, ROOM);
}

void flight_close(struct flight *f)
{
	free(f->slots);
	f->slots = NULL;
}

static struct flight_slot *slot_of(const struct flight *f, uint64_t seq)
{
	return &f->slots[seq % FLIGHT_SLOTS];
}

void flight_send(struct flight *f, uint64_t seq, uint64_t intended, uint64_t actual, uint32_t bytes)
{
	struct flight_slot *slot = slot_of(f, seq);

	atomic_store_explicit(&slot->seq, 0,
			      memory_order_release); /* a late reply must not meet half of it */
	slot->intended = intended ? intended : actual;
	slot->actual = actual;
	slot->bytes = bytes;
	slot->late = false;
	atomic_store_explicit(&slot->answered, false, memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
	atomic_store_explicit(&f->sent, seq, memory_order_release);
}

static int keep_sample(const struct flight *f, const struct flight_slot *slot, uint64_t now)
{
	struct samples *s = f->out;
	int rc = s->count == s->capacity ? samples_reserve(s, ROOM) : 0;

	if (rc)
		return rc;
	s->start_ns[s->count] = slot->intended;
	if (s->service_ns)
		s->service_ns[s->count] = now - slot->actual;
	s->rtt_ns[s->count++] = now - slot->intended;
	return 0;
}

static int keep(struct flight *f, const struct flight_slot *slot, uint64_t now)
{
	int rc;

	if (f->lock)
		pthread_mutex_lock(f->lock);
	rc = keep_sample(f, slot, now);
	if (f->lock)
		pthread_mutex_unlock(f->lock);
	f->answered += !rc;
	return rc;
}

bool flight_reply(struct flight *f, uint64_t carried, uint32_t bytes, uint64_t now, int *rc)
{
	uint64_t sent = atomic_load_explicit(&f->sent, memory_order_acquire);
	uint64_t back = (sent - carried) & f->mask, seq = sent - back;
	struct flight_slot *slot = slot_of(f, seq);
	bool measured = seq > f->warm, ooo = seq < f->newest;

	*rc = 0;
	if (back >= sent || atomic_load_explicit(&slot->seq, memory_order_acquire) != seq ||
	    bytes != slot->bytes)
		return false; /* a number or a size that is not on its way: not ours, or older than all slots */
	if (atomic_exchange_explicit(&slot->answered, true, memory_order_relaxed)) {
		f->out->duplicated += measured;
		return false;
	}
	f->out->out_of_order += measured && ooo;
	if (!ooo)
		f->newest = seq;
	if (f->timeout_ns && now - slot->actual > f->timeout_ns) {
		f->out->late += measured;
		slot->late = true;
		return false;
	}
	atomic_store_explicit(&f->done, f->done + 1, memory_order_release);
	if (measured)
		*rc = keep(f, slot, now);
	return true;
}

uint64_t flight_settle(struct flight *f)
{
	uint64_t sent = atomic_load_explicit(&f->sent, memory_order_acquire);
	uint64_t measured = sent > f->warm ? sent - f->warm : 0;

	f->out->lost += measured - f->answered;
	return sent - measured - (f->done - f->answered);
}
