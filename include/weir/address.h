/* Where a peer listens or we do: unix:/path, tcp:host:port, tcp:[::1]:9000, tls:host:port. Only
 * text; nothing is resolved. */
#ifndef WEIR_ADDRESS_H
#define WEIR_ADDRESS_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

enum address_kind { ADDRESS_UNIX, ADDRESS_TCP, ADDRESS_TLS };

struct address {
	enum address_kind kind;
	char host[256]; /* the path of a unix socket; a name or an address without brackets for the
			   others */
	uint16_t port; /* 0 for a unix socket */
};

/* err says what would be right. A unix path is absolute and fits struct sockaddr_un (107 bytes). */
int address_parse(struct slice text, struct address *out, struct err *err) WEIR_MUST_CHECK;

enum { ADDRESS_TEXT_SIZE = 280 };

/* As it is written in the configuration. Returns `out`. */
const char *address_text(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

bool address_is(const struct address *a, const struct address *b);

#endif
