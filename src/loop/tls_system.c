/*
 * Whom the system trusts: a file of certificates, and a directory of one for each, where OpenSSL
 * has them or its own variables say (SSL_CERT_FILE, SSL_CERT_DIR). OpenSSL itself would look into
 * the directory with each handshake that needs it; that would block, and let count what was put
 * there since.
 */
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "0123abcd.0": the others in the directory are the same ones by other names, or no certificates.
 */
static bool
is_certificate(const char *name)
{
	enum { DIGITS = 8 };
	size_t len = 0;

	while (len < DIGITS && isxdigit((unsigned char)name[len]))
		len++;
	return len == DIGITS && name[len] == '.' && name[len + 1] != '\0' &&
		strspn(name + len + 1, "0123456789") == strlen(name + len + 1);
}

/* What cannot be read is nobody's. */
static void
trust_directory(X509_STORE *store, const char *path, size_t len)
{
	char name[4096];
	const struct dirent *entry;

	if (len == 0 || (size_t)snprintf(name, sizeof name, "%.*s", (int)len, path) >= sizeof name)
		return;
	DIR *directory = opendir(name);

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL) {
		if (is_certificate(entry->d_name) &&
			(size_t)snprintf(name, sizeof name, "%.*s/%s", (int)len, path,
				entry->d_name) < sizeof name)
			(void)X509_STORE_load_file(store, name);
	}
	(void)closedir(directory);
}

/* A system without a list trusts nobody, and each handshake says so. */
void
tls_trust_system(SSL_CTX *context)
{
	const char *list = secure_getenv(X509_get_default_cert_dir_env());

	if (list == NULL)
		list = X509_get_default_cert_dir();
	(void)SSL_CTX_set_default_verify_file(context);
	for (;;) {
		const size_t len = strcspn(list, ":");

		trust_directory(SSL_CTX_get_cert_store(context), list, len);
		if (list[len] == '\0')
			break;
		list += len + 1;
	}
	ERR_clear_error();
}
