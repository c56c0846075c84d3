// SPDX-License-Identifier: GPL-2.0-only
/* The driver's parts that need no network: plan, frames, messages, addresses, samples. */
#include <errno.h>
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
#include "load/plan.h"
#include "load/samples.h"

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
	static const char *const bad[] = {"",	   ":80",    "[]:80",	   "[::1",   "[::1]80",
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
		cmocka_unit_test(numbers_are_cut_to_the_message),
		cmocka_unit_test(payload_tells_trips_apart),
		cmocka_unit_test(addresses_are_split),
		cmocka_unit_test(samples_grow_and_keep),
		cmocka_unit_test(samples_are_touched_beforehand),
		cmocka_unit_test(samples_survive_a_lack_of_memory),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
