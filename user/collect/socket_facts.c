// SPDX-License-Identifier: GPL-2.0-only
#include "collect/socket_facts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_MAX = 8192, ANSWER_WAIT_S = 1 };

/* A column of struct tcp_info: how it is called, where it is, how many bytes it has, what it counts. */
enum fact_kind { FACT_NUMBER, FACT_US, FACT_BYTES, FACT_RATE, FACT_SEGMENTS };

static const struct {
	const char *name, *help;
	size_t offset, size;
	enum fact_kind kind;
} columns[] = {
#define FACT(name, field, kind, help)                                                              \
	{                                                                                          \
		name, help, offsetof(struct tcp_info, field),                                      \
			sizeof(((struct tcp_info *)NULL)->field), kind                             \
	}
	FACT("rtt", tcpi_rtt, FACT_US, "smoothed round trip of segments and their ACKs"),
	FACT("rttvar", tcpi_rttvar, FACT_US, "its variation"),
	FACT("minrtt", tcpi_min_rtt, FACT_US, "the smallest that was seen"),
	FACT("rto", tcpi_rto, FACT_US, "retransmission timeout"),
	FACT("ato", tcpi_ato, FACT_US, "delayed-ACK timeout"),
	FACT("mss", tcpi_snd_mss, FACT_BYTES, "largest segment sent"),
	FACT("advmss", tcpi_advmss, FACT_BYTES, "largest segment advertised"),
	FACT("cwnd", tcpi_snd_cwnd, FACT_SEGMENTS, "congestion window"),
	FACT("ssthresh", tcpi_snd_ssthresh, FACT_SEGMENTS, "slow start until there"),
	FACT("unacked", tcpi_unacked, FACT_SEGMENTS, "segments under way"),
	FACT("notsent", tcpi_notsent_bytes, FACT_BYTES, "written, not sent"),
	FACT("retrans", tcpi_total_retrans, FACT_SEGMENTS, "sent again, in all"),
	FACT("lost", tcpi_lost, FACT_SEGMENTS, "taken for lost now"),
	FACT("backoff", tcpi_backoff, FACT_NUMBER, "timeouts in a row"),
	FACT("reordering", tcpi_reordering, FACT_NUMBER, "tolerated"),
	FACT("snd_wnd", tcpi_snd_wnd, FACT_BYTES, "the peer's receive window"),
	FACT("rcv_space", tcpi_rcv_space, FACT_BYTES, "receive buffer auto-tuning"),
	FACT("rcv_rtt", tcpi_rcv_rtt, FACT_US, "round trip as the receiver sees it"),
	FACT("bytes_sent", tcpi_bytes_sent, FACT_BYTES, "with retransmissions"),
	FACT("bytes_acked", tcpi_bytes_acked, FACT_BYTES, ""),
	FACT("bytes_received", tcpi_bytes_received, FACT_BYTES, ""),
	FACT("segs_out", tcpi_segs_out, FACT_SEGMENTS, ""),
	FACT("segs_in", tcpi_segs_in, FACT_SEGMENTS, ""),
	FACT("pacing_rate", tcpi_pacing_rate, FACT_RATE, ""),
	FACT("delivery_rate", tcpi_delivery_rate, FACT_RATE, ""),
	FACT("busy", tcpi_busy_time, FACT_US, "time with data under way"),
	FACT("rwnd_limited", tcpi_rwnd_limited, FACT_US, "time limited by the receive window"),
	FACT("sndbuf_limited", tcpi_sndbuf_limited, FACT_US, "time limited by the send buffer"),
#undef FACT
};

static const char *const states[] = {"",           "ESTABLISHED", "SYN_SENT",  "SYN_RECV",
				     "FIN_WAIT1",  "FIN_WAIT2",   "TIME_WAIT", "CLOSE",
				     "CLOSE_WAIT", "LAST_ACK",    "LISTEN",    "CLOSING"};

