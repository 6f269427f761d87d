/* stream.h with TLS: what it promises of every stream holds here too. The other end is OpenSSL in a
 * thread, blocking. */
#include "../lib/certificates.h"
#include "../../src/loop/stream_private.h"
#include "end.h"
#include "weir/tls.h"

#include <openssl/ssl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

enum { MANY = 3000000 };

static struct tls *tls;
static SSL_CTX *server_context;

/* ---- the other end ---- */

struct peer {
	pthread_t thread;
	int listener;
	uint16_t port;
	void (*serve)(struct peer *peer, SSL *ssl);
	uint64_t got;
	bool is_out_of_order, was_told_of_end;
	_Atomic bool may_go_on, is_accepted, may_write, is_written;
};

static void *
serve_one(void *context)
{
	struct peer *peer = context;
	const int fd = accept(peer->listener, NULL, NULL);
	SSL *ssl = SSL_new(server_context);

	socket_limit_time(fd);
	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
		abort();
	peer->is_accepted = SSL_accept(ssl) == 1;
	if (peer->is_accepted)
		peer->serve(peer, ssl);
	SSL_free(ssl);
	(void)close(fd);
	return NULL;
}

static void
peer_start(struct peer *peer, void (*serve)(struct peer *peer, SSL *ssl))
{
	*peer = (struct peer){ .serve = serve };
	peer->listener = tcp_listen(1, &peer->port);
	socket_limit_buffers(peer->listener, 65536);
	assert_int_equal(pthread_create(&peer->thread, NULL, serve_one, peer), 0);
}

static void
peer_wait(struct peer *peer)
{
	assert_int_equal(pthread_join(peer->thread, NULL), 0);
	(void)close(peer->listener);
	assert_false(peer->is_out_of_order);
}

