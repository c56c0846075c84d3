// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/top_live.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "abi/state.h"
#include "base/error.h"
#include "load/clock.h"
#include "tui/top.h"
#include "tune/cpu_load.h"

enum source_fd { FD_KEYS, FD_SIGNALS, FD_INTERVAL, FD_DRAIN, FDS };

struct live_screen {
	struct top_source *source;
	const struct top_live_wish *wish;
	struct screen screen;
	struct tui_top tui;
	struct cpu_load load;
	struct top_cpu cpus[2][CPUS]; /* now, and an interval ago */
	struct socket_facts facts;
	int fds[FDS], epoll;
	uint64_t intervals;
	bool over;
};

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(set, handled[i]);
}

void top_live_block(void)
{
	sigset_t set;

	signal_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int set_timer(int fd, uint64_t ns)
{
	const struct itimerspec every = {clock_timespec(ns), clock_timespec(ns)};

	return timerfd_settime(fd, 0, &every, NULL) ? -errno : 0;
}

static int open_fds(struct live_screen *l)
{
	sigset_t set;
	int rc = 0;

	signal_set(&set);
	l->fds[FD_KEYS] = STDIN_FILENO;
	l->fds[FD_SIGNALS] = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	l->fds[FD_INTERVAL] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	l->fds[FD_DRAIN] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; !rc && i < FDS; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fds[i], &event))
			rc = -errno;
	}
	if (!rc)
		rc = set_timer(l->fds[FD_INTERVAL], l->wish->interval_ns);
	if (!rc)
		rc = set_timer(l->fds[FD_DRAIN], TOP_DRAIN_NS);
	return rc ? err_set(rc, "cannot wait for keys and time: %s", strerror(-rc)) : 0;
}

static void close_fds(struct live_screen *l)
{
	for (int i = FD_SIGNALS; i < FDS; i++)
		if (l->fds[i] > 0)
			close(l->fds[i]);
	if (l->epoll > 0)
		close(l->epoll);
}

/* --- an interval --------------------------------------------------------------------------------- */

static void take_cpus(struct live_screen *l)
{
	if (l->tui.frozen)
		return;
	memcpy(l->cpus[1], l->cpus[0], sizeof(l->cpus[1]));
	memcpy(l->cpus[0], book_cpus(l->source->book), sizeof(l->cpus[0]));
}

static int end_interval(struct live_screen *l)
{
	struct top_source *s = l->source;
	int rc = top_source_snapshot(s);

	if (!rc && !l->tui.frozen)
		rc = cpu_load_update(&l->load);
	if (rc)
		return rc;
	take_cpus(l);
	if (s->focus.active && l->tui.page == PAGE_SOCKET && !s->focus.gone)
		socket_facts_read(&s->focus.who, &l->facts);
	rc = tui_top_take(&l->tui, &s->top, &s->focus, &l->facts, &s->counters);
	l->intervals++;
	if (l->wish->count && l->intervals >= l->wish->count)
		l->over = true;
	return rc;
}

/* --- keys ---------------------------------------------------------------------------------------- */

/* Into the directory it was started in, under a name that is not there yet. */
static void write_report(struct live_screen *l)
{
	char name[64], stamp[32];
	time_t now = time(NULL);
	struct tm local;
	FILE *file;

	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &local));
	snprintf(name, sizeof(name), "layover-top-%s.txt", stamp);
	file = fopen(name, "wxe");
	if (file) {
		screen_print(&l->screen, file);
		fclose(file);
		snprintf(l->tui.message, sizeof(l->tui.message), " Written: %s", name);
	} else {
		snprintf(l->tui.message, sizeof(l->tui.message), " Cannot write %s: %s", name,
			 strerror(errno));
	}
}

static int fulfil(struct live_screen *l)
{
	struct tui_top *tui = &l->tui;
	int rc = 0;

	if (tui->wants_focus) {
		bool one = tui->focus_row.who.socket != 0;

		rc = top_source_focus(l->source, one ? &tui->focus_row : NULL);
		l->facts = (struct socket_facts){0};
		if (one)
			socket_facts_read(&tui->focus_row.who, &l->facts);
		tui->shot.focus = l->source->focus;
		tui->shot.facts = l->facts;
	}
	if (!rc && tui->wants_baseline)
		rc = top_set_baseline(&l->source->top, tui->baseline);
	if (!rc && tui->wants_interval)
		rc = set_timer(l->fds[FD_INTERVAL], tui->interval_ns);
	if (tui->wants_report)
		write_report(l);
	if (tui->wants_quit)
		l->over = true;
	tui->wants_focus = tui->wants_baseline = tui->wants_interval = tui->wants_report = false;
	return rc;
}

