// SPDX-License-Identifier: GPL-2.0-only
#include "load/control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/version.h"
#include "load/clock.h"

static uint32_t get_be32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_be32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/*
 * The bytes missing until the frame can be looked at again, 0: it is complete. As soon as they show that
 * this is no frame: -EPROTO or -EMSGSIZE.
 */
static int frame_missing(const unsigned char *frame, size_t have, bool *binary)
{
	unsigned char json[4], other[4];
	size_t known = have < 4 ? have : 4, length;

	put_be32(json, CONTROL_MAGIC);
	put_be32(other, CONTROL_BINARY_MAGIC);
	*binary = memcmp(frame, json, known) != 0;
	if (*binary && memcmp(frame, other, known) != 0)
		return err_set(-EPROTO, "the peer does not speak layover's protocol");
	if (have < CONTROL_HEADER)
		return (int)(CONTROL_HEADER - have);
	length = get_be32(frame + 4);
	if (length > CONTROL_FRAME_MAX)
		return err_set(-EMSGSIZE, "the peer sent a frame of %zu bytes, more than %d",
			       length, CONTROL_FRAME_MAX);
	return have < CONTROL_HEADER + length ? (int)(CONTROL_HEADER + length - have) : 0;
}

static int parse_json(const unsigned char *frame, size_t have, json_t **object)
{
	*object = json_loadb((const char *)frame + CONTROL_HEADER, have - CONTROL_HEADER,
			     JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(*object))
		return 0;
	json_decref(*object);
	*object = NULL;
	return err_set(-EPROTO, "the peer sent a frame that is not a JSON object");
}

int control_parse(const void *bytes, size_t have, json_t **object)
{
	bool binary;
	int rc = frame_missing(bytes, have, &binary);

	if (!rc && binary)
		return err_set(-EPROTO, "the peer sent a binary frame that was not expected");
	return rc ? rc : parse_json(bytes, have, object);
}

/* Waits until fd is ready or the deadline (CLOCK_MONOTONIC ns) has passed. */
static int wait_ready(int fd, short events, uint64_t deadline)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = clock_ns();
		struct timespec left = clock_timespec(deadline > now ? deadline - now : 0);
		int n = ppoll(&pfd, 1, &left, NULL);

		if (n > 0)
			return 0;
		if (n == 0)
			return err_set(-ETIMEDOUT, "the peer did not answer in time");
		if (errno != EINTR)
			return err_set(-errno, "waiting for the peer failed: %s", strerror(errno));
	}
}

static int receive_bytes(int fd, unsigned char *to, size_t want, uint64_t deadline)
{
	while (want) {
		int rc = wait_ready(fd, POLLIN, deadline);
		ssize_t n;

		if (rc)
			return rc;
		n = recv(fd, to, want, MSG_DONTWAIT);
		if (n == 0)
			return err_set(-ECONNRESET, "the peer closed the connection");
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_set(-errno, "reading from the peer failed: %s", strerror(errno));
		if (n > 0) {
			to += n;
			want -= (size_t)n;
		}
	}
	return 0;
}

/* Reads a whole frame into memory of its own; *have are its bytes. */
static int receive_frame(int fd, uint64_t deadline, unsigned char **frame, size_t *have,
			 bool *binary)
{
	int want = 1; /* the first byte alone may tell that this is no frame */

	*frame = malloc(CONTROL_HEADER);
	*have = 0;
	for (;;) {
		unsigned char *grown = realloc(*frame, *have + (size_t)want + CONTROL_HEADER);
		int rc;

		if (!grown)
			return err_set(-ENOMEM, "no memory for a frame");
		*frame = grown;
		rc = receive_bytes(fd, *frame + *have, (size_t)want, deadline);
		if (rc)
			return rc;
		*have += (size_t)want;
		want = frame_missing(*frame, *have, binary);
		if (want <= 0)
			return want;
	}
}

