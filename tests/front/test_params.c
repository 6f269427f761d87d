/* Parameters: of any size, in any number of records, and those that are refused. */
#include "ask.h"

#include <stdio.h>

/* ---- what comes of a head ---- */

/* What MODE dump answers for these pairs. */
static void
expect_dump(struct buf *out, struct slice pairs)
{
	const struct slice raw = pairs;
	const uint8_t *at = (const uint8_t *)pairs.ptr;

	while (pairs.len > 0) {
		size_t lengths[2];

		for (size_t i = 0; i < 2; i++) {
			const bool is_long = at[0] >= 0x80;

			lengths[i] = is_long ? (size_t)(at[0] & 0x7f) << 24 | (size_t)at[1] << 16 |
					(size_t)at[2] << 8 | at[3]
					     : at[0];
			at += is_long ? 4 : 1;
		}
		bytes_add(out, slice_make(at, lengths[0]));
		bytes_add(out, SLICE("="));
		bytes_add(out, slice_make(at + lengths[0], lengths[1]));
		bytes_add(out, SLICE("\n"));
		at += lengths[0] + lengths[1];
		pairs = slice_skip(raw, (size_t)((const char *)at - raw.ptr));
	}
	bytes_add(out, SLICE("--\n"));
	bytes_add(out, raw);
}

static void
put_parameters(struct buf *out, struct slice pairs, size_t piece)
{
	put_begin(out, 1, FCGI_RESPONDER, 0);
	put_stream(out, FCGI_PARAMS, 1, pairs, piece);
	put_record(out, FCGI_PARAMS, 1, SLICE(""), 0);
}

static void
assert_dumped(struct slice pairs, size_t piece)
{
	struct buf bytes, expected;
	struct answer answer;

	bytes_init(&bytes);
	bytes_init(&expected);
	put_parameters(&bytes, pairs, piece);
	expect_dump(&expected, pairs);
	ask(&answer, buf_slice(&bytes));
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 200);
	assert_true(slice_is(answer_body(&answer), buf_slice(&expected)));
	answer_release(&answer);
	buf_release(&bytes);
	buf_release(&expected);
}

/* The request does not run, and says why with this status. */
static void
assert_refused(struct slice pairs, unsigned status)
{
	struct buf bytes;
	struct answer answer;
	const unsigned before = rig_look(&rig).requests;

	bytes_init(&bytes);
	put_parameters(&bytes, pairs, 60000);
	ask(&answer, buf_slice(&bytes));
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), status);
	assert_int_equal(rig_look(&rig).requests, before);
	answer_release(&answer);
	buf_release(&bytes);
}

static void
a_refused_head_request_is_told_without_a_body(void **state)
{
	static const struct {
		const char *method;
		size_t many;
		bool has_body;
	} rows[] = { { "HEAD", 0, false }, { "GET", 0, true }, { "HEAD", 40000, false },
		{ "GET", 40000, true } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct buf pairs, bytes;
		struct answer answer;

		bytes_init(&pairs);
		bytes_init(&bytes);
		put_pair(&pairs, SLICE("REQUEST_METHOD"), slice_of(rows[i].method));
		for (size_t j = 0; j < rows[i].many; j++)
			put_pair(&pairs, SLICE("N"), SLICE("v"));
		/* Two that differ: 400. */
		put_pair(&pairs, SLICE("CONTENT_LENGTH"), SLICE("1"));
		put_pair(&pairs, SLICE("CONTENT_LENGTH"), SLICE("2"));
		put_parameters(&bytes, buf_slice(&pairs), 60000);
		ask(&answer, buf_slice(&bytes));
		assert_true(answer_is_whole(&answer));
		assert_int_equal(answer_status(&answer), rows[i].many > 0 ? 431 : 400);
		assert_int_equal(answer_field_count(&answer, "Content-Length"), 1);
		assert_row((answer_body(&answer).len > 0) == rows[i].has_body, "row %zu", i);
		answer_release(&answer);
		buf_release(&bytes);
		buf_release(&pairs);
	}
}

/* ---- sizes ---- */

