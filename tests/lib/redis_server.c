/* Redis servers for tests. What goes wrong here is no test's fault, so it ends the program. */
#include "redis_server.h"

#include "soon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 40, WORDS_MAX = 16 };

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "redis-server: %s\n", what);
	abort();
}

/* redis-server, or what WEIR_TEST_REDIS_SERVER names: another of the same kind, as valkey-server.
 */
static const char *
program(void)
{
	const char *name = getenv("WEIR_TEST_REDIS_SERVER");

	return name == NULL || name[0] == '\0' ? "redis-server" : name;
}

bool
redis_server_is_installed(void)
{
	const char *path = getenv("PATH");
	struct slice rest = slice_of(path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path), one;

	while (slice_split(&rest, ':', &one)) {
		char file[512];

		(void)snprintf(file, sizeof file, "%.*s/%s", (int)one.len, one.ptr, program());
		if (access(file, X_OK) == 0)
			return true;
	}
	print_message("%s is not installed: skipped\n", program());
	return false;
}

static void
run(const struct redis_server *server, const char *const *options, pid_t parent)
{
	const char *arguments[ARGUMENTS_MAX] = { program(), "--port", "0", "--unixsocket",
		server->address.host, "--unixsocketperm", "700", "--save", "", "--appendonly", "no",
		"--dir", server->directory.path, "--logfile", "redis.log" };
	size_t count = 15;

	for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
		require(count < ARGUMENTS_MAX - 1, "too many options");
		arguments[count++] = options[i];
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		(void)execvp(program(), (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static bool
answers(const struct redis_server *server)
{
	redisContext *connection = redisConnectUnix(server->address.host);
	redisReply *reply = NULL;

	require(waitpid(server->pid, NULL, WNOHANG) == 0, "it ended, see redis.log");
	require(connection != NULL, "no memory");
	if (connection->err == 0 &&
		redisSetTimeout(connection, (struct timeval){ .tv_sec = SOON_S }) == REDIS_OK)
		reply = redisCommand(connection, "PING");
	const bool yes = reply != NULL && reply->type == REDIS_REPLY_STATUS;

	if (reply != NULL)
		freeReplyObject(reply);
	redisFree(connection);
	return yes;
}

void
redis_server_start(struct redis_server *server, const char *const *options)
{
	const pid_t parent = getpid();
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);

	require(server->pid == 0, "it runs already");
	server->pid = fork();
	require(server->pid >= 0, "fork");
	if (server->pid == 0)
		run(server, options, parent);
	while (!answers(server)) {
		require(clock_monotonic_us() < give_up_us, "it does not answer");
		(void)poll(NULL, 0, 5);
	}
}

void
redis_server_open(struct redis_server *server, const char *const *options)
{
	directory_make(&server->directory);
	server->address = directory_socket(&server->directory, "redis.sock");
	server->pid = 0;
	redis_server_start(server, options);
}

void
redis_server_kill(struct redis_server *server)
{
	if (server->pid == 0)
		return;
	require(kill(server->pid, SIGKILL) == 0, "kill");
	require(waitpid(server->pid, NULL, 0) == server->pid, "waitpid");
	server->pid = 0;
}

void
redis_server_close(struct redis_server *server)
{
	redis_server_kill(server);
	directory_remove(&server->directory);
}

void
redis_server_freeze(const struct redis_server *server)
{
	int status;

	require(kill(server->pid, SIGSTOP) == 0, "kill");
	require(waitpid(server->pid, &status, WUNTRACED) == server->pid && WIFSTOPPED(status),
		"it does not stop");
}

void
redis_server_thaw(const struct redis_server *server)
{
	require(kill(server->pid, SIGCONT) == 0, "kill");
}

redisContext *
redis_server_connect(const struct redis_server *server)
{
	redisContext *connection = redisConnectUnix(server->address.host);

	require(connection != NULL && connection->err == 0, "no connection");
	require(redisSetTimeout(connection, (struct timeval){ .tv_sec = SOON_S }) == REDIS_OK,
		"no timeout");
	return connection;
}

static redisReply *command(redisContext *connection, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

static redisReply *
command(redisContext *connection, const char *format, va_list arguments)
{
	char text[1024];
	const char *words[WORDS_MAX];
	int count = 0;
	char *rest = text;

	require(vsnprintf(text, sizeof text, format, arguments) < (int)sizeof text, "too long");
	for (char *word; count < WORDS_MAX && (word = strsep(&rest, " ")) != NULL;)
		words[count++] = word;
	require(rest == NULL, "too many words");
	redisReply *reply = redisCommandArgv(connection, count, words, NULL);

	require(reply != NULL, connection->errstr);
	return reply;
}

redisReply *
redis_command(redisContext *connection, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	redisReply *reply = command(connection, format, arguments);

	va_end(arguments);
	return reply;
}

long long
redis_number(redisContext *connection, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	redisReply *reply = command(connection, format, arguments);

	va_end(arguments);
	require(reply->type == REDIS_REPLY_INTEGER, reply->str != NULL ? reply->str : format);
	const long long number = reply->integer;

	freeReplyObject(reply);
	return number;
}

void
redis_ok(redisContext *connection, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	redisReply *reply = command(connection, format, arguments);

	va_end(arguments);
	require(reply->type == REDIS_REPLY_STATUS, reply->str != NULL ? reply->str : format);
	freeReplyObject(reply);
}
