/*
 * What the answers say. Nothing in one is believed but what has the shape that is looked for; what
 * has not is as if it had not been said.
 */
#include "inquiry_private.h"

#include "weir/clock.h"
#include "weir/units.h"

#include <stdio.h>
#include <stdlib.h>

static struct slice
text_of(const redisReply *reply)
{
	const bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;

	return is_text ? slice_make(reply->str, (size_t)reply->len) : SLICE("");
}

/* For people: a terminal must not be moved by what a server says. */
static void
keep(char *out, size_t size, struct slice text)
{
	size_t len = 0;

	for (; len < text.len && len < size - 1; len++)
		out[len] = text.ptr[len] >= ' ' && text.ptr[len] <= '~' ? text.ptr[len] : '?';
	out[len] = '\0';
}

static void
keep_word(char out[INQUIRY_WORD_SIZE], struct slice word)
{
	keep(out, INQUIRY_WORD_SIZE, word);
}

static void
keep_version(struct inquiry_report *report, struct slice version)
{
	uint64_t major;

	keep_word(report->version, version);
	if (parse_uint(slice_first(version, slice_find(version, '.')), 999, &major) == 0)
		report->major = (unsigned)major;
}

static enum inquiry_mode
mode_of(struct slice word)
{
	if (slice_is(word, SLICE("cluster")))
		return INQUIRY_MODE_CLUSTER;
	if (slice_is(word, SLICE("sentinel")))
		return INQUIRY_MODE_SENTINEL;
	return slice_is(word, SLICE("standalone")) ? INQUIRY_MODE_ALONE : INQUIRY_MODE_UNTOLD;
}

/* https://redis.io/commands/hello: names and values in turn. */
static void
take_hello(struct inquiry_report *report, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2) {
		const struct slice name = text_of(reply->element[i]);
		const struct slice value = text_of(reply->element[i + 1]);

		if (slice_is(name, SLICE("server")))
			keep_word(report->name, value);
		else if (slice_is(name, SLICE("version")))
			keep_version(report, value);
		else if (slice_is(name, SLICE("mode")))
			report->mode = mode_of(value);
		else if (slice_is(name, SLICE("role")))
			keep_word(report->role, value);
	}
}

/* The value of a line NAME:VALUE of INFO; empty if there is none. */
static struct slice
info_value(const redisReply *reply, struct slice name)
{
	struct slice rest = text_of(reply), line;

	while (slice_split(&rest, '\n', &line)) {
		if (slice_has_prefix(line, name) && line.len > name.len &&
			line.ptr[name.len] == ':') {
			const struct slice value = slice_skip(line, name.len + 1);

			return slice_first(value, slice_find(value, '\r'));
		}
	}
	return SLICE("");
}

static void
take_info(struct inquiry_report *report, const redisReply *reply)
{
	keep_word(report->name, SLICE("redis"));
	keep_version(report, info_value(reply, SLICE("redis_version")));
	report->mode = mode_of(info_value(reply, SLICE("redis_mode")));
}

/* ---- whom it knows ---- */

_Static_assert((int)INQUIRY_ALL_SLOTS == (int)SLOTS, "one is for those who know no cluster");

static struct inquiry_server *
add_server(struct inquiry_report *report, const struct address *address)
{
	for (unsigned i = 0; i < report->server_count; i++) {
		if (address_is(&report->servers[i].address, address))
			return &report->servers[i];
	}
	if (report->server_count == INQUIRY_SERVERS_MAX) {
		report->names_more = true;
		return NULL;
	}
	struct inquiry_server *server = &report->servers[report->server_count++];

	*server = (struct inquiry_server){ .address = *address };
	return server;
}

/* {"master", offset, {{host, port, offset}, ...}} */
static void
take_replicas(struct inquiry *inquiry, const redisReply *reply)
{
	const redisReply *list = reply->elements == 3 ? reply->element[2] : NULL;
	struct address address;

	if (list == NULL || list->type != REDIS_REPLY_ARRAY)
		return;
	for (size_t i = 0; i < (size_t)list->elements; i++) {
		if (link_read_replica(list->element[i], inquiry->settings.server.kind, &address) ==
			0)
			(void)add_server(&inquiry->report, &address);
	}
}

static void
take_role(struct inquiry *inquiry, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
		return;
	keep_word(inquiry->report.role, text_of(reply->element[0]));
	if (inquiry->kind == INQUIRY_MASTER_OF_SENTINELS)
		take_replicas(inquiry, reply);
}

static void
take_memory(struct inquiry_report *report, const redisReply *reply)
{
	report->has_memory = parse_uint(info_value(reply, SLICE("maxmemory")), UINT64_MAX,
				     &report->maxmemory) == 0 &&
		parse_uint(info_value(reply, SLICE("used_memory")), UINT64_MAX,
			&report->used_memory) == 0;
	keep_word(report->policy, info_value(reply, SLICE("maxmemory_policy")));
}

