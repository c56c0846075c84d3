// SPDX-License-Identifier: GPL-2.0-only
#include "tune/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int no_memory(void)
{
	return err_set(-ENOMEM, "no memory for the plan");
}

/* new NULL: kept. */
static int append(struct plan *plan, const struct setting_ref *ref, const char *old,
		  const char *new, const char *why)
{
	struct change *more = realloc(plan->rows, sizeof(*more) * (size_t)(plan->n + 1)), *row;

	if (!more)
		return no_memory();
	plan->rows = more;
	row = &plan->rows[plan->n++];
	*row = (struct change){.ref.knob = ref->knob,
			       .ref.device = strdup(ref->device),
			       .ref.key = strdup(ref->key),
			       .old = strdup(old),
			       .new = new ? strdup(new) : NULL,
			       .why = strdup(why)};
	if (!row->ref.device || !row->ref.key || !row->old || !row->why || (new && !row->new))
		return no_memory();
	return 0;
}

int plan_add(struct plan *plan, const char *knob, const char *device, const char *key,
	     const char *new, const char *why)
{
	struct setting_ref ref = {knob_find(knob), device, key};
	char *old = malloc(KNOB_TEXT), name[KNOB_NAME];
	int rc = old ? knob_check(&ref) : no_memory();

	if (rc)
		goto out;
	rc = knob_read(&ref, old);
	if (rc && !new)
		rc = 0;
	else if (rc) {
		knob_say(&ref, name);
		err_set(rc, "%s cannot be read: %s", name, knob_refusal(&ref, rc));
	} else if (!new || !ref.knob->same(old, new))
		rc = append(plan, &ref, old, new, why);
out:
	free(old);
	return rc;
}

int plan_merge(struct plan *plan, const struct plan *from)
{
	int rc = 0;

	for (int i = 0; i < from->n && !rc; i++) {
		const struct change *c = &from->rows[i];
		bool there = false;

		for (int k = 0; k < plan->n && !there; k++)
			there = setting_same(&plan->rows[k].ref, &c->ref);
		if (!there)
			rc = append(plan, &c->ref, c->old, c->new, c->why);
	}
	return rc;
}

void plan_free(struct plan *plan)
{
	for (int i = 0; i < plan->n; i++) {
		free((char *)plan->rows[i].ref.device);
		free((char *)plan->rows[i].ref.key);
		free(plan->rows[i].old);
		free(plan->rows[i].new);
		free(plan->rows[i].why);
	}
	free(plan->rows);
	*plan = (struct plan){0};
}

json_t *change_to_json(const struct change *c)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s}", "kind", c->ref.knob->name, "device",
			 c->ref.device, "key", c->ref.key, "old", c->old, "new", c->new, "why",
			 c->why);
}

int plan_add_json(struct plan *plan, json_t *object)
{
	const char *kind, *device, *key, *old, *new, *why = "";
	struct setting_ref ref;
	int rc;

	if (json_unpack(object, "{s:s, s:s, s:s, s:s, s?s}", "kind", &kind, "device", &device,
			"key", &key, "old", &old, "why", &why))
		return err_set(-EINVAL, "a change lacks its kind, device, key or old value");
	new = json_string_value(json_object_get(object, "new"));
	ref = (struct setting_ref){knob_find(kind), device, key};
	if (!ref.knob)
		return err_set(-EINVAL, "there is no kind of setting '%s'", kind);
	if (strlen(old) >= KNOB_TEXT || (new &&strlen(new) >= KNOB_TEXT))
		return err_set(-EINVAL, "a value of %s is too long", kind);
	rc = knob_check(&ref);
	return rc ? rc : append(plan, &ref, old, new, why);
}

int plan_load(const char *path, struct plan *plan)
{
	json_error_t error;
	json_t *all = json_load_file(path, 0, &error), *rows, *row;
	size_t i;
	int rc = 0;

	*plan = (struct plan){0};
	if (!all)
		return err_set(-EINVAL, "cannot read the plan %s: %s", path, error.text);
	rows = json_object_get(all, "changes");
	if (!json_is_array(rows))
		rc = err_set(-EINVAL, "%s is not a plan: 'layover irq plan ... -j' writes one",
			     path);
	json_array_foreach (rows, i, row) {
		if (!rc)
			rc = plan_add_json(plan, row);
	}
	json_decref(all);
	return rc;
}

int plan_is_current(const struct plan *plan)
{
	char *now = malloc(KNOB_TEXT), name[KNOB_NAME], was[KNOB_NAME], is[KNOB_NAME];
	int rc = now ? 0 : no_memory();

	for (int i = 0; i < plan->n && !rc; i++) {
		const struct change *c = &plan->rows[i];

		rc = knob_read(&c->ref, now);
		knob_say(&c->ref, name);
		if (rc) {
			err_set(rc, "%s cannot be read: %s", name, knob_refusal(&c->ref, rc));
			break;
		}
		if (c->ref.knob->same(now, c->old))
			continue;
		knob_say_value(&c->ref, c->old, was);
		knob_say_value(&c->ref, now, is);
		rc = err_set(-ESTALE, "%s was %.100s when planned and is %.100s now; plan again",
			     name, was, is);
	}
	free(now);
	return rc;
}
