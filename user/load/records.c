// SPDX-License-Identifier: GPL-2.0-only
#include "load/records.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "load/control.h"

enum { FLAG_LAST = 1 << 0 };

/* A clock beyond this (146 years) is nonsense, and differences of clocks below it do not overflow. */
#define CLOCK_MAX (UINT64_MAX >> 2)

_Static_assert((int)RECORDS_FRAME_MAX <= (int)CONTROL_FRAME_MAX, "fits into a frame");
_Static_assert((int)HOOKS <= (int)RECORDS_HOOKS_MAX && (int)HOOKS <= 32,
	       "fits into layout and mask");

static const char *const hook_names[HOOKS] = {
#define HOOK(name, role, kind, layer, text) #name,
#include "abi/hooks.def"
#undef HOOK
};

/* --- layouts ----------------------------------------------------------------------------- */

void records_layout(uint32_t hooks, struct records_layout *layout)
{
	layout->count = 0;
	for (int hook = 0; hook < HOOKS; hook++)
		if (hooks & 1u << hook)
			layout->hook[layout->count++] = hook;
}

json_t *records_layout_to_json(const struct records_layout *layout)
{
	json_t *names = json_array();

	for (int i = 0; i < layout->count; i++)
		json_array_append_new(names, json_string(hook_names[layout->hook[i]]));
	return names;
}

static int hook_of(const char *name)
{
	for (int hook = 0; hook < HOOKS; hook++)
		if (!strcmp(hook_names[hook], name))
			return hook;
	return -1;
}

int records_layout_from_json(const json_t *names, struct records_layout *layout)
{
	size_t count = json_array_size(names);

	if (!json_is_array(names) || count > RECORDS_HOOKS_MAX)
		return err_set(-EPROTO, "the peer sent no usable list of hooks");
	layout->count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (!name)
			return err_set(-EPROTO,
				       "the peer sent a list of hooks without their names");
		layout->hook[layout->count++] = hook_of(name);
	}
	return 0;
}

uint32_t records_hooks(const struct records_layout *layout)
{
	uint32_t mask = 0;

	for (int i = 0; i < layout->count; i++)
		if (layout->hook[i] >= 0)
			mask |= 1u << layout->hook[i];
	return mask;
}

/* --- writing ----------------------------------------------------------------------------- */

static unsigned char *put(unsigned char *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*at++ = (unsigned char)(value >> (8 * i));
	return at;
}

static size_t record_size(const struct records_layout *layout)
{
	return RECORDS_FIXED + (size_t)layout->count * (sizeof(uint64_t) + sizeof(uint16_t));
}

void records_begin(struct records_body *body, const struct records_layout *layout)
{
	body->layout = layout;
	body->count = 0;
	body->size = RECORDS_HEADER;
}

bool records_put(struct records_body *body, const struct turn_record *record)
{
	const struct records_layout *layout = body->layout;
	unsigned char *at = body->bytes + body->size;

	if (body->count == RECORDS_PER_FRAME)
		return false;
	at = put(at, record->send_id, 8);
	at = put(at, record->recv_id, 8);
	at = put(at, record->send_bytes, 4);
	at = put(at, record->recv_bytes, 4);
	at = put(at, record->writes, 2);
	at = put(at, record->reads, 2);
	at = put(at, record->flags, 4);
	for (int i = 0; i < layout->count; i++)
		at = put(at, record->t[layout->hook[i]], 8);
	for (int i = 0; i < layout->count; i++)
		at = put(at, record->cpu[layout->hook[i]], 2);
	body->size += record_size(layout);
	body->count++;
	return true;
}

void records_end(struct records_body *body, const struct records_header *header)
{
	unsigned char *at = body->bytes;

	at = put(at, RECORDS_VERSION, 2);
	at = put(at, header->last ? FLAG_LAST : 0, 2);
	at = put(at, body->count, 2);
	at = put(at, (uint64_t)body->layout->count, 2);
	at = put(at, header->clock, 8);
	at = put(at, header->counters.dropped, 8);
	at = put(at, header->counters.unfinished, 8);
	put(at, header->counters.recursion_misses, 8);
}

/* --- reading ----------------------------------------------------------------------------- */

static uint64_t get(const unsigned char **at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)(*at)[i] << (8 * i);
	*at += bytes;
	return value;
}

static void get_record(const unsigned char *at, const struct records_layout *layout,
		       struct turn_record *record)
{
	*record = (struct turn_record){.role = ROLE_SERVER};
	record->send_id = get(&at, 8);
	record->recv_id = get(&at, 8);
	record->send_bytes = (uint32_t)get(&at, 4);
	record->recv_bytes = (uint32_t)get(&at, 4);
	record->writes = (uint16_t)get(&at, 2);
	record->reads = (uint16_t)get(&at, 2);
	record->flags = (uint8_t)get(&at, 4);
	for (int i = 0; i < layout->count; i++) {
		uint64_t t = get(&at, 8);

		if (layout->hook[i] >= 0)
			record->t[layout->hook[i]] = t;
	}
	for (int i = 0; i < layout->count; i++) {
		uint16_t cpu = (uint16_t)get(&at, 2);

		if (layout->hook[i] >= 0)
			record->cpu[layout->hook[i]] = cpu;
	}
}

int records_read(const unsigned char *bytes, size_t size, const struct records_layout *layout,
		 struct records_header *header, records_sink *sink, void *arg)
{
	const unsigned char *at = bytes;
	uint64_t version, flags, count, hooks;

	if (size < RECORDS_HEADER)
		return err_set(-EPROTO, "the peer sent records that are cut short");
	version = get(&at, 2);
	flags = get(&at, 2);
	count = get(&at, 2);
	hooks = get(&at, 2);
	if (version != RECORDS_VERSION)
		return err_set(-EPROTO, "the peer sent records of version %llu, this side reads %d",
			       (unsigned long long)version, RECORDS_VERSION);
	if (hooks != (uint64_t)layout->count || count > RECORDS_PER_FRAME ||
	    size != RECORDS_HEADER + count * record_size(layout))
		return err_set(-EPROTO, "the peer sent %zu bytes of records where %llu belong",
			       size,
			       (unsigned long long)(RECORDS_HEADER + count * record_size(layout)));
	header->last = flags & FLAG_LAST;
	header->clock = get(&at, 8);
	header->counters.dropped = get(&at, 8);
	header->counters.unfinished = get(&at, 8);
	header->counters.recursion_misses = get(&at, 8);
	if (header->clock > CLOCK_MAX)
		return err_set(-EPROTO, "the peer sent records with an impossible clock");
	for (uint64_t i = 0; i < count; i++, at += record_size(layout)) {
		struct turn_record record;
		int rc;

		get_record(at, layout, &record);
		rc = sink(arg, &record);
		if (rc < 0)
			return rc;
	}
	return 0;
}
