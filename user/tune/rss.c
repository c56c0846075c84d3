// SPDX-License-Identifier: GPL-2.0-only
#include "tune/rss.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/cpulist.h"
#include "base/error.h"

enum { INPUT_MAX = 36, QUEUES_MAX = CPU_SETSIZE };

/* --- the hash ------------------------------------------------------------------------------------ */

uint32_t rss_toeplitz(const uint8_t *key, size_t key_size, const uint8_t *input, size_t size)
{
	uint32_t hash = 0, window;

	if (key_size < size + 4)
		return 0;
	window = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
	for (size_t i = 0; i < size; i++) {
		for (int bit = 7; bit >= 0; bit--) {
			if (input[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1);
		}
	}
	return hash;
}

static size_t put_address(uint8_t *input, const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET) {
		memcpy(input, &((const struct sockaddr_in *)ss)->sin_addr, 4);
		return 4;
	}
	memcpy(input, &((const struct sockaddr_in6 *)ss)->sin6_addr, 16);
	return 16;
}

/* sin_port and sin6_port are at the same place. */
static size_t put_port(uint8_t *input, const struct sockaddr_storage *ss)
{
	memcpy(input, &((const struct sockaddr_in *)ss)->sin_port, 2);
	return 2;
}

int rss_hash(const uint8_t *key, size_t key_size, const struct rss_flow *flow, uint64_t fields,
	     uint32_t *hash)
{
	uint8_t input[INPUT_MAX];
	size_t n = 0;

	if (flow->from.ss_family != flow->to.ss_family)
		return err_set(-EINVAL, "the ends of the flow have addresses of two families");
	if (fields & RXH_IP_SRC)
		n += put_address(input + n, &flow->from);
	if (fields & RXH_IP_DST)
		n += put_address(input + n, &flow->to);
	if (fields & RXH_L4_B_0_1)
		n += put_port(input + n, &flow->from);
	if (fields & RXH_L4_B_2_3)
		n += put_port(input + n, &flow->to);
	if (key_size < n + 4)
		return err_set(-EINVAL, "the device's hash key has %zu bytes, this flow needs %zu",
			       key_size, n + 4);
	*hash = rss_toeplitz(key, key_size, input, n);
	return 0;
}

/* --- a flow -------------------------------------------------------------------------------------- */

/* ADDRESS:PORT or [ADDRESS]:PORT. */
static int parse_end(const char *text, size_t size, struct sockaddr_storage *ss)
{
	char copy[64], *address = copy, *colon;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	uint64_t port;

	memset(ss, 0, sizeof(*ss));
	if (size >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	colon = strrchr(copy, ':');
	if (!colon || parse_count("port", colon + 1, 0, UINT16_MAX, &port))
		return -EINVAL;
	*colon = '\0';
	in->sin_port = htons((uint16_t)port);
	if (copy[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		address++;
		ss->ss_family = AF_INET6;
		return inet_pton(AF_INET6, address, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	ss->ss_family = AF_INET;
	return inet_pton(AF_INET, address, &in->sin_addr) == 1 ? 0 : -EINVAL;
}

int rss_flow_parse(const char *text, struct rss_flow *flow)
{
	size_t first = strcspn(text, ",");

	if (text[first] == ',' && !parse_end(text, first, &flow->from) &&
	    !parse_end(text + first + 1, strlen(text + first + 1), &flow->to) &&
	    flow->from.ss_family == flow->to.ss_family)
		return 0;
	return err_set(-EINVAL, "'%s' is not a flow such as 192.0.2.1:4000,192.0.2.2:80", text);
}

/* --- tables -------------------------------------------------------------------------------------- */

void rss_equal(uint32_t *table, uint32_t size, uint32_t queues)
{
	for (uint32_t i = 0; i < size; i++)
		table[i] = i % queues;
}

void rss_weighted(uint32_t *table, uint32_t size, const uint32_t *weights, uint32_t queues)
{
	uint64_t total = 0, passed = 0;
	uint32_t at = 0;

	for (uint32_t q = 0; q < queues; q++)
		total += weights[q];
	for (uint32_t q = 0; q < queues && total; q++) {
		passed += weights[q];
		/* Up to the entry where this queue's share of the whole ends, rounded down. */
		while (at < passed * size / total)
			table[at++] = q;
	}
}

int rss_table_parse(const char *text, uint32_t *table, uint32_t max)
{
	uint32_t n = 0;

	for (const char *at = text;; at++) {
		char *end;
		unsigned long value;

		if (!isdigit((unsigned char)*at) || n == max)
			return -EINVAL;
		errno = 0;
		value = strtoul(at, &end, 10);
		if (errno || value > UINT32_MAX)
			return -EINVAL;
		table[n++] = (uint32_t)value;
		at = end;
		if (!*at)
			return (int)n;
		if (*at != ',')
			return -EINVAL;
	}
}

void rss_table_format(const uint32_t *table, uint32_t size, char *text, size_t text_size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < size && used + 12 < text_size; i++)
		used += (size_t)snprintf(text + used, text_size - used, "%s%u", i ? "," : "",
					 table[i]);
}

void rss_table_say(const uint32_t *table, uint32_t size, char *text, size_t text_size)
{
	uint32_t counts[QUEUES_MAX] = {0}, least = UINT32_MAX, most = 0;
	char list[CPULIST_TEXT];
	cpu_set_t queues;
	size_t used = 0;

	CPU_ZERO(&queues);
	for (uint32_t i = 0; i < size; i++)
		if (table[i] < QUEUES_MAX) {
			counts[table[i]]++;
			CPU_SET(table[i], &queues);
		}
	for (uint32_t q = 0; q < QUEUES_MAX; q++) {
		if (counts[q] && counts[q] < least)
			least = counts[q];
		if (counts[q] > most)
			most = counts[q];
	}
	cpulist_format(&queues, list, sizeof(list));
	if (most - least <= 1) { /* as even as the size allows */
		snprintf(text, text_size, CPU_COUNT(&queues) > 1 ? "queues %s equally" : "queue %s",
			 list);
		return;
	}
	for (uint32_t q = 0; q < QUEUES_MAX && used + 24 < text_size; q++)
		if (counts[q])
			used += (size_t)snprintf(text + used, text_size - used, "%s%u %.0f %%",
						 used ? ", " : "queue ", q,
						 100.0 * counts[q] / size);
}
