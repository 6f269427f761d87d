/* tls.h and stream.h: whom a stream believes, and what it says of itself before anybody is
 * believed. The other end is OpenSSL in a thread, blocking. */
#include "../lib/certificates.h"
#include "end.h"
#include "weir/tls.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct directory certificates;
static int listener;
static uint16_t port;

/* ---- the other end ---- */

/* What it is, and what it has seen. */
struct peer {
	pthread_t thread;
	const char *certificate;
	int max_version; /* 0: any */
	char name[64]; /* that was asked for; "": none */
	int version; /* 0: there was no handshake */
};

static struct directory_path
file(const char *name, const char *end)
{
	char both[64];

	(void)snprintf(both, sizeof both, "%s%s", name, end);
	return directory_path(&certificates, both);
}

/* Of any strength: what is refused is refused by the stream. */
static SSL_CTX *
make_context(const struct peer *peer)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (context == NULL ||
		SSL_CTX_use_certificate_file(
			context, file(peer->certificate, ".pem").text, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_use_PrivateKey_file(
			context, file(peer->certificate, ".key").text, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_set_cipher_list(context, "DEFAULT:@SECLEVEL=0") != 1 ||
		SSL_CTX_set_min_proto_version(context, TLS1_VERSION) != 1 ||
		SSL_CTX_set_max_proto_version(context, peer->max_version) != 1)
		abort();
	return context;
}

static void *
serve_one(void *context)
{
	struct peer *peer = context;
	SSL_CTX *server = make_context(peer);
	const int fd = accept(listener, NULL, NULL);
	SSL *ssl = SSL_new(server);
	char byte;

	socket_limit_time(fd);
	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
		abort();
	if (SSL_accept(ssl) == 1)
		peer->version = SSL_version(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)snprintf(peer->name, sizeof peer->name, "%s", name == NULL ? "" : name);
	(void)SSL_read(ssl, &byte, 1);
	SSL_free(ssl);
	SSL_CTX_free(server);
	(void)close(fd);
	return NULL;
}

/* ---- the stream ---- */

static struct tls *
trust(const char *ca)
{
	struct err err = { "" };
	struct tls *tls = tls_new(&err);

	assert_non_null(tls);
	assert_row(tls_trust(tls, ca == NULL ? NULL : file(ca, ".pem").text, &err) == 0, "%s",
		err.text);
	return tls;
}

/* Whether the stream believed that the peer is called so. */
static bool
connects(const struct tls *tls, struct peer *peer, const char *name)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct end end = { 0 };
	int error = 0;

	assert_int_equal(pthread_create(&peer->thread, NULL, serve_one, peer), 0);
	end.stream = stream_connect(loop, (const struct sockaddr *)&address, sizeof address,
		&end_handler, &end, &error);
	assert_non_null(end.stream);
	assert_int_equal(stream_start_tls(end.stream, tls, name), 0);
	run_loop_until(loop, (end.calls & (CALL_CONNECTED | CALL_FAILED)) != 0);
	const bool is_connected = (end.calls & CALL_CONNECTED) != 0;

	end_close(&end);
	assert_int_equal(pthread_join(peer->thread, NULL), 0);
	return is_connected;
}

/* ---- what the peer is told ---- */

static void
the_peer_is_told_the_name_and_no_address(void **state)
{
	static const struct {
		const char *name, *told;
	} rows[] = {
		{ "localhost", "localhost" },
		{ "other.test", "other.test" },
		{ "127.0.0.1", "" },
		{ "::1", "" },
	};
	struct tls *tls = trust("ca");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct peer peer = { .certificate = "server" };

		(void)connects(tls, &peer, rows[i].name);
		assert_string_equal(peer.name, rows[i].told);
	}
	tls_free(tls);
}

/* ---- whom it believes ---- */

/* Also where the system's own settings would allow it. */
static void
a_peer_of_before_tls_1_2_is_refused(void **state)
{
	static const struct {
		int version;
		bool is_good;
	} rows[] = {
		{ TLS1_VERSION, false },
		{ TLS1_1_VERSION, false },
		{ TLS1_2_VERSION, true },
		{ TLS1_3_VERSION, true },
	};
	struct tls *tls = trust("ca");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct peer peer = { .certificate = "server", .max_version = rows[i].version };

		assert_row(connects(tls, &peer, "localhost") == rows[i].is_good, "%x",
			(unsigned)rows[i].version);
		assert_int_equal(peer.version, rows[i].is_good ? rows[i].version : 0);
	}
	tls_free(tls);
}

/* RFC 6125 section 6.4.3: a whole label, and one. */
static void
an_asterisk_stands_for_one_whole_label(void **state)
{
	static const struct {
		const char *name;
		bool is_good;
	} rows[] = {
		{ "a.wild.test", true }, { "a.b.wild.test", false }, { "wild.test", false },
		{ "some.part.test", false }, /* s*.part.test */
		{ "one.part.test", false }, /* *e.part.test */
	};
	struct tls *tls = trust("ca");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct peer peer = { .certificate = "wild" };

		assert_row(
			connects(tls, &peer, rows[i].name) == rows[i].is_good, "%s", rows[i].name);
	}
	tls_free(tls);
}

