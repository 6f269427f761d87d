/* How much is admitted: policies and caps, which begin with a rate or with `concurrent N`. */
#include "line.h"
#include "values.h"

#include <stdio.h>

#define BURST_MAX UINT64_C(1000000000000000)
#define LEASE_DEFAULT (600 * US_PER_S)
#define LEASE_MAX (30 * US_PER_DAY)

static int
parse_count(struct slice text, uint64_t max, const char *what, uint64_t *out, struct err *err)
{
	uint64_t n;

	if (parse_uint(text, max, &n) != 0 || n == 0)
		return err_set(err, "%s \"%.*s\" is no whole number from 1 to %llu", what,
			SHOWN(text), (unsigned long long)max);
	*out = n;
	return 0;
}

/* ---- the words behind it ---- */

enum { BURST, NAME, SHARDS, LEASE, SHADOW, ALGORITHMS, TRAILERS = ALGORITHMS + 4 };

static const struct trailer policy_trailers[TRAILERS + 1] = {
	[BURST] = { "burst", .has_argument = true },
	[NAME] = { "name", .has_argument = true },
	[SHARDS] = { "shards", .has_argument = true },
	[LEASE] = { "lease", .has_argument = true },
	[SHADOW] = { "shadow", .has_argument = false },
	[ALGORITHMS + POLICY_TOKEN_BUCKET] = { "token-bucket", .has_argument = false },
	[ALGORITHMS + POLICY_SLIDING_WINDOW] = { "sliding-window", .has_argument = false },
	[ALGORITHMS + POLICY_SLIDING_LOG] = { "sliding-log", .has_argument = false },
	[ALGORITHMS + POLICY_CALENDAR] = { "calendar", .has_argument = false },
	[TRAILERS] = { NULL, .has_argument = false },
};

/* The algorithm that is named, POLICY_TOKEN_BUCKET if none is. */
static int
choose_algorithm(const struct trailer *trailers, struct config_policy *policy, struct err *err)
{
	const struct trailer *chosen = NULL;

	for (int i = POLICY_TOKEN_BUCKET; i < POLICY_CONCURRENT; i++) {
		const struct trailer *trailer = &trailers[ALGORITHMS + i];

		if (!trailer->is_given)
			continue;
		if (policy->algorithm == POLICY_CONCURRENT)
			return err_set(err,
				"concurrent is an algorithm of its own; leave out \"%s\"",
				trailer->name);
		if (chosen != NULL)
			return err_set(err, "\"%s\" and \"%s\" are two algorithms; choose one",
				chosen->name, trailer->name);
		chosen = trailer;
		policy->algorithm = (enum policy_algorithm)i;
	}
	return 0;
}

static int
check_trailers(const struct trailer *trailers, const struct config_policy *policy, struct err *err)
{
	static const unsigned of_buckets[] = { BURST, SHARDS };

	for (size_t i = 0; i < sizeof of_buckets / sizeof of_buckets[0]; i++) {
		if (trailers[of_buckets[i]].is_given && policy->algorithm != POLICY_TOKEN_BUCKET)
			return err_set(err,
				"\"%s\" is of a token bucket, and this is none; leave it out",
				trailers[of_buckets[i]].name);
	}
	if (trailers[LEASE].is_given && policy->algorithm != POLICY_CONCURRENT)
		return err_set(err,
			"\"lease\" is of requests at a time; write concurrent N lease DURATION");
	return 0;
}

/* Each shard is a bucket that holds something and fills. */
static int
parse_shards(const struct trailer *trailer, struct config_policy *policy, struct err *err)
{
	uint64_t shards = 1;

	if (!trailer->is_given)
		return 0;
	if (parse_count(trailer->argument, POLICY_SHARDS_MAX, "the number of shards", &shards,
		    err) != 0)
		return -1;
	if (shards > policy->rate.count || shards > policy->burst)
		return err_set(err,
			"%llu shards share a count of %llu and a burst of %llu: each wants one at "
			"least",
			(unsigned long long)shards, (unsigned long long)policy->rate.count,
			(unsigned long long)policy->burst);
	policy->shards = (unsigned)shards;
	return 0;
}

static int
parse_lease(const struct trailer *trailer, struct config_policy *policy, struct err *err)
{
	policy->lease_us = policy->algorithm == POLICY_CONCURRENT ? LEASE_DEFAULT : 0;
	if (!trailer->is_given)
		return 0;
	if (parse_duration(trailer->argument, &policy->lease_us, err) != 0)
		return -1;
	if (policy->lease_us < US_PER_S || policy->lease_us > LEASE_MAX)
		return err_set(
			err, "the lease \"%.*s\" is not from 1s to 30d", SHOWN(trailer->argument));
	return 0;
}

static int
parse_trailers(const struct trailer *trailers, struct config_policy *policy, struct err *err)
{
	const struct trailer *burst = &trailers[BURST];

	policy->burst = policy->rate.count;
	policy->shards = 1;
	policy->shadow = trailers[SHADOW].is_given;
	if (burst->is_given &&
		parse_count(burst->argument, BURST_MAX, "the burst", &policy->burst, err) != 0)
		return -1;
	if (parse_shards(&trailers[SHARDS], policy, err) != 0)
		return -1;
	return parse_lease(&trailers[LEASE], policy, err);
}

