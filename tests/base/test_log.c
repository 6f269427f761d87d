/* log.h: what a line is made of, and which lines there are. */
#include "../unit.h"
#include "weir/log.h"

#include <stdio.h>
#include <unistd.h>

/* ---- text ---- */

static struct slice
compose(char out[LOG_LINE_MAX], enum log_format format, const struct log_field *fields)
{
	return slice_make(out, log_compose(out, format, LOG_LEVEL_WARN, "A sentence.", fields));
}

static void
text_line_is_a_sentence_and_its_fields(void **state)
{
	const struct log_field fields[] = { LOG_TEXT("server", "unix:/run/x"),
		LOG_TEXT("reason", "no such file"), LOG_INT("waited_ms", -5),
		LOG_TEXT("nothing", ""), LOG_TEXT("null", NULL), LOG_TEXT("pair", "a=b"), { 0 } };
	char line[LOG_LINE_MAX];

	(void)state;
	assert_slice(compose(line, LOG_FORMAT_TEXT, fields),
		SLICE("warning: A sentence. server=unix:/run/x reason=\"no such file\" "
		      "waited_ms=-5 "
		      "nothing=\"\" null=\"\" pair=\"a=b\""));
}

/* Reads a value of a text line back; -1 if it is not well formed. */
static int
unescape(struct slice text, char *out, size_t *len)
{
	*len = 0;
	if (text.len == 0 || text.ptr[0] != '"') {
		memcpy(out, text.ptr, text.len);
		*len = text.len;
		return 0;
	}
	for (size_t i = 1; i < text.len; i++) {
		unsigned code;

		if (text.ptr[i] == '"')
			return i + 1 == text.len ? 0 : -1;
		if (text.ptr[i] != '\\') {
			out[(*len)++] = text.ptr[i];
		} else if (text.ptr[i + 1] == 'x') {
			if (sscanf(text.ptr + i, "\\x%2x", &code) != 1)
				return -1;
			out[(*len)++] = (char)code;
			i += 3;
		} else {
			out[(*len)++] = text.ptr[++i];
		}
	}
	return -1;
}

static void
any_bytes_are_one_printable_line_and_can_be_read_back(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		char value[64], line[LOG_LINE_MAX + 1], back[LOG_LINE_MAX];
		const size_t len = random_below(&random, round % 4 < 2 ? 4 : sizeof value + 1);
		size_t back_len;

		for (size_t i = 0; i < len; i++)
			value[i] = round % 2 == 0 ? (char)random_next(&random)
						  : "\"\\x= a\n0"[random_below(&random, 8)];
		const struct log_field fields[] = { LOG_SLICE("v", slice_make(value, len)), { 0 } };
		const struct slice text = compose(line, LOG_FORMAT_TEXT, fields);
		const struct slice before = SLICE("warning: A sentence. v=");

		for (size_t i = 0; i < text.len; i++)
			assert_in_range((unsigned char)text.ptr[i], 0x20, 0x7e);
		assert_true(slice_has_prefix(text, before));
		line[text.len] = '\0';
		assert_int_equal(unescape(slice_skip(text, before.len), back, &back_len), 0);
		assert_slice(slice_make(back, back_len), slice_make(value, len));
	}
}

static void
long_text_line_is_cut_and_says_so(void **state)
{
	(void)state;
	for (size_t len = LOG_LINE_MAX - 60; len < LOG_LINE_MAX + 60; len++) {
		char value[LOG_LINE_MAX + 60], line[LOG_LINE_MAX];

		for (unsigned kind = 0; kind < 3; kind++) {
			memset(value, "a \n"[kind], len);
			const struct log_field fields[] = { LOG_SLICE("v", slice_make(value, len)),
				LOG_INT("n", 7), { 0 } };
			const struct slice text = compose(line, LOG_FORMAT_TEXT, fields);
			const bool is_whole =
				slice_is(slice_make(text.ptr + text.len - 4, 4), SLICE(" n=7"));
			const bool is_cut =
				slice_is(slice_make(text.ptr + text.len - 4, 4), SLICE(" ..."));

			assert_true(text.len <= LOG_LINE_MAX);
			assert_true(is_whole != is_cut);
			assert_true(len > 1900 && kind == 2 ? is_cut : true);
			/* What fits of it is there. */
			assert_row(text.len > LOG_LINE_MAX - 60, "%zu of %zu", text.len, len);
		}
	}
}

/* ---- JSON ---- */

static const char *json_value(const char *at);

static const char *
json_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (*at != '"') {
		unsigned code;

		if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e)
			return NULL;
		if (*at != '\\') {
			at++;
		} else if (at[1] == '"' || at[1] == '\\') {
			at += 2;
		} else if (at[1] == 'u' && sscanf(at + 2, "%4x", &code) == 1 && code < 256) {
			at += 6;
		} else {
			return NULL;
		}
	}
	return at + 1;
}

static const char *
json_object(const char *at)
{
	if (*at++ != '{')
		return NULL;
	for (;;) {
		at = json_string(at);
		if (at == NULL || *at++ != ':')
			return NULL;
		at = json_value(at);
		if (at == NULL || (*at != ',' && *at != '}'))
			return NULL;
		if (*at++ == '}')
			return at;
	}
}

static const char *
json_value(const char *at)
{
	if (*at == '"')
		return json_string(at);
	if (strncmp(at, "true", 4) == 0)
		return at + 4;
	const size_t digits = strspn(at, "-0123456789");

	return digits > 0 ? at + digits : NULL;
}

static void
assert_json(const char *line)
{
	const char *end = json_object(line);

	assert_row(end != NULL && *end == '\0', "no JSON: %s", line);
}

