/*
 * Names to addresses without blocking the loop (libevent's resolver: /etc/hosts and the servers of
 * /etc/resolv.conf). Addresses that need no look-up are answered at once by socket_address
 * (socket.h).
 */
#ifndef WEIR_RESOLVER_H
#define WEIR_RESOLVER_H

#include "weir/address.h"
#include "weir/err.h"
#include "weir/loop.h"

#include <sys/socket.h>

struct resolver;
struct lookup;

struct resolved {
	struct sockaddr_storage address;
	socklen_t len;
};

enum { LOOKUP_ADDRESSES_MAX = 8 };

/* error NULL: the addresses, at least one and the first so many, in the order in which they should
 * be tried; otherwise a sentence. Never called from within lookup_start. */
typedef void
lookup_fn(void *context, const struct resolved *addresses, unsigned count, const char *error);

struct resolver *resolver_new(struct loop *loop, struct err *err) WEIR_MUST_CHECK;

/* For the look-ups that start from now on, reads both files anew. They are also read anew when they
 * have changed, and every few seconds while look-ups fail or are cancelled. */
void resolver_renew(struct resolver *resolver);

/* Look-ups under way are dropped without a call. */
void resolver_free(struct resolver *resolver);

/* NULL when memory is out. */
struct lookup *lookup_start(struct resolver *resolver, const struct address *address, lookup_fn *fn,
	void *context) WEIR_MUST_CHECK;

/* No call comes any more. Not after the call has come. */
void lookup_cancel(struct lookup *lookup);

#endif
