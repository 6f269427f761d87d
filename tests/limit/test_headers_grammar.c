/*
 * headers.h: whatever the limits and the numbers are, each line is a structured field that a strict
 * reader takes, and says what the decision does.
 */
#include "../unit.h"
#include "any_decision.h"
#include "structured.h"
#include "weir/headers.h"

#include <stdio.h>

enum { ROUNDS = 20000, NAME_SIZE = 2 * ANY_NAME_SIZE };

/* ---- the reader ---- */

static void
reader_is_as_strict_as_the_standard(void **state)
{
	static const struct {
		const char *text;
		bool list, dictionary;
	} texts[] = {
		{ "1", true, false },
		{ " \"a\";q=1;w=2 , \"b\" ", true, false },
		{ "\"a\\\"\\\\\";qu=\"x\"", true, false },
		{ "a=1, b=2;c=3", false, true },
		{ "-999999999999999", true, false },
		{ "", false, false },
		{ "1,", false, false },
		{ ",1", false, false },
		{ "1 2", false, false },
		{ "1;q", false, false },
		{ "1;Q=1", false, false },
		{ "1;q=1;q=2", false, false },
		{ "1 ;q=1", false, false },
		{ "1000000000000000", false, false },
		{ "1.5", false, false },
		{ "\"a", false, false },
		{ "\"a\\b\"", false, false },
		{ "\"\xc3\xa9\"", false, false },
		{ "\"\t\"", false, false },
		{ "a=", false, false },
		{ "A=1", false, false },
	};
	struct sf_field field;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(texts); i++) {
		const struct slice text = slice_of(texts[i].text);

		assert_row(sf_read_list(text, &field) == texts[i].list, "%s", texts[i].text);
		assert_row(sf_read_dictionary(text, &field) == texts[i].dictionary, "%s",
			texts[i].text);
	}
	assert_true(sf_read_list(SLICE("\"a\\\"b\";r=17, 2"), &field));
	assert_int_equal(field.count, 2);
	assert_string_equal(field.members[0].value.text, "a\"b");
	assert_int_equal(sf_param(&field.members[0], "r")->number, 17);
	assert_int_equal(field.members[1].value.number, 2);
}

/* ---- what they must say ---- */

/* What a client may know, in the order of the decision. */
static unsigned
told(const struct decision *decision, bool only_violated, const struct outcome **out)
{
	unsigned count = 0;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->shadow && (!only_violated || outcome->violated))
			out[count++] = outcome;
	}
	return count;
}

static int64_t
clamped(uint64_t n)
{
	return n > 999999999999999 ? 999999999999999 : (int64_t)n;
}

/* As the name reads when its quotes and escapes are gone. */
static void
plain_name(const struct outcome *outcome, char name[NAME_SIZE])
{
	unsigned rejecting = 0;

	for (unsigned i = 0; i < outcome->limit->policy_count; i++)
		rejecting += outcome->limit->policies[i].shadow ? 0 : 1;
	(void)snprintf(name, NAME_SIZE, rejecting > 1 ? "%s-%s" : "%s", outcome->limit->name,
		outcome->policy->name);
	for (; *name != '\0'; name++) {
		if (*name < ' ' || *name > '~')
			*name = '?';
	}
}

/* Takes the line of a field off *rest, if it is that field's. */
static bool
take_line(struct slice *rest, const char *name, struct slice *value)
{
	const size_t end = slice_find(*rest, '\r'), len = strlen(name);

	if (!slice_has_prefix(*rest, slice_of(name)) || end < len + 2 || rest->ptr[len] != ':')
		return false;
	assert_true(end + 1 < rest->len && rest->ptr[end + 1] == '\n');
	assert_int_equal(rest->ptr[len + 1], ' ');
	*value = slice_make(rest->ptr + len + 2, end - len - 2);
	for (size_t i = 0; i < value->len; i++)
		assert_in_range(value->ptr[i], ' ', '~');
	*rest = slice_skip(*rest, end + 2);
	return true;
}

