/* What a decision says of each policy, and of all of them. */
#include "weir/decision.h"

void
outcome_set_numbers(struct outcome *outcome, const struct check_item *item,
	const struct policy *policy, int64_t used, int64_t wait_us, int64_t reset_us)
{
	const bool is_violated = used < 0;
	const uint64_t spent = (uint64_t)(is_violated ? -1 - used : used);

	*outcome = (struct outcome){
		.limit = item->limit,
		.policy = policy,
		.violated = is_violated,
		.shadow = item->shadow || policy->shadow,
		.remaining = spent < policy->burst ? policy->burst - spent : 0,
		.retry_us = is_violated ? wait_us : 0,
		.more_us = wait_us > 0 ? wait_us : 0,
		.reset_us = reset_us,
	};
}

/* The numbers of a token bucket, as algorithm_token_bucket.c gives them. */
void
outcome_set(struct outcome *outcome, const struct check_item *item, const struct policy *policy,
	int64_t debt_us, uint64_t cost, bool violated)
{
	const int64_t interval_us = policy->interval_us;
	const int64_t used = debt_us / interval_us + (debt_us % interval_us != 0);
	const uint64_t burst = policy->burst;
	const uint64_t remaining = (uint64_t)used < burst ? burst - (uint64_t)used : 0;
	uint64_t wanted = remaining + 1; /* tokens that are waited for */
	int64_t wait_us = 0;

	if (violated)
		wanted = cost;
	if (wanted <= burst)
		wait_us = debt_us - (int64_t)(burst - wanted) * interval_us;
	else if (violated)
		wait_us = -1;
	outcome_set_numbers(outcome, item, policy, violated ? -1 - used : used, wait_us, debt_us);
}

const struct outcome *
decision_violated(const struct decision *decision)
{
	const struct outcome *worst = NULL;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->violated || outcome->shadow)
			continue;
		if (worst == NULL || outcome->retry_us < 0 ||
			(worst->retry_us >= 0 && outcome->retry_us > worst->retry_us))
			worst = outcome;
	}
	return worst;
}

int64_t
outcome_retry_after_s(const struct outcome *outcome)
{
	if (outcome->retry_us < 0)
		return 0;
	return outcome->retry_us < US_PER_S ? 1 : seconds_up(outcome->retry_us);
}

int64_t
decision_retry_after_s(const struct decision *decision)
{
	const struct outcome *worst = decision_violated(decision);

	return worst == NULL ? 0 : outcome_retry_after_s(worst);
}
