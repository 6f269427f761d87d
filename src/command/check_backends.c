/*
 * The servers of backends, connected to at the same time. Nothing is sent: what an application
 * makes of a connection that ends at once is no fault of it. An application that starts later than
 * this check is usual, so that nothing here is an error.
 */
#include "check.h"
#include "surroundings.h"

#include "weir/clock.h"
#include "weir/resolver.h"
#include "weir/socket.h"
#include "weir/stream.h"
#include "weir/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH_US_MAX = 2 * US_PER_S, ALL_US = 10 * US_PER_S, AT_A_TIME = 200 };

struct round;

/* A server. Of several addresses one is enough. */
struct knock {
	struct round *round;
	struct named_key key;
	const struct address *address;
	int64_t timeout_us;
	struct lookup *lookup;
	struct resolved addresses[LOOKUP_ADDRESSES_MAX];
	unsigned address_count, address_at;
	struct stream *stream;
	struct timer *timer;
	struct deferred ending;
	bool has_begun, has_ended;
	char why[160]; /* it could not be connected to; "": it could */
};

struct round {
	struct surroundings look;
	struct loop *loop;
	struct resolver *resolver;
	int64_t end_us;
	struct knock *list;
	unsigned count, begun, open;
};

/* ---- one server ---- */

static void
end(struct knock *knock, const char *why)
{
	if (knock->has_ended)
		return;
	knock->has_ended = true;
	if (why != knock->why)
		(void)snprintf(knock->why, sizeof knock->why, "%s", why);
	if (knock->lookup != NULL)
		lookup_cancel(knock->lookup);
	knock->lookup = NULL;
	stream_close(knock->stream);
	knock->stream = NULL;
	if (knock->timer != NULL)
		timer_cancel(knock->timer);
	loop_defer(knock->round->loop, &knock->ending);
}

static void dial(struct knock *knock);

static void
on_connected(void *context)
{
	end(context, "");
}

static void
on_failed(void *context, int error)
{
	struct knock *knock = context;

	(void)snprintf(knock->why, sizeof knock->why, "%s", strerror(error));
	stream_close(knock->stream);
	knock->stream = NULL;
	dial(knock);
}

static void
on_input(void *context, struct slice data)
{
	(void)context;
	(void)data;
}

static void
on_nothing(void *context)
{
	(void)context;
}

static const struct stream_handler handler = { .input = on_input,
	.eof = on_nothing,
	.drained = on_nothing,
	.connected = on_connected,
	.failed = on_failed };

/* What is not there or not ours was told by who looked at the files; a full backlog is that of a
 * server that is there. */
static bool
is_told_already(const struct knock *knock, int error)
{
	return knock->address->kind == ADDRESS_UNIX && error != ECONNREFUSED;
}

/* With the first address from address_at on that is no failure at once. */
static void
dial(struct knock *knock)
{
	int error = 0;

	while (knock->stream == NULL && knock->address_at < knock->address_count) {
		const struct resolved *at = &knock->addresses[knock->address_at++];

		knock->stream = stream_connect(knock->round->loop,
			(const struct sockaddr *)&at->address, at->len, &handler, knock, &error);
	}
	if (knock->stream == NULL)
		end(knock,
			error == 0                              ? knock->why
				: is_told_already(knock, error) ? ""
								: strerror(error));
	else if (stream_is_connected(knock->stream))
		end(knock, "");
}

static void
end_unknown(struct knock *knock, const char *error)
{
	char why[sizeof knock->why];

	(void)snprintf(why, sizeof why, "%.80s: %.70s", knock->address->host, error);
	end(knock, why);
}

static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct knock *knock = context;

	knock->lookup = NULL;
	if (error != NULL) {
		end_unknown(knock, error);
		return;
	}
	memcpy(knock->addresses, addresses, count * sizeof addresses[0]);
	knock->address_count = count;
	dial(knock);
}