static void
assert_name(const struct sf_member *member, const struct outcome *outcome)
{
	char name[NAME_SIZE];

	plain_name(outcome, name);
	assert_true(member->value.is_text);
	assert_string_equal(member->value.text, name);
}

static void
assert_policy(const struct sf_member *member, const struct outcome *outcome)
{
	const struct sf_value *q = sf_param(member, "q"), *w = sf_param(member, "w"),
			      *qu = sf_param(member, "qu");

	assert_name(member, outcome);
	assert_true(q != NULL && !q->is_text);
	assert_int_equal(q->number, clamped(outcome->policy->burst));
	if (outcome->policy->algorithm == POLICY_CONCURRENT) {
		assert_true(w == NULL && qu != NULL && qu->is_text);
		assert_string_equal(qu->text, "concurrent-requests");
		return;
	}
	assert_true(qu == NULL && w != NULL && !w->is_text && w->number >= 1);
	/* Never a faster rate than the policy's, but for the doubles of this line. */
	assert_true((double)outcome->policy->burst / (double)w->number <=
		(double)outcome->policy->count / (double)outcome->policy->window_us * US_PER_S *
			(1 + 1e-6));
}

static void
assert_state(const struct sf_member *member, const struct outcome *outcome, int64_t retry_after_s)
{
	const struct sf_value *r = sf_param(member, "r"), *t = sf_param(member, "t");

	assert_name(member, outcome);
	assert_true(r != NULL && !r->is_text);
	assert_int_equal(r->number, clamped(outcome->remaining));
	if (t == NULL)
		return;
	assert_true(!t->is_text && t->number >= 1);
	/* "SHOULD NOT reference a point in time earlier than the end of the effective window." */
	assert_true(retry_after_s == 0 || t->number <= retry_after_s);
}

static void
assert_newest(const struct any_decision *any, struct slice lines)
{
	const struct outcome *all[CHECK_POLICIES_MAX], *some[CHECK_POLICIES_MAX];
	const bool is_rejected = any->decision.verdict == VERDICT_REJECTED;
	const unsigned all_count = told(&any->decision, false, all),
		       some_count = told(&any->decision, is_rejected, some);
	struct sf_field field;
	struct slice value;

	if (all_count == 0) {
		assert_int_equal(lines.len, 0);
		return;
	}
	assert_true(take_line(&lines, "RateLimit-Policy", &value));
	assert_row(sf_read_list(value, &field), "%.*s", (int)value.len, value.ptr);
	assert_int_equal(field.count, all_count);
	for (unsigned i = 0; i < all_count; i++)
		assert_policy(&field.members[i], all[i]);
	assert_true(take_line(&lines, "RateLimit", &value));
	assert_row(sf_read_list(value, &field), "%.*s", (int)value.len, value.ptr);
	assert_int_equal(field.count, some_count);
	for (unsigned i = 0; i < some_count; i++)
		assert_state(&field.members[i], some[i], any->retry_after_s);
	assert_int_equal(lines.len, 0);
}

/* Whole numbers with `w`, no two alike. */
static void
assert_quotas(struct slice *lines)
{
	struct sf_field field;
	struct slice value;

	if (!take_line(lines, "RateLimit-Policy", &value))
		return;
	assert_row(sf_read_list(value, &field), "%.*s", (int)value.len, value.ptr);
	for (unsigned i = 0; i < field.count; i++) {
		const struct sf_value *w = sf_param(&field.members[i], "w");

		assert_true(!field.members[i].value.is_text && field.members[i].value.number > 0);
		assert_true(w != NULL && !w->is_text && w->number >= 1);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(
				field.members[i].value.number, field.members[j].value.number);
	}
}

/* The lowest that remains; of a rejection, that of the policy that it is about. */
static void
assert_one_policy(const struct any_decision *any, int64_t limit, int64_t remaining, int64_t reset)
{
	const struct decision *decision = &any->decision;
	const struct outcome *violated = decision_violated(decision);

	assert_true(limit >= remaining && remaining >= 0 && reset >= 0);
	if (decision->verdict == VERDICT_REJECTED) {
		assert_int_equal(limit, clamped(violated->policy->burst));
		assert_int_equal(remaining, clamped(violated->remaining));
		assert_true(any->retry_after_s == 0 || reset == any->retry_after_s);
		return;
	}
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->shadow && outcome->policy->algorithm != POLICY_CONCURRENT)
			assert_true(remaining <= clamped(outcome->remaining));
	}
}

