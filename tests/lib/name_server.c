/* RFC 1035, as little of it as it takes: the question is sent back with records behind it. */
#include "name_server.h"

#include "../unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

enum { TYPE_A = 1, HEADER = 12, PACKET = 1024, NO_SUCH_NAME = 3 };

/* Turns a question into its answer; returns the length. */
static size_t
answer(const struct name_server *server, uint8_t *packet, size_t len)
{
	const bool is_known = server->hosts[0] != '\0';

	packet[2] |= 0x80;
	packet[3] = (uint8_t)(0x80 | (is_known ? 0 : NO_SUCH_NAME));
	/* What the resolver added behind the question is dropped. */
	packet[10] = packet[11] = 0;
	if (packet[len - 3] != TYPE_A)
		return len;
	packet[7] = (uint8_t)strlen(server->hosts);
	for (const char *host = server->hosts; *host != '\0'; host++) {
		const uint8_t record[] = { 0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0,
			0, (uint8_t)*host };

		memcpy(packet + len, record, sizeof record);
		len += sizeof record;
	}
	return len;
}

static void *
serve(void *context)
{
	struct name_server *server = context;

	for (;;) {
		uint8_t packet[PACKET];
		struct sockaddr_in from;
		socklen_t from_len = sizeof from;
		const ssize_t n = recvfrom(
			server->fd, packet, PACKET / 2, 0, (struct sockaddr *)&from, &from_len);

		/* One byte is the test's word for the end. */
		if (n <= HEADER + 4)
			return NULL;
		server->questions++;
		(void)sendto(server->fd, packet, answer(server, packet, (size_t)n), 0,
			(struct sockaddr *)&from, from_len);
	}
}

static struct sockaddr_in
name_of(const struct name_server *server)
{
	struct sockaddr_in name;
	socklen_t len = sizeof name;

	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&name, &len), 0);
	return name;
}

void
name_server_start(struct name_server *server, const char *hosts, const struct directory *directory)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char text[100];

	*server = (struct name_server){ .hosts = hosts };
	server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->fd, (const struct sockaddr *)&any, sizeof any), 0);
	const int n = snprintf(text, sizeof text,
		"nameserver 127.0.0.1:%u\noptions timeout:5 attempts:1\n",
		ntohs(name_of(server).sin_port));

	directory_write(directory, "resolv.conf", slice_make(text, (size_t)n));
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

void
name_server_stop(struct name_server *server)
{
	const struct sockaddr_in name = name_of(server);

	assert_int_equal(
		sendto(server->fd, "", 1, 0, (const struct sockaddr *)&name, sizeof name), 1);
	assert_int_equal(pthread_join(server->thread, NULL), 0);
	(void)close(server->fd);
}
