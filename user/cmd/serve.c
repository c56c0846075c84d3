// SPDX-License-Identifier: GPL-2.0-only
/* layover serve: the echo side of the driver. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/args.h"
#include "base/error.h"
#include "cmd/command.h"
#include "cmd/serving.h"
#include "load/address.h"
#include "load/server.h"

struct serve_options {
	const char *address;
	uint64_t port; /* 0: any free one */
	bool port_given, no_trace;
};

enum { KEY_NO_TRACE = 0x100 };

static const struct argp_option options[] = {
	{"port", 'p', "PORT", 0, "listen on PORT (default 7117; 0: any free one)", 0},
	{"no-trace", KEY_NO_TRACE, NULL, 0, "never record this end for clients that want a split",
	 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct serve_options *o = state->input;

	switch (key) {
	case 'p':
		o->port_given = true;
		return -parse_count("--port", arg, 0, 65535, &o->port);
	case KEY_NO_TRACE:
		o->no_trace = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->address)
			argp_error(state, "one address only, not '%s'", arg);
		o->address = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[ADDR[:PORT]]",
	.doc = "Answers the messages of 'layover ping'. Listens on the loopback address only, "
	       "unless told "
	       "otherwise: everyone who reaches the port can make this machine work.\v"
	       "Examples:\n"
	       "  layover serve                  for clients on this machine\n"
	       "  layover serve 0.0.0.0          on every IPv4 address\n"
	       "  layover serve '[::]:9000'      on every address, port 9000\n\n"
	       "Ctrl-C ends it.",
};

/* A listening socket for what the command line says; its address in text. -errno with a sentence.
 */
static int open_listener(const struct serve_options *o, char *text)
{
	uint16_t port = SERVER_PORT;
	char host[ADDRESS_HOST_MAX] = "127.0.0.1";
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	struct addrinfo *list;
	int fd, rc = o->address ? address_split(o->address, host, &port) : 0;

	if (o->port_given)
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

int cmd_serve(int argc, char **argv)
{
	struct serve_options o = {0};
	char text[ADDRESS_TEXT_MAX];
	int listen_fd, stop_fd, rc;
	struct serving serving;
	sigset_t stops;

	args_parse(&argp, argc, argv, &o);
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
	rc = server_run(listen_fd, stop_fd, o.no_trace ? NULL : &serving.tracer);
	close(stop_fd);
	close(listen_fd);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}
