/*
 * Codes: numbers that stand for the forms of common token buckets. With one in front of its time,
 * the state of a limit of one such policy is a single integer, which Redis keeps in two thirds of
 * the memory (lua/decide.lua).
 *
 * A common form is made of three numbers, each from a list: the window, by which the policy is also
 * called, the count and the burst. Its place among all of them is the code; those of the second
 * half of the windows are negative, since the sign of an integer costs nothing. So a code is six
 * digits at the most, and thirteen of the time have room behind it. They come round in 115 days,
 * which is why a longer bucket than the longest window has no code.
 *
 * lua/value.lua has the same lists. What stands in a store is read by other versions: a list that
 * is changed changes what it says.
 */
#include "policy_private.h"

#include "weir/hash.h"

#define CAPACITY_MAX_US (31 * US_PER_DAY)

static const struct {
	const char *name;
	int64_t s;
} windows[] = { { "1s", 1 }, { "2s", 2 }, { "3s", 3 }, { "4s", 4 }, { "5s", 5 }, { "6s", 6 },
	{ "7s", 7 }, { "8s", 8 }, { "9s", 9 }, { "10s", 10 }, { "12s", 12 }, { "15s", 15 },
	{ "20s", 20 }, { "30s", 30 }, { "60s", 60 }, { "1m", 60 }, { "2m", 120 }, { "3m", 180 },
	{ "4m", 240 }, { "5m", 300 }, { "6m", 360 }, { "10m", 600 }, { "15m", 900 },
	{ "20m", 1200 }, { "30m", 1800 }, { "60m", 3600 }, { "1h", 3600 }, { "2h", 7200 },
	{ "3h", 10800 }, { "4h", 14400 }, { "6h", 21600 }, { "8h", 28800 }, { "12h", 43200 },
	{ "24h", 86400 }, { "1d", 86400 }, { "2d", 172800 }, { "3d", 259200 }, { "7d", 604800 },
	{ "14d", 1209600 }, { "30d", 2592000 } };

/* Counts and bursts: so many from the first on, by steps. */
static const struct {
	unsigned count, first, step;
} runs[] = { { 99, 1, 1 }, { 41, 100, 10 }, { 9, 550, 50 }, { 40, 1000, 100 }, { 10, 5000, 500 },
	{ 15, 10000, 10000 } };

enum {
	WINDOWS = sizeof windows / sizeof windows[0],
	HALF = WINDOWS / 2,
	RUNS = sizeof runs / sizeof runs[0],
	AMOUNTS = 99 + 41 + 9 + 40 + 10 + 15,
	CODES = HALF * AMOUNTS * AMOUNTS, /* of each sign */
};

_Static_assert(WINDOWS % 2 == 0, "as many windows have positive codes as negative ones");
_Static_assert(CODES < INT64_MAX / INT64_C(10000000000000),
	"a code and thirteen digits are a 64 bit integer");

/* Its place among the amounts; -1 if it has none. */
static int
index_of(uint64_t amount)
{
	unsigned before = 0;

	for (unsigned i = 0; i < RUNS; i++) {
		const uint64_t over = amount - runs[i].first;

		if (amount >= runs[i].first && over % runs[i].step == 0 &&
			over / runs[i].step < runs[i].count)
			return (int)(before + over / runs[i].step);
		before += runs[i].count;
	}
	return -1;
}

static uint64_t
amount_of(unsigned index)
{
	unsigned i = 0;

	while (index >= runs[i].count)
		index -= runs[i++].count;
	return runs[i].first + (uint64_t)index * runs[i].step;
}

static bool
is_short(uint64_t count, int64_t window_us, uint64_t burst)
{
	return (int64_t)burst * policy_interval(count, window_us) <= CAPACITY_MAX_US;
}

int
form_code(const char *name, uint64_t count, int64_t window_us, uint64_t burst)
{
	const int count_index = index_of(count), burst_index = index_of(burst);
	int window = 0;

	while (window < WINDOWS && strcmp(name, windows[window].name) != 0)
		window++;
	if (window == WINDOWS || window_us != windows[window].s * US_PER_S || count_index < 0 ||
		burst_index < 0 || !is_short(count, window_us, burst))
		return 0;
	const int code = (window % HALF * AMOUNTS + count_index) * AMOUNTS + burst_index + 1;

	return window < HALF ? code : -code;
}

bool
form_of_code(int code, uint32_t *tag, int64_t *interval_us, int64_t *capacity_us)
{
	if (code == 0 || code > CODES || code < -CODES)
		return false;
	const unsigned index = (unsigned)(code < 0 ? -code : code) - 1;
	const unsigned window = index / (AMOUNTS * AMOUNTS) + (code < 0 ? HALF : 0);
	const uint64_t count = amount_of(index / AMOUNTS % AMOUNTS),
		       burst = amount_of(index % AMOUNTS);
	const int64_t window_us = windows[window].s * US_PER_S;

	if (!is_short(count, window_us, burst))
		return false;
	*tag = policy_tag(windows[window].name, POLICY_TOKEN_BUCKET);
	*interval_us = policy_interval(count, window_us);
	*capacity_us = (int64_t)burst * *interval_us;
	return true;
}
