/*
 * What libfcgi makes of a head, and what is made of that: it reports success for some heads that
 * were cut short, which the front never hands over, and which must be refused all the same.
 */
#include "../lib/fcgi_peer.h"
#include "../unit.h"

#include "../../src/front/conn.h"

#include <sys/mman.h>
#include <unistd.h>

static const char *const own[] = { "REQUEST_METHOD", "GET", "REMOTE_ADDR", "192.0.2.1", NULL };

static void
put_whole(struct buf *out, const char *const *params)
{
	struct buf pairs;

	bytes_init(&pairs);
	put_pairs(&pairs, params);
	put_begin(out, 1, FCGI_RESPONDER, FCGI_KEEP_CONN);
	put_record(out, FCGI_PARAMS, 1, buf_slice(&pairs), 0);
	put_record(out, FCGI_PARAMS, 1, SLICE(""), 0);
	buf_release(&pairs);
}

static enum head_result
read_bytes(struct slice bytes, struct front_request *request)
{
	struct err err = { .text = "" };
	int file = memfd_create("test", MFD_CLOEXEC);

	assert_true(file >= 0);
	assert_int_equal(write(file, bytes.ptr, bytes.len), bytes.len);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	*request = (struct front_request){ .role = FRONT_RESPONDER };
	arena_init(&request->arena, 65536);
	const int kept = file;
	const enum head_result result = libfcgi_read(&file, request, &err);

	/* Either it is still ours, or libfcgi has closed it. */
	assert_true(file == kept || file == -1);
	assert_int_equal(close(kept), file == kept ? 0 : -1);
	assert_true(result == HEAD_SOUND || err.text[0] != '\0');
	return result;
}

static void
head_cut_anywhere_is_refused(void **state)
{
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_whole(&bytes, own);
	for (size_t cut = 0; cut < bytes.len; cut++) {
		struct front_request request;

		assert_row(read_bytes(slice_first(buf_slice(&bytes), cut), &request) == HEAD_BAD,
			"cut at %zu", cut);
		arena_release(&request.arena);
	}
	buf_release(&bytes);
}

/* The file is used again and again: behind a short head stands what is left of longer ones. */
static void
what_stands_behind_a_head_is_no_part_of_it(void **state)
{
	static const char *const others[] = { "REMOTE_USER", "someone else", NULL };
	struct buf bytes;
	struct front_request request;

	(void)state;
	bytes_init(&bytes);
	put_whole(&bytes, own);
	put_whole(&bytes, others);
	assert_int_equal(read_bytes(buf_slice(&bytes), &request), HEAD_SOUND);
	assert_string_equal(request.env[0], "REQUEST_METHOD=GET");
	assert_string_equal(request.env[1], "REMOTE_ADDR=192.0.2.1");
	assert_null(request.env[2]);
	arena_release(&request.arena);
	buf_release(&bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_cut_anywhere_is_refused),
		cmocka_unit_test(what_stands_behind_a_head_is_no_part_of_it),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
