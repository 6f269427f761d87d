/*
 * What is asked of a store and what it answers: all limits that apply to a request, decided
 * together. Either every enforced policy admits and every one is spent, or nothing is spent on any
 * of them.
 */
#ifndef WEIR_DECISION_H
#define WEIR_DECISION_H

#include "weir/policy.h"

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
	bool shadow; /* of a limit that does not reject */
	uint64_t remaining; /* whole tokens left, after this request if it was admitted */
	int64_t retry_us; /* if violated: until this cost would pass; -1: never, the cost exceeds
			     the burst */
	int64_t more_us; /* until one token more; 0 if the bucket is full */
	int64_t reset_us; /* until the bucket is full */
};

struct decision {
	enum verdict verdict;
	enum unavailable why; /* if unavailable */
	int64_t now_us; /* the store's clock, since 1970 */
	bool clamped; /* a stored time was impossibly far ahead: the bucket was set to empty */
	unsigned count; /* outcomes; 0 if unavailable */
	struct outcome outcomes[CHECK_POLICIES_MAX];
};

struct check_item {
	const struct limit *limit;
	struct slice key; /* names the bucket: limit and identity. Valid until the check is done */
	bool shadow; /* decided by itself, and spent if it admits and the request is admitted; never
			rejects the request, never keeps another from being spent */
};

struct check;
typedef void check_done_fn(struct check *check, const struct decision *decision);

/* Embedded by who asks; stays in place until `done` has been called or the check was cancelled. */
struct check {
	struct check_item items[CHECK_LIMITS_MAX];
	unsigned count;
	uint64_t cost; /* tokens, at least 1 */
	int64_t now_us; /* 0: by the store's clock; tests and tools pass their own */
	int64_t deadline_us; /* monotonic; the answer comes by then */
	check_done_fn *done; /* called once, perhaps before store_decide returns */
	void *store_private; /* the store's while it is asked */
};

/* ---- the decision itself, for stores that keep their state in this process ---- */

/*
 * One policy's stored state, with the form of the bucket that it was written for. Without that a
 * debt of another configuration could not be told from a clock that was set back. Tags that the
 * limit does not know are carried along.
 */
struct bucket_field {
	uint32_t tag;
	int64_t interval_us, capacity_us;
	int64_t tat_us;
};

enum { BUCKET_FIELDS_MAX = 2 * LIMIT_POLICIES_MAX };

struct bucket {
	unsigned count;
	struct bucket_field fields[BUCKET_FIELDS_MAX];
	bool changed; /* out: to be stored */
};

/* Decides on buckets[i] for check->items[i] at now_us, and changes them if there is something to
 * spend or to set right. */
void decide(const struct check *check, struct bucket *buckets, int64_t now_us,
	struct decision *decision);

/* Until every policy of the bucket is full again: its state is worth nothing from then on. */
int64_t bucket_full_at(const struct bucket *bucket);

/* Fills an outcome from a policy's debt: the one before the request if it is violated or was not
 * spent, else the one after. */
void outcome_set(struct outcome *outcome, const struct check_item *item,
	const struct policy *policy, int64_t debt_us, uint64_t cost, bool violated);

/* The longest wait of the violated policies in whole seconds, rounded up, at least 1; 0 if it would
 * never pass. */
int64_t decision_retry_after_s(const struct decision *decision);

/* The violated outcome with the longest wait, shadows left out; NULL if none is. */
const struct outcome *decision_violated(const struct decision *decision);

#endif
