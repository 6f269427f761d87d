/* SCGI: how a request is put, and when its answer is whole. */
#include "single.h"

#include "weir/fcgi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the server has read, whole: the script may be looked at when its connection has ended. */
struct request {
	char head[1024 * 1024], body[4096];
	size_t head_len, body_len;
	const char *answer;
};

static bool
read_exactly(int fd, char *to, size_t len)
{
	while (len > 0) {
		const ssize_t n = read(fd, to, len);

		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
	}
	return true;
}

/* "LENGTH:" NAME NUL VALUE NUL ... "," and as much of a body as the first pair says. */
static bool
read_request(int fd, struct request *request)
{
	char c, comma;

	request->head_len = 0;
	while (read_exactly(fd, &c, 1) && c >= '0' && c <= '9')
		request->head_len = request->head_len * 10 + (size_t)(c - '0');
	if (c != ':' || request->head_len >= sizeof request->head ||
		!read_exactly(fd, request->head, request->head_len) ||
		!read_exactly(fd, &comma, 1) || comma != ',' ||
		strcmp(request->head, "CONTENT_LENGTH") != 0)
		return false;
	request->body_len = strtoul(request->head + sizeof "CONTENT_LENGTH", NULL, 10);
	return request->body_len < sizeof request->body &&
		read_exactly(fd, request->body, request->body_len);
}

static void
answers_scgi(struct app_conn *conn)
{
	struct request *request = conn->context;

	if (read_request(conn->fd, request))
		(void)app_send(conn, slice_of(request->answer));
}

static void
ask(struct talk *talk, struct request *request, const char *const *pairs, const char *body)
{
	talk_type = BACKEND_SCGI;
	backend_pool_release(pool);
	pool = talk_pool_of_one();
	serve_with_context(answers_scgi, request);
	assert_true(talk_start(talk, pool, pairs));
	exchange_body(talk->exchange, slice_of(body));
	exchange_body_end(talk->exchange);
	talk_finish(talk);
	fake_app_stop(app);
	app = NULL;
	(void)unlink(directory_path(&directory, "s").text);
}

static void
a_request_is_a_netstring_and_its_body(void **state)
{
	static const char *const pairs[] = { "REQUEST_METHOD", "POST", "HTTP_PROXY", "evil:1",
		"SCGI", "7", "CONTENT_LENGTH", "5", "QUERY_STRING", "", NULL };
	static const char expected[] = "CONTENT_LENGTH\0005\0SCGI\0001\0REQUEST_METHOD\0POST\0"
				       "QUERY_STRING\0";
	struct request request = { .answer = USUAL_ANSWER };
	struct talk talk;

	(void)state;
	ask(&talk, &request, pairs, "hello");
	assert_usual(&talk);
	assert_slice(
		slice_make(request.head, request.head_len), slice_make(expected, sizeof expected));
	assert_slice(slice_make(request.body, request.body_len), SLICE("hello"));
	talk_release(&talk);
}

/* "Duplicate names are not allowed in the headers." */
static void
no_name_comes_twice_and_the_last_counts(void **state)
{
	static const char *const pairs[] = { "HTTP_COOKIE", "first", "A", "b", "HTTP_COOKIE",
		"second", "HTTP_COOKIE", "last", NULL };
	static const char expected[] = "CONTENT_LENGTH\0000\0SCGI\0001\0A\0b\0HTTP_COOKIE\0last";
	struct request request = { .answer = USUAL_ANSWER };
	struct talk talk;

	(void)state;
	ask(&talk, &request, pairs, "");
	assert_usual(&talk);
	assert_slice(
		slice_make(request.head, request.head_len), slice_make(expected, sizeof expected));
	talk_release(&talk);
}

