// SPDX-License-Identifier: GPL-2.0-only
#include "load/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/error.h"
#include "load/clock.h"

enum { RESOLVE_S = 5 };

static int parse_port(const char *text, uint16_t *port)
{
	uint64_t value;
	int rc = parse_count("port", text, 1, 65535, &value);

	if (!rc)
		*port = (uint16_t)value;
	return rc;
}

int address_split(const char *text, char *host, uint16_t *port)
{
	const char *colon = strchr(text, ':');
	const char *end = text + strlen(text);
	const char *port_text = NULL;

	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return err_set(-EINVAL, "'%s' is not an address such as [::1]:7117", text);
		port_text = end[1] ? end + 2 : NULL;
		text++;
	} else if (colon && !strchr(colon + 1, ':')) { /* two colons: a bare IPv6 address */
		end = colon;
		port_text = colon + 1;
	}
	if (end == text || end - text >= ADDRESS_HOST_MAX)
		return err_set(-EINVAL, "'%s' does not name a host", text);
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	return port_text ? parse_port(port_text, port) : 0;
}

/*
 * A resolver that does not answer must not hold the program longer than promised, and getaddrinfo()
 * cannot be told so: it runs beside us and is left alone when it is late.
 */
static int resolve_name(const char *host, const char *service, const struct addrinfo *hints,
			struct addrinfo **list)
{
	static char name[ADDRESS_HOST_MAX], port[8];
	static struct addrinfo wanted;
	static struct gaicb request;
	struct gaicb *requests[] = {&request};
	struct timespec limit = {RESOLVE_S, 0};
	int rc;

	snprintf(name, sizeof(name), "%s", host);
	snprintf(port, sizeof(port), "%s", service);
	wanted = *hints;
	request = (struct gaicb){.ar_name = name, .ar_service = port, .ar_request = &wanted};
	rc = getaddrinfo_a(GAI_NOWAIT, requests, 1, NULL);
	while (!rc && gai_error(&request) == EAI_INPROGRESS)
		if (gai_suspend((const struct gaicb *const *)requests, 1, &limit) == EAI_AGAIN)
			return EAI_AGAIN;
	if (!rc)
		rc = gai_error(&request);
	*list = request.ar_result;
	return rc;
}

int address_resolve(const char *host, uint16_t port, int family, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_family = family,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	*list = NULL;
	rc = getaddrinfo(host, service, &hints, list);
	if (rc == EAI_NONAME) {
		hints.ai_flags = AI_NUMERICSERV;
		rc = resolve_name(host, service, &hints, list);
	}
	if (rc && !strcmp(host, "localhost")) /* a machine may have no /etc/hosts */
		rc = getaddrinfo(NULL, service, &hints, list);
	if (!rc)
		return 0;
	return err_set(rc == EAI_SYSTEM ? -errno : -EHOSTUNREACH, "cannot find the host '%s'%s: %s",
		       host,
		       family == AF_INET    ? " with IPv4"
		       : family == AF_INET6 ? " with IPv6"
					    : "",
		       gai_strerror(rc));
}

const char *address_format(const struct sockaddr *addr, char *text)
{
	char host[ADDRESS_TEXT_MAX - 16], port[8];

	if (getnameinfo(addr, address_size(addr), host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, ADDRESS_TEXT_MAX, "an unknown address");
	else
		snprintf(text, ADDRESS_TEXT_MAX, addr->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
			 host, port);
	return text;
}

const char *address_format_bytes(int family, const void *bytes, uint32_t ifindex, uint16_t port,
				 char *text)
{
	char host[INET6_ADDRSTRLEN] = "?", zone[12] = "";

	inet_ntop(family, bytes, host, sizeof(host));
	if (ifindex && family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)bytes))
		snprintf(zone, sizeof(zone), "%%%u", ifindex);
	snprintf(text, ADDRESS_TEXT_MAX, family == AF_INET6 ? "[%s%s]:%u" : "%s%s:%u", host, zone,
		 port);
	return text;
}

uint16_t address_port(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
	if (addr->sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)(const void *)addr)->sin6_port);
	return 0;
}

void address_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
	else if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
}

bool address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_scope_id == b6->sin6_scope_id &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

bool address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	return address_port(a) == address_port(b) && address_same_host(a, b);
}

socklen_t address_size(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}
