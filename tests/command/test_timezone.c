/* `weir serve` and [weir] timezone: when quotas of the calendar end, and what the log says. */
#include "serving.h"

#include "weir/algorithm.h"
#include "weir/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* No whole hours from any other that is likely to be taken. */
#define ZONE "Asia/Kathmandu"

#define QUOTA "[limit one]\npolicy = 1/day calendar\n" ALL "limit = one\n"

/* As a process is started that knows another zone. */
static struct process_setup elsewhere = { .environment = (const char *const[]){
						  "TZ=America/New_York", NULL } };

static int64_t
day_ends_us(int64_t now_us)
{
	int64_t ends[3];

	calendar_ends(CALENDAR_DAY, now_us, ends);
	return ends[1];
}

static int64_t
retry_after_us(void)
{
	const struct request_spec spec = { .params = params };
	struct answer answer;
	const int fd = connect_to("weir.sock");

	answer_to(&answer, fd, &spec);
	assert_int_equal(answer_status(&answer), 429);
	const struct slice value = answer_field(&answer, "Retry-After");
	uint64_t seconds = 0;

	assert_int_equal(parse_uint(value, UINT32_MAX, &seconds), 0);
	answer_release(&answer);
	(void)close(fd);
	return (int64_t)seconds * US_PER_S;
}

static void
a_day_ends_in_the_zone_that_is_configured(void **state)
{
	(void)state;
	assert_int_equal(setenv("TZ", ZONE, 1), 0);
	tzset();
	weir_start_with(LISTEN "timezone = " ZONE "\n" STATE NONE QUOTA, &elsewhere);
	assert_serving();
	int64_t before_us;

	/* Once more if the day ended between the two. */
	do {
		(void)status_at("weir.sock");
		before_us = clock_wall_us();
	} while (status_at("weir.sock") != 429);
	const int64_t wait_us = retry_after_us(), after_us = clock_wall_us();

	/* Whole seconds, rounded up. */
	if (day_ends_us(before_us) == day_ends_us(after_us))
		assert_in_range(wait_us, day_ends_us(after_us) - after_us,
			day_ends_us(before_us) - before_us + US_PER_S);
	weir_stop();
}

static bool
has_logged(const char *text)
{
	if (access(directory_path(&directory, "weir.log").text, F_OK) != 0)
		return false;
	char *log = directory_read(&directory, "weir.log");
	const bool has = strstr(log, text) != NULL;

	free(log);
	return has;
}

static void
lines_in_the_logs_file_are_stamped_in_utc(void **state)
{
	(void)state;
	weir_start_with(LISTEN "log = file:DIR/weir.log\ntimezone = " ZONE "\n" STATE NONE QUOTA,
		&elsewhere);
	assert_soon(has_logged("Serving."));
	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	char *log = directory_read(&directory, "weir.log");
	unsigned lines = 0;

	for (const char *line = log; *line != '\0'; line = strchr(line, '\n') + 1, lines++) {
		struct tm tm = { 0 };
		const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);

		assert_row(rest != NULL && strncmp(rest, "+0000 weir[", 11) == 0, "%s", line);
		assert_in_range(clock_wall_us() / US_PER_S - timegm(&tm), 0, 600);
	}
	assert_true(lines >= 2);
	free(log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_day_ends_in_the_zone_that_is_configured),
		TEST(lines_in_the_logs_file_are_stamped_in_utc),
	};

	return cmocka_run_group_tests_name("command/timezone", tests, NULL, NULL);
}
