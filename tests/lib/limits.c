/* Limits for tests. What goes wrong here is no test's fault, so it ends the program. */
#include "limits.h"

#include "weir/hash.h"

#include <stdlib.h>

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s\n", what);
	abort();
}

static void
set_name(struct made_limit *made, unsigned i, struct slice name)
{
	(void)snprintf(made->names[i], sizeof made->names[i], "%.*s", (int)name.len, name.ptr);
	made->policies[i].name = made->names[i];
}

/* A number, behind a word of its own. */
static uint64_t
number_of(struct slice *rest, const char *text)
{
	struct slice argument;
	uint64_t number = 0;

	require(slice_split(rest, ' ', &argument), text);
	require(parse_uint(argument, UINT64_MAX, &number) == 0, text);
	return number;
}

static bool
parse_algorithm(struct slice word, struct config_policy *policy)
{
	static const char *const names[] = { [POLICY_TOKEN_BUCKET] = "token-bucket",
		[POLICY_SLIDING_WINDOW] = "sliding-window",
		[POLICY_SLIDING_LOG] = "sliding-log" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!slice_is(word, slice_of(names[i])))
			continue;
		policy->algorithm = (enum policy_algorithm)i;
		return true;
	}
	return false;
}

static void
parse_words(struct made_limit *made, unsigned i, struct slice rest, const char *text)
{
	struct config_policy *policy = &made->policies[i];
	struct slice word, argument;
	struct err err;

	while (slice_split(&rest, ' ', &word)) {
		if (parse_algorithm(word, policy))
			continue;
		if (slice_is(word, SLICE("burst"))) {
			policy->burst = number_of(&rest, text);
		} else if (slice_is(word, SLICE("shards"))) {
			policy->shards = (unsigned)number_of(&rest, text);
		} else if (slice_is(word, SLICE("lease"))) {
			require(slice_split(&rest, ' ', &argument), text);
			require(parse_duration(argument, &policy->lease_us, &err) == 0, err.text);
		} else if (slice_is(word, SLICE("shadow"))) {
			policy->shadow = true;
		} else {
			require(slice_is(word, SLICE("name")), text);
			require(slice_split(&rest, ' ', &argument), text);
			set_name(made, i, argument);
		}
	}
}

/* `N/day calendar` or `N/month calendar`. */
static void
parse_calendar(struct config_policy *policy, struct slice word, const char *text)
{
	const size_t slash = slice_find(word, '/');
	const bool is_day = slice_is(slice_skip(word, slash), SLICE("/day"));

	require(is_day || slice_is(slice_skip(word, slash), SLICE("/month")), text);
	require(parse_uint(slice_first(word, slash), UINT64_MAX, &policy->rate.count) == 0, text);
	policy->algorithm = POLICY_CALENDAR;
	policy->period = is_day ? CALENDAR_DAY : CALENDAR_MONTH;
	policy->rate.window_us = (is_day ? 1 : 31) * US_PER_DAY;
	policy->name = is_day ? "day" : "month";
}

static void
parse(struct made_limit *made, unsigned i, const char *text)
{
	struct config_policy *policy = &made->policies[i];
	struct slice rest = slice_of(text), word, last;
	struct err err;

	policy->shards = 1;
	(void)slice_split(&rest, ' ', &word);
	if (slice_is(word, SLICE("concurrent"))) {
		policy->algorithm = POLICY_CONCURRENT;
		policy->rate.count = number_of(&rest, text);
		policy->lease_us = 600 * US_PER_S;
		policy->name = "concurrent";
	} else if (slice_is(slice_first(rest, 8), SLICE("calendar"))) {
		parse_calendar(policy, word, text);
		(void)slice_split(&rest, ' ', &last);
	} else {
		require(parse_rate(word, &policy->rate, &err) == 0, err.text);
		policy->name = policy->rate.window;
	}
	policy->burst = policy->rate.count;
	parse_words(made, i, rest, text);
}

static void
compile(struct made_limit *made, const struct config_override *override)
{
	struct diagnostics diagnostics;

	diagnostics_init(&diagnostics);
	limit_init(&made->limit, &made->config, override, &diagnostics);
	if (diagnostics.errors > 0)
		diagnostics_print(&diagnostics, stderr);
	require(diagnostics.errors == 0, "the limit was refused");
	diagnostics_release(&diagnostics);
}

static void
parse_all(struct made_limit *made, const char *const *policies)
{
	unsigned count = 0;
	struct err err;

	require(hash_start(&err) == 0, err.text);
	memset(made, 0, sizeof *made);
	for (; policies[count] != NULL; count++) {
		require(count < LIMIT_POLICIES_MAX, "a limit of too many policies");
		parse(made, count, policies[count]);
	}
	made->config.policies = made->policies;
	made->config.policy_count = count;
}

void
made_limit_init(struct made_limit *made, const char *name, const char *const *policies)
{
	parse_all(made, policies);
	made->config.name = name;
	made->config.enforce = true;
	compile(made, NULL);
}

void
made_limit_override(
	struct made_limit *made, const struct made_limit *from, const char *const *policies)
{
	parse_all(made, policies);
	made->override = (struct config_override){ .policies = made->policies,
		.policy_count = made->config.policy_count };
	made->config = from->config;
	compile(made, &made->override);
}
