/*
 * What an answer has to be, and how it is said when it is another one.
 */
#include "scenario.h"

#include <stdio.h>

enum { POLICIES_MAX = CHECK_POLICIES_MAX, SAID_SIZE = 384 };

/* LIMIT POLICY */
struct named {
	struct slice limit, policy;
};

struct expectation {
	uint64_t times, status;
	struct named by[POLICIES_MAX], would[POLICIES_MAX];
	unsigned by_count, would_count;
	bool would_reject;
	bool has_retry_after;
	uint64_t retry_after_s, retry_after_most_s; /* no Retry-After: 0 */
	struct {
		uint64_t tokens;
		struct named of; /* limit.ptr NULL: all that reject */
	} remaining[POLICIES_MAX];
	unsigned remaining_count;
};

/* ---- reading ---- */

static int
read_named(struct play *play, struct slice *words, struct named *named)
{
	if (play_word(words, &named->limit) && play_word(words, &named->policy))
		return 0;
	return play_wrong(play, "a policy is named as LIMIT POLICY");
}

static int
read_by(struct play *play, struct slice *words, struct expectation *expected)
{
	unsigned *count = expected->would_reject ? &expected->would_count : &expected->by_count;
	struct named *list = expected->would_reject ? expected->would : expected->by;

	if (*count == POLICIES_MAX)
		return play_wrong(play, "more than %d policies", POLICIES_MAX);
	return read_named(play, words, &list[(*count)++]);
}

static int
read_retry_after(struct play *play, struct slice *words, struct expectation *expected)
{
	struct slice word, after;

	if (!play_word(words, &word))
		return play_wrong(play, "retry-after what?");
	expected->has_retry_after = true;
	if (slice_is(word, SLICE("none")))
		return 0;
	if (play_number(play, word, &expected->retry_after_s) != 0)
		return -1;
	expected->retry_after_most_s = expected->retry_after_s;
	after = *words;
	if (!play_word(&after, &word) || !slice_is(word, SLICE("to")))
		return 0;
	*words = after;
	return play_word(words, &word) ? play_number(play, word, &expected->retry_after_most_s)
				       : play_wrong(play, "retry-after up to what?");
}

static int
read_remaining(struct play *play, struct slice *words, struct expectation *expected)
{
	struct slice word, after;

	if (!play_word(words, &word))
		return play_wrong(play, "remaining what?");
	if (expected->times != 1)
		return play_wrong(play, "what remains is another number each time");
	if (expected->remaining_count == POLICIES_MAX)
		return play_wrong(play, "more than %d policies", POLICIES_MAX);
	const unsigned i = expected->remaining_count++;

	if (play_number(play, word, &expected->remaining[i].tokens) != 0)
		return -1;
	after = *words;
	if (!play_word(&after, &word) || !slice_is(word, SLICE("of")))
		return 0;
	*words = after;
	return read_named(play, words, &expected->remaining[i].of);
}

static int
read_clauses(struct play *play, struct slice words, struct expectation *expected)
{
	struct slice word;
	int result = 0;

	while (result == 0 && play_word(&words, &word)) {
		if (slice_is(word, SLICE("by")))
			result = read_by(play, &words, expected);
		else if (slice_is(word, SLICE("would-reject")))
			expected->would_reject = true;
		else if (slice_is(word, SLICE("retry-after")))
			result = read_retry_after(play, &words, expected);
		else if (slice_is(word, SLICE("remaining")))
			result = read_remaining(play, &words, expected);
		else
			result = play_wrong(
				play, "\"%.*s\" is nothing to expect", (int)word.len, word.ptr);
	}
	return result;
}

static int
read_expectation(struct play *play, struct slice words, struct expectation *expected)
{
	struct slice word, after;

	*expected = (struct expectation){ .times = 1 };
	if (!play_word(&words, &word))
		return play_wrong(play, "expect what?");
	after = words;
	if (play_number(play, word, &expected->status) != 0)
		return -1;
	if (play_word(&after, &word) && slice_is(word, SLICE("times"))) {
		expected->times = expected->status;
		if (!play_word(&after, &word) || play_number(play, word, &expected->status) != 0)
			return play_wrong(play, "expect what so often?");
		words = after;
	}
	return read_clauses(play, words, expected);
}

/* ---- comparing ---- */

static bool
is_named(const struct outcome *outcome, const struct named *named)
{
	return slice_is(slice_of(outcome->limit->name), named->limit) &&
		slice_is(slice_of(outcome->policy->name), named->policy);
}

static bool
rejects(const struct reply *reply, const struct outcome *outcome)
{
	return reply->enforced && !outcome->shadow;
}