/* To the end, or so many bytes. */
static void
read_pattern(struct peer *peer, SSL *ssl, uint64_t max)
{
	char bytes[20000], expected[20000];
	int n;

	while (peer->got < max && (n = SSL_read(ssl, bytes, sizeof bytes)) > 0) {
		end_fill(expected, (size_t)n, peer->got);
		peer->is_out_of_order =
			peer->is_out_of_order || memcmp(bytes, expected, (size_t)n) != 0;
		peer->got += (uint64_t)n;
	}
	peer->was_told_of_end = (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

static void
write_pattern(SSL *ssl, uint64_t len)
{
	char bytes[20000];

	for (uint64_t at = 0; at < len;) {
		const size_t some = len - at < sizeof bytes ? (size_t)(len - at) : sizeof bytes;

		end_fill(bytes, some, at);
		if (SSL_write(ssl, bytes, (int)some) != (int)some)
			return;
		at += some;
	}
}

static void
start_tls(struct end *end)
{
	assert_non_null(end->stream);
	assert_int_equal(stream_start_tls(end->stream, tls, "localhost"), 0);
	assert_false(stream_is_connected(end->stream));
}

/* Over a socket that takes little at once. */
static int
open_to(struct end *end, const struct peer *peer)
{
	const int fd = tcp_connect(peer->port);

	socket_limit_buffers(fd, 65536);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	*end = (struct end){ 0 };
	end->stream = stream_new(loop, fd, &end_handler, end);
	start_tls(end);
	return fd;
}

static void
connect_to(struct end *end, const struct peer *peer)
{
	const struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_port = htons(peer->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int error = 0;

	*end = (struct end){ 0 };
	end->stream = stream_connect(
		loop, (const struct sockaddr *)&name, sizeof name, &end_handler, end, &error);
	start_tls(end);
}

/* ---- bytes ---- */

static void
read_then_write(struct peer *peer, SSL *ssl)
{
	/* So long that the stream has to wait for the socket, in the middle of a record. */
	while (!peer->may_go_on)
		(void)poll(NULL, 0, 1);
	read_pattern(peer, ssl, UINT64_MAX);
	write_pattern(ssl, MANY);
	(void)SSL_shutdown(ssl);
}

static void
bytes_pass_in_order_and_both_sides_are_told_of_the_end(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	peer_start(&peer, read_then_write);
	(void)open_to(&end, &peer);
	/* Before there is a connection, and in pieces of all kinds. */
	for (uint64_t at = 0, len = 1; at < MANY; at += len, len = len * 3 + 1) {
		if (len > MANY - at)
			len = MANY - at;
		end_write(&end, (size_t)len, at, len > 8 ? 8 : 0);
	}
	stream_finish(end.stream);
	run_loop_until(loop, (end.calls & CALL_CONNECTED) != 0);
	assert_true(stream_is_connected(end.stream));
	run_loop_for_ms(loop, 50);
	assert_false(stream_is_finished(end.stream));
	peer.may_go_on = true;
	stream_resume(end.stream);
	run_loop_until(loop, end.eofs == 1);
	assert_int_equal(end.finishes, 1);
	assert_int_equal(end.got, MANY);
	assert_int_equal(end.calls & CALL_FAILED, 0);
	end_close(&end);
	peer_wait(&peer);
	assert_int_equal(peer.got, MANY);
	assert_true(peer.was_told_of_end);
}

static void
write_many(struct peer *peer, SSL *ssl)
{
	write_pattern(ssl, MANY);
	read_pattern(peer, ssl, UINT64_MAX);
}

/* The handshake needs reading; the owner does not. */
static void
stream_that_is_paused_connects_and_reads_nothing(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	peer_start(&peer, write_many);
	connect_to(&end, &peer);
	stream_resume(end.stream);
	stream_pause(end.stream);
	run_loop_until(loop, (end.calls & CALL_CONNECTED) != 0);
	const int64_t cpu_us = thread_cpu_us();

	run_loop_for_ms(loop, 100);
	assert_int_equal(end.got, 0);
	assert_true(thread_cpu_us() - cpu_us < 50000);
	stream_resume(end.stream);
	run_loop_until(loop, end.got == MANY);
	end_close(&end);
	peer_wait(&peer);
	assert_true(peer.was_told_of_end);
}

static void
change_keys(struct peer *peer, SSL *ssl)
{
	for (unsigned i = 1; i <= 20; i++) {
		/* Asks for the same from the other side (RFC 8446 section 4.6.3). */
		if (SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) != 1)
			return;
		read_pattern(peer, ssl, (uint64_t)i * 100000);
		char bytes[1000];

		end_fill(bytes, sizeof bytes, (uint64_t)(i - 1) * sizeof bytes);
		if (SSL_write(ssl, bytes, sizeof bytes) != sizeof bytes)
			return;
	}
}

static void
keys_may_change_under_way(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	peer_start(&peer, change_keys);
	connect_to(&end, &peer);
	stream_resume(end.stream);
	for (unsigned i = 0; i < 20; i++) {
		end_write(&end, 100000, (uint64_t)i * 100000, 0);
		run_loop_until(loop, end.got >= (uint64_t)(i + 1) * 1000 || end.error != 0);
	}
	assert_int_equal(end.got, 20000);
	end_close(&end);
	peer_wait(&peer);
}

/* A change of keys that wants an answer, and bytes behind it; more of them when that is to be sent.
 */
static void
change_keys_and_write(struct peer *peer, SSL *ssl)
{
	char bytes[2000];

	end_fill(bytes, sizeof bytes, 0);
	if (SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) != 1 ||
		SSL_write(ssl, bytes, 1000) != 1000)
		return;
	while (!peer->may_write)
		(void)poll(NULL, 0, 1);
	/* In two records. */
	peer->is_written = SSL_write(ssl, bytes + 1000, 500) == 500 &&
		SSL_write(ssl, bytes + 1500, 500) == 500;
	while (!peer->may_go_on)
		(void)poll(NULL, 0, 1);
	/* Not what TLS would read: it was put into the socket by the test. */
	(void)socket_read_to_end(SSL_get_fd(ssl));
}

/* What the other side has taken is told late, and makes room again. */
static void
fill_socket(int fd)
{
	static const char junk[4096];

	for (unsigned quiet = 0; quiet < 30; quiet++) {
		while (send(fd, junk, quiet == 0 ? sizeof junk : 1, MSG_DONTWAIT | MSG_NOSIGNAL) >
			0)
			quiet = 0;
		(void)poll(NULL, 0, 5);
	}
}

/* The answer goes in front of what is written next, and finds no room in the socket; until it has
 * gone OpenSSL reads nothing either. */
static void
open_to_full_socket(struct end *end, struct peer *peer)
{
	peer_start(peer, change_keys_and_write);
	const int fd = open_to(end, peer);

	stream_resume(end->stream);
	run_loop_until(loop, end->got == 1000);
	fill_socket(fd);
	end_write(end, 100, 0, 0);
	stream_flush(end->stream);
	peer->may_write = true;
	run_loop_while(loop, !peer->is_written || !tls_reads_when_writable(end->stream));
	assert_int_equal(end->got, 1000);
}

static void
reading_that_waits_for_room_goes_on_when_there_is_some(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	open_to_full_socket(&end, &peer);
	const int64_t cpu_us = thread_cpu_us();

	run_loop_for_ms(loop, 100);
	assert_true(thread_cpu_us() - cpu_us < 50000);
	peer.may_go_on = true;
	run_loop_until(loop, end.got == 2000);
	end_close(&end);
	peer_wait(&peer);
}

static void
stream_that_is_paused_reads_nothing_when_there_is_room(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	open_to_full_socket(&end, &peer);
	stream_pause(end.stream);
	peer.may_go_on = true;
	run_loop_while(loop, stream_queued(end.stream) > 0);
	run_loop_for_ms(loop, 20);
	assert_int_equal(end.got, 1000);
	/* And goes on when it is not paused any more, though nothing new comes. */
	stream_resume(end.stream);
	run_loop_until(loop, end.got == 2000);
	end_close(&end);
	peer_wait(&peer);
}

/* ---- ends ---- */

static void
write_and_vanish(struct peer *peer, SSL *ssl)
{
	(void)peer;
	write_pattern(ssl, 1000);
}

/* An end that nobody vouches for is none: somebody on the way may have cut it. */
static void
connection_that_is_cut_has_failed_and_not_ended(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	peer_start(&peer, write_and_vanish);
	connect_to(&end, &peer);
	stream_resume(end.stream);
	run_loop_until(loop, (end.calls & CALL_FAILED) != 0);
	assert_int_equal(end.got, 1000);
	assert_int_equal(end.eofs, 0);
	assert_string_equal(stream_reason(end.stream, end.error), "it cut the TLS connection off");
	end_close(&end);
	peer_wait(&peer);
}

static void
read_all(struct peer *peer, SSL *ssl)
{
	while (!peer->may_go_on)
		(void)poll(NULL, 0, 1);
	read_pattern(peer, ssl, UINT64_MAX);
}

/* What was queued is dropped, and that is not told as an end of it. */
static void
close_with_bytes_queued_does_not_claim_that_they_were_all(void **state)
{
	struct peer peer;
	struct end end;

	(void)state;
	peer_start(&peer, read_all);
	(void)open_to(&end, &peer);
	run_loop_until(loop, (end.calls & CALL_CONNECTED) != 0);
	end_write(&end, MANY, 0, 0);
	stream_flush(end.stream);
	assert_true(stream_queued(end.stream) > 0);
	end_close(&end);
	peer.may_go_on = true;
	peer_wait(&peer);
	assert_false(peer.was_told_of_end);
}

/* At any call back, also at that of the handshake. */
static void
stream_may_be_closed_in_each_call(void **state)
{
	static const unsigned calls[] = { CALL_CONNECTED, CALL_INPUT, CALL_EOF };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(calls); i++) {
		struct peer peer;
		struct end end;

		peer_start(&peer, read_then_write);
		peer.may_go_on = true;
		connect_to(&end, &peer);
		end.close_in = calls[i];
		stream_resume(end.stream);
		end_write(&end, 10, 0, 0);
		stream_finish(end.stream);
		run_loop_until(loop, end.stream == NULL);
		run_loop_for_ms(loop, 5);
		end_close(&end);
		peer_wait(&peer);
	}
}

