// SPDX-License-Identifier: GPL-2.0-only
/* The driver's parts that need no network: plan, frames, messages, addresses, samples. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/version.h"
#include "load/address.h"
#include "load/clock.h"
#include "load/control.h"
#include "load/message.h"
#include "load/noise.h"
#include "load/plan.h"
#include "load/records.h"
#include "load/remote.h"
#include "load/samples.h"
#include "load/talk.h"

/* --- plan
 * ----------------------------------------------------------------------------------------- */

static void plan_survives_json(void **state)
{
	struct load_plan plan, back;
	json_t *json, *again;

	(void)state;
	plan_default(&plan);
	plan.proto = PLAN_UDP;
	plan.family = PLAN_IPV6;
	plan.bytes = PLAN_UDP_BYTES_MAX;
	plan.iterations = 1000003;
	plan.unconnected = plan.verify = true;
	plan.server_cpu = 17;
	json = plan_to_json(&plan);
	assert_int_equal(plan_from_json(json, &back), 0);
	again = plan_to_json(&back);
	assert_true(json_equal(json, again));
	assert_int_equal(json_integer_value(json_object_get(again, "iterations")), 1000003);
	assert_string_equal(json_string_value(json_object_get(again, "family")), "ipv6");
	json_decref(again);
	json_decref(json);
}

/* Applies one change to the default plan's JSON; the result of reading it. */
static int read_changed(const char *key, json_t *value)
{
	struct load_plan plan;
	json_t *json;
	int rc;

	plan_default(&plan);
	json = plan_to_json(&plan);
	if (value)
		json_object_set_new(json, key, value);
	else
		json_object_del(json, key);
	err_clear();
	rc = plan_from_json(json, &plan);
	json_decref(json);
	return rc;
}

static void plan_refuses_what_is_out_of_range(void **state)
{
	static const struct {
		const char *key;
		json_int_t value;
	} rows[] = {{"bytes", 0},
		    {"bytes", PLAN_TCP_BYTES_MAX + 1},
		    {"bytes", -1},
		    {"timeout_ns", 0},
		    {"server_delay_ns", 1LL + NS_PER_S},
		    {"server_cpu", -2},
		    {"server_cpu", 1LL << 32}, /* would be CPU 0 in an int */
		    {"client_cpu", 1024}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_changed(rows[i].key, json_integer(rows[i].value)), -ERANGE);
		assert_non_null(strstr(err_text(0), rows[i].key));
	}
}

static void plan_refuses_what_is_malformed(void **state)
{
	struct load_plan plan;

	(void)state;
	assert_int_equal(read_changed("bytes", NULL), -EINVAL);
	assert_int_equal(read_changed("bytes", json_string("64")), -EINVAL);
	assert_int_equal(read_changed("verify", json_integer(1)), -EINVAL);
	assert_int_equal(read_changed("proto", json_string("sctp")), -EINVAL);
	assert_int_equal(read_changed("proto", json_integer(1)), -EINVAL);
	assert_int_equal(read_changed("colour", json_true()), -EINVAL);
	assert_int_equal(plan_from_json(NULL, &plan), -EINVAL);
}

static void plan_refuses_what_does_not_fit_together(void **state)
{
	struct load_plan plan;

	(void)state;
	plan_default(&plan);
	assert_int_equal(plan_check(&plan), 0);
	plan.bytes = PLAN_UDP_BYTES_MAX + 1;
	assert_int_equal(plan_check(&plan), 0);
	plan.proto = PLAN_UDP;
	assert_int_equal(plan_check(&plan), -ERANGE);
	plan_default(&plan);
	plan.unconnected = true;
	assert_int_equal(plan_check(&plan), -EINVAL);
	plan_default(&plan);
	plan.duration_ns = 0;
	assert_int_equal(plan_check(&plan), -EINVAL);
}

/* --- frames
 * --------------------------------------------------------------------------------------- */

static size_t make_frame(unsigned char *frame, const char *body, uint32_t claimed)
{
	unsigned char header[] = {'L',
				  'A',
				  'Y',
				  'O',
				  (unsigned char)(claimed >> 24),
				  (unsigned char)(claimed >> 16),
				  (unsigned char)(claimed >> 8),
				  (unsigned char)claimed};

	memcpy(frame, header, sizeof(header));
	memcpy(frame + sizeof(header), body, strlen(body));
	return sizeof(header) + strlen(body);
}