static void
on_time(void *context)
{
	struct knock *knock = context;

	if (knock->lookup != NULL)
		end_unknown(knock, "no name server answers");
	else
		end(knock, strerror(ETIMEDOUT));
}

static void
begin(struct knock *knock)
{
	struct resolved *first = &knock->addresses[0];
	struct round *round = knock->round;
	const int64_t until_us = loop_now_us(round->loop) + knock->timeout_us;

	knock->has_begun = true;
	round->open++;
	knock->timer = timer_new(round->loop, on_time, knock);
	if (knock->timer == NULL) {
		end(knock, strerror(ENOMEM));
		return;
	}
	timer_set(knock->timer, until_us < round->end_us ? until_us : round->end_us);
	if (socket_address(knock->address, &first->address, &first->len) == 0) {
		knock->address_count = 1;
		dial(knock);
		return;
	}
	knock->lookup = lookup_start(round->resolver, knock->address, on_lookup, knock);
	if (knock->lookup == NULL)
		end(knock, strerror(ENOMEM));
}

/* ---- all of them ---- */

/* As many at a time as leave descriptors for all else. */
static void
begin_more(struct round *round)
{
	while (round->open < AT_A_TIME && round->begun < round->count &&
		loop_now_us(round->loop) < round->end_us)
		begin(&round->list[round->begun++]);
	if (round->open == 0)
		loop_stop(round->loop);
}

static void
on_end(void *context)
{
	struct knock *knock = context;

	knock->round->open--;
	begin_more(knock->round);
}

static void
add(struct round *round, const struct config_backend *backend, unsigned nth)
{
	struct knock *knock = &round->list[round->count++];

	knock->round = round;
	knock->key = (struct named_key){ "backend", backend->name, "server", nth };
	knock->address = &backend->servers[nth];
	knock->timeout_us = backend->connect_timeout_us < EACH_US_MAX ? backend->connect_timeout_us
								      : EACH_US_MAX;
	knock->ending = (struct deferred){ .run = on_end, .context = knock };
}

static void
say(const struct round *round)
{
	for (unsigned i = 0; i < round->count; i++) {
		const struct knock *knock = &round->list[i];

		if (!knock->has_begun)
			surroundings_say(&round->look, SEVERITY_WARNING, &knock->key,
				"it was not connected to, since others took too long");
		else if (knock->why[0] != '\0')
			surroundings_say(&round->look, SEVERITY_WARNING, &knock->key,
				"it cannot be connected to now: %s", knock->why);
	}
}

static int
start(struct round *round, const struct config *config, struct err *err)
{
	unsigned count = 0;

	for (unsigned i = 0; i < config->backend_count; i++)
		count += config->backends[i]->server_count;
	round->list = calloc(count + 1, sizeof *round->list);
	if (round->list == NULL)
		return err_set(err, "no memory");
	for (unsigned i = 0; i < config->backend_count; i++) {
		for (unsigned j = 0; j < config->backends[i]->server_count; j++)
			add(round, config->backends[i], j);
	}
	round->loop = loop_new(err);
	round->resolver = round->loop == NULL ? NULL : resolver_new(round->loop, err);
	return round->resolver == NULL ? -1 : 0;
}

static void
stop(struct round *round)
{
	for (unsigned i = 0; i < round->count; i++)
		timer_free(round->list[i].timer);
	resolver_free(round->resolver);
	loop_free(round->loop);
	free(round->list);
}

void
check_backends(const struct config *config, struct diagnostics *diagnostics)
{
	struct round round = { .look = { config, diagnostics } };
	struct err err;

	if (start(&round, config, &err) == 0) {
		round.end_us = loop_now_us(round.loop) + ALL_US;
		begin_more(&round);
		if (round.open > 0)
			loop_run(round.loop);
		say(&round);
	} else {
		diagnostics_add(diagnostics, SEVERITY_WARNING, (struct place){ NULL, 0 }, NULL,
			"backends cannot be connected to: %s", err.text);
	}
	stop(&round);
}
