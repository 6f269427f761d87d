/* Fake servers. What goes wrong here is no test's fault, so it ends the program. */
#include "fake.h"

#include "weir/clock.h"
#include "weir/socket.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

/* ---- connections ---- */

struct served {
	struct fake_peer peer;
	fake_context_fn *serve;
	void *context;
};

static void *
serve_one(void *context)
{
	struct served *served = context;

	served->serve(served->context, &served->peer);
	(void)close(served->peer.fd);
	redisReaderFree(served->peer.reader);
	free(served);
	return NULL;
}

void
fake_accept_all(int listener, struct fake_seen *seen, fake_context_fn *serve, void *context)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		struct served *served = calloc(1, sizeof *served);
		pthread_t thread;

		require(served != NULL, "calloc");
		*served = (struct served){
			.peer = { .fd = fd, .reader = redisReaderCreate(), .seen = seen },
			.serve = serve,
			.context = context
		};
		(void)atomic_fetch_add(&seen->connections, 1);
		require(pthread_create(&thread, NULL, serve_one, served) == 0, "pthread_create");
		(void)pthread_detach(thread);
	}
}

/* ---- the process ---- */

static void
serve_as_told(void *context, struct fake_peer *peer)
{
	const struct fake *fake = context;

	fake->serve(peer);
}

static void
serve_all(struct fake *fake)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	fake_accept_all(fake->listener, fake->seen, serve_as_told, fake);
	require(false, "accept");
}

static void
listen_on(struct fake *fake)
{
	struct sockaddr_storage name;
	socklen_t len;

	require(socket_address(&fake->address, &name, &len) == 0, "socket_address");
	(void)unlink(fake->address.host);
	fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(fake->listener >= 0, "socket");
	require(bind(fake->listener, (const struct sockaddr *)&name, len) == 0, "bind");
	require(listen(fake->listener, 64) == 0, "listen");
}

void
fake_start(struct fake *fake, fake_fn *serve)
{
	const pid_t parent = getpid();

	listen_on(fake);
	fake->serve = serve;
	fake->pid = fork();
	require(fake->pid >= 0, "fork");
	if (fake->pid == 0) {
		if (getppid() == parent)
			serve_all(fake);
		_exit(0);
	}
	(void)close(fake->listener);
}

void
fake_open(struct fake *fake, fake_fn *serve)
{
	directory_make(&fake->directory);
	fake->address = directory_socket(&fake->directory, "fake.sock");
	fake->seen = mmap(NULL, sizeof *fake->seen, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(fake->seen != MAP_FAILED, "mmap");
	fake_start(fake, serve);
}

void
fake_stop(struct fake *fake)
{
	if (fake->pid == 0)
		return;
	require(kill(fake->pid, SIGKILL) == 0, "kill");
	require(waitpid(fake->pid, NULL, 0) == fake->pid, "waitpid");
	fake->pid = 0;
}

void
fake_close(struct fake *fake)
{
	fake_stop(fake);
	require(munmap(fake->seen, sizeof *fake->seen) == 0, "munmap");
	directory_remove(&fake->directory);
}

/* ---- reading ---- */

static bool
is_command(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
		reply->element[0]->type == REDIS_REPLY_STRING;
}

redisReply *
fake_read(struct fake_peer *peer)
{
	char bytes[65536];
	void *command = NULL;

	for (;;) {
		require(redisReaderGetReply(peer->reader, &command) == REDIS_OK, "no RESP");
		if (command != NULL)
			break;
		const ssize_t n = recv(peer->fd, bytes, sizeof bytes, 0);

		if (n <= 0)
			return NULL;
		require(redisReaderFeed(peer->reader, bytes, (size_t)n) == REDIS_OK, "feed");
	}
	require(is_command(command), "no command");
	(void)atomic_fetch_add(&peer->seen->commands, 1);
	if (fake_is_check(command))
		(void)atomic_fetch_add(&peer->seen->checks, 1);
	else if (fake_is(command, "EVALSHA"))
		(void)atomic_fetch_add(&peer->seen->probes, 1);
	return command;
}

void
fake_read_on(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL)
		freeReplyObject(command);
}

bool
fake_is(const redisReply *command, const char *name)
{
	return strcmp(command->element[0]->str, name) == 0;
}

bool
fake_is_check(const redisReply *command)
{
	static const char probe[] = "probe";

	if (!fake_is(command, "EVALSHA") && !fake_is(command, "EVAL"))
		return false;
	const redisReply *key = command->element[3];
	const size_t len = (size_t)key->len, probe_len = sizeof probe - 1;

	return len < probe_len || strcmp(key->str + len - probe_len, probe) != 0;
}

/* ---- answering ---- */

bool
fake_send(struct fake_peer *peer, struct slice bytes)
{
	while (bytes.len > 0) {
		const ssize_t n = send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		(void)atomic_fetch_add(&peer->seen->bytes_sent, (uint64_t)n);
		bytes = slice_skip(bytes, (size_t)n);
	}
	return true;
}

/* The arguments are those of lua/decide.lua; what a request needs is what it owes then. */
static size_t
put_debts(const redisReply *command, char *out, size_t size)
{
	const size_t keys = (size_t)atoi(command->element[2]->str), end = (size_t)command->elements;
	size_t at = 4 + keys, len = 0;
	const bool is_short = end - at == 3;

	for (size_t key = 0; key < keys; key++) {
		const int n = is_short ? 1 : abs(atoi(command->element[at]->str));

		at += is_short ? 1 : 2;
		for (int i = 0; i < n; i++, at += 2)
			len += (size_t)snprintf(
				out + len, size - len, ":%s\r\n", command->element[at]->str);
	}
	require(at == end, "arguments of another script");
	return len;
}

bool
fake_answer(struct fake_peer *peer, const redisReply *command)
{
	char debts[1024], reply[1200];

	if (!fake_is(command, "EVALSHA") && !fake_is(command, "EVAL"))
		return fake_send(peer, SLICE("+OK\r\n"));
	const size_t len = put_debts(command, debts, sizeof debts);
	size_t count = 2;

	for (size_t i = 0; i < len; i++)
		count += debts[i] == ':';
	const int n = snprintf(reply, sizeof reply, "*%zu\r\n:1\r\n:%lld\r\n%.*s", count,
		(long long)clock_wall_us(), (int)len, debts);

	return fake_send(peer, slice_make(reply, (size_t)n));
}

redisReply *
fake_answer_until_check(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL && !fake_is_check(command)) {
		const bool sent = fake_answer(peer, command);

		freeReplyObject(command);
		if (!sent)
			return NULL;
	}
	return command;
}