static void frame_says_how_much_is_missing(void **state)
{
	static const char body[] = "{\"type\":\"hello\"}";
	unsigned char frame[64];
	size_t size = make_frame(frame, body, sizeof(body) - 1);
	json_t *object = NULL;

	(void)state;
	for (size_t have = 0; have < size; have++) {
		int missing = control_parse(frame, have, &object);
		size_t goal = have < CONTROL_HEADER ? CONTROL_HEADER : size;

		assert_int_equal(missing, goal - have);
		assert_null(object);
	}
	assert_int_equal(control_parse(frame, size, &object), 0);
	assert_string_equal(control_type(object), "hello");
	json_decref(object);
}

static void frame_refuses_garbage(void **state)
{
	static const char *const bodies[] = {
		"", "{", "[]", "1", "null", "{\"a\":1,\"a\":2}", "{}x", "{\"\xff\":1}"};
	unsigned char frame[64];
	json_t *object = NULL;

	(void)state;
	assert_int_equal(control_parse("G", 1, &object), -EPROTO);
	assert_int_equal(control_parse("LAYX", 4, &object), -EPROTO);
	assert_int_equal(control_parse("GET / HTTP/1.1\r\n", 16, &object), -EPROTO);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		size_t size = make_frame(frame, bodies[i], (uint32_t)strlen(bodies[i]));

		assert_int_equal(control_parse(frame, size, &object), -EPROTO);
		assert_null(object);
	}
}

static void frame_refuses_too_much(void **state)
{
	unsigned char frame[64];
	json_t *object = NULL;

	(void)state;
	make_frame(frame, "", CONTROL_FRAME_MAX);
	assert_int_equal(control_parse(frame, CONTROL_HEADER, &object), CONTROL_FRAME_MAX);
	make_frame(frame, "", CONTROL_FRAME_MAX + 1);
	assert_int_equal(control_parse(frame, CONTROL_HEADER, &object), -EMSGSIZE);
	make_frame(frame, "", UINT32_MAX);
	assert_int_equal(control_parse(frame, CONTROL_HEADER, &object), -EMSGSIZE);
}

static void frame_is_read_to_its_end_only(void **state)
{
	json_t *object;
	char rest[4];
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(control_send(fds[0], NS_PER_S, json_pack("{s:s}", "type", "data")), 0);
	assert_int_equal(write(fds[0], "raw", 3), 3);
	assert_int_equal(control_receive(fds[1], NS_PER_S, &object), 0);
	assert_string_equal(control_type(object), "data");
	json_decref(object);
	assert_int_equal(read(fds[1], rest, sizeof(rest)), 3);
	close(fds[0]);
	assert_int_equal(control_receive(fds[1], NS_PER_S, &object), -ECONNRESET);
	close(fds[1]);
}

static void frame_has_a_deadline(void **state)
{
	uint64_t begun = clock_ns(), took;
	json_t *object;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(write(fds[0], "LAYO", 4), 4);
	assert_int_equal(control_receive(fds[1], 50 * NS_PER_MS, &object), -ETIMEDOUT);
	took = clock_ns() - begun;
	assert_in_range(took, 50 * NS_PER_MS, NS_PER_S);
	close(fds[0]);
	close(fds[1]);
}

static void versions_are_both_named(void **state)
{
	json_t *same = json_pack("{s:i, s:s}", "protocol", LAYOVER_PROTOCOL, "version", "1");
	json_t *other = json_pack("{s:i, s:s}", "protocol", 977, "version", "9.8\x1b[31m");

	(void)state;
	assert_int_equal(control_check_version(same, "server"), 0);
	assert_int_equal(control_check_version(other, "server"), -EPROTO);
	assert_non_null(strstr(err_text(0), "protocol 977 (layover 9.8?[31m)"));
	assert_non_null(strstr(err_text(0), LAYOVER_VERSION));
	json_decref(same);
	json_decref(other);
}

