/*
 * A limit in words. Administrators read "5/1m" as five in any minute; a bucket lets five pass at
 * once and then one every 12 seconds, and 100 on the first day of "50/1d". So both halves are said.
 */
#include "validate.h"

enum { WORDS_SIZE = 64 };

static void
print_prefixes(const struct config_identity *identity, FILE *out)
{
	const bool has_4 = identity->prefix_4 < 32, has_6 = identity->prefix_6 < 128;

	(void)fputs(has_4 ? "client network" : "client address", out);
	if (has_4 && has_6)
		(void)fprintf(
			out, " (IPv4 by /%u, IPv6 by /%u)", identity->prefix_4, identity->prefix_6);
	else if (has_4)
		(void)fprintf(out, " (IPv4 by /%u)", identity->prefix_4);
	else if (has_6)
		(void)fprintf(out, " (IPv6 by /%u)", identity->prefix_6);
}

static void
print_identity(const struct config_identity *identity, FILE *out)
{
	switch (identity->source) {
	case IDENTITY_IP:
		print_prefixes(identity, out);
		break;
	case IDENTITY_USER:
		(void)fputs("user", out);
		break;
	case IDENTITY_HEADER:
		(void)fprintf(out, "value of %s", identity->name);
		break;
	case IDENTITY_ALL:
		(void)fputs("all others together", out);
		break;
	}
}

static void
print_who(const struct config_limit *limit, FILE *out)
{
	const bool is_plural = limit->identity_count > 1;

	if (limit->identities[0].source == IDENTITY_ALL) {
		(void)fputs("all clients together", out);
		return;
	}
	(void)fputs("per ", out);
	for (unsigned i = 0; i < limit->identity_count; i++) {
		if (i > 0)
			(void)fputs(", else ", out);
		print_identity(&limit->identities[i], out);
	}
	switch (limit->on_missing) {
	case ON_MISSING_UNSET:
		break;
	case ON_MISSING_SKIP:
		(void)fprintf(out, ", without %s not limited", is_plural ? "any of them" : "it");
		break;
	case ON_MISSING_REJECT:
		(void)fprintf(out, ", without %s rejected", is_plural ? "any of them" : "it");
		break;
	case ON_MISSING_SHARE:
		(void)fprintf(out, ", all without %s together", is_plural ? "any of them" : "it");
		break;
	}
}

/* "a second", "an hour", "every 10 s". */
static const char *
per_window(int64_t window_us, char out[WORDS_SIZE])
{
	static const struct {
		int64_t us;
		const char *text;
	} single[] = {
		{ US_PER_S, "a second" },
		{ 60 * US_PER_S, "a minute" },
		{ 3600 * US_PER_S, "an hour" },
		{ US_PER_DAY, "a day" },
	};
	char duration[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
		if (single[i].us == window_us)
			return single[i].text;
	}
	(void)snprintf(out, WORDS_SIZE, "every %s", duration_text(window_us, duration));
	return out;
}

/* What rounding the interval up takes away, if it is a hundredth of a percent or more. */
static void
print_effective(const struct config_policy *policy, int64_t interval, FILE *out)
{
	const int64_t kept = interval * (int64_t)policy->rate.count;

	if ((kept - policy->rate.window_us) >= policy->rate.window_us / 10000 &&
		kept > policy->rate.window_us)
		(void)fprintf(
			out, " (in effect %.2f a second)", (double)US_PER_S / (double)interval);
}

static void
print_policy(const struct config_policy *policy, FILE *out)
{
	const int64_t interval = config_policy_interval_us(policy), window = policy->rate.window_us;
	const unsigned long long burst = policy->burst, count = policy->rate.count;
	char words[WORDS_SIZE], duration[DURATION_TEXT_SIZE];

	(void)fprintf(out, "%llu at once, then ", burst);
	if (interval < US_PER_S)
		(void)fprintf(out, "%llu %s", count, per_window(window, words));
	else
		(void)fprintf(out, "one %s", per_window(interval, words));
	print_effective(policy, interval, out);
	if (window == US_PER_DAY)
		(void)fprintf(out, "; at most %llu in the first day", burst + count);
	else if (window > US_PER_DAY)
		(void)fprintf(out, "; at most %llu in the first %s", burst + count,
			duration_text(window, duration));
	else if (interval < US_PER_S)
		(void)fprintf(out, "; at most %llu a day",
			burst + (unsigned long long)(US_PER_DAY / interval));
}

void
config_limit_words(const struct config_limit *limit, FILE *out)
{
	(void)fprintf(out, "limit %s%s: ", limit->name, limit->enforce ? "" : " (not enforced)");
	print_who(limit, out);
	if (limit->policy_count == 1) {
		(void)fputs(": ", out);
		print_policy(&limit->policies[0], out);
	}
	(void)fputs(limit->policy_count == 1 ? "\n" : ", each of:\n", out);
	for (unsigned i = 0; limit->policy_count > 1 && i < limit->policy_count; i++) {
		(void)fprintf(out, "    %s: ", limit->policies[i].name);
		print_policy(&limit->policies[i], out);
		(void)fputc('\n', out);
	}
}
