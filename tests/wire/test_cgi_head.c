/* cgi_head.h: response heads. */
#include "../unit.h"
#include "weir/cgi_head.h"

#include <stdio.h>

enum { ARENA_MAX = 1 << 20 };

/* One response head being read. */
struct reading {
	struct arena arena;
	struct cgi_head_reader reader;
	struct cgi_head head;
	struct err err;
	enum cgi_head_result result;
	struct slice rest; /* of the last input */
};

static void
begin(struct reading *reading)
{
	*reading = (struct reading){ .result = CGI_HEAD_MORE };
	arena_init(&reading->arena, ARENA_MAX);
	cgi_head_reader_init(&reading->reader, &reading->arena);
}

static void
end(struct reading *reading)
{
	cgi_head_reader_release(&reading->reader);
	arena_release(&reading->arena);
}

static void
read_more(struct reading *reading, struct slice input)
{
	reading->rest = input;
	reading->result =
		cgi_head_read(&reading->reader, &reading->rest, &reading->head, &reading->err);
	switch (reading->result) {
	case CGI_HEAD_MORE:
		assert_int_equal(reading->rest.len, 0);
		break;
	case CGI_HEAD_DONE:
		assert_in_range(reading->head.status, 200, 599);
		assert_true(reading->head.reason.len > 0);
		break;
	case CGI_HEAD_BAD:
		assert_true(reading->err.text[0] != '\0');
		break;
	}
}

/* What became of an input: "MORE", "BAD", or the head's normal form and what follows it. */
struct outcome {
	struct buf text;
};

static void
put(struct outcome *outcome, struct slice s)
{
	assert_int_equal(buf_append_slice(&outcome->text, s), 0);
}

/* Reads `input` in pieces that end at the cuts, each gone before the next comes. */
static struct outcome
outcome_of(struct slice input, const size_t *cuts, size_t cut_count)
{
	struct reading reading;
	struct outcome outcome;
	size_t at = 0;

	buf_init(&outcome.text, 400000);
	begin(&reading);
	for (size_t i = 0; i <= cut_count && reading.result == CGI_HEAD_MORE; i++) {
		const size_t to = i == cut_count ? input.len : cuts[i];
		const struct slice piece = exact_copy(slice_make(input.ptr + at, to - at));

		read_more(&reading, piece);
		at = to;
		if (reading.result == CGI_HEAD_DONE) {
			assert_int_equal(
				cgi_head_write(&reading.head, SLICE(""), &outcome.text), 0);
			put(&outcome, reading.rest);
			put(&outcome, slice_skip(input, at));
		}
		exact_free(piece);
	}
	if (reading.result != CGI_HEAD_DONE)
		put(&outcome, slice_of(reading.result == CGI_HEAD_BAD ? "BAD" : "MORE"));
	end(&reading);
	return outcome;
}

static void
assert_outcome(struct slice input, struct slice expected)
{
	struct outcome outcome = outcome_of(input, NULL, 0);

	if (!slice_is(buf_slice(&outcome.text), expected))
		print_error("of \"%.*s\":\n", (int)input.len, input.ptr);
	assert_slice(buf_slice(&outcome.text), expected);
	buf_release(&outcome.text);
}

/* ---- forms ---- */

#define ROW(input, expected)                                                                       \
	{                                                                                          \
		{ input, sizeof(input) - 1 },                                                      \
		{                                                                                  \
			expected, sizeof(expected) - 1                                             \
		}                                                                                  \
	}

struct row {
	struct slice input, expected;
};

#define OK "Status: 200 OK\r\n"

