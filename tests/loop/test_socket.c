/* socket.h: listening sockets with the right rights, and what is done to files that are there. */
#include "../lib/directory.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"
#include "weir/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
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

static struct address
address(const char *text)
{
	struct address parsed;
	struct err err;

	assert_int_equal(address_parse(slice_of(text), &parsed, &err), 0);
	return parsed;
}

/* ---- addresses ---- */

static void
numbers_and_paths_need_no_look_up_and_names_do(void **state)
{
	static const struct {
		const char *text;
		int family; /* 0: a name */
	} rows[] = {
		{ "unix:/run/x.sock", AF_UNIX },
		{ "tcp:127.0.0.1:80", AF_INET },
		{ "tcp:[::1]:9000", AF_INET6 },
		{ "tls:192.0.2.1:6379", AF_INET },
		{ "tcp:localhost:80", 0 },
		{ "tcp:redis.example.org:6379", 0 },
		{ "tcp:1.2.3:6379", 0 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct address one = address(rows[i].text);
		struct sockaddr_storage name;
		socklen_t len = 0;
		const int result = socket_address(&one, &name, &len);

		assert_row((result == 0) == (rows[i].family != 0), "%s", rows[i].text);
		if (result == 0)
			assert_row(name.ss_family == rows[i].family && len > 2, "%s", rows[i].text);
	}
}

/* A caller keeps what it learnt of a name. */
static void
address_that_is_not_known_leaves_the_result_alone(void **state)
{
	const struct address one = address("tcp:localhost:80");
	struct sockaddr_storage name, before;
	socklen_t len = 77;

	(void)state;
	memset(&name, 0x5a, sizeof name);
	before = name;
	assert_int_equal(socket_address(&one, &name, &len), -1);
	assert_memory_equal(&name, &before, sizeof name);
	assert_int_equal(len, 77);
}

/* ---- rights ---- */

static void
assert_mode(const struct address *one, mode_t expected)
{
	struct stat st;

	assert_int_equal(lstat(one->host, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, expected);
}

static void
mode_is_as_asked_whatever_the_umask(void **state)
{
	static const int modes[] = { 0, 0600, 0660, 0666, 0777, 0222 };
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	const struct address one = directory_socket(&directory, "s");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(modes); i++) {
		for (size_t j = 0; j < LENGTH_OF(masks); j++) {
			const struct socket_owner owner = { .mode = modes[i] };
			const mode_t before = umask(masks[j]);
			struct socket_file file;
			struct err err;
			const int fd = socket_listen(&one, &owner, &file, &err);

			(void)umask(before);
			assert_row(fd >= 0, "%s", err.text);
			assert_mode(&one, modes[i] == 0 ? 0660 : (mode_t)modes[i]);
			(void)close(fd);
			socket_unlink(&one, &file);
		}
	}
}

static void
listening_socket_is_ours_alone(void **state)
{
	const struct address any_port = { .kind = ADDRESS_TCP, .host = "127.0.0.1" };
	const struct address others[] = { any_port, directory_socket(&directory, "s") };
	const struct socket_owner owner = { 0 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		struct err err;
		const int fd = socket_listen(&others[i], &owner, NULL, &err);

		assert_row(fd >= 0, "%s", err.text);
		assert_true(socket_is_listening(fd));
		assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
		assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
		(void)close(fd);
	}
}

static void
unknown_user_or_group_is_refused_and_leaves_no_file(void **state)
{
	const struct socket_owner owners[] = { { .group = "no-such-group-of-weir" },
		{ .owner = "no-such-user-of-weir" } };
	const struct address one = directory_socket(&directory, "s");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(owners); i++) {
		struct err err = { "" };

		assert_int_equal(socket_listen(&one, &owners[i], NULL, &err), -1);
		assert_row(strstr(err.text, "no-such-") != NULL, "%s", err.text);
		assert_row(strstr(err.text, one.host) != NULL, "%s", err.text);
		assert_int_equal(access(one.host, F_OK), -1);
	}
}

static void
group_is_taken_by_name_or_number(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct group *group = getgrgid(getegid());
	char number[16];

	(void)state;
	(void)snprintf(number, sizeof number, "%u", (unsigned)getegid());
	const char *const names[] = { number, group == NULL ? number : group->gr_name };

	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		const struct socket_owner owner = { .group = names[i] };
		struct socket_file file;
		struct stat st;
		struct err err;
		const int fd = socket_listen(&one, &owner, &file, &err);

		assert_row(fd >= 0, "%s", err.text);
		assert_int_equal(lstat(one.host, &st), 0);
		assert_int_equal(st.st_gid, getegid());
		(void)close(fd);
		socket_unlink(&one, &file);
	}
}

/* ---- files that are there ---- */

static void
stale_socket_is_replaced(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct socket_owner owner = { 0 };
	struct err err;

	(void)state;
	(void)close(unix_listen(one.host, 1));
	const int fd = socket_listen(&one, &owner, NULL, &err);

	assert_row(fd >= 0, "%s", err.text);
	(void)close(unix_connect(one.host));
	(void)close(fd);
}

