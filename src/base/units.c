/* Numbers with units, as text and back. One table of time units serves both ways. */
#include "weir/units.h"

#include <stdio.h>

enum { COUNT_MAX_DIGITS = 15 };

static const struct time_unit {
	const char *suffix;
	int64_t us;
	const char *spoken;
} time_units[] = {
	{ "d", US_PER_DAY, "d" },
	{ "h", 3600 * US_PER_S, "h" },
	{ "m", 60 * US_PER_S, "min" },
	{ "s", US_PER_S, "s" },
	{ "ms", US_PER_MS, "ms" },
	{ "us", 1, "us" },
};

enum { TIME_UNITS = sizeof time_units / sizeof time_units[0] };

int
parse_uint(struct slice text, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (text.len == 0)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned char)text.ptr[i] - (unsigned)'0';

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return -1;
		n = n * 10 + digit;
	}
	if (n > max)
		return -1;
	*out = n;
	return 0;
}

static size_t
digits_at(struct slice text)
{
	size_t n = 0;

	while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
		n++;
	return n;
}

static const struct time_unit *
time_unit_of(struct slice suffix)
{
	for (size_t i = 0; i < TIME_UNITS; i++) {
		if (slice_is(suffix, slice_of(time_units[i].suffix)))
			return &time_units[i];
	}
	return NULL;
}

int
parse_duration(struct slice text, int64_t *out_us, struct err *err)
{
	size_t n = digits_at(text);
	const struct time_unit *unit = time_unit_of(slice_skip(text, n));
	uint64_t count;

	if (n == 0 || unit == NULL)
		return err_set(err,
			"\"%.*s\" is no duration; write a number and a unit, such as 150ms, 10s, "
			"5m, 2h or 1d",
			(int)text.len, text.ptr);
	if (parse_uint(slice_first(text, n), (uint64_t)(DURATION_MAX_US / unit->us), &count) != 0)
		return err_set(err, "\"%.*s\" is too long; the longest duration is 100 years",
			(int)text.len, text.ptr);
	if (count == 0)
		return err_set(err, "\"%.*s\" is no time at all; write at least 1us", (int)text.len,
			text.ptr);
	*out_us = (int64_t)count * unit->us;
	return 0;
}

int
parse_size(struct slice text, uint64_t *out_bytes, struct err *err)
{
	static const char suffixes[] = "kmg";
	size_t n = digits_at(text);
	unsigned shift = 0;
	uint64_t count;

	if (n + 1 == text.len) {
		const char *at = strchr(suffixes, text.ptr[n] | 0x20);

		shift = at == NULL ? 0 : 10 * (unsigned)(at - suffixes + 1);
	}
	if (n == 0 || (n != text.len && shift == 0))
		return err_set(err,
			"\"%.*s\" is no size; write bytes, or a number with k, m or g, such as 64k "
			"or 16m",
			(int)text.len, text.ptr);
	if (parse_uint(slice_first(text, n), (uint64_t)INT64_MAX >> shift, &count) != 0)
		return err_set(err, "\"%.*s\" is too large", (int)text.len, text.ptr);
	*out_bytes = count << shift;
	return 0;
}

static int
parse_window(struct slice text, struct rate *rate, struct err *err)
{
	size_t n = digits_at(text);
	const struct time_unit *unit = time_unit_of(slice_skip(text, n));
	uint64_t count = 1;

	if (unit == NULL || unit->us < US_PER_MS)
		return err_set(err,
			"\"%.*s\" is no window; write a number and ms, s, m, h or d, such as 10/1s "
			"or 1000/1d",
			(int)text.len, text.ptr);
	if (n > 0 &&
		parse_uint(slice_first(text, n), (uint64_t)(DURATION_MAX_US / unit->us), &count) !=
			0)
		return err_set(err, "the window \"%.*s\" is longer than 100 years", (int)text.len,
			text.ptr);
	if (count == 0)
		return err_set(err, "a window of 0 is no rate; write at least 1ms");
	rate->window_us = (int64_t)count * unit->us;
	(void)snprintf(rate->window, sizeof rate->window, "%llu%s", (unsigned long long)count,
		unit->suffix);
	return 0;
}

int
parse_rate(struct slice text, struct rate *out, struct err *err)
{
	size_t slash = slice_find(text, '/');
	struct rate rate = { 0 };

	if (slash == text.len)
		return err_set(err,
			"\"%.*s\" is no rate; write COUNT/WINDOW, such as 10/1s, 100/1m or 1000/1d",
			(int)text.len, text.ptr);
	struct slice count = slice_first(text, slash);

	if (count.len > COUNT_MAX_DIGITS || parse_uint(count, UINT64_MAX, &rate.count) != 0)
		return err_set(err,
			"the count \"%.*s\" is no whole number from 1 to 999999999999999",
			(int)count.len, count.ptr);
	if (rate.count == 0)
		return err_set(err,
			"a rate of 0 admits nothing; to refuse everyone, let the web server do it");
	if (parse_window(slice_skip(text, slash + 1), &rate, err) != 0)
		return -1;
	*out = rate;
	return 0;
}

size_t
uint_text(uint64_t n, char out[UINT_TEXT_SIZE])
{
	char digits[UINT_TEXT_SIZE];
	size_t len = 0;

	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	for (size_t i = 0; i < len; i++)
		out[i] = digits[len - 1 - i];
	out[len] = '\0';
	return len;
}

const char *
duration_text(int64_t us, char out[DURATION_TEXT_SIZE])
{
	size_t i = 0;

	while (i + 1 < TIME_UNITS && us < time_units[i].us)
		i++;
	const struct time_unit *unit = &time_units[i];
	int64_t whole = us / unit->us, rest = us % unit->us;

	if (i + 1 == TIME_UNITS || rest == 0) {
		(void)snprintf(out, DURATION_TEXT_SIZE, "%lld %s", (long long)whole, unit->spoken);
	} else if (unit->us <= US_PER_S) {
		(void)snprintf(out, DURATION_TEXT_SIZE, "%.4g %s", (double)us / (double)unit->us,
			unit->spoken);
	} else {
		const struct time_unit *next = unit + 1;
		char tail[DURATION_TEXT_SIZE / 2];

		if (rest / next->us == 0)
			tail[0] = '\0';
		else
			(void)snprintf(tail, sizeof tail, " %lld %s", (long long)(rest / next->us),
				next->spoken);
		(void)snprintf(
			out, DURATION_TEXT_SIZE, "%lld %s%s", (long long)whole, unit->spoken, tail);
	}
	return out;
}