static const struct row forms[] = {
	/* Line ends. */
	ROW("A: b\n\nbody", OK "A: b\r\n\r\nbody"),
	ROW("A: b\r\n\r\nbody", OK "A: b\r\n\r\nbody"),
	ROW("A: b\r\n\nbody", OK "A: b\r\n\r\nbody"),
	ROW("A: b\nC: d\r\n\r\n\r\nbody", OK "A: b\r\nC: d\r\n\r\n\r\nbody"),
	ROW("A: b\n\n", OK "A: b\r\n\r\n"),
	/* Status. */
	ROW("Status: 429\nA: b\n\n", "Status: 429 Too Many Requests\r\nA: b\r\n\r\n"),
	ROW("A: b\nStatus: 404 Not Found\n\n", "Status: 404 Not Found\r\nA: b\r\n\r\n"),
	ROW("status:200\n\n", OK "\r\n"),
	ROW("STATUS :  299  Weird  Reason \n\n", "Status: 299 Weird  Reason\r\n\r\n"),
	ROW("Status: 299\n\n", "Status: 299 Success\r\n\r\n"),
	ROW("Status: 404\tGone\n\n", "Status: 404 Gone\r\n\r\n"),
	ROW("Status: 404 \xe9t\xe9\n\n", "Status: 404 \xe9t\xe9\r\n\r\n"),
	ROW("Status: 404\nStatus: 200 OK\n\n", "Status: 404 Not Found\r\n\r\n"),
	ROW("Status: abc\nStatus: 404\n\n", "Status: 404 Not Found\r\n\r\n"),
	ROW("Status: 404\nStatus: abc\n\n", "Status: 404 Not Found\r\n\r\n"),
	/* Location. */
	ROW("Location: http://x/\n\n", "Status: 302 Found\r\nLocation: http://x/\r\n\r\n"),
	ROW("location: /x\nA: b\n\n", "Status: 302 Found\r\nlocation: /x\r\nA: b\r\n\r\n"),
	ROW("Location: /x\nStatus: 201\n\n", "Status: 201 Created\r\nLocation: /x\r\n\r\n"),
	ROW("Location: /x\ry\nA: b\n\n", OK "A: b\r\n\r\n"),
	/* Programs that write a status line. */
	ROW("HTTP/1.1 418 I'm a teapot\nA: b\n\n", "Status: 418 I'm a teapot\r\nA: b\r\n\r\n"),
	ROW("HTTP/1.0 404\r\n\r\n", "Status: 404 Not Found\r\n\r\n"),
	ROW("HTTP/2 200 \nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("HTTP/1.1 404 Not Found\nStatus: 200\n\n", "Status: 404 Not Found\r\n\r\n"),
	ROW("HTTP/1.1 abc\nStatus: 404\n\n", "Status: 404 Not Found\r\n\r\n"),
	ROW("A: b\nHTTP/1.1 404 Not Found\n\n", OK "A: b\r\n\r\n"),
	/* Interim responses. */
	ROW("Status: 103\nLink: x\n\nStatus: 200\nA: b\n\nbody", OK "A: b\r\n\r\nbody"),
	ROW("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nA: b\r\n\r\n",
		"Status: 404 Not Found\r\nA: b\r\n\r\n"),
	ROW("Status: 100\n\nStatus: 103\nA: b\n\nC: d\n\n", OK "C: d\r\n\r\n"),
	ROW("Status: 103\nContent-Length: 5\n\nContent-Length: 6\n\n",
		OK "Content-Length: 6\r\n\r\n"),
	ROW("Status: 103\n\n", "MORE"),
	ROW("Status: 103\n\nA: b\n", "MORE"),
	/* Folded lines. */
	ROW("A: b\n c\n\n", OK "A: b c\r\n\r\n"),
	ROW("A: b  \r\n\t  c \r\n d\r\nE: f\r\n\r\n", OK "A: b c d\r\nE: f\r\n\r\n"),
	ROW("A:\n b\n\n", OK "A: b\r\n\r\n"),
	ROW("A: b\n \n\t\r\n c\n\n", OK "A: b c\r\n\r\n"),
	ROW("A: b\n Set-Cookie: c\n\n", OK "A: b Set-Cookie: c\r\n\r\n"),
	ROW("Status: 404\n Not\n Found\n\n", "Status: 404 Not Found\r\n\r\n"),
	ROW(" A: b\nC: d\n\n", OK "C: d\r\n\r\n"),
	ROW("\tA: b\n C: d\nE: f\n\n", OK "E: f\r\n\r\n"),
	ROW("A: b\n c\rd\nE: f\n\n", OK "E: f\r\n\r\n"),
	/* Blanks. */
	ROW("A : b\n\n", OK "A: b\r\n\r\n"),
	ROW("A \t :\t b \t\n\n", OK "A: b\r\n\r\n"),
	ROW("A:b\n\n", OK "A: b\r\n\r\n"),
	ROW("A:\n\n", OK "A: \r\n\r\n"),
	ROW("A: b\tc : d\n\n", OK "A: b\tc : d\r\n\r\n"),
	/* What is no field. */
	ROW("hello\nA: b\nworld\n\n", OK "A: b\r\n\r\n"),
	ROW(": b\nC: d\n\n", OK "C: d\r\n\r\n"),
	ROW("A b: c\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A(b): c\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A\x7f: c\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A: b\0c\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A\0: b\nD: e\n\n", OK "D: e\r\n\r\n"),
	/* A bare CR neither ends a line nor passes. */
	ROW("A: b\rSet-Cookie: c\r\nD: e\r\n\r\n", OK "D: e\r\n\r\n"),
	ROW("A: b\r\rbody: x\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A: b\r\r\nD: e\n\n", OK "D: e\r\n\r\n"),
	ROW("A: b\rC: d\r\r", "MORE"),
	ROW("A: b\n\r\r\nC: d\n\n", OK "A: b\r\nC: d\r\n\r\n"),
	/* What belongs to the connection. */
	ROW("Connection: close\nA: b\nKeep-Alive: timeout=5\n\n", OK "A: b\r\n\r\n"),
	ROW("Proxy-Connection: close\nTE: trailers\nA: b\ntrailer: X\n\n", OK "A: b\r\n\r\n"),
	ROW("Status: 426\nUpgrade: h2c\n\n",
		"Status: 426 Upgrade Required\r\nUpgrade: h2c\r\n\r\n"),
	ROW("connection: x\rhy\n\n", OK "\r\n"),
	ROW("Transfer-Encoding: chunked\n\n2\r\nok", OK "\r\n2\r\nok"),
	ROW("transfer-encoding:CHUNKED\nA: b\n\n", OK "A: b\r\n\r\n"),
	/* Lengths. */
	ROW("Content-Length: 0\n\n", OK "Content-Length: 0\r\n\r\n"),
	ROW("Content-Length: 007\n\n", OK "Content-Length: 007\r\n\r\n"),
	ROW("Content-Length: 9223372036854775807\n\n",
		OK "Content-Length: 9223372036854775807\r\n\r\n"),
	ROW("Content-Length: 5\nA: b\ncontent-length: 5\n\n",
		OK "Content-Length: 5\r\nA: b\r\n\r\n"),
	ROW("Content-Length: 5\nContent-Length: 05\n\n", OK "Content-Length: 5\r\n\r\n"),
	ROW("Content-Length: 5\nContent-Length: x\n\n", OK "Content-Length: 5\r\n\r\n"),
	ROW("Content-Length: -1\nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("Content-Length: 1e3\nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("Content-Length: 5, 5\nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("Content-Length:\nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("Content-Length: 9223372036854775808\nA: b\n\n", OK "A: b\r\n\r\n"),
	ROW("Content-Length: x\nTransfer-Encoding: chunked\n\n", OK "\r\n"),
	/* Repeated fields. */
	ROW("Set-Cookie: a\nLink: b\nSet-Cookie: c\nLink: d\nSet-Cookie: a\n\n",
		OK "Set-Cookie: a\r\nLink: b\r\nSet-Cookie: c\r\nLink: d\r\nSet-Cookie: "
		   "a\r\n\r\n"),
	ROW("WWW-Authenticate: Basic\nWWW-Authenticate: Bearer\n\n",
		OK "WWW-Authenticate: Basic\r\nWWW-Authenticate: Bearer\r\n\r\n"),
	/* What is for the web server passes. */
	ROW("X-Sendfile: /srv/x\nX-Accel-Redirect: /y\nX-Accel-Buffering: no\n\n",
		OK "X-Sendfile: /srv/x\r\nX-Accel-Redirect: /y\r\nX-Accel-Buffering: "
		   "no\r\n\r\n"),
	/* No end. */
	ROW("", "MORE"),
	ROW("A: b", "MORE"),
	ROW("A: b\n", "MORE"),
	ROW("A: b\r\n\r", "MORE"),
	/* Bad. */
	ROW("\n", "BAD"),
	ROW("\r\nA: b\r\n\r\n", "BAD"),
	ROW("hello\n\n", "BAD"),
	ROW("<html>\nhello world\n\n<p>", "BAD"),
	ROW("A: b\rC: d\r\r\nbody\n\n", "BAD"),
	ROW("Status: 103\n\n\n", "BAD"),
	ROW("Status: abc\nA: b\n\n", "BAD"),
	ROW("Status: 99\nA: b\n\n", "BAD"),
	ROW("Status: 200OK\nA: b\n\n", "BAD"),
	ROW("Status: 600\n\n", "BAD"),
	ROW("Status: 2000\n\n", "BAD"),
	ROW("Status: -20\n\n", "BAD"),
	ROW("Status:\nLocation: /x\n\n", "BAD"),
	ROW("Status: 200 OK\rA: b\n\n", "BAD"),
	ROW("Status: 200 O\0K\n\n", "BAD"),
	ROW("HTTP/1.1 abc\nA: b\n\n", "BAD"),
	ROW("HTTP/1.1\nA: b\n\n", "BAD"),
	ROW("Content-Length: 5\nContent-Length: 6\n\n", "BAD"),
	ROW("Content-Length: 5\nTransfer-Encoding: chunked\n\n", "BAD"),
	ROW("Transfer-Encoding: chunked\nContent-Length: 0\n\n", "BAD"),
	ROW("Transfer-Encoding: gzip, chunked\n\n", "BAD"),
	ROW("Transfer-Encoding: gzip\n\n", "BAD"),
	ROW("Transfer-Encoding: chunked\rx\n\n", "BAD"),
	ROW("Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n", "BAD"),
};

static void
every_form_is_one_normal_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++)
		assert_outcome(forms[i].input, forms[i].expected);
}

static void
head_cut_at_every_byte_is_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		const struct slice input = forms[i].input;

		for (size_t one = 0; one <= input.len; one++) {
			for (size_t two = one; two <= input.len; two += 3) {
				const size_t cuts[] = { one, two };
				struct outcome outcome = outcome_of(input, cuts, 2);

				assert_slice(buf_slice(&outcome.text), forms[i].expected);
				buf_release(&outcome.text);
			}
		}
	}
}

