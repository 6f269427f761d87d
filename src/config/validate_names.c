/*
 * What clients know policies by: LIMIT, or LIMIT-POLICY where several of the limit's policies
 * reject. Both parts may have a "-" of their own, so two policies can have one name; a client that
 * keeps what it was told by that name takes them for one.
 */
#include "sections.h"
#include "validate.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_SIZE = 512 };

struct told {
	char *name; /* for free() */
	const struct section *section;
	const struct config_policy *policy; /* NULL: the limit has this one only */
	size_t nth; /* in the order of the files */
};

static int
compare(const void *left, const void *right)
{
	const struct told *a = left, *b = right;
	const int order = strcmp(a->name, b->name);

	return order != 0 ? order : (a->nth > b->nth) - (a->nth < b->nth);
}

static unsigned
count_rejecting(const struct config_limit *limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < limit->policy_count; i++)
		count += !limit->policies[i].shadow;
	return count;
}

/* Without memory the name is left out. */
static void
add(struct told *list, size_t *count, const struct section *section,
	const struct config_policy *policy)
{
	const struct config_limit *limit = section->object;
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof name, "%s%s%s", limit->name, policy == NULL ? "" : "-",
		policy == NULL ? "" : policy->name);
	list[*count] = (struct told){ strdup(name), section, policy, *count };
	if (list[*count].name != NULL)
		++*count;
}

static size_t
collect(const struct build *build, struct told *list)
{
	size_t count = 0;

	for (const struct section *section = section_first(build, SECTION_LIMIT); section != NULL;
		section = section_next(section)) {
		const struct config_limit *limit = section->object;
		const unsigned rejecting = count_rejecting(limit);

		if (rejecting == 1)
			add(list, &count, section, NULL);
		for (unsigned i = 0; rejecting > 1 && i < limit->policy_count; i++) {
			if (!limit->policies[i].shadow)
				add(list, &count, section, &limit->policies[i]);
		}
	}
	return count;
}

static struct place
place_of(const struct told *told)
{
	return told->policy == NULL ? told->section->place : told->policy->place;
}

static void
say(const struct build *build, const struct told *first, const struct told *second)
{
	char place[PLACE_TEXT_SIZE];

	complain_at(build, SEVERITY_WARNING, second->section,
		second->policy == NULL ? "" : "policy", place_of(second),
		"clients know it as \"%s\", and what stands at %s too; give one of them another "
		"name",
		second->name, complain_place(place_of(first), place));
}

void
validate_names(const struct build *build)
{
	size_t max = 0;

	for (unsigned i = 0; i < build->config->limit_count; i++)
		max += build->config->limits[i]->policy_count;
	struct told *list = max == 0 ? NULL : malloc(max * sizeof *list);

	if (list == NULL)
		return;
	const size_t count = collect(build, list);

	qsort(list, count, sizeof *list, compare);
	for (size_t i = 1; i < count; i++) {
		/* Of one limit they have one name, which is an error of its own. */
		if (strcmp(list[i - 1].name, list[i].name) == 0 &&
			list[i - 1].section != list[i].section)
			say(build, &list[i - 1], &list[i]);
	}
	for (size_t i = 0; i < count; i++)
		free(list[i].name);
	free(list);
}