/* ---- whom the system trusts ---- */

/* The name by which OpenSSL finds it in a directory. */
static struct directory_path
hashed(const struct directory *in, const char *ca)
{
	FILE *pem = fopen(file(ca, ".pem").text, "re");
	X509 *certificate = PEM_read_X509(pem, NULL, NULL, NULL);
	char name[32];

	assert_non_null(certificate);
	(void)snprintf(name, sizeof name, "%08lx.0", X509_subject_name_hash(certificate));
	X509_free(certificate);
	(void)fclose(pem);
	return directory_path(in, name);
}

static bool
system_trusts(struct tls *tls)
{
	struct peer peer = { .certificate = "server" };
	const bool is_trusted = connects(tls, &peer, "localhost");

	tls_free(tls);
	return is_trusted;
}

/* What is there at the start counts, though it goes; what comes later does not. */
static void
certificates_of_the_system_are_read_once(void **state)
{
	struct directory list;
	char text[256];

	(void)state;
	directory_make(&list);
	(void)snprintf(text, sizeof text, "/nonexistent::%s", list.path);
	assert_int_equal(setenv("SSL_CERT_DIR", text, 1), 0);
	assert_int_equal(setenv("SSL_CERT_FILE", "/nonexistent", 1), 0);
	const struct directory_path name = hashed(&list, "ca");
	struct tls *before = trust(NULL);

	assert_int_equal(symlink(file("ca", ".pem").text, name.text), 0);
	assert_false(system_trusts(before));
	assert_true(system_trusts(trust(NULL)));
	struct tls *after = trust(NULL);

	assert_int_equal(unlink(name.text), 0);
	assert_true(system_trusts(after));
	assert_int_equal(setenv("SSL_CERT_FILE", file("ca", ".pem").text, 1), 0);
	assert_true(system_trusts(trust(NULL)));
	(void)unsetenv("SSL_CERT_FILE");
	(void)unsetenv("SSL_CERT_DIR");
	directory_remove(&list);
}

/* What else lies there is not read: names that are no hash, and what is no certificate. */
static void
what_lies_beside_the_certificates_of_the_system_does_no_harm(void **state)
{
	struct directory list;

	(void)state;
	directory_make(&list);
	assert_int_equal(setenv("SSL_CERT_DIR", list.path, 1), 0);
	assert_int_equal(setenv("SSL_CERT_FILE", "/nonexistent", 1), 0);
	assert_int_equal(symlink(file("ca", ".pem").text, directory_path(&list, "ca.pem").text), 0);
	directory_write(&list, "0123abcd.0", SLICE("no certificate"));
	directory_write(&list, "0123abcd.r0", SLICE("no certificate"));
	assert_false(system_trusts(trust(NULL)));
	assert_int_equal(symlink(file("ca", ".pem").text, hashed(&list, "ca").text), 0);
	assert_true(system_trusts(trust(NULL)));
	(void)unsetenv("SSL_CERT_FILE");
	(void)unsetenv("SSL_CERT_DIR");
	directory_remove(&list);
}

/* ---- set-up ---- */

/* As lax as a system may be told to be. The openssl program has made the certificates by then. */
static void
allow_old_versions(void)
{
	directory_write(&certificates, "openssl.cnf",
		SLICE("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n"
		      "[lax]\nMinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n"));
	assert_int_equal(setenv("OPENSSL_CONF", file("openssl", ".cnf").text, 1), 0);
}

static int
group_setup(void **state)
{
	(void)state;
	directory_make(&certificates);
	certificate_authority(&certificates, "ca");
	certificate_make(&certificates, "ca", "server", "DNS:localhost", 2);
	certificate_make(&certificates, "ca", "wild",
		"DNS:*.wild.test,DNS:s*.part.test,DNS:*e.part.test", 2);
	allow_old_versions();
	listener = tcp_listen(5, &port);
	return 0;
}

static int
group_teardown(void **state)
{
	(void)state;
	(void)close(listener);
	directory_remove(&certificates);
	return 0;
}

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, end_set_up, end_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TLS_TEST(the_peer_is_told_the_name_and_no_address),
		TLS_TEST(a_peer_of_before_tls_1_2_is_refused),
		TLS_TEST(an_asterisk_stands_for_one_whole_label),
		TLS_TEST(certificates_of_the_system_are_read_once),
		TLS_TEST(what_lies_beside_the_certificates_of_the_system_does_no_harm),
	};

	if (!certificates_can_be_made())
		return 77;
	(void)signal(SIGPIPE, SIG_IGN); /* of the other end */
	return cmocka_run_group_tests_name("loop/tls", tests, group_setup, group_teardown);
}
