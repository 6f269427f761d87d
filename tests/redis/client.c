/* Checks for the store over Redis. */
#include "client.h"

#include "../../src/loop/loop_private.h"
#include "weir/hash.h"
#include "weir/memory.h"

void
client_open_with(struct client *client, const struct redis_settings *settings, void *area,
	const char *resolv_conf)
{
	const struct redis_settings copy = *settings; /* it may be the client's own */
	struct err err;

	memset(client, 0, sizeof *client);
	client->settings = copy;
	if (client->settings.prefix == NULL)
		client->settings.prefix = "weir:";
	redis_counters_find(&client->counters);
	client->settings.counters = &client->counters;
	if (client->settings.deadline_us == 0)
		client->settings.deadline_us = PATIENT_US;
	assert_int_equal(hash_start(&err), 0);
	client->loop = loop_new(&err);
	assert_non_null(client->loop);
	client->resolver = resolver_new_with(client->loop, resolv_conf, &err);
	assert_non_null(client->resolver);
	client->breaker = redis_breaker(&client->settings,
		&(const struct breaker_areas){ .host = area, .size = MEMORY_AREA_SIZE });
	assert_non_null(client->breaker);
	client->redis =
		redis_new(client->loop, client->resolver, &client->settings, client->breaker, &err);
	assert_non_null(client->redis);
}

void
client_open_shared(struct client *client, const struct redis_settings *settings, void *area)
{
	client_open_with(client, settings, area, "/etc/resolv.conf");
}

void
client_open(struct client *client, const struct redis_settings *settings)
{
	client_open_shared(client, settings, NULL);
}

void
client_close(struct client *client)
{
	redis_free(client->redis);
	breaker_free(client->breaker);
	resolver_free(client->resolver);
	loop_free(client->loop);
}

static void
on_done(struct check *check, const struct decision *decision)
{
	struct asked *asked = (struct asked *)((uintptr_t)check - offsetof(struct asked, check));

	asked->answers++;
	asked->answered_at_us = clock_monotonic_us();
	asked->decision = *decision;
	asked->client->answers++;
	loop_stop(asked->client->loop);
}

void
asked_add(struct asked *asked, const struct made_limit *made, const char *key)
{
	assert_in_range(asked->check.count, 0, CHECK_LIMITS_MAX - 1);
	asked->check.items[asked->check.count++] =
		(struct check_item){ .limit = &made->limit, .key = slice_of(key) };
}

void
asked_init(
	struct asked *asked, struct client *client, const struct made_limit *made, const char *key)
{
	memset(asked, 0, sizeof *asked);
	asked->client = client;
	asked->check.cost = 1;
	asked->check.done = on_done;
	asked_add(asked, made, key);
}

void
asked_send(struct asked *asked)
{
	asked->asked_at_us = clock_monotonic_us();
	asked->check.deadline_us = asked->asked_at_us + asked->client->settings.deadline_us;
	store_decide(redis_store(asked->client->redis), &asked->check);
}

void
asked_wait(struct asked *asked)
{
	run_loop_until(asked->client->loop, asked->answers > 0);
	assert_int_equal(asked->answers, 1);
}

struct decision
client_decide(struct client *client, const struct made_limit *made, const char *key)
{
	struct asked asked;

	asked_init(&asked, client, made, key);
	asked_send(&asked);
	asked_wait(&asked);
	return asked.decision;
}

void
client_wait_until_ready(struct client *client)
{
	struct made_limit made;

	make_limit(&made, "ready", "1000000/1s");
	for (unsigned i = 0; client_decide(client, &made, "ready").verdict != VERDICT_ADMITTED;
		i++) {
		assert_in_range(i, 0, 10000);
		run_loop_for_ms(client->loop, 5);
	}
}

void
client_wait_for_breaker(struct client *client, bool open)
{
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * US_PER_S;

	while (breaker_is_open(client->breaker) != open) {
		assert_true(clock_monotonic_us() < give_up_us);
		run_loop_for_ms(client->loop, 2);
	}
}