static void
head_byte_by_byte_is_the_same(void **state)
{
	size_t cuts[200];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(cuts); i++)
		cuts[i] = i;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		const struct slice input = forms[i].input;
		struct outcome outcome;

		assert_true(input.len < LENGTH_OF(cuts));
		outcome = outcome_of(input, cuts, input.len);
		assert_slice(buf_slice(&outcome.text), forms[i].expected);
		buf_release(&outcome.text);
	}
}

static void
normal_form_is_read_as_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		if (slice_has_prefix(forms[i].expected, SLICE("Status")))
			assert_outcome(forms[i].expected, forms[i].expected);
	}
}

static void
what_the_head_says_is_told(void **state)
{
	struct reading reading;

	(void)state;
	begin(&reading);
	read_more(&reading,
		SLICE("Status: 404\nbad\nA b: c\nD: \x01\nContent-Length: x\nStatus: y\n"
		      "Content-Length: 12\n\nbody"));
	assert_int_equal(reading.result, CGI_HEAD_DONE);
	assert_int_equal(reading.head.status, 404);
	assert_int_equal(reading.head.content_length, 12);
	assert_false(reading.head.chunked);
	assert_int_equal(reading.head.dropped, 5);
	assert_int_equal(reading.head.field_count, 1);
	end(&reading);

	begin(&reading);
	read_more(&reading, SLICE("Transfer-Encoding: chunked\nA: b\n\n"));
	assert_int_equal(reading.result, CGI_HEAD_DONE);
	assert_int_equal(reading.head.content_length, -1);
	assert_true(reading.head.chunked);
	assert_int_equal(reading.head.dropped, 0);
	end(&reading);
}

