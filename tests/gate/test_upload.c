/* Bodies whose length is not known until their end: stored, and passed on with a length. */
#include "serve.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define STORING "[weir]\nspool_directory = DIR\n"

/* The descriptors of files without a name in the rig's directory; *one is one of them. */
static unsigned
stored(int *one)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(all);
	while ((entry = readdir(all)) != NULL) {
		char target[256];
		const ssize_t n = readlinkat(dirfd(all), entry->d_name, target, sizeof target - 1);
		const struct slice path = slice_make(target, n < 0 ? 0 : (size_t)n);

		if (!slice_has_prefix(path, slice_of(rig.directory.path)) ||
			memmem(path.ptr, path.len, "(deleted)", 9) == NULL)
			continue;
		count++;
		if (one != NULL)
			*one = atoi(entry->d_name);
	}
	(void)closedir(all);
	return count;
}

/* So many bytes whose sum says whether all of them arrive. */
static bool
send_pattern(int fd, size_t len, uint64_t *sum)
{
	static char bytes[65536];
	struct buf records;
	bool taken = true;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 131 >> 3);
	*sum = 0;
	while (taken && len > 0) {
		const struct slice piece = slice_first(slice_make(bytes, sizeof bytes), len);

		for (size_t i = 0; i < piece.len; i++)
			*sum = *sum * 31 + (unsigned char)piece.ptr[i];
		bytes_init(&records);
		put_stream(&records, FCGI_STDIN, 1, piece, 32768);
		taken = socket_send(fd, buf_slice(&records));
		buf_release(&records);
		len -= piece.len;
	}
	return taken;
}

static unsigned
status_of(int fd)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	const unsigned status = answer_is_whole(&answer) ? answer_status(&answer) : 0;

	answer_release(&answer);
	return status;
}

/* ---- what passes ---- */

static void
body_is_passed_on_with_its_length(void **state)
{
	static const size_t sizes[] = { 1, 32768, 32769, 5000000 };

	(void)state;
	serve(STORING APP ALL, answers);
	for (unsigned i = 0; i < 2 * LENGTH_OF(sizes); i++) {
		const size_t len = sizes[i / 2];
		/* Apache says no length, nginx an empty one. */
		const int fd = begin(i % 2 == 0,
			(const char *const[]){ "HTTP_TRANSFER_ENCODING", "chunked", "HTTP_X", "1",
				i % 2 == 0 ? NULL : "CONTENT_LENGTH", "", NULL });
		char length[24];
		uint64_t sum;

		assert_true(send_pattern(fd, len, &sum));
		assert_soon(stored(NULL) == 1);
		assert_int_equal(fake_app_look(app).requests, i);
		assert_true(send_body(fd, 0, true));
		assert_int_equal(status_of(fd), 404);
		(void)snprintf(length, sizeof length, "%zu", len);
		assert_int_equal(fake_app_params(app, "CONTENT_LENGTH", NULL), 1);
		assert_int_equal(fake_app_params(app, "CONTENT_LENGTH", length), 1);
		assert_int_equal(fake_app_params(app, "HTTP_TRANSFER_ENCODING", NULL), 0);
		assert_int_equal(fake_app_params(app, "HTTP_X", "1"), 1);
		assert_int_equal(fake_app_look(app).body_len, len);
		assert_int_equal(fake_app_look(app).body_sum, sum);
		assert_true(fake_app_look(app).body_ended);
		assert_int_equal(stored(NULL), 0);
		(void)close(fd);
	}
}

/* An upload in chunks may be empty; a request that speaks of no body has none. */
static void
body_that_is_empty_has_a_length_if_one_was_announced(void **state)
{
	static const struct {
		const char *name, *value;
		unsigned announced;
	} rows[] = {
		{ "HTTP_X", "1", 0 },
		{ "CONTENT_LENGTH", "", 0 }, /* nginx, of each request without a body */
		{ "HTTP_TRANSFER_ENCODING", "chunked", 1 },
		{ "CONTENT_LENGTH", "-1", 1 }, /* Caddy */
	};

	(void)state;
	serve(STORING APP ALL, answers);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int fd =
			begin(false, (const char *const[]){ rows[i].name, rows[i].value, NULL });

		assert_true(send_body(fd, 0, true));
		assert_int_equal(status_of(fd), 404);
		assert_int_equal(fake_app_params(app, "CONTENT_LENGTH", "0"), rows[i].announced);
		assert_int_equal(fake_app_params(app, "CONTENT_LENGTH", "-1"), 0);
		assert_int_equal(fake_app_params(app, "HTTP_TRANSFER_ENCODING", NULL), 0);
		(void)close(fd);
	}
}

