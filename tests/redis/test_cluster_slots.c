/* src/redis/cluster_slots.c: keys to slots, and what is believed of servers that tell of them. */
#include "../../src/redis/cluster_private.h"
#include "reading.h"

#include <ctype.h>
#include <stdio.h>

static const struct address from = { .kind = ADDRESS_TLS, .host = "10.0.0.9", .port = 7000 };

/* ---- keys ---- */

/* As `CLUSTER KEYSLOT` of Redis says. */
static void
a_key_has_the_slot_that_redis_gives_it(void **state)
{
	static const struct {
		const char *key;
		unsigned slot;
	} rows[] = {
		{ "123456789", 12739 },
		{ "", 0 },
		{ "foo", 12182 },
		{ "{user1000}.following", 3443 },
		{ "{user1000}.followers", 3443 },
		{ "user1000", 3443 },
		{ "foo{}{bar}", 8363 },
		{ "foo{{bar}}zap", 4015 },
		{ "foo{bar}{zap}", 5061 },
		{ "bar", 5061 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(slot_of(slice_of(rows[i].key)) == rows[i].slot, "%s: %u", rows[i].key,
			slot_of(slice_of(rows[i].key)));
	assert_int_not_equal(slot_of(SLICE("foo{bar")), slot_of(SLICE("foo")));
}

static void
who_is_counted_chooses_the_slot(void **state)
{
	char room[REDIS_KEY_MAX], other[REDIS_KEY_MAX];

	(void)state;
	assert_slice(redis_key("weir:", true, SLICE("login:192.0.2.1"), room),
		SLICE("weir:login:{192.0.2.1}"));
	assert_int_equal(slot_of(redis_key("weir:", true, SLICE("login:user=eve"), room)),
		slot_of(redis_key("w:", true, SLICE("page:user=eve"), other)));
	assert_slice(redis_key("weir:", false, SLICE("login:192.0.2.1"), room),
		SLICE("weir:login:192.0.2.1"));
	/* Which a client cannot bring about. */
	assert_slice(
		redis_key("weir:", true, SLICE("login:a}{b"), room), SLICE("weir:login:{a}{b}"));
}

/* For probes: none is too rare. */
static void
each_slot_has_a_tag_of_letters_and_digits(void **state)
{
	(void)state;
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		char tag[SLOT_TAG_LEN], name[] = "probe:...", room[REDIS_KEY_MAX];
		const struct slice letters = slot_tag(slot, tag);

		assert_row(letters.len == SLOT_TAG_LEN, "%u", slot);
		for (size_t i = 0; i < letters.len; i++)
			assert_row(isalnum((unsigned char)letters.ptr[i]), "%u", slot);
		memcpy(name + sizeof "probe:" - 1, letters.ptr, letters.len);
		assert_row(slot_of(redis_key("weir:", true, slice_of(name), room)) == slot, "%u",
			slot);
	}
}

/* Also of one that is just being filled. */
static void
a_server_is_probed_with_a_key_that_it_has(void **state)
{
	static struct cluster cluster = { .settings.prefix = "weir:" };
	const struct node node = { .cluster = &cluster, .index = 1 };
	char name[PROBE_NAME_SIZE];

	(void)state;
	for (unsigned slot = 0; slot < SLOTS; slot += 61) {
		cluster.slots[slot] = 2;
		assert_int_equal(cluster_slot(&cluster, node_probe_name(&node, name)), slot);
		cluster.slots[slot] = 1;
	}
	assert_slice(node_probe_name(&node, name), SLICE("probe:none"));
}

static void
a_key_of_any_length_fits(void **state)
{
	char room[REDIS_KEY_MAX], prefix[600], name[600];

	(void)state;
	memset(prefix, 'p', sizeof prefix - 1);
	memset(name, 'n', sizeof name - 1);
	prefix[sizeof prefix - 1] = name[sizeof name - 1] = '\0';
	name[3] = ':';
	assert_true(redis_key(prefix, true, slice_of(name), room).len <= REDIS_KEY_MAX);
	assert_true(redis_key(prefix, false, slice_of(name), room).len <= REDIS_KEY_MAX);
}

/* ---- the map ---- */

struct map {
	unsigned calls, slots;
	struct address last;
};

static void
take_range(void *context, unsigned first, unsigned last, const struct address *master)
{
	struct map *map = context;

	assert_true(first <= last && last < SLOTS);
	assert_true(master->kind == from.kind && master->port > 0);
	assert_true(strlen(master->host) > 0 && strlen(master->host) < sizeof master->host);
	map->calls++;
	map->slots += last - first + 1;
	map->last = *master;
}

/* -1: refused, and then nothing of it is taken. */
static int
read_map(struct slice bytes, struct map *map)
{
	struct err err;
	redisReply *reply = reply_of(bytes);

	memset(map, 0, sizeof *map);
	if (reply == NULL)
		return -1;
	const int result = slots_read(reply, &from, take_range, map, &err);

	freeReplyObject(reply);
	assert_true(result == 0 || map->calls == 0);
	return result;
}

static const char sound[] = "*2\r\n"
			    "*4\r\n:0\r\n:8191\r\n"
			    "*4\r\n$8\r\n10.0.0.1\r\n:7001\r\n$2\r\nid\r\n*0\r\n"
			    "*3\r\n$8\r\n10.0.0.2\r\n:7002\r\n$2\r\nid\r\n"
			    "*3\r\n:8192\r\n:16383\r\n"
			    "*3\r\n$6\r\nnode-b\r\n:7003\r\n$2\r\nid\r\n";

static void
a_map_is_read(void **state)
{
	struct map map;

	(void)state;
	assert_int_equal(read_map(slice_of(sound), &map), 0);
	assert_int_equal(map.calls, 2);
	assert_int_equal(map.slots, SLOTS);
	assert_string_equal(map.last.host, "node-b");
	assert_int_equal(map.last.port, 7003);
	assert_int_equal(read_map(SLICE("*0\r\n"), &map), 0);
	assert_int_equal(map.calls, 0);
}

/* Redis leaves it out when it does not know by which name it is reached. */
static void
a_server_without_a_host_is_where_the_answer_came_from(void **state)
{
	static const char *const hosts[] = { "$-1\r\n", "$0\r\n\r\n" };
	char bytes[128];
	struct map map;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(hosts); i++) {
		(void)snprintf(
			bytes, sizeof bytes, "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n%s:7004\r\n", hosts[i]);
		assert_int_equal(read_map(slice_of(bytes), &map), 0);
		assert_string_equal(map.last.host, "10.0.0.9");
		assert_int_equal(map.last.port, 7004);
	}
}

