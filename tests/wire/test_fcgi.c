/* fcgi.h: records and pairs on the wire. */
#include "../unit.h"
#include "weir/fcgi.h"

#include <stdio.h>

/* ---- records ---- */

/* What a stream of records says, as text without the cuts of its contents. */
struct story {
	char text[20000];
	size_t len;
};

static void
tell(struct story *story, const char *bytes, size_t len)
{
	assert_true(len <= sizeof story->text - story->len);
	memcpy(story->text + story->len, bytes, len);
	story->len += len;
}

/* Feeds one input. False behind FCGI_BAD. */
static bool
feed(struct fcgi_reader *reader, struct slice input, struct story *story)
{
	struct slice content;
	char head[64];

	for (;;) {
		const size_t before = input.len;

		switch (fcgi_read(reader, &input, &content)) {
		case FCGI_NEED_MORE:
			assert_int_equal(input.len, 0);
			return true;
		case FCGI_RECORD:
			tell(story, head,
				(size_t)snprintf(head, sizeof head, "<%u %u %u>",
					reader->record.type, reader->record.id,
					reader->record.len));
			break;
		case FCGI_CONTENT:
			assert_true(content.len > 0 && content.len <= before - input.len);
			tell(story, content.ptr, content.len);
			break;
		case FCGI_RECORD_END:
			tell(story, "$", 1);
			break;
		case FCGI_BAD:
			tell(story, "!", 1);
			return false;
		}
	}
}

static void
put_record(struct buf *out, uint8_t type, uint16_t id, struct slice content, uint8_t padding)
{
	static const char zeros[255];
	uint8_t head[FCGI_HEADER_LEN];

	fcgi_put_head(head, type, id, (uint16_t)content.len, padding);
	assert_int_equal(buf_append(out, head, sizeof head), 0);
	assert_int_equal(buf_append_slice(out, content), 0);
	assert_int_equal(buf_append(out, zeros, padding), 0);
}

static void
put_usual_records(struct buf *out)
{
	uint8_t begin[16], end[16];

	fcgi_put_begin(begin, 1, FCGI_RESPONDER, FCGI_KEEP_CONN);
	assert_int_equal(buf_append(out, begin, sizeof begin), 0);
	put_record(out, FCGI_PARAMS, 1, SLICE("\1\1ab"), 4);
	put_record(out, FCGI_PARAMS, 1, SLICE(""), 0);
	put_record(out, FCGI_STDIN, 65535, SLICE("body"), 255);
	put_record(out, FCGI_STDIN, 1, SLICE(""), 8);
	put_record(out, 99, 0, SLICE("x"), 0);
	fcgi_put_end(end, 1, 7, FCGI_REQUEST_COMPLETE);
	assert_int_equal(buf_append(out, end, sizeof end), 0);
}

static const char usual_story[] = "<1 1 8>\0\1\1\0\0\0\0\0$<4 1 4>\1\1ab$<4 1 0>$<5 65535 4>body$"
				  "<5 1 0>$<99 0 1>x$<3 1 8>\0\0\0\7\0\0\0\0$";

static void
stream_cut_at_any_two_places_is_the_same(void **state)
{
	struct buf stream;

	(void)state;
	buf_init(&stream, 10000);
	put_usual_records(&stream);
	const struct slice all = buf_slice(&stream);

	for (size_t one = 0; one <= all.len; one++) {
		for (size_t two = one; two <= all.len; two += 1 + (two - one) / 16) {
			struct fcgi_reader reader;
			struct story story = { .len = 0 };

			fcgi_reader_init(&reader);
			assert_true(feed(&reader, slice_first(all, one), &story));
			assert_true(feed(&reader, slice_make(all.ptr + one, two - one), &story));
			assert_true(feed(&reader, slice_skip(all, two), &story));
			assert_true(fcgi_reader_is_between(&reader));
			assert_slice(slice_make(story.text, story.len),
				slice_make(usual_story, sizeof usual_story - 1));
		}
	}
	buf_release(&stream);
}