static void session_ids_keep_64_bits(void **state)
{
	uint64_t ids[] = {2, 0x8000000000000000ULL, UINT64_MAX}, back;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		json_t *object = json_pack("{s:o}", "session", control_session(ids[i]));

		assert_int_equal(control_get_session(object, &back), 0);
		assert_true(back == ids[i]);
		json_object_set_new(object, "session", json_string("12"));
		assert_int_equal(control_get_session(object, &back), -EPROTO);
		json_decref(object);
	}
}

/* --- records of the server's end ---------------------------------------------------------- */

static uint64_t any64(void)
{
	return (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
}

static struct turn_record any_record(const struct records_layout *layout)
{
	struct turn_record record = {
		.send_id = any64(),
		.recv_id = any64(),
		.send_bytes = (uint32_t)any64(),
		.recv_bytes = (uint32_t)any64(),
		.writes = (uint16_t)any64(),
		.reads = (uint16_t)any64(),
		.flags = (uint8_t)any64(),
		.role = ROLE_SERVER,
	};

	for (int i = 0; i < layout->count; i++) {
		record.t[layout->hook[i]] = any64();
		record.cpu[layout->hook[i]] = (uint16_t)any64();
	}
	return record;
}

struct expected {
	const struct turn_record *records;
	size_t count;
};

static int expect_record(void *arg, const struct turn_record *record)
{
	struct expected *expected = arg;

	assert_memory_equal(record, expected->records + expected->count++, sizeof(*record));
	return 0;
}

static const struct records_header some_header = {
	.last = true, .clock = 0x123456789abcdef, .counters = {1ULL << 40, 2, UINT64_MAX}};

static void records_survive_the_way(void **state)
{
	static const uint32_t masks[] = {0, 1, 0x5555, (uint32_t)((1ULL << HOOKS) - 1)};
	struct records_body *body = malloc(sizeof(*body));
	struct turn_record records[RECORDS_PER_FRAME];

	(void)state;
	for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
		struct records_layout layout, theirs;
		struct expected expected = {records, 0};
		struct records_header header;
		json_t *names;

		records_layout(masks[m], &layout);
		assert_int_equal(records_hooks(&layout), masks[m]);
		names = records_layout_to_json(&layout);
		assert_int_equal(records_layout_from_json(names, &theirs), 0);
		json_decref(names);
		records_begin(body, &layout);
		for (int i = 0; i < RECORDS_PER_FRAME; i++) {
			records[i] = any_record(&layout);
			assert_true(records_put(body, &records[i]));
		}
		assert_false(records_put(body, &records[0]));
		records_end(body, &some_header);
		assert_int_equal(records_read(body->bytes, body->size, &theirs, &header,
					      expect_record, &expected),
				 0);
		assert_int_equal(expected.count, RECORDS_PER_FRAME);
		assert_memory_equal(&header.counters, &some_header.counters,
				    sizeof(header.counters));
		assert_true(header.last && header.clock == some_header.clock);
	}
	free(body);
}

/* The bytes themselves, so that both ends may differ in byte order and table of hooks. */
static void records_are_little_endian(void **state)
{
	static const unsigned char wanted[] = {1, 0, 0, 0, 1, 0, 1, 0, 8, 7, 6, 5, 4, 3, 2, 1};
	struct turn_record record = {.send_id = 0xa1a2, .flags = 1};
	struct records_body *body = malloc(sizeof(*body));
	struct records_layout layout;

	(void)state;
	records_layout(1u << HOOK_recv_exit, &layout);
	record.t[HOOK_recv_exit] = 0x0102030405060708;
	record.cpu[HOOK_recv_exit] = 0x0b0c;
	records_begin(body, &layout);
	records_put(body, &record);
	records_end(body, &(struct records_header){.clock = 0x0102030405060708});
	assert_int_equal(body->size, 40 + 32 + 8 + 2);
	assert_memory_equal(body->bytes, wanted, sizeof(wanted));
	assert_memory_equal(body->bytes + 40, "\xa2\xa1\0\0", 4);
	assert_memory_equal(body->bytes + 68, "\1\0\0\0", 4);
	assert_memory_equal(body->bytes + 72, "\x8\x7\x6\x5\x4\x3\x2\x1\xc\xb", 10);
	free(body);
}

