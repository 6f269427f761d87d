/*
 * concurrent: how many requests are under way. Each holds a lease, a name and the time at which it
 * ends by itself, in the order of taking. It is given back at the request's end (bucket_release);
 * one whose gateway has died ends with its time.
 *
 * When one of them will be given back nobody knows: each wait is said to be a second.
 *
 * A lease that was taken for longer than ours is held by a request that will renew it in time for
 * that. So it is not cut short, and as long as there is one the state keeps the longer form: only
 * what is beyond that was written by a clock that was ahead.
 */
#include "algorithms.h"
#include "bucket.h"

enum { LEASE, EXPIRES, WORDS };

#define WAIT_US US_PER_S

static void
set_span(struct bucket_field *field, int64_t span_us)
{
	field->span_us = field->capacity_us = span_us;
}

/* Leaves out those that are over, and the one of that name. */
static void
leave_out(struct bucket_field *field, int64_t now_us, uint64_t named)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < field->count; i += WORDS) {
		const int64_t lease = field->words[i + LEASE],
			      expires_us = field->words[i + EXPIRES];

		if (expires_us <= now_us || (uint64_t)lease == named)
			continue;
		field->words[kept + LEASE] = lease;
		field->words[kept + EXPIRES] = expires_us;
		kept += WORDS;
	}
	field->count = (uint16_t)kept;
}

static int64_t
latest_of(const struct bucket_field *field)
{
	int64_t latest_us = 0;

	for (unsigned i = 0; i < field->count; i += WORDS) {
		if (field->words[i + EXPIRES] > latest_us)
			latest_us = field->words[i + EXPIRES];
	}
	return latest_us;
}

static void
cut(struct bucket_field *field, int64_t latest_us)
{
	for (unsigned i = 0; i < field->count; i += WORDS) {
		if (field->words[i + EXPIRES] > latest_us)
			field->words[i + EXPIRES] = latest_us;
	}
}

static enum brought
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const int64_t now_us = moment->now_us, own_us = policy->lease_us;
	const int64_t longest_us = field->span_us > own_us ? field->span_us : own_us;

	/* If there is room, the asker's own goes too: spending puts it in anew, so that it never
	 * counts twice. If there is none Lua does not look for it, and so we do not. */
	leave_out(field, now_us, 0);
	if (field->count / WORDS < policy->burst)
		leave_out(field, now_us, moment->lease);
	const int64_t latest_us = latest_of(field);
	const bool is_clamped = latest_us > now_us + longest_us + CLOCK_SLACK_US;

	if (is_clamped)
		cut(field, now_us + longest_us);
	set_span(field, latest_us > now_us + own_us ? longest_us : own_us);
	return is_clamped ? BROUGHT_CLAMPED : BROUGHT;
}

static uint64_t
used(const struct policy *policy, const struct bucket_field *field, const struct moment *moment)
{
	(void)policy, (void)moment;
	return field->count / WORDS;
}

static int64_t
until(const struct policy *policy, const struct bucket_field *field, const struct moment *moment,
	uint64_t allowed)
{
	return used(policy, field, moment) <= allowed ? 0 : WAIT_US;
}

static void
spend(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	field->words[field->count + LEASE] = (int64_t)moment->lease;
	field->words[field->count + EXPIRES] = moment->now_us + policy->lease_us;
	field->count += WORDS;
}

static int64_t
worthless_at(const struct bucket_field *field, int64_t now_us)
{
	(void)now_us;
	return latest_of(field);
}

const struct algorithm algorithm_concurrent = {
	.name = "concurrent",
	.record_words = WORDS,
	.records_max = POLICY_CONCURRENT_MAX,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};

/* ---- without a decision ---- */

/* The record, and the field that has it; NULL if it is not there. */
static int64_t *
find_lease(struct bucket *bucket, const struct policy *policy, uint64_t lease,
	struct bucket_field **field)
{
	*field = policy->algorithm == POLICY_CONCURRENT ? bucket_find(bucket, policy) : NULL;
	for (unsigned i = 0; *field != NULL && i < (*field)->count; i += WORDS) {
		if ((uint64_t)(*field)->words[i + LEASE] == lease)
			return &(*field)->words[i];
	}
	return NULL;
}

void
bucket_release(struct bucket *bucket, const struct limit *limit, uint64_t lease)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		struct bucket_field *field;
		int64_t *record = find_lease(bucket, &limit->policies[i], lease, &field);

		if (record == NULL)
			continue;
		const int64_t *end = field->words + field->count;

		memmove(record, record + WORDS, (size_t)(end - record - WORDS) * sizeof record[0]);
		field->count -= WORDS;
		bucket->changed = true;
	}
	bucket_drop_empty(bucket);
}

void
bucket_renew(struct bucket *bucket, const struct limit *limit, uint64_t lease, int64_t now_us)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];
		struct bucket_field *field;
		int64_t *record = find_lease(bucket, policy, lease, &field);

		if (record == NULL || record[EXPIRES] <= now_us)
			continue;
		record[EXPIRES] = now_us + policy->lease_us;
		if (field->span_us < policy->lease_us)
			set_span(field, policy->lease_us);
		bucket->changed = true;
	}
}
