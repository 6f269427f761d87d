/* Random names, policies and outcomes, such as no one would write by hand. */
#include "any_decision.h"

#include "../unit.h"

/* A structured field has 15 digits. */
#define BURST_MAX UINT64_C(999999999999999)

/* Of what the configuration lets through, and now and then of any bytes. */
static void
make_name(uint64_t *random, char name[ANY_NAME_SIZE])
{
	static const char plain[] = "abcXYZ019-_.";
	static const char odd[] = "\"\\\"\\;=, :\r\n\t\x01\x7f\x80\xc3\xa9\xff%{}";
	const bool is_odd = random_below(random, 3) == 0;
	const size_t len = random_below(random, 65);

	for (size_t i = 0; i < len; i++)
		name[i] = is_odd && random_below(random, 2) == 0
			? odd[random_below(random, sizeof odd - 1)]
			: plain[random_below(random, sizeof plain - 1)];
	name[len] = '\0';
}

/* Small and large ones alike. */
static uint64_t
make_number(uint64_t *random, uint64_t max)
{
	const uint64_t n = random_next(random) >> random_below(random, 64);

	return n % max + 1;
}

static void
make_policy(uint64_t *random, struct policy *policy, const char *name)
{
	*policy = (struct policy){ .name = name,
		.algorithm = (enum policy_algorithm)random_below(random, POLICY_CONCURRENT + 1),
		.count = make_number(random, BURST_MAX),
		.window_us = (int64_t)make_number(random, (uint64_t)DURATION_MAX_US),
		.shadow = random_below(random, 4) == 0 };
	policy->burst = policy->count;
	if (policy->algorithm != POLICY_TOKEN_BUCKET)
		return;
	/* The configuration holds a bucket to a hundred years, and a token to a microsecond. */
	policy->count = make_number(random, (uint64_t)policy->window_us);
	const int64_t interval_us =
		(policy->window_us + (int64_t)policy->count - 1) / (int64_t)policy->count;
	const uint64_t most = (uint64_t)(DURATION_MAX_US / interval_us);

	policy->burst = make_number(random, most < BURST_MAX ? most : BURST_MAX);
}

static void
make_outcome(struct any_decision *any, const struct limit *limit, const struct policy *policy)
{
	uint64_t *random = &any->random;
	struct outcome *outcome = &any->decision.outcomes[any->decision.count++];

	*outcome = (struct outcome){ .limit = limit,
		.policy = policy,
		.shadow = policy->shadow || !limit->enforce,
		.violated =
			any->decision.verdict == VERDICT_REJECTED && random_below(random, 2) == 0,
		.remaining = make_number(random, policy->burst + 1) - 1,
		.more_us = (int64_t)make_number(random, (uint64_t)DURATION_MAX_US),
		.reset_us = (int64_t)make_number(random, (uint64_t)DURATION_MAX_US) };
	if (random_below(random, 8) == 0)
		outcome->more_us = 0;
	if (!outcome->violated)
		return;
	outcome->retry_us = random_below(random, 8) == 0 ? -1 : outcome->more_us;
	outcome->more_us = outcome->retry_us < 0 ? 0 : outcome->retry_us;
}

void
any_decision(struct any_decision *any)
{
	uint64_t *random = &any->random;
	const unsigned limits = (unsigned)random_below(random, ANY_LIMITS + 1);

	any->decision =
		(struct decision){ .verdict = random_below(random, 2) == 0 ? VERDICT_ADMITTED
									   : VERDICT_REJECTED,
			.now_us = (int64_t)make_number(random, UINT64_C(1) << 52) };
	for (unsigned i = 0; i < limits; i++) {
		struct limit *limit = &any->limits[i];

		make_name(random, any->names[i][LIMIT_POLICIES_MAX]);
		*limit = (struct limit){ .name = any->names[i][LIMIT_POLICIES_MAX],
			.policy_count = 1 + (unsigned)random_below(random, LIMIT_POLICIES_MAX / 2),
			.enforce = random_below(random, 4) != 0,
			.shards = 1 };
		for (unsigned j = 0; j < limit->policy_count; j++) {
			make_name(random, any->names[i][j]);
			make_policy(random, &limit->policies[j], any->names[i][j]);
			make_outcome(any, limit, &limit->policies[j]);
		}
	}
	if (decision_violated(&any->decision) == NULL)
		any->decision.verdict = VERDICT_ADMITTED;
	any->retry_after_s = any->decision.verdict == VERDICT_REJECTED
		? decision_retry_after_s(&any->decision)
		: 0;
}