static int take_any(void *arg, const struct turn_record *record)
{
	(void)arg;
	assert_int_equal(record->role, ROLE_SERVER);
	assert_int_equal(record->t[HOOK_copy], 0); /* not in any layout here */
	return 0;
}

/* A hook that only the server knows is passed over, the others keep their places. */
static void records_with_unknown_hooks(void **state)
{
	json_t *names = json_pack("[s,s,s]", "dev_xmit", "a_later_invention", "recv_exit");
	struct records_body *body = malloc(sizeof(*body));
	struct records_layout sent, read;
	struct turn_record record = {.role = ROLE_SERVER};
	struct records_header header;

	(void)state;
	assert_int_equal(records_layout_from_json(names, &read), 0);
	assert_int_equal(records_hooks(&read), 1u << HOOK_dev_xmit | 1u << HOOK_recv_exit);
	records_layout(1u << HOOK_dev_xmit | 1u << HOOK_copy | 1u << HOOK_recv_exit, &sent);
	record.t[HOOK_dev_xmit] = 5;
	record.t[HOOK_copy] = 6;
	record.t[HOOK_recv_exit] = 7;
	records_begin(body, &sent);
	records_put(body, &record);
	records_end(body, &some_header);
	assert_int_equal(records_read(body->bytes, body->size, &read, &header, take_any, NULL), 0);
	json_decref(names);
	free(body);
}

static void lists_of_hooks_are_checked(void **state)
{
	struct records_layout layout;
	json_t *many = json_array(), *numbers = json_pack("[s,i]", "copy", 1);

	(void)state;
	for (int i = 0; i < RECORDS_HOOKS_MAX; i++)
		json_array_append_new(many, json_string("copy"));
	assert_int_equal(records_layout_from_json(many, &layout), 0);
	json_array_append_new(many, json_string("copy"));
	assert_int_equal(records_layout_from_json(many, &layout), -EPROTO);
	assert_int_equal(records_layout_from_json(numbers, &layout), -EPROTO);
	assert_int_equal(records_layout_from_json(NULL, &layout), -EPROTO);
	json_decref(many);
	json_decref(numbers);
}

/* Cut anywhere, or with any byte changed: refused, or read as what it says; never beyond its end. */
static void records_refuse_garbage(void **state)
{
	struct records_body *body = malloc(sizeof(*body));
	struct records_layout layout;
	struct records_header header;
	struct turn_record record;

	(void)state;
	records_layout(1u << HOOK_irq | 1u << HOOK_recv_exit, &layout);
	record = any_record(&layout);
	records_begin(body, &layout);
	records_put(body, &record);
	records_end(body, &some_header);
	for (size_t size = 0; size <= body->size; size++) {
		unsigned char *cut = malloc(size + !size); /* the sanitizer sees its end */
		int rc;

		memcpy(cut, body->bytes, size);
		rc = records_read(cut, size, &layout, &header, take_any, NULL);
		assert_int_equal(rc, size == body->size ? 0 : -EPROTO);
		free(cut);
	}
	for (size_t at = 0; at < 16; at++) {
		unsigned char was = body->bytes[at];
		int rc;

		body->bytes[at] ^= 0x80;
		rc = records_read(body->bytes, body->size, &layout, &header, take_any, NULL);
		/* flags may grow, and a clock may show any time before its year 146 */
		assert_int_equal(rc, at == 2 || at == 3 || (at >= 8 && at < 15) ? 0 : -EPROTO);
		body->bytes[at] = was;
	}
	free(body);
}

static void frames_of_both_kinds(void **state)
{
	struct control_frame frame;
	json_t *object;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(control_send_bytes(fds[0], NS_PER_S, "\0\1\2", 3), 0);
	assert_int_equal(control_send(fds[0], NS_PER_S, json_pack("{s:s}", "type", "go")), 0);
	assert_int_equal(control_send_bytes(fds[0], NS_PER_S, "", 0), 0);
	assert_int_equal(control_send_bytes(fds[0], NS_PER_S, "x", 1), 0);
	assert_int_equal(control_receive_any(fds[1], NS_PER_S, &frame), 0);
	assert_int_equal(frame.size, 3);
	assert_memory_equal(frame.bytes, "\0\1\2", 3);
	control_release(&frame);
	assert_int_equal(control_receive_any(fds[1], NS_PER_S, &frame), 0);
	assert_null(frame.bytes);
	assert_string_equal(control_type(frame.object), "go");
	control_release(&frame);
	assert_int_equal(control_receive_any(fds[1], NS_PER_S, &frame), 0);
	assert_int_equal(frame.size, 0);
	control_release(&frame);
	assert_int_equal(control_receive(fds[1], NS_PER_S, &object), -EPROTO);
	assert_int_equal(control_send_bytes(fds[0], NS_PER_S, fds, CONTROL_FRAME_MAX + 1), -ENOMEM);
	close(fds[0]);
	close(fds[1]);
}

