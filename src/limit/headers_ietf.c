/*
 * The dialects of draft-ietf-httpapi-ratelimit-headers. All are structured fields, and their
 * numbers are held below RFC 9651's 15 digits. Between revisions 07 and 08 the fields changed their
 * meaning under the same names, so a client must know which one a server speaks.
 *
 * What a bucket holds may be asked for at once, and is told so: the draft's warning of a large
 * quota in a short window (revision 11 section 6) is heeded by whoever writes `burst`.
 */
#include "headers_private.h"

#include "weir/units.h"

/* RFC 9651 section 3.3.1. */
#define SF_INTEGER_MAX UINT64_C(999999999999999)

static int
put_number(struct buf *out, struct slice before, uint64_t n)
{
	if (buf_append_slice(out, before) != 0)
		return -1;
	return headers_put_uint(out, n < SF_INTEGER_MAX ? n : SF_INTEGER_MAX);
}

static bool
has_window(const struct policy *policy)
{
	return policy->algorithm != POLICY_CONCURRENT;
}

/* The time in which `burst` tokens come. */
static int64_t
window_s(const struct outcome *outcome)
{
	const struct policy *policy = outcome->policy;

	if (policy->algorithm != POLICY_TOKEN_BUCKET)
		return seconds_up(policy->window_us);
	/* Not by the interval: of `3/1s` that is a little more than a third. */
	const double shards = outcome->limit->shards > 1 ? outcome->limit->shards : 1;
	const double us =
		(double)policy->burst * (double)policy->window_us / (double)policy->count * shards;

	return seconds_up((int64_t)us);
}

/* ---- revision 11 ---- */

static int
put_policy_item(struct buf *out, const struct outcome *outcome)
{
	if (headers_put_name(out, outcome) != 0 ||
		put_number(out, SLICE(";q="), outcome->policy->burst) != 0)
		return -1;
	if (!has_window(outcome->policy))
		return buf_append_slice(out, SLICE(";qu=\"concurrent-requests\""));
	return put_number(out, SLICE(";w="), (uint64_t)window_s(outcome));
}

/* `t` is the time for which no more than `r` can be used: until the next token. A full bucket has
 * none. */
static int
put_state_item(struct buf *out, const struct outcome *outcome)
{
	if (headers_put_name(out, outcome) != 0 ||
		put_number(out, SLICE(";r="), outcome->remaining) != 0)
		return -1;
	if (!has_window(outcome->policy) || outcome->more_us == 0)
		return 0;
	return put_number(out, SLICE(";t="), (uint64_t)seconds_up(outcome->more_us));
}

/* Before each item of a list: the field's name, then commas. */
static int
put_separator(struct buf *out, struct slice name, bool is_first)
{
	if (!is_first)
		return buf_append(out, ", ", 2);
	return buf_append_slice(out, name) != 0 ? -1 : buf_append(out, ": ", 2);
}

static int
put_list(struct buf *out, struct slice name, const struct decision *decision, bool only_violated,
	int (*put_item)(struct buf *, const struct outcome *))
{
	bool is_first = true;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (outcome->shadow || (only_violated && !outcome->violated))
			continue;
		if (put_separator(out, name, is_first) != 0 || put_item(out, outcome) != 0)
			return -1;
		is_first = false;
	}
	return is_first ? 0 : buf_append(out, "\r\n", 2);
}

int
headers_put_ratelimit(struct buf *out, const struct decision *decision, int64_t retry_after_s)
{
	const bool only_violated = headers_rejecting(decision) != NULL;

	(void)retry_after_s;
	if (put_list(out, SLICE("RateLimit-Policy"), decision, false, put_policy_item) != 0)
		return -1;
	return put_list(out, SLICE("RateLimit"), decision, only_violated, put_state_item);
}

/* ---- revisions 06 and 07 ---- */

static bool
is_closer(const struct outcome *a, const struct outcome *b)
{
	if (has_window(a->policy) != has_window(b->policy))
		return has_window(a->policy);
	if (a->remaining != b->remaining)
		return a->remaining < b->remaining;
	return a->policy->window_us > b->policy->window_us;
}

/* "The service limit that is closest to reaching its limit." NULL: there is nothing to tell. */
static const struct outcome *
closest(const struct decision *decision)
{
	const struct outcome *closest = headers_rejecting(decision);

	if (closest != NULL)
		return closest;
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->shadow && (closest == NULL || is_closer(outcome, closest)))
			closest = outcome;
	}
	return closest;
}

/* Policies have no names here, and no two may have the same quota: the longest window, which is the
 * stricter limit, stands for all that have. */
static bool
is_listed(const struct decision *decision, unsigned index)
{
	const struct outcome *outcome = &decision->outcomes[index];

	if (outcome->shadow || !has_window(outcome->policy))
		return false;
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *other = &decision->outcomes[i];

		if (other->shadow || !has_window(other->policy) ||
			other->policy->burst != outcome->policy->burst)
			continue;
		if (window_s(other) > window_s(outcome) ||
			(i < index && window_s(other) == window_s(outcome)))
			return false;
	}
	return true;
}

static int
put_quotas(struct buf *out, const struct decision *decision)
{
	bool is_first = true;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!is_listed(decision, i))
			continue;
		if (put_separator(out, SLICE("RateLimit-Policy"), is_first) != 0 ||
			put_number(out, SLICE(""), outcome->policy->burst) != 0 ||
			put_number(out, SLICE(";w="), (uint64_t)window_s(outcome)) != 0)
			return -1;
		is_first = false;
	}
	return is_first ? 0 : buf_append(out, "\r\n", 2);
}

/* Both revisions, section 3: the same point in time as Retry-After. */
static uint64_t
reset_s(const struct outcome *outcome, int64_t retry_after_s)
{
	if (retry_after_s > 0)
		return (uint64_t)retry_after_s;
	return (uint64_t)seconds_up(headers_reset_us(outcome));
}

int
headers_put_ratelimit_07(struct buf *out, const struct decision *decision, int64_t retry_after_s)
{
	const struct outcome *outcome = closest(decision);

	if (outcome == NULL)
		return 0;
	if (put_quotas(out, decision) != 0 ||
		put_number(out, SLICE("RateLimit: limit="), outcome->policy->burst) != 0 ||
		put_number(out, SLICE(", remaining="), outcome->remaining) != 0 ||
		put_number(out, SLICE(", reset="), reset_s(outcome, retry_after_s)) != 0)
		return -1;
	return buf_append(out, "\r\n", 2);
}

int
headers_put_ratelimit_06(struct buf *out, const struct decision *decision, int64_t retry_after_s)
{
	const struct outcome *outcome = closest(decision);

	if (outcome == NULL)
		return 0;
	if (put_quotas(out, decision) != 0 ||
		put_number(out, SLICE("RateLimit-Limit: "), outcome->policy->burst) != 0 ||
		put_number(out, SLICE("\r\nRateLimit-Remaining: "), outcome->remaining) != 0 ||
		put_number(out, SLICE("\r\nRateLimit-Reset: "), reset_s(outcome, retry_after_s)) !=
			0)
		return -1;
	return buf_append(out, "\r\n", 2);
}
