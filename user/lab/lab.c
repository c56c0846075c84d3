// SPDX-License-Identifier: GPL-2.0-only
#include "lab/lab.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "lab/netlink.h"
#include "load/clock.h"
#include "load/server.h"

#define NETNS_DIR "/run/netns" /* where iproute2 keeps named namespaces */
#define OWN_NETNS "/proc/thread-self/ns/net"

enum { USABLE_MS = 1000 };

static const char *const side_names[LAB_SIDES] = {"client", "server"};
static const char *const ipv4[LAB_SIDES] = {LAB_CLIENT_IPV4, LAB_SERVER_IPV4};
static const char *const ipv6[LAB_SIDES] = {LAB_CLIENT_IPV6, LAB_SERVER_IPV6};

/* --- the directory of named namespaces
 * -------------------------------------------------------------- */

/*
 * Makes the directory as iproute2 does, a shared mount of itself: then `ip netns` sees our
 * namespaces and a later `ip netns add` does not cover them. Returns a descriptor that holds the
 * lock iproute2 takes, too.
 */
static int open_netns_dir(void)
{
	int fd, rc;

	if (mkdir(NETNS_DIR, 0755) && errno != EEXIST)
		return err_set(-errno, "cannot make %s: %s", NETNS_DIR, strerror(errno));
	fd = open(NETNS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX))
		goto failed;
	if (!mount("", NETNS_DIR, "none", MS_SHARED | MS_REC, NULL))
		return fd;
	if (errno != EINVAL) /* EINVAL: not a mount point yet */
		goto failed;
	if (!mount(NETNS_DIR, NETNS_DIR, "none", MS_BIND | MS_REC, NULL) &&
	    !mount("", NETNS_DIR, "none", MS_SHARED | MS_REC, NULL))
		return fd;
