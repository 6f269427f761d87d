/* A real server, and `weir check --connect` with a configuration that names it. */
#include "connecting.h"

#include <stdio.h>
#include <sys/stat.h>

struct redis_server server;
redisContext *direct;
struct process checker;

int
connect_group_setup(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	return 0;
}

int
connect_group_teardown(void **state)
{
	(void)state;
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

int
connect_tear_down(void **state)
{
	redis_ok(direct, "ACL SETUSER default on nopass");
	redis_ok(direct, "CONFIG SET maxmemory 0");
	redis_ok(direct, "CONFIG SET maxmemory-policy noeviction");
	redis_ok(direct, "REPLICAOF NO ONE");
	process_release(&checker);
	return weir_tear_down(state);
}

int
check_at(const char *path, const char *keys)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const struct directory_path password = directory_path(&directory, "password");
	const char *const arguments[] = { "check", "--connect", file.text, NULL };
	char ini[1000];

	directory_write(&directory, "password", SLICE("secret\n"));
	assert_int_equal(chmod(password.text, 0600), 0);
	(void)snprintf(ini, sizeof ini, "%s[redis]\n%s%s\n%s%s", LISTEN STATE,
		"server = unix:", path, keys, NONE ALL);
	write_config(ini);
	process_release(&checker);
	return process_run(&checker, &(const struct process_setup){ .arguments = arguments });
}

int
check(const char *keys)
{
	return check_at(server.address.host, keys);
}

void
assert_said(const char *text)
{
	assert_row(process_said(&checker, text), "not said: %s\n%s%s", text,
		process_error(&checker), process_output(&checker));
}

void
assert_printed(const char *text)
{
	assert_row(strstr(process_output(&checker), text) != NULL, "not printed: %s\n%s%s", text,
		process_error(&checker), process_output(&checker));
}

void
assert_refused(const char *keys, const char *text)
{
	assert_int_equal(check(keys), 1);
	assert_said(text);
	assert_said("weir.ini: 1 error\n");
}

void
assert_good(const char *keys)
{
	const int status = check(keys);

	assert_row(status == 0, "%s%s", process_error(&checker), process_output(&checker));
	assert_string_equal(process_error(&checker), "");
	assert_printed("weir.ini: good\n");
}