/* Redis says so of servers without a host name where names are to be told. */
static void
a_server_that_is_not_told_has_no_slots_and_the_others_theirs(void **state)
{
	static const char *const unknown[] = { "$1\r\n?\r\n:7001\r\n", "$1\r\na\r\n:0\r\n" };
	char bytes[160];
	struct map map;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(unknown); i++) {
		(void)snprintf(bytes, sizeof bytes,
			"*2\r\n*3\r\n:0\r\n:1\r\n*2\r\n%s*3\r\n:2\r\n:3\r\n*2\r\n$1\r\nb\r\n"
			":7002\r\n",
			unknown[i]);
		assert_int_equal(read_map(slice_of(bytes), &map), 0);
		assert_int_equal(map.calls, 1);
		assert_int_equal(map.slots, 2);
		assert_string_equal(map.last.host, "b");
	}
}

static void
a_map_that_cannot_be_is_refused_whole(void **state)
{
	static const char *const rows[] = {
		"+OK\r\n",
		"-NOPERM this user has no permissions\r\n",
		"*1\r\n:1\r\n",
		"*1\r\n*2\r\n:0\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
		"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
		"*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:7\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$3\r\na b\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$3\r\na\nb\r\n:1\r\n",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$6\r\n/run/x\r\n:1\r\n",
		/* The last one alone is wrong; and slots that two have. */
		"*2\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$"
		"1\r\na\r\n:1\r\n",
		"*2\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:0\r\n:0\r\n*2\r\n$"
		"1\r\na\r\n:1\r\n",
	};
	struct map map;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(read_map(slice_of(rows[i]), &map) != 0, "%s", rows[i]);
}

static void
a_host_that_is_too_long_is_refused(void **state)
{
	char bytes[512], host[256 + 1];
	struct map map;

	(void)state;
	memset(host, 'h', sizeof host - 1);
	host[sizeof host - 1] = '\0';
	(void)snprintf(
		bytes, sizeof bytes, "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$256\r\n%s\r\n:1\r\n", host);
	assert_int_not_equal(read_map(slice_of(bytes), &map), 0);
	(void)snprintf(bytes, sizeof bytes, "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$255\r\n%s\r\n:1\r\n",
		host + 1);
	assert_int_equal(read_map(slice_of(bytes), &map), 0);
}

