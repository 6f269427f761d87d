/* What a stream needs of the settings (tls.c). */
#ifndef WEIR_TLS_PRIVATE_H
#define WEIR_TLS_PRIVATE_H

#include "weir/tls.h"

#include <openssl/ssl.h>
#include <stdbool.h>

struct tls {
	SSL_CTX *context;
	BIO_METHOD *method; /* of sockets as streams use them */
};

/* ---- tls_system.c ---- */

/* All whom the system trusts now. */
void tls_trust_system(SSL_CTX *context);

/* ---- tls_socket.c ---- */

/* The data of a BIO. */
struct tls_socket {
	int fd;
	bool is_at_end; /* of its input */
};

/* NULL: no memory. */
BIO_METHOD *tls_socket_method(void);

#endif
