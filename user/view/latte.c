// SPDX-License-Identifier: GPL-2.0-only
/* latte's CSV and histogram. */
#include <math.h>

#include "load/clock.h"
#include "load/io.h"
#include "view/view.h"

/* A Unix stream it does not have. */
static const char *const protocols[PLAN_PROTOS] = {
	[PLAN_TCP] = "TCP", [PLAN_UDP] = "UDP",   [PLAN_MULTICAST] = "UDP_MCAST",
	[PLAN_RAW] = "RAW", [PLAN_UNIX] = "UNIX",
};

/* The nearest of its methods, which are those of Windows. */
static const char *const methods[IO_METHODS] = {
	[IO_BLOCK] = "Blocking",     [IO_SPIN] = "NonBlocking", [IO_SELECT] = "Select",
	[IO_POLL] = "Select",        [IO_EPOLL] = "Ov_Event",   [IO_URING] = "Ov_CP",
	[IO_URING_POLL] = "Ov_POLL", [IO_URING_FIXED] = "RIO",
};

static const char head[] =
	"Protocol,SendMethod,ReceiveMethod,SO_SNDBUF,SO_RCVBUF,MsgSize(byte),Iterations,";
static const char tail[] = ",CPU(%),CtxSwitch/sec,SysCall/sec,Interrupt/sec\n";

static void print_buffer(uint64_t bytes)
{
	if (bytes)
		printf("%llu,", (unsigned long long)bytes);
	else
		printf("Default,");
}

/* An empty field is not known: latte itself always knows. */
static void print_figure(double value, int decimals)
{
	putchar(',');
	if (!isnan(value))
		printf("%.*f", decimals, value);
}

int view_latte_csv(const struct report *report)
{
	const struct load_plan *plan = report->run->plan;

	printf("%s%s%s", head, report->half ? "Half Round-Trip Latency(usec)" : "Latency(usec)",
	       tail);
	printf("%s,%s,%s,", protocols[plan->proto], methods[plan->io], methods[plan->io]);
	print_buffer(plan->sndbuf);
	print_buffer(plan->rcvbuf);
	printf("%llu,%llu,%.2f", (unsigned long long)plan->bytes,
	       (unsigned long long)report->rtt.count, report->rtt.mean / NS_PER_US);
	print_figure(report->os.rate[OS_MACHINE][OS_CPU], 1);
	print_figure(report->os.rate[OS_MACHINE][OS_SWITCHES], 0);
	print_figure(report->os.rate[OS_MACHINE][OS_CALLS], 0);
	print_figure(report->os.rate[OS_MACHINE][OS_INTERRUPTS], 0);
	putchar('\n');
	return 0;
}
