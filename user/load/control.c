// SPDX-License-Identifier: GPL-2.0-only
#include "load/control.h"

#include <errno.h>
#include <poll.h>
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

int control_parse(const void *bytes, size_t have, json_t **object)
{
	const unsigned char *frame = bytes;
	unsigned char magic[4];
	size_t length;

	put_be32(magic, CONTROL_MAGIC);
	if (memcmp(frame, magic, have < 4 ? have : 4) != 0)
		return err_set(-EPROTO, "the peer does not speak layover's protocol");
	if (have < CONTROL_HEADER)
		return (int)(CONTROL_HEADER - have);
	length = get_be32(frame + 4);
	if (length > CONTROL_FRAME_MAX)
		return err_set(-EMSGSIZE, "the peer sent a frame of %zu bytes, more than %d",
			       length, CONTROL_FRAME_MAX);
	if (have < CONTROL_HEADER + length)
		return (int)(CONTROL_HEADER + length - have);
	*object = json_loadb((const char *)frame + CONTROL_HEADER, length, JSON_REJECT_DUPLICATES,
			     NULL);
	if (json_is_object(*object))
		return 0;
	json_decref(*object);
	*object = NULL;
	return err_set(-EPROTO, "the peer sent a frame that is not a JSON object");
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

int control_receive(int fd, uint64_t limit_ns, json_t **object)
{
	uint64_t deadline = clock_ns() + limit_ns;
	unsigned char header[CONTROL_HEADER], *frame = header;
	size_t have = 0, want = 1; /* the first byte alone may tell that this is no frame */
	int rc;

	for (;;) {
		rc = receive_bytes(fd, frame + have, want, deadline);
		if (rc)
			break;
		have += want;
		rc = control_parse(frame, have, object);
		if (rc <= 0)
			break;
		want = (size_t)rc;
		if (have == CONTROL_HEADER) {
			frame = malloc(CONTROL_HEADER + want);
			if (!frame)
				return err_set(-ENOMEM, "no memory for a frame");
			memcpy(frame, header, CONTROL_HEADER);
		}
	}
	if (frame != header)
		free(frame);
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

int control_send(int fd, uint64_t limit_ns, json_t *object)
{
	size_t length = object ? json_dumpb(object, NULL, 0, JSON_COMPACT) : 0;
	unsigned char *frame = malloc(CONTROL_HEADER + length);
	int rc;

	if (!length || length > CONTROL_FRAME_MAX || !frame) {
		rc = err_set(-ENOMEM, "no memory for a frame");
	} else {
		put_be32(frame, CONTROL_MAGIC);
		put_be32(frame + 4, (uint32_t)length);
		json_dumpb(object, (char *)frame + CONTROL_HEADER, length, JSON_COMPACT);
		rc = send_bytes(fd, frame, CONTROL_HEADER + length, clock_ns() + limit_ns);
	}
	free(frame);
	json_decref(object);
	return rc;
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
