/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages in memory, and the two system calls of a trip. */
#ifndef LAYOVER_MESSAGE_H
#define LAYOVER_MESSAGE_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/message.h"

/*
 * Memory for one message: touched, zero, and at least MESSAGE_SEQ_BYTES longer than bytes, so that a
 * sequence number can be read and written whole; before it is room for MESSAGE_ROOM bytes more. NULL
 * when memory is short; message_free() gives it back.
 */
enum {
	MESSAGE_ROOM = 64
}; /* for the header that a raw IPv4 socket delivers; keeps the alignment */

void *message_alloc(uint64_t bytes);
void message_free(void *message, uint64_t bytes);

/* The low half of the session id, as message_label() wrote it. Messages of a header's size or more. */
static inline uint32_t message_session(const void *message)
{
	struct message_header header;

	memcpy(&header, message, sizeof(header));
	return le32toh(header.session);
}

/* Whether this is a reply by message_answer(); both ends of a raw socket may hear everything. */
static inline bool message_is_answer(const void *message)
{
	struct message_header header;

	memcpy(&header, message, sizeof(header));
	return le32toh(header.magic) == MESSAGE_ANSWER;
}

/* Makes a reply of a request, and the other way round. */
static inline void message_answer(void *message)
{
	struct message_header header;

	memcpy(&header, message, sizeof(header));
	header.magic ^= htole32(MESSAGE_MAGIC ^ MESSAGE_ANSWER);
	memcpy(message, &header, sizeof(header));
}

/* Writes session and magic where they belong in a message of this size. */
void message_label(void *message, uint64_t bytes, uint64_t session);

/* Fills everything behind the header with the pattern of seq. */
void message_fill(void *message, uint64_t bytes, uint64_t seq);

/* True when reply is the request, byte for byte; otherwise *at is the offset of the first
 * difference. */
bool message_equal(const void *request, const void *reply, uint64_t bytes, uint64_t *at);

/* The bits of a sequence number that fit into a message of this size. */
static inline uint64_t message_seq_mask(uint64_t bytes)
{
	return bytes >= MESSAGE_SEQ_BYTES ? UINT64_MAX : (1ULL << (8 * bytes)) - 1;
}

/* The bits under mask; a message cut short keeps what lies behind it. */
static inline uint64_t message_get_seq(const void *message, uint64_t mask)
{
	uint64_t seq;

	memcpy(&seq, message, sizeof(seq));
	return le64toh(seq) & mask;
}

static inline void message_put_seq(void *message, uint64_t seq)
{
	seq = htole64(seq);
	memcpy(message, &seq,
	       sizeof(seq)); /* what is too long for the message stays behind its end */
}

/*
 * send() and recv() of the C library are cancellation points, which in a program with several
 * threads costs four atomic operations per call; the bare system calls do not. Both return as the
 * kernel does, with errno.
 */
static inline ssize_t message_send(int fd, const void *from, size_t bytes, int flags,
				   const struct sockaddr *to, socklen_t len)
{
	return syscall(SYS_sendto, fd, from, bytes, MSG_NOSIGNAL | flags, to, len);
}

static inline ssize_t message_receive(int fd, void *to, size_t bytes, int flags,
				      struct sockaddr *from, socklen_t *len)
{
	return syscall(SYS_recvfrom, fd, to, bytes, flags, from, len);
}

#endif
