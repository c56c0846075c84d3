// SPDX-License-Identifier: GPL-2.0-only
#include "load/remote.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "load/clock.h"
#include "load/control.h"

#define FRAME_NS ((uint64_t)CONTROL_FRAME_S * NS_PER_S)
#define START_NS (30ULL * NS_PER_S)

/* More frames than a server's buffer can fill are nonsense, and would keep us here for ever. */
enum { FRAMES_MAX = 4096 };

static json_t *hook_names(uint32_t hooks)
{
	struct records_layout layout;

	records_layout(hooks, &layout);
	return records_layout_to_json(&layout);
}

/* What the server says instead of an answer. */
static int not_expected(const json_t *object)
{
	char said[256];

	if (strcmp(control_type(object), "error") != 0)
		return err_set(-EPROTO, "the server sent a frame that was not expected");
	return err_set(-ECONNRESET, "the server ended the session: %s",
		       control_text(object, "text", said, sizeof(said)));
}

static int read_answer(struct remote *remote, const json_t *answer)
{
	if (strcmp(control_type(answer), "trace") != 0)
		return not_expected(answer);
	remote->traced = json_is_true(json_object_get(answer, "traced"));
	control_text(answer, "reason", remote->reason, sizeof(remote->reason));
	if (!remote->traced)
		return 0;
	return records_layout_from_json(json_object_get(answer, "hooks"), &remote->layout);
}

int remote_start(struct remote *remote, int fd, uint32_t with, uint32_t without)
{
	json_t *answer;
	int rc = control_send(fd, FRAME_NS,
			      json_pack("{s:s, s:o, s:o}", "type", "trace", "with",
					hook_names(with), "without", hook_names(without)));

	*remote = (struct remote){.fd = fd};
	if (!rc)
		rc = control_receive(fd, START_NS, &answer);
	if (rc)
		return rc;
	rc = read_answer(remote, answer);
	json_decref(answer);
	return rc;
}

/* One frame of an answer. */
static int fetch_frame(struct remote *remote, records_sink *sink, void *arg,
		       struct records_header *header)
{
	struct control_frame frame;
	int rc = control_receive_any(remote->fd, FRAME_NS, &frame);

	if (rc)
		return rc;
	if (frame.object)
		rc = not_expected(frame.object);
	else
		rc = records_read(frame.bytes, frame.size, &remote->layout, header, sink, arg);
	control_release(&frame);
	return rc;
}

int remote_fetch(struct remote *remote, bool attach, records_sink *sink, void *arg)
{
	struct records_header header = {.last = false};
	uint64_t asked = clock_ns();
	int rc = control_send(remote->fd, FRAME_NS,
			      json_pack("{s:s, s:b}", "type", "records", "attach", attach));

	for (int frames = 0; !rc && !header.last; frames++) {
		if (frames == FRAMES_MAX)
			return err_set(-EPROTO, "the server's records do not come to an end");
		rc = fetch_frame(remote, sink, arg, &header);
		if (!rc &&
		    !frames) { /* the first frame is the nearest to the reading of the clock */
			remote->ahead_min = (int64_t)(header.clock - clock_ns());
			remote->ahead_max = (int64_t)(header.clock - asked);
		}
	}
	if (!rc)
		remote->counters = header.counters; /* complete in the last frame only */
	return rc;
}