static void
peer_that_ends_in_the_handshake_is_told_of(void **state)
{
	struct peer peer = { 0 };
	struct end end;

	(void)state;
	peer.listener = tcp_listen(1, &peer.port);
	connect_to(&end, &peer);
	const int theirs = accept(peer.listener, NULL, NULL);

	run_loop_for_ms(loop, 20);
	char hello[2000];

	assert_true(recv(theirs, hello, sizeof hello, 0) > 0);
	(void)close(theirs);
	run_loop_until(loop, (end.calls & CALL_FAILED) != 0);
	assert_string_equal(stream_reason(end.stream, end.error),
		"it closed the connection during the TLS handshake");
	end_close(&end);
	(void)close(peer.listener);
}

static void
refusal_to_connect_keeps_its_own_words(void **state)
{
	struct peer peer = { 0 };
	struct end end;

	(void)state;
	(void)close(tcp_listen(1, &peer.port));
	connect_to(&end, &peer);
	run_loop_until(loop, (end.calls & CALL_FAILED) != 0);
	assert_int_equal(end.error, ECONNREFUSED);
	assert_string_equal(stream_reason(end.stream, end.error), strerror(ECONNREFUSED));
	end_close(&end);
}

static void
peer_that_says_nothing_costs_nothing(void **state)
{
	struct peer peer = { 0 };
	struct end end;

	(void)state;
	peer.listener = tcp_listen(1, &peer.port);
	connect_to(&end, &peer);
	stream_set_deadline(end.stream, clock_monotonic_us() + 300000);
	const int64_t cpu_us = thread_cpu_us();

	run_loop_until(loop, end.calls != 0);
	assert_int_equal(end.calls, CALL_EXPIRED);
	assert_true(thread_cpu_us() - cpu_us < 100000);
	end_close(&end);
	(void)close(peer.listener);
}