static void
read_mutant_map(void *context, struct slice bytes)
{
	struct map map;

	(void)context;
	(void)!read_map(bytes, &map);
	assert_true(map.slots <= SLOTS);
}

static void
no_mutant_of_a_map_leads_astray(void **state)
{
	(void)state;
	each_mutation(slice_of(sound), read_mutant_map, NULL);
}

/* ---- redirections ---- */

static struct redirect
read_redirect(struct slice bytes)
{
	redisReply *reply = reply_of(bytes);
	const struct redirect none = { .kind = REDIRECT_NONE };

	if (reply == NULL)
		return none;
	const struct redirect redirect = redirect_read(reply, &from);

	freeReplyObject(reply);
	return redirect;
}

static void
redirections_are_read(void **state)
{
	static const struct {
		const char *bytes;
		enum redirect_kind kind;
		unsigned slot;
		const char *host;
		unsigned port;
	} rows[] = {
		{ "-MOVED 3999 127.0.0.1:6381\r\n", REDIRECT_MOVED, 3999, "127.0.0.1", 6381 },
		{ "-ASK 16383 node-b.example:6381\r\n", REDIRECT_ASK, 16383, "node-b.example",
			6381 },
		{ "-MOVED 0 ::1:6381\r\n", REDIRECT_MOVED, 0, "::1", 6381 },
		{ "-MOVED 5 :6381\r\n", REDIRECT_MOVED, 5, "10.0.0.9", 6381 },
		{ "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", REDIRECT_TRYAGAIN,
			0, "", 0 },
		{ "-CLUSTERDOWN Hash slot not served\r\n", REDIRECT_DOWN, 0, "", 0 },
		{ "-MOVED 16384 127.0.0.1:6381\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED 1 ?:6381\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED 1 a:0\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED 1 a:65536\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED 1 a\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED 1\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-MOVED\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "-ERR MOVED 1 a:1\r\n", REDIRECT_NONE, 0, NULL, 0 },
		{ "+MOVED 1 a:1\r\n", REDIRECT_NONE, 0, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct redirect redirect = read_redirect(slice_of(rows[i].bytes));

		assert_row(redirect.kind == rows[i].kind, "%s: %d", rows[i].bytes, redirect.kind);
		if (rows[i].host == NULL)
			continue;
		assert_int_equal(redirect.slot, rows[i].slot);
		assert_string_equal(redirect.to.host, rows[i].host);
		assert_int_equal(redirect.to.port, rows[i].port);
	}
}

static void
read_mutant_redirect(void *context, struct slice bytes)
{
	const struct redirect redirect = read_redirect(bytes);

	(void)context;
	assert_true(redirect.slot < SLOTS);
	if (redirect.kind == REDIRECT_MOVED)
		assert_true(redirect.to.port > 0 && redirect.to.host[0] != '\0');
}

static void
no_mutant_of_a_redirection_leads_astray(void **state)
{
	(void)state;
	each_mutation(SLICE("-MOVED 3999 10.0.0.1:6381\r\n"), read_mutant_redirect, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_the_slot_that_redis_gives_it),
		cmocka_unit_test(who_is_counted_chooses_the_slot),
		cmocka_unit_test(each_slot_has_a_tag_of_letters_and_digits),
		cmocka_unit_test(a_server_is_probed_with_a_key_that_it_has),
		cmocka_unit_test(a_key_of_any_length_fits),
		cmocka_unit_test(a_map_is_read),
		cmocka_unit_test(a_server_without_a_host_is_where_the_answer_came_from),
		cmocka_unit_test(a_server_that_is_not_told_has_no_slots_and_the_others_theirs),
		cmocka_unit_test(a_map_that_cannot_be_is_refused_whole),
		cmocka_unit_test(a_host_that_is_too_long_is_refused),
		cmocka_unit_test(no_mutant_of_a_map_leads_astray),
		cmocka_unit_test(redirections_are_read),
		cmocka_unit_test(no_mutant_of_a_redirection_leads_astray),
	};

	return cmocka_run_group_tests_name("redis/cluster_slots", tests, NULL, NULL);
}