/* Whether the violated policies are those of the list. */
static bool
are_violated(const struct reply *reply, bool rejecting, const struct named *list, unsigned count)
{
	unsigned violated = 0, found = 0;

	for (unsigned i = 0; i < reply->decision.count; i++) {
		const struct outcome *outcome = &reply->decision.outcomes[i];

		if (!outcome->violated || rejects(reply, outcome) != rejecting)
			continue;
		violated++;
		for (unsigned j = 0; j < count; j++)
			found += is_named(outcome, &list[j]);
	}
	return violated == count && found == count;
}

/* -1: there is none. */
static int64_t
remaining_of(const struct reply *reply, const struct named *named)
{
	int64_t least = -1;

	for (unsigned i = 0; i < reply->decision.count; i++) {
		const struct outcome *outcome = &reply->decision.outcomes[i];

		if (named->limit.ptr == NULL ? !rejects(reply, outcome) : !is_named(outcome, named))
			continue;
		if (least < 0 || (int64_t)outcome->remaining < least)
			least = (int64_t)outcome->remaining;
	}
	return least;
}

static void say(char said[SAID_SIZE], const char *format, ...) WEIR_PRINTF(2, 3);

static void
say(char said[SAID_SIZE], const char *format, ...)
{
	const size_t len = strlen(said);
	va_list list;

	va_start(list, format);
	(void)vsnprintf(said + len, SAID_SIZE - len, format, list);
	va_end(list);
}

static void
say_answer(const struct reply *reply, char said[SAID_SIZE])
{
	said[0] = '\0';
	say(said, "%u", reply->status);
	for (unsigned i = 0; i < reply->decision.count; i++) {
		const struct outcome *outcome = &reply->decision.outcomes[i];

		say(said, ", %s%s %s remaining %llu",
			!outcome->violated                ? "of "
				: rejects(reply, outcome) ? "by "
							  : "would-reject by ",
			outcome->limit->name, outcome->policy->name,
			(unsigned long long)outcome->remaining);
	}
	if (reply->would_reject)
		say(said, ", would-reject");
	if (reply->retry_after_s > 0)
		say(said, ", retry-after %lld", (long long)reply->retry_after_s);
}

static bool
is_expected(const struct reply *reply, const struct expectation *expected)
{
	if (reply->status != expected->status || reply->would_reject != expected->would_reject)
		return false;
	if (expected->by_count > 0 && !are_violated(reply, true, expected->by, expected->by_count))
		return false;
	if (expected->would_count > 0 &&
		!are_violated(reply, false, expected->would, expected->would_count))
		return false;
	if (expected->has_retry_after &&
		(reply->retry_after_s < (int64_t)expected->retry_after_s ||
			reply->retry_after_s > (int64_t)expected->retry_after_most_s))
		return false;
	for (unsigned i = 0; i < expected->remaining_count; i++) {
		if (remaining_of(reply, &expected->remaining[i].of) !=
			(int64_t)expected->remaining[i].tokens)
			return false;
	}
	return true;
}

/* ---- fields ---- */

static bool
has_line(struct slice fields, struct slice wanted, bool whole)
{
	struct slice line;

	while (slice_split(&fields, '\n', &line)) {
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		const struct slice name = slice_first(line, slice_find(line, ':'));

		if (whole ? slice_is(line, wanted) : slice_is_nocase(name, wanted))
			return true;
	}
	return false;
}

static int
compare_fields(struct play *play, const struct reply *reply)
{
	const struct slice no = SLICE("no ");

	while (play_next_indented(play)) {
		const bool absent = slice_has_prefix(play->text, no);
		const struct slice wanted = absent ? slice_skip(play->text, no.len) : play->text;

		if (has_line(reply->fields, wanted, !absent) == absent)
			return play_wrong(play, "the answer's fields are:\n%.*s",
				(int)reply->fields.len, reply->fields.ptr);
	}
	return 0;
}

int
expect(struct play *play, struct slice words)
{
	struct expectation expected;
	struct reply reply = { 0 };
	char said[SAID_SIZE];

	if (read_expectation(play, words, &expected) != 0)
		return -1;
	if (expected.times == 0 || expected.times > play->left)
		return play_wrong(
			play, "there are %u requests left to expect something of", play->left);
	for (; expected.times > 0; expected.times--, play->left--) {
		world_ask(play->world, &play->question, &reply);
		say_answer(&reply, said);
		if (!is_expected(&reply, &expected))
			return play_wrong(play, "the answer was %s", said);
		if (play_hold(play, &reply) != 0)
			return -1;
	}
	return compare_fields(play, &reply);
}
