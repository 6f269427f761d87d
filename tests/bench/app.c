/*
 * app SOCKET: a FastCGI application that costs next to nothing, so that what is measured is what
 * stands before it. One process, one epoll loop; answers every request with 200 and 100 bytes,
 * keeps connections if asked to.
 */
#include "weir/fcgi.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct client {
	int fd;
	struct fcgi_reader reader;
	uint8_t begin[8];
	unsigned begin_len;
	bool keep;
};

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

static void
answer(const struct client *client)
{
	static const char text[] =
		"Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n"
		"0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"234567890123456789";
	uint8_t out[8 + sizeof text - 1 + 8 + 16];
	const uint16_t id = client->reader.record.id;

	fcgi_put_head(out, FCGI_STDOUT, id, sizeof text - 1, 0);
	memcpy(out + 8, text, sizeof text - 1);
	fcgi_put_head(out + 8 + sizeof text - 1, FCGI_STDOUT, id, 0, 0);
	fcgi_put_end(out + 16 + sizeof text - 1, id, 0, FCGI_REQUEST_COMPLETE);
	if (send(client->fd, out, sizeof out, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		errno != ECONNRESET)
		err(1, "send");
}

/* False: the connection is to be closed. */
static bool
take(struct client *client, struct slice input)
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
			if (client->reader.record.type != FCGI_STDIN ||
				client->reader.record.len != 0)
				break;
			answer(client);
			if (!client->keep)
				return false;
			break;
		case FCGI_BAD:
			return false;
		}
	}
}

static void
serve(int epoll, struct client *client)
{
	char bytes[65536];
	const ssize_t n = recv(client->fd, bytes, sizeof bytes, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && take(client, slice_make(bytes, (size_t)n)))
		return;
	(void)epoll_ctl(epoll, EPOLL_CTL_DEL, client->fd, NULL);
	(void)close(client->fd);
	free(client);
}

static void
accept_one(int epoll, int listener)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *client = fd < 0 ? NULL : calloc(1, sizeof *client);

	if (client == NULL)
		return;
	client->fd = fd;
	fcgi_reader_init(&client->reader);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		err(1, "epoll_ctl");
	serve(epoll, client);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: app SOCKET");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	const int listener = listen_on(argv[1]), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL }, events[64];

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
		err(1, "epoll_ctl");
	for (;;) {
		const int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				accept_one(epoll, listener);
			else
				serve(epoll, events[i].data.ptr);
		}
	}
}
