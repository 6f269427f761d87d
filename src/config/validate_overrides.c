/* Overrides, each by itself: whether it names somebody, and says of them what the limit can do. */
#include "nearest.h"
#include "nets.h"
#include "sections.h"
#include "validate.h"
#include "values.h"

#include <stdio.h>

/* How many networks of a list are complained of. */
enum { SAID_MAX = 10, HINT_SIZE = 256 };

static void
check_complete(const struct build *build, const struct section *section,
	const struct config_override *override)
{
	if (section_is_doubtful(build, section))
		return;
	if (override->limit == NULL)
		complain(build, SEVERITY_ERROR, section, "limit", NULL,
			"is missing: what is this an exception from? Write limit = NAME");
	if (override->for_count == 0)
		complain(build, SEVERITY_ERROR, section, "for", NULL,
			"is missing: whom is this for? Write for = ip 192.0.2.0/24, or user NAME, "
			"or header NAME @/path");
}

static void
check_one_word(const struct build *build, const struct section *section,
	const struct config_override *override)
{
	if (override->exempt && override->block)
		complain(build, SEVERITY_ERROR, section, "block", NULL,
			"exempt and block say the opposite of each other; choose one");
	else if (override->policy_count > 0 && (override->exempt || override->block))
		complain(build, SEVERITY_ERROR, section, "policy", NULL,
			"says nothing of requests that are %s anyway; leave out one of them",
			override->exempt ? "exempt" : "blocked");
}

static bool
has_policy(const struct config_policy *policies, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(policies[i].name, name) == 0)
			return true;
	}
	return false;
}

/* The limit's policy that is most likely meant: one that the override does not name, by the same
 * algorithm. */
static const struct config_policy *
meant_by(const struct config_override *override, const struct config_policy *policy)
{
	const struct config_limit *limit = override->limit;
	const struct config_policy *found = NULL;

	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct config_policy *one = &limit->policies[i];

		if (has_policy(override->policies, override->policy_count, one->name))
			continue;
		if (one->algorithm == policy->algorithm)
			return one;
		found = found == NULL ? one : found;
	}
	return found;
}

/* A plan often has another window than the limit, and so another name unless one is given. */
static void
check_policy_name(const struct build *build, const struct section *section,
	const struct config_override *override, const struct config_policy *policy)
{
	const struct config_limit *limit = override->limit;
	const struct setting *setting = section_setting_at(section, "policy", &policy->place);
	const bool is_named = strcmp(policy->name, policy->rate.window) != 0;
	const struct config_policy *meant = meant_by(override, policy);
	struct nearest nearest;
	char hint[HINT_SIZE] = "";

	if (has_policy(limit->policies, limit->policy_count, policy->name))
		return;
	nearest_init(&nearest, slice_of(policy->name));
	for (unsigned i = 0; i < limit->policy_count; i++)
		nearest_offer(&nearest, limit->policies[i].name);
	if (is_named && nearest.best != NULL)
		(void)nearest_hint(&nearest, hint);
	else if (meant != NULL && !is_named && setting != NULL)
		(void)snprintf(hint, sizeof hint, "; write policy = %.128s name %.64s",
			setting->value, meant->name);
	else if (meant != NULL)
		(void)snprintf(
			hint, sizeof hint, "; write name %.64s to replace that one", meant->name);
	complain(build, SEVERITY_ERROR, section, "policy", &policy->place,
		"limit %s has no policy \"%s\" that this could replace%s", limit->name,
		policy->name, hint);
}

static void
check_policies(const struct build *build, const struct section *section,
	const struct config_override *override)
{
	validate_policies(build, section, override->policies, override->policy_count);
	if (override->limit == NULL || section_kind_is_doubtful(build, SECTION_LIMIT))
		return;
	for (unsigned i = 0; i < override->policy_count; i++)
		check_policy_name(build, section, override, &override->policies[i]);
}

/* The part of the limit's identities that tells apart whom the list names; NULL if none does. Of
 * several by address, the one with the widest networks of the family. */
static const struct config_identity_part *
find_part(const struct config_limit *limit, const struct config_for *list, unsigned family)
{
	const struct config_identity_part *found = NULL;

	for (unsigned i = 0; i < limit->identity_count; i++) {
		const struct config_identity *identity = &limit->identities[i];

		for (unsigned j = 0; j < identity->part_count; j++) {
			const struct config_identity_part *part = &identity->parts[j];

			if (!source_is(part, list->source, list->name, list->param))
				continue;
			if (found == NULL ||
				(family == 4 ? part->prefix_4 < found->prefix_4
					     : part->prefix_6 < found->prefix_6))
				found = part;
		}
	}
	return found;
}

/* A bucket of its own for a part of those who share one cannot be had by other policies: they would
 * all spend from, and be held to, the same state. */
static void
check_width(const struct build *build, const struct section *section,
	const struct config_limit *limit, const struct config_for *list)
{
	unsigned said = 0;
	char text[NET_TEXT_SIZE];

	for (uint32_t i = 0; i < list->net_count && said < SAID_MAX; i++) {
		const struct ip_net *net = &list->nets[i];
		const struct config_identity_part *part = find_part(limit, list, net->ip.family);
		const unsigned bits = part == NULL ? 0
			: net->ip.family == 4      ? part->prefix_4
						   : part->prefix_6;

		if (net->bits <= bits || part == NULL)
			continue;
		said++;
		complain_at(build, SEVERITY_ERROR, section, "for", config_for_place(list, i),
			"%s is part of a bucket that limit %s keeps for all of its /%u, and "
			"cannot have policies of its own; write a /%u, or exempt or block",
			net_text(net, text), limit->name, bits, bits);
	}
}

static void
check_for(const struct build *build, const struct section *section,
	const struct config_limit *limit, const struct config_for *list)
{
	char text[SOURCE_TEXT_SIZE];

	if (find_part(limit, list, 4) == NULL)
		complain(build, SEVERITY_WARNING, section, "for", NULL,
			"limit %s does not count by %s, so requests with and without these "
			"values spend from one bucket, by different policies",
			limit->name, source_text(list->source, list->name, text));
	else if (list->source == IDENTITY_IP)
		check_width(build, section, limit, list);
}

static bool
names_known(const struct config_override *override)
{
	for (unsigned i = 0; i < override->for_count; i++) {
		const struct config_for *list = &override->fors[i];
		const struct config_limit *limit = override->limit;

		for (unsigned j = 0; j < limit->identity_count; j++) {
			const struct config_identity *identity = &limit->identities[j];

			for (unsigned k = 0; k < identity->part_count; k++) {
				if (identity->parts[k].known &&
					source_is(&identity->parts[k], list->source, list->name,
						list->param))
					return true;
			}
		}
	}
	return false;
}

static void
check_effect(const struct build *build, const struct section *section,
	const struct config_override *override)
{
	if (override->exempt || override->block)
		return;
	for (unsigned i = 0; override->policy_count > 0 && i < override->for_count; i++)
		check_for(build, section, override->limit, &override->fors[i]);
	if (override->policy_count == 0 && !names_known(override) &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_WARNING, section, "", NULL,
			"changes nothing; write policy, exempt = yes or block = yes");
}

void
validate_overrides(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_OVERRIDE);
		section != NULL; section = section_next(section)) {
		const struct config_override *override = section->object;

		check_complete(build, section, override);
		check_one_word(build, section, override);
		check_policies(build, section, override);
		if (override->limit != NULL && !section_kind_is_doubtful(build, SECTION_LIMIT))
			check_effect(build, section, override);
	}
}
