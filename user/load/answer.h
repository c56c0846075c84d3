/* SPDX-License-Identifier: GPL-2.0-only */
/* A server for other programs' clients (load/peer.h): no control connection, so it answers whoever comes. */
#ifndef LAYOVER_ANSWER_H
#define LAYOVER_ANSWER_H

enum { ANSWER_CONNECTIONS_MAX = 256 };

/*
 * Answers messages of `peer`'s kind (enum peer) on a listening TCP socket and a bound UDP socket until stop_fd is
 * readable. A datagram's reply has its request's size. Closes none of the three. 0 or -errno with a sentence.
 */
int answer_run(int tcp_fd, int udp_fd, int stop_fd, int peer);

#endif
