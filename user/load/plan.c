// SPDX-License-Identifier: GPL-2.0-only
#include "load/plan.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "base/cpus.h"
#include "base/error.h"
#include "base/place.h"
#include "load/clock.h"
#include "load/io.h"
#include "load/message.h"
#include "load/peer.h"

enum field_type { FIELD_U64, FIELD_INT, FIELD_BOOL, FIELD_WORD, FIELD_TEXT, FIELD_WRITES };

/* A word is kept as its index in `words`. */
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	int64_t min, max;
	const char *const *words;
};

const char *const plan_proto_names[] = {"tcp", "udp", "mcast", "raw", "unix", NULL};
const char *const plan_cork_names[] = {"off", "flush", "hold", NULL};
static const char *const modes[] = {"echo", "sink", NULL};
static const char *const families[] = {"any", "ipv4", "ipv6", NULL};

#define DAY_NS (24LL * 3600 * NS_PER_S)

#define U64(f, min, max)    #f, FIELD_U64, offsetof(struct load_plan, f), min, max, NULL
#define INT(f, min, max)    #f, FIELD_INT, offsetof(struct load_plan, f), min, max, NULL
#define BOOL(f)             #f, FIELD_BOOL, offsetof(struct load_plan, f), 0, 1, NULL
#define WORD(f, max, words) #f, FIELD_WORD, offsetof(struct load_plan, f), 0, max, words

#define TEXT(f)   #f, FIELD_TEXT, offsetof(struct load_plan, f), 0, 0, NULL
#define WRITES(f) #f, FIELD_WRITES, offsetof(struct load_plan, f), 1, PLAN_TCP_BYTES_MAX, NULL

static const struct field fields[] = {
	{WORD(proto, PLAN_PROTOS - 1, plan_proto_names)},
	{WORD(mode, PLAN_SINK, modes)},
	{WORD(family, PLAN_IPV6, families)},
	{U64(bytes, 1, PLAN_TCP_BYTES_MAX)},
	{U64(reply_bytes, 0, PLAN_TCP_BYTES_MAX)},
	{WRITES(writes)},
	{WRITES(reply_writes)},
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
	{INT(numa, -1, PLACE_NODES_MAX - 1)},
	{INT(fifo, 0, PLACE_FIFO_MAX)},
	{BOOL(lock_memory)},
	{BOOL(crr)},
	{BOOL(receive_first)},
	{WORD(io, IO_METHODS - 1, io_method_names)},
	{WORD(server_io, IO_METHODS - 1, io_method_names)},
	{U64(polls, 0, 1000000000)},
	{U64(sndbuf, 0, 1 << 30)},
	{U64(rcvbuf, 0, 1 << 30)},
	{U64(mss, 0, 65535)},
	{U64(busy_poll_us, 0, 1000000)},
	{INT(tos, -1, 255)},
	{WORD(cork, PLAN_CORK_HOLD, plan_cork_names)},
	{BOOL(nodelay)},
	{BOOL(quickack)},
	{TEXT(congestion)},
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
		.numa = -1,
		.polls = 1000,
		.depth = 1,
		.tos = -1,
		.nodelay = true,
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

bool plan_datagrams(const struct load_plan *plan)
{
	return plan->proto != PLAN_TCP && plan->proto != PLAN_UNIX;
}

bool plan_open_loop(const struct load_plan *plan)
{
	return plan->rate || plan->playback;
}

bool plan_overlaps(const struct load_plan *plan)
{
	return plan_open_loop(plan) || plan->depth > 1;
}

uint64_t plan_reply_bytes(const struct load_plan *plan)
{
	return plan->reply_bytes ? plan->reply_bytes : plan->bytes;
}

static int nth_cpu(const struct plan_cpus *cpus, int otherwise, unsigned int n)
{
	return cpus->count ? cpus->cpu[n % (unsigned int)cpus->count] : otherwise;
}

int plan_client_cpu(const struct load_plan *plan, unsigned int n)
{
	return nth_cpu(&plan->client_cpus, plan->client_cpu, n);
}

int plan_server_cpu(const struct load_plan *plan, unsigned int n)
{
	return nth_cpu(&plan->server_cpus, plan->server_cpu, n);
}

uint64_t plan_bytes_max(const struct load_plan *plan)
{
	return plan->reply_bytes > plan->bytes ? plan->reply_bytes : plan->bytes;
}

int plan_traced_proto(const struct load_plan *plan)
{
	if (plan->crr)
		return 0;
	switch (plan->proto) {
	case PLAN_TCP:
		return IPPROTO_TCP;
	case PLAN_UDP:
	case PLAN_MULTICAST:
		return IPPROTO_UDP;
	default:
		return 0;
	}
}

uint64_t plan_writes_bytes(const struct plan_writes *writes)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < writes->count; i++)
		sum += writes->bytes[i];
	return sum;
}

