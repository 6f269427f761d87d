/*
 * concurrent: how many requests are under way. Each holds a lease, a name and the time at which it
 * ends by itself, in the order of taking. It is given back at the request's end (bucket_release);
 * one whose gateway has died ends with its time.
 *
 * When one of them will be given back nobody knows: each wait is said to be a second.
 */
#include "algorithms.h"
#include "bucket.h"

enum { LEASE, EXPIRES, WORDS };

#define WAIT_US US_PER_S

/* The asker's own lease is left out: spending puts it in anew, so that it never counts twice. */
static bool
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const int64_t now_us = moment->now_us, latest_us = now_us + policy->lease_us;
	unsigned kept = 0;
	bool is_clamped = false;

	for (unsigned i = 0; i < field->count; i += WORDS) {
		const int64_t lease = field->words[i + LEASE];
		int64_t expires_us = field->words[i + EXPIRES];

		if (expires_us <= now_us || (uint64_t)lease == moment->lease)
			continue;
		if (expires_us > latest_us + CLOCK_SLACK_US) {
			expires_us = latest_us;
			is_clamped = true;
		}
		field->words[kept + LEASE] = lease;
		field->words[kept + EXPIRES] = expires_us;
		kept += WORDS;
	}
	field->count = (uint16_t)kept;
	field_take_form(field, policy);
	return is_clamped;
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
	int64_t latest_us = 0;

	(void)now_us;
	for (unsigned i = 0; i < field->count; i += WORDS) {
		if (field->words[i + EXPIRES] > latest_us)
			latest_us = field->words[i + EXPIRES];
	}
	return latest_us;
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

/* The record; NULL if it is not there. */
static int64_t *
find_lease(struct bucket *bucket, const struct policy *policy, uint64_t lease)
{
	struct bucket_field *field =
		policy->algorithm == POLICY_CONCURRENT ? bucket_find(bucket, policy) : NULL;

	for (unsigned i = 0; field != NULL && i < field->count; i += WORDS) {
		if ((uint64_t)field->words[i + LEASE] == lease)
			return &field->words[i];
	}
	return NULL;
}

void
bucket_release(struct bucket *bucket, const struct limit *limit, uint64_t lease)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		int64_t *record = find_lease(bucket, &limit->policies[i], lease);

		if (record == NULL)
			continue;
		struct bucket_field *field = bucket_find(bucket, &limit->policies[i]);
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
		int64_t *record = find_lease(bucket, policy, lease);

		if (record == NULL || record[EXPIRES] <= now_us)
			continue;
		record[EXPIRES] = now_us + policy->lease_us;
		bucket->changed = true;
	}
}
