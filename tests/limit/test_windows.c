/*
 * sliding-window and sliding-log: what they admit in any span, and that they count as they say. The
 * log is held against a model that knows every admission, the window against its own definition.
 */
#include "asking.h"
#include "weir/hash.h"

enum { ASKED = 400 };

struct admission {
	int64_t at_us;
	uint64_t cost;
};

struct schedule {
	struct made_limit made;
	struct kept kept;
	int64_t now_us, window_us;
	uint64_t burst, random;
	struct admission list[ASKED];
	size_t count;
};

static void
schedule_init(struct schedule *schedule, const char *policy, uint64_t random)
{
	memset(schedule, 0, sizeof *schedule);
	make_limit(&schedule->made, "l", policy);
	schedule->now_us = IN_2026_US + (int64_t)random_below(&random, 5000000);
	schedule->window_us = schedule->made.limit.policies[0].window_us;
	schedule->burst = schedule->made.limit.policies[0].burst;
	schedule->random = random;
}

static struct decision
schedule_ask(struct schedule *schedule, uint64_t cost)
{
	const struct decision decision =
		ask(&schedule->kept, &schedule->made, cost, schedule->now_us);

	if (decision.verdict == VERDICT_ADMITTED)
		schedule->list[schedule->count++] = (struct admission){ schedule->now_us, cost };
	return decision;
}

/* Nothing, a little, a part of the window, about a window, long. */
static void
schedule_go_on(struct schedule *schedule)
{
	const size_t window = (size_t)schedule->window_us;
	uint64_t *random = &schedule->random;

	switch (random_below(random, 10)) {
	case 0:
		schedule->now_us += (int64_t)random_below(random, 3 * window);
		break;
	case 1:
		schedule->now_us += schedule->window_us - 1 + (int64_t)random_below(random, 3);
		break;
	case 2:
	case 3:
	case 4:
		schedule->now_us += (int64_t)random_below(random, 2 * window / schedule->burst + 1);
		break;
	default:
		break;
	}
}

/* Of what was admitted, as much as came in the last window, `now` included. */
static uint64_t
admitted_since(const struct schedule *schedule, int64_t since_us)
{
	uint64_t sum = 0;

	for (size_t i = schedule->count; i > 0 && schedule->list[i - 1].at_us > since_us; i--)
		sum += schedule->list[i - 1].cost;
	return sum;
}

static const char *const rates[] = { "1/1s", "2/1s", "10/1s", "100/10s", "1000/1m", "7/1ms",
	"50/365d" };

static void
a_log_is_what_a_model_of_all_admissions_says(void **state)
{
	static struct schedule schedule;
	char policy[64];

	(void)state;
	for (unsigned round = 0; round < 40 * LENGTH_OF(rates); round++) {
		(void)snprintf(
			policy, sizeof policy, "%s sliding-log", rates[round % LENGTH_OF(rates)]);
		schedule_init(&schedule, policy, round + 1);
		for (unsigned n = 0; n < ASKED; n++) {
			const uint64_t before =
				admitted_since(&schedule, schedule.now_us - schedule.window_us);
			const uint64_t cost =
				1 + random_below(&schedule.random, schedule.burst / 4 + 2);
			const struct outcome outcome = schedule_ask(&schedule, cost).outcomes[0];
			const bool fits = before + cost <= schedule.burst;

			assert_true(outcome.violated == !fits);
			assert_int_equal(
				outcome.remaining, schedule.burst - before - (fits ? cost : 0));
			assert_int_equal(schedule.kept.len == 0, schedule.count == 0);
			schedule_go_on(&schedule);
		}
	}
}

/* ---- the window ---- */

/* The part of the window before that reaches into the last W counts as spread evenly, rounded up.
 */
static uint64_t
estimate(const struct schedule *schedule)
{
	const int64_t window_us = schedule->window_us;
	const int64_t begin_us = schedule->now_us / window_us * window_us;
	const int64_t left_us = window_us - (schedule->now_us - begin_us);
	const uint64_t present = admitted_since(schedule, begin_us - 1);
	const uint64_t before = admitted_since(schedule, begin_us - window_us - 1) - present;
	const uint64_t weighed = before * (uint64_t)left_us;

	return present + weighed / (uint64_t)window_us + (weighed % (uint64_t)window_us != 0);
}

static void
assert_spans(const struct schedule *schedule)
{
	for (size_t to = 0; to < schedule->count; to++) {
		uint64_t sum = 0;

		for (size_t from = to + 1; from-- > 0 &&
			schedule->list[from].at_us >
				schedule->list[to].at_us - schedule->window_us;)
			sum += schedule->list[from].cost;
		assert_true(sum < 2 * schedule->burst);
	}
}