/* --- the conversation --------------------------------------------------------------------- */

enum { RECORDED = 1009 };

/* A tracer that has recorded RECORDED turns, every other one of a client. */
struct recorder {
	int starts, stops, drains, fail;
	bool attached;
};

static int recorder_start(void *arg, const struct tracer_wish *wish, uint32_t *hooks)
{
	struct recorder *recorder = arg;

	if (recorder->fail)
		return err_set(-EPERM, "it is not allowed");
	assert_int_equal(wish->without, 1u << HOOK_copy);
	recorder->starts++;
	recorder->attached = true;
	*hooks = 1u << HOOK_irq | 1u << HOOK_dev_xmit;
	return 0;
}

static int recorder_attach(void *arg, bool on)
{
	((struct recorder *)arg)->attached = on;
	return 0;
}

static int recorder_drain(void *arg, records_sink *sink, void *to,
			  struct records_counters *counters)
{
	struct recorder *recorder = arg;
	int rc = 0;

	for (int i = 0; i < 2 * RECORDED && !rc; i++) {
		struct turn_record record = {.role = i % 2 ? ROLE_CLIENT : ROLE_SERVER,
					     .send_id = (uint64_t)i};

		rc = sink(to, &record);
	}
	*counters = (struct records_counters){.dropped = (uint64_t)++recorder->drains};
	return rc;
}

static void recorder_stop(void *arg)
{
	((struct recorder *)arg)->stops++;
}

static void *talk_thread(void *arg)
{
	struct talk *talk = arg;

	talk_run(talk);
	shutdown(talk->fd, SHUT_RDWR);
	return NULL;
}

static int count_record(void *arg, const struct turn_record *record)
{
	int *count = arg;

	assert_int_equal(record->role, ROLE_SERVER);
	assert_int_equal(record->send_id, 2 * *count);
	++*count;
	return 0;
}

