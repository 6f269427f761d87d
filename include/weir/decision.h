/*
 * What is asked of a store and what it answers: all limits that apply to a request, decided
 * together. Either every enforced policy admits and every one is spent, or nothing is spent on any
 * of them.
 */
#ifndef WEIR_DECISION_H
#define WEIR_DECISION_H

#include "weir/algorithm.h"

enum verdict {
	VERDICT_ADMITTED,
	VERDICT_REJECTED, /* by a policy */
	VERDICT_UNAVAILABLE, /* the store did not decide in time; nothing is known */
};

/* Why a store did not decide. A label, and a word for the log. */
enum unavailable {
	UNAVAILABLE_DEADLINE, /* no answer within the deadline */
	UNAVAILABLE_BREAKER, /* not asked: it failed a moment ago */
	UNAVAILABLE_CONNECTION, /* refused, reset, closed */
	UNAVAILABLE_OVERLOAD, /* too many checks are waiting already */
	UNAVAILABLE_REPLY, /* an error, or something that is no answer to the question */
	UNAVAILABLE_LATE, /* it came so late that the store refused to spend for it */
	UNAVAILABLE_LOCK, /* the memory store was locked too long */
	UNAVAILABLE_REASONS
};

extern const char *const unavailable_names[UNAVAILABLE_REASONS];

/* One policy's part. */
struct outcome {
	const struct limit *limit;
	const struct policy *policy;
	bool violated;
	bool shadow; /* of a limit or a policy that does not reject */
	uint64_t remaining; /* whole tokens left, after this request if it was admitted */
	int64_t retry_us; /* if violated: until this cost would pass; -1: never, the cost exceeds
			     the burst. Of concurrent nobody knows: a second */
	int64_t more_us; /* until one token more, or, if violated, as many as it costs; 0 if the
			    bucket is full, or if that is never (retry_us -1) */
	int64_t reset_us; /* until the bucket is full; also if retry_us is -1 */
};

struct decision {
	enum verdict verdict;
	enum unavailable why; /* if unavailable */
	int64_t now_us; /* the store's clock, since 1970 */
	bool clamped; /* a stored time was impossibly far ahead: the bucket was set to empty */
	unsigned overflowed; /* bit i: items[i].key was not there, and `overflow` was decided on */
	unsigned count; /* outcomes; 0 if unavailable */
	struct outcome outcomes[CHECK_POLICIES_MAX];
};

struct check_item {
	const struct limit *limit;
	struct slice key; /* names the bucket: limit and identity. Valid until the check is done */
	bool shadow; /* decided by itself, and spent if it admits and the request is admitted; never
			rejects the request, never keeps another from being spent */
	struct slice overflow; /* names the bucket that is decided on if `key` is not there, so that
				  no new one is made; empty: `key` in any case. Only Redis heeds
				  it: the memory store bounds itself */
};

struct check;
typedef void check_done_fn(struct check *check, const struct decision *decision);

/* Embedded by who asks; stays in place until `done` has been called or the check was cancelled. */
struct check {
	struct check_item items[CHECK_LIMITS_MAX];
	unsigned count;
	uint64_t cost; /* tokens, at least 1; a concurrent policy counts each request as one */
	uint64_t lease; /* names this request among those of concurrent policies, 1 to 2^53 - 1 and
			   drawn at random; 0 if none of them is */
	int64_t now_us; /* 0: by the store's clock; tests and tools pass their own */
	int64_t deadline_us; /* monotonic; the answer comes by then */
	check_done_fn *done; /* called once, perhaps before store_decide returns */
	void *store_private; /* the store's while it is asked */
};

/* ---- the decision itself, for stores that keep their state in this process ---- */

enum {
	BUCKET_FIELDS_MAX = 2 * LIMIT_POLICIES_MAX,
	BUCKET_WORDS_MAX = LIMIT_WORDS_MAX + LIMIT_WORDS_MAX / 2, /* of all fields together */
	BUCKET_PACKED_MAX = BUCKET_FIELDS_MAX * 3 + BUCKET_WORDS_MAX,
};

/*
 * What a limit keeps of one identity: a field for each policy that has been spent on. Those whose
 * tags the limit does not know are carried along; they give way first when there are too many.
 * The words of the fields are memory that the store lends.
 */
struct bucket {
	unsigned count;
	struct bucket_field fields[BUCKET_FIELDS_MAX];
	int64_t *room; /* what is changed is changed here: bucket_room words */
	bool changed; /* out: to be stored */
};

/* As one run of words, the way in which it is stored. Unpacked, the fields lie in `words`; what
 * cannot be a field is left out, and so is all behind it; a field whose words cannot be is left out
 * too. Packed, it is BUCKET_PACKED_MAX words at
 * the most. */
void bucket_unpack(struct bucket *bucket, int64_t *words, size_t count);
size_t bucket_pack(const struct bucket *bucket, int64_t *out);

/* How many words of room it takes to decide on a bucket of this limit of so many packed words; and
 * how many it can have, packed, afterwards. */
size_t bucket_room(const struct limit *limit, size_t packed);
size_t bucket_grown(const struct limit *limit, size_t packed);

/* The time from which on the bucket says nothing. */
int64_t bucket_worthless_at(const struct bucket *bucket, int64_t now_us);

/* Decides on buckets[i] for check->items[i] at now_us, and changes them if there is something to
 * spend or to set right. */
void decide(const struct check *check, struct bucket *buckets, int64_t now_us,
	struct decision *decision);

/* Takes the lease out of the bucket, or prolongs it if it is there and has not ended. */
void bucket_release(struct bucket *bucket, const struct limit *limit, uint64_t lease);
void bucket_renew(struct bucket *bucket, const struct limit *limit, uint64_t lease, int64_t now_us);

/* ---- what a decision says ---- */

/*
 * Fills an outcome from three numbers: how many tokens are used (-1 - used if the policy is
 * violated), the wait (if violated until the cost would pass, -1: never; else until one token more,
 * 0 if none is used), and the time until none is used. They are those after the request if the
 * policy was spent, else those before.
 */
void outcome_set_numbers(struct outcome *outcome, const struct check_item *item,
	const struct policy *policy, int64_t used, int64_t wait_us, int64_t reset_us);

/* The same of a token bucket, from its debt. */
void outcome_set(struct outcome *outcome, const struct check_item *item,
	const struct policy *policy, int64_t debt_us, uint64_t cost, bool violated);

/* The wait of a violated policy in whole seconds, rounded up, at least 1; 0 if it would never pass.
 */
int64_t outcome_retry_after_s(const struct outcome *outcome);

/* The longest of the violated policies, in the same way. */
int64_t decision_retry_after_s(const struct decision *decision);

/* The violated outcome with the longest wait, shadows left out; NULL if none is. */
const struct outcome *decision_violated(const struct decision *decision);

#endif
