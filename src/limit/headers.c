/* The X-RateLimit dialects. */
#include "weir/headers.h"

const char *const header_names[] = { "X-RateLimit-Limit", "X-RateLimit-Remaining",
	"X-RateLimit-Reset", NULL };

static const struct outcome *
shown(const struct decision *decision)
{
	const struct outcome *longest = NULL;

	if (decision->verdict == VERDICT_REJECTED && decision_violated(decision) != NULL)
		return decision_violated(decision);
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (longest == NULL || outcome->policy->window_us > longest->policy->window_us)
			longest = outcome;
	}
	return longest;
}

static int64_t
seconds_up(int64_t us)
{
	return (us + US_PER_S - 1) / US_PER_S;
}

int
headers_put(struct buf *out, unsigned dialects, const struct decision *decision)
{
	const struct outcome *outcome = shown(decision);

	if (outcome == NULL || (dialects & (HEADERS_X_RATELIMIT | HEADERS_X_RATELIMIT_EPOCH)) == 0)
		return 0;
	const bool epoch = (dialects & HEADERS_X_RATELIMIT_EPOCH) != 0;
	const int64_t reset =
		seconds_up(epoch ? decision->now_us + outcome->reset_us : outcome->reset_us);

	return buf_printf(out,
		"X-RateLimit-Limit: %llu\r\nX-RateLimit-Remaining: %llu\r\nX-RateLimit-Reset: "
		"%lld\r\n",
		(unsigned long long)outcome->policy->burst, (unsigned long long)outcome->remaining,
		(long long)reset);
}