static int check_writes(const struct plan_writes *writes, uint64_t bytes, const char *what)
{
	uint64_t sum;

	if (writes->count > PLAN_WRITES_MAX)
		return err_set(-ERANGE, "%s: at most %d writes", what, PLAN_WRITES_MAX);
	sum = plan_writes_bytes(writes);
	if (!writes->count || sum == bytes)
		return 0;
	return err_set(-EINVAL, "%s: they sum to %llu bytes, the message has %llu", what,
		       (unsigned long long)sum, (unsigned long long)bytes);
}

static int check_sizes(const struct load_plan *plan)
{
	uint64_t reply = plan_reply_bytes(plan);
	int rc;

	if (plan_datagrams(plan) && plan->bytes > PLAN_UDP_BYTES_MAX)
		return err_set(-ERANGE,
			       "bytes must be at most %llu with UDP, got %llu; "
			       "TCP takes up to %llu",
			       PLAN_UDP_BYTES_MAX, (unsigned long long)plan->bytes,
			       PLAN_TCP_BYTES_MAX);
	if (plan_datagrams(plan) && reply > plan->bytes)
		return err_set(
			-ERANGE,
			"a datagram's reply must not be larger than its request (%llu bytes), so that "
			"no server can be made to flood others",
			(unsigned long long)plan->bytes);
	if (plan->proto == PLAN_RAW && reply < sizeof(struct message_header))
		return err_set(-ERANGE, "raw messages have at least %zu bytes",
			       sizeof(struct message_header));
	if (plan_datagrams(plan) && (plan->writes.count || plan->reply_writes.count))
		return err_set(-EINVAL, "a datagram is one write");
	rc = check_writes(&plan->writes, plan->bytes, "writes");
	return rc ? rc : check_writes(&plan->reply_writes, reply, "reply_writes");
}

static int check_fit(const struct load_plan *plan)
{
	bool tcp = plan->proto == PLAN_TCP;

	if (plan->unconnected && plan->proto != PLAN_UDP)
		return err_set(-EINVAL, "unconnected sockets exist with UDP only");
	if ((plan->crr || plan->mss || plan->quickack || plan->cork || !plan->nodelay ||
	     plan->congestion[0]) &&
	    !tcp)
		return err_set(
			-EINVAL,
			"crr, mss, quickack, cork, no-nodelay and congestion exist with TCP only");
	if (plan->receive_first && (plan_datagrams(plan) || plan->crr))
		return err_set(-EINVAL, "receive-first needs a stream that stays: TCP or unix");
	if (plan->proto == PLAN_MULTICAST && plan->family == PLAN_IPV6)
		return err_set(-EINVAL, "multicast runs over IPv4 only");
	if (plan->crr && (plan->io || plan->server_io))
		return err_set(-EINVAL, "crr uses blocking calls only");
	if ((plan->io == IO_URING_FIXED || plan->server_io == IO_URING_FIXED) &&
	    (plan->unconnected || plan->proto == PLAN_MULTICAST || plan->proto == PLAN_RAW))
		return err_set(-EINVAL,
			       "registered buffers need a connected TCP, UDP or unix socket");
	if (!plan->iterations && !plan->duration_ns)
		return err_set(-EINVAL,
			       "there is nothing to measure: neither iterations nor a time");
	return 0;
}