/* ---- memory ---- */

static void
head_that_comes_whole_is_not_copied(void **state)
{
	const struct slice input = SLICE("Status: 200 Fine\r\nContent-Type: text/html\r\n"
					 "X-A: b\r\n\r\nbody");
	struct reading reading;

	(void)state;
	begin(&reading);
	read_more(&reading, input);
	assert_int_equal(reading.result, CGI_HEAD_DONE);
	assert_null(reading.reader.bytes.data);
	assert_int_equal(reading.head.field_count, 2);
	for (unsigned i = 0; i < reading.head.field_count; i++) {
		const struct cgi_field *field = &reading.head.fields[i];

		assert_true(field->name.ptr > input.ptr && field->name.ptr < input.ptr + input.len);
		assert_true(
			field->value.ptr > input.ptr && field->value.ptr < input.ptr + input.len);
	}
	/* Room for a field a line and nothing else. */
	assert_true(reading.arena.used <= 4 * sizeof(struct cgi_field) + 16);
	assert_ptr_equal(reading.rest.ptr, input.ptr + input.len - 4);
	end(&reading);
}

/* The body that came with the end of a head in pieces stays where it is. */
static void
no_byte_of_the_body_is_gathered(void **state)
{
	static char body[100000];
	struct reading reading;
	struct buf last;

	(void)state;
	memset(body, '\n', sizeof body);
	buf_init(&last, 200000);
	assert_int_equal(buf_append_slice(&last, SLICE("\nC: d\r\n\r\n")), 0);
	assert_int_equal(buf_append(&last, body, sizeof body), 0);
	begin(&reading);
	read_more(&reading, SLICE("A: b"));
	read_more(&reading, buf_slice(&last));
	assert_int_equal(reading.result, CGI_HEAD_DONE);
	assert_int_equal(reading.reader.bytes.len, 4 + 9);
	assert_int_equal(reading.rest.len, sizeof body);
	end(&reading);
	buf_release(&last);
}