static void
assert_seven(const struct any_decision *any, struct slice lines)
{
	struct sf_field field;
	struct slice value;

	if (lines.len == 0)
		return;
	assert_quotas(&lines);
	assert_true(take_line(&lines, "RateLimit", &value));
	assert_row(sf_read_dictionary(value, &field), "%.*s", (int)value.len, value.ptr);
	assert_int_equal(field.count, 3);
	assert_true(sf_member(&field, "limit") != NULL && sf_member(&field, "remaining") != NULL &&
		sf_member(&field, "reset") != NULL);
	assert_one_policy(any, sf_member(&field, "limit")->value.number,
		sf_member(&field, "remaining")->value.number,
		sf_member(&field, "reset")->value.number);
	assert_int_equal(lines.len, 0);
}

static int64_t
take_integer(struct slice *lines, const char *name)
{
	struct sf_field field;
	struct slice value;

	assert_row(take_line(lines, name, &value), "no %s", name);
	assert_row(sf_read_list(value, &field), "%.*s", (int)value.len, value.ptr);
	assert_int_equal(field.count, 1);
	assert_true(!field.members[0].value.is_text && field.members[0].param_count == 0);
	return field.members[0].value.number;
}

static void
assert_six(const struct any_decision *any, struct slice lines)
{
	if (lines.len == 0)
		return;
	assert_quotas(&lines);
	const int64_t limit = take_integer(&lines, "RateLimit-Limit");
	const int64_t remaining = take_integer(&lines, "RateLimit-Remaining");

	assert_one_policy(any, limit, remaining, take_integer(&lines, "RateLimit-Reset"));
	assert_int_equal(lines.len, 0);
}

static void
assert_x(const struct any_decision *any, struct slice lines)
{
	if (lines.len == 0)
		return;
	const int64_t limit = take_integer(&lines, "X-RateLimit-Limit");
	const int64_t remaining = take_integer(&lines, "X-RateLimit-Remaining");

	assert_true(limit >= remaining && remaining >= 0);
	assert_true(take_integer(&lines, "X-RateLimit-Reset") >= 0);
	assert_int_equal(lines.len, 0);
	(void)any;
}

static void
every_line_keeps_to_the_grammar(void **state)
{
	static const struct {
		unsigned dialect;
		void (*check)(const struct any_decision *, struct slice);
	} dialects[] = {
		{ HEADERS_RATELIMIT, assert_newest },
		{ HEADERS_RATELIMIT_07, assert_seven },
		{ HEADERS_RATELIMIT_06, assert_six },
		{ HEADERS_X_RATELIMIT, assert_x },
	};
	static struct any_decision any;
	size_t admitted = 0, rejected = 0;

	(void)state;
	any.random = 20261202;
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct outcome *out[CHECK_POLICIES_MAX];

		any_decision(&any);
		const bool says_something = told(&any.decision, false, out) > 0;

		*(any.decision.verdict == VERDICT_REJECTED ? &rejected : &admitted) += 1;
		for (size_t i = 0; i < LENGTH_OF(dialects); i++) {
			struct buf lines;

			/* The gate's room for them. */
			buf_init(&lines, 16384);
			assert_int_equal(headers_put(&lines, dialects[i].dialect, &any.decision,
						 any.retry_after_s),
				0);
			assert_int_equal(lines.len > 0, says_something);
			dialects[i].check(&any, buf_slice(&lines));
			buf_release(&lines);
		}
	}
	assert_true(admitted > ROUNDS / 4 && rejected > ROUNDS / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_is_as_strict_as_the_standard),
		cmocka_unit_test(every_line_keeps_to_the_grammar),
	};

	return cmocka_run_group_tests_name("limit/headers_grammar", tests, NULL, NULL);
}