static void records_are_asked_for(void **state)
{
	struct recorder recorder = {0};
	struct tracer tracer = {.arg = &recorder,
				.start = recorder_start,
				.attach = recorder_attach,
				.drain = recorder_drain,
				.stop = recorder_stop};
	struct talk talk = {.tracer = &tracer};
	struct remote remote;
	pthread_t thread;
	int fds[2], count = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	talk.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, talk_thread, &talk), 0);
	assert_int_equal(remote_start(&remote, fds[0], 0, 1u << HOOK_copy), 0);
	assert_true(remote.traced && recorder.attached && atomic_load(&tracer.busy));
	assert_int_equal(remote_fetch(&remote, false, count_record, &count), 0);
	assert_int_equal(count, RECORDED);
	assert_false(recorder.attached);
	count = 0;
	assert_int_equal(remote_fetch(&remote, true, count_record, &count), 0);
	assert_int_equal(count, RECORDED);
	assert_int_equal(remote.counters.dropped, 2);
	assert_true(recorder.attached);
	/* One clock: the difference is 0, as well as an exchange can tell. */
	assert_true(remote.ahead_min <= 0 && remote.ahead_max >= 0);
	shutdown(fds[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	assert_int_equal(recorder.starts, 1);
	assert_int_equal(recorder.stops, 1);
	assert_false(atomic_load(&tracer.busy));
	close(fds[0]);
	close(fds[1]);
}

/* What a server answers that cannot trace: none, busy, not allowed. */
static void reasons_are_told(void **state)
{
	struct recorder recorder = {.fail = 1};
	struct tracer busy = {.arg = &recorder, .start = recorder_start, .busy = true};
	struct tracer refused = {.arg = &recorder, .start = recorder_start};
	struct {
		struct tracer *tracer;
		const char *words;
	} rows[] = {{NULL, "does not trace"}, {&busy, "busy"}, {&refused, "not allowed"}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct talk talk = {.tracer = rows[i].tracer};
		struct remote remote;
		pthread_t thread;
		int fds[2], count = 0;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		talk.fd = fds[1];
		assert_int_equal(pthread_create(&thread, NULL, talk_thread, &talk), 0);
		assert_int_equal(remote_start(&remote, fds[0], 0, 1u << HOOK_copy), 0);
		assert_false(remote.traced);
		assert_non_null(strstr(remote.reason, rows[i].words));
		assert_true(remote_fetch(&remote, true, count_record, &count) < 0);
		pthread_join(thread, NULL);
		close(fds[0]);
		close(fds[1]);
	}
	assert_true(atomic_load(&busy.busy) && !atomic_load(&refused.busy));
}

/* --- messages
 * ------------------------------------------------------------------------------------- */

static void numbers_are_cut_to_the_message(void **state)
{
	(void)state;
	for (uint64_t bytes = 1; bytes <= 20; bytes++) {
		unsigned char *message = message_alloc(bytes);
		uint64_t seq = 0x1122334455667788ULL, mask = message_seq_mask(bytes);

		assert_non_null(message);
		message_label(message, bytes, 0xaabbccdd99887766ULL);
		message_put_seq(message, seq);
		assert_int_equal(message[0], 0x88);
		assert_true(message_get_seq(message, mask) == (seq & mask));
		if (bytes >= 12)
			assert_memory_equal(message + 8, "\x66\x77\x88\x99", 4);
		if (bytes >= 16)
			assert_memory_equal(message + 12, "layo", 4);
		message_free(message, bytes);
	}
}

static void payload_tells_trips_apart(void **state)
{
	enum { BYTES = 1009 };
	unsigned char *a = message_alloc(BYTES), *b = message_alloc(BYTES);
	uint64_t at;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	message_fill(a, BYTES, 7);
	message_fill(b, BYTES, 7);
	assert_true(message_equal(a, b, BYTES, &at));
	b[BYTES - 1] ^= 1;
	assert_false(message_equal(a, b, BYTES, &at));
	assert_int_equal(at, BYTES - 1);
	message_fill(b, BYTES, 8);
	assert_false(message_equal(a, b, BYTES, &at));
	message_free(a, BYTES);
	message_free(b, BYTES);
}

/* --- addresses
 * ------------------------------------------------------------------------------------ */

static void addresses_are_split(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} rows[] = {{"192.0.2.7", "192.0.2.7", 1},
		    {"192.0.2.7:80", "192.0.2.7", 80},
		    {"name:65535", "name", 65535},
		    {"::1", "::1", 1},
		    {"[::1]", "::1", 1},
		    {"[::1]:7117", "::1", 7117},
		    {"[fe80::1%lo]:9", "fe80::1%lo", 9}};
	static const char *const bad[] = {"",      ":80",    "[]:80",      "[::1",   "[::1]80",
					  "host:", "host:0", "host:65536", "host:8o"};
	char host[ADDRESS_HOST_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint16_t port = 1;

		assert_int_equal(address_split(rows[i].text, host, &port), 0);
		assert_string_equal(host, rows[i].host);
		assert_int_equal(port, rows[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint16_t port = 1;

		assert_true(address_split(bad[i], host, &port) < 0);
	}
}

/* --- samples
 * -------------------------------------------------------------------------------------- */

static bool is_touched(const void *at, size_t bytes)
{
	size_t pages = bytes / (size_t)sysconf(_SC_PAGESIZE);
	unsigned char resident[512];

	assert_true(pages <= sizeof(resident));
	if (mincore((void *)(uintptr_t)at, bytes, resident))
		return false;
	for (size_t i = 0; i < pages; i++)
		if (!(resident[i] & 1))
			return false;
	return true;
}

static void samples_grow_and_keep(void **state)
{
	enum { MANY = 300007, CHUNK = 1009 };
	struct samples samples = {0};

	(void)state;
	while (samples.count < MANY) {
		assert_int_equal(samples_reserve(&samples, CHUNK), 0);
		assert_true(samples.capacity >= samples.count + CHUNK);
		for (size_t i = 0; i < CHUNK; i++) {
			samples.start_ns[samples.count] = samples.count * 3;
			samples.rtt_ns[samples.count] = samples.count * 7 + 1;
			samples.count++;
		}
	}
	for (size_t i = 0; i < samples.count; i++)
		assert_true(samples.start_ns[i] == i * 3 && samples.rtt_ns[i] == i * 7 + 1);
	samples_free(&samples);
	assert_null(samples.start_ns);
	assert_int_equal(samples.count, 0);
}

static void samples_are_touched_beforehand(void **state)
{
	struct samples samples = {0};
	size_t half;

	(void)state;
	assert_int_equal(samples_reserve(&samples, 1), 0);
	half = samples.capacity;
	assert_true(is_touched(samples.rtt_ns, half * sizeof(uint64_t)));
	assert_int_equal(samples_reserve(&samples, half + 1), 0);
	assert_true(is_touched(samples.start_ns + half, half * sizeof(uint64_t)));
	assert_true(is_touched(samples.rtt_ns + half, half * sizeof(uint64_t)));
	samples_free(&samples);
}

static void samples_survive_a_lack_of_memory(void **state)
{
	struct samples samples = {0};

	(void)state;
	assert_int_equal(samples_reserve(&samples, SIZE_MAX / 64), -ENOMEM);
	assert_int_equal(samples_reserve(&samples, 1), 0);
	samples.rtt_ns[samples.count++] = 5;
	assert_int_equal(samples_reserve(&samples, SIZE_MAX / 64), -ENOMEM);
	assert_int_equal(samples.rtt_ns[0], 5);
	samples_free(&samples);
}

/* --- noise
 * ---------------------------------------------------------------------------------------- */

/* CPU 1 is offline: it has no column. */
static const char interrupts_before[] =
	"           CPU0       CPU2\n"
	"  1:          5          7   IO-APIC   1-edge      i8042\n"
	" 24:        100        200   PCI-MSI 524288-edge      eth7-rx-0\n"
	" 25:         10         20   PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"
	"LOC:     111111     222222   Local timer interrupts\n";
static const char interrupts_after[] =
	"           CPU0       CPU2\n"
	"  1:          5          8   IO-APIC   1-edge      i8042\n"
	" 24:        150        290   PCI-MSI 524288-edge      eth7-rx-0\n"
	" 25:         11         70   PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"
	" 26:          0         30   IO-APIC   9-fasteoi   acpi,  b\x1b\x7f"
	"d\n"
	"LOC:     211111     322222   Local timer interrupts\n"
	"ERR:          3\n";

static void foreign_interrupts_are_named(void **state)
{
	struct noise noise = {0};

	(void)state;
	noise_interrupts(interrupts_before, interrupts_after, 2, "eth7", &noise);
	assert_int_equal(noise.irq_count, 3);
	assert_string_equal(noise.irqs[0].name, "virtio1-req.0");
	assert_int_equal(noise.irqs[0].count, 50);
	assert_string_equal(noise.irqs[1].name, "b??d");
	assert_int_equal(noise.irqs[1].count, 30);
	assert_string_equal(noise.irqs[2].name, "i8042");
	assert_int_equal(noise.irqs[2].count, 1);
	noise = (struct noise){0};
	noise_interrupts(interrupts_before, interrupts_after, 0, "", &noise);
	assert_int_equal(noise.irq_count, 2);
	assert_string_equal(noise.irqs[0].name, "eth7-rx-0");
	assert_int_equal(noise.irqs[0].cpu, 0);
	noise = (struct noise){0};
	noise_interrupts(interrupts_before, interrupts_after, 1, "", &noise);
	noise_interrupts("", interrupts_after, 1, "", &noise);
	noise_interrupts("CPU", "CPU0\n 1", 0, "", &noise);
	assert_int_equal(noise.irq_count, 0);
}

static void steal_time_is_a_cpus(void **state)
{
	static const char stat[] = "cpu  1 2 3 4 5 6 7 80 0 0\ncpu1 1 2 3 4 5 6 7 8 9 0\n"
				   "cpu11 0 0 0 0 0 0 0 900 0 0\nintr 5\n";

	(void)state;
	assert_int_equal(noise_steal(stat, 1), 80000000);
	assert_int_equal(noise_steal(stat, 11), 9000000000);
	assert_int_equal(noise_steal(stat, 0), 0);
	assert_int_equal(noise_steal(NULL, 0), 0);
	assert_int_equal(noise_steal("\ncpu0 1 2", 0), 0);
}

static void what_is_worth_a_sentence(void **state)
{
	struct noise_irq irq = {.count = 10};
	struct noise noise = {.steal_ns = 10000000, .wall_ns = 1000000000};

	(void)state;
	assert_true(noise_irq_counts(&irq, 10000));
	assert_false(noise_irq_counts(&irq, 11000));
	irq.count = 9;
	assert_false(noise_irq_counts(&irq, 1));
	assert_true(noise_steal_counts(&noise));
	noise.wall_ns = 11000000000;
	assert_false(noise_steal_counts(&noise));
	noise = (struct noise){.steal_ns = 9999999, .wall_ns = 1};
	assert_false(noise_steal_counts(&noise));
}

static void noise_survives_json(void **state)
{
	struct noise noise = {.known = true, .migrations = 3, .cpu = 1, .steal_ns = 7}, back;
	json_t *json, *odd;

	(void)state;
	noise_interrupts(interrupts_before, interrupts_after, 2, "", &noise);
	json = noise_to_json(&noise);
	assert_int_equal(noise_from_json(json, &back), 0);
	assert_true(back.known);
	assert_int_equal(back.migrations, 3);
	assert_int_equal(back.steal_ns, 7);
	assert_int_equal(back.irq_count, 4);
	assert_string_equal(back.irqs[0].name, "eth7-rx-0");
	json_object_set_new(json, "steal_ns", json_integer(-1));
	assert_int_equal(noise_from_json(json, &back), -EPROTO);
	json_decref(json);
	odd = json_pack("{s:[i,i,s], s:[{s:i}, i], s:i, s:i}", "cpus", -5, 5000, "x", "interrupts",
			"cpu", 99999, 3, "steal_ns", 0, "wall_ns", 0);
	assert_int_equal(noise_from_json(odd, &back), 0);
	assert_int_equal(back.cpu_count + back.irq_count, 0);
	assert_int_equal(back.migrations, -1);
	json_decref(odd);
	assert_int_equal(noise_from_json(NULL, &back), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_survives_json),
		cmocka_unit_test(plan_refuses_what_is_out_of_range),
		cmocka_unit_test(plan_refuses_what_is_malformed),
		cmocka_unit_test(plan_refuses_what_does_not_fit_together),
		cmocka_unit_test(frame_says_how_much_is_missing),
		cmocka_unit_test(frame_refuses_garbage),
		cmocka_unit_test(frame_refuses_too_much),
		cmocka_unit_test(frame_is_read_to_its_end_only),
		cmocka_unit_test(frame_has_a_deadline),
		cmocka_unit_test(versions_are_both_named),
		cmocka_unit_test(session_ids_keep_64_bits),
		cmocka_unit_test(records_survive_the_way),
		cmocka_unit_test(records_are_little_endian),
		cmocka_unit_test(records_with_unknown_hooks),
		cmocka_unit_test(lists_of_hooks_are_checked),
		cmocka_unit_test(records_refuse_garbage),
		cmocka_unit_test(frames_of_both_kinds),
		cmocka_unit_test(records_are_asked_for),
		cmocka_unit_test(reasons_are_told),
		cmocka_unit_test(numbers_are_cut_to_the_message),
		cmocka_unit_test(payload_tells_trips_apart),
		cmocka_unit_test(addresses_are_split),
		cmocka_unit_test(samples_grow_and_keep),
		cmocka_unit_test(samples_are_touched_beforehand),
		cmocka_unit_test(samples_survive_a_lack_of_memory),
		cmocka_unit_test(foreign_interrupts_are_named),
		cmocka_unit_test(steal_time_is_a_cpus),
		cmocka_unit_test(what_is_worth_a_sentence),
		cmocka_unit_test(noise_survives_json),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