/* A head of exactly `len` bytes. */
static void
put_head_of(struct buf *out, size_t len)
{
	static char value[CGI_HEAD_MAX + 1];

	memset(value, 'v', sizeof value);
	assert_int_equal(buf_printf(out, "A: %.*s\r\n\r\n", (int)(len - 7), value), 0);
}

static void
head_over_the_maximum_is_bad(void **state)
{
	static const size_t steps[] = { 1, 2, 1000, 65535, 65536, 65537, 100000 };

	(void)state;
	for (size_t over = 0; over <= 1; over++) {
		for (size_t i = 0; i < LENGTH_OF(steps); i++) {
			struct reading reading;
			struct buf head;

			buf_init(&head, 200000);
			put_head_of(&head, CGI_HEAD_MAX + over);
			begin(&reading);
			for (struct slice all = buf_slice(&head); all.len > 0;) {
				const struct slice piece = slice_first(all, steps[i]);

				assert_int_equal(reading.result, CGI_HEAD_MORE);
				read_more(&reading, piece);
				all = slice_skip(all, piece.len);
			}
			assert_int_equal(reading.result, over == 0 ? CGI_HEAD_DONE : CGI_HEAD_BAD);
			end(&reading);
			buf_release(&head);
		}
	}
}

static void
output_without_an_end_is_bad_at_the_maximum(void **state)
{
	static char text[CGI_HEAD_MAX + 1];

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		struct reading reading;

		for (size_t i = 0; i < sizeof text; i++)
			text[i] = "xxxx:\nxx\r "[kind == 0 ? 0 : kind == 1 ? i % 6 : i % 10];
		begin(&reading);
		read_more(&reading, slice_make(text, sizeof text));
		assert_int_equal(reading.result, CGI_HEAD_BAD);
		end(&reading);
		begin(&reading);
		read_more(&reading, slice_make(text, CGI_HEAD_MAX));
		assert_int_equal(reading.result, CGI_HEAD_MORE);
		read_more(&reading, SLICE(""));
		assert_int_equal(reading.result, CGI_HEAD_MORE);
		read_more(&reading, SLICE("\n"));
		assert_int_equal(reading.result, CGI_HEAD_BAD);
		assert_true(reading.reader.bytes.size <= 2 * CGI_HEAD_MAX);
		end(&reading);
	}
}

