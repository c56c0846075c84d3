// SPDX-License-Identifier: GPL-2.0-only
/* layover serve: the echo side of the driver. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/serving.h"
#include "load/address.h"
#include "load/answer.h"
#include "load/clock.h"
#include "load/peer.h"
#include "load/server.h"

struct serve_options {
	const char *target; /* ADDR[:PORT]; NULL: loopback */
	uint64_t port;      /* PORT_UNSET: of target, or the default; 0: any free one */
	struct server_rules rules;
	int peer; /* enum peer: whose clients come */
	bool no_trace;
};

#define PORT_UNSET UINT64_MAX
#define AT(field)  offsetof(struct serve_options, field)

static int parse_token(void *into, const char *what, const char *text)
{
	static struct token token; /* the last one given */
	struct serve_options *o = into;

	(void)what;
	o->rules.token = &token;
	return token_read(text, &token);
}

static int parse_peer(void *into, const char *what, const char *text)
{
	return peer_parse(what, text, &((struct serve_options *)into)->peer);
}

static const struct setting serve_settings[] = {
	{.doc = "Where and how long:"},
	{"port", 'p', "PORT", "listen on PORT (default 7117; 0: any free one)", SETTING_COUNT,
	 AT(port), 0, 65535, NULL},
	{"once", 0, NULL, "end when the first session has ended", SETTING_FLAG, AT(rules.once), 0,
	 0, NULL},
	{"allow-shutdown", 0, NULL, "end when a client says --shutdown-server", SETTING_FLAG,
	 AT(rules.allow_shutdown), 0, 0, NULL},
	{"peer", 0, "WHAT",
	 "whose clients come: layover's (default), sockperf ('sockperf pp', port 11111), echo (whoever wants back "
	 "what he sends, port 7); the latter two by TCP and UDP, without any control",
	 SETTING_OWN, 0, 0, 0, parse_peer},
	{.doc = "Who may do what:"},
	{"token-file", 0, "FILE", "only clients whose --token-file has the same secret",
	 SETTING_OWN, 0, 0, 0, parse_token},
	{"max-bytes", 0, "SIZE", "no messages larger than SIZE", SETTING_SIZE, AT(rules.max_bytes),
	 1, PLAN_TCP_BYTES_MAX, NULL},
	{"max-sessions", 0, "N", "at most N sessions (flows) of one client at the same time",
	 SETTING_COUNT, AT(rules.max_sessions), 1, SERVER_SESSIONS_MAX, NULL},
	{"max-time", 0, "TIME", "a client's session ends after TIME, warm-up included",
	 SETTING_TIME, AT(rules.max_time_ns), NS_PER_S, 0, NULL},
	{"no-trace", 0, NULL, "never record this end for clients that want a split", SETTING_FLAG,
	 AT(no_trace), 0, 0, NULL},
	{0},
};

static const char doc[] =
	"Answers the messages of 'layover ping' and takes those of 'layover load'. Listens on the loopback "
	"address only, unless told otherwise: everyone who reaches the port can make this machine work.\v"
	"Examples:\n"
	"  layover serve                  for clients on this machine\n"
	"  layover serve 0.0.0.0          on every IPv4 address\n"
	"  layover serve '[::]:9000'      on every address, port 9000\n"
	"  layover serve 0.0.0.0 --token-file secret --max-time 1m --max-sessions 4\n\n"
	"Ctrl-C ends it.";

/* A listening socket for what the command line says; its address in text. -errno with a sentence.
 */
static int open_listener(const struct serve_options *o, char *text)
{
	uint16_t port = peer_infos[o->peer].port;
	char host[ADDRESS_HOST_MAX] = "127.0.0.1";
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	struct addrinfo *list;
	int fd, rc = o->target ? address_split(o->target, host, &port) : 0;

	if (o->port != PORT_UNSET)
		port = (uint16_t)o->port;
	if (!rc)
		rc = address_resolve(host, port, AF_UNSPEC, &list);
	if (rc)
		return rc;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = fd < 0 ? err_set(-errno, "cannot make a socket: %s", strerror(errno))
		    : server_listen(fd, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	getsockname(fd, (struct sockaddr *)&bound, &len);
	address_format((struct sockaddr *)&bound, text);
	return fd;
}

/* Others' clients come by either protocol: a UDP socket at the same address. */
static int answer_others(int listen_fd, int stop_fd, int peer)
{
	struct sockaddr_storage bound = {0};
	socklen_t len = sizeof(bound);
	int fd, rc;

	getsockname(listen_fd, (struct sockaddr *)&bound, &len);
	fd = socket(bound.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&bound, len))
		rc = err_set(-errno, "cannot make a UDP socket: %s", strerror(errno));
	else
		rc = answer_run(listen_fd, fd, stop_fd, peer);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* What needs a control connection does not go with other programs' clients. */
static int check_options(const struct serve_options *o)
{
	const struct server_rules *rules = &o->rules;

	if (o->peer == PEER_LAYOVER ||
	    !(rules->token || rules->once || rules->allow_shutdown || rules->max_bytes ||
	      rules->max_sessions || rules->max_time_ns || o->no_trace))
		return 0;
	return err_set(-EINVAL, "--peer %s has no sessions: leave out all options but --port",
		       peer_infos[o->peer].name);
}

int cmd_serve(int argc, char **argv)
{
	struct serve_options o = {.port = PORT_UNSET};
	const struct settings parts[] = {{serve_settings, &o}, {NULL, NULL}};
	char text[ADDRESS_TEXT_MAX];
	int listen_fd, stop_fd, rc;
	struct serving serving;
	sigset_t stops;

	settings_parse(parts, "[ADDR[:PORT]]", doc, &o.target, argc, argv);
	if (check_options(&o))
		return say_error(EXIT_USAGE, "%s", err_text(-EINVAL));
	listen_fd = open_listener(&o, text);
	if (listen_fd < 0)
		return say_error(EXIT_FAILED, "%s", err_text(listen_fd));
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	sigprocmask(SIG_BLOCK, &stops, NULL);
	stop_fd = signalfd(-1, &stops, SFD_CLOEXEC);
	printf("serving on %s\n", text);
	fflush(stdout);
	serving_prepare(&serving);
	o.rules.tracer = o.no_trace ? NULL : &serving.tracer;
	rc = o.peer ? answer_others(listen_fd, stop_fd, o.peer)
		    : server_run(listen_fd, stop_fd, &o.rules);
	close(stop_fd);
	close(listen_fd);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}