static void
live_socket_is_refused_and_goes_on(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct socket_owner owner = { 0 };
	const int live = unix_listen(one.host, 1);
	int waiting[10];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct err err = { "" };

		assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
		assert_row(strstr(err.text, "another process") != NULL, "%s", err.text);
		/* The second time with a full backlog. */
		for (size_t j = 0; i == 0 && j < LENGTH_OF(waiting); j++) {
			const struct sockaddr_un name = unix_name(one.host);

			waiting[j] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
			(void)connect(waiting[j], (const struct sockaddr *)&name, sizeof name);
		}
	}
	const int theirs = accept(live, NULL, NULL);

	assert_true(theirs >= 0);
	for (size_t j = 0; j < LENGTH_OF(waiting); j++)
		(void)close(waiting[j]);
	(void)close(theirs);
	(void)close(live);
}

static void
file_that_is_no_socket_is_refused_and_kept(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct socket_owner owner = { 0 };
	struct err err = { "" };

	(void)state;
	directory_write(&directory, "s", SLICE("precious"));
	assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
	assert_row(strstr(err.text, "no socket") != NULL, "%s", err.text);
	char *text = directory_read(&directory, "s");

	assert_string_equal(text, "precious");
	free(text);
	/* A link is no socket either, wherever it leads. */
	assert_int_equal(unlink(one.host), 0);
	assert_int_equal(symlink("/dev/null", one.host), 0);
	assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
	assert_row(strstr(err.text, "no socket") != NULL, "%s", err.text);
}

static void
datagram_socket_is_refused_and_kept(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct sockaddr_un name = unix_name(one.host);
	const struct socket_owner owner = { 0 };
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct err err = { "" };

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
	assert_int_equal(access(one.host, F_OK), 0);
	(void)close(fd);
}

static void
directory_that_is_not_there_is_named(void **state)
{
	const struct address one = directory_socket(&directory, "none/s");
	const struct socket_owner owner = { 0 };
	struct err err = { "" };

	(void)state;
	assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
	assert_row(strstr(err.text, "none/s") != NULL, "%s", err.text);
}

static void
address_in_use_is_refused(void **state)
{
	const struct socket_owner owner = { 0 };
	uint16_t port;
	const int live = tcp_listen(1, &port);
	struct err err = { "" };
	char text[64];

	(void)state;
	(void)snprintf(text, sizeof text, "tcp:127.0.0.1:%u", port);
	const struct address one = address(text);

	assert_int_equal(socket_listen(&one, &owner, NULL, &err), -1);
	assert_row(strstr(err.text, text) != NULL, "%s", err.text);
	(void)close(live);
}

/* ---- afterwards ---- */

static void
unlink_removes_what_we_made_and_nothing_else(void **state)
{
	const struct address one = directory_socket(&directory, "s");
	const struct socket_owner owner = { 0 };
	struct socket_file file;
	struct err err;
	int fd = socket_listen(&one, &owner, &file, &err);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	socket_unlink(&one, &file);
	assert_int_equal(access(one.host, F_OK), -1);
	/* Another process has put its own in place meanwhile. */
	fd = socket_listen(&one, &owner, &file, &err);
	assert_true(fd >= 0);
	assert_int_equal(rename(one.host, directory_path(&directory, "kept").text), 0);
	const int theirs = unix_listen(one.host, 1);

	socket_unlink(&one, &file);
	assert_int_equal(access(one.host, F_OK), 0);
	/* What was never made. */
	socket_unlink(&one, &(const struct socket_file){ 0 });
	assert_int_equal(access(one.host, F_OK), 0);
	(void)close(theirs);
	(void)close(fd);
}

/* ---- inherited ---- */

static void
only_listening_stream_sockets_are_taken_for_one(void **state)
{
	const struct directory_path path = directory_path(&directory, "s");
	const int listening = unix_listen(path.text, 1);
	const struct pair pair = pair_open(PAIR_UNIX);
	const int bare = socket(AF_INET, SOCK_STREAM, 0), datagram = socket(AF_INET, SOCK_DGRAM, 0);
	const int null = open("/dev/null", O_RDWR);

	(void)state;
	assert_true(socket_is_listening(listening));
	assert_false(socket_is_listening(pair.ours));
	assert_false(socket_is_listening(bare));
	assert_false(socket_is_listening(datagram));
	assert_false(socket_is_listening(null));
	assert_false(socket_is_listening(-1));
	const int all[] = { listening, pair.ours, pair.theirs, bare, datagram, null };

	for (size_t i = 0; i < LENGTH_OF(all); i++)
		(void)close(all[i]);
}

static void
adopted_socket_is_made_ours(void **state)
{
	const int fd = unix_listen(directory_path(&directory, "s").text, 1);
	struct err err = { "" };

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
	assert_int_equal(socket_adopt(fd, &err), 0);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	(void)close(fd);
	assert_int_equal(socket_adopt(fd, &err), -1);
	assert_true(err.text[0] != '\0');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_and_paths_need_no_look_up_and_names_do),
		TEST(address_that_is_not_known_leaves_the_result_alone),
		TEST(mode_is_as_asked_whatever_the_umask),
		TEST(listening_socket_is_ours_alone),
		TEST(unknown_user_or_group_is_refused_and_leaves_no_file),
		TEST(group_is_taken_by_name_or_number),
		TEST(stale_socket_is_replaced),
		TEST(live_socket_is_refused_and_goes_on),
		TEST(file_that_is_no_socket_is_refused_and_kept),
		TEST(datagram_socket_is_refused_and_kept),
		TEST(directory_that_is_not_there_is_named),
		TEST(address_in_use_is_refused),
		TEST(unlink_removes_what_we_made_and_nothing_else),
		TEST(only_listening_stream_sockets_are_taken_for_one),
		TEST(adopted_socket_is_made_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