/* Reads when it is told to. */
static _Atomic bool may_read;

static void
reads_later(struct app_conn *conn)
{
	if (!app_read_params(conn))
		return;
	while (!may_read) {
		if (!app_linger(conn, 1))
			return;
	}
	if (app_read_body(conn))
		(void)app_answer(conn, SLICE("Status: 201\r\n\r\n"));
}

static void
application_reads_at_its_own_pace(void **state)
{
	uint64_t sum;

	(void)state;
	serve(STORING APP ALL, reads_later);
	may_read = false;
	const int fd = begin(false, NULL);

	assert_true(send_pattern(fd, 5000000, &sum));
	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	/* Others are served meanwhile. */
	fake_app_set_script(app, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	assert_int_equal(stored(NULL), 1);
	may_read = true;
	assert_int_equal(status_of(fd), 201);
	(void)close(fd);
}

static void
answers_early(struct app_conn *conn)
{
	if (app_read_params(conn) && app_read_some(conn))
		(void)app_answer(conn, SLICE("Status: 202\r\n\r\n"));
}

static void
application_may_answer_before_it_has_read_all(void **state)
{
	uint64_t sum;

	(void)state;
	serve(STORING APP ALL, answers_early);
	const int fd = begin(true, NULL);

	assert_true(send_pattern(fd, 5000000, &sum));
	assert_true(send_body(fd, 0, true));
	assert_int_equal(status_of(fd), 202);
	assert_int_equal(stored(NULL), 0);
	(void)close(fd);
}

/* ---- what does not ---- */

/* Were it stored it would be a 503: there is no such directory. */
static void
rejected_body_is_not_stored(void **state)
{
	(void)state;
	serve("[weir]\nspool_directory = DIR/none\n" ONE_AN_HOUR, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	const int fd = begin(true, NULL);

	assert_true(send_body(fd, 3000000, true));
	assert_int_equal(status_of(fd), 429);
	(void)close(fd);
	assert_int_equal(rig_logged(&rig, "cannot be stored"), 0);
}

static void
body_is_as_large_as_spool_at_the_most(void **state)
{
	static const struct {
		const char *ini;
		size_t len;
		unsigned status, logged;
	} rows[] = {
		{ STORING APP "spool = 1k\n" ALL, 1024, 404, 0 },
		{ STORING APP "spool = 1k\n" ALL, 1025, 413, 1 },
		{ STORING APP "spool = 1k\n" ALL, 5000000, 413, 1 },
		{ STORING APP "spool = 0\n" ALL, 1, 411, 1 },
		{ STORING APP "spool = 0\n" ALL, 0, 404, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int64_t before = rig_outcome("all", "no_length");
		const bool passes = rows[i].status == 404;

		serve(rows[i].ini, answers);
		/* The rest of it is read, and the connection goes on. */
		const int fd = begin(true, NULL);

		for (unsigned again = 0; again < 2; again++) {
			assert_true(send_body(fd, rows[i].len, true));
			assert_row(status_of(fd) == rows[i].status, "row %zu", i);
			struct buf bytes;

			bytes_init(&bytes);
			put_head(&bytes,
				&(const struct request_spec){ .keep = true,
					.params = (const char *const[]){ "REQUEST_METHOD", "PUT",
						"REQUEST_URI", "/", NULL } });
			assert_true(socket_send(fd, buf_slice(&bytes)));
			buf_release(&bytes);
		}
		(void)close(fd);
		assert_soon(rig_in_flight() == 0);
		assert_int_equal(rig_outcome("all", "no_length") - before, passes ? 0 : 2);
		assert_int_equal(fake_app_look(app).requests, passes ? 2 : 0);
		assert_int_equal(rig_logged(&rig, "came without its length"), rows[i].logged);
		assert_int_equal(stored(NULL), 0);
		if (i + 1 < LENGTH_OF(rows))
			(void)serve_tear_down(NULL);
	}
}

static void
no_more_are_stored_than_the_backend_takes_requests(void **state)
{
	(void)state;
	serve(STORING APP "max_in_flight = 2\n" ALL, answers);
	int fds[3];

	for (unsigned i = 0; i < 2; i++) {
		fds[i] = begin(false, NULL);
		assert_true(send_body(fds[i], 10, false));
	}
	assert_soon(stored(NULL) == 2);
	fds[2] = begin(false, NULL);
	assert_true(send_body(fds[2], 10, false));
	assert_int_equal(status_of(fds[2]), 503);
	assert_int_equal(rig_backend_failures("app", "busy"), 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(send_body(fds[i], 0, true));
		assert_int_equal(status_of(fds[i]), 404);
	}
	for (unsigned i = 0; i < 3; i++)
		(void)close(fds[i]);
}

static void
client_that_goes_leaves_nothing(void **state)
{
	const int64_t before = rig_outcome("all", "client_gone");
	uint64_t sum;

	(void)state;
	serve(STORING APP ALL, reads_later);
	may_read = false;
	/* While it is stored, and while it is passed on. */
	for (unsigned is_whole = 0; is_whole < 2; is_whole++) {
		const int fd = begin(false, NULL);

		assert_true(send_pattern(fd, 5000000, &sum));
		if (is_whole != 0)
			assert_true(send_body(fd, 0, true));
		assert_soon(fake_app_look(app).requests == is_whole && stored(NULL) == 1);
		(void)close(fd);
		assert_within_s(stored(NULL) == 0 && rig_in_flight() == 0, 1);
	}
	assert_within_s(fake_app_look(app).ended == 1, 1);
	assert_int_equal(rig_outcome("all", "client_gone") - before, 2);
}

static void
body_that_stops_leaves_nothing(void **state)
{
	(void)state;
	serve("[weir]\nbody_timeout = 100ms\nspool_directory = DIR\n" APP ALL, answers);
	const int fd = begin(false, NULL);

	assert_true(send_body(fd, 1000, false));
	assert_int_equal(status_of(fd), 408);
	assert_int_equal(stored(NULL), 0);
	assert_int_equal(fake_app_look(app).requests, 0);
	(void)close(fd);
}

/* ---- a disk that fails ---- */

static void
assert_busy(int fd)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 503);
	assert_slice(answer_field(&answer, "Retry-After"), SLICE("1"));
	answer_release(&answer);
	assert_int_equal(stored(NULL), 0);
	assert_int_equal(rig_logged(&rig, "cannot be stored"), 1);
}

static void
directory_that_is_not_there_is_503(void **state)
{
	const int64_t before = rig_outcome("all", "busy");

	(void)state;
	serve("[weir]\nspool_directory = DIR/none\n" APP ALL, answers);
	for (unsigned i = 0; i < 2; i++) {
		const int fd = begin(false, NULL);

		assert_true(send_body(fd, 1000, true));
		assert_busy(fd);
		(void)close(fd);
	}
	assert_int_equal(rig_logged(&rig, "/none"), 1);
	assert_int_equal(rig_outcome("all", "busy") - before, 2);
	/* Who says his length is not concerned. */
	const int fd = begin(false, (const char *const[]){ "CONTENT_LENGTH", "1000", NULL });

	assert_true(send_body(fd, 1000, true));
	assert_int_equal(status_of(fd), 404);
	(void)close(fd);
}

/* As a full one: the write fails when some has been written. */
static void
disk_that_takes_no_more_is_503(void **state)
{
	struct rlimit before, little;

	(void)state;
	serve(STORING APP ALL, answers);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	little = (struct rlimit){ .rlim_cur = 100000, .rlim_max = before.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	const int fd = begin(false, NULL);
	const bool taken = send_body(fd, 3000000, true);

	assert_busy(fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(taken);
	assert_int_equal(fake_app_look(app).requests, 0);
	(void)close(fd);
}

/* The application waits for bytes that are no more. */
static void
disk_that_gives_no_more_is_503(void **state)
{
	int file = -1;
	uint64_t sum;

	(void)state;
	serve(STORING APP ALL, reads_later);
	may_read = false;
	const int fd = begin(false, NULL);

	assert_true(send_pattern(fd, 5000000, &sum));
	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	assert_int_equal(stored(&file), 1);
	assert_int_equal(ftruncate(file, 0), 0);
	may_read = true;
	assert_busy(fd);
	assert_soon(fake_app_look(app).ended == 1);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body_is_passed_on_with_its_length),
		TEST(body_that_is_empty_has_a_length_if_one_was_announced),
		TEST(application_reads_at_its_own_pace),
		TEST(application_may_answer_before_it_has_read_all),
		TEST(rejected_body_is_not_stored),
		TEST(body_is_as_large_as_spool_at_the_most),
		TEST(no_more_are_stored_than_the_backend_takes_requests),
		TEST(client_that_goes_leaves_nothing),
		TEST(body_that_stops_leaves_nothing),
		TEST(directory_that_is_not_there_is_503),
		TEST(disk_that_takes_no_more_is_503),
		TEST(disk_that_gives_no_more_is_503),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