/* It was made between the question and now; the middle of both is as good as any. */
static void
take_time(struct inquiry *inquiry, const redisReply *reply)
{
	const int64_t half_us = (clock_monotonic_us() - inquiry->sent_us) / 2;
	uint64_t s, us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
		parse_uint(text_of(reply->element[0]), UINT32_MAX, &s) != 0 ||
		parse_uint(text_of(reply->element[1]), 999999, &us) != 0)
		return;
	inquiry->report.has_clock = true;
	inquiry->report.ahead_us =
		(int64_t)s * US_PER_S + (int64_t)us - (clock_wall_us() - half_us);
}

static int
compare_us(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static void
take_try(struct inquiry *inquiry)
{
	int64_t sorted[INQUIRY_TRIES];

	inquiry->tries_us[inquiry->tries++] = clock_monotonic_us() - inquiry->sent_us;
	if (inquiry->tries < INQUIRY_TRIES)
		return;
	memcpy(sorted, inquiry->tries_us, sizeof sorted);
	qsort(sorted, INQUIRY_TRIES, sizeof sorted[0], compare_us);
	inquiry->report.round_trip_us = sorted[INQUIRY_TRIES / 2];
}

static void
add_master(void *context, unsigned first, unsigned last, const struct address *master)
{
	struct inquiry_report *report = context;
	struct inquiry_server *server = add_server(report, master);

	if (server != NULL)
		server->slots += last - first + 1;
	memset(report->is_served + first, true, last - first + 1);
}

static void
add_replica(void *context, const struct address *replica)
{
	(void)add_server(context, replica);
}

static void
take_slots(struct inquiry *inquiry, const redisReply *reply)
{
	const struct address *from = &inquiry->settings.server;
	struct inquiry_report *report = &inquiry->report;
	struct err err;

	if (slots_read(reply, from, add_master, report, &err) != 0)
		(void)snprintf(
			report->refusals[INQUIRY_SLOTS], INQUIRY_TEXT_SIZE, "%.200s", err.text);
	else
		slots_read_replicas(reply, from, add_replica, report);
}

static void
take_name_of_master(struct inquiry *inquiry, const redisReply *reply)
{
	struct address master;

	if (link_read_address(reply, inquiry->settings.server.kind, &master) == 0)
		(void)add_server(&inquiry->report, &master);
}

static void
take_error(struct inquiry *inquiry, enum inquiry_question question, const redisReply *reply)
{
	const struct slice text = slice_make(reply->str, (size_t)reply->len);
	const bool is_elsewhere = inquiry->kind == INQUIRY_NODE &&
		(slice_has_prefix(text, SLICE("MOVED ")) || slice_has_prefix(text, SLICE("ASK ")));
	const bool is_read_only =
		inquiry->kind == INQUIRY_REPLICA && slice_has_prefix(text, SLICE("READONLY "));

	/* What cannot be decided by script cannot be measured either. */
	if (question == INQUIRY_EVALSHA)
		inquiry->tries = INQUIRY_TRIES;
	if (!is_elsewhere && !is_read_only)
		keep(inquiry->report.refusals[question], INQUIRY_TEXT_SIZE, text);
}

void
question_take(struct inquiry *inquiry, enum inquiry_question question, const redisReply *reply)
{
	struct inquiry_report *report = &inquiry->report;

	if (reply->type == REDIS_REPLY_ERROR) {
		take_error(inquiry, question, reply);
		return;
	}
	switch (question) {
	case INQUIRY_HELLO:
		take_hello(report, reply);
		break;
	case INQUIRY_INFO_SERVER:
		take_info(report, reply);
		break;
	case INQUIRY_NAME_OF_MASTER:
		take_name_of_master(inquiry, reply);
		break;
	case INQUIRY_ROLE:
		take_role(inquiry, reply);
		break;
	case INQUIRY_SLOTS:
		take_slots(inquiry, reply);
		break;
	case INQUIRY_TIME:
		take_time(inquiry, reply);
		break;
	case INQUIRY_EVALSHA:
		take_try(inquiry);
		break;
	case INQUIRY_MEMORY:
		take_memory(report, reply);
		break;
	case INQUIRY_AUTH:
	case INQUIRY_SELECT:
	case INQUIRY_ASKING:
	case INQUIRY_SET:
	case INQUIRY_GET:
	case INQUIRY_EVAL:
	case INQUIRY_ENGINE:
	case INQUIRY_DEL:
	case INQUIRY_QUESTIONS:
		break;
	}
}
