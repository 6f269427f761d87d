/*
 * app SOCKET [BYTES [SECONDS]]: a FastCGI application that costs next to nothing, so that what is
 * measured is what stands before it. One process, one epoll loop; takes all of a request, and
 * answers with 200 and so many bytes (100), so many seconds later (at once). Keeps connections if
 * asked to.
 *
 * All requests wait equally long, so those that wait are a queue. A long answer is written to its
 * end before anybody else is looked after.
 */
#include "weir/fcgi.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 65528 };

struct client {
	struct client *next; /* that waits */
	int64_t due_ms; /* 0: it does not wait */
	int fd; /* -1: has gone while it waited */
	struct fcgi_reader reader;
	uint8_t begin[8];
	unsigned begin_len;
	bool keep;
};

struct app {
	int epoll, listener;
	long long bytes, wait_ms;
	struct client *first, **last;
};

static int64_t
now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int
listen_on(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof name.sun_path)
		errx(2, "%s: too long", path);
	memcpy(name.sun_path, path, strlen(path) + 1);
	(void)unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || listen(fd, 4096) != 0)
		err(1, "%s", path);
	return fd;
}

/* False: the peer has gone. */
static bool
send_all(int fd, const uint8_t *bytes, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	while (len > 0) {
		const ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&room, 1, -1);
		else if (n < 0)
			return false;
		else {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static bool
answer(const struct app *app, const struct client *client)
{
	static uint8_t record[FCGI_HEADER_LEN + RECORD + FCGI_HEADER_LEN + 16];
	uint8_t *content = record + FCGI_HEADER_LEN;
	const uint16_t id = client->reader.record.id;
	long long left = app->bytes;
	size_t len = (size_t)sprintf((char *)content,
		"Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %lld\r\n\r\n", left);

	do {
		const size_t room = RECORD - len,
			     piece = left < (long long)room ? (size_t)left : room;

		memset(content + len, 'x', piece);
		len += piece;
		left -= (long long)piece;
		fcgi_put_head(record, FCGI_STDOUT, id, (uint16_t)len, 0);
		if (left == 0) {
			fcgi_put_head(content + len, FCGI_STDOUT, id, 0, 0);
			fcgi_put_end(content + len + FCGI_HEADER_LEN, id, 0, FCGI_REQUEST_COMPLETE);
			len += FCGI_HEADER_LEN + 16;
		}
		if (!send_all(client->fd, record, FCGI_HEADER_LEN + len))
			return false;
		len = 0;
	} while (left > 0);
	return client->keep;
}

/* The request is whole. False: the connection is to be closed. */
static bool
answer_in_time(struct app *app, struct client *client)
{
	if (app->wait_ms == 0)
		return answer(app, client);
	client->due_ms = now_ms() + app->wait_ms;
	client->next = NULL;
	*app->last = client;
	app->last = &client->next;
	return true;
}

/* False: the connection is to be closed. */
static bool
take(struct app *app, struct client *client, struct slice input)
{
	struct slice content;

	for (;;) {
		switch (fcgi_read(&client->reader, &input, &content)) {
		case FCGI_NEED_MORE:
			return true;
		case FCGI_RECORD:
			client->begin_len = 0;
			break;
		case FCGI_CONTENT:
			if (client->reader.record.type == FCGI_BEGIN_REQUEST) {
				memcpy(client->begin + client->begin_len, content.ptr, content.len);
				client->begin_len += (unsigned)content.len;
				client->keep = client->begin_len == 8 &&
					(client->begin[2] & FCGI_KEEP_CONN) != 0;
			}
			break;
		case FCGI_RECORD_END:
			if (client->reader.record.type == FCGI_STDIN &&
				client->reader.record.len == 0 && !answer_in_time(app, client))
				return false;
			break;
		case FCGI_BAD:
			return false;
		}
	}
}

static void
end(struct client *client)
{
	(void)close(client->fd);
	client->fd = -1;
	if (client->due_ms == 0)
		free(client);
}

static void
serve(struct app *app, struct client *client)
{
	static char bytes[256 * 1024];
	const ssize_t n = recv(client->fd, bytes, sizeof bytes, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !take(app, client, slice_make(bytes, (size_t)n)))
		end(client);
}

static void
accept_one(struct app *app)
{
	const int fd = accept4(app->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *client = fd < 0 ? NULL : calloc(1, sizeof *client);

	if (client == NULL)
		return;
	client->fd = fd;
	fcgi_reader_init(&client->reader);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

	if (epoll_ctl(app->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		err(1, "epoll_ctl");
	serve(app, client);
}

/* Answers those that have waited; returns how long the next one still has to, -1: there is none. */
static int
answer_due(struct app *app)
{
	while (app->first != NULL) {
		struct client *client = app->first;
		const int64_t left = client->due_ms - now_ms();

		if (left > 0)
			return (int)left;
		app->first = client->next;
		if (app->first == NULL)
			app->last = &app->first;
		client->due_ms = 0;
		if (client->fd < 0)
			free(client);
		else if (!answer(app, client))
			end(client);
	}
	return -1;
}

int
main(int argc, char **argv)
{
	if (argc < 2 || argc > 4)
		errx(2, "usage: app SOCKET [BYTES [SECONDS]]");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct app app = { .listener = listen_on(argv[1]),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.bytes = argc > 2 ? atoll(argv[2]) : 100,
		.wait_ms = argc > 3 ? (long long)(atof(argv[3]) * 1000) : 0 };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL }, events[64];

	app.last = &app.first;
	if (epoll_ctl(app.epoll, EPOLL_CTL_ADD, app.listener, &event) != 0)
		err(1, "epoll_ctl");
	for (;;) {
		const int n = epoll_wait(app.epoll, events, 64, answer_due(&app));

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				accept_one(&app);
			else
				serve(&app, events[i].data.ptr);
		}
	}
}
