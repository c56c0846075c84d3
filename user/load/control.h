/* SPDX-License-Identifier: GPL-2.0-only */
/* The control connection: JSON objects, or bytes, in length-prefixed frames, every step with a deadline. */
#ifndef LAYOVER_CONTROL_H
#define LAYOVER_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A frame: 4 bytes magic, 4 bytes length (both big endian), then that many bytes. The magic says whether
 * they are JSON or binary (load/records.h).
 */
#define CONTROL_MAGIC        0x4c41594fU /* "LAYO" */
#define CONTROL_BINARY_MAGIC 0x4c415952U /* "LAYR" */
enum { CONTROL_HEADER = 8, CONTROL_FRAME_MAX = 64 << 10, CONTROL_FRAME_S = 5 };

/*
 * Looks at the first `have` bytes of a frame. Returns the number of bytes needed before it can be
 * looked at again; 0 when the frame is complete, then *object is a new JSON object. -EPROTO or
 * -EMSGSIZE with a sentence when this can never become a frame; as early as the bytes show it.
 */
int control_parse(const void *bytes, size_t have, json_t **object);

/* Reads one frame within limit_ns. Never reads past its end. *object is new. -errno with a
 * sentence. */
int control_receive(int fd, uint64_t limit_ns, json_t **object);

/* A frame of either kind. */
struct control_frame {
	json_t *object;       /* of a JSON frame, else NULL */
	unsigned char *bytes; /* of a binary frame, else NULL */
	size_t size;
};

/* As control_receive(); the caller gives the frame back with control_release(). */
int control_receive_any(int fd, uint64_t limit_ns, struct control_frame *frame);
void control_release(struct control_frame *frame);

/* Writes one binary frame within limit_ns. */
int control_send_bytes(int fd, uint64_t limit_ns, const void *bytes, size_t size);

/* Writes one frame within limit_ns and drops the caller's reference to object, which may be NULL.
 */
int control_send(int fd, uint64_t limit_ns, json_t *object);

/* The "type" of a frame, "" when it has none. */
const char *control_type(const json_t *object);

/* A text of the peer, cut to size and fit for a terminal: anything unprintable becomes '?'. Returns
 * text. */
const char *control_text(const json_t *object, const char *key, char *text, size_t size);

/*
 * 0 when the peer speaks this version of the protocol. -EPROTO with a sentence that names both
 * versions; `peer` is "server" or "client".
 */
int control_check_version(const json_t *object, const char *peer);

/* Session ids travel as 16 hexadecimal digits: JSON numbers do not hold 64 bits everywhere. */
json_t *control_session(uint64_t session);
int control_get_session(const json_t *object, uint64_t *session);

#endif
