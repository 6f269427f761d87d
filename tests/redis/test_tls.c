/* The store over TLS, with a real server: whom it trusts, what the log says when it does not, and
 * that a handshake has no more time than all else. */
#include "../lib/certificates.h"
#include "../lib/redis_server.h"
#include "../lib/sockets.h"
#include "client.h"
#include "weir/counter.h"
#include "weir/log.h"
#include "weir/tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <unistd.h>

static struct directory directory;
static struct redis_server server;
static struct made_limit made;
static struct tls *tls;
static uint16_t port;

/* ---- servers ---- */

static uint16_t
free_port(void)
{
	uint16_t found;

	(void)close(tcp_listen(1, &found));
	return found;
}

static struct directory_path
file(const char *name)
{
	return directory_path(&directory, name);
}

/* With that certificate of ours, and for those whom it wants one of, or not. */
static void
serve(const char *name, const char *auth_clients)
{
	char certificate[32], key[32], number[8];

	(void)snprintf(certificate, sizeof certificate, "%s.pem", name);
	(void)snprintf(key, sizeof key, "%s.key", name);
	port = free_port();
	(void)snprintf(number, sizeof number, "%u", port);
	redis_server_open(&server,
		(const char *const[]){ "--tls-port", number, "--tls-cert-file",
			file(certificate).text, "--tls-key-file", file(key).text,
			"--tls-ca-cert-file", file("ca.pem").text, "--tls-auth-clients",
			auth_clients, NULL });
}

static void
trust(const char *ca)
{
	struct err err = { "" };

	tls = tls_new(&err);
	assert_non_null(tls);
	assert_row(tls_trust(tls, ca == NULL ? NULL : file(ca).text, &err) == 0, "%s", err.text);
}

static void
show(const char *certificate, const char *key)
{
	struct err err = { "" };

	assert_row(tls_show(tls, file(certificate).text, &err) == 0 &&
			tls_show_key(tls, file(key).text, &err) == 0,
		"%s", err.text);
}

static struct redis_settings
settings_of(const char *host, const char *name)
{
	struct redis_settings settings = {
		.server = { .kind = ADDRESS_TLS, .port = port }, .tls = tls, .tls_name = name
	};

	(void)snprintf(settings.server.host, sizeof settings.server.host, "%s", host);
	return settings;
}

static void
end(void)
{
	tls_free(tls);
	tls = NULL;
	if (server.pid != 0)
		redis_server_close(&server);
}

/* ---- what is trusted ---- */

static void
server_is_verified_by_its_name_or_address(void **state)
{
	static const struct {
		const char *host, *name;
	} rows[] = {
		{ "localhost", NULL },
		{ "127.0.0.1", NULL },
		{ "127.0.0.1", "redis.test" },
		{ "127.0.0.1", "sub.wild.test" },
	};

	(void)state;
	serve("server", "no");
	trust("ca.pem");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct redis_settings settings = settings_of(rows[i].host, rows[i].name);
		struct client client;

		client_open(&client, &settings);
		assert_row(client_decide(&client, &made, "k").verdict == VERDICT_ADMITTED, "%s %s",
			rows[i].host, rows[i].name == NULL ? "" : rows[i].name);
		assert_false(breaker_is_open(client.breaker));
		client_close(&client);
	}
	end();
}

static void
client_certificate_is_shown_to_who_wants_one(void **state)
{
	struct client client;

	(void)state;
	serve("server", "yes");
	trust("ca.pem");
	show("client.pem", "client.key");
	const struct redis_settings settings = settings_of("localhost", NULL);

	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
	end();
}

/* Far more than a record and than a socket takes at once, in both directions. */
static void
many_checks_under_way_are_all_answered(void **state)
{
	enum { MANY = 3000 };
	static struct asked asked[MANY];
	struct client client;

	(void)state;
	serve("server", "no");
	trust("ca.pem");
	const struct redis_settings settings = settings_of("localhost", NULL);

	client_open(&client, &settings);
	for (unsigned round = 0; round < 3; round++) {
		client.answers = 0;
		for (unsigned i = 0; i < MANY; i++) {
			asked_init(&asked[i], &client, &made, "k");
			asked_send(&asked[i]);
		}
		run_loop_until(client.loop, client.answers == MANY);
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(asked[i].decision.verdict, VERDICT_ADMITTED);
	}
	client_close(&client);
	end();
}

static void
server_that_comes_back_is_connected_to_anew(void **state)
{
	char number[8];
	struct client client;

	(void)state;
	serve("server", "no");
	trust("ca.pem");
	(void)snprintf(number, sizeof number, "%u", port);
	const struct redis_settings settings = settings_of("localhost", NULL);

	client_open(&client, &settings);
	client_wait_until_ready(&client);
	redis_server_kill(&server);
	client_wait_for_breaker(&client, true);
	redis_server_start(&server,
		(const char *const[]){ "--tls-port", number, "--tls-cert-file",
			file("server.pem").text, "--tls-key-file", file("server.key").text,
			"--tls-ca-cert-file", file("ca.pem").text, "--tls-auth-clients", "no",
			NULL });
	client_wait_for_breaker(&client, false);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
	end();
}

