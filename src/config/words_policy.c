/*
 * A policy in words. Administrators read "5/1m" as five in any minute; a bucket lets five pass at
 * once and then one every 12 seconds, and 100 on the first day of "50/1d". So both halves are said.
 */
#include "validate.h"
#include "words.h"

enum { WORDS_SIZE = 64 };

/* "a second", "an hour", "every 10 s"; of any stretch of time: "any second", "any 60 min"; and of
 * the first: "second", "10 s". */
static const struct {
	int64_t us;
	const char *per, *any, *first;
} windows[] = {
	{ US_PER_S, "a second", "any second", "second" },
	{ 60 * US_PER_S, "a minute", "any 60 s", "minute" },
	{ 3600 * US_PER_S, "an hour", "any 60 min", "hour" },
	{ US_PER_DAY, "a day", "any 24 h", "day" },
};

static const char *
per_window(int64_t window_us, char out[WORDS_SIZE])
{
	char duration[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
		if (windows[i].us == window_us)
			return windows[i].per;
	}
	(void)snprintf(out, WORDS_SIZE, "every %s", duration_text(window_us, duration));
	return out;
}

static const char *
any_window(int64_t window_us, char out[WORDS_SIZE])
{
	char duration[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
		if (windows[i].us == window_us)
			return windows[i].any;
	}
	(void)snprintf(out, WORDS_SIZE, "any %s", duration_text(window_us, duration));
	return out;
}

static const char *
first_window(int64_t window_us, char out[WORDS_SIZE])
{
	char duration[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
		if (windows[i].us == window_us)
			return windows[i].first;
	}
	(void)snprintf(out, WORDS_SIZE, "%s", duration_text(window_us, duration));
	return out;
}

/* What rounding the interval up takes away, if it is a hundredth of a percent or more. */
static void
print_effective(const struct config_policy *policy, int64_t interval, FILE *out)
{
	const int64_t kept = interval * (int64_t)policy->rate.count;
	const int64_t exact = policy->rate.window_us * policy->shards;

	if (kept - exact >= exact / 10000 && kept > exact)
		(void)fprintf(out, " (in effect %.2f a second)",
			(double)US_PER_S * policy->shards / (double)interval);
}

/* "5/1m" admits ten in the first minute, which surprises whoever meant five. */
static void
print_most(const struct config_policy *policy, int64_t interval, FILE *out)
{
	const int64_t window = policy->rate.window_us;
	const unsigned long long burst = config_policy_holds_in_all(policy);
	const unsigned shards = policy->shards;
	char words[WORDS_SIZE];

	(void)fprintf(out, "; at most %llu in the first %s",
		burst + (unsigned long long)(window / interval) * shards,
		first_window(window, words));
	if (window < US_PER_DAY)
		(void)fprintf(out, ", %llu a day",
			burst + (unsigned long long)(US_PER_DAY / interval) * shards);
}

static void
print_bucket(const struct config_policy *policy, FILE *out)
{
	const int64_t interval = config_policy_interval_us(policy), window = policy->rate.window_us;
	const unsigned long long burst = config_policy_holds_in_all(policy),
				 count = policy->rate.count;
	const int64_t between = interval / policy->shards;
	char words[WORDS_SIZE];

	(void)fprintf(out, "%llu at once, then ", burst);
	if (between < US_PER_S)
		(void)fprintf(out, "%llu %s", count, per_window(window, words));
	else
		(void)fprintf(out, "one %s", per_window(between, words));
	print_effective(policy, interval, out);
	print_most(policy, interval, out);
	if (policy->shards > 1)
		(void)fprintf(out, "; in %u shards of %llu at once", policy->shards,
			(unsigned long long)config_policy_holds(policy));
}

void
words_policy(const struct config *config, const struct config_policy *policy, FILE *out)
{
	const unsigned long long count = policy->rate.count;
	char words[WORDS_SIZE];

	switch (policy->algorithm) {
	case POLICY_TOKEN_BUCKET:
		print_bucket(policy, out);
		break;
	case POLICY_SLIDING_WINDOW:
		(void)fprintf(
			out, "about %llu in %s", count, any_window(policy->rate.window_us, words));
		break;
	case POLICY_SLIDING_LOG:
		(void)fprintf(out, "%llu in %s", count, any_window(policy->rate.window_us, words));
		break;
	case POLICY_CALENDAR:
		(void)fprintf(out, "%llu each calendar %s (%s)", count,
			policy->period == CALENDAR_DAY ? "day" : "month", config->timezone);
		break;
	case POLICY_CONCURRENT:
		(void)fprintf(out, "%llu at a time", count);
		break;
	}
	if (policy->shadow)
		(void)fputs(" (only counted)", out);
}
