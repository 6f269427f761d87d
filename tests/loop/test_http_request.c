/* http_request.h: which requests are taken, and how they are understood. */
#include "../../src/loop/http_request.h"
#include "../unit.h"

static void
head_ends_behind_its_empty_line(void **state)
{
	static const struct {
		const char *input;
		size_t len;
	} rows[] = {
		{ "", 0 },
		{ "GET / HTTP/1.0", 0 },
		{ "GET / HTTP/1.0\r\n", 0 },
		{ "GET / HTTP/1.0\r\n\r", 0 },
		{ "GET / HTTP/1.0\r\n\r\n", 18 },
		{ "GET / HTTP/1.0\r\n\r\nGET", 18 },
		{ "GET / HTTP/1.0\n\n", 16 },
		{ "GET / HTTP/1.0\nA: b\r\n\nx", 22 },
		{ "\r\n", 2 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice input = exact_copy(slice_of(rows[i].input));

		assert_row(http_head_len(input) == rows[i].len, "%s", rows[i].input);
		exact_free(input);
	}
}

static void
sound_requests_are_understood(void **state)
{
	static const struct {
		const char *head, *path;
		bool is_head, is_1_0, keep;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "/", false, false, true },
		{ "HEAD / HTTP/1.1\r\n\r\n", "/", true, false, true },
		{ "GET /a?b#c HTTP/1.0\n\n", "/a", false, true, false },
		{ "GET /a#b?c HTTP/1.0\n\n", "/a", false, true, false },
		{ "GET http://h:1 HTTP/1.1\r\n\r\n", "/", false, false, true },
		{ "GET http://h/x?y HTTP/1.1\r\n\r\n", "/x", false, false, true },
		{ "GET /%00 HTTP/1.1\r\n\r\n", "/%00", false, false, true },
		{ "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "/", false, false, false },
		{ "GET / HTTP/1.1\r\nconnection: x , CLOSE\r\n\r\n", "/", false, false, false },
		{ "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "/", false, true, true },
		{ "GET / HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n", "/", false, false, true },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice head = exact_copy(slice_of(rows[i].head));
		struct http_request request;

		assert_row(http_parse(head, &request) == 0, "%s", rows[i].head);
		assert_slice(request.path, slice_of(rows[i].path));
		assert_row(request.is_head == rows[i].is_head, "%s", rows[i].head);
		assert_row(request.is_1_0 == rows[i].is_1_0, "%s", rows[i].head);
		assert_row(request.keep == rows[i].keep, "%s", rows[i].head);
		exact_free(head);
	}
}

static void
others_are_refused_with_their_status(void **state)
{
	static const struct {
		const char *head;
		unsigned status;
	} rows[] = {
		{ "\r\n", 400 },
		{ "GET\r\n\r\n", 400 },
		{ "GET /\r\n\r\n", 400 },
		{ "GET  HTTP/1.1\r\n\r\n", 400 },
		{ "GET  / HTTP/1.1\r\n\r\n", 400 },
		{ "GET / FTP/1.1\r\n\r\n", 400 },
		{ "GET x HTTP/1.1\r\n\r\n", 400 },
		{ "GET * HTTP/1.1\r\n\r\n", 400 },
		{ "GET ftp://h/ HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\x01 HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nA\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n: b\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nA : b\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n\r\n", 405 },
		{ "get / HTTP/1.1\r\n\r\n", 405 },
		{ "GETX / HTTP/1.1\r\n\r\n", 405 },
		{ "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 413 },
		{ "GET / HTTP/1.1\r\ncontent-length: 00\r\n\r\n", 413 },
		{ "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413 },
		{ "GET / HTTP/2.0\r\n\r\n", 505 },
		{ "GET / HTTP/1.10\r\n\r\n", 505 },
		{ "GET / HTTP/1.\r\n\r\n", 505 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice head = exact_copy(slice_of(rows[i].head));
		struct http_request request;
		const unsigned status = http_parse(head, &request);

		assert_row(status == rows[i].status, "%s: %u", rows[i].head, status);
		exact_free(head);
	}
}

static void
parse_mutant(void *context, struct slice mutant)
{
	const size_t len = http_head_len(mutant);
	struct http_request request;

	(void)context;
	assert_true(len <= mutant.len);
	if (http_parse(slice_first(mutant, len), &request) == 0)
		assert_true(request.path.len > 0 && request.path.ptr[0] == '/');
}

static void
no_byte_in_a_head_does_harm(void **state)
{
	(void)state;
	each_mutation(SLICE("GET http://h/p?q HTTP/1.1\r\nConnection: a, close\r\nB:c\r\n\r\n"),
		parse_mutant, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_ends_behind_its_empty_line),
		cmocka_unit_test(sound_requests_are_understood),
		cmocka_unit_test(others_are_refused_with_their_status),
		cmocka_unit_test(no_byte_in_a_head_does_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
