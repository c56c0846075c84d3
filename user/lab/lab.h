/* SPDX-License-Identifier: GPL-2.0-only */
/* Two network namespaces joined by a veth pair: two hosts on one machine. */
#ifndef LAYOVER_LAB_H
#define LAYOVER_LAB_H

#include <stdbool.h>
#include <sys/types.h>

enum lab_side { LAB_CLIENT, LAB_SERVER, LAB_SIDES };

#define LAB_CLIENT_IPV4 "198.18.0.1"
#define LAB_SERVER_IPV4 "198.18.0.2"
#define LAB_CLIENT_IPV6 "fd6c:6179:6f76::1"
#define LAB_SERVER_IPV6 "fd6c:6179:6f76::2"
#define LAB_INTERFACE   "layover0" /* its name on both sides */

enum { LAB_TARGET_MAX = 64 };

/* One lab per process. Starts as LAB_NONE. */
struct lab {
	char name[LAB_SIDES][32]; /* layover-PID-client, layover-PID-server: for `ip netns exec` */
	char path[LAB_SIDES][64]; /* where they are mounted */
	int netns[LAB_SIDES];     /* descriptors of the namespaces, -1: not made (any more) */
	int mounts;   /* descriptor of the mount namespace that was left, -1: it was not */
	pid_t server; /* the process that serves, or 0 */
};

#define LAB_NONE ((struct lab){.netns = {-1, -1}, .mounts = -1})

/*
 * Removes what dead runs have left behind, then makes the namespaces, the veth pair and its
 * addresses, and waits until they can be used. 0; -EPERM when privileges are missing; another
 * -errno otherwise; always with a sentence, and with nothing left behind. The caller calls
 * lab_destroy() on every way out.
 */
int lab_create(struct lab *lab);

/*
 * Starts a process that runs the driver's server inside the server's namespace, on the address of
 * that family (AF_INET, AF_INET6) and SERVER_PORT; the address goes to target (LAB_TARGET_MAX
 * bytes), fit for client_open(). It dies with this process. Call it while this process has one
 * thread. 0 or -errno with a sentence.
 */
int lab_serve(struct lab *lab, int family, char *target);

/* Another server than the driver's. */
struct lab_server {
	int (*run)(int listen_fd,
		   const void *arg); /* in the new process, until it returns; nonzero: it failed */
	const void *arg;
	int rcvbuf; /* SO_RCVBUF of what it listens on, inherited by what it accepts; 0: as usual */
};

/* As lab_serve(). */
int lab_serve_by(struct lab *lab, int family, const struct lab_server *server, char *target);

/* A socket inside a side's namespace; the calling thread stays in its own. Descriptor or -errno,
 * sentence. */
int lab_socket(const struct lab *lab, enum lab_side side, int family, int type, int proto);

/* The same as a make_socket_fn for the client's side; arg is the struct lab. */
int lab_client_socket(void *arg, int family, int type, int proto);

/* Calls call(arg) inside a side's namespace; the calling thread comes back. What it returned, or -errno with a sentence. */
int lab_inside(const struct lab *lab, enum lab_side side, int (*call)(void *arg), void *arg);

/* Moves the calling thread into a side's namespace for good. 0 or -errno with a sentence. */
int lab_enter(const struct lab *lab, enum lab_side side);

/*
 * The same for a process of one thread, with a /sys that shows that side's devices: in a mount namespace of its own,
 * which lab_destroy() leaves again. 0 or -errno with a sentence.
 */
int lab_move_in(struct lab *lab, enum lab_side side);

/* Ends the server and removes the namespaces. Does nothing when there is no lab. */
void lab_destroy(struct lab *lab);

/* The same with async-signal-safe calls only, for the signal handler of an impatient second Ctrl-C.
 */
void lab_abandon(const struct lab *lab);

/*
 * Removes the namespaces layover-PID-* of runs that have ended; those of living ones stay (a lab
 * holds a lock that the kernel gives back however it dies). lab_create() does this itself. Returns
 * how many.
 */
int lab_remove_leftovers(void);

#endif
