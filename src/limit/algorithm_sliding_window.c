/*
 * sliding-window: a counter for the present window of the clock and one for the window before,
 * which counts for as much as it still reaches into the last W. Three words: the window's number,
 * the count before, the count now.
 *
 * The count before is taken to be spread evenly over its window. So in any span of W fewer than 2 N
 * are admitted, not N as a log would have it: N at the end of a window, all of which this takes to
 * lie further back than they do. By the estimate itself N is never exceeded.
 *
 * The weight is a fraction. It is reckoned in doubles, as Lua does, in the same order; what follows
 * from rounding is set right by trying.
 */
#include "algorithms.h"

enum { INDEX, PREVIOUS, CURRENT, WORDS };

static bool
is_sound(const struct bucket_field *field)
{
	return field->words[INDEX] < WORD_LIMIT / field->span_us &&
		field->words[PREVIOUS] < COUNT_LIMIT && field->words[CURRENT] < COUNT_LIMIT;
}

static int64_t
elapsed(const struct bucket_field *field, int64_t now_us)
{
	return now_us - field->words[INDEX] * field->span_us;
}

static int64_t
weighted(int64_t count, int64_t window_us, int64_t elapsed_us)
{
	return whole_up((double)count * (double)(window_us - elapsed_us) / (double)window_us);
}

/* Windows of the field's own length. */
static bool
advance(struct bucket_field *field, int64_t now_us)
{
	const int64_t index = now_us / field->span_us, before = field->words[INDEX];
	const bool is_clamped =
		before > index && before > (now_us + CLOCK_SLACK_US) / field->span_us;

	if (index > before) {
		field->words[PREVIOUS] = index == before + 1 ? field->words[CURRENT] : 0;
		field->words[CURRENT] = 0;
	}
	field->words[INDEX] = index;
	return is_clamped;
}

static int64_t
estimate(const struct bucket_field *field, int64_t now_us)
{
	return weighted(field->words[PREVIOUS], field->span_us, elapsed(field, now_us)) +
		field->words[CURRENT];
}

/* What was counted in windows of another length counts as of now: no less than it does there. */
static enum brought
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	if (field->count == 0) {
		memset(field->words, 0, WORDS * sizeof field->words[0]);
		field->count = WORDS;
		field_take_form(field, policy);
	}
	const enum brought brought = advance(field, moment->now_us) ? BROUGHT_CLAMPED : BROUGHT;

	if (field->span_us == policy->span_us)
		return brought;
	field->words[CURRENT] = estimate(field, moment->now_us);
	field->words[PREVIOUS] = 0;
	field_take_form(field, policy);
	field->words[INDEX] = moment->now_us / field->span_us;
	return brought;
}

static uint64_t
used(const struct policy *policy, const struct bucket_field *field, const struct moment *moment)
{
	(void)policy;
	return (uint64_t)estimate(field, moment->now_us);
}

/* How far into a window the count of the one before weighs no more than `room`; not before
 * `from_us`. */
static int64_t
elapsed_until(int64_t count, int64_t window_us, int64_t room, int64_t from_us)
{
	int64_t at_us = from_us;

	if (count > 0) {
		const int64_t first =
			window_us - whole_down((double)room * (double)window_us / (double)count);

		at_us = first > from_us ? first : from_us;
	}
	while (weighted(count, window_us, at_us) > room)
		at_us++;
	return at_us;
}

static int64_t
until(const struct policy *policy, const struct bucket_field *field, const struct moment *moment,
	uint64_t allowed)
{
	const int64_t window_us = policy->window_us, most = (int64_t)allowed;
	const int64_t elapsed_us = elapsed(field, moment->now_us);
	const int64_t previous = field->words[PREVIOUS], current = field->words[CURRENT];

	if (estimate(field, moment->now_us) <= most)
		return 0;
	if (current <= most)
		return elapsed_until(previous, window_us, most - current, elapsed_us) - elapsed_us;
	/* Only in the next window, in which the present count is the one before. */
	return window_us - elapsed_us + elapsed_until(current, window_us, most, 0);
}

static void
spend(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	(void)policy;
	field->words[CURRENT] += (int64_t)moment->cost;
}

static int64_t
worthless_at(const struct bucket_field *field, int64_t now_us)
{
	(void)now_us;
	return field->count == 0
		? 0
		: (field->words[INDEX] + (field->words[CURRENT] > 0 ? 2 : 1)) * field->span_us;
}

const struct algorithm algorithm_sliding_window = {
	.name = "sliding-window",
	.record_words = WORDS,
	.records_max = 1,
	.is_sound = is_sound,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};