static void
interim_responses_count_for_the_maximum(void **state)
{
	static const char interim[] = "Status: 103\n\n";

	(void)state;
	for (size_t cut = 0; cut < sizeof interim; cut++) {
		struct reading reading;
		size_t passed = 0;

		begin(&reading);
		while (reading.result == CGI_HEAD_MORE && passed <= 2 * CGI_HEAD_MAX) {
			read_more(&reading, slice_make(interim, cut));
			if (reading.result == CGI_HEAD_MORE)
				read_more(&reading,
					slice_make(interim + cut, sizeof interim - 1 - cut));
			passed += sizeof interim - 1;
		}
		assert_int_equal(reading.result, CGI_HEAD_BAD);
		assert_in_range(passed, CGI_HEAD_MAX - 100, CGI_HEAD_MAX + 100);
		end(&reading);
	}
}

static void
fields_over_their_maximum_are_bad(void **state)
{
	(void)state;
	for (unsigned fields = CGI_FIELDS_MAX - 1; fields <= CGI_FIELDS_MAX + 1; fields++) {
		struct reading reading;
		struct buf head;

		buf_init(&head, CGI_HEAD_MAX);
		/* Lines that are no fields do not count. */
		assert_int_equal(buf_printf(&head, "Status: 404\nx\nConnection: close\n"), 0);
		for (unsigned i = 0; i < fields; i++)
			assert_int_equal(buf_printf(&head, "F%u: %u\n", i, i), 0);
		assert_int_equal(buf_printf(&head, "\n"), 0);
		begin(&reading);
		read_more(&reading, buf_slice(&head));
		assert_int_equal(
			reading.result, fields <= CGI_FIELDS_MAX ? CGI_HEAD_DONE : CGI_HEAD_BAD);
		if (reading.result == CGI_HEAD_DONE)
			assert_int_equal(reading.head.field_count, fields);
		end(&reading);
		buf_release(&head);
	}
}

static void
full_arena_makes_the_head_bad(void **state)
{
	bool done = false;

	(void)state;
	for (size_t max = 0; max < 1000; max++) {
		struct arena arena;
		struct cgi_head_reader reader;
		struct cgi_head head;
		struct slice input = SLICE("A: b\n c\nD: e\n f\n g\n\n");
		struct err err = { "" };

		arena_init(&arena, max);
		cgi_head_reader_init(&reader, &arena);
		const enum cgi_head_result result = cgi_head_read(&reader, &input, &head, &err);

		assert_true(result == CGI_HEAD_DONE || (result == CGI_HEAD_BAD && !done));
		done = result == CGI_HEAD_DONE;
		cgi_head_reader_release(&reader);
		arena_release(&arena);
	}
	assert_true(done);
}

/* ---- bytes ---- */

static void
only_three_digits_from_100_to_599_are_a_status(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 10000; n++) {
		char text[40];

		(void)snprintf(text, sizeof text, "Status: %u\nA: b\n\n", n);
		struct outcome outcome = outcome_of(slice_of(text), NULL, 0);
		const struct slice got = buf_slice(&outcome.text);

		if (n < 100 || n > 599) {
			assert_slice(got, SLICE("BAD"));
		} else if (n < 200) {
			assert_slice(got, SLICE("MORE"));
		} else {
			char expected[100];

			(void)snprintf(expected, sizeof expected, "Status: %u %s\r\nA: b\r\n\r\n",
				n, cgi_reason(n));
			assert_slice(got, slice_of(expected));
		}
		buf_release(&outcome.text);
	}
}

