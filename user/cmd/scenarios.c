// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/scenarios.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cpus.h"
#include "base/error.h"
#include "cmd/actors.h"
#include "cmd/plan_settings.h"
#include "lab/lose.h"
#include "load/clock.h"
#include "load/peer.h"

#define OTHERS_PAUSE_NS (5ULL * NS_PER_MS)

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

static void larger_than_the_buffer(struct load_plan *plan)
{
	plan->bytes = 64 << 10;
}

static void many_windows(struct load_plan *plan)
{
	plan->bytes = 512 << 10;
}

/* The famous remedy: with a small buffer at the receiver its sender halves the MSS, and 600 bytes are no small segment. */
static void header_and_body(struct load_plan *plan)
{
	plan->writes = (struct plan_writes){2, {600, 20}};
	plan->bytes = 620;
	plan->nodelay = false;
}

const struct scenario scenarios[] = {
	{"healthy", "64 bytes there and back", .others = 0},
	{"write-write-read", "a request in two writes, without TCP_NODELAY", .shape = two_writes},
	{"write-write-read-nodelay", "the same with TCP_NODELAY: cured",
	 .shape = two_writes_nodelay},
	{"one-write", "the same in one write: cured", .shape = one_write},
	{"reply-in-two-writes", "an answer in two writes, without TCP_NODELAY",
	 .shape = two_writes_back},
	{"header-body", "600 and 20 bytes in two writes, without TCP_NODELAY",
	 .shape = header_and_body},
	{"header-body-small-rcvbuf", "the same to the least SO_RCVBUF: some turns cured",
	 .shape = header_and_body, .reader = true, .rcvbuf = 1},
	{"cork", "TCP_CORK that is never taken off", .shape = cork},
	{"small-rcvbuf", "512 KiB to a reader with 4 KiB of buffer", .shape = many_windows,
	 .reader = true, .rcvbuf = 4096},
	{"zero-window", "64 KiB to a 16 KiB buffer that is read 300 ms late",
	 .shape = larger_than_the_buffer, .reader = true, .rcvbuf = 16384,
	 .read_pause_ns = 300ULL * NS_PER_MS},
	{"slow-reader", "the server reads each message 5 ms late", .reader = true,
	 .read_pause_ns = 5ULL * NS_PER_MS},
	{"slow-server", "the server computes for 3 ms", .shape = slow_server},
	{"loss", "one of 50 requests is lost on its way", .lose = 50, .lost = 1},
	{"loss-rto", "one of 50 requests is lost, and then once more", .lose = 50, .lost = 2},
	{"cpu-hog", "a real-time task wants the server's CPU, 20 ms of 25", .hog = true},
	{"cross-cpu", "the server reads on another CPU than its softirq", .two_cpus = true},
	{"rps", "RPS hands the server's packets on to another CPU", .rps = true},
	{"tbf", "a queueing discipline that lets 200 kbit/s pass",
	 .qdisc = "tbf rate 200kbit burst 1600 latency 1s"},
	{"one-of-many", "write-write-read beside 16 healthy flows", .shape = two_writes,
	 .others = 16},
	{0},
};