/* ---- what is written otherwise here ---- */

/* `2 concurrent`, `concurrent=2`. */
static int
check_concurrent(struct slice text, struct err *err)
{
	const struct slice name = SLICE("concurrent");
	struct slice rest = text, first, second;
	uint64_t n;

	(void)word_next(&rest, &first);
	if (slice_has_prefix(first, name) && first.len > name.len &&
		strchr("=:", first.ptr[name.len]) != NULL)
		second = slice_skip(first, name.len + 1);
	else if (word_next(&rest, &second) && slice_is(second, name))
		second = first;
	else
		return 0;
	if (parse_uint(second, POLICY_CONCURRENT_MAX, &n) != 0)
		return err_set(err, "requests at a time are written concurrent N");
	return err_set(err, "this is written concurrent %.*s", SHOWN(second));
}

/* `20/day calendar Europe/Berlin` */
static int
check_zone(struct slice rest, struct err *err)
{
	bool is_calendar = false, is_name = false;
	struct slice word;

	while (word_next(&rest, &word)) {
		const char c = word.ptr[0];
		const bool is_zone = slice_is_nocase(word, SLICE("timezone")) ||
			slice_is(word, SLICE("UTC")) ||
			(c >= 'A' && c <= 'Z' && slice_find(word, '/') < word.len);

		if (is_calendar && is_zone && !is_name)
			return err_set(err,
				"\"%.*s\": all calendars go by one time zone; write timezone = "
				"ZONE into [weir]",
				SHOWN(word));
		is_calendar = is_calendar || slice_is(word, SLICE("calendar"));
		is_name = slice_is(word, SLICE("name"));
	}
	return 0;
}

/* ---- policies ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
parse_amount(struct slice text, struct config_policy *policy, struct err *err)
{
	switch (policy->algorithm) {
	case POLICY_TOKEN_BUCKET:
	case POLICY_SLIDING_WINDOW:
		return rate_parse(text, &policy->rate, err);
	case POLICY_SLIDING_LOG:
		if (rate_parse(text, &policy->rate, err) != 0)
			return -1;
		if (policy->rate.count > POLICY_LOG_MAX)
			return err_set(err,
				"sliding-log keeps each request by itself, so its count is %d at "
				"the most; sliding-window takes any",
				POLICY_LOG_MAX);
		return 0;
	case POLICY_CALENDAR:
		return rate_parse_calendar(text, policy, err);
	case POLICY_CONCURRENT:
		(void)snprintf(policy->rate.window, sizeof policy->rate.window, "concurrent");
		return parse_count(text, POLICY_CONCURRENT_MAX, "the number of requests at a time",
			&policy->rate.count, err);
	}
	return -1;
}

int
value_policy(const struct value *value, void *field, struct err *err)
{
	struct config_policy *policy = field;
	struct trailer trailers[TRAILERS + 1];
	struct slice rest = value->text, amount;

	if (slice_find(rest, ',') != rest.len)
		return err_set(err, "a second policy is a second line, without a comma");
	*policy = (struct config_policy){ .place = value->place };
	memcpy(trailers, policy_trailers, sizeof trailers);
	if (rate_check_foreign(rest, err) != 0 || check_concurrent(rest, err) != 0 ||
		check_zone(rest, err) != 0)
		return -1;
	(void)word_next(&rest, &amount);
	if (slice_is(amount, SLICE("concurrent"))) {
		policy->algorithm = POLICY_CONCURRENT;
		if (!word_next(&rest, &amount) || !is_digit(amount.ptr[0]))
			return err_set(err, "concurrent wants a number, such as concurrent 6");
	}
	/* The words first: of `1000/day calendar` the word tells more than the window does. */
	if (trailers_parse(rest, trailers, err) != 0 ||
		choose_algorithm(trailers, policy, err) != 0 ||
		check_trailers(trailers, policy, err) != 0 ||
		parse_amount(amount, policy, err) != 0 ||
		parse_trailers(trailers, policy, err) != 0)
		return -1;
	const struct slice name =
		trailers[NAME].is_given ? trailers[NAME].argument : slice_of(policy->rate.window);

	if (config_name_check(name, err) != 0)
		return -1;
	policy->name = value_copy(value, name, err);
	return policy->name == NULL ? -1 : 0;
}

int
value_local_cap(const struct value *value, void *field, struct err *err)
{
	struct config_policy *policy = value_alloc(value, sizeof *policy, err);
	struct trailer trailers[] = {
		{ "burst", .has_argument = true },
		{ NULL, .has_argument = false },
	};
	struct slice rest = value->text, rate;

	if (policy == NULL)
		return -1;
	*policy = (struct config_policy){ .place = value->place, .name = "local_cap", .shards = 1 };
	if (rate_check_foreign(rest, err) != 0)
		return -1;
	(void)word_next(&rest, &rate);
	if (trailers_parse(rest, trailers, err) != 0 || rate_parse(rate, &policy->rate, err) != 0)
		return -1;
	policy->burst = policy->rate.count;
	if (trailers[0].is_given &&
		parse_count(trailers[0].argument, BURST_MAX, "the burst", &policy->burst, err) != 0)
		return -1;
	*(const struct config_policy **)field = policy;
	return 0;
}
