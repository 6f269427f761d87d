/*
 * Look-ups by evdns. It may answer before evdns_getaddrinfo returns (a name of /etc/hosts), and a
 * cancelled one still answers once, in a later turn; so each look-up is an object of its own that
 * lives until both its starter and evdns are done with it, answers go through the end of the turn,
 * and a resolver that is freed goes with its last look-up.
 *
 * evdns reads its files once, and never forgets a server that they named: at boot they may be empty
 * still. So when they have changed, or look-ups fail, there is another evdns for the look-ups that
 * start then; the one before goes with the last of its own.
 */
#include "weir/resolver.h"

#include "loop_private.h"

#include <event2/dns.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HOSTS "/etc/hosts"
enum { FAILED_PAUSE_US = 5000000 };

struct names {
	struct evdns_base *dns;
	unsigned users; /* the resolver and the look-ups */
};

struct resolver {
	struct loop *loop;
	char *resolv_conf;
	struct stat files[2]; /* as they were when they were read; zeros: not there */
	struct names *names;
	struct lookup *lookups;
	bool stale; /* to be read anew, changed or not */
	int64_t pause_until_us; /* a failure alone makes nothing stale before */
	bool closing; /* goes with the last of the look-ups */
};

struct lookup {
	struct resolver *resolver;
	struct names *names;
	struct lookup *next, **at;
	lookup_fn *fn; /* NULL: cancelled */
	void *context;
	struct evdns_getaddrinfo_request *request;
	struct deferred answer;
	struct resolved addresses[LOOKUP_ADDRESSES_MAX];
	unsigned count;
	char error[128];
	bool answered; /* by evdns */
};

static struct names *
names_new(const struct resolver *resolver)
{
	struct names *names = calloc(1, sizeof *names);

	if (names == NULL)
		return NULL;
	names->users = 1;
	names->dns = evdns_base_new(loop_base(resolver->loop), EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (names->dns == NULL) {
		free(names);
		return NULL;
	}
	/* Without the file, names of /etc/hosts still work. */
	(void)evdns_base_resolv_conf_parse(names->dns, DNS_OPTIONS_ALL, resolver->resolv_conf);
	return names;
}

static void
names_release(struct names *names)
{
	if (--names->users > 0)
		return;
	evdns_base_free(names->dns, 0);
	free(names);
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
		a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Remembers them as they are now. */
static bool
have_files_changed(struct resolver *resolver)
{
	const char *const paths[] = { resolver->resolv_conf, HOSTS };
	bool changed = false;

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		struct stat now;

		if (stat(paths[i], &now) != 0)
			now = (struct stat){ 0 };
		changed = changed || !is_same_file(&now, &resolver->files[i]);
		resolver->files[i] = now;
	}
	return changed;
}

/* Without memory for new ones the old names stay. */
static void
renew_if_stale(struct resolver *resolver)
{
	/* Before they are read: a change meanwhile is then seen the next time. */
	if (have_files_changed(resolver))
		resolver->stale = true;
	if (!resolver->stale)
		return;
	struct names *names = names_new(resolver);

	if (names == NULL)
		return;
	names_release(resolver->names);
	resolver->names = names;
	resolver->stale = false;
}

struct resolver *
resolver_new_with(struct loop *loop, const char *resolv_conf, struct err *err)
{
	struct resolver *resolver = calloc(1, sizeof *resolver);

	if (resolver == NULL) {
		(void)err_set(err, "no memory for the resolver");
		return NULL;
	}
	resolver->loop = loop;
	resolver->resolv_conf = strdup(resolv_conf);
	if (resolver->resolv_conf != NULL) {
		(void)have_files_changed(resolver);
		resolver->names = names_new(resolver);
	}
	if (resolver->names == NULL) {
		(void)err_set(err, "the resolver cannot be started");
		free(resolver->resolv_conf);
		free(resolver);
		return NULL;
	}
	return resolver;
}

void
resolver_renew(struct resolver *resolver)
{
	resolver->stale = true;
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
	names_release(resolver->names);
	free(resolver->resolv_conf);
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
	names_release(answer.names);
	if (answer.fn == NULL)
		destroy_if_done(answer.resolver);
	else
		answer.fn(answer.context, answer.addresses, answer.count,
			answer.count == 0 ? answer.error : NULL);
}

/* The servers may have moved, or their sockets may be of a network that is gone. */
static void
note_failure(struct resolver *resolver)
{
	const int64_t now = loop_now_us(resolver->loop);

	if (now < resolver->pause_until_us)
		return;
	resolver->stale = true;
	resolver->pause_until_us = now + FAILED_PAUSE_US;
}

static void
take_addresses(struct lookup *lookup, const struct evutil_addrinfo *list)
{
	for (; list != NULL && lookup->count < LOOKUP_ADDRESSES_MAX; list = list->ai_next) {
		struct resolved *resolved = &lookup->addresses[lookup->count];

		if (list->ai_addrlen > sizeof resolved->address)
			continue;
		memcpy(&resolved->address, list->ai_addr, list->ai_addrlen);
		resolved->len = (socklen_t)list->ai_addrlen;
		lookup->count++;
	}
}

static void
on_answer(int result, struct evutil_addrinfo *list, void *context)
{
	struct lookup *lookup = context;

	lookup->answered = true;
	if (result == 0)
		take_addresses(lookup, list);
	if (lookup->count == 0) {
		(void)snprintf(lookup->error, sizeof lookup->error, "%s",
			result == 0 ? "no address" : evutil_gai_strerror(result));
		note_failure(lookup->resolver);
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
	renew_if_stale(resolver);
	resolver->names->users++;
	*lookup = (struct lookup){ .resolver = resolver,
		.names = resolver->names,
		.fn = fn,
		.context = context,
		.next = resolver->lookups,
		.at = &resolver->lookups,
		.answer = { .run = deliver, .context = lookup } };
	if (lookup->next != NULL)
		lookup->next->at = &lookup->next;
	resolver->lookups = lookup;
	(void)snprintf(port, sizeof port, "%u", address->port);
	lookup->request = evdns_getaddrinfo(
		resolver->names->dns, address->host, port, &hints, on_answer, lookup);
	return lookup;
}

void
lookup_cancel(struct lookup *lookup)
{
	lookup->fn = NULL;
	if (lookup->answered || lookup->request == NULL)
		return;
	/* As a rule nobody could wait any longer. */
	note_failure(lookup->resolver);
	evdns_getaddrinfo_cancel(lookup->request);
}
