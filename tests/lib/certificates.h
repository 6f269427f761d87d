/* Keys and certificates for tests, made by the openssl program. */
#ifndef WEIR_TESTS_LIB_CERTIFICATES_H
#define WEIR_TESTS_LIB_CERTIFICATES_H

#include "directory.h"

/* Says so if it is not. */
bool certificates_can_be_made(void);

/* NAME.pem and NAME.key in the directory: a CA. Ends the test program if they cannot be made. */
void certificate_authority(const struct directory *directory, const char *name);

/* The same for a peer, by that CA: for names such as "DNS:localhost,IP:127.0.0.1", for so many days
 * from now; with 0 it has expired. */
void certificate_make(const struct directory *directory, const char *ca, const char *name,
	const char *names, int days);

/* NAME.key, encrypted. */
void
certificate_encrypt_key(const struct directory *directory, const char *name, const char *encrypted);

#endif
