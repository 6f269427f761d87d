/*
 * Limits: their policies, with an override's in place of those of the same name, and what is worth
 * knowing of all of them together.
 */
#include "policy_private.h"
#include "weir/algorithm.h"
#include "weir/diagnostics.h"

#include <inttypes.h>
#include <stdio.h>

/* What is being compiled, and where faults are told. */
struct making {
	struct limit *limit;
	struct place place; /* of the limit, or of the override that changes it */
	struct diagnostics *diagnostics;
};

static void
put_signature(struct limit *limit)
{
	size_t len = 0;

	if (limit->policy_count == 1 && limit->policies[0].code != 0) {
		(void)snprintf(
			limit->signature, sizeof limit->signature, "%d", limit->policies[0].code);
		return;
	}
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];
		const int n = snprintf(limit->signature + len, sizeof limit->signature - len,
			"%08x:%" PRId64 ":%" PRId64 "%s", policy->tag, policy->interval_us,
			policy->capacity_us / policy->interval_us,
			i + 1 < limit->policy_count ? " " : "=");

		len += (size_t)n;
	}
}

static void
check_tag(const struct making *making, const struct config_policy *config)
{
	const struct limit *limit = making->limit;
	const struct policy *added = &limit->policies[limit->policy_count];

	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].tag == added->tag)
			diagnostics_add(making->diagnostics, SEVERITY_ERROR, config->place,
				"policy",
				"the names \"%s\" and \"%s\" cannot be told apart in stored state; "
				"rename one",
				limit->policies[i].name, config->name);
	}
}

static void
add_policy(struct making *making, const struct config_policy *config)
{
	struct limit *limit = making->limit;
	const char *fault = policy_fault(config);

	if (fault != NULL) {
		diagnostics_add(
			making->diagnostics, SEVERITY_ERROR, config->place, "policy", "%s", fault);
		return;
	}
	if (limit->policy_count == 0)
		limit->shards = config->shards;
	if (config->shards != limit->shards)
		diagnostics_add(making->diagnostics, SEVERITY_ERROR, config->place, "policy",
			"%u shards beside %u: all policies of a limit are kept together, so put "
			"them into two limits",
			config->shards, limit->shards);
	struct policy *policy = &limit->policies[limit->policy_count];

	policy_init(policy, config);
	check_tag(making, config);
	limit->words += algorithm_words(policy);
	limit->is_plain =
		limit->is_plain && policy->algorithm == POLICY_TOKEN_BUCKET && !policy->shadow;
	limit->has_leases = limit->has_leases || policy->algorithm == POLICY_CONCURRENT;
	limit->has_calendar = limit->has_calendar || policy->algorithm == POLICY_CALENDAR;
	limit->policy_count++;
}

/* The override's policy of that name, or this one. */
static const struct config_policy *
replaced(const struct config_policy *policy, const struct config_override *override)
{
	for (unsigned i = 0; override != NULL && i < override->policy_count; i++) {
		if (strcmp(override->policies[i].name, policy->name) == 0)
			return &override->policies[i];
	}
	return policy;
}

static void
add_policies(struct making *making, const struct config_limit *config,
	const struct config_override *override)
{
	if (config->policy_count > LIMIT_POLICIES_MAX)
		diagnostics_add(making->diagnostics, SEVERITY_ERROR, making->place, "policy",
			"a limit has at most %d policies; split it into two limits",
			LIMIT_POLICIES_MAX);
	for (unsigned i = 0; i < config->policy_count && i < LIMIT_POLICIES_MAX; i++)
		add_policy(making, replaced(&config->policies[i], override));
	if (making->limit->words > LIMIT_WORDS_MAX)
		diagnostics_add(making->diagnostics, SEVERITY_ERROR, making->place, "policy",
			"its logs and leases may be %u numbers for each identity, and %d is the "
			"most; lower the counts, or put them into two limits",
			making->limit->words, LIMIT_WORDS_MAX);
}

static void
find_counters(struct limit *limit)
{
	static const char *const result_names[LIMIT_RESULTS] = { "admitted", "rejected",
		"would_reject", "blocked", "would_block", "refused", "would_refuse" };
	const struct slice name = slice_of(limit->name);

	for (unsigned i = 0; i < LIMIT_RESULTS; i++)
		limit->results[i] = counter_find(
			COUNT_DECISIONS, (const struct slice[]){ name, slice_of(result_names[i]) });
	for (unsigned i = 0; i < limit->policy_count; i++) {
		struct policy *policy = &limit->policies[i];
		const struct slice policy_name = slice_of(policy->name);

		policy->rejections[0] = counter_find(COUNT_POLICY_REJECTIONS,
			(const struct slice[]){ name, policy_name, SLICE("would_reject") });
		policy->rejections[1] = counter_find(COUNT_POLICY_REJECTIONS,
			(const struct slice[]){ name, policy_name, SLICE("rejected") });
	}
}

void
limit_init(struct limit *limit, const struct config_limit *config,
	const struct config_override *override, struct diagnostics *diagnostics)
{
	struct making making = { .limit = limit,
		.place = override != NULL ? override->place : config->place,
		.diagnostics = diagnostics };

	*limit = (struct limit){ .name = config->name,
		.enforce = config->enforce,
		.is_plain = true,
		.shards = 1,
		.config = config };
	add_policies(&making, config, override);
	put_signature(limit);
	find_counters(limit);
}

struct slice
shards_key(struct arena *arena, struct slice key, unsigned shard)
{
	char number[UINT_TEXT_SIZE];
	const size_t len = uint_text(shard, number);
	char *text = arena_alloc(arena, key.len + 1 + len);

	if (text == NULL)
		return slice_make(NULL, 0);
	memcpy(text, key.ptr, key.len);
	text[key.len] = '+';
	memcpy(text + key.len + 1, number, len);
	return slice_make(text, key.len + 1 + len);
}