/* All keys that are waiting; none at all although there was something to read: the terminal is gone. */
static int take_keys(struct live_screen *l)
{
	bool any = false;
	int key, rc = 0;

	while (!rc && (key = screen_key()) >= 0) {
		any = true;
		tui_top_key(&l->tui, key);
		rc = fulfil(l);
	}
	if (!any)
		l->over = true;
	tui_top_draw(&l->tui);
	return rc;
}

/* --- signals ------------------------------------------------------------------------------------- */

/* As the shell's user expects of Ctrl-Z: the terminal is given back first, and taken again with `fg`. */
static void suspend(struct live_screen *l)
{
	screen_leave(&l->screen);
	kill(getpid(), SIGSTOP);
	screen_return(&l->screen);
	tui_top_draw(&l->tui);
}

static void take_signals(struct live_screen *l)
{
	struct signalfd_siginfo info;

	while (read(l->fds[FD_SIGNALS], &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH || info.ssi_signo == SIGCONT) {
			screen_resized(&l->screen);
			tui_top_draw(&l->tui);
		} else if (info.ssi_signo == SIGTSTP) {
			suspend(l);
		} else {
			l->over = true;
		}
	}
}

/* --- the loop ------------------------------------------------------------------------------------ */

static void forget_ticks(int fd)
{
	uint64_t ticks;
	ssize_t n = read(fd, &ticks, sizeof(ticks));

	(void)n; /* how many there were does not matter */
}

static int loop(struct live_screen *l)
{
	struct epoll_event events[FDS];
	int rc = 0;

	while (!rc && !l->over) {
		int n = epoll_wait(l->epoll, events, FDS, -1);

		if (n < 0 && errno != EINTR)
			return err_set(-errno, "cannot wait for events: %s", strerror(errno));
		for (int i = 0; !rc && i < n; i++) {
			switch (events[i].data.u32) {
			case FD_KEYS:
				rc = take_keys(l);
				break;
			case FD_SIGNALS:
				take_signals(l);
				break;
			case FD_INTERVAL:
				forget_ticks(l->fds[FD_INTERVAL]);
				rc = end_interval(l);
				tui_top_draw(&l->tui);
				break;
			default:
				forget_ticks(l->fds[FD_DRAIN]);
				rc = top_source_drain(l->source);
			}
		}
	}
	return rc;
}

/* What was on the screen, kept while the terminal is given back. */
static void finish(struct live_screen *l, bool report)
{
	char *text = NULL;
	size_t size;
	FILE *memory = report ? open_memstream(&text, &size) : NULL;

	if (memory) {
		screen_print(&l->screen, memory);
		fclose(memory);
	}
	screen_close(&l->screen);
	if (text)
		fputs(text, stdout);
	free(text);
}

int top_live(struct top_source *source, const struct top_live_wish *wish)
{
	struct live_screen *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return err_set(-ENOMEM, "no memory for the screen");
	l->source = source;
	l->wish = wish;
	rc = cpu_load_open(&l->load);
	if (!rc)
		rc = screen_open(&l->screen, &wish->screen);
	if (!rc) {
		tui_top_begin(&l->tui, &l->screen);
		l->tui.events = &source->events;
		l->tui.load = &l->load;
		l->tui.cpus = l->cpus[0];
		l->tui.cpus_before = l->cpus[1];
		l->tui.interval_ns = wish->interval_ns;
		l->tui.sort = wish->sort;
		l->tui.reverse = wish->reverse;
		take_cpus(l);
		rc = open_fds(l);
		if (!rc) {
			tui_top_draw(&l->tui);
			rc = loop(l);
		}
		finish(l, !rc && wish->report_on_exit);
		close_fds(l);
		tui_top_end(&l->tui);
	}
	cpu_load_free(&l->load);
	free(l);
	return rc;
}
