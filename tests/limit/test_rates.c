/*
 * A policy whose rate or burst is changed, and two configurations side by side, as gateways have
 * them while they are reloaded one by one: what was spent of one stays spent in the other, and who
 * is exhausted waits at the rate of whoever answers.
 */
#include "asking.h"

#include <stdio.h>

/* ---- a rate that is changed ---- */

struct change {
	const char *before, *after;
	unsigned owed; /* tokens, once `before` is exhausted */
	int64_t wait_us;
};

static void
assert_change(const struct change *change)
{
	static struct kept kept;
	struct made_limit before, after;
	int64_t now_us = IN_2026_US;

	make_limit(&before, "l", change->before);
	make_limit(&after, "l", change->after);
	kept.len = 0;
	while (ask(&kept, &before, 1, now_us).verdict == VERDICT_ADMITTED)
		continue;
	assert_false(kept.changed);
	now_us += US_PER_S;
	for (unsigned again = 0; again < 2; again++) {
		const struct decision decision = ask(&kept, &after, 1, now_us);

		assert_row(decision.verdict == VERDICT_REJECTED && !decision.clamped &&
				decision.outcomes[0].retry_us == change->wait_us,
			"%s, then %s: wait %lld", change->before, change->after,
			(long long)decision.outcomes[0].retry_us);
		/* Once. */
		assert_row(kept.changed == (again == 0), "%s", change->after);
	}
	now_us += change->wait_us - 1;
	assert_int_equal(ask(&kept, &after, 1, now_us).verdict, VERDICT_REJECTED);
	assert_int_equal(ask(&kept, &after, 1, now_us + 1).verdict, VERDICT_ADMITTED);
	assert_int_equal(ask(&kept, &after, 1, now_us + 1).verdict, VERDICT_REJECTED);
}

/* One second after it is exhausted. */
static void
who_is_exhausted_waits_at_the_new_rate(void **state)
{
	static const struct change changes[] = {
		{ "10/1d burst 10 name p", "10/1s burst 10 name p", 10, 99989 },
		{ "5/1h burst 5 name p", "1000/1h burst 5 name p", 5, 3595000 },
		{ "1/365d burst 3 name p", "1/1s burst 3 name p", 3, 1000000 },
		{ "1/2s burst 4 name p", "1/1d burst 4 name p", 4, 43200000000 },
		{ "1/4s burst 2 name p", "1/60s burst 2 name p", 2, 45000000 },
		/* What is owed beyond the new burst is not forgiven. */
		{ "100/1d burst 100 name p", "1/1s burst 10 name p", 100, 90998843 },
		{ "1/2s burst 40 name p", "1/1d burst 4 name p", 40, 3153600000000 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(changes); i++)
		assert_change(&changes[i]);
}

/* It takes a second for a token of the old rate, and none of the new one comes meanwhile. */
static void
what_would_be_owed_for_a_hundred_years_waits_at_the_old_rate(void **state)
{
	static struct kept kept;
	struct made_limit before, after;

	(void)state;
	make_limit(&before, "l", "1/1s burst 4000 name p");
	make_limit(&after, "l", "1/365d burst 4 name p");
	kept.len = 0;
	assert_int_equal(ask(&kept, &before, 4000, IN_2026_US).verdict, VERDICT_ADMITTED);
	const struct decision decision = ask(&kept, &after, 1, IN_2026_US);

	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(decision.outcomes[0].reset_us, DURATION_MAX_US);
	assert_false(kept.changed);
	assert_int_equal(ask(&kept, &before, 1, IN_2026_US + US_PER_S).verdict, VERDICT_ADMITTED);
	assert_int_equal(ask(&kept, &before, 1, IN_2026_US + US_PER_S).verdict, VERDICT_REJECTED);
}

/* ---- side by side ---- */

static void
random_policy(uint64_t *random, struct made_limit *made, unsigned burst)
{
	static const char *const windows[] = { "1ms", "100ms", "1s", "7s", "1m", "1h", "1d" };
	char text[64];

	(void)snprintf(text, sizeof text, "%u/%s burst %u name p",
		1 + (unsigned)random_below(random, 30),
		windows[random_below(random, LENGTH_OF(windows))], burst);
	make_limit(made, "l", text);
}

/* A bucket of the larger burst, filled at the higher rate. What both together admit, it would. */
struct model {
	int64_t interval_us, full_at_us;
	uint64_t burst;
};

static void
model_spend(struct model *model, uint64_t cost, int64_t now_us)
{
	if (model->full_at_us < now_us)
		model->full_at_us = now_us;
	model->full_at_us += (int64_t)cost * model->interval_us;
	assert_row(model->full_at_us - now_us <= (int64_t)model->burst * model->interval_us,
		"%lld us of tokens were minted",
		(long long)(model->full_at_us - now_us -
			(int64_t)model->burst * model->interval_us));
}

static void
run_side_by_side(uint64_t *random, unsigned *admitted, unsigned *rewritten)
{
	static struct kept kept;
	struct made_limit made[2];
	const unsigned burst = 1 + (unsigned)random_below(random, 20);
	int64_t now_us = IN_2026_US;

	random_policy(random, &made[0], burst);
	random_policy(random, &made[1],
		random_below(random, 2) == 0 ? burst : 1 + (unsigned)random_below(random, 20));
	const struct policy *a = &made[0].limit.policies[0], *b = &made[1].limit.policies[0];
	struct model model = { a->interval_us < b->interval_us ? a->interval_us : b->interval_us, 0,
		a->burst > b->burst ? a->burst : b->burst };

	kept.len = 0;
	for (unsigned n = 0; n < 300; n++) {
		const struct made_limit *asked = &made[random_below(random, 2)];
		const uint64_t cost =
			1 + random_below(random, random_below(random, 4) == 0 ? 5 : 1);
		const struct decision decision = ask(&kept, asked, cost, now_us);

		assert_false(decision.clamped);
		if (decision.verdict == VERDICT_ADMITTED) {
			model_spend(&model, cost, now_us);
			(*admitted)++;
		} else {
			*rewritten += kept.changed;
		}
		now_us += (int64_t)random_below(
			random, (size_t)asked->limit.policies[0].interval_us / 2 + 2);
	}
}

static void
two_configurations_side_by_side_never_mint(void **state)
{
	uint64_t random = 77;
	unsigned admitted = 0, rewritten = 0;

	(void)state;
	for (unsigned i = 0; i < 500; i++)
		run_side_by_side(&random, &admitted, &rewritten);
	assert_in_range(admitted, 10000, 140000);
	assert_in_range(rewritten, 1000, 140000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_exhausted_waits_at_the_new_rate),
		cmocka_unit_test(what_would_be_owed_for_a_hundred_years_waits_at_the_old_rate),
		cmocka_unit_test(two_configurations_side_by_side_never_mint),
	};

	return cmocka_run_group_tests_name("limit/rates", tests, NULL, NULL);
}
