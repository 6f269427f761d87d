/*
 * What the counters take. Roughly: an entry of the memory store is 128 bytes, which hold the state
 * of two policies; a longer state goes on in further pieces. A log keeps each request by itself,
 * two numbers, and so are leases kept.
 */
#include "sections.h"
#include "validate.h"

#include <stdio.h>

enum { CELL_SIZE = 128, HEAD_ROOM = 88, MORE_ROOM = 112, STATE_SIZE = 40, RECORD_SIZE = 16 };

#define MIB (UINT64_C(1024) * 1024)

/* From here on a log is said to be dear. */
#define LOG_MEMORY (64 * MIB)

static uint64_t
state_size(const struct config_policy *policy)
{
	switch (policy->algorithm) {
	case POLICY_SLIDING_LOG:
	case POLICY_CONCURRENT:
		return STATE_SIZE + policy->rate.count * RECORD_SIZE;
	case POLICY_TOKEN_BUCKET:
	case POLICY_SLIDING_WINDOW:
	case POLICY_CALENDAR:
		break;
	}
	return STATE_SIZE;
}

static uint64_t
entry_size(const struct config_limit *limit)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < limit->policy_count; i++)
		bytes += state_size(&limit->policies[i]);
	if (bytes <= HEAD_ROOM)
		return CELL_SIZE;
	return CELL_SIZE * (1 + (bytes - HEAD_ROOM + MORE_ROOM - 1) / MORE_ROOM);
}

/* "781m", rounded up, as a size is written. */
static const char *
mib_text(uint64_t bytes, char out[24])
{
	(void)snprintf(out, 24, "%llum", (unsigned long long)((bytes + MIB - 1) / MIB));
	return out;
}

static bool
is_given(const struct section *section, const char *key)
{
	return section != NULL && section_own_setting(section, key) != NULL;
}

static void
check_logs(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct config_policy *policy = &limit->policies[i];
		const uint64_t each = policy->rate.count * RECORD_SIZE;
		char all[24];

		if (policy->algorithm == POLICY_SLIDING_LOG &&
			each * limit->max_identities > LOG_MEMORY)
			complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
				"a sliding-log of %llu takes up to %llu bytes for each identity, "
				"and %s for %llu of them; sliding-window takes 40, or lower "
				"max_identities",
				(unsigned long long)policy->rate.count, (unsigned long long)each,
				mib_text(each * limit->max_identities, all),
				(unsigned long long)limit->max_identities);
	}
}

/* Two defaults that do not fit each other are nobody's mistake: whoever said neither knows neither.
 * The stand-in for Redis may be small. */
static void
check_sum(const struct build *build, uint64_t sum, const struct section *by)
{
	const struct section *memory = build->unnamed[SECTION_MEMORY];
	const uint64_t size = build->config->memory_size;
	const bool is_size_given = is_given(memory, "size");
	char need[24], have[24];

	if (build->config->has_redis || sum <= size || (by == NULL && !is_size_given))
		return;
	complain(build, SEVERITY_WARNING, is_size_given ? memory : by,
		is_size_given ? "size" : "max_identities", NULL,
		"the identities of all limits together may take %s and [memory] size is %s: when "
		"it is full, the ones that owe least are forgotten; raise size or lower "
		"max_identities",
		mib_text(sum, need), mib_text(size, have));
}

void
validate_memory(const struct build *build)
{
	const struct section *defaults = build->unnamed[SECTION_LIMIT], *by = NULL;
	uint64_t sum = 0;

	for (const struct section *section = section_first(build, SECTION_LIMIT); section != NULL;
		section = section_next(section)) {
		const struct config_limit *limit = section->object;

		check_logs(build, section, limit);
		sum += entry_size(limit) * limit->max_identities;
		if (by == NULL && is_given(section, "max_identities"))
			by = section;
	}
	check_sum(build, sum, by == NULL && is_given(defaults, "max_identities") ? defaults : by);
}