/* ---- sentinels ---- */

struct sentinel {
	int listener;
	uint16_t port;
	char answer[80];
};

/* One connection, with the server's own certificate; one question. */
static void *
answer_as_sentinel(void *context)
{
	const struct sentinel *sentinel = context;
	SSL_CTX *server_context = SSL_CTX_new(TLS_server_method());
	const int fd = accept(sentinel->listener, NULL, NULL);
	SSL *ssl = server_context == NULL ? NULL : SSL_new(server_context);
	char question[1000];

	if (ssl == NULL ||
		SSL_use_certificate_file(ssl, file("server.pem").text, SSL_FILETYPE_PEM) != 1 ||
		SSL_use_PrivateKey_file(ssl, file("server.key").text, SSL_FILETYPE_PEM) != 1 ||
		SSL_set_fd(ssl, fd) != 1)
		abort();
	socket_limit_time(fd);
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, question, sizeof question) > 0 &&
		SSL_write(ssl, sentinel->answer, (int)strlen(sentinel->answer)) > 0) {
		while (SSL_read(ssl, question, sizeof question) > 0)
			;
	}
	SSL_free(ssl);
	SSL_CTX_free(server_context);
	(void)close(fd);
	return NULL;
}

/* What they name is as they are, and the name that is verified may be one for all. */
static void
sentinels_and_their_master_are_verified(void **state)
{
	struct sentinel sentinel;
	struct client client;
	pthread_t thread;

	(void)state;
	serve("server", "no");
	trust("ca.pem");
	sentinel.listener = tcp_listen(5, &sentinel.port);
	(void)snprintf(sentinel.answer, sizeof sentinel.answer,
		"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%u\r\n", snprintf(NULL, 0, "%u", port), port);
	assert_int_equal(pthread_create(&thread, NULL, answer_as_sentinel, &sentinel), 0);
	const struct address address = {
		.kind = ADDRESS_TLS, .host = "127.0.0.1", .port = sentinel.port
	};

	client_open(&client,
		&(const struct redis_settings){
			.sentinels = { .addresses = &address, .count = 1, .master = "main" },
			.tls = tls,
			.tls_name = "redis.test" });
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
	(void)pthread_join(thread, NULL);
	(void)close(sentinel.listener);
	end();
}

/* ---- what is not ---- */

static char said[8192];

static void
keep_line(void *context, enum log_level level, const char *line, size_t len)
{
	const size_t used = strlen(said);

	(void)context, (void)level;
	if (len < sizeof said - used)
		memcpy(said + used, line, len);
}

/* Until the breaker opens. */
static void
assert_refused(const struct redis_settings *settings, const char *reason)
{
	struct client client;

	memset(said, 0, sizeof said);
	log_set_sink(keep_line, NULL);
	log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	client_open(&client, settings);
	client_wait_for_breaker(&client, true);
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_UNAVAILABLE);
	assert_row(strstr(said, reason) != NULL, "not said: %s\n%s", reason, said);
	client_close(&client);
}

static void
refusal_says_why_in_words(void **state)
{
	static const struct {
		const char *serves, *trusts, *name, *reason;
	} rows[] = {
		{ "expired", "ca.pem", NULL, "its certificate has expired" },
		{ "server", "ca.pem", "other.test", "its certificate is not for other.test" },
		{ "server", "ca.pem", "127.0.0.2", "its certificate is not for 127.0.0.2" },
		{ "server", "ca.pem", "a.sub.wild.test", "is not for a.sub.wild.test" },
		{ "server", "stranger.pem", NULL, "its certificate is of no CA that is trusted" },
		{ "server", NULL, NULL, "its certificate is of no CA that is trusted" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		serve(rows[i].serves, "no");
		trust(rows[i].trusts);
		const struct redis_settings settings = settings_of("localhost", rows[i].name);

		assert_refused(&settings, rows[i].reason);
		assert_row(strstr(said, "remedy=") != NULL, "%s", said);
		end();
	}
}

static void
server_that_wants_a_certificate_is_told_of(void **state)
{
	(void)state;
	serve("server", "yes");
	trust("ca.pem");
	struct redis_settings settings = settings_of("localhost", NULL);

	assert_refused(&settings, "certificate");
	assert_row(strstr(said, "client certificate") != NULL, "%s", said);
	/* One that its CA has not made. */
	show("strange.pem", "strange.key");
	assert_refused(&settings, "client certificate");
	end();
}

/* What a peer without TLS does with a handshake is answer in its own protocol, or nothing. */
static void *
answer_in_plain(void *context)
{
	const int listener = *(const int *)context;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		(void)socket_send(fd, SLICE("-ERR unknown command\r\n"));
		(void)socket_read_to_end(fd);
		(void)close(fd);
	}
	return NULL;
}