static void
a_window_admits_by_its_estimate_and_less_than_twice_in_any_span(void **state)
{
	static struct schedule schedule;
	char policy[64];

	(void)state;
	for (unsigned round = 0; round < 40 * LENGTH_OF(rates); round++) {
		(void)snprintf(policy, sizeof policy, "%s sliding-window",
			rates[round % LENGTH_OF(rates)]);
		schedule_init(&schedule, policy, round + 1);
		for (unsigned n = 0; n < ASKED; n++) {
			const uint64_t before = estimate(&schedule);
			const uint64_t cost =
				1 + random_below(&schedule.random, schedule.burst / 4 + 2);
			const struct outcome outcome = schedule_ask(&schedule, cost).outcomes[0];

			assert_true(outcome.violated == (before + cost > schedule.burst));
			assert_true(estimate(&schedule) <= schedule.burst);
			assert_int_equal(outcome.remaining, schedule.burst - estimate(&schedule));
			schedule_go_on(&schedule);
		}
		assert_spans(&schedule);
	}
}

/* The worst that the estimate lets pass: all at the end of a window, and then as it fades. */
static void
the_bound_of_the_window_is_near_and_is_kept(void **state)
{
	enum { BURST = 100, LATE_US = 1000 };
	struct kept kept = { .len = 0 };
	struct made_limit made;
	const int64_t begin_us = IN_2026_US / US_PER_S * US_PER_S;
	unsigned admitted = BURST;

	(void)state;
	make_limit(&made, "l", "100/1s sliding-window");
	assert_int_equal(
		ask(&kept, &made, BURST, begin_us + US_PER_S - LATE_US).verdict, VERDICT_ADMITTED);
	for (int64_t at_us = US_PER_S; at_us < 2 * US_PER_S - LATE_US; at_us += 100)
		admitted += ask(&kept, &made, 1, begin_us + at_us).verdict == VERDICT_ADMITTED;
	assert_in_range(admitted, 2 * BURST - 10, 2 * BURST - 1);
}

/* What cannot be reckoned exactly any more is still a wait that is true. */
static void
a_wait_is_true_where_products_exceed_what_a_double_holds(void **state)
{
	static const char *const large[] = { "999999999999999/36525d sliding-window",
		"999999999999999/1ms sliding-window", "1/36525d sliding-window",
		"123456789012345/7d sliding-window" };
	uint64_t random = 5;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(large); i++) {
		for (unsigned round = 0; round < 2000; round++) {
			struct kept kept = { .len = 0 };
			struct made_limit made;

			make_limit(&made, "l", large[i]);
			const uint64_t burst = made.limit.policies[0].burst;
			const size_t window = (size_t)made.limit.policies[0].window_us;
			int64_t now_us = IN_2026_US + (int64_t)random_below(&random, window);

			(void)ask(&kept, &made, 1 + random_below(&random, burst), now_us);
			now_us += (int64_t)random_below(&random, window);
			(void)ask(&kept, &made, 1 + random_below(&random, burst), now_us);
			const uint64_t cost = 1 + random_below(&random, burst);
			const struct outcome outcome = ask(&kept, &made, cost, now_us).outcomes[0];

			assert_true(outcome.reset_us > 0);
			assert_true(admits(&kept, &made, burst, now_us + outcome.reset_us));
			if (outcome.violated)
				assert_true(admits(&kept, &made, cost, now_us + outcome.retry_us));
		}
	}
}

/* A time at which the division says that there is room, and a microsecond too early. */
static void
a_wait_that_is_rounded_is_set_right(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;
	const uint64_t count = UINT64_C(837280819649535), room = UINT64_C(364805391085818);

	(void)state;
	make_limit(&made, "l", "999999999999999/36525d sliding-window");
	(void)ask(&kept, &made, count, IN_2026_US);
	const uint64_t cost = made.limit.policies[0].burst - room;
	const int64_t now_us = DURATION_MAX_US;
	const struct outcome outcome = ask(&kept, &made, cost, now_us).outcomes[0];

	assert_true(outcome.violated);
	assert_false(admits(&kept, &made, cost, now_us + outcome.retry_us - 1));
	assert_true(admits(&kept, &made, cost, now_us + outcome.retry_us));
}

/* ---- another window ---- */

static void
a_window_of_another_length_counts_no_less(void **state)
{
	static const char *const lengths[] = { "10/1s sliding-window name p",
		"10/7s sliding-window name p", "10/1d sliding-window name p" };
	uint64_t random = 3;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct kept kept = { .len = 0 };
		struct made_limit from, to;
		const int64_t now_us = IN_2026_US + (int64_t)random_below(&random, 10000000);

		make_limit(&from, "l", lengths[round % 3]);
		make_limit(&to, "l", lengths[(round + 1 + round / 3 % 2) % 3]);
		(void)ask(&kept, &from, 1 + random_below(&random, 10), now_us - 400000);
		const uint64_t left = ask(&kept, &from, 11, now_us).outcomes[0].remaining;

		assert_int_equal(ask(&kept, &to, 11, now_us).outcomes[0].remaining, left);
		assert_false(kept.changed);
		if (left == 0)
			continue;
		assert_int_equal(ask(&kept, &to, 1, now_us).outcomes[0].remaining, left - 1);
		assert_int_equal(ask(&kept, &from, 11, now_us).outcomes[0].remaining, left - 1);
	}
}

