/* Asking decide() about limits, with their buckets kept packed, as a store keeps them. */
#ifndef WEIR_TESTS_LIMIT_ASKING_H
#define WEIR_TESTS_LIMIT_ASKING_H

#include "../lib/limits.h"
#include "../unit.h"
#include "weir/decision.h"

/* Empty if it is all zero. */
struct kept {
	size_t len;
	bool changed; /* by the last decision */
	int64_t words[BUCKET_PACKED_MAX];
};

static inline void
kept_copy(struct kept *to, const struct kept *from)
{
	to->len = from->len;
	to->changed = from->changed;
	memcpy(to->words, from->words, from->len * sizeof from->words[0]);
}

static inline bool
kept_is_same(const struct kept *a, const struct kept *b)
{
	return a->len == b->len && memcmp(a->words, b->words, a->len * sizeof a->words[0]) == 0;
}

/* The bucket, lying in what is kept. It has no room to decide in. */
static inline struct bucket
kept_bucket(const struct kept *kept)
{
	struct bucket bucket = { .count = 0 };

	bucket_unpack(&bucket, (int64_t *)(uintptr_t)kept->words, kept->len);
	return bucket;
}

/* The words of a policy; NULL if nothing is stored of it. */
static inline const int64_t *
kept_words(const struct kept *kept, const struct policy *policy)
{
	const struct bucket bucket = kept_bucket(kept);

	for (unsigned i = 0; i < bucket.count; i++) {
		if (bucket.fields[i].tag == policy->tag)
			return bucket.fields[i].words;
	}
	return NULL;
}

/* Its first word. */
static inline int64_t
kept_word(const struct kept *kept, const struct policy *policy)
{
	const int64_t *words = kept_words(kept, policy);

	if (words == NULL)
		fail_msg("nothing is stored of %s", policy->name);
	return words == NULL ? 0 : words[0];
}

/* As a store does: each bucket in memory of exactly its size, so that a sanitizer sees what is
 * beyond. */
static inline struct decision
decide_kept(const struct check *check, struct kept *const *kept, int64_t now_us)
{
	struct bucket buckets[CHECK_LIMITS_MAX];
	int64_t *words[CHECK_LIMITS_MAX];
	struct decision decision;

	for (unsigned i = 0; i < check->count; i++) {
		const size_t len = kept[i]->len, room = bucket_room(check->items[i].limit, len);

		words[i] = malloc((len + room) * sizeof words[0][0]);
		assert_non_null(words[i]);
		memcpy(words[i], kept[i]->words, len * sizeof words[0][0]);
		bucket_unpack(&buckets[i], words[i], len);
		buckets[i].room = words[i] + len;
	}
	decide(check, buckets, now_us, &decision);
	for (unsigned i = 0; i < check->count; i++) {
		const size_t most = bucket_grown(check->items[i].limit, kept[i]->len);

		kept[i]->changed = buckets[i].changed;
		if (buckets[i].changed)
			kept[i]->len = bucket_pack(&buckets[i], kept[i]->words);
		assert_true(kept[i]->len <= most);
		free(words[i]);
	}
	return decision;
}

/* A lease given back or prolonged without a decision, as a store does it. Returns whether there was
 * anything to store. */
static inline bool
kept_release(struct kept *kept, const struct limit *limit, uint64_t lease)
{
	struct bucket bucket = kept_bucket(kept);
	int64_t words[BUCKET_PACKED_MAX];

	bucket_release(&bucket, limit, lease);
	if (!bucket.changed)
		return false;
	kept->len = bucket_pack(&bucket, words);
	memcpy(kept->words, words, kept->len * sizeof words[0]);
	return true;
}

static inline bool
kept_renew(struct kept *kept, const struct limit *limit, uint64_t lease, int64_t now_us)
{
	struct bucket bucket = kept_bucket(kept);
	int64_t words[BUCKET_PACKED_MAX];

	bucket_renew(&bucket, limit, lease, now_us);
	if (!bucket.changed)
		return false;
	kept->len = bucket_pack(&bucket, words);
	memcpy(kept->words, words, kept->len * sizeof words[0]);
	return true;
}

static inline struct decision
ask_for(struct kept *kept, const struct limit *limit, uint64_t cost, uint64_t lease, int64_t now_us)
{
	const struct check check = {
		.items = { { .limit = limit } }, .count = 1, .cost = cost, .lease = lease
	};
	const struct decision decision = decide_kept(&check, &kept, now_us);

	assert_int_equal(decision.count, limit->policy_count);
	assert_int_equal(decision.now_us, now_us);
	return decision;
}

static inline struct decision
ask(struct kept *kept, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	static uint64_t lease = UINT64_C(1) << 40;

	return ask_for(kept, &made->limit, cost, ++lease, now_us);
}

/* The same on a copy: whether it would be admitted then. */
static inline bool
admits(const struct kept *kept, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	static struct kept copy;

	kept_copy(&copy, kept);
	return ask(&copy, made, cost, now_us).verdict == VERDICT_ADMITTED;
}

/* Spends until the cost is rejected; returns the rejection. */
static inline struct decision
exhaust(struct kept *kept, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	for (;;) {
		const struct decision decision = ask(kept, made, cost, now_us);

		if (decision.verdict == VERDICT_REJECTED)
			return decision;
	}
}

#endif
