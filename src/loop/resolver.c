/*
 * Look-ups by evdns. It may answer before evdns_getaddrinfo returns (a name of /etc/hosts), and a
 * cancelled one still answers once, in a later turn; so each look-up is an object of its own that
 * lives until both its starter and evdns are done with it, answers go through the end of the turn,
 * and a resolver that is freed goes with its last look-up.
 */
#include "weir/resolver.h"

#include "loop_private.h"

#include <event2/dns.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resolver {
	struct loop *loop;
	struct evdns_base *dns;
	struct lookup *lookups;
	bool closing; /* goes with the last of them */
};

struct lookup {
	struct resolver *resolver;
	struct lookup *next, **at;
	lookup_fn *fn; /* NULL: cancelled */
	void *context;
	struct evdns_getaddrinfo_request *request;
	struct deferred answer;
	struct sockaddr_storage address;
	socklen_t len;
	char error[128];
	bool answered; /* by evdns */
};

struct resolver *
resolver_new_with(struct loop *loop, const char *resolv_conf, struct err *err)
{
	struct resolver *resolver = calloc(1, sizeof *resolver);

	if (resolver == NULL) {
		(void)err_set(err, "no memory for the resolver");
		return NULL;
	}
	resolver->loop = loop;
	/* Without the file, names of /etc/hosts still work. */
	resolver->dns = evdns_base_new(loop_base(loop), EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (resolver->dns == NULL) {
		(void)err_set(err, "the resolver cannot be started");
		free(resolver);
		return NULL;
	}
	(void)evdns_base_resolv_conf_parse(resolver->dns, DNS_OPTIONS_ALL, resolv_conf);
	return resolver;
}

struct resolver *
resolver_new(struct loop *loop, struct err *err)
{
	return resolver_new_with(loop, "/etc/resolv.conf", err);
}

static void
destroy_if_done(struct resolver *resolver)
{
	if (!resolver->closing || resolver->lookups != NULL)
		return;
	evdns_base_free(resolver->dns, 0);
	free(resolver);
}

void
resolver_free(struct resolver *resolver)
{
	if (resolver == NULL)
		return;
	for (struct lookup *lookup = resolver->lookups; lookup != NULL; lookup = lookup->next)
		lookup_cancel(lookup);
	resolver->closing = true;
	destroy_if_done(resolver);
}

static void
deliver(void *context)
{
	struct lookup *lookup = context;
	const struct lookup answer = *lookup;

	*lookup->at = lookup->next;
	if (lookup->next != NULL)
		lookup->next->at = lookup->at;
	free(lookup);
	if (answer.fn == NULL)
		destroy_if_done(answer.resolver);
	else
		answer.fn(answer.context, (const struct sockaddr *)&answer.address, answer.len,
			answer.error[0] == '\0' ? NULL : answer.error);
}

static void
on_answer(int result, struct evutil_addrinfo *list, void *context)
{
	struct lookup *lookup = context;

	lookup->answered = true;
	if (result != 0 || list == NULL || list->ai_addrlen > sizeof lookup->address) {
		(void)snprintf(lookup->error, sizeof lookup->error, "%s",
			result == 0 ? "no address" : evutil_gai_strerror(result));
	} else {
		memcpy(&lookup->address, list->ai_addr, list->ai_addrlen);
		lookup->len = (socklen_t)list->ai_addrlen;
	}
	if (list != NULL)
		evutil_freeaddrinfo(list);
	loop_defer(lookup->resolver->loop, &lookup->answer);
}

struct lookup *
lookup_start(struct resolver *resolver, const struct address *address, lookup_fn *fn, void *context)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct lookup *lookup = calloc(1, sizeof *lookup);
	char port[8];

	if (lookup == NULL)
		return NULL;
	*lookup = (struct lookup){ .resolver = resolver,
		.fn = fn,
		.context = context,
		.next = resolver->lookups,
		.at = &resolver->lookups,
		.answer = { .run = deliver, .context = lookup } };
	if (lookup->next != NULL)
		lookup->next->at = &lookup->next;
	resolver->lookups = lookup;
	(void)snprintf(port, sizeof port, "%u", address->port);
	lookup->request =
		evdns_getaddrinfo(resolver->dns, address->host, port, &hints, on_answer, lookup);
	return lookup;
}

void
lookup_cancel(struct lookup *lookup)
{
	lookup->fn = NULL;
	if (!lookup->answered && lookup->request != NULL)
		evdns_getaddrinfo_cancel(lookup->request);
}