static void
names_are_tokens(void **state)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char text[] = "Xx: y\nA: b\n\n";
		struct reading reading;

		if (c == '\n' || c == ':')
			continue;
		text[1] = (char)c;
		begin(&reading);
		read_more(&reading, slice_make(text, sizeof text - 1));
		assert_int_equal(reading.result, CGI_HEAD_DONE);
		/* A blank stands before the colon here. */
		const bool is_taken =
			c == ' ' || c == '\t' || memchr(token, (int)c, sizeof token - 1) != NULL;

		assert_row(reading.head.field_count == (is_taken ? 2 : 1), "byte %u in a name", c);
		assert_int_equal(reading.head.dropped, is_taken ? 0 : 1);
		end(&reading);
	}
}

static void
values_have_no_control_characters_but_tab(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char text[] = "X: y-y\nA: b\n\n";
		struct reading reading;

		if (c == '\n')
			continue;
		text[4] = (char)c;
		begin(&reading);
		read_more(&reading, slice_make(text, sizeof text - 1));
		assert_int_equal(reading.result, CGI_HEAD_DONE);
		assert_row(
			reading.head.field_count == ((c >= ' ' && c != 0x7f) || c == '\t' ? 2 : 1),
			"byte %u in a value", c);
		end(&reading);
	}
}

/* Whatever comes out is one field a line, is read as itself, and does not depend on the cut. */
static void
check_outcome(void *context, struct slice input)
{
	const size_t cut = input.len / 2;
	struct outcome whole = outcome_of(input, NULL, 0);
	struct outcome cut_once = outcome_of(input, &cut, 1);
	const struct slice text = buf_slice(&whole.text);

	(void)context;
	assert_slice(buf_slice(&cut_once.text), text);
	if (slice_has_prefix(text, SLICE("Status: "))) {
		struct outcome again = outcome_of(text, NULL, 0);
		struct slice rest = text;

		assert_slice(buf_slice(&again.text), text);
		while (!slice_has_prefix(rest, SLICE("\r\n"))) {
			const size_t line_end = slice_find(rest, '\r');
			const struct slice line = slice_first(rest, line_end);

			assert_true(line_end + 1 < rest.len && rest.ptr[line_end + 1] == '\n');
			assert_true(slice_find(line, ':') > 0 && slice_find(line, ':') < line.len);
			assert_true(slice_find(line, '\n') == line.len);
			rest = slice_skip(rest, line_end + 2);
		}
		buf_release(&again.text);
	}
	buf_release(&whole.text);
	buf_release(&cut_once.text);
}

static void
any_mutation_of_a_head_is_normal_or_bad(void **state)
{
	static const char *const sound[] = {
		"Status: 404 Not Found\r\nSet-Cookie: a\r\n b\r\nContent-Length: 5\r\n\r\nx\n",
		"Status: 103\nLink: x\n\nHTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n",
		"A : b\n\tc\nLocation: /\n\n",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), check_outcome, NULL);
}

static void
random_heads_are_normal_or_bad(void **state)
{
	static const char *const parts[] = { "\n", "\r\n", "\n", "\r", " ", "\t", ":", ": ", "A",
		"Status: 200", "Status: 103", "Content-Length: ", "5", "6",
		"Transfer-Encoding: chunked", "Location: /", "HTTP/1.1 200 OK", "\n\n",
		"Connection" };
	uint64_t random = 14;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		char text[400];
		size_t len = 0;

		for (size_t n = random_below(&random, 12); n > 0; n--) {
			const char *part = parts[random_below(&random, LENGTH_OF(parts))];

			memcpy(text + len, part, strlen(part));
			len += strlen(part);
		}
		check_outcome(NULL, slice_make(text, len));
	}
}

/* ---- the head as a whole ---- */

