/*
 * TLS over a stream's socket. OpenSSL is driven without blocking over the stream's own descriptor,
 * so that queue, back-pressure, deadlines and call backs are those of any other stream; libevent's
 * bufferevents would bring a queue and timers of their own in their place, and say of a failure
 * only that there was one.
 *
 * The handshake is a part of connecting: reading is watched for it also while the stream is paused.
 * Afterwards a read may have to wait until the socket can be written to (an answer to a change of
 * keys that finds no room, RFC 8446 section 4.6.3); a write never waits for input, since
 * renegotiation is off.
 */
#include "stream_private.h"
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_RECORDS_MAX = 16 };

struct stream_tls {
	SSL *ssl;
	struct tls_socket socket;
	bool reads_when_writable;
	bool is_dead; /* after a fatal error nothing may be asked of ssl */
	char name[256];
	char reason[384];
};

/* ---- what went wrong ---- */

static const char *
words_of_peer(int reason)
{
	switch (reason) {
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return "it wants a client certificate";
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		return "it refuses the TLS handshake; it may want a client certificate";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
		return "it does not trust the CA of our client certificate";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return "our client certificate has expired, it says";
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
		return "it does not take our client certificate";
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
	case SSL_R_UNSUPPORTED_PROTOCOL:
		return "it speaks no TLS 1.2 or later";
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
		return "what it sends is not TLS";
	default:
		return NULL;
	}
}

static void
tell_certificate(struct stream_tls *tls, long result)
{
	const char *words = "is not accepted: ";
	const char *more = "";

	switch (result) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		words = "has expired";
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		words = "is not valid yet; is a clock wrong?";
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		words = "is not for ";
		more = tls->name;
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		words = "is of no CA that is trusted";
		break;
	default:
		more = X509_verify_cert_error_string(result);
		break;
	}
	(void)snprintf(tls->reason, sizeof tls->reason, "its certificate %s%s", words, more);
}

/* A peer that refuses us says why before it closes, and what we write then is answered with a
 * reset: its words may still lie there. NULL: there are none. */
static const char *
last_words(SSL *ssl)
{
	char bytes[4096];
	unsigned records = 0;

	ERR_clear_error();
	while (records < LAST_RECORDS_MAX && SSL_read(ssl, bytes, sizeof bytes) > 0)
		records++;
	const unsigned long queued = ERR_peek_error();

	return queued == 0 ? NULL : words_of_peer(ERR_GET_REASON(queued));
}

/* Of a fatal error of SSL; returns the errno. */
static int
explain(struct stream *stream, int error, int system)
{
	struct stream_tls *tls = stream->tls;
	const unsigned long queued = ERR_peek_error();
	const long verified = SSL_get_verify_result(tls->ssl);
	const char *words = queued == 0 ? NULL : words_of_peer(ERR_GET_REASON(queued));

	tls->is_dead = true;
	ERR_clear_error();
	if (error == SSL_ERROR_SYSCALL && system != 0) {
		words = stream->read_on ? NULL : last_words(tls->ssl);
		if (words == NULL)
			return system;
	} else if (tls->socket.is_at_end) {
		words = stream->connecting ? "it closed the connection during the TLS handshake"
					   : "it cut the TLS connection off";
	} else if (stream->connecting && verified != X509_V_OK) {
		tell_certificate(tls, verified);
	} else if (words == NULL && queued != 0) {
		words = ERR_reason_error_string(queued);
	}
	if (tls->reason[0] == '\0')
		(void)snprintf(tls->reason, sizeof tls->reason, "%s",
			words == NULL ? "TLS failed" : words);
	return EPROTO;
}

const char *
tls_reason(const struct stream *stream)
{
	return stream->tls == NULL || stream->tls->reason[0] == '\0' ? NULL : stream->tls->reason;
}

/* ---- the handshake ---- */

/* SNI is for names only (RFC 6066 section 3). */
static bool
expect(SSL *ssl, const char *name)
{
	unsigned char ip[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 &&
		SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			(void *)(uintptr_t)name) == 1;
}

