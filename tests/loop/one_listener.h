/* A listener in the test's own thread, what it takes, and accept4 in the test's place. */
#ifndef WEIR_TESTS_LOOP_ONE_LISTENER_H
#define WEIR_TESTS_LOOP_ONE_LISTENER_H

#include "../lib/directory.h"
#include "../lib/run_loop.h"
#include "../lib/sockets.h"
#include "weir/listener.h"
#include "weir/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct loop *loop;
static struct directory directory;

/* In the place of the system's (the linker's --wrap), which has no descriptors for a while. */
int __wrap_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags);
int __real_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags);

static bool none_left;
static unsigned accepts;

int
__wrap_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
	accepts++;
	if (!none_left)
		return __real_accept4(fd, peer, len, flags);
	errno = EMFILE;
	return -1;
}

enum { KEPT = 64 };

static struct {
	struct listener *listener;
	int fds[KEPT];
	unsigned count;
	unsigned pause_at; /* when so many have come */
} taken;

static inline void
take(void *context, int fd)
{
	assert_ptr_equal(context, &taken);
	assert_true(taken.count < KEPT);
	taken.fds[taken.count++] = fd;
	if (taken.count == taken.pause_at)
		listener_pause(taken.listener);
	loop_stop(loop);
}

static inline void
open_listener(int fd, unsigned batch)
{
	memset(&taken, 0, sizeof taken);
	taken.listener = listener_new(loop, fd, batch, take, &taken);
	assert_non_null(taken.listener);
}

static inline void
close_listener(void)
{
	listener_free(taken.listener);
	for (unsigned i = 0; i < taken.count; i++)
		(void)close(taken.fds[i]);
}

static unsigned log_lines;

static inline void
count_line(void *context, enum log_level level, const char *line, size_t len)
{
	(void)context, (void)level, (void)line, (void)len;
	log_lines++;
}

static inline int
set_up(void **state)
{
	struct err err;

	(void)state;
	loop = loop_new(&err);
	directory_make(&directory);
	log_lines = 0;
	log_set_sink(count_line, NULL);
	return loop == NULL ? -1 : 0;
}

static inline int
tear_down(void **state)
{
	(void)state;
	log_set_sink(NULL, NULL);
	loop_free(loop);
	directory_remove(&directory);
	return 0;
}

static inline int
listen_here(void)
{
	const int fd = unix_listen(directory_path(&directory, "s").text, KEPT);

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static inline void
connect_here(int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fds[i] = unix_connect(directory_path(&directory, "s").text);
}

static inline void
close_all(const int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
