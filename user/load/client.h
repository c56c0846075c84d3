/* SPDX-License-Identifier: GPL-2.0-only */
/* The measuring end: opens a session on a server and runs closed-loop blocks of round trips. */
#ifndef LAYOVER_CLIENT_H
#define LAYOVER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "load/interface.h"
#include "load/nic.h"
#include "load/plan.h"
#include "load/samples.h"

struct load_client;

/* The flow that carries the messages (not the control connection). Ports in host order. */
struct load_flow {
	int proto;  /* IPPROTO_TCP, IPPROTO_UDP */
	int family; /* AF_INET, AF_INET6 */
	uint16_t client_port, server_port;
	uint64_t session;
};

/* Makes a socket like socket(2), in whatever namespace it likes. A descriptor, or -errno with a
 * sentence. */
typedef int make_socket_fn(void *arg, int family, int type, int proto);

/* make_socket_fn for the caller's own namespace; arg is not used. */
int client_plain_socket(void *arg, int family, int type, int proto);

/*
 * Opens control connection, session and data flow to target, "HOST[:PORT]" ([::1]:7117 for IPv6
 * with a port), and starts the watchdog thread. The plan is copied. Ends within 10 s. 0 or -errno
 * with a sentence. The caller closes the client with client_close().
 */
int client_open(struct load_client **client, const struct load_plan *plan, const char *target,
		make_socket_fn *make_socket, void *arg);

/* Valid until client_close(). */
const struct load_flow *client_flow(const struct load_client *client);

/* True when the server runs on this very kernel: then its end is seen from here, too. */
bool client_same_kernel(const struct load_client *client);

/* The release of the server's kernel, "" when it did not say. Valid until client_close(). */
const char *client_server_kernel(const struct load_client *client);

/* The interface of this process's namespace that the messages leave by, "" unknown (the lab's is elsewhere). */
void client_interface(const struct load_client *client, char name[INTERFACE_NAME_MAX]);

/* The control connection, on which to talk between blocks only (load/remote.h). */
int client_control(const struct load_client *client);

/*
 * Takes the NIC's own transmit timestamp of every trip from now on, between trips. 0 or -errno with a
 * sentence. client_nic() is NULL without it; valid until client_close().
 */
int client_hw_timestamps(struct load_client *client);
struct nic_clock *client_nic(struct load_client *client);

/*
 * Places the calling thread as the plan says (CPU, NUMA node, SCHED_FIFO), and makes it the one whose trips are
 * watched; the first block does it otherwise. 0 or -errno with a sentence.
 */
int client_adopt(struct load_client *client);

/*
 * Runs round trips, one after the other, until max_trips were tried (0: no such limit) or max_ns
 * have passed (0: no such limit), whichever comes first. Adds to out, which must live until
 * client_close(); NULL discards. Always on the same thread, which is pinned to the plan's
 * client_cpu by the first call. Returns 0 (also when client_stop() ended it between two trips),
 * -ECANCELED when client_stop() gave up a trip that was stuck, or -errno with a sentence: the
 * server is gone (at once when that can be seen, after at most 10 s or one timeout otherwise) or a
 * reply was wrong.
 */
int client_block(struct load_client *client, uint64_t max_trips, uint64_t max_ns,
		 struct samples *out);

/*
 * Unmeasured trips after a pause (until 5 ms have passed), or the one that closes the last turn: client_stop() does not keep
 * them from running, and the first one that is lost ends them, because losses belong into the
 * measurement.
 */
int client_settle(struct load_client *client, uint64_t trips);

/* True when the last trip came back in time. */
bool client_answered(const struct load_client *client);

/* How many trips were tried so far, measured or not; the sequence number of the last one. */
uint64_t client_trips(const struct load_client *client);

/* Trips lost in warm-up and between blocks. */
uint64_t client_lost_unmeasured(const struct load_client *client);

/* Ends the running block and all later ones. Callable from signal handlers and other threads. */
void client_stop(struct load_client *client);

bool client_stopped(const struct load_client *client);

/* NULL is allowed. */
void client_close(struct load_client *client);

#endif