static bool
attach(struct stream_tls *made, const struct tls *tls)
{
	BIO *bio;

	made->ssl = SSL_new(tls->context);
	bio = made->ssl == NULL ? NULL : BIO_new(tls->method);
	if (bio == NULL)
		return false;
	BIO_set_data(bio, &made->socket);
	BIO_set_init(bio, 1);
	SSL_set_bio(made->ssl, bio, bio);
	SSL_set_connect_state(made->ssl);
	return expect(made->ssl, made->name);
}

int
stream_start_tls(struct stream *stream, const struct tls *tls, const char *name)
{
	struct stream_tls *made = calloc(1, sizeof *made);

	if (made == NULL)
		return -1;
	stream->tls = made;
	made->socket.fd = stream->fd;
	(void)snprintf(made->name, sizeof made->name, "%s", name);
	if (!attach(made, tls)) {
		ERR_clear_error();
		return -1;
	}
	stream->connecting = true;
	stream_watch_writable(stream);
	return 0;
}

void
tls_handshake(struct stream *stream)
{
	struct stream_tls *tls = stream->tls;

	ERR_clear_error();
	const int result = SSL_do_handshake(tls->ssl);
	const int system = errno,
		  error = result == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, result);

	if (error == SSL_ERROR_WANT_READ) {
		(void)event_add(&stream->readable, NULL);
		return;
	}
	if (error == SSL_ERROR_WANT_WRITE) {
		stream_watch_writable(stream);
		return;
	}
	if (error != SSL_ERROR_NONE) {
		stream_break(stream, explain(stream, error, system));
		return;
	}
	stream->connecting = false;
	if (stream->paused)
		(void)event_del(&stream->readable);
}

/* ---- bytes ---- */

ssize_t
tls_read(struct stream *stream, char *out, size_t size)
{
	struct stream_tls *tls = stream->tls;

	ERR_clear_error();
	tls->reads_when_writable = false;
	const int n = SSL_read(tls->ssl, out, (int)size);
	const int system = errno, error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, n);

	if (n > 0)
		return n;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = EAGAIN;
	if (error == SSL_ERROR_WANT_WRITE) {
		/* What has come stays in the socket, and would be found there again at once. */
		tls->reads_when_writable = true;
		(void)event_del(&stream->readable);
		stream_watch_writable(stream);
	} else if (error != SSL_ERROR_WANT_READ) {
		errno = explain(stream, error, system);
	}
	return -1;
}

bool
tls_reads_when_writable(const struct stream *stream)
{
	return stream->tls != NULL && stream->tls->reads_when_writable;
}

/* A record at a time. */
ssize_t
tls_write(struct stream *stream, struct slice bytes)
{
	struct stream_tls *tls = stream->tls;
	const size_t len = bytes.len;

	while (bytes.len > 0) {
		ERR_clear_error();
		const int n = SSL_write(tls->ssl, bytes.ptr, (int)bytes.len);
		const int system = errno;
		const int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, n);

		if (n <= 0 && error == SSL_ERROR_WANT_WRITE)
			break;
		if (n <= 0) {
			errno = explain(stream, error, system);
			return -1;
		}
		bytes = slice_skip(bytes, (size_t)n);
	}
	errno = EAGAIN;
	return bytes.len == len ? -1 : (ssize_t)(len - bytes.len);
}

void
tls_finish(struct stream *stream)
{
	struct stream_tls *tls = stream->tls;

	if (tls == NULL || stream->connecting || stream->broken || tls->is_dead)
		return;
	/* In the middle of what was queued it would claim that this was all. */
	if (stream->out.len == 0)
		(void)SSL_shutdown(tls->ssl);
	ERR_clear_error();
}

void
tls_release(struct stream *stream)
{
	if (stream->tls == NULL)
		return;
	SSL_free(stream->tls->ssl);
	free(stream->tls);
	stream->tls = NULL;
}
