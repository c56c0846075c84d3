// SPDX-License-Identifier: GPL-2.0-only
#include "tune/steering.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "tune/tree.h"

/* RXH_* bits. A driver that does not tell them hashes what most do: ports of TCP only. */
static uint64_t hashed_fields(const struct device *d, int family, bool udp)
{
	uint32_t type = family == AF_INET ? (udp ? UDP_V4_FLOW : TCP_V4_FLOW)
					  : (udp ? UDP_V6_FLOW : TCP_V6_FLOW);
	uint64_t fields;

	if (!ethtool_hashed_fields(d->name, type, &fields) && fields)
		return fields;
	return RXH_IP_SRC | RXH_IP_DST | (udp ? 0 : RXH_L4_B_0_1 | RXH_L4_B_2_3);
}

int steering_key(struct device *d, bool *of_kernel)
{
	char text[TREE_TEXT], *at = text;

	*of_kernel = !d->rss_rc && !d->rss.key_size;
	if (*of_kernel && !tree_read(text, "/proc/sys/net/core/netdev_rss_key"))
		for (char *end; d->rss.key_size < ETHTOOL_KEY_MAX; at = end + 1) {
			d->rss.key[d->rss.key_size] = (uint8_t)strtoul(at, &end, 16);
			if (end == at)
				break;
			d->rss.key_size++;
			if (*end != ':')
				break;
		}
	if (!d->rss_rc && d->rss.key_size && (!d->rss.hfunc || d->rss.hfunc == RSS_TOEPLITZ))
		return 0;
	return err_set(-EOPNOTSUPP, "%s tells no table, or no Toeplitz key to compute with",
		       d->name);
}

int steering_of(const struct device *d, const struct rss_flow *flow, bool udp, struct steering *out)
{
	const struct device_queue *queue;
	int rc = rss_hash(d->rss.key, d->rss.key_size, flow,
			  hashed_fields(d, flow->from.ss_family, udp), &out->hash);

	if (rc)
		return rc;
	out->entry = out->hash % d->rss.size;
	out->queue = d->rss.table[out->entry];
	out->irq = NULL;
	queue = device_queue(d, false, out->queue);
	for (int i = 0; i < d->irq_count; i++)
		if (queue && queue->irq == d->irqs[i].irq)
			out->irq = &d->irqs[i];
	return 0;
}
