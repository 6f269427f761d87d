/* Shards: what they hold together is what `weir check` says of them. */
#include "asking.h"

static uint64_t
admitted_at_once(const struct made_limit *made)
{
	uint64_t admitted = 0;

	for (unsigned shard = 0; shard < made->limit.shards; shard++) {
		struct kept kept = { .len = 0 };

		while (ask(&kept, made, 1, IN_2026_US).verdict == VERDICT_ADMITTED)
			admitted++;
	}
	return admitted;
}

static void
all_of_them_hold_what_is_said_and_never_more_than_the_limit(void **state)
{
	char policy[64];

	(void)state;
	for (unsigned shards = 1; shards <= POLICY_SHARDS_MAX; shards += 1 + shards / 3) {
		for (uint64_t burst = shards; burst < shards + 300; burst += 7) {
			struct made_limit made;

			(void)snprintf(policy, sizeof policy, "1000/1d burst %llu shards %u",
				(unsigned long long)burst, shards);
			make_limit(&made, "l", policy);
			const uint64_t admitted = admitted_at_once(&made);

			assert_int_equal(made.limit.shards, shards);
			assert_row(admitted == burst / shards * shards, "%s: %llu", policy,
				(unsigned long long)admitted);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_hold_what_is_said_and_never_more_than_the_limit),
	};

	return cmocka_run_group_tests_name("limit/shards", tests, NULL, NULL);
}
