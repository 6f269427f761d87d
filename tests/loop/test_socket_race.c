/* socket.h: two processes that make or remove the file of one unix socket at the same moment. */
#include "../lib/directory.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"
#include "weir/socket.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

static struct directory directory;

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

/* In the place of the system's (the linker's --wrap): what happens just before a socket listens. */
int __wrap_listen(int fd, int backlog);
int __real_listen(int fd, int backlog);

static void (*before_listen)(void);

int
__wrap_listen(int fd, int backlog)
{
	void (*const before)(void) = before_listen;

	before_listen = NULL;
	if (before != NULL)
		before();
	return __real_listen(fd, backlog);
}

static struct {
	struct address address;
	pthread_t thread;
	_Atomic bool done;
	int fd;
	struct err err;
} other;

static void *
listen_too(void *context)
{
	const struct socket_owner owner = { 0 };

	(void)context;
	other.fd = socket_listen(&other.address, &owner, NULL, &other.err);
	other.done = true;
	return NULL;
}

/* Time enough for the other to do harm, if it can. */
static void
let_other_listen(void)
{
	const int64_t enough_us = clock_monotonic_us() + 200000;

	assert_int_equal(pthread_create(&other.thread, NULL, listen_too, NULL), 0);
	while (!other.done && clock_monotonic_us() < enough_us)
		(void)poll(NULL, 0, 1);
}

static void
of_two_that_start_together_one_is_refused(void **state)
{
	(void)state;
	for (unsigned stale = 0; stale < 2; stale++) {
		const struct socket_owner owner = { 0 };
		struct err err = { "" };

		memset(&other, 0, sizeof other);
		other.address = directory_socket(&directory, stale == 0 ? "new" : "stale");
		if (stale != 0)
			(void)close(unix_listen(other.address.host, 1));
		before_listen = let_other_listen;
		const int fd = socket_listen(&other.address, &owner, NULL, &err);

		assert_int_equal(pthread_join(other.thread, NULL), 0);
		assert_row(fd >= 0, "%s", err.text);
		assert_int_equal(other.fd, -1);
		assert_row(strstr(other.err.text, "another process") != NULL, "%s", other.err.text);
		const int client = unix_connect(other.address.host);
		const int accepted = accept(fd, NULL, NULL);

		assert_true(accepted >= 0);
		(void)close(accepted);
		(void)close(client);
		(void)close(fd);
	}
}

static void *
unlink_made(void *context)
{
	socket_unlink(&other.address, context);
	other.done = true;
	return NULL;
}

static void
file_is_removed_under_the_lock_too(void **state)
{
	const struct socket_owner owner = { 0 };
	struct socket_file file;
	struct err err;

	(void)state;
	memset(&other, 0, sizeof other);
	other.address = directory_socket(&directory, "s");
	const int fd = socket_listen(&other.address, &owner, &file, &err);
	const int lock = open(directory.path, O_RDONLY | O_DIRECTORY);
	const int64_t enough_us = clock_monotonic_us() + 50000;

	assert_true(fd >= 0);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(pthread_create(&other.thread, NULL, unlink_made, &file), 0);
	while (!other.done && clock_monotonic_us() < enough_us)
		(void)poll(NULL, 0, 1);
	assert_int_equal(access(other.address.host, F_OK), 0);
	(void)close(lock);
	assert_int_equal(pthread_join(other.thread, NULL), 0);
	assert_int_equal(access(other.address.host, F_OK), -1);
	(void)close(fd);
}

/* Whoever may read the directory can lock it. */
static void
strangers_lock_keeps_nobody_from_starting(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct socket_owner owner = { 0 };
	const int lock = open(directory.path, O_RDONLY | O_DIRECTORY);
	struct err err = { "" };

	(void)state;
	assert_int_equal(flock(lock, LOCK_EX), 0);
	const int fd = socket_listen(&one, &owner, NULL, &err);

	assert_row(fd >= 0, "%s", err.text);
	(void)close(unix_connect(one.host));
	(void)close(fd);
	(void)close(lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_two_that_start_together_one_is_refused),
		TEST(file_is_removed_under_the_lock_too),
		TEST(strangers_lock_keeps_nobody_from_starting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
