/*
 * sliding-log: each request by itself, a time and a cost, the oldest first. Exact: in any span of W
 * at most N are admitted. A request counts until W after its time, that moment left out.
 *
 * A log that was kept for another window is read through this one; if this one is longer, what the
 * other has dropped stays unknown.
 */
#include "algorithms.h"

enum { TIME, COST, WORDS };

#define COST_LIMIT 10000 /* none is above POLICY_LOG_MAX; four digits, as Lua reads them */

static bool
is_sound(const struct bucket_field *field)
{
	for (unsigned i = 0; i < field->count; i += WORDS) {
		if (field->words[i + COST] >= COST_LIMIT)
			return false;
	}
	return true;
}

static enum brought
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const int64_t now_us = moment->now_us;
	unsigned kept = 0;
	bool is_clamped = false;

	for (unsigned i = 0; i < field->count; i += WORDS) {
		int64_t time_us = field->words[i + TIME];

		is_clamped = is_clamped || time_us > now_us + CLOCK_SLACK_US;
		if (time_us > now_us)
			time_us = now_us;
		if (time_us + policy->window_us <= now_us)
			continue;
		field->words[kept + TIME] = time_us;
		field->words[kept + COST] = field->words[i + COST];
		kept += WORDS;
	}
	field->count = (uint16_t)kept;
	field_take_form(field, policy);
	return is_clamped ? BROUGHT_CLAMPED : BROUGHT;
}

static uint64_t
used(const struct policy *policy, const struct bucket_field *field, const struct moment *moment)
{
	uint64_t sum = 0;

	(void)policy, (void)moment;
	for (unsigned i = 0; i < field->count; i += WORDS)
		sum += (uint64_t)field->words[i + COST];
	return sum;
}

static int64_t
until(const struct policy *policy, const struct bucket_field *field, const struct moment *moment,
	uint64_t allowed)
{
	uint64_t left = used(policy, field, moment);
	int64_t wait_us = 0;

	for (unsigned i = 0; i < field->count && left > allowed; i += WORDS) {
		left -= (uint64_t)field->words[i + COST];
		wait_us = field->words[i + TIME] + policy->window_us - moment->now_us;
	}
	return wait_us;
}

static void
spend(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	int64_t *end = field->words + field->count;

	(void)policy;
	if (field->count > 0 && end[TIME - WORDS] == moment->now_us) {
		end[COST - WORDS] += (int64_t)moment->cost;
		return;
	}
	end[TIME] = moment->now_us;
	end[COST] = (int64_t)moment->cost;
	field->count += WORDS;
}

static int64_t
worthless_at(const struct bucket_field *field, int64_t now_us)
{
	(void)now_us;
	return field->count == 0 ? 0 : field->words[field->count - WORDS + TIME] + field->span_us;
}

const struct algorithm algorithm_sliding_log = {
	.name = "sliding-log",
	.record_words = WORDS,
	.records_max = POLICY_LOG_MAX,
	.is_sound = is_sound,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};
