// SPDX-License-Identifier: GPL-2.0-only
#include "tune/ethtool.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/args.h"
#include "base/error.h"
#include "tune/tree.h"

const struct ethtool_field channel_fields[] = {
	{"rx", offsetof(struct ethtool_channels, rx_count),
	 offsetof(struct ethtool_channels, max_rx)},
	{"tx", offsetof(struct ethtool_channels, tx_count),
	 offsetof(struct ethtool_channels, max_tx)},
	{"other", offsetof(struct ethtool_channels, other_count),
	 offsetof(struct ethtool_channels, max_other)},
	{"combined", offsetof(struct ethtool_channels, combined_count),
	 offsetof(struct ethtool_channels, max_combined)},
	{0},
};

#define COALESCE(name, member)                                                                     \
	{                                                                                          \
		name, offsetof(struct ethtool_coalesce, member), 0                                 \
	}

const struct ethtool_field coalesce_fields[] = {
	COALESCE("adaptive-rx", use_adaptive_rx_coalesce),
	COALESCE("adaptive-tx", use_adaptive_tx_coalesce),
	COALESCE("rx-usecs", rx_coalesce_usecs),
	COALESCE("rx-frames", rx_max_coalesced_frames),
	COALESCE("rx-usecs-irq", rx_coalesce_usecs_irq),
	COALESCE("rx-frames-irq", rx_max_coalesced_frames_irq),
	COALESCE("tx-usecs", tx_coalesce_usecs),
	COALESCE("tx-frames", tx_max_coalesced_frames),
	COALESCE("tx-usecs-irq", tx_coalesce_usecs_irq),
	COALESCE("tx-frames-irq", tx_max_coalesced_frames_irq),
	{0},
};

const struct ethtool_group channel_group = {channel_fields, "-L", ETHTOOL_GCHANNELS,
					    ETHTOOL_SCHANNELS, sizeof(struct ethtool_channels)};
const struct ethtool_group coalesce_group = {coalesce_fields, "-C", ETHTOOL_GCOALESCE,
					     ETHTOOL_SCOALESCE, sizeof(struct ethtool_coalesce)};

static int request(const char *device, void *data)
{
	struct ifreq ifr = {.ifr_data = data};
	int fd, rc = 0;

	if (tree_is_made_up())
		return -EOPNOTSUPP;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", device);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		rc = -errno;
	close(fd);
	return rc;
}

int ethtool_driver(const char *device, struct ethtool_drvinfo *info)
{
	*info = (struct ethtool_drvinfo){.cmd = ETHTOOL_GDRVINFO};
	return request(device, info);
}

int ethtool_get(const struct ethtool_group *group, const char *device, void *numbers)
{
	memset(numbers, 0, group->size);
	*(uint32_t *)numbers = group->get;
	return request(device, numbers);
}

int ethtool_set(const struct ethtool_group *group, const char *device, void *numbers)
{
	*(uint32_t *)numbers = group->set;
	return request(device, numbers);
}

static int read_rss(const char *device, struct ethtool_rxfh *rxfh, struct rss *rss)
{
	int rc = request(device, rxfh); /* the sizes alone */
	const uint8_t *key;

	if (rc)
		return rc;
	if (rxfh->indir_size > ETHTOOL_RSS_MAX || rxfh->key_size > ETHTOOL_KEY_MAX)
		return -E2BIG;
	rc = request(device, rxfh);
	if (rc)
		return rc;
	rss->size = rxfh->indir_size;
	rss->key_size = rxfh->key_size;
	rss->hfunc = rxfh->hfunc;
	memcpy(rss->table, rxfh->rss_config, sizeof(*rss->table) * rss->size);
	key = (const uint8_t *)&rxfh->rss_config[rss->size];
	memcpy(rss->key, key, rss->key_size);
	return 0;
}

int ethtool_rss(const char *device, struct rss *rss)
{
	struct ethtool_rxnfc rings = {.cmd = ETHTOOL_GRXRINGS};
	struct ethtool_rxfh *rxfh = calloc(1, sizeof(*rxfh) + sizeof(rss->table) + ETHTOOL_KEY_MAX);
	int rc;

	memset(rss, 0, sizeof(*rss));
	if (!rxfh)
		return -ENOMEM;
	rxfh->cmd = ETHTOOL_GRSSH;
	rc = read_rss(device, rxfh, rss);
	free(rxfh);
	if (!request(device, &rings))
		rss->rings = (uint32_t)rings.data;
	return rc;
}

int ethtool_set_rss(const char *device, const uint32_t *table, uint32_t size)
{
	struct ethtool_rxfh *rxfh = calloc(1, sizeof(*rxfh) + sizeof(*table) * size);
	int rc;

	if (!rxfh)
		return -ENOMEM;
	rxfh->cmd = ETHTOOL_SRSSH;
	rxfh->indir_size = size;
	if (size)
		memcpy(rxfh->rss_config, table, sizeof(*table) * size);
	rc = request(device, rxfh);
	free(rxfh);
	return rc;
}

int ethtool_hashed_fields(const char *device, uint32_t flow_type, uint64_t *fields)
{
	struct ethtool_rxnfc rule = {.cmd = ETHTOOL_GRXFH, .flow_type = flow_type};
	int rc = request(device, &rule);

	*fields = rc ? 0 : rule.data;
	return rc;
}

/* --- fields by name ------------------------------------------------------------------------------ */

static const struct ethtool_field *find(const struct ethtool_field *fields, const char *name,
					size_t size)
{
	for (; fields->name; fields++)
		if (strlen(fields->name) == size && !strncmp(fields->name, name, size))
			return fields;
	return NULL;
}

static int parse_one(const struct ethtool_field *fields, const char *what, const char *word,
		     void *into)
{
	size_t size = strcspn(word, "=");
	const struct ethtool_field *field = find(fields, word, size);
	char names[256] = "";
	uint64_t value;
	int rc;

	for (const struct ethtool_field *f = fields; f->name; f++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 f == fields ? "" : ", ", f->name);
	if (!field || word[size] != '=')
		return err_set(-EINVAL, "%s: '%s' is not NAME=NUMBER with one of %s", what, word,
			       names);
	if (!strcmp(word + size, "=on") || !strcmp(word + size, "=off"))
		value = !strcmp(word + size, "=on");
	else if ((rc = parse_count(what, word + size + 1, 0, UINT32_MAX, &value)))
		return rc;
	*(uint32_t *)((char *)into + field->offset) = (uint32_t)value;
	return 0;
}

int ethtool_fields_parse(const struct ethtool_field *fields, const char *what, const char *list,
			 void *into)
{
	char *copy = strdup(list), *save = NULL;
	int rc = 0;

	if (!copy)
		return err_set(-ENOMEM, "no memory for %s", what);
	if (!*copy)
		rc = err_set(-EINVAL, "%s: nothing is named", what);
	for (char *word = rc ? NULL : strtok_r(copy, ",", &save); word && !rc;
	     word = strtok_r(NULL, ",", &save))
		rc = parse_one(fields, what, word, into);
	free(copy);
	return rc;
}

void ethtool_fields_format(const struct ethtool_field *fields, const char *names, const void *from,
			   char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	while (*names && used + 1 < size) {
		size_t length = strcspn(names, ",");
		const struct ethtool_field *field = find(fields, names, strcspn(names, "=,"));

		if (field)
			used += (size_t)snprintf(
				text + used, size - used, "%s%s=%u", used ? "," : "", field->name,
				*(const uint32_t *)((const char *)from + field->offset));
		names += length + (names[length] == ',');
	}
}
