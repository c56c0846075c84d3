/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses as people write them: HOST, HOST:PORT, ::1, [::1]:7117. */
#ifndef LAYOVER_ADDRESS_H
#define LAYOVER_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_HOST_MAX = 256, ADDRESS_TEXT_MAX = 80 };

/*
 * Splits text into host (ADDRESS_HOST_MAX bytes) and port (left alone when the text has none).
 * -EINVAL with a sentence when it is not an address of that form.
 */
int address_split(const char *text, char *host, uint16_t *port);

/*
 * Stream addresses of host and port, numeric or by name (within 5 s), of one family or AF_UNSPEC.
 * The caller gives them back with freeaddrinfo(). -errno with a sentence.
 */
int address_resolve(const char *host, uint16_t port, int family, struct addrinfo **list);

/* "192.0.2.1:7117" or "[::1]:7117" into text of ADDRESS_TEXT_MAX bytes; returns text. */
const char *address_format(const struct sockaddr *addr, char *text);

/*
 * The same of an address's 4 or 16 bytes and a port in host order; another family's host is "?". A link-local IPv6
 * address of a device (its number, 0: not known) is told with it: "[fe80::1%3]:7117" (RFC 4007, 11).
 */
const char *address_format_bytes(int family, const void *bytes, uint32_t ifindex, uint16_t port,
				 char *text);

/* Ports in host order; 0 for other families. */
uint16_t address_port(const struct sockaddr *addr);
void address_set_port(struct sockaddr *addr, uint16_t port);

/* The same host (and scope) and the same port. */
bool address_equal(const struct sockaddr *a, const struct sockaddr *b);

/* The same host (and scope), whatever the ports. */
bool address_same_host(const struct sockaddr *a, const struct sockaddr *b);

/* The size of the sockaddr of this family. */
socklen_t address_size(const struct sockaddr *addr);

#endif
