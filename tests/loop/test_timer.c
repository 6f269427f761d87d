/* loop.h: timers fire once, never early, and may be moved, cancelled and freed at any time. */
#include "one_loop.h"

/* ---- timers ---- */

struct alarm {
	struct timer *timer;
	int64_t due_us, fired_us;
	unsigned fired;
	struct alarm *frees; /* when it fires */
	int64_t again_us; /* set anew for so much later when it fires; 0: not */
};

static unsigned alarms_fired;

static void
fire(void *context)
{
	struct alarm *alarm = context;

	alarm->fired++;
	alarm->fired_us = clock_monotonic_us();
	alarms_fired++;
	if (alarm->again_us > 0) {
		alarm->due_us = alarm->fired_us + alarm->again_us;
		timer_set(alarm->timer, alarm->due_us);
		alarm->again_us = 0;
	}
	if (alarm->frees != NULL) {
		timer_free(alarm->frees->timer);
		alarm->frees->timer = NULL;
	}
	loop_stop(loop);
}

static void
alarm_set(struct alarm *alarm, int64_t after_us)
{
	if (alarm->timer == NULL)
		alarm->timer = timer_new(loop, fire, alarm);
	assert_non_null(alarm->timer);
	alarm->due_us = clock_monotonic_us() + after_us;
	timer_set(alarm->timer, alarm->due_us);
}

static void
timer_fires_once_and_never_early(void **state)
{
	static const int64_t afters[] = { -1000000, -1, 0, 1, 999, 1000, 3999, 20000 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(afters); i++) {
		struct alarm alarm = { 0 };

		alarm_set(&alarm, afters[i]);
		assert_true(timer_is_set(alarm.timer));
		run_loop_until(loop, alarm.fired > 0);
		assert_true(alarm.fired_us >= alarm.due_us);
		assert_false(timer_is_set(alarm.timer));
		run_loop_for_ms(loop, 10);
		assert_int_equal(alarm.fired, 1);
		timer_free(alarm.timer);
	}
}

/* As the deadline of a connection is moved with every byte. */
static void
timer_that_is_moved_later_again_and_again_fires_at_its_last_time(void **state)
{
	struct alarm alarm = { 0 };

	(void)state;
	alarm_set(&alarm, 1000);
	for (unsigned i = 0; i < 50; i++) {
		run_loop_for_ms(loop, 1);
		if (alarm.fired == 0)
			alarm_set(&alarm, 30000);
	}
	assert_row(alarm.fired == 0 || alarm.fired_us >= alarm.due_us, "fired early");
	run_loop_until(loop, alarm.fired > 0);
	assert_true(alarm.fired_us >= alarm.due_us);
	assert_int_equal(alarm.fired, 1);
	timer_free(alarm.timer);
}

static void
timer_that_is_moved_earlier_fires_earlier(void **state)
{
	struct alarm alarm = { 0 };

	(void)state;
	alarm_set(&alarm, 3600 * INT64_C(1000000));
	run_loop_once(loop);
	alarm_set(&alarm, 2000);
	run_loop_until(loop, alarm.fired > 0);
	timer_free(alarm.timer);
}

static void
cancelled_timer_does_not_fire_until_it_is_set_again(void **state)
{
	struct alarm alarm = { 0 };

	(void)state;
	alarm_set(&alarm, 1000);
	timer_cancel(alarm.timer);
	assert_false(timer_is_set(alarm.timer));
	run_loop_for_ms(loop, 20);
	assert_int_equal(alarm.fired, 0);
	alarm_set(&alarm, 1000);
	timer_cancel(alarm.timer);
	alarm_set(&alarm, 5000);
	run_loop_until(loop, alarm.fired > 0);
	assert_true(alarm.fired_us >= alarm.due_us);
	timer_free(alarm.timer);
}

static void
timer_may_set_itself_anew(void **state)
{
	struct alarm alarm = { .again_us = 5000 };

	(void)state;
	alarm_set(&alarm, 1000);
	run_loop_until(loop, alarm.fired == 1);
	run_loop_until(loop, alarm.fired == 2);
	assert_true(alarm.fired_us >= alarm.due_us);
	timer_free(alarm.timer);
}

static void
timer_may_free_itself_or_another_that_is_due(void **state)
{
	struct alarm self = { .frees = &self }, first = { 0 }, second = { 0 };

	(void)state;
	alarm_set(&self, 0);
	run_loop_until(loop, self.fired > 0);
	assert_null(self.timer);
	first.frees = &second;
	second.frees = &first;
	alarm_set(&first, 0);
	alarm_set(&second, 0);
	run_loop_until(loop, first.fired + second.fired > 0);
	run_loop_for_ms(loop, 5);
	assert_int_equal(first.fired + second.fired, 1);
	timer_free(first.timer);
	timer_free(second.timer);
}

static void
timer_free_lets_null_pass(void **state)
{
	(void)state;
	timer_free(NULL);
}

static void
any_number_of_timers_set_moved_and_cancelled_fire_as_they_were_last_set(void **state)
{
	static struct alarm alarms[300];
	uint64_t random = 12;
	unsigned expected = 0;

	(void)state;
	memset(alarms, 0, sizeof alarms);
	alarms_fired = 0;
	for (unsigned step = 0; step < 2000; step++) {
		struct alarm *alarm = &alarms[random_below(&random, LENGTH_OF(alarms))];

		if (random_below(&random, 4) == 0 && alarm->timer != NULL)
			timer_cancel(alarm->timer);
		else
			alarm_set(alarm, 50000 + (int64_t)random_below(&random, 100000));
	}
	for (size_t i = 0; i < LENGTH_OF(alarms); i++)
		expected += alarms[i].timer != NULL && timer_is_set(alarms[i].timer) ? 1 : 0;
	run_loop_until(loop, alarms_fired == expected);
	run_loop_for_ms(loop, 10);
	assert_int_equal(alarms_fired, expected);
	for (size_t i = 0; i < LENGTH_OF(alarms); i++) {
		assert_true(alarms[i].fired <= 1);
		assert_true(alarms[i].fired == 0 || alarms[i].fired_us >= alarms[i].due_us);
		timer_free(alarms[i].timer);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timer_fires_once_and_never_early),
		TEST(timer_that_is_moved_later_again_and_again_fires_at_its_last_time),
		TEST(timer_that_is_moved_earlier_fires_earlier),
		TEST(cancelled_timer_does_not_fire_until_it_is_set_again),
		TEST(timer_may_set_itself_anew),
		TEST(timer_may_free_itself_or_another_that_is_due),
		TEST(timer_free_lets_null_pass),
		TEST(any_number_of_timers_set_moved_and_cancelled_fire_as_they_were_last_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
