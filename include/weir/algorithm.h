/*
 * The algorithms of policies, one file each (src/limit/algorithm_*.c) and one of lua/algorithms/
 * that decides the same. Their table is src/limit/algorithms.c.
 *
 * A state is a few whole numbers (words) for each policy. Of a state and a time an algorithm says
 * how many tokens are used, and how long until no more than a given number will be if nothing else
 * comes. The rest is the same for all (decide.c): a request of cost c is admitted if used + c <=
 * burst; Retry-After is the wait until used <= burst - c; one token more comes when used <= burst -
 * remaining - 1; the bucket is full when used = 0.
 */
#ifndef WEIR_ALGORITHM_H
#define WEIR_ALGORITHM_H

#include "weir/policy.h"

/* One policy's state, with the form that it was written for (policy.h). Words and form together
 * are what is stored. */
struct bucket_field {
	uint32_t tag;
	uint16_t algorithm; /* enum policy_algorithm */
	uint16_t count; /* words; 0: nothing is used */
	union {
		int64_t interval_us; /* of token-bucket */
		int64_t span_us; /* of the others */
	};
	int64_t capacity_us;
	int64_t *words;
};

/* No word of a state is negative, or as much as this: 16 digits say all of them. */
#define WORD_LIMIT INT64_C(10000000000000000)

/* When and for whom. */
struct moment {
	int64_t now_us;
	uint64_t cost; /* of concurrent always 1 */
	uint64_t lease;
};

/* What bringing a state has done to it, beside what time does. */
enum brought {
	BROUGHT,
	BROUGHT_ANEW, /* it is to be stored as it is now, even if the request is rejected */
	BROUGHT_CLAMPED, /* likewise, since a clock that has been set back had left it too far in
			    the future */
};

struct algorithm {
	const char *name; /* as in a policy's tag */

	/* A state is a list of records of this many words each; of policies that count one by one
	 * it has burst of them at the most, of the others one. */
	unsigned record_words;
	unsigned records_max;

	/* Whether the state can be one of that form, given that its words are below WORD_LIMIT and
	 * that there are whole records of them. NULL: then it can. */
	bool (*is_sound)(const struct bucket_field *field);

	/*
	 * Brings a state of any form to this policy's form and this time: what is over goes, and
	 * what a clock that has been set back has left in the future by more than a second is set
	 * right, such that it is over no later than if it were used now. There is room for the
	 * words that it has, and for those of a state of this policy.
	 */
	enum brought (*bring)(const struct policy *policy, struct bucket_field *field,
		const struct moment *moment);

	/* Of a field that was brought to the moment. until: microseconds from now until no more
	 * than `allowed` are used, which is less than the policy's burst; 0: so it is. */
	uint64_t (*used)(const struct policy *policy, const struct bucket_field *field,
		const struct moment *moment);
	int64_t (*until)(const struct policy *policy, const struct bucket_field *field,
		const struct moment *moment, uint64_t allowed);
	void (*spend)(const struct policy *policy, struct bucket_field *field,
		const struct moment *moment);

	/* The time from which on the state says nothing. Of any form, and not brought. */
	int64_t (*worthless_at)(const struct bucket_field *field, int64_t now_us);
};

/* By enum policy_algorithm. */
enum { ALGORITHMS = POLICY_CONCURRENT + 1 };
extern const struct algorithm *const algorithms[ALGORITHMS];

/* The most words that a state of the policy has. */
unsigned algorithm_words(const struct policy *policy);

/*
 * When calendar periods end, in the time zone of the process: ends[0] <= now_us < ends[1] <
 * ends[2]. They stay the same from ends[0] to ends[1]. A store elsewhere is told all three, by our
 * clock; the first that is later than its own time counts.
 */
void calendar_ends(enum calendar_period period, int64_t now_us, int64_t ends[3]);

#endif
