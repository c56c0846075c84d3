// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/scenarios.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "cmd/plan_settings.h"
#include "lab/lose.h"
#include "load/client.h"
#include "load/clock.h"

enum { HOG_PRIORITY = 10 };

#define HOG_RUNS_NS   (20ULL * NS_PER_MS)
#define HOG_SLEEPS_NS (5ULL * NS_PER_MS)

static void two_writes(struct load_plan *plan)
{
	plan->writes = (struct plan_writes){2, {20, 20}};
	plan->bytes = 40;
	plan->nodelay = false;
}

static void two_writes_nodelay(struct load_plan *plan)
{
	two_writes(plan);
	plan->nodelay = true;
}

static void one_write(struct load_plan *plan)
{
	plan->bytes = 40;
	plan->nodelay = false;
}

static void two_writes_back(struct load_plan *plan)
{
	plan->bytes = plan->reply_bytes = 40;
	plan->reply_writes = (struct plan_writes){2, {20, 20}};
	plan->nodelay = false;
}

static void cork(struct load_plan *plan)
{
	plan->cork = PLAN_CORK_HOLD;
}

static void slow_server(struct load_plan *plan)
{
	plan->server_delay_ns = 3ULL * NS_PER_MS;
}

const struct scenario scenarios[] = {
	{"healthy", "64 bytes there and back", NULL, NULL, 0, false},
	{"write-write-read", "a request in two writes, without TCP_NODELAY", two_writes, NULL, 0,
	 false},
	{"write-write-read-nodelay", "the same with TCP_NODELAY: cured", two_writes_nodelay, NULL,
	 0, false},
	{"one-write", "the same in one write: cured", one_write, NULL, 0, false},
	{"reply-in-two-writes", "the server answers in two writes, without TCP_NODELAY",
	 two_writes_back, NULL, 0, false},
	{"cork", "TCP_CORK that is never taken off", cork, NULL, 0, false},
	{"slow-server", "the server computes for 3 ms", slow_server, NULL, 0, false},
	{"loss", "one of 50 requests is lost on its way", NULL, NULL, 50, false},
	{"cpu-hog", "a real-time task wants the server's CPU, 20 ms of 25", NULL, NULL, 0, true},
	{"tbf", "a queueing discipline that lets 200 kbit/s pass", NULL,
	 "tbf rate 200kbit burst 1600 latency 1s", 0, false},
	{0},
};

const struct scenario *scenario_by_name(const char *name)
{
	for (const struct scenario *s = scenarios; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

/* A child that does not outlive this process. As fork(2). */
static pid_t spawn(void)
{
	pid_t parent = getpid(), child;

	fflush(NULL);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	signal(SIGINT, SIG_IGN); /* it ends with the scene */
	return 0;
}

/* "tc -n NAMESPACE qdisc add dev … root WORDS" */
static int add_qdisc(const struct lab *lab, const char *words)
{
	const char *argv[24] = {"tc",  "-n",  lab->name[LAB_CLIENT], "qdisc",
				"add", "dev", LAB_INTERFACE,         "root"};
	char copy[128], *rest = copy, *word;
	int n = 8, status = -1;
	pid_t child;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&rest, " ")) && n < 23)
		argv[n++] = word;
	child = spawn();
	if (child == 0) {
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return status ? err_set(-EIO,
				"tc (Debian: iproute2) could not set the queueing discipline '%s'",
				words)
		      : 0;
}

/* Real-time, so that no fair share is left to the reader; it sleeps, so that the machine stays usable. */
static void hog_cpu(int cpu)
{
	struct sched_param param = {.sched_priority = HOG_PRIORITY};
	struct timespec nap = clock_timespec(HOG_SLEEPS_NS);

	if (cpus_pin(cpu))
		_exit(EXIT_FAILED);
	sched_setscheduler(0, SCHED_FIFO, &param);
	for (;;) {
		uint64_t until = clock_ns() + HOG_RUNS_NS;

		while (clock_ns() < until)
			;
		nanosleep(&nap, NULL);
	}
}

static void run_client(struct scene *scene, const struct load_plan *plan, const char *target)
{
	struct load_client *client;
	int rc = client_open(&client, plan, target, lab_client_socket, &scene->lab);

	if (!rc)
		rc = client_block(client, 0, 0, NULL);
	_exit(rc ? say_error(EXIT_FAILED, "the scenario's client: %s", err_text(rc)) : EXIT_OK);
}

static int start_all(struct scene *scene, const struct scenario *scenario, struct load_plan *plan)
{
	char target[LAB_TARGET_MAX];
	int rc = lab_serve(&scene->lab, AF_INET, target);

	if (!rc && scenario->qdisc)
		rc = add_qdisc(&scene->lab, scenario->qdisc);
	if (!rc && scenario->lose)
		rc = lose_attach(&scene->lab, LAB_SERVER, scenario->lose);
	if (rc)
		return rc;
	if (scenario->hog && (scene->hog = spawn()) == 0)
		hog_cpu(plan->server_cpu);
	scene->client = spawn();
	if (scene->client == 0)
		run_client(scene, plan, target);
	return scene->client < 0 || scene->hog < 0
		       ? err_set(-errno, "cannot start a process: %s", strerror(errno))
		       : 0;
}

int scene_start(struct scene *scene, const struct scenario *scenario)
{
	struct load_plan plan;
	int rc;

	plan_default(&plan);
	plan_pin_lab(&plan);
	if (scenario->shape)
		scenario->shape(&plan);
	*scene = (struct scene){.lab = LAB_NONE};
	rc = lab_create(&scene->lab);
	if (!rc)
		rc = start_all(scene, scenario, &plan);
	if (rc)
		scene_end(scene);
	return rc;
}

uint64_t scene_namespace(const struct scene *scene)
{
	struct stat status;

	return fstat(scene->lab.netns[LAB_CLIENT], &status) ? 0 : status.st_ino;
}

static void end_process(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void scene_end(struct scene *scene)
{
	end_process(scene->client);
	end_process(scene->hog);
	lab_destroy(&scene->lab);
	*scene = (struct scene){.lab = LAB_NONE};
}