static void
stream_byte_by_byte_is_the_same(void **state)
{
	struct fcgi_reader reader;
	struct story story = { .len = 0 };
	struct buf stream;

	(void)state;
	buf_init(&stream, 10000);
	put_usual_records(&stream);
	fcgi_reader_init(&reader);
	for (size_t i = 0; i < stream.len; i++) {
		const struct slice byte = exact_copy(slice_make(buf_slice(&stream).ptr + i, 1));

		assert_true(feed(&reader, slice_make(byte.ptr, 0), &story));
		assert_true(feed(&reader, byte, &story));
		exact_free(byte);
	}
	assert_slice(
		slice_make(story.text, story.len), slice_make(usual_story, sizeof usual_story - 1));
	buf_release(&stream);
}

/* Behind the last byte of a record and nowhere else. */
static void
reader_knows_whether_it_is_between_records(void **state)
{
	(void)state;
	for (unsigned padding = 0; padding <= 2; padding++) {
		for (size_t len = 0; len <= 2; len++) {
			struct fcgi_reader reader;
			struct story story = { .len = 0 };
			struct buf stream;

			buf_init(&stream, 100);
			put_record(&stream, FCGI_STDIN, 1, slice_make("ab", len), (uint8_t)padding);
			fcgi_reader_init(&reader);
			assert_true(fcgi_reader_is_between(&reader));
			for (size_t i = 0; i < stream.len; i++) {
				assert_true(feed(&reader, slice_make(buf_slice(&stream).ptr + i, 1),
					&story));
				assert_int_equal(
					fcgi_reader_is_between(&reader), i + 1 == stream.len);
			}
			buf_release(&stream);
		}
	}
}

static void
record_lengths_at_the_borders_are_read(void **state)
{
	static const size_t lengths[] = { 0, 1, 255, 256, 8184, 65528, 65535 };
	static const uint8_t paddings[] = { 0, 1, 7, 8, 255 };
	static char content[65535];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
		for (size_t j = 0; j < LENGTH_OF(paddings); j++) {
			struct fcgi_reader reader;
			struct slice input, piece;
			struct buf stream;
			size_t read = 0;

			buf_init(&stream, 70000);
			put_record(&stream, FCGI_STDOUT, 258, slice_make(content, lengths[i]),
				paddings[j]);
			input = buf_slice(&stream);
			fcgi_reader_init(&reader);
			assert_int_equal(fcgi_read(&reader, &input, &piece), FCGI_RECORD);
			assert_int_equal(reader.record.type, FCGI_STDOUT);
			assert_int_equal(reader.record.id, 258);
			assert_int_equal(reader.record.len, lengths[i]);
			assert_int_equal(reader.record.padding, paddings[j]);
			enum fcgi_event event = fcgi_read(&reader, &input, &piece);

			while (event == FCGI_CONTENT) {
				read += piece.len;
				event = fcgi_read(&reader, &input, &piece);
			}
			assert_int_equal(event, FCGI_RECORD_END);
			assert_int_equal(read, lengths[i]);
			assert_int_equal(input.len, 0);
			buf_release(&stream);
		}
	}
}

static void
other_version_is_bad_at_its_first_byte_and_for_good(void **state)
{
	(void)state;
	for (unsigned version = 0; version < 256; version++) {
		const char byte = (char)version;
		struct fcgi_reader reader;
		struct story story = { .len = 0 };
		struct buf stream;

		if (version == FCGI_VERSION_1)
			continue;
		buf_init(&stream, 1000);
		put_usual_records(&stream);
		fcgi_reader_init(&reader);
		assert_false(feed(&reader, slice_make(&byte, 1), &story));
		for (unsigned again = 0; again < 12; again++)
			assert_false(feed(&reader, buf_slice(&stream), &story));
		buf_release(&stream);
	}
}

static void
feed_mutant(void *context, struct slice mutant)
{
	struct fcgi_reader reader;
	struct story story = { .len = 0 };

	(void)context;
	fcgi_reader_init(&reader);
	(void)feed(&reader, mutant, &story);
}

static void
any_mutation_of_a_stream_is_survived(void **state)
{
	struct buf stream;

	(void)state;
	buf_init(&stream, 1000);
	put_usual_records(&stream);
	each_mutation(buf_slice(&stream), feed_mutant, NULL);
	buf_release(&stream);
}

