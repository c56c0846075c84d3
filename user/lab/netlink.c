// SPDX-License-Identifier: GPL-2.0-only
#include "lab/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"

/* linux/if.h and net/if.h do not go together. */
extern unsigned int if_nametoindex(const char *name);

enum { BUFFER = 8192 };

struct request {
	char buffer[BUFFER];
	struct nlmsghdr *header;
};

struct mnl_socket *netlink_open(void)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	if (nl && !mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		return nl;
	err_set(-errno, "cannot open a netlink socket: %s", strerror(errno));
	if (nl)
		mnl_socket_close(nl);
	return NULL;
}

static void *begin(struct request *request, uint16_t type, uint16_t flags, size_t extra)
{
	request->header = mnl_nlmsg_put_header(request->buffer);
	request->header->nlmsg_type = type;
	request->header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	return mnl_nlmsg_put_extra_header(request->header, extra);
}

/* Sends the request and reads answers up to its acknowledgement. -errno without a sentence. */
static int ask(struct mnl_socket *nl, struct request *request, mnl_cb_t answer, void *arg)
{
	char buffer[BUFFER];
	int rc = 1;

	if (mnl_socket_sendto(nl, request->header, request->header->nlmsg_len) < 0)
		return -errno;
	while (rc > 0) {
		ssize_t n = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));

		if (n < 0 && errno == EINTR)
			continue;
		rc = n < 0 ? -1
			   : mnl_cb_run(buffer, (size_t)n, 0, mnl_socket_get_portid(nl), answer,
					arg);
	}
	return rc < 0 ? -errno : 0;
}

int netlink_add_veth(struct mnl_socket *nl, const char *name, int peer_netns)
{
	struct request request;
	struct nlattr *info, *data, *peer;
	int rc;

	begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(request.header, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(request.header, IFLA_LINKINFO);
	mnl_attr_put_strz(request.header, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(request.header, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(request.header, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(request.header, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(request.header, IFLA_IFNAME, name);
	mnl_attr_put_u32(request.header, IFLA_NET_NS_FD, (uint32_t)peer_netns);
	mnl_attr_nest_end(request.header, peer);
	mnl_attr_nest_end(request.header, data);
	mnl_attr_nest_end(request.header, info);
	rc = ask(nl, &request, NULL, NULL);
	return rc ? err_set(rc, "cannot make a veth pair: %s%s", strerror(-rc),
			    rc == -EOPNOTSUPP ? " (the kernel lacks CONFIG_VETH)" : "")
		  : 0;
}

int netlink_set_up(struct mnl_socket *nl, const char *name)
{
	struct request request;
	struct ifinfomsg *link = begin(&request, RTM_NEWLINK, 0, sizeof(*link));
	int rc;

	link->ifi_index = (int)if_nametoindex(name);
	link->ifi_change = IFF_UP;
	link->ifi_flags = IFF_UP;
	rc = ask(nl, &request, NULL, NULL);
	return rc ? err_set(rc, "cannot set %s up: %s", name, strerror(-rc)) : 0;
}

int netlink_add_address(struct mnl_socket *nl, const char *name, const char *address, int prefix)
{
	struct request request;
	struct ifaddrmsg *message =
		begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*message));
	unsigned char bytes[16];
	size_t size = strchr(address, ':') ? 16 : 4;
	int rc;

	message->ifa_family = size == 16 ? AF_INET6 : AF_INET;
	message->ifa_prefixlen = (unsigned char)prefix;
	message->ifa_flags = size == 16 ? IFA_F_NODAD : 0;
	message->ifa_index = if_nametoindex(name);
	inet_pton(message->ifa_family, address, bytes);
	mnl_attr_put(request.header, IFA_LOCAL, size, bytes);
	mnl_attr_put(request.header, IFA_ADDRESS, size, bytes);
	rc = ask(nl, &request, NULL, NULL);
	return rc ? err_set(rc, "cannot give %s the address %s: %s", name, address, strerror(-rc))
		  : 0;
}

static int read_state(const struct nlmsghdr *header, void *arg)
{
	const struct nlattr *attr;
	bool *up = arg;

	mnl_attr_for_each (attr, header, sizeof(struct ifinfomsg))
		if (mnl_attr_get_type(attr) == IFLA_OPERSTATE)
			*up = mnl_attr_get_u8(attr) == IF_OPER_UP;
	return MNL_CB_OK;
}

int netlink_is_up(struct mnl_socket *nl, const char *name, bool *up)
{
	struct request request;
	struct ifinfomsg *link = begin(&request, RTM_GETLINK, 0, sizeof(*link));
	int rc;

	*up = false;
	link->ifi_index = (int)if_nametoindex(name);
	rc = ask(nl, &request, read_state, up);
	return rc ? err_set(rc, "cannot read the state of %s: %s", name, strerror(-rc)) : 0;
}