const struct scenario *scenario_by_name(const char *name)
{
	for (const struct scenario *s = scenarios; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

static int start_server(struct scene *scene, const struct scenario *scenario,
			struct load_plan *plan, char *target)
{
	struct actor_reader reader = {
		.pause_ns = scenario->read_pause_ns, .bytes = plan->bytes, .cpu = plan->server_cpu};

	if (!scenario->reader)
		return lab_serve(&scene->lab, AF_INET, target);
	plan->peer = PEER_ECHO;
	plan->server_cpu = -1;
	return lab_serve_by(&scene->lab, AF_INET,
			    &(struct lab_server){actor_read, &reader, scenario->rcvbuf}, target);
}

/* What is wrong between the two ends. */
static int disturb(struct scene *scene, const struct scenario *scenario)
{
	int rc = scenario->qdisc ? actor_qdisc(&scene->lab, scenario->qdisc) : 0;

	if (!rc && scenario->lose)
		rc = lose_attach(&scene->lab, LAB_SERVER, scenario->lose, scenario->lost);
	if (!rc && scenario->rps)
		rc = actor_rps(&scene->lab, LAB_SERVER, cpus_nth(1));
	return rc;
}

/* Starts a client as the scenario's n-th actor. */
static int add_client(struct scene *scene, const struct load_plan *plan, const char *target,
		      uint64_t pause_ns)
{
	pid_t *actor = &scene->actors[scene->actor_count];

	*actor = actor_spawn();
	if (*actor == 0)
		actor_client(&scene->lab, plan, target, pause_ns);
	if (*actor < 0)
		return err_set(-errno, "cannot start a process: %s", strerror(errno));
	scene->actor_count++;
	return 0;
}

static int start_all(struct scene *scene, const struct scenario *scenario, struct load_plan *plan)
{
	char target[LAB_TARGET_MAX];
	struct load_plan healthy = *plan;
	int hog_cpu = plan->server_cpu, rc;

	if (scenario->shape)
		scenario->shape(plan);
	rc = start_server(scene, scenario, plan, target);
	if (!rc)
		rc = disturb(scene, scenario);
	if (!rc && scenario->hog && (scene->actors[scene->actor_count++] = actor_spawn()) == 0)
		actor_hog(hog_cpu);
	if (!rc)
		rc = add_client(scene, plan, target, 0);
	for (unsigned int i = 0; !rc && i < scenario->others; i++)
		rc = add_client(scene, &healthy, target, OTHERS_PAUSE_NS);
	return rc;
}

/*
 * Both ends are on one CPU, so that nothing wakes across CPUs, unless that is the scenario's, or another task is to
 * take the server's CPU and not the client's.
 */
static void place(const struct scenario *scenario, struct load_plan *plan)
{
	plan->client_cpu = cpus_nth(0);
	if (!scenario->two_cpus && !scenario->hog)
		plan->server_cpu = plan->client_cpu;
	plan_pin_lab(plan);
}

int scene_start(struct scene *scene, const struct scenario *scenario)
{
	struct load_plan plan;
	int rc;

	plan_default(&plan);
	place(scenario, &plan);
	*scene = (struct scene){.lab = LAB_NONE};
	rc = lab_create(&scene->lab);
	if (!rc)
		rc = start_all(scene, scenario, &plan);
	if (rc)
		scene_end(scene);
	return rc;
}

int scene_start_three(struct scene *scene)
{
	static const char *const names[] = {"healthy", "write-write-read", "cross-cpu"};
	char target[LAB_TARGET_MAX];
	int rc;

	*scene = (struct scene){.lab = LAB_NONE};
	rc = lab_create(&scene->lab);
	if (!rc)
		rc = lab_serve(&scene->lab, AF_INET, target);
	for (size_t i = 0; !rc && i < sizeof(names) / sizeof(names[0]); i++) {
		const struct scenario *scenario = scenario_by_name(names[i]);
		struct load_plan plan;

		plan_default(&plan);
		place(scenario, &plan);
		if (scenario->shape)
			scenario->shape(&plan);
		rc = add_client(scene, &plan, target, OTHERS_PAUSE_NS);
	}
	if (rc)
		scene_end(scene);
	return rc;
}

uint64_t scene_namespace(const struct scene *scene)
{
	struct stat status;

	return fstat(scene->lab.netns[LAB_CLIENT], &status) ? 0 : status.st_ino;
}

void scene_end(struct scene *scene)
{
	for (int i = 0; i < scene->actor_count; i++) {
		if (scene->actors[i] <= 0)
			continue;
		kill(scene->actors[i], SIGKILL);
		while (waitpid(scene->actors[i], NULL, 0) < 0 && errno == EINTR)
			;
	}
	lab_destroy(&scene->lab);
	*scene = (struct scene){.lab = LAB_NONE};
}
