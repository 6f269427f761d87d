/*
 * Peers that go while nobody reads from them or writes to them.
 *
 * libevent alone cannot tell: its EV_CLOSED comes for an orderly end only. A reset is told to those
 * who read or write, and where there is neither, its epoll reports the error again and again and
 * the loop spins. So an epoll of our own waits for the ends, edge by edge, and libevent waits for
 * that epoll. What came is told by a call that may forget any descriptor, but frees nothing that is
 * watched.
 */
#include "loop_private.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { TAKEN_AT_ONCE = 32 };

struct hangups {
	int fd;
	struct event *event;
	hangup_fn *fn;
};

static void
take_hangups(evutil_socket_t fd, short what, void *context)
{
	const struct hangups *hangups = context;
	struct epoll_event events[TAKEN_AT_ONCE];
	const int count = epoll_wait(fd, events, TAKEN_AT_ONCE, 0);

	(void)what;
	for (int i = 0; i < count; i++)
		hangups->fn(events[i].data.ptr);
}

struct hangups *
hangups_new(struct event_base *base, hangup_fn *fn)
{
	struct hangups *hangups = malloc(sizeof *hangups);

	if (hangups == NULL)
		return NULL;
	*hangups = (struct hangups){ .fd = epoll_create1(EPOLL_CLOEXEC), .fn = fn };
	if (hangups->fd >= 0)
		hangups->event =
			event_new(base, hangups->fd, EV_READ | EV_PERSIST, take_hangups, hangups);
	if (hangups->event == NULL || event_add(hangups->event, NULL) != 0) {
		hangups_free(hangups);
		return NULL;
	}
	return hangups;
}

void
hangups_free(struct hangups *hangups)
{
	if (hangups == NULL)
		return;
	if (hangups->event != NULL)
		event_free(hangups->event);
	if (hangups->fd >= 0)
		(void)close(hangups->fd);
	free(hangups);
}

bool
hangups_watch(struct hangups *hangups, int fd, void *context)
{
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = context };

	return epoll_ctl(hangups->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void
hangups_forget(struct hangups *hangups, int fd)
{
	struct epoll_event ignored = { 0 };

	(void)epoll_ctl(hangups->fd, EPOLL_CTL_DEL, fd, &ignored);
}
