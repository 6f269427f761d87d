/*
 * A wait in words, for people; programs read Retry-After. Two units at the most: nobody who is told
 * to come back tomorrow counts seconds. What is left out is rounded up, since who comes early is
 * rejected again.
 */
#include "gate_private.h"

#include <stdio.h>

static const struct {
	int64_t seconds;
	const char *name;
} units[] = { { 86400, "day" }, { 3600, "hour" }, { 60, "minute" }, { 1, "second" } };

enum { UNITS = sizeof units / sizeof units[0] };

static int
put_unit(char *out, size_t size, int64_t count, const char *name)
{
	return snprintf(out, size, "%lld %s%s", (long long)count, name, count == 1 ? "" : "s");
}

const char *
wait_text(int64_t seconds, char out[WAIT_TEXT_SIZE])
{
	size_t first = 0;

	while (first + 1 < UNITS && seconds < units[first].seconds)
		first++;
	const size_t second = first + 1 < UNITS ? first + 1 : first;
	const int64_t small = units[second].seconds, in_first = units[first].seconds / small;
	const int64_t all = (seconds + small - 1) / small, rest = all % in_first;
	const int n = put_unit(out, WAIT_TEXT_SIZE, all / in_first, units[first].name);

	if (rest > 0) {
		const int m = snprintf(out + n, WAIT_TEXT_SIZE - (size_t)n, " and ");

		(void)put_unit(
			out + n + m, WAIT_TEXT_SIZE - (size_t)(n + m), rest, units[second].name);
	}
	return out;
}