/* Without a control connection the other end does what it always does. */
static int check_peer(const struct load_plan *plan)
{
	const struct peer_info *peer = &peer_infos[plan->peer];

	if (plan->peer == PEER_LAYOVER)
		return 0;
	if (plan->proto != PLAN_TCP && plan->proto != PLAN_UDP)
		return err_set(-EINVAL, "%s is spoken to by TCP or UDP", peer->name);
	if (plan->bytes < peer->minimum || plan->bytes > PLAN_UDP_BYTES_MAX)
		return err_set(-ERANGE, "messages for %s have %llu to %llu bytes", peer->name,
			       (unsigned long long)peer->minimum, PLAN_UDP_BYTES_MAX);
	if (plan->server_cpu >= 0 || plan->server_io || plan->server_delay_ns ||
	    plan->reply_bytes || plan->reply_writes.count || plan->receive_first || plan->crr ||
	    plan->token || plan->shutdown_server)
		return err_set(
			-EINVAL,
			"%s takes no settings: leave out the server's CPU, I/O method and delay, a size "
			"of the reply, receive-first, crr, token-file and shutdown-server",
			peer->name);
	return 0;
}

static int check_cpus(const struct plan_cpus *cpus, int cpu, const char *what)
{
	if (!cpus->count || cpu == cpus->cpu[0])
		return 0;
	return err_set(-EINVAL, "choose one of %s-cpu and %s-cpus", what, what);
}

/* What only the client knows of. */
static int check_overlap(const struct load_plan *plan)
{
	uint64_t bytes = plan->bytes + plan_reply_bytes(plan);

	if (!plan_overlaps(plan))
		return 0;
	if (plan->crr || plan->verify || plan->receive_first)
		return err_set(-EINVAL,
			       "crr, verify and receive-first go with one message at a time only");
	if ((plan->rate != 0) + (plan->depth > 1) + (plan->playback != NULL) > 1)
		return err_set(-EINVAL, "choose one of rate, depth and playback");
	if (plan->depth == 1 && plan->io >= IO_URING)
		return err_set(-EINVAL,
			       "an open loop sends and receives in two threads; io_uring has one");
	if (plan->playback && !plan_datagrams(plan))
		return err_set(
			-EINVAL,
			"playback sends messages of different sizes: datagrams only, add --udp");
	if (plan_datagrams(plan) && plan_reply_bytes(plan) < 2 &&
	    plan->depth > PLAN_WINDOW_ONE_BYTE)
		return err_set(
			-ERANGE,
			"depth: only %d datagrams of one byte can be told apart; use 2 bytes",
			PLAN_WINDOW_ONE_BYTE);
	/* Both ends would wait until the other one reads. A unix socket's buffer holds so many messages, however short. */
	if (plan->proto == PLAN_UNIX && plan->depth > PLAN_WINDOW_UNIX)
		return err_set(-ERANGE, "depth: a unix socket's buffer holds at most %d messages",
			       PLAN_WINDOW_UNIX);
	if (plan->depth > 1 && !plan_datagrams(plan) && plan->depth * bytes > PLAN_WINDOW_MAX)
		return err_set(
			-ERANGE,
			"depth: %llu messages of %llu bytes both ways are more than %d bytes",
			(unsigned long long)plan->depth, (unsigned long long)bytes,
			PLAN_WINDOW_MAX);
	return 0;
}

