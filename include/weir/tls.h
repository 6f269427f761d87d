/*
 * TLS as a client: whom it trusts, and what it shows of itself. Made once for a configuration,
 * immutable from then on, and shared by all threads. How a stream uses it is in stream.h.
 *
 * TLS 1.2 (RFC 5246) at least. The peer's certificate is verified, its name too (RFC 6125: a DNS
 * name of the certificate, or an IP address of it if the name is one); nothing turns that off.
 */
#ifndef WEIR_TLS_H
#define WEIR_TLS_H

#include "weir/err.h"

struct tls;

/* Trusts nobody yet. NULL: no memory. */
struct tls *tls_new(struct err *err) WEIR_MUST_CHECK;

/* After the last stream that uses it. NULL is let pass. */
void tls_free(struct tls *tls);

/* Whom to trust: the certificates of a PEM file; NULL: whom the system trusts now. */
int tls_trust(struct tls *tls, const char *file, struct err *err) WEIR_MUST_CHECK;

/*
 * What is shown to a peer that asks: a PEM file that begins with our certificate, those of CAs
 * between behind it; and then its key, without a passphrase. The errors name the file.
 */
int tls_show(struct tls *tls, const char *file, struct err *err) WEIR_MUST_CHECK;
int tls_show_key(struct tls *tls, const char *file, struct err *err) WEIR_MUST_CHECK;

#endif