static void
json_line_has_time_level_message_and_fields(void **state)
{
	const struct log_field fields[] = { LOG_TEXT("server", "a \"b\" \\c\n\xe9"),
		LOG_INT("n", INT64_MIN), { 0 } };
	char line[LOG_LINE_MAX + 1];

	(void)state;
	line[compose(line, LOG_FORMAT_JSON, fields).len] = '\0';
	assert_json(line);
	int year, month, day, hour, minute, end = 0;

	assert_int_equal(sscanf(line, "{\"time\":\"%4d-%2d-%2dT%2d:%2d:%*2d.%*3dZ\",%n", &year,
				 &month, &day, &hour, &minute, &end),
		5);
	char expected[200];

	(void)snprintf(expected, sizeof expected, "\"pid\":%d,", (int)getpid());
	assert_int_equal(strncmp(line + end, expected, strlen(expected)), 0);
	assert_string_equal(line + end + strlen(expected),
		"\"level\":\"warning\",\"message\":\"A sentence.\",\"server\":\"a \\\"b\\\" "
		"\\\\c\\u000a\\u00e9\",\"n\":-9223372036854775808}");
}

static void
any_field_leaves_a_json_line_whole(void **state)
{
	uint64_t random = 6;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		char value[LOG_LINE_MAX], line[LOG_LINE_MAX + 1];
		const size_t len = round % 2 == 0 ? random_below(&random, 40)
						  : 250 + random_below(&random, 1798);

		for (size_t i = 0; i < len; i++)
			value[i] =
				round % 4 < 2 ? (char)random_next(&random) : (char)('a' + i % 26);
		const struct log_field fields[] = { LOG_SLICE("v", slice_make(value, len)),
			LOG_INT("n", 7), LOG_SLICE("w", slice_make(value, len)), { 0 } };
		const struct slice text = compose(line, LOG_FORMAT_JSON, fields);

		assert_true(text.len <= LOG_LINE_MAX);
		line[text.len] = '\0';
		assert_json(line);
		/* A field that was left out is told of. */
		const bool is_whole = strstr(line, "\"v\":\"") != NULL &&
			strstr(line, "\"w\":\"") != NULL && strstr(line, ",\"n\":7") != NULL;

		assert_true(is_whole == (strstr(line, ",\"cut\":true}") == NULL));
	}
}

/* ---- where lines go ---- */

struct sink {
	unsigned lines;
	enum log_level level;
	char last[LOG_LINE_MAX + 1];
};

static void
take_line(void *context, enum log_level level, const char *line, size_t len)
{
	struct sink *sink = context;

	sink->lines++;
	sink->level = level;
	memcpy(sink->last, line, len);
	sink->last[len] = '\0';
}

static void
only_levels_that_are_on_reach_the_sink(void **state)
{
	static const enum log_level levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO,
		LOG_LEVEL_DEBUG };
	struct sink sink = { 0 };

	(void)state;
	log_set_sink(take_line, &sink);
	for (size_t on = 0; on < LENGTH_OF(levels); on++) {
		log_configure(levels[on], LOG_FORMAT_TEXT);
		sink.lines = 0;
		log_error("E.", LOG_INT("n", 1));
		log_warn("W.", LOG_INT("n", 2));
		log_info("I.", LOG_INT("n", 3));
		log_debug("D.", LOG_INT("n", 4));
		assert_int_equal(sink.lines, on + 1);
		assert_int_equal(sink.level, levels[on]);
		for (size_t i = 0; i < LENGTH_OF(levels); i++)
			assert_int_equal(log_is_on(levels[i]), i <= on);
	}
	assert_string_equal(sink.last, "debug: D. n=4");
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	log_info("I.", LOG_INT("n", 3));
	assert_json(sink.last);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
}

/* ---- throttle ---- */

static void
throttle_lets_a_burst_through_and_tells_what_it_held(void **state)
{
	struct log_throttle throttle = { .period_us = 60000000, .burst = 3 };
	int64_t now_us = 1000;
	uint64_t held;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(log_throttle_pass(&throttle, now_us + i, &held), i < 3);
		assert_int_equal(held, 0);
	}
	assert_false(log_throttle_pass(&throttle, now_us + 59999999, &held));
	assert_true(log_throttle_pass(&throttle, now_us + 60000000, &held));
	assert_int_equal(held, 8);
	assert_true(log_throttle_pass(&throttle, now_us + 60000001, &held));
	assert_int_equal(held, 0);
}

static void
throttle_works_from_time_zero(void **state)
{
	struct log_throttle throttle = { .period_us = 1000, .burst = 1 };
	uint64_t held;

	(void)state;
	assert_true(log_throttle_pass(&throttle, 0, &held));
	assert_false(log_throttle_pass(&throttle, 0, &held));
	assert_false(log_throttle_pass(&throttle, 999, &held));
	assert_true(log_throttle_pass(&throttle, 1000, &held));
	assert_int_equal(held, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_line_is_a_sentence_and_its_fields),
		cmocka_unit_test(any_bytes_are_one_printable_line_and_can_be_read_back),
		cmocka_unit_test(long_text_line_is_cut_and_says_so),
		cmocka_unit_test(json_line_has_time_level_message_and_fields),
		cmocka_unit_test(any_field_leaves_a_json_line_whole),
		cmocka_unit_test(only_levels_that_are_on_reach_the_sink),
		cmocka_unit_test(throttle_lets_a_burst_through_and_tells_what_it_held),
		cmocka_unit_test(throttle_works_from_time_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