/* ---- set-up ---- */

static int
group_setup(void **state)
{
	struct directory certificates;
	struct err err;

	(void)state;
	directory_make(&certificates);
	certificate_authority(&certificates, "ca");
	certificate_make(&certificates, "ca", "server", "DNS:localhost", 2);
	tls = tls_new(&err);
	assert_non_null(tls);
	assert_int_equal(tls_trust(tls, directory_path(&certificates, "ca.pem").text, &err), 0);
	server_context = SSL_CTX_new(TLS_server_method());
	assert_int_equal(SSL_CTX_use_certificate_chain_file(
				 server_context, directory_path(&certificates, "server.pem").text),
		1);
	assert_int_equal(
		SSL_CTX_use_PrivateKey_file(server_context,
			directory_path(&certificates, "server.key").text, SSL_FILETYPE_PEM),
		1);
	directory_remove(&certificates);
	return 0;
}

static int
group_teardown(void **state)
{
	(void)state;
	SSL_CTX_free(server_context);
	tls_free(tls);
	return 0;
}

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, end_set_up, end_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TLS_TEST(bytes_pass_in_order_and_both_sides_are_told_of_the_end),
		TLS_TEST(stream_that_is_paused_connects_and_reads_nothing),
		TLS_TEST(keys_may_change_under_way),
		TLS_TEST(reading_that_waits_for_room_goes_on_when_there_is_some),
		TLS_TEST(stream_that_is_paused_reads_nothing_when_there_is_room),
		TLS_TEST(connection_that_is_cut_has_failed_and_not_ended),
		TLS_TEST(close_with_bytes_queued_does_not_claim_that_they_were_all),
		TLS_TEST(stream_may_be_closed_in_each_call),
		TLS_TEST(peer_that_ends_in_the_handshake_is_told_of),
		TLS_TEST(refusal_to_connect_keeps_its_own_words),
		TLS_TEST(peer_that_says_nothing_costs_nothing),
	};

	if (!certificates_can_be_made())
		return 77;
	(void)signal(SIGPIPE, SIG_IGN); /* of the other end */
	return cmocka_run_group_tests_name("loop/stream_tls", tests, group_setup, group_teardown);
}
