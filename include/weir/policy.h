/*
 * Limits and their policies, compiled for deciding. All times are whole microseconds.
 *
 * Every algorithm says, of its state and a time, how many tokens of `burst` are used and until when
 * no more than so many will be; all else follows from these two alike (algorithm.h).
 *
 * The token bucket is kept as its theoretical arrival time (GCRA): one number, `tat`, the time at
 * which the bucket will be full again. tat - now is the debt: 0 for a full bucket, `capacity_us`
 * for an empty one. A request of cost c is admitted if the debt with c tokens more is at most the
 * capacity; then it is owed. That gives the decisions of refill arithmetic on a bucket of `burst`
 * tokens, exactly, with less state.
 */
#ifndef WEIR_POLICY_H
#define WEIR_POLICY_H

#include "weir/config.h"
#include "weir/counter.h"

/* What one request may ask at the most; the configuration is held to it. */
enum { LIMIT_POLICIES_MAX = 8, CHECK_LIMITS_MAX = 8, CHECK_POLICIES_MAX = 16 };

/* What a limit keeps of one identity at the most: numbers, as its algorithms count them. */
enum { LIMIT_WORDS_MAX = 4096 };

struct policy {
	const char *name;
	enum policy_algorithm algorithm;
	uint32_t tag; /* stands for name and algorithm in stored state */
	uint64_t count; /* the rate as written: count in window_us */
	int64_t window_us; /* of calendar: 1 or 31 days; of concurrent 0 */
	uint64_t burst; /* tokens: the most that is admitted at once; of a shard, its part */
	bool shadow; /* never rejects, and is spent by itself: if it admits and the request is
			admitted */
	/* The form that stored state is written for: two times. */
	union {
		int64_t interval_us; /* of token-bucket: for one token (window / count, rounded up,
					so never above the rate) */
		int64_t span_us; /* of the others: the window; of concurrent the lease */
	};
	int64_t capacity_us; /* of token-bucket: burst * interval_us, at most DURATION_MAX_US; of
				the others the span once more */
	enum calendar_period period; /* of calendar */
	int64_t lease_us; /* of concurrent */
	int code; /* see form_code; 0: none */
	counter_cell rejections[2]; /* that are only counted; that are enforced */
};

/* A tag, an interval and a burst for each policy, with what stands between them. */
enum { LIMIT_SIGNATURE_SIZE = LIMIT_POLICIES_MAX * 44 + 1 };

enum limit_result {
	LIMIT_ADMITTED,
	LIMIT_REJECTED, /* by a policy */
	LIMIT_WOULD_REJECT,
	LIMIT_BLOCKED, /* by an override */
	LIMIT_WOULD_BLOCK,
	LIMIT_REFUSED, /* nobody was named: on_missing = reject */
	LIMIT_WOULD_REFUSE,
	LIMIT_RESULTS
};

struct limit {
	const char *name;
	struct policy policies[LIMIT_POLICIES_MAX];
	unsigned policy_count;
	bool enforce;
	bool is_plain; /* token buckets only, none of them shadow */
	bool has_leases; /* some policy is concurrent */
	bool has_calendar;
	unsigned shards; /* 1 to POLICY_SHARDS_MAX, the same for all policies; they are one shard's
			    part each. The bucket's key ends in `+K`, K from 0, if there are several
			    (shards_key) */
	unsigned words; /* of a bucket of its own at the most, LIMIT_WORDS_MAX */
	char signature[LIMIT_SIGNATURE_SIZE]; /* what its stored state begins with (lua/decide.lua)
					       */
	counter_cell results[LIMIT_RESULTS];
	const struct config_limit *config; /* with its identities; owned by the configuration */
};

/*
 * Fills *limit from what was validated: with `override`, its policies stand instead of those of the
 * same name, under the same tags, so the bucket's state goes on; NULL: none. What cannot be decided
 * exactly is an error with its place.
 */
void limit_init(struct limit *limit, const struct config_limit *config,
	const struct config_override *override, struct diagnostics *diagnostics);

/*
 * A number that stands for name, algorithm, interval and burst of a token bucket of common form: a
 * usual window as name, and a round count and burst (src/limit/form.c). With it the state of a
 * limit of one such policy is a single integer, which Redis keeps in two thirds of the memory. 0
 * for all others.
 */
int form_code(const char *name, uint64_t count, int64_t window_us, uint64_t burst);

/* The inverse, for state that another configuration wrote. False if no policy has that code. */
bool form_of_code(int code, uint32_t *tag, int64_t *interval_us, int64_t *capacity_us);

/* The key of one of the limit's shards: `KEY+K`, from the arena; without memory its ptr is NULL. */
struct slice shards_key(struct arena *arena, struct slice key, unsigned shard) WEIR_MUST_CHECK;

uint32_t policy_tag(const char *name, enum policy_algorithm algorithm);

#endif
