/* Management records: answered, wherever they come, and however many. */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- management records ---- */

static int64_t
value_of(const struct record *record, const char *name)
{
	const size_t len = strlen(name);
	const char *at = memmem(record->content, record->len, name, len);
	char digits[24] = "";

	if (at == NULL)
		return -1;
	const size_t value_len = record->len - (size_t)(at + len - (const char *)record->content);

	memcpy(digits, at + len, value_len < 20 ? value_len : 20);
	return strtoll(digits, NULL, 10);
}

static void
put_get_values(struct buf *out, const char *const *names, unsigned times)
{
	struct buf pairs;

	bytes_init(&pairs);
	for (unsigned i = 0; i < times; i++) {
		for (size_t j = 0; names[j] != NULL; j++)
			put_pair(&pairs, slice_of(names[j]), SLICE(""));
	}
	put_record(out, FCGI_GET_VALUES, 0, buf_slice(&pairs), 3);
	buf_release(&pairs);
}

static void
get_values_is_answered_however_often_a_name_comes(void **state)
{
	static const char *const names[] = { FCGI_MAX_CONNS, "UNKNOWN", FCGI_MAX_REQS,
		FCGI_MPXS_CONNS, NULL };
	static const unsigned times[] = { 0, 1, 4, 40, 70 };
	static struct record record;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(times); i++) {
		const int fd = rig_connect(&rig);
		struct buf bytes;

		bytes_init(&bytes);
		put_get_values(&bytes, names, times[i]);
		assert_true(socket_send(fd, buf_slice(&bytes)));
		/* At once: nothing follows. */
		assert_int_equal(read_record(fd, &record), GOT_RECORD);
		assert_int_equal(record.type, FCGI_GET_VALUES_RESULT);
		assert_int_equal(record.id, 0);
		if (times[i] > 0) {
			assert_int_equal(value_of(&record, FCGI_MAX_CONNS), 4000);
			assert_int_equal(value_of(&record, FCGI_MAX_REQS), 77);
			assert_int_equal(value_of(&record, FCGI_MPXS_CONNS), 0);
			assert_int_equal(value_of(&record, "UNKNOWN"), -1);
			assert_true(record.len < 100);
		} else {
			assert_int_equal(record.len, 0);
		}
		buf_release(&bytes);
		(void)close(fd);
	}
}

static void
management_records_may_come_anywhere_in_a_request(void **state)
{
	static const char *const names[] = { FCGI_MAX_CONNS, NULL };
	struct buf request;

	(void)state;
	bytes_init(&request);
	put_usual(&request);
	/* Behind each of its records. */
	for (size_t at = 0; at <= request.len;) {
		const int fd = rig_connect(&rig);
		struct buf bytes;
		struct answer answer;

		bytes_init(&bytes);
		bytes_add(&bytes, slice_first(buf_slice(&request), at));
		put_get_values(&bytes, names, 1);
		put_record(&bytes, 99, 0, SLICE("never a part of the body"), 5);
		bytes_add(&bytes, slice_skip(buf_slice(&request), at));
		assert_true(socket_send(fd, buf_slice(&bytes)));
		answer_read(&answer, fd, 1);
		/* Their two answers are strays to it. */
		assert_usual_body(&answer);
		assert_true(answer.strays == 2 || at == request.len);
		answer_release(&answer);
		buf_release(&bytes);
		(void)close(fd);
		if (at == request.len)
			break;
		const uint8_t *head = (const uint8_t *)request.data + at;

		at += 8 + (size_t)(head[4] << 8 | head[5]) + head[6];
	}
	buf_release(&request);
}

static void
unknown_management_type_is_named(void **state)
{
	static struct record record;

	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		const int fd = rig_connect(&rig);
		struct buf bytes;

		if (type == FCGI_GET_VALUES)
			continue;
		bytes_init(&bytes);
		put_record(&bytes, (uint8_t)type, 0, SLICE("content"), 1);
		assert_true(socket_send(fd, buf_slice(&bytes)));
		assert_int_equal(read_record(fd, &record), GOT_RECORD);
		assert_int_equal(record.type, FCGI_UNKNOWN_TYPE);
		assert_int_equal(record.len, 8);
		assert_int_equal(record.content[0], type);
		buf_release(&bytes);
		(void)close(fd);
	}
}

static void
endless_management_record_ends_the_connection(void **state)
{
	static char zeros[60000];
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_record(&bytes, FCGI_GET_VALUES, 0, slice_make(zeros, sizeof zeros), 0);
	(void)socket_send(fd, buf_slice(&bytes));
	(void)socket_read_to_end(fd);
	buf_release(&bytes);
	(void)close(fd);
	assert_soon(rig_connections() == 0);
	assert_rig_serves(&rig);
}

/* A peer that asks and asks and never reads costs a bounded queue: it is read no further than its
 * answers leave, anywhere in a request. */
static void
answers_to_management_records_that_nobody_reads_are_bounded(void **state)
{
	enum { RECORDS = 300000 };
	static struct record record;

	(void)state;
	for (unsigned in_body = 0; in_body < 2; in_body++) {
		const int fd = rig_connect(&rig);
		const int flags = fcntl(fd, F_GETFL);
		struct buf bytes;

		bytes_init(&bytes);
		if (in_body != 0)
			put_head(&bytes,
				&(const struct request_spec){ .params = usual, .keep = true });
		const size_t head = bytes.len;

		for (unsigned i = 0; i < RECORDS; i++)
			put_record(&bytes, FCGI_GET_VALUES, 0, SLICE(""), 0);
		assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
		struct slice rest = buf_slice(&bytes);

		for (unsigned quiet = 0; quiet < 200; quiet++) {
			const ssize_t n = send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);

			assert_true(n >= 0 || errno == EAGAIN);
			rest = slice_skip(rest, n > 0 ? (size_t)n : 0);
			(void)poll(NULL, 0, 1);
		}
		assert_true(rest.len > bytes.len / 4);
		assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
		/* As it reads, it is answered: none is lost. */
		for (size_t left = (bytes.len - rest.len - head) / 8; left > 0; left--) {
			assert_int_equal(read_record(fd, &record), GOT_RECORD);
			assert_int_equal(record.type, FCGI_GET_VALUES_RESULT);
		}
		buf_release(&bytes);
		(void)close(fd);
		assert_rig_serves(&rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(get_values_is_answered_however_often_a_name_comes),
		TEST(management_records_may_come_anywhere_in_a_request),
		TEST(endless_management_record_ends_the_connection),
		TEST(answers_to_management_records_that_nobody_reads_are_bounded),
		TEST(unknown_management_type_is_named),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
