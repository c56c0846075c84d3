/* SPDX-License-Identifier: GPL-2.0-only */
/* The echo end: any number of sessions, one thread each. */
#ifndef LAYOVER_SERVER_H
#define LAYOVER_SERVER_H

#include <sys/socket.h>

#include "load/rules.h"

enum { SERVER_PORT = 7117, SERVER_SESSIONS_MAX = 256 };

/* A listening TCP socket for server_run(), or -errno with a sentence. */
int server_listen(int fd, const struct sockaddr *addr, socklen_t len);

/*
 * Serves sessions on listen_fd until stop_fd is readable (-1: never), or the rules say that it is the end. Control connections and
 * TCP data connections arrive on listen_fd; UDP sockets are made in the calling thread's network
 * namespace. A client that misbehaves costs one sentence on stderr, never the server. Does not
 * close either descriptor. SIGPIPE must be ignored. The rules must live as long. 0, or -errno with a
 * sentence when it cannot serve at all.
 */
int server_run(int listen_fd, int stop_fd, const struct server_rules *rules);

#endif
