/* Whether valgrind runs the test: what it steps through by single instructions, or by its last
 * descriptor, would be valgrind's own. */
#ifndef WEIR_TESTS_LIB_VALGRIND_H
#define WEIR_TESTS_LIB_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool
runs_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

#endif
