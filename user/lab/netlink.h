/* SPDX-License-Identifier: GPL-2.0-only */
/* The few rtnetlink requests a lab needs. They act on the calling thread's network namespace. */
#ifndef LAYOVER_NETLINK_H
#define LAYOVER_NETLINK_H

#include <libmnl/libmnl.h>
#include <stdbool.h>

/* NULL with a sentence when there is no netlink socket; mnl_socket_close() ends it. */
struct mnl_socket *netlink_open(void);

/* All return 0 or -errno with a sentence. */

/* A veth pair: `name` here, and `name` in the namespace of the descriptor peer_netns. */
int netlink_add_veth(struct mnl_socket *nl, const char *name, int peer_netns);

int netlink_set_up(struct mnl_socket *nl, const char *name);

/* An address as text; IPv6 ones are usable at once (no duplicate address detection). */
int netlink_add_address(struct mnl_socket *nl, const char *name, const char *address, int prefix);

/* *up: the interface has its carrier and the kernel has taken note of it. */
int netlink_is_up(struct mnl_socket *nl, const char *name, bool *up);

#endif