/* A client may send as many fields as max_params lets through. */
static void
very_many_names_are_told_apart(void **state)
{
	enum { MANY = 30000 };
	static char names[MANY][16];
	static const char *pairs[2 * 2 * MANY + 1];
	static struct request request = { .answer = USUAL_ANSWER };
	const char **next = pairs;
	struct buf expected;
	struct talk talk;

	(void)state;
	bytes_init(&expected);
	bytes_add(&expected, slice_make("CONTENT_LENGTH\0000\0SCGI\0001", 24));
	/* Half of them come twice. */
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < MANY; i++) {
			(void)snprintf(names[i], sizeof names[i], "HTTP_X_%u", i);
			if (turn == 1 && i % 2 == 0)
				continue;
			*next++ = names[i];
			*next++ = turn == 0 ? "first" : "last";
			if (turn == 0 && i % 2 == 1)
				continue;
			bytes_add(&expected, slice_make(names[i], strlen(names[i]) + 1));
			bytes_add(&expected,
				turn == 0 ? slice_make("first", 6) : slice_make("last", 5));
		}
	}
	ask(&talk, &request, pairs, "");
	assert_usual(&talk);
	assert_slice(slice_make(request.head, request.head_len), buf_slice(&expected));
	buf_release(&expected);
	talk_release(&talk);
}

static void
without_a_body_the_length_is_said_all_the_same(void **state)
{
	static const char *const empty[] = { "CONTENT_LENGTH", "", "REQUEST_METHOD", "GET", NULL };
	static const char *const none[] = { "REQUEST_METHOD", "GET", NULL };
	static const char *const *const requests[] = { empty, none };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(requests); i++) {
		struct request request = { .answer = USUAL_ANSWER };
		struct talk talk;

		ask(&talk, &request, requests[i], "");
		assert_usual(&talk);
		assert_memory_equal(request.head, "CONTENT_LENGTH\0000\0SCGI\0001", 24);
		talk_release(&talk);
	}
}

static void
the_end_of_the_connection_ends_what_has_no_length(void **state)
{
	static const struct {
		const char *answer;
		enum exchange_result result;
	} rows[] = {
		{ "X: y\r\n\r\n", EXCHANGE_COMPLETE },
		{ "X: y\r\n\r\nabc", EXCHANGE_COMPLETE },
		{ "Content-Length: 3\r\n\r\nabc", EXCHANGE_COMPLETE },
		{ "Content-Length: 3\r\n\r\nab", EXCHANGE_TRUNCATED },
		{ "Content-Length: 3\r\n\r\nabcd", EXCHANGE_SURPLUS },
		{ "", EXCHANGE_CLOSED },
		{ "X: y\r\n", EXCHANGE_BAD_HEAD },
		{ "hello\n", EXCHANGE_BAD_HEAD },
		{ "no head\r\n\r\n", EXCHANGE_BAD_HEAD },
		{ "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", EXCHANGE_BAD_HEAD },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct request request = { .answer = rows[i].answer };
		struct talk talk;

		ask(&talk, &request, NULL, "");
		assert_row(talk.result == rows[i].result, "\"%s\": %s: %s", rows[i].answer,
			exchange_result_names[talk.result], talk.why);
		talk_release(&talk);
	}
}

/* It would end a value, and what follows would be a parameter of the client's choice. */
static void
a_zero_byte_is_not_sent(void **state)
{
	static const char *const names[][2] = { { "PATH_INFO", "/a" }, { "HTTP_A", "b" } };

	(void)state;
	talk_type = BACKEND_SCGI;
	backend_pool_release(pool);
	pool = talk_pool_of_one();
	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		for (unsigned in_name = 0; in_name < 2; in_name++) {
			const struct slice zero = slice_make("x\0REMOTE_USER\0root", 18);
			const struct slice text = slice_of(names[i][in_name == 0 ? 0 : 1]);
			struct talk talk;
			struct buf params;

			bytes_init(&params);
			assert_int_equal(fcgi_pair_put(&params, in_name ? zero : text,
						 in_name ? text : zero),
				0);
			assert_false(talk_start_raw(&talk, pool, buf_slice(&params)));
			assert_int_equal(talk.result, EXCHANGE_UNTAKEN);
			assert_non_null(strstr(talk.why, "zero byte"));
			buf_release(&params);
			talk_release(&talk);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_a_netstring_and_its_body),
		TEST(no_name_comes_twice_and_the_last_counts),
		TEST(very_many_names_are_told_apart),
		TEST(without_a_body_the_length_is_said_all_the_same),
		TEST(the_end_of_the_connection_ends_what_has_no_length),
		TEST(a_zero_byte_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
