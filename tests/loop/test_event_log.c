/* What libevent says goes to our log, and does not flood it. */
#include "../../src/loop/loop_private.h"
#include "../lib/run_loop.h"
#include "weir/log.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static unsigned lines;
static char last_line[LOG_LINE_MAX + 1];

static void
keep_line(void *context, enum log_level level, const char *line, size_t len)
{
	(void)context, (void)level;
	lines++;
	(void)snprintf(last_line, sizeof last_line, "%.*s", (int)len, line);
}

static void
ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context;
}

/* A descriptor that is closed behind its back. */
static void
make_it_complain(struct loop *loop)
{
	const int fd = eventfd(0, EFD_CLOEXEC);
	struct event *event = event_new(loop_base(loop), fd, EV_READ, ignore, NULL);

	assert_non_null(event);
	assert_int_equal(event_add(event, NULL), 0);
	(void)close(fd);
	run_loop_once(loop);
	event_free(event);
}

static void
complaints_of_each_turn_are_throttled(void **state)
{
	struct err err;
	struct loop *loop = loop_new(&err);

	(void)state;
	assert_non_null(loop);
	log_set_sink(keep_line, NULL);
	make_it_complain(loop);
	assert_int_equal(lines, 1);
	assert_row(strstr(last_line, "The event library has something to say. text=\"") != NULL,
		"%s", last_line);
	for (unsigned i = 0; i < 100; i++)
		make_it_complain(loop);
	assert_in_range(lines, 2, 20);
	log_set_sink(NULL, NULL);
	loop_free(loop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complaints_of_each_turn_are_throttled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
