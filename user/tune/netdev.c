// SPDX-License-Identifier: GPL-2.0-only
#include "tune/netdev.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

/* From the kernel's uapi/linux/netdev.h, which Debian 12's headers do not have. */
enum { NETDEV_QUEUE_GET = 10, NETDEV_NAPI_GET = 11 };
enum { QUEUE_ID = 1, QUEUE_IFINDEX, QUEUE_TYPE, QUEUE_NAPI };
enum {
	NAPI_IFINDEX = 1,
	NAPI_ID,
	NAPI_IRQ,
	NAPI_PID,
	NAPI_DEFER_HARD_IRQS,
	NAPI_GRO_FLUSH_TIMEOUT,
	NAPI_IRQ_SUSPEND_TIMEOUT,
	NAPI_THREADED,
};
enum { FAMILY_VERSION = 1, BUFFER = 16384, ANSWER_S = 2 };

struct asking {
	struct mnl_socket *nl;
	uint16_t family;
	int ifindex;
	struct netdev *out;
};

/* A reference point for the sizes of attributes: they grow with kernels, uint is 4 or 8 bytes. */
static int64_t number(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return (int64_t)mnl_attr_get_u64(attr);
	default:
		return -1;
	}
}

static struct nlmsghdr *begin(char *buffer, uint16_t type, uint16_t flags, uint8_t command)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *generic;

	header->nlmsg_type = type;
	header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	header->nlmsg_seq = (uint32_t)time(NULL);
	generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
	generic->cmd = command;
	generic->version = FAMILY_VERSION;
	return header;
}

static int ask(struct asking *asking, struct nlmsghdr *header, mnl_cb_t answer)
{
	char buffer[BUFFER];
	unsigned int seq = header->nlmsg_seq;
	int rc = 1;

	if (mnl_socket_sendto(asking->nl, header, header->nlmsg_len) < 0)
		return -errno;
	while (rc > 0) {
		ssize_t n = mnl_socket_recvfrom(asking->nl, buffer, sizeof(buffer));

		if (n < 0 && errno == EINTR)
			continue;
		rc = n < 0 ? -1
			   : mnl_cb_run(buffer, (size_t)n, seq, mnl_socket_get_portid(asking->nl),
					answer, asking);
	}
	return rc < 0 ? -errno : 0;
}

static int read_family(const struct nlmsghdr *header, void *arg)
{
	struct asking *asking = arg;
	const struct nlattr *attr;

	mnl_attr_for_each (attr, header, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			asking->family = mnl_attr_get_u16(attr);
	}
	return MNL_CB_OK;
}

/* Adds an element of that size to an array. As a callback's result. */
static int append(void *array, int *count, size_t size, const void *element)
{
	void **at = array, *more = realloc(*at, size * (size_t)(*count + 1));

	if (!more)
		return MNL_CB_ERROR;
	memcpy((char *)more + size * (size_t)*count, element, size);
	*at = more;
	++*count;
	return MNL_CB_OK;
}

static int read_napi(const struct nlmsghdr *header, void *arg)
{
	struct asking *asking = arg;
	struct netdev *out = asking->out;
	struct netdev_napi napi = {0, -1, 0, -1, -1, -1, -1};
	const struct nlattr *attr;

	mnl_attr_for_each (attr, header, sizeof(struct genlmsghdr)) {
		int64_t value = number(attr);

		switch (mnl_attr_get_type(attr)) {
		case NAPI_ID:
			napi.id = (uint32_t)value;
			break;
		case NAPI_IRQ:
			napi.irq = (int)value;
			break;
		case NAPI_PID:
			napi.pid = (int)value;
			break;
		case NAPI_DEFER_HARD_IRQS:
			napi.defer_hard_irqs = value;
			break;
		case NAPI_GRO_FLUSH_TIMEOUT:
			napi.gro_flush_timeout_ns = value;
			break;
		case NAPI_IRQ_SUSPEND_TIMEOUT:
			napi.irq_suspend_timeout_ns = value;
			break;
		case NAPI_THREADED:
			napi.threaded = (int)value;
			break;
		}
	}
	return append(&out->napis, &out->napi_count, sizeof(napi), &napi);
}

static int read_queue(const struct nlmsghdr *header, void *arg)
{
	struct asking *asking = arg;
	struct netdev *out = asking->out;
	struct netdev_queue queue = {0};
	const struct nlattr *attr;

	mnl_attr_for_each (attr, header, sizeof(struct genlmsghdr)) {
		int64_t value = number(attr);

		switch (mnl_attr_get_type(attr)) {
		case QUEUE_ID:
			queue.index = (uint32_t)value;
			break;
		case QUEUE_TYPE:
			queue.tx = value == 1;
			break;
		case QUEUE_NAPI:
			queue.napi = (uint32_t)value;
			break;
		}
	}
	return append(&out->queues, &out->queue_count, sizeof(queue), &queue);
}

static int dump(struct asking *asking, uint8_t command, uint16_t ifindex_attr, mnl_cb_t answer)
{
	char buffer[BUFFER];
	struct nlmsghdr *header = begin(buffer, asking->family, NLM_F_DUMP, command);

	mnl_attr_put_u32(header, ifindex_attr, (uint32_t)asking->ifindex);
	return ask(asking, header, answer);
}

static int read_all(struct asking *asking)
{
	char buffer[BUFFER];
	struct nlmsghdr *header = begin(buffer, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	int rc;

	mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, "netdev");
	rc = ask(asking, header, read_family);
	if (!rc && !asking->family)
		rc = -ENOENT;
	if (!rc)
		rc = dump(asking, NETDEV_NAPI_GET, NAPI_IFINDEX, read_napi);
	if (!rc)
		rc = dump(asking, NETDEV_QUEUE_GET, QUEUE_IFINDEX, read_queue);
	/* The family is older (6.3) than these requests (6.7). */
	return rc == -EOPNOTSUPP ? -ENOENT : rc;
}

int netdev_read(int ifindex, struct netdev *out)
{
	const struct timeval limit = {.tv_sec = ANSWER_S};
	struct asking asking = {.ifindex = ifindex, .out = out};
	int rc;

	*out = (struct netdev){0};
	asking.nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!asking.nl)
		return -errno;
	setsockopt(mnl_socket_get_fd(asking.nl), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	rc = mnl_socket_bind(asking.nl, 0, MNL_SOCKET_AUTOPID) ? -errno : read_all(&asking);
	mnl_socket_close(asking.nl);
	return rc;
}

void netdev_free(struct netdev *out)
{
	free(out->napis);
	free(out->queues);
	*out = (struct netdev){0};
}

const struct netdev_napi *netdev_find_napi(const struct netdev *all, uint32_t id)
{
	for (int i = 0; i < all->napi_count; i++)
		if (id && all->napis[i].id == id)
			return &all->napis[i];
	return NULL;
}