static struct socket_fact *add(struct socket_facts *out, const char *name, const char *help)
{
	struct socket_fact *row = &out->rows[out->count < SOCKET_FACTS_MAX ? out->count++ : 0];

	row->name = name;
	row->help = help;
	return row;
}

static void write_value(char *text, enum fact_kind kind, uint64_t value)
{
	switch (kind) {
	case FACT_US:
		snprintf(text, SOCKET_FACT_TEXT, "%.3f ms", (double)value / 1e3);
		break;
	case FACT_BYTES:
		snprintf(text, SOCKET_FACT_TEXT, "%" PRIu64 " bytes", value);
		break;
	case FACT_RATE:
		snprintf(text, SOCKET_FACT_TEXT,
			 value > UINT64_MAX / 16 ? "unlimited" : "%.1f Mbit/s",
			 (double)value * 8 / 1e6);
		break;
	default:
		snprintf(text, SOCKET_FACT_TEXT, "%" PRIu64, value);
	}
}

/* An older kernel tells less. */
static void add_info(struct socket_facts *out, const void *info, size_t length)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const char *at = (const char *)info + columns[i].offset;
		uint64_t value = 0;
		uint32_t half;

		if (columns[i].offset + columns[i].size > length)
			continue;
		if (columns[i].size == sizeof(value)) {
			memcpy(&value, at, sizeof(value));
		} else if (columns[i].size == sizeof(half)) {
			memcpy(&half, at, sizeof(half));
			value = half;
		} else {
			value = *(const uint8_t *)at;
		}
		if (columns[i].kind == FACT_SEGMENTS && value == INT32_MAX)
			continue; /* no threshold yet */
		write_value(add(out, columns[i].name, columns[i].help)->value, columns[i].kind,
			    value);
	}
}

static void add_options(struct socket_facts *out, const struct tcp_info *info, size_t length)
{
	struct socket_fact *row;

	if (length < sizeof(uint64_t))
		return;
	row = add(out, "options", "as negotiated");
	snprintf(row->value, SOCKET_FACT_TEXT, "%s%s%s%s",
		 info->tcpi_options & TCPI_OPT_TIMESTAMPS ? "ts " : "",
		 info->tcpi_options & TCPI_OPT_SACK ? "sack " : "",
		 info->tcpi_options & TCPI_OPT_WSCALE ? "wscale " : "",
		 info->tcpi_options & TCPI_OPT_ECN ? "ecn" : "");
}

static int take_attribute(const struct nlattr *attribute, void *arg)
{
	struct socket_facts *out = arg;
	const uint32_t *memory = mnl_attr_get_payload(attribute);
	size_t length = mnl_attr_get_payload_len(attribute);

	switch (mnl_attr_get_type(attribute)) {
	case INET_DIAG_CONG:
		snprintf(add(out, "congestion", "algorithm")->value, SOCKET_FACT_TEXT, "%.*s",
			 (int)strnlen((const char *)memory, length), (const char *)memory);
		break;
	case INET_DIAG_INFO:
		add_options(out, (const void *)memory, length);
		add_info(out, memory, length);
		break;
	case INET_DIAG_SKMEMINFO:
		if (length < (SK_MEMINFO_SNDBUF + 1) * sizeof(*memory))
			break;
		snprintf(add(out, "rcvbuf", "receive buffer, in use of")->value, SOCKET_FACT_TEXT,
			 "%u of %u bytes", memory[SK_MEMINFO_RMEM_ALLOC],
			 memory[SK_MEMINFO_RCVBUF]);
		snprintf(add(out, "sndbuf", "send buffer, in use of")->value, SOCKET_FACT_TEXT,
			 "%u of %u bytes", memory[SK_MEMINFO_WMEM_ALLOC],
			 memory[SK_MEMINFO_SNDBUF]);
		break;
	}
	return MNL_CB_OK;
}

