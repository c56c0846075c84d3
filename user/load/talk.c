// SPDX-License-Identifier: GPL-2.0-only
#include "load/talk.h"

#include "load/interface.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/version.h"
#include "load/clock.h"
#include "load/control.h"

#define FRAME_NS ((uint64_t)CONTROL_FRAME_S * NS_PER_S)

json_t *talk_frame(const char *type)
{
	return json_pack("{s:s, s:i, s:s}", "type", type, "protocol", LAYOVER_PROTOCOL, "version",
			 LAYOVER_VERSION);
}

/* --- tracing ----------------------------------------------------------------------------- */

/* The mask of a list of hooks; names that are not known here are passed over. */
static int read_mask(const json_t *request, const char *key, uint32_t *mask)
{
	struct records_layout layout;
	int rc = records_layout_from_json(json_object_get(request, key), &layout);

	if (!rc)
		*mask = records_hooks(&layout);
	return rc;
}

static void stop_tracing(struct talk *talk)
{
	if (!talk->tracing)
		return;
	talk->tracing = false;
	talk->tracer->stop(talk->tracer->arg);
	atomic_store(&talk->tracer->busy, false);
}

static int start_tracing(struct talk *talk)
{
	struct tracer *tracer = talk->tracer;
	uint32_t hooks;
	int rc;

	if (!tracer)
		return err_set(-EOPNOTSUPP, "this server does not trace");
	if (atomic_exchange(&tracer->busy, true))
		return err_set(-EBUSY, "the server is busy tracing for another client");
	rc = tracer->start(tracer->arg, &talk->wish, &hooks);
	if (rc) {
		atomic_store(&tracer->busy, false);
		return rc;
	}
	talk->tracing = true;
	records_layout(hooks, &talk->layout);
	return 0;
}

/* That it cannot trace is an answer, not the session's end. */
static int answer_trace(struct talk *talk, const json_t *request)
{
	json_t *answer;
	int rc = read_mask(request, "with", &talk->wish.with);

	if (!rc)
		rc = read_mask(request, "without", &talk->wish.without);
	if (!rc && talk->tracing)
		rc = err_set(-EPROTO, "the client asked to trace twice");
	if (rc)
		return rc;
	rc = start_tracing(talk);
	answer = talk_frame("trace");
	json_object_set_new(answer, "traced", json_boolean(!rc));
	if (rc)
		json_object_set_new(answer, "reason", json_string(err_text(rc)));
	else
		json_object_set_new(answer, "hooks", records_layout_to_json(&talk->layout));
	err_clear();
	return control_send(talk->fd, FRAME_NS, answer);
}

/* --- records ----------------------------------------------------------------------------- */

struct stream {
	int fd;
	struct records_header header;
	struct records_body body;
};

static int send_body(struct stream *stream)
{
	records_end(&stream->body, &stream->header);
	return control_send_bytes(stream->fd, FRAME_NS, stream->body.bytes, stream->body.size);
}

static int stream_record(void *arg, const struct turn_record *record)
{
	struct stream *stream = arg;
	int rc;

	if (record->role != ROLE_SERVER || records_put(&stream->body, record))
		return 0;
	rc = send_body(stream);
	records_begin(&stream->body, stream->body.layout);
	records_put(&stream->body, record);
	return rc;
}

static int answer_records(struct talk *talk, const json_t *request)
{
	struct tracer *tracer = talk->tracer;
	struct stream *stream;
	int rc;

	if (!talk->tracing)
		return err_set(-EPROTO, "the client asked for records of a session without them");
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return err_set(-ENOMEM, "no memory for a frame of records");
	stream->fd = talk->fd;
	stream->header.clock = clock_ns();
	records_begin(&stream->body, &talk->layout);
	rc = tracer->drain(tracer->arg, stream_record, stream, &stream->header.counters);
	if (!rc)
		rc = tracer->attach(tracer->arg, json_is_true(json_object_get(request, "attach")));
	stream->header.last = true;
	if (!rc)
		rc = send_body(stream);
	free(stream);
	return rc;
}

/* --- counts ------------------------------------------------------------------------------ */

/* What came so far, by our own count and by the interface's. */
static int answer_count(const struct talk *talk)
{
	json_t *answer = talk_frame("count");
	struct interface_counts counts;

	json_object_set_new(answer, "messages",
			    json_integer((json_int_t)atomic_load(&talk->echo->messages)));
	json_object_set_new(answer, "bytes",
			    json_integer((json_int_t)atomic_load(&talk->echo->bytes)));
	if (interface_count(talk->interface, &counts) == 0) {
		json_object_set_new(answer, "interface", json_string(talk->interface));
		json_object_set_new(answer, "rx_packets",
				    json_integer((json_int_t)counts.rx_packets));
		json_object_set_new(answer, "rx_bytes", json_integer((json_int_t)counts.rx_bytes));
	}
	return control_send(talk->fd, FRAME_NS, answer);
}

/* --- noise ------------------------------------------------------------------------------- */

/* What has happened to the echo loop's thread since the last question; null while it is not there yet. */
static int answer_noise(struct talk *talk)
{
	json_t *answer = talk_frame("noise");
	pid_t tid = atomic_load(&talk->echo->tid);
	struct noise noise;

	if (tid) {
		if (!talk->watch.tid)
			noise_begin(&talk->watch, tid, talk->interface);
		noise_end(&talk->watch, &noise);
		noise_begin(&talk->watch, tid, talk->interface);
	}
	json_object_set_new(answer, "noise", tid ? noise_to_json(&noise) : json_null());
	return control_send(talk->fd, FRAME_NS, answer);
}

/* --- the connection ---------------------------------------------------------------------- */

/* Waits for the client's next word. 1: there is one, 0: it has nothing more to say, -ETIME: the time is over. */
static int wait_word(const struct talk *talk)
{
	struct pollfd pfd = {.fd = talk->fd, .events = POLLIN};
	char byte;
	int n;

	do {
		uint64_t now = clock_ns();
		struct timespec left =
			clock_timespec(talk->until_ns > now ? talk->until_ns - now : 0);

		n = ppoll(&pfd, 1, talk->until_ns ? &left : NULL, NULL);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIME;
	return recv(talk->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int answer(struct talk *talk)
{
	json_t *request;
	int rc = control_receive(talk->fd, FRAME_NS, &request);

	if (rc)
		return rc;
	if (!strcmp(control_type(request), "trace"))
		rc = answer_trace(talk, request);
	else if (!strcmp(control_type(request), "records"))
		rc = answer_records(talk, request);
	else if (!strcmp(control_type(request), "noise"))
		rc = answer_noise(talk);
	else if (!strcmp(control_type(request), "count"))
		rc = answer_count(talk);
	else
		rc = err_set(-EPROTO, "the client sent a frame that was not expected");
	json_decref(request);
	return rc;
}

int talk_run(struct talk *talk)
{
	int rc;

	while ((rc = wait_word(talk)) > 0) {
		rc = answer(talk);
		if (rc)
			break;
	}
	stop_tracing(talk);
	noise_drop(&talk->watch);
	return rc;
}
