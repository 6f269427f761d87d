/*
 * What all dialects share, and the X-RateLimit ones, which no standard describes: their meaning is
 * what most servers and clients make of them. No printf here: this stands on the way of every
 * admitted answer.
 */
#include "headers_private.h"

#include "weir/units.h"

const char *const header_names[] = { "X-RateLimit-Limit", "X-RateLimit-Remaining",
	"X-RateLimit-Reset", "RateLimit-Policy", "RateLimit", "RateLimit-Limit",
	"RateLimit-Remaining", "RateLimit-Reset", NULL };

/* ---- for all dialects ---- */

int
headers_put_uint(struct buf *out, uint64_t n)
{
	char text[UINT_TEXT_SIZE];
	const size_t len = uint_text(n, text);

	return buf_append(out, text, len);
}

int
headers_put_line(struct buf *out, struct slice name, uint64_t value)
{
	if (buf_append_slice(out, name) != 0 || buf_append(out, ": ", 2) != 0 ||
		headers_put_uint(out, value) != 0)
		return -1;
	return buf_append(out, "\r\n", 2);
}

int64_t
headers_reset_us(const struct outcome *outcome)
{
	/* When a request under way will end, nobody knows: a second, as for Retry-After. */
	if (outcome->policy->algorithm == POLICY_CONCURRENT)
		return outcome->remaining < outcome->policy->burst ? US_PER_S : 0;
	return outcome->reset_us;
}

const struct outcome *
headers_rejecting(const struct decision *decision)
{
	return decision->verdict == VERDICT_REJECTED ? decision_violated(decision) : NULL;
}

/* ---- names ---- */

static bool
is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static bool
is_plain(char c)
{
	return is_printable(c) && c != '"' && c != '\\';
}

/* The configuration has plain names only. Should that change, a name will not break out of its
 * quotes: what no string can hold (RFC 9651 section 3.3.3) is a question mark. */
static int
put_escaped(struct buf *out, const char *text)
{
	while (*text != '\0') {
		size_t plain = 0;

		while (is_plain(text[plain]))
			plain++;
		if (buf_append(out, text, plain) != 0)
			return -1;
		text += plain;
		if (*text == '\0')
			return 0;
		const char escaped[] = { '\\', *text };

		if (is_printable(*text) ? buf_append(out, escaped, 2) != 0
					: buf_append(out, "?", 1) != 0)
			return -1;
		text++;
	}
	return 0;
}

static unsigned
rejecting_policies(const struct limit *limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < limit->policy_count; i++)
		count += limit->policies[i].shadow ? 0 : 1;
	return count;
}

int
headers_put_name(struct buf *out, const struct outcome *outcome)
{
	if (buf_append(out, "\"", 1) != 0 || put_escaped(out, outcome->limit->name) != 0)
		return -1;
	if (rejecting_policies(outcome->limit) > 1 &&
		(buf_append(out, "-", 1) != 0 || put_escaped(out, outcome->policy->name) != 0))
		return -1;
	return buf_append(out, "\"", 1);
}

/* ---- x-ratelimit ---- */

static const struct outcome *
longest_window(const struct decision *decision)
{
	const struct outcome *longest = NULL;

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

static int
put_x(struct buf *out, const struct decision *decision, int64_t since_us)
{
	const struct outcome *outcome = headers_rejecting(decision);

	if (outcome == NULL)
		outcome = longest_window(decision);
	if (outcome == NULL)
		return 0;
	const int64_t reset_s = seconds_up(since_us + headers_reset_us(outcome));

	if (headers_put_line(out, SLICE("X-RateLimit-Limit"), outcome->policy->burst) != 0 ||
		headers_put_line(out, SLICE("X-RateLimit-Remaining"), outcome->remaining) != 0)
		return -1;
	return headers_put_line(out, SLICE("X-RateLimit-Reset"), (uint64_t)reset_s);
}

static int
put_x_ratelimit(struct buf *out, const struct decision *decision, int64_t retry_after_s)
{
	(void)retry_after_s;
	return put_x(out, decision, 0);
}

static int
put_x_ratelimit_epoch(struct buf *out, const struct decision *decision, int64_t retry_after_s)
{
	(void)retry_after_s;
	return put_x(out, decision, decision->now_us);
}

/* ---- the table ---- */

static const struct {
	enum header_dialect dialect;
	headers_put_fn *put;
} serialisers[] = {
	{ HEADERS_X_RATELIMIT, put_x_ratelimit },
	{ HEADERS_X_RATELIMIT_EPOCH, put_x_ratelimit_epoch },
	{ HEADERS_RATELIMIT, headers_put_ratelimit },
	{ HEADERS_RATELIMIT_07, headers_put_ratelimit_07 },
	{ HEADERS_RATELIMIT_06, headers_put_ratelimit_06 },
};

int
headers_put(
	struct buf *out, unsigned dialects, const struct decision *decision, int64_t retry_after_s)
{
	const size_t before = out->len;

	for (size_t i = 0; i < sizeof serialisers / sizeof serialisers[0]; i++) {
		if ((dialects & serialisers[i].dialect) == 0)
			continue;
		if (serialisers[i].put(out, decision, retry_after_s) != 0) {
			/* Half a line would swallow what comes next. */
			out->len = before;
			return -1;
		}
	}
	return 0;
}
