/* The table of algorithms. */
#include "algorithms.h"

const struct algorithm *const algorithms[ALGORITHMS] = {
	[POLICY_TOKEN_BUCKET] = &algorithm_token_bucket,
	[POLICY_SLIDING_WINDOW] = &algorithm_sliding_window,
	[POLICY_SLIDING_LOG] = &algorithm_sliding_log,
	[POLICY_CALENDAR] = &algorithm_calendar,
	[POLICY_CONCURRENT] = &algorithm_concurrent,
};

unsigned
algorithm_words(const struct policy *policy)
{
	const struct algorithm *algorithm = algorithms[policy->algorithm];
	const uint64_t records =
		policy->burst < algorithm->records_max ? policy->burst : algorithm->records_max;

	return (unsigned)records * algorithm->record_words;
}