static void
a_log_is_read_through_another_window(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit longer, shorter;

	(void)state;
	make_limit(&longer, "l", "10/10s sliding-log name p");
	make_limit(&shorter, "l", "10/1s sliding-log name p");
	(void)ask(&kept, &longer, 4, IN_2026_US);
	(void)ask(&kept, &longer, 3, IN_2026_US + 5 * US_PER_S);
	assert_int_equal(
		ask(&kept, &shorter, 11, IN_2026_US + 5 * US_PER_S).outcomes[0].remaining, 7);
	assert_int_equal(
		ask(&kept, &longer, 11, IN_2026_US + 5 * US_PER_S).outcomes[0].remaining, 3);
	/* Once the shorter one has spent, the longer one knows no more than that. */
	(void)ask(&kept, &shorter, 1, IN_2026_US + 5 * US_PER_S);
	assert_int_equal(
		ask(&kept, &longer, 11, IN_2026_US + 5 * US_PER_S).outcomes[0].remaining, 6);
}

/* A lowered count finds more entries than it will ever write. */
static void
a_longer_log_than_ours_is_kept_whole_and_waited_for(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit many, few;

	(void)state;
	make_limit(&many, "l", "1000/1m sliding-log name p", "1000/1h sliding-log name q");
	make_limit(&few, "l", "5/1m sliding-log name p", "5/1h sliding-log name q shadow");
	for (unsigned n = 0; n < 1000; n++)
		assert_int_equal(
			ask(&kept, &many, 1, IN_2026_US + n * 1000).verdict, VERDICT_ADMITTED);
	const int64_t now_us = IN_2026_US + 999000;
	const struct outcome outcome = ask(&kept, &few, 1, now_us).outcomes[0];

	assert_true(outcome.violated);
	/* The 996th must have left the minute. */
	assert_int_equal(outcome.retry_us, 60 * US_PER_S + 995000 - 999000);
	assert_int_equal(ask(&kept, &many, 1, now_us).outcomes[0].remaining, 0);
	assert_int_equal(ask(&kept, &few, 1, now_us + outcome.retry_us).verdict, VERDICT_ADMITTED);
	assert_int_equal(kept.len, 3 + 2 * 5 + 3 + 2 * 1000);
}

static void
what_comes_at_one_moment_is_one_entry(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1000/1m sliding-log");
	for (unsigned n = 0; n < 500; n++)
		(void)ask(&kept, &made, 1 + n % 2, IN_2026_US + n / 100);
	assert_int_equal(kept.len, 3 + 2 * 5);
	assert_int_equal(ask(&kept, &made, 1, IN_2026_US + 9).outcomes[0].remaining, 249);
}

static void
a_log_is_set_right_only_if_its_times_are_far_ahead(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m sliding-log");
	(void)exhaust(&kept, &made, 1, IN_2026_US);
	struct decision decision = ask(&kept, &made, 1, IN_2026_US - US_PER_S);

	assert_false(decision.clamped || kept.changed);
	assert_int_equal(decision.outcomes[0].retry_us, 60 * US_PER_S);
	decision = ask(&kept, &made, 1, IN_2026_US - US_PER_S - 1);
	assert_true(decision.clamped && kept.changed);
	assert_int_equal(decision.outcomes[0].retry_us, 60 * US_PER_S);
	assert_false(ask(&kept, &made, 1, IN_2026_US - US_PER_S - 1).clamped);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_what_a_model_of_all_admissions_says),
		cmocka_unit_test(a_window_admits_by_its_estimate_and_less_than_twice_in_any_span),
		cmocka_unit_test(the_bound_of_the_window_is_near_and_is_kept),
		cmocka_unit_test(a_wait_is_true_where_products_exceed_what_a_double_holds),
		cmocka_unit_test(a_wait_that_is_rounded_is_set_right),
		cmocka_unit_test(a_window_of_another_length_counts_no_less),
		cmocka_unit_test(a_log_is_read_through_another_window),
		cmocka_unit_test(a_longer_log_than_ours_is_kept_whole_and_waited_for),
		cmocka_unit_test(what_comes_at_one_moment_is_one_entry),
		cmocka_unit_test(a_log_is_set_right_only_if_its_times_are_far_ahead),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("limit/windows", tests, NULL, NULL);
}