static int take_socket(const struct nlmsghdr *message, void *arg)
{
	const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(message);
	struct socket_facts *out = arg;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*socket))
		return MNL_CB_STOP;
	if (socket->idiag_state < sizeof(states) / sizeof(states[0]))
		snprintf(add(out, "state", "")->value, SOCKET_FACT_TEXT, "%s",
			 states[socket->idiag_state]);
	snprintf(add(out, "queues", "bytes to be read, bytes not acknowledged")->value,
		 SOCKET_FACT_TEXT, "%u, %u", socket->idiag_rqueue, socket->idiag_wqueue);
	snprintf(add(out, "inode", "")->value, SOCKET_FACT_TEXT, "%u", socket->idiag_inode);
	mnl_attr_parse(message, sizeof(*socket), take_attribute, out);
	return MNL_CB_STOP;
}

static void question(char *buffer, const struct flow_record *who)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req_v2 *q;

	message->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	message->nlmsg_flags = NLM_F_REQUEST;
	q = mnl_nlmsg_put_extra_header(message, sizeof(*q));
	q->sdiag_family = (uint8_t)who->family;
	q->sdiag_protocol = IPPROTO_TCP;
	q->idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) |
		       1 << (INET_DIAG_SKMEMINFO - 1);
	q->idiag_states = ~0U;
	q->id.idiag_sport = htons(who->local_port);
	q->id.idiag_dport = htons(who->remote_port);
	memcpy(q->id.idiag_src, who->local, sizeof(who->local));
	memcpy(q->id.idiag_dst, who->remote, sizeof(who->remote));
	q->id.idiag_cookie[0] = q->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
}

/* That file, if it is the namespace of that inode; -1 otherwise. */
static int open_if(const char *path, uint64_t inode)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd >= 0 && !fstat(fd, &status) && status.st_ino == inode)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A socket stays in the namespace it was made in, its process may be elsewhere: then that has a name, or processes. */
static int open_netns(const struct flow_record *who)
{
	static const char *const patterns[] = {"/run/netns/*", "/proc/[0-9]*/ns/net"};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", who->pid);
	fd = open_if(path, who->netns);
	for (size_t p = 0; fd < 0 && p < sizeof(patterns) / sizeof(patterns[0]); p++) {
		glob_t found;

		if (glob(patterns[p], GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t i = 0; fd < 0 && i < found.gl_pathc; i++)
			fd = open_if(found.gl_pathv[i], who->netns);
		globfree(&found);
	}
	return fd;
}

/* A netlink socket in the namespace of that flow's socket; -errno. The calling thread comes back. */
static int socket_there(const struct flow_record *who)
{
	int there = open_netns(who), own, fd = -1, rc;

	if (there < 0)
		return -ESRCH;
	own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	rc = own < 0 || setns(there, CLONE_NEWNET) ? -errno : 0;
	if (!rc) {
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
		rc = fd < 0 ? -errno : fd;
		if (setns(own, CLONE_NEWNET))
			rc = -errno;
	}
	close(there);
	if (own >= 0)
		close(own);
	return rc;
}

static int ask(int fd, const struct flow_record *who, struct socket_facts *out)
{
	const struct timeval patience = {.tv_sec = ANSWER_WAIT_S};
	_Alignas(struct nlmsghdr) char buffer[ANSWER_MAX] = {0};
	ssize_t n;

	question(buffer, who);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, buffer, ((struct nlmsghdr *)buffer)->nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, buffer, sizeof(buffer), 0);
	if (n < 0)
		return -errno;
	return mnl_cb_run(buffer, (size_t)n, 0, 0, take_socket, out) < 0 ? -errno : 0;
}

void socket_facts_read(const struct flow_record *who, struct socket_facts *out)
{
	int fd = socket_there(who), rc;

	*out = (struct socket_facts){0};
	rc = fd < 0 ? fd : ask(fd, who, out);
	if (fd >= 0)
		close(fd);
	if (!out->count)
		snprintf(out->why, sizeof(out->why), "The kernel does not tell: %s.",
			 rc == -ESRCH    ? "its network namespace cannot be found"
			 : rc == -ENOENT ? "the socket or its process is gone"
					 : strerror(-rc));
}