int control_receive_any(int fd, uint64_t limit_ns, struct control_frame *out)
{
	unsigned char *frame;
	size_t have;
	bool binary = false;
	int rc = receive_frame(fd, clock_ns() + limit_ns, &frame, &have, &binary);

	*out = (struct control_frame){0};
	if (!rc && binary) {
		out->size = have - CONTROL_HEADER;
		memmove(frame, frame + CONTROL_HEADER, out->size);
		out->bytes = frame;
		return 0;
	}
	if (!rc)
		rc = parse_json(frame, have, &out->object);
	free(frame);
	return rc;
}

void control_release(struct control_frame *frame)
{
	json_decref(frame->object);
	free(frame->bytes);
	*frame = (struct control_frame){0};
}

int control_receive(int fd, uint64_t limit_ns, json_t **object)
{
	struct control_frame frame;
	int rc = control_receive_any(fd, limit_ns, &frame);

	if (!rc && !frame.object) {
		control_release(&frame);
		rc = err_set(-EPROTO, "the peer sent a binary frame that was not expected");
	}
	if (!rc)
		*object = frame.object;
	return rc;
}

static int send_bytes(int fd, const unsigned char *from, size_t want, uint64_t deadline)
{
	while (want) {
		int rc = wait_ready(fd, POLLOUT, deadline);
		ssize_t n;

		if (rc)
			return rc;
		n = send(fd, from, want, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_set(-errno, "writing to the peer failed: %s", strerror(errno));
		if (n > 0) {
			from += n;
			want -= (size_t)n;
		}
	}
	return 0;
}

/* Sends the length bytes behind the header's room; frame is given back. */
static int send_frame(int fd, uint64_t limit_ns, uint32_t magic, unsigned char *frame,
		      size_t length)
{
	int rc;

	put_be32(frame, magic);
	put_be32(frame + 4, (uint32_t)length);
	rc = send_bytes(fd, frame, CONTROL_HEADER + length, clock_ns() + limit_ns);
	free(frame);
	return rc;
}

int control_send_bytes(int fd, uint64_t limit_ns, const void *bytes, size_t size)
{
	unsigned char *frame = size <= CONTROL_FRAME_MAX ? malloc(CONTROL_HEADER + size) : NULL;

	if (!frame)
		return err_set(-ENOMEM, "no memory for a frame");
	memcpy(frame + CONTROL_HEADER, bytes, size);
	return send_frame(fd, limit_ns, CONTROL_BINARY_MAGIC, frame, size);
}

int control_send(int fd, uint64_t limit_ns, json_t *object)
{
	size_t length = object ? json_dumpb(object, NULL, 0, JSON_COMPACT) : 0;
	unsigned char *frame =
		length && length <= CONTROL_FRAME_MAX ? malloc(CONTROL_HEADER + length) : NULL;

	if (frame)
		json_dumpb(object, (char *)frame + CONTROL_HEADER, length, JSON_COMPACT);
	json_decref(object);
	if (!frame)
		return err_set(-ENOMEM, "no memory for a frame");
	return send_frame(fd, limit_ns, CONTROL_MAGIC, frame, length);
}

const char *control_type(const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));

	return type ? type : "";
}

const char *control_text(const json_t *object, const char *key, char *text, size_t size)
{
	const char *from = json_string_value(json_object_get(object, key));

	snprintf(text, size, "%s", from ? from : "");
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return text;
}

int control_check_version(const json_t *object, const char *peer)
{
	const json_t *protocol = json_object_get(object, "protocol");
	char version[33];

	if (json_is_integer(protocol) && json_integer_value(protocol) == LAYOVER_PROTOCOL)
		return 0;
	control_text(object, "version", version, sizeof(version));
	return err_set(
		-EPROTO,
		"the %s speaks protocol %lld (layover %s), this side protocol %d (layover %s); "
		"use the same version on both hosts",
		peer, (long long)json_integer_value(protocol), version[0] ? version : "unknown",
		LAYOVER_PROTOCOL, LAYOVER_VERSION);
}

json_t *control_session(uint64_t session)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)session);
	return json_string(text);
}

int control_get_session(const json_t *object, uint64_t *session)
{
	const char *text = json_string_value(json_object_get(object, "session"));
	char *end;

	if (text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) {
		*session = strtoull(text, &end, 16);
		return 0;
	}
	return err_set(-EPROTO, "the peer sent a frame without a session id");
}
