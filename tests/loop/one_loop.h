/* A loop of the test's own. */
#ifndef WEIR_TESTS_LOOP_ONE_LOOP_H
#define WEIR_TESTS_LOOP_ONE_LOOP_H

#include "../lib/run_loop.h"

static struct loop *loop;

static inline int
make_loop(void **state)
{
	struct err err;

	(void)state;
	loop = loop_new(&err);
	return loop == NULL ? -1 : 0;
}

static inline int
free_loop(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_loop, free_loop)

#endif