int plan_check(const struct load_plan *plan)
{
	int rc = 0;

	for (const struct field *f = fields; !rc && f < fields + FIELDS; f++)
		if (f->type < FIELD_TEXT)
			rc = check_field(f, get(plan, f));
	if (!rc)
		rc = check_sizes(plan);
	if (!rc)
		rc = check_fit(plan);
	if (!rc)
		rc = check_peer(plan);
	if (!rc)
		rc = check_cpus(&plan->client_cpus, plan->client_cpu, "client");
	if (!rc)
		rc = check_cpus(&plan->server_cpus, plan->server_cpu, "server");
	return rc ? rc : check_overlap(plan);
}

static json_t *writes_to_json(const struct plan_writes *writes)
{
	json_t *list = json_array();

	for (uint64_t i = 0; i < writes->count; i++)
		json_array_append_new(list, json_integer((json_int_t)writes->bytes[i]));
	return list;
}

static json_t *field_to_json(const struct load_plan *plan, const struct field *field)
{
	const void *at = (const char *)plan + field->offset;

	switch (field->type) {
	case FIELD_BOOL:
		return json_boolean(get(plan, field));
	case FIELD_WORD:
		return json_string(field->words[get(plan, field)]);
	case FIELD_TEXT:
		return json_string(at);
	case FIELD_WRITES:
		return writes_to_json(at);
	default:
		return json_integer(get(plan, field));
	}
}

json_t *plan_to_json(const struct load_plan *plan)
{
	json_t *object = json_object();

	for (const struct field *f = fields; object && f < fields + FIELDS; f++) {
		if (!json_object_set_new(object, f->name, field_to_json(plan, f)))
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

/* The types that are no number. */
static int text_from_json(const struct field *field, const json_t *json, char *text)
{
	if (!json_is_string(json) || json_string_length(json) >= PLAN_WORD_MAX)
		return err_set(-EINVAL, "the plan's field '%s' is no short text", field->name);
	memcpy(text, json_string_value(json), json_string_length(json) + 1);
	return 0;
}

static int writes_from_json(const struct field *field, const json_t *json,
			    struct plan_writes *writes)
{
	int rc = 0;

	if (!json_is_array(json) || json_array_size(json) > PLAN_WRITES_MAX)
		return err_set(-EINVAL, "the plan's field '%s' is no list of at most %d sizes",
			       field->name, PLAN_WRITES_MAX);
	writes->count = json_array_size(json);
	for (size_t i = 0; !rc && i < writes->count; i++) {
		json_int_t bytes = json_integer_value(json_array_get(json, i));

		writes->bytes[i] = (uint64_t)bytes;
		rc = check_field(field, bytes);
	}
	return rc;
}

static int number_from_json(const struct field *field, const json_t *json, struct load_plan *plan)
{
	int64_t value;
	int rc;

	if (field_from_json(field, json, &value))
		return err_set(-EINVAL, "the plan's field '%s' has a wrong type or word",
			       field->name);
	rc = check_field(field, value); /* before it is cut to the width of an int */
	if (!rc)
		set(plan, field, value);
	return rc;
}

int plan_from_json(const json_t *object, struct load_plan *plan)
{
	if (!json_is_object(object))
		return err_set(-EINVAL, "the plan is not a JSON object");
	plan_default(plan); /* what stays on the other side is not in it */
	for (const struct field *f = fields; f < fields + FIELDS; f++) {
		const json_t *json = json_object_get(object, f->name);
		void *at = (char *)plan + f->offset;
		int rc;

		if (!json)
			return err_set(-EINVAL, "the plan lacks the field '%s'", f->name);
		if (f->type == FIELD_TEXT)
			rc = text_from_json(f, json, at);
		else if (f->type == FIELD_WRITES)
			rc = writes_from_json(f, json, at);
		else
			rc = number_from_json(f, json, plan);
		if (rc)
			return rc;
	}
	if (json_object_size(object) != FIELDS)
		return err_set(-EINVAL, "the plan has fields that are not known here");
	return plan_check(plan);
}