/* Pairs that take exactly so many bytes. */
static void
put_pairs_of_size(struct buf *out, size_t size)
{
	static char text[40000];

	memset(text, 'v', sizeof text);
	for (size_t i = 0; out->len < size; i++) {
		const size_t left = size - out->len;
		size_t value_len = left > 45000 ? 30000 : left > 300 ? left - 3 - 3 - 200 : left;
		char name[8];

		(void)snprintf(name, sizeof name, "N%02zu", i);
		if (left > 300) {
			put_pair(out, slice_make(name, 3), slice_make(text, value_len));
			continue;
		}
		/* The last ones are short, so that any size can be met. */
		value_len = left >= 130 ? 100 : left - 2;
		put_pair(out, SLICE(""), slice_make(text, value_len));
	}
	assert_int_equal(out->len, size);
}

static void
parameters_of_any_size_in_any_number_of_records(void **state)
{
	static const size_t sizes[] = { 300, 8191, 8192, 8193, 65527, 65535, 65536, 200000 };
	static const size_t pieces[] = { 7, 1000, 8184, 8192, 65535 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
		struct buf pairs;

		bytes_init(&pairs);
		put_pairs_of_size(&pairs, sizes[i]);
		for (size_t j = 0; j < LENGTH_OF(pieces); j++)
			assert_dumped(buf_slice(&pairs), pieces[j]);
		buf_release(&pairs);
	}
}

static void
more_than_max_head_is_431(void **state)
{
	struct buf pairs;

	(void)state;
	for (size_t over = 0; over < 2; over++) {
		bytes_init(&pairs);
		put_pairs_of_size(&pairs, rig_settings().max_head + over);
		if (over == 0)
			assert_dumped(buf_slice(&pairs), 65535);
		else
			assert_refused(buf_slice(&pairs), 431);
		buf_release(&pairs);
	}
	/* And far more, which is read but not kept. */
	bytes_init(&pairs);
	put_pairs_of_size(&pairs, 5000000);
	assert_refused(buf_slice(&pairs), 431);
	buf_release(&pairs);
}

static void
more_than_max_params_is_431(void **state)
{
	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct buf pairs;

		bytes_init(&pairs);
		for (size_t i = 0; i < rig_settings().max_params + over; i++)
			put_pair(&pairs, SLICE("A"), SLICE("b"));
		if (over == 0)
			assert_dumped(buf_slice(&pairs), 65535);
		else
			assert_refused(buf_slice(&pairs), 431);
		buf_release(&pairs);
	}
}

static void
names_and_values_at_the_borders_of_their_lengths(void **state)
{
	static const size_t lengths[] = { 0, 1, 126, 127, 128, 129, 255, 256, 300, 16000, 65000 };
	static char text[70000];

	(void)state;
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
		for (size_t j = 0; j < LENGTH_OF(lengths); j++) {
			struct buf pairs;

			if (lengths[i] + lengths[j] > 65500)
				continue;
			bytes_init(&pairs);
			put_pair(&pairs, SLICE("BEFORE"), SLICE("1"));
			put_pair(
				&pairs, slice_make(text, lengths[i]), slice_make(text, lengths[j]));
			put_pair(&pairs, SLICE("AFTER"), SLICE("2"));
			assert_dumped(buf_slice(&pairs), 65535);
			buf_release(&pairs);
		}
	}
}

static void
long_form_of_a_short_length_is_taken(void **state)
{
	(void)state;
	assert_dumped(SLICE("\x80\0\0\3\x80\0\0\1ABCd"
			    "\x80\0\0\1\2Efg"
			    "\1\x80\0\0\0H"),
		65535);
}

/* What no FastCGI record takes another backend may: CGI programs have no such bound. */
static void
pair_may_be_longer_than_a_record(void **state)
{
	static char text[131072];

	(void)state;
	memset(text, 'x', sizeof text);
	for (size_t len = 65520; len <= sizeof text; len += len < 65540 ? 1 : 65532) {
		struct buf pairs;

		bytes_init(&pairs);
		put_pair(&pairs, SLICE("N"), slice_make(text, len));
		assert_dumped(buf_slice(&pairs), 65535);
		buf_release(&pairs);
	}
}

