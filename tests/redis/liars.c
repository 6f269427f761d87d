/* Servers that lie, and the store over them. */
#include "liars.h"

#include "lua_scripts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct liar liars[LIARS];
struct client rig;
struct cluster *cluster;
int64_t liars_deadline_us;
struct breaker_areas liars_areas;

static struct address seeds[LIARS];

/* ---- servers ---- */

/* On and on, as if there were no end to the servers. */
static void
send_endless(struct fake_peer *peer)
{
	bool taken = fake_send(peer, SLICE("*16384\r\n"));

	while (taken)
		taken = fake_send(peer,
			SLICE("*18\r\n:0\r\n:0\r\n*2\r\n$1\r\na\r\n:1\r\n"
			      "*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:"
			      "1\r\n"
			      "*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:"
			      "1\r\n"
			      "*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:"
			      "1\r\n"
			      "*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:"
			      "1\r\n"
			      "*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\na\r\n:"
			      "1\r\n"));
}

static bool
is_probe(const redisReply *command)
{
	return strcmp(command->element[2]->str, "0") == 0 ||
		strstr(command->element[3]->str, ":probe:") != NULL;
}

/* Lua/engine.lua's cost is 0, or -1: nothing is decided. */
static bool
is_of_lease(const redisReply *command)
{
	const size_t keys = (size_t)atoi(command->element[2]->str), at = 3 + keys + 1;

	return command->elements > at + 1 && strcmp(command->element[0]->str, "EVALSHA") == 0 &&
		(strcmp(command->element[at]->str, "0") == 0 ||
			strcmp(command->element[at]->str, "-1") == 0);
}

static bool
is_of(const redisReply *command, const struct lua_script *script)
{
	return fake_is(command, "EVALSHA") && strcmp(command->element[1]->str, script->sha1) == 0;
}

static void
answer_check(struct liar *liar, struct fake_peer *peer, const redisReply *command)
{
	const bool is_whole = fake_is(command, "EVAL"), is_back = is_of(command, &lua_give_back);
	const char *answer = liar->answer;

	(void)atomic_fetch_add(&liar->scripts, is_whole);
	(void)atomic_fetch_add(&liar->given_back, is_back);
	(void)atomic_fetch_add(&liar->checks, 1);
	while (liar->waits)
		(void)poll(NULL, 0, 1);
	if (is_whole && liar->answer_to_script != NULL)
		answer = liar->answer_to_script;
	if (is_back && liar->answer_to_give_back != NULL)
		answer = liar->answer_to_give_back;
	if (answer != NULL)
		(void)fake_send(peer, slice_of(answer));
	else if (is_of_lease(command) || is_back)
		(void)fake_send(peer, SLICE("*2\r\n:1\r\n:1\r\n"));
	else if (is_of(command, &lua_engine))
		(void)fake_send(peer, SLICE("-ERR not by a liar\r\n"));
	else
		(void)fake_answer(peer, command);
}

static void
answer(struct liar *liar, struct fake_peer *peer, const redisReply *command)
{
	char reply[64];

	if (fake_is(command, "ASKING")) {
		(void)atomic_fetch_add(&liar->asking, 1);
		(void)fake_send(peer, SLICE("+OK\r\n"));
	} else if (fake_is(command, "CLUSTER")) {
		(void)atomic_fetch_add(&liar->maps, 1);
		if (liar->slots == NULL)
			send_endless(peer);
		else
			(void)fake_send(peer, slice_of(liar->slots));
	} else if (is_probe(command)) {
		(void)snprintf(
			reply, sizeof reply, "*2\r\n:1\r\n:%lld\r\n", (long long)clock_wall_us());
		(void)fake_send(peer, slice_of(reply));
	} else {
		answer_check(liar, peer, command);
	}
}

static void
serve_one(void *context, struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		answer(context, peer, command);
		freeReplyObject(command);
	}
}

static void *
accept_all(void *context)
{
	struct liar *liar = context;

	fake_accept_all(liar->listener, &liar->seen, serve_one, liar);
	return NULL;
}

static void
liar_open(unsigned at)
{
	struct liar *liar = &liars[at];

	memset(liar, 0, sizeof *liar);
	liar->slots = "*0\r\n";
	liar->listener = tcp_listen(20, &liar->port);
	seeds[at] =
		(struct address){ .kind = ADDRESS_TCP, .host = "127.0.0.1", .port = liar->port };
}

static void
liars_start(void)
{
	for (unsigned i = 0; i < LIARS; i++)
		assert_int_equal(pthread_create(&liars[i].thread, NULL, accept_all, &liars[i]), 0);
}

void
liar_name(char out[64], const char *word, unsigned at)
{
	(void)snprintf(out, 64, "-%s 1 127.0.0.1:%u\r\n", word, liars[at].port);
}

/* ---- the store ---- */

void
liars_open(void)
{
	struct err err;

	liars_start();
	memset(&rig, 0, sizeof rig);
	redis_counters_find(&rig.counters);
	rig.settings = (struct redis_settings){ .cluster = { seeds, LIARS },
		.prefix = "weir:",
		.deadline_us = liars_deadline_us,
		.counters = &rig.counters };
	rig.loop = loop_new(&err);
	assert_non_null(rig.loop);
	rig.resolver = resolver_new(rig.loop, &err);
	assert_non_null(rig.resolver);
	rig.breaker = redis_breaker(&rig.settings, &liars_areas);
	assert_non_null(rig.breaker);
	cluster =
		cluster_new(rig.loop, rig.resolver, &rig.settings, &liars_areas, rig.breaker, &err);
	assert_non_null(cluster);
}

void
liars_share_slots(char out[256], unsigned first_of_second)
{
	(void)snprintf(out, 256,
		"*2\r\n*3\r\n:0\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n"
		"*3\r\n:%u\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
		first_of_second - 1, liars[0].port, first_of_second, liars[1].port);
}

int
liars_set_up(void **state)
{
	(void)state;
	liars_deadline_us = DEADLINE_MS * US_PER_MS;
	liars_areas = (struct breaker_areas){ .size = 0 };
	for (unsigned i = 0; i < LIARS; i++)
		liar_open(i);
	return 0;
}

int
liars_tear_down(void **state)
{
	(void)state;
	cluster_free(cluster);
	breaker_free(rig.breaker);
	resolver_free(rig.resolver);
	loop_free(rig.loop);
	for (unsigned i = 0; i < LIARS; i++) {
		(void)shutdown(liars[i].listener, SHUT_RDWR);
		(void)pthread_join(liars[i].thread, NULL);
		(void)close(liars[i].listener);
	}
	return 0;
}

struct decision
liars_decide(const struct made_limit *made, const char *key, const struct made_limit *other,
	const char *second)
{
	struct asked asked;

	asked_init(&asked, &rig, made, key);
	if (second != NULL)
		asked_add(&asked, other, second);
	asked.asked_at_us = clock_monotonic_us();
	asked.check.deadline_us = asked.asked_at_us + rig.settings.deadline_us;
	store_decide(cluster_store(cluster), &asked.check);
	asked_wait(&asked);
	assert_in_range(asked.answered_at_us - asked.asked_at_us, 0, LATE_MS * US_PER_MS);
	return asked.decision;
}