static void
bodies_of_begin_and_end_survive_the_wire(void **state)
{
	static const uint32_t statuses[] = { 0, 1, 255, 256, 65536, 0x01020304, 0x80000000,
		UINT32_MAX };
	uint8_t out[16];

	(void)state;
	for (unsigned role = 0; role <= UINT16_MAX; role += 257) {
		fcgi_put_begin(out, 0x1234, (uint16_t)role, (uint8_t)role);
		const struct fcgi_begin begin = fcgi_begin_of(out + FCGI_HEADER_LEN);

		assert_memory_equal(out, "\1\1\x12\x34\0\10\0\0", FCGI_HEADER_LEN);
		assert_int_equal(begin.role, role);
		assert_int_equal(begin.flags, role & 0xff);
	}
	for (size_t i = 0; i < LENGTH_OF(statuses); i++) {
		fcgi_put_end(out, 0xffff, statuses[i], FCGI_OVERLOADED);
		const struct fcgi_end end = fcgi_end_of(out + FCGI_HEADER_LEN);

		assert_memory_equal(out, "\1\3\xff\xff\0\10\0\0", FCGI_HEADER_LEN);
		assert_int_equal(end.app_status, statuses[i]);
		assert_int_equal(end.protocol_status, FCGI_OVERLOADED);
	}
}

/* ---- pairs ---- */

static const size_t pair_lengths[] = { 0, 1, 126, 127, 128, 129, 255, 256, 65535, 65536, 70000 };

static void
pairs_of_any_length_survive_the_wire(void **state)
{
	static char text[70000];

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * 7);
	for (size_t i = 0; i < LENGTH_OF(pair_lengths); i++) {
		for (size_t j = 0; j < LENGTH_OF(pair_lengths); j++) {
			const struct slice name = slice_make(text, pair_lengths[i]);
			const struct slice value = slice_make(text + 1, pair_lengths[j] / 2);
			struct slice pairs, got_name, got_value;
			struct buf out;

			buf_init(&out, 200000);
			assert_int_equal(fcgi_pair_put(&out, name, value), 0);
			assert_int_equal(out.len, fcgi_pair_size(name.len, value.len));
			pairs = exact_copy(buf_slice(&out));
			const struct slice whole = pairs;

			assert_int_equal(fcgi_pair_next(&pairs, &got_name, &got_value), 1);
			assert_true(slice_is(name, got_name) && slice_is(value, got_value));
			assert_int_equal(fcgi_pair_next(&pairs, &got_name, &got_value), 0);
			exact_free(whole);
			buf_release(&out);
		}
	}
}

static void
empty_slices_without_memory_are_pairs_too(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 10);
	assert_int_equal(fcgi_pair_put(&out, slice_of(NULL), slice_of(NULL)), 0);
	assert_slice(buf_slice(&out), SLICE("\0\0"));
	buf_release(&out);
}

static void
random_lists_of_pairs_survive_the_wire(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		char text[400];
		struct slice names[40], values[40], pairs, name, value;
		const size_t count = random_below(&random, LENGTH_OF(names) + 1);
		struct buf out;

		for (size_t i = 0; i < sizeof text; i++)
			text[i] = (char)random_next(&random);
		buf_init(&out, 100000);
		for (size_t i = 0; i < count; i++) {
			names[i] = slice_make(text, random_below(&random, 300));
			values[i] = slice_make(text + 100, random_below(&random, 300));
			assert_int_equal(fcgi_pair_put(&out, names[i], values[i]), 0);
		}
		pairs = buf_slice(&out);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(fcgi_pair_next(&pairs, &name, &value), 1);
			assert_true(slice_is(name, names[i]) && slice_is(value, values[i]));
		}
		assert_int_equal(fcgi_pair_next(&pairs, &name, &value), 0);
		buf_release(&out);
	}
}

static void
long_form_of_a_short_length_is_taken(void **state)
{
	struct slice pairs = SLICE("\x80\0\0\1\x80\0\0\2abb\x80\0\0\0\1c"), name, value;

	(void)state;
	assert_int_equal(fcgi_pair_next(&pairs, &name, &value), 1);
	assert_slice(name, SLICE("a"));
	assert_slice(value, SLICE("bb"));
	assert_int_equal(fcgi_pair_next(&pairs, &name, &value), 1);
	assert_slice(name, SLICE(""));
	assert_slice(value, SLICE("c"));
	assert_int_equal(fcgi_pair_next(&pairs, &name, &value), 0);
}

