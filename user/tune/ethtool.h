/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ethtool ioctl: channels, interrupt moderation, receive-side scaling. The ioctl, because its netlink twin
 * sets RSS only since 7.2 and reads it only since 6.12. Reading needs no privilege, setting CAP_NET_ADMIN.
 * All return 0 or -errno without a sentence; -EOPNOTSUPP: the driver has no such thing.
 */
#ifndef LAYOVER_ETHTOOL_H
#define LAYOVER_ETHTOOL_H

#include <linux/ethtool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETHTOOL_RSS_MAX = 4096, ETHTOOL_KEY_MAX = 256 };

/* Bits of hfunc; the kernel has them outside of its uapi headers. */
enum { RSS_TOEPLITZ = 1, RSS_XOR = 2 };

struct rss {
	uint32_t rings;                  /* receive queues that the table may name */
	uint32_t size, key_size;         /* 0: none */
	uint8_t hfunc;                   /* RSS_TOEPLITZ, RSS_XOR; 0: not told */
	uint32_t table[ETHTOOL_RSS_MAX]; /* hash modulo size -> receive queue */
	uint8_t key[ETHTOOL_KEY_MAX];
};

int ethtool_driver(const char *device, struct ethtool_drvinfo *info);

int ethtool_rss(const char *device, struct rss *rss);

/* Size 0: back to the driver's own table. The key stays. */
int ethtool_set_rss(const char *device, const uint32_t *table, uint32_t size);

/* RXH_* bits: which fields of a flow type (TCP_V4_FLOW, UDP_V4_FLOW, ...) are hashed. */
int ethtool_hashed_fields(const char *device, uint32_t flow_type, uint64_t *fields);

/*
 * Numbers of the two structs above by name, as the options of ethtool -L and -C are called. A list is text like
 * "rx-usecs=3,adaptive-rx=0".
 */
struct ethtool_field {
	const char *name; /* NULL: the end of the table */
	size_t offset;    /* of a uint32_t */
	size_t max;       /* of the largest value that may be set; channels only */
};

extern const struct ethtool_field channel_fields[], coalesce_fields[];

/* The structs themselves: each is read and set as a whole and begins with its command. */
struct ethtool_group {
	const struct ethtool_field *fields;
	const char *option; /* of ethtool, to set it */
	uint32_t get, set;
	size_t size;
};

extern const struct ethtool_group channel_group, coalesce_group;

union ethtool_numbers {
	struct ethtool_channels channels;
	struct ethtool_coalesce coalesce;
};

int ethtool_get(const struct ethtool_group *group, const char *device, void *numbers);
int ethtool_set(const struct ethtool_group *group, const char *device, void *numbers);

/* Sets what the list names. 0 or -EINVAL with a sentence that begins with `what`. */
int ethtool_fields_parse(const struct ethtool_field *fields, const char *what, const char *list,
			 void *into);

/* Prints, as a list, the fields that the list `names` names (values there are optional). */
void ethtool_fields_format(const struct ethtool_field *fields, const char *names, const void *from,
			   char *text, size_t size);

#endif