failed:
	rc = err_set(-errno, "cannot set up %s for named namespaces: %s", NETNS_DIR,
		     strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static void remove_name(const char *path)
{
	umount2(path, MNT_DETACH);
	unlink(path);
}

/*
 * A living lab holds a lock on its namespaces; the kernel gives it back when the process is gone,
 * whatever has become of its pid. Called with the directory's lock, so no lab is half made.
 */
static bool is_leftover(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool left;

	if (fd < 0)
		return errno != ENOENT;
	left = !flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return left;
}

static bool is_lab_name(const char *name)
{
	char side[8];
	int pid, used = 0;

	return sscanf(name, "layover-%d-%7[a-z]%n", &pid, side, &used) == 2 && !name[used] &&
	       (!strcmp(side, side_names[LAB_CLIENT]) || !strcmp(side, side_names[LAB_SERVER]));
}

static int remove_leftovers_locked(void)
{
	DIR *dir = opendir(NETNS_DIR);
	struct dirent *entry;
	int removed = 0;

	while (dir && (entry = readdir(dir))) {
		char path[sizeof(NETNS_DIR) + sizeof(entry->d_name) + 1];

		snprintf(path, sizeof(path), NETNS_DIR "/%s", entry->d_name);
		if (!is_lab_name(entry->d_name) || !is_leftover(path))
			continue;
		remove_name(path);
		removed++;
	}
	if (dir)
		closedir(dir);
	return removed;
}

int lab_remove_leftovers(void)
{
	int fd = open(NETNS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int removed;

	if (fd < 0)
		return 0;
	flock(fd, LOCK_EX);
	removed = remove_leftovers_locked();
	close(fd);
	return removed;
}

/* --- namespaces
 * --------------------------------------------------------------------------------------- */

static int open_own_netns(void)
{
	int fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd
		       : err_set(-errno, "cannot open %s: %s; is /proc mounted?", OWN_NETNS,
				 strerror(errno));
}

/* Only a broken kernel refuses the way back, and no socket may then be made in the wrong place. */
static void go_back(int own)
{
	if (setns(own, CLONE_NEWNET))
		abort();
	close(own);
}

int lab_enter(const struct lab *lab, enum lab_side side)
{
	if (!setns(lab->netns[side], CLONE_NEWNET))
		return 0;
	return err_set(-errno, "cannot enter the namespace %s: %s", lab->name[side],
		       strerror(errno));
}

int lab_move_in(struct lab *lab, enum lab_side side)
{
	int rc = lab_enter(lab, side);

	if (rc)
		return rc;
	lab->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	/* sysfs shows the devices of the network namespace in which it was mounted. */
	if (lab->mounts < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_SLAVE | MS_REC, NULL) ||
	    mount("layover", "/sys", "sysfs", 0, NULL))
		return err_set(-errno, "cannot show %s its own /sys: %s", lab->name[side],
			       strerror(errno));
	return 0;
}

/* Makes one side's namespace, names it and locks it. The calling thread ends up inside it. */
static int make_netns(struct lab *lab, enum lab_side side)
{
	const char *path = lab->path[side];
	int fd;

	if (unshare(CLONE_NEWNET))
		return err_set(-errno, "cannot make a network namespace: %s", strerror(errno));
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return err_set(-errno, "cannot make %s: %s", path, strerror(errno));
	close(fd);
	if (mount(OWN_NETNS, path, "none", MS_BIND, NULL)) {
		int rc = err_set(-errno, "cannot mount a namespace on %s: %s", path,
				 strerror(errno));

		unlink(path);
		return rc;
	}
	lab->netns[side] = open(path, O_RDONLY | O_CLOEXEC);
	if (lab->netns[side] >= 0 && !flock(lab->netns[side], LOCK_EX | LOCK_NB))
		return 0;
	remove_name(path);
	return err_set(-errno, "cannot open %s: %s", path, strerror(errno));
}

/* Everything inside one side; the calling thread is inside it. The server's side finds its veth
 * made. */
static int configure(struct lab *lab, enum lab_side side)
{
	struct mnl_socket *nl = netlink_open();
	int rc;

	if (!nl)
		return -EIO;
	rc = netlink_set_up(nl, "lo");
	if (!rc && side == LAB_CLIENT)
		rc = netlink_add_veth(nl, LAB_INTERFACE, lab->netns[LAB_SERVER]);
	if (!rc)
		rc = netlink_add_address(nl, LAB_INTERFACE, ipv4[side], 30);
	if (!rc) {
		rc = netlink_add_address(nl, LAB_INTERFACE, ipv6[side], 64);
		if (rc == -EOPNOTSUPP ||
		    rc == -EACCES) /* a kernel without IPv6 has a lab without it */
			rc = 0;
	}
	if (!rc)
		rc = netlink_set_up(nl, LAB_INTERFACE);
	mnl_socket_close(nl);
	return rc;
}

/* The calling thread is inside the side. */
static int wait_usable(void)
{
	struct mnl_socket *nl = netlink_open();
	bool up = false;
	int rc = 0;

	if (!nl)
		return -EIO;
	for (int ms = 0; !rc && !up && ms < USABLE_MS; ms++) {
		rc = netlink_is_up(nl, LAB_INTERFACE, &up);
		if (!rc && !up)
			nanosleep(&(struct timespec){0, NS_PER_MS}, NULL);
	}
	mnl_socket_close(nl);
	if (!rc && !up)
		rc = err_set(-ETIMEDOUT, "the lab's interface did not come up within %d ms",
			     USABLE_MS);
	return rc;
}

static int build(struct lab *lab)
{
	int own = open_own_netns(), rc;

	if (own < 0)
		return own;
	rc = make_netns(lab, LAB_SERVER);
	if (!rc)
		rc = make_netns(lab, LAB_CLIENT);
	if (!rc)
		rc = configure(lab, LAB_CLIENT);
	if (!rc)
		rc = lab_enter(lab, LAB_SERVER);
	if (!rc)
		rc = configure(lab, LAB_SERVER);
	if (!rc)
		rc = wait_usable();
	if (!rc)
		rc = lab_enter(lab, LAB_CLIENT);
	if (!rc)
		rc = wait_usable();
	go_back(own);
	return rc;
}

static bool capable(cap_value_t capability)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;

	if (caps)
		cap_get_flag(caps, capability, CAP_EFFECTIVE, &value);
	cap_free(caps);
	return value == CAP_SET;
}

int lab_create(struct lab *lab)
{
	int dir, rc;

	*lab = LAB_NONE;
	if (!capable(CAP_SYS_ADMIN) || !capable(CAP_NET_ADMIN))
		return err_set(-EPERM,
			       "--lab makes network namespaces, which needs CAP_SYS_ADMIN and "
			       "CAP_NET_ADMIN; run it as root");
	for (int side = 0; side < LAB_SIDES; side++) {
		snprintf(lab->name[side], sizeof(lab->name[side]), "layover-%d-%s", (int)getpid(),
			 side_names[side]);
		snprintf(lab->path[side], sizeof(lab->path[side]), NETNS_DIR "/%s",
			 lab->name[side]);
	}
	dir = open_netns_dir();
	if (dir < 0)
		return dir;
	remove_leftovers_locked();
	rc = build(lab);
	close(dir); /* and its lock */
	if (rc)
		lab_destroy(lab);
	return rc;
}

