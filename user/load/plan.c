// SPDX-License-Identifier: GPL-2.0-only
#include "load/plan.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cpus.h"
#include "base/error.h"
#include "load/clock.h"

enum field_type { FIELD_U64, FIELD_INT, FIELD_BOOL, FIELD_WORD };

/* A word is kept as its index in `words`. */
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	int64_t min, max;
	const char *const *words;
};

static const char *const protos[] = {"tcp", "udp", NULL};
static const char *const families[] = {"any", "ipv4", "ipv6", NULL};

#define DAY_NS (24LL * 3600 * NS_PER_S)

#define U64(f, min, max)    #f, FIELD_U64, offsetof(struct load_plan, f), min, max, NULL
#define INT(f, min, max)    #f, FIELD_INT, offsetof(struct load_plan, f), min, max, NULL
#define BOOL(f)             #f, FIELD_BOOL, offsetof(struct load_plan, f), 0, 1, NULL
#define WORD(f, max, words) #f, FIELD_WORD, offsetof(struct load_plan, f), 0, max, words

static const struct field fields[] = {
	{WORD(proto, PLAN_UDP, protos)},
	{WORD(family, PLAN_IPV6, families)},
	{U64(bytes, 1, PLAN_TCP_BYTES_MAX)},
	{U64(iterations, 0, PLAN_TRIPS_MAX)},
	{U64(duration_ns, 0, DAY_NS)},
	{U64(warmup_trips, 0, PLAN_TRIPS_MAX)},
	{U64(warmup_ns, 0, DAY_NS)},
	{U64(timeout_ns, 100LL * NS_PER_US, 60LL * NS_PER_S)},
	{U64(server_delay_ns, 0, NS_PER_S)},
	{BOOL(unconnected)},
	{BOOL(verify)},
	{INT(client_cpu, -1, CPUS_MAX - 1)},
	{INT(server_cpu, -1, CPUS_MAX - 1)},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void plan_default(struct load_plan *plan)
{
	*plan = (struct load_plan){
		.bytes = 64,
		.duration_ns = 2ULL * NS_PER_S,
		.warmup_trips = 1000,
		.warmup_ns = 400ULL * NS_PER_MS,
		.timeout_ns = NS_PER_S,
		.client_cpu = -1,
		.server_cpu = -1,
	};
}

static int64_t get(const struct load_plan *plan, const struct field *field)
{
	const char *at = (const char *)plan + field->offset;
	uint64_t wide;

	switch (field->type) {
	case FIELD_U64:
		wide = *(const uint64_t *)at;
		return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
	case FIELD_BOOL:
		return *(const bool *)at;
	default:
		return *(const int *)at;
	}
}

static void set(struct load_plan *plan, const struct field *field, int64_t value)
{
	char *at = (char *)plan + field->offset;

	switch (field->type) {
	case FIELD_U64:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case FIELD_BOOL:
		*(bool *)at = value;
		break;
	default:
		*(int *)at = (int)value;
	}
}

static int check_field(const struct field *field, int64_t value)
{
	if (value >= field->min && value <= field->max)
		return 0;
	return err_set(-ERANGE, "%s must be between %lld and %lld, got %lld", field->name,
		       (long long)field->min, (long long)field->max, (long long)value);
}

int plan_check(const struct load_plan *plan)
{
	for (const struct field *f = fields; f < fields + FIELDS; f++) {
		int rc = check_field(f, get(plan, f));

		if (rc)
			return rc;
	}
	if (plan->proto == PLAN_UDP && plan->bytes > PLAN_UDP_BYTES_MAX)
		return err_set(-ERANGE,
			       "bytes must be at most %llu with UDP, got %llu; "
			       "TCP takes up to %llu",
			       PLAN_UDP_BYTES_MAX, (unsigned long long)plan->bytes,
			       PLAN_TCP_BYTES_MAX);
	if (plan->proto == PLAN_TCP && plan->unconnected)
		return err_set(-EINVAL, "unconnected sockets exist with UDP only");
	if (!plan->iterations && !plan->duration_ns)
		return err_set(-EINVAL,
			       "there is nothing to measure: neither iterations nor a time");
	return 0;
}

static json_t *field_to_json(const struct field *field, int64_t value)
{
	switch (field->type) {
	case FIELD_BOOL:
		return json_boolean(value);
	case FIELD_WORD:
		return json_string(field->words[value]);
	default:
		return json_integer(value);
	}
}

json_t *plan_to_json(const struct load_plan *plan)
{
	json_t *object = json_object();

	for (const struct field *f = fields; object && f < fields + FIELDS; f++) {
		if (!json_object_set_new(object, f->name, field_to_json(f, get(plan, f))))
			continue;
		json_decref(object);
		object = NULL;
	}
	return object;
}

/* -EINVAL when the value is of another type than the field, or a word it does not know. */
static int field_from_json(const struct field *field, const json_t *json, int64_t *value)
{
	if (field->type == FIELD_BOOL && json_is_boolean(json)) {
		*value = json_is_true(json);
		return 0;
	}
	if ((field->type == FIELD_U64 || field->type == FIELD_INT) && json_is_integer(json)) {
		*value = json_integer_value(json);
		return 0;
	}
	if (field->type == FIELD_WORD && json_is_string(json)) {
		for (*value = 0; field->words[*value]; (*value)++)
			if (!strcmp(field->words[*value], json_string_value(json)))
				return 0;
	}
	return -EINVAL;
}

int plan_from_json(const json_t *object, struct load_plan *plan)
{
	if (!json_is_object(object))
		return err_set(-EINVAL, "the plan is not a JSON object");
	for (const struct field *f = fields; f < fields + FIELDS; f++) {
		const json_t *json = json_object_get(object, f->name);
		int64_t value;
		int rc;

		if (!json)
			return err_set(-EINVAL, "the plan lacks the field '%s'", f->name);
		if (field_from_json(f, json, &value))
			return err_set(-EINVAL, "the plan's field '%s' has a wrong type or word",
				       f->name);
		rc = check_field(f, value); /* before it is cut to the width of an int */
		if (rc)
			return rc;
		set(plan, f, value);
	}
	if (json_object_size(object) != FIELDS)
		return err_set(-EINVAL, "the plan has fields that are not known here");
	return plan_check(plan);
}