static void
pair_is_split_over_records_anywhere(void **state)
{
	static const char *const list[] = { "REQUEST_METHOD", "GET", "EMPTY", "", "QUERY_STRING",
		"a=b&c", NULL };
	static char text[200];
	struct buf pairs;

	(void)state;
	memset(text, 'x', sizeof text);
	bytes_init(&pairs);
	put_pairs(&pairs, list);
	put_pair(&pairs, SLICE("LONG"), slice_make(text, sizeof text));
	for (size_t piece = 1; piece <= pairs.len; piece++)
		assert_dumped(buf_slice(&pairs), piece);
	buf_release(&pairs);
}

static void
absurd_lengths_are_400(void **state)
{
	static const struct slice rows[] = {
		{ "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
		{ "\xff\xff\xff\xfe\xff\xff\xff\xfe", 8 },
		{ "\xff\xff\xff\xff\0A", 6 },
		{ "\1\xff\xff\xff\xff"
		  "A",
			6 },
		{ "\1\xff\xff\xff\xfe"
		  "A",
			6 },
		{ "\1\2Ab", 4 },
		{ "\1", 1 },
		{ "\x80\0\0", 3 },
		{ "\1\1Ab\1", 5 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_refused(rows[i], 400);
	assert_rig_serves(&rig);
}

static void
names_and_values_that_no_environment_can_hold_are_400(void **state)
{
	(void)state;
	assert_refused(SLICE("\2\1A\0b"), 400);
	assert_refused(SLICE("\1\2Ab\0"), 400);
	assert_refused(SLICE("\1\1\0b"), 400);
	assert_refused(SLICE("\3\1A=Bc"), 400);
	assert_refused(SLICE("\1\1=b"), 400);
	/* Odd ones pass. */
	assert_dumped(SLICE("\21\1proxy-nokeepalive1\1\3Aa\nb\1\4B\r\n\xff\x01"), 65535);
}

static void
parameter_named_as_libfcgis_own_is_kept(void **state)
{
	struct buf pairs;

	(void)state;
	bytes_init(&pairs);
	put_pairs(&pairs,
		(const char *const[]){ "FCGI_ROLE", "AUTHORIZER", "HTTP_X_TWICE", "1",
			"HTTP_X_TWICE", "2", NULL });
	assert_dumped(buf_slice(&pairs), 65535);
	buf_release(&pairs);
}

/* Whom would we count? */
static void
two_addresses_are_400(void **state)
{
	static const struct {
		const char *first, *second;
		bool is_refused;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.2", true },
		{ "192.0.2.1", "", true },
		{ "", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.1", false },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct buf pairs;

		bytes_init(&pairs);
		put_pairs(&pairs,
			(const char *const[]){ "REMOTE_ADDR", rows[i].first, "REMOTE_ADDRESS", "x",
				"REMOTE_ADDR", rows[i].second, NULL });
		if (rows[i].is_refused)
			assert_refused(buf_slice(&pairs), 400);
		else
			assert_dumped(buf_slice(&pairs), 65535);
		buf_release(&pairs);
	}
}

static void
no_parameters_at_all_are_a_request(void **state)
{
	(void)state;
	assert_dumped(SLICE(""), 65535);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refused_head_request_is_told_without_a_body),
		TEST(parameters_of_any_size_in_any_number_of_records),
		TEST(more_than_max_head_is_431),
		TEST(more_than_max_params_is_431),
		TEST(names_and_values_at_the_borders_of_their_lengths),
		TEST(long_form_of_a_short_length_is_taken),
		TEST(pair_is_split_over_records_anywhere),
		TEST(absurd_lengths_are_400),
		TEST(names_and_values_that_no_environment_can_hold_are_400),
		TEST(parameter_named_as_libfcgis_own_is_kept),
		TEST(two_addresses_are_400),
		TEST(no_parameters_at_all_are_a_request),
		TEST(pair_may_be_longer_than_a_record),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
