/* The X-RateLimit dialects. */
#include "weir/headers.h"

#include "weir/units.h"

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

		/* What is only counted is nothing that a client must heed. */
		if (!outcome->shadow &&
			(longest == NULL ||
				outcome->policy->window_us > longest->policy->window_us))
			longest = outcome;
	}
	return longest;
}

static int64_t
seconds_up(int64_t us)
{
	return (us + US_PER_S - 1) / US_PER_S;
}

/* Not by printf: this stands on the way of every admitted answer. */
static int
put_line(struct buf *out, struct slice name, uint64_t value)
{
	char text[UINT_TEXT_SIZE];
	const size_t len = uint_text(value, text);

	if (buf_append_slice(out, name) != 0 || buf_append(out, text, len) != 0)
		return -1;
	return buf_append(out, "\r\n", 2);
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

	if (put_line(out, SLICE("X-RateLimit-Limit: "), outcome->policy->burst) != 0 ||
		put_line(out, SLICE("X-RateLimit-Remaining: "), outcome->remaining) != 0)
		return -1;
	return put_line(out, SLICE("X-RateLimit-Reset: "), (uint64_t)reset);
}