/* --- use
 * ---------------------------------------------------------------------------------------------- */

int lab_inside(const struct lab *lab, enum lab_side side, int (*call)(void *arg), void *arg)
{
	int own = open_own_netns(), rc;

	if (own < 0)
		return own;
	rc = lab_enter(lab, side);
	if (!rc)
		rc = call(arg);
	go_back(own);
	return rc;
}

struct socket_wish {
	int family, type, proto;
};

static int make_socket(void *arg)
{
	const struct socket_wish *wish = arg;
	int fd = socket(wish->family, wish->type, wish->proto);

	return fd >= 0 ? fd
		       : err_set(-errno, "cannot make a socket in the lab: %s", strerror(errno));
}

int lab_socket(const struct lab *lab, enum lab_side side, int family, int type, int proto)
{
	struct socket_wish wish = {family, type, proto};

	return lab_inside(lab, side, make_socket, &wish);
}

int lab_client_socket(void *arg, int family, int type, int proto)
{
	return lab_socket(arg, LAB_CLIENT, family, type, proto);
}

static int listen_inside(const struct lab *lab, int family)
{
	struct sockaddr_in6 addr6 = {.sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT)};
	struct sockaddr_in addr4 = {.sin_family = AF_INET, .sin_port = htons(SERVER_PORT)};
	int fd = lab_socket(lab, LAB_SERVER, family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return fd;
	inet_pton(AF_INET6, LAB_SERVER_IPV6, &addr6.sin6_addr);
	inet_pton(AF_INET, LAB_SERVER_IPV4, &addr4.sin_addr);
	rc = family == AF_INET6 ? server_listen(fd, (struct sockaddr *)&addr6, sizeof(addr6))
				: server_listen(fd, (struct sockaddr *)&addr4, sizeof(addr4));
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* The server's process. Ctrl-C goes to the whole foreground group, but the end comes from the
 * parent. */
static void serve(const struct lab *lab, const struct lab_server *server, int listen_fd,
		  pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	if (getppid() != parent || lab_enter(lab, LAB_SERVER))
		_exit(EXIT_FAILED);
	for (int side = 0; side < LAB_SIDES; side++)
		close(lab->netns[side]); /* the lock on them is the parent's alone */
	_exit(server->run(listen_fd, server->arg) ? EXIT_FAILED : EXIT_OK);
}

static int run_driver(int listen_fd, const void *arg)
{
	(void)arg;
	return server_run(listen_fd, -1, &(struct server_rules){0});
}

int lab_serve(struct lab *lab, int family, char *target)
{
	return lab_serve_by(lab, family, &(struct lab_server){.run = run_driver}, target);
}

int lab_serve_by(struct lab *lab, int family, const struct lab_server *server, char *target)
{
	pid_t parent = getpid();
	int fd = listen_inside(lab, family);

	if (fd < 0)
		return fd;
	if (server->rcvbuf)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &server->rcvbuf, sizeof(server->rcvbuf));
	fflush(NULL); /* or the child would print it again */
	lab->server = fork();
	if (lab->server == 0)
		serve(lab, server, fd, parent);
	close(fd);
	if (lab->server < 0) {
		lab->server = 0;
		return err_set(-errno, "cannot start the lab's server: %s", strerror(errno));
	}
	snprintf(target, LAB_TARGET_MAX, family == AF_INET6 ? "[%s]:%d" : "%s:%d",
		 family == AF_INET6 ? LAB_SERVER_IPV6 : LAB_SERVER_IPV4, SERVER_PORT);
	return 0;
}

void lab_abandon(const struct lab *lab)
{
	if (lab->server > 0)
		kill(lab->server, SIGKILL);
	for (int side = 0; side < LAB_SIDES; side++)
		if (lab->netns[side] >= 0)
			remove_name(lab->path[side]);
}

void lab_destroy(struct lab *lab)
{
	/* The names of the namespaces are mounts as well: they must go where they were made. */
	if (lab->mounts >= 0) {
		setns(lab->mounts, CLONE_NEWNS);
		close(lab->mounts);
	}
	lab_abandon(lab);
	while (lab->server > 0 && waitpid(lab->server, NULL, 0) < 0 && errno == EINTR)
		;
	for (int side = 0; side < LAB_SIDES; side++)
		if (lab->netns[side] >= 0)
			close(lab->netns[side]);
	*lab = LAB_NONE;
}