static void
fields_are_found_and_removed_by_name(void **state)
{
	struct reading reading;
	struct buf out;

	(void)state;
	begin(&reading);
	read_more(&reading, SLICE("A: 1\nX-RateLimit: 2\nB: 3\nx-ratelimit: 4\nAA: 5\n\n"));
	assert_int_equal(reading.result, CGI_HEAD_DONE);
	assert_slice(cgi_head_find(&reading.head, SLICE("X-RATELIMIT"))->value, SLICE("2"));
	assert_null(cgi_head_find(&reading.head, SLICE("X-RateLimi")));
	assert_int_equal(cgi_head_remove(&reading.head, SLICE("X-Ratelimit")), 2);
	assert_int_equal(cgi_head_remove(&reading.head, SLICE("X-Ratelimit")), 0);
	assert_null(cgi_head_find(&reading.head, SLICE("X-RateLimit")));
	assert_int_equal(cgi_head_remove(&reading.head, SLICE("a")), 1);
	buf_init(&out, 1000);
	assert_int_equal(
		cgi_head_write(&reading.head, SLICE("X-RateLimit: 9\r\nRetry-After: 1\r\n"), &out),
		0);
	assert_slice(buf_slice(&out),
		SLICE(OK "B: 3\r\nAA: 5\r\nX-RateLimit: 9\r\nRetry-After: 1\r\n\r\n"));
	buf_release(&out);
	end(&reading);
}

static void
full_buffer_takes_no_part_of_a_head(void **state)
{
	struct reading reading;
	const struct slice whole = SLICE("before" OK "A: b\r\nC: d\r\nE: f\r\n\r\n");

	(void)state;
	begin(&reading);
	read_more(&reading, SLICE("A: b\nC: d\n\n"));
	for (size_t max = 6; max <= whole.len; max++) {
		struct buf out;

		buf_init(&out, max);
		assert_int_equal(buf_append(&out, "before", 6), 0);
		assert_int_equal(cgi_head_write(&reading.head, SLICE("E: f\r\n"), &out) == 0,
			max == whole.len);
		assert_slice(buf_slice(&out), max == whole.len ? whole : slice_first(whole, 6));
		buf_release(&out);
	}
	end(&reading);
}

static void
every_status_has_a_phrase(void **state)
{
	(void)state;
	for (unsigned status = 0; status < 1200; status++)
		assert_true(cgi_reason(status)[0] != '\0');
	assert_string_equal(cgi_reason(200), "OK");
	assert_string_equal(cgi_reason(429), "Too Many Requests");
	assert_string_equal(cgi_reason(431), "Request Header Fields Too Large");
	assert_string_equal(cgi_reason(503), "Service Unavailable");
	assert_string_equal(cgi_reason(199), "Informational");
	assert_string_equal(cgi_reason(299), "Success");
	assert_string_equal(cgi_reason(399), "Redirection");
	assert_string_equal(cgi_reason(499), "Client Error");
	assert_string_equal(cgi_reason(599), "Server Error");
	assert_string_equal(cgi_reason(600), "Unknown");
	assert_string_equal(cgi_reason(UINT32_MAX), "Unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_one_normal_form),
		cmocka_unit_test(head_cut_at_every_byte_is_the_same),
		cmocka_unit_test(head_byte_by_byte_is_the_same),
		cmocka_unit_test(normal_form_is_read_as_itself),
		cmocka_unit_test(what_the_head_says_is_told),
		cmocka_unit_test(head_that_comes_whole_is_not_copied),
		cmocka_unit_test(no_byte_of_the_body_is_gathered),
		cmocka_unit_test(head_over_the_maximum_is_bad),
		cmocka_unit_test(output_without_an_end_is_bad_at_the_maximum),
		cmocka_unit_test(interim_responses_count_for_the_maximum),
		cmocka_unit_test(fields_over_their_maximum_are_bad),
		cmocka_unit_test(full_arena_makes_the_head_bad),
		cmocka_unit_test(only_three_digits_from_100_to_599_are_a_status),
		cmocka_unit_test(names_are_tokens),
		cmocka_unit_test(values_have_no_control_characters_but_tab),
		cmocka_unit_test(any_mutation_of_a_head_is_normal_or_bad),
		cmocka_unit_test(random_heads_are_normal_or_bad),
		cmocka_unit_test(fields_are_found_and_removed_by_name),
		cmocka_unit_test(full_buffer_takes_no_part_of_a_head),
		cmocka_unit_test(every_status_has_a_phrase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