static void
peer_without_tls_is_told_of(void **state)
{
	int listener = tcp_listen(5, &port);
	pthread_t thread;

	(void)state;
	trust("ca.pem");
	assert_int_equal(pthread_create(&thread, NULL, answer_in_plain, &listener), 0);
	struct redis_settings settings = settings_of("localhost", NULL);

	assert_refused(&settings, "what it sends is not TLS");
	(void)shutdown(listener, SHUT_RDWR);
	(void)pthread_join(thread, NULL);
	(void)close(listener);
	end();
}

/* Nobody asks for anything, and the peer takes the connection, says nothing and never ends it: so
 * it is the handshake's own time that ends. */
static void
handshake_has_no_more_time_than_the_deadline(void **state)
{
	const int listener = tcp_listen(5, &port);
	struct client client;

	(void)state;
	trust("ca.pem");
	struct redis_settings settings = settings_of("127.0.0.1", NULL);

	settings.deadline_us = 400 * US_PER_MS;
	const int64_t from_us = clock_monotonic_us();

	client_open(&client, &settings);
	client_wait_for_breaker(&client, true);
	assert_in_range(
		clock_monotonic_us() - from_us, settings.deadline_us, 2 * settings.deadline_us);
	const int theirs = accept(listener, NULL, NULL);
	char hello[2000];

	/* It was in the middle of it. */
	assert_true(recv(theirs, hello, sizeof hello, 0) > 0);
	client_close(&client);
	(void)close(theirs);
	(void)close(listener);
	end();
}

/* ---- files ---- */

static void
what_is_wrong_with_a_file_is_said(void **state)
{
	struct err err;

	(void)state;
	trust("ca.pem");
	assert_int_equal(tls_trust(tls, file("nowhere.pem").text, &err), -1);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(tls_trust(tls, file("ca.key").text, &err), -1);
	assert_non_null(strstr(err.text, "certificate"));
	assert_int_equal(tls_trust(tls, directory.path, &err), -1);
	assert_non_null(strstr(err.text, "is no regular file"));
	assert_int_equal(tls_show(tls, file("client.key").text, &err), -1);
	assert_non_null(strstr(err.text, "holds no certificate in PEM"));
	assert_int_equal(tls_show(tls, file("client.pem").text, &err), 0);
	assert_int_equal(tls_show_key(tls, file("client.pem").text, &err), -1);
	assert_non_null(strstr(err.text, "key"));
	assert_int_equal(tls_show_key(tls, file("server.key").text, &err), -1);
	assert_row(strstr(err.text, "is the key of another certificate") != NULL, "%s", err.text);
	assert_int_equal(tls_show_key(tls, file("encrypted.key").text, &err), -1);
	assert_row(strstr(err.text, "is encrypted") != NULL, "%s", err.text);
	assert_int_equal(tls_show_key(tls, file("client.key").text, &err), 0);
	end();
}

static int
group_setup(void **state)
{
	static const char names[] = "DNS:localhost,DNS:redis.test,DNS:*.wild.test,IP:127.0.0.1";

	(void)state;
	directory_make(&directory);
	certificate_authority(&directory, "ca");
	certificate_authority(&directory, "stranger");
	certificate_make(&directory, "ca", "server", names, 2);
	certificate_make(&directory, "ca", "expired", names, 0);
	certificate_make(&directory, "ca", "client", "DNS:client", 2);
	certificate_make(&directory, "stranger", "strange", "DNS:client", 2);
	certificate_encrypt_key(&directory, "client", "encrypted");
	make_limit(&made, "l", "1000000/1m");
	return 0;
}

static int
group_teardown(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_verified_by_its_name_or_address),
		cmocka_unit_test(client_certificate_is_shown_to_who_wants_one),
		cmocka_unit_test(many_checks_under_way_are_all_answered),
		cmocka_unit_test(server_that_comes_back_is_connected_to_anew),
		cmocka_unit_test(sentinels_and_their_master_are_verified),
		cmocka_unit_test(refusal_says_why_in_words),
		cmocka_unit_test(server_that_wants_a_certificate_is_told_of),
		cmocka_unit_test(peer_without_tls_is_told_of),
		cmocka_unit_test(handshake_has_no_more_time_than_the_deadline),
		cmocka_unit_test(what_is_wrong_with_a_file_is_said),
	};
	struct err err;

	if (!redis_server_is_installed() || !certificates_can_be_made())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/tls", tests, group_setup, group_teardown);
}