static void
lengths_beyond_the_end_are_refused(void **state)
{
	static const struct slice rows[] = {
		{ "\1", 1 },
		{ "\1\0", 2 },
		{ "\0\1", 2 },
		{ "\1\1a", 3 },
		{ "\2\0a", 3 },
		{ "\x7f\x7f", 2 },
		{ "\x80", 1 },
		{ "\x80\0\0", 3 },
		{ "\x80\0\0\0", 4 },
		{ "\0\x80\0\0", 4 },
		{ "\xff\xff\xff\xff\0a", 6 },
		{ "\0\xff\xff\xff\xff", 5 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
		{ "\xff\xff\xff\xfe\x80\0\0\2a", 9 },
		{ "\x80\0\0\1\xff\xff\xff\xff"
		  "a",
			9 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice whole = exact_copy(rows[i]);
		struct slice pairs = whole, name, value;

		assert_row(fcgi_pair_next(&pairs, &name, &value) == -1, "row %zu", i);
		exact_free(whole);
	}
}

static void
list_cut_anywhere_but_between_pairs_is_refused(void **state)
{
	char text[200];
	size_t ends[8], count = 0;
	struct buf out;

	(void)state;
	memset(text, 'x', sizeof text);
	buf_init(&out, 10000);
	for (size_t len = 0; len <= 150; len += 50) {
		assert_int_equal(
			fcgi_pair_put(&out, slice_make(text, len), slice_make(text, 150 - len)), 0);
		ends[count++] = out.len;
	}
	for (size_t cut = 1; cut <= out.len; cut++) {
		const struct slice whole = exact_copy(slice_first(buf_slice(&out), cut));
		struct slice pairs = whole, name, value;
		bool is_end = false;
		int result;

		for (size_t i = 0; i < count; i++)
			is_end = is_end || ends[i] == cut;
		while ((result = fcgi_pair_next(&pairs, &name, &value)) == 1)
			;
		assert_row(result == (is_end ? 0 : -1), "cut at %zu", cut);
		exact_free(whole);
	}
	buf_release(&out);
}

static void
read_pairs(void *context, struct slice mutant)
{
	struct slice pairs = mutant, name, value;

	(void)context;
	while (fcgi_pair_next(&pairs, &name, &value) == 1) {
		assert_true(name.ptr >= mutant.ptr && value.ptr == name.ptr + name.len);
		assert_true(pairs.ptr == value.ptr + value.len);
		assert_true(pairs.ptr + pairs.len == mutant.ptr + mutant.len);
	}
}

static void
any_mutation_of_a_list_stays_within_it(void **state)
{
	(void)state;
	each_mutation(SLICE("\1\2abb\x80\0\0\1\x80\0\0\2abb\0\1c\3\0ddd"), read_pairs, NULL);
}

static void
full_buffer_takes_no_part_of_a_pair(void **state)
{
	char text[130];

	(void)state;
	memset(text, 'x', sizeof text);
	const size_t need = fcgi_pair_size(130, 5);

	assert_int_equal(need, 4 + 1 + 130 + 5);
	for (size_t max = 0; max <= need; max++) {
		struct buf out;

		buf_init(&out, max);
		assert_int_equal(
			fcgi_pair_put(&out, slice_make(text, 130), slice_make(text, 5)) == 0,
			max == need);
		assert_int_equal(out.len, max == need ? need : 0);
		buf_release(&out);
	}
}

static void
length_of_more_than_31_bits_is_refused(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, SIZE_MAX);
	assert_int_equal(fcgi_pair_put(&out, slice_make("", 0x80000000), SLICE("")), -1);
	assert_int_equal(fcgi_pair_put(&out, SLICE(""), slice_make("", 0x80000000)), -1);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

/* ---- parameter streams ---- */

/* Each record parsed alone, as php-fpm does: gives the pairs back in *all. */
static void
read_params(struct buf *stream, struct buf *all)
{
	struct slice rest = buf_slice(stream);
	bool ended = false;

	while (rest.len > 0) {
		const uint8_t *head = (const uint8_t *)rest.ptr;
		const size_t len = (size_t)head[4] << 8 | head[5];
		struct slice pairs, name, value;
		int result;

		assert_false(ended);
		assert_true(rest.len >= FCGI_HEADER_LEN + len);
		assert_int_equal(head[0], FCGI_VERSION_1);
		assert_int_equal(head[1], FCGI_PARAMS);
		assert_int_equal(head[2] << 8 | head[3], 0x0102);
		assert_true(len + head[6] <= FCGI_CONTENT_MAX);
		pairs = slice_first(slice_skip(rest, FCGI_HEADER_LEN), len);
		ended = len == 0;
		assert_int_equal(buf_append_slice(all, pairs), 0);
		while ((result = fcgi_pair_next(&pairs, &name, &value)) == 1)
			;
		assert_int_equal(result, 0);
		rest = slice_skip(rest, FCGI_HEADER_LEN + len + head[6]);
	}
	assert_true(ended);
}

static void
pair_is_never_split_over_records(void **state)
{
	static char text[FCGI_CONTENT_MAX];
	uint64_t random = 8;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct buf pairs, out, all;

		buf_init(&pairs, 1 << 20);
		buf_init(&out, 1 << 21);
		buf_init(&all, 1 << 20);
		for (size_t i = random_below(&random, 20); i > 0; i--) {
			const size_t most = round % 2 == 0 ? 300 : 40000;

			assert_int_equal(
				fcgi_pair_put(&pairs, slice_make(text, random_below(&random, 100)),
					slice_make(text, random_below(&random, most))),
				0);
		}
		assert_int_equal(fcgi_params_put(&out, 0x0102, buf_slice(&pairs)), 0);
		read_params(&out, &all);
		assert_slice(buf_slice(&all), buf_slice(&pairs));
		buf_release(&pairs);
		buf_release(&out);
		buf_release(&all);
	}
}

static void
pair_that_fits_no_record_is_refused(void **state)
{
	static char text[FCGI_CONTENT_MAX];

	(void)state;
	for (size_t over = 0; over <= 1; over++) {
		struct buf pairs, out;

		buf_init(&pairs, 1 << 20);
		buf_init(&out, 1 << 20);
		assert_int_equal(fcgi_pair_put(&pairs, SLICE("A"), SLICE("b")), 0);
		assert_int_equal(fcgi_pair_put(&pairs, SLICE("N"),
					 slice_make(text, FCGI_CONTENT_MAX - 6 + over)),
			0);
		assert_int_equal(fcgi_params_put(&out, 0x0102, buf_slice(&pairs)) == 0, over == 0);
		buf_release(&pairs);
		buf_release(&out);
	}
}

static void
no_pairs_are_the_empty_record(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	assert_int_equal(fcgi_params_put(&out, 7, slice_make(NULL, 0)), 0);
	assert_slice(buf_slice(&out), SLICE("\1\4\0\7\0\0\0\0"));
	buf_release(&out);
}

static void
full_buffer_refuses_parameters(void **state)
{
	const struct slice pairs = SLICE("\1\1ab");

	(void)state;
	for (size_t max = 0; max <= 8 + 4 + 8; max++) {
		struct buf out;

		buf_init(&out, max);
		assert_int_equal(fcgi_params_put(&out, 1, pairs) == 0, max == 8 + 4 + 8);
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_cut_at_any_two_places_is_the_same),
		cmocka_unit_test(stream_byte_by_byte_is_the_same),
		cmocka_unit_test(reader_knows_whether_it_is_between_records),
		cmocka_unit_test(record_lengths_at_the_borders_are_read),
		cmocka_unit_test(other_version_is_bad_at_its_first_byte_and_for_good),
		cmocka_unit_test(any_mutation_of_a_stream_is_survived),
		cmocka_unit_test(bodies_of_begin_and_end_survive_the_wire),
		cmocka_unit_test(pairs_of_any_length_survive_the_wire),
		cmocka_unit_test(empty_slices_without_memory_are_pairs_too),
		cmocka_unit_test(random_lists_of_pairs_survive_the_wire),
		cmocka_unit_test(long_form_of_a_short_length_is_taken),
		cmocka_unit_test(lengths_beyond_the_end_are_refused),
		cmocka_unit_test(list_cut_anywhere_but_between_pairs_is_refused),
		cmocka_unit_test(any_mutation_of_a_list_stays_within_it),
		cmocka_unit_test(full_buffer_takes_no_part_of_a_pair),
		cmocka_unit_test(length_of_more_than_31_bits_is_refused),
		cmocka_unit_test(pair_is_never_split_over_records),
		cmocka_unit_test(pair_that_fits_no_record_is_refused),
		cmocka_unit_test(no_pairs_are_the_empty_record),
		cmocka_unit_test(full_buffer_refuses_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
