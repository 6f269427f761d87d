/*
 * What TLS streams of one configuration have in common. The files are read here and never again, so
 * a file that is replaced counts from the next reload on. What is wrong with one of them is said in
 * words: OpenSSL's own, which name a function and a routine, help nobody who has only a wrong path.
 */
#include "tls_private.h"

#include <openssl/decodererr.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A key that is encrypted is refused, which is noted; without this OpenSSL would ask the terminal.
 */
static int
no_passphrase(char *buf, int size, int rwflag, void *context)
{
	bool *is_encrypted = context;

	(void)buf, (void)size, (void)rwflag;
	if (is_encrypted != NULL)
		*is_encrypted = true;
	return -1;
}

struct tls *
tls_new(struct err *err)
{
	struct tls *tls = calloc(1, sizeof *tls);

	if (tls != NULL) {
		tls->context = SSL_CTX_new(TLS_client_method());
		tls->method = tls_socket_method();
	}
	if (tls == NULL || tls->context == NULL || tls->method == NULL ||
		SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1) {
		(void)err_set(err, "no memory for TLS");
		tls_free(tls);
		ERR_clear_error();
		return NULL;
	}
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	(void)SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(tls->context,
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
	return tls;
}

void
tls_free(struct tls *tls)
{
	if (tls == NULL)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls);
}

static int
check_readable(const char *file, struct err *err)
{
	struct stat status;

	if (access(file, R_OK) != 0) {
		(void)err_set_open(err, file, errno);
		return err_prefix(
			err, "%s cannot be read by user id %u", file, (unsigned)geteuid());
	}
	if (stat(file, &status) == 0 && !S_ISREG(status.st_mode))
		return err_set(err, "%s is no regular file", file);
	return 0;
}

/* There is nothing in it that could be meant. */
static bool
is_nothing(int library, int reason)
{
	return (library == ERR_LIB_PEM && reason == PEM_R_NO_START_LINE) ||
		(library == ERR_LIB_X509 && reason == X509_R_NO_CERTIFICATE_OR_CRL_FOUND) ||
		(library == ERR_LIB_OSSL_DECODER && reason == ERR_R_UNSUPPORTED);
}

/* Of the errors that one failure leaves, the first is nearest to its cause. None is left. */
static int
explain(const char *file, const char *what, struct err *err)
{
	const unsigned long error = ERR_peek_error();
	const int library = ERR_GET_LIB(error), reason = ERR_GET_REASON(error);
	const char *words = ERR_reason_error_string(error);

	if (is_nothing(library, reason))
		(void)err_set(err, "%s holds no %s in PEM", file, what);
	else if (library == ERR_LIB_X509 && reason == X509_R_KEY_VALUES_MISMATCH)
		(void)err_set(err, "%s is the key of another certificate", file);
	else
		(void)err_set(err, "%s holds no usable %s: %s", file, what,
			words == NULL ? "unknown error" : words);
	ERR_clear_error();
	return -1;
}

int
tls_trust(struct tls *tls, const char *file, struct err *err)
{
	if (file == NULL) {
		tls_trust_system(tls->context);
		return 0;
	}
	if (check_readable(file, err) != 0)
		return -1;
	ERR_clear_error();
	if (SSL_CTX_load_verify_file(tls->context, file) != 1)
		return explain(file, "certificate", err);
	ERR_clear_error();
	return 0;
}

int
tls_show(struct tls *tls, const char *file, struct err *err)
{
	if (check_readable(file, err) != 0)
		return -1;
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(tls->context, file) != 1)
		return explain(file, "certificate", err);
	return 0;
}

int
tls_show_key(struct tls *tls, const char *file, struct err *err)
{
	bool is_encrypted = false;

	if (check_readable(file, err) != 0)
		return -1;
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb_userdata(tls->context, &is_encrypted);
	const bool is_good =
		SSL_CTX_use_PrivateKey_file(tls->context, file, SSL_FILETYPE_PEM) == 1 &&
		SSL_CTX_check_private_key(tls->context) == 1;

	SSL_CTX_set_default_passwd_cb_userdata(tls->context, NULL);
	if (is_good)
		return 0;
	(void)explain(file, "key", err);
	return is_encrypted
		? err_set(err, "%s is encrypted; weir wants a key without a passphrase", file)
		: -1;
}
