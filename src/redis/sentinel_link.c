/*
 * One sentinel: look-up, connect, login, and the question where the master is. The connection stays
 * open, so that the question can be repeated.
 *
 *     closed --link_ask--> looked up --> connecting, asked --> answered --link_ask--> asked ...
 *        ^                     |                 |                |
 *        '---------------------'-----------------'----------------' link_close, or it fails
 *
 * A sentinel is no more trusted than any peer: its answer is two short texts, a host and a port, or
 * the connection ends.
 */
#include "sentinel_private.h"

#include "weir/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_ELEMENTS = 2 };

void
link_close(struct sentinel_link *link)
{
	if (link->lookup != NULL)
		lookup_cancel(link->lookup);
	link->lookup = NULL;
	if (link->stream != NULL && !link->has_answer)
		way_turn(&link->way);
	stream_close(link->stream);
	link->stream = NULL;
	if (link->reader != NULL)
		redisReaderFree(link->reader);
	link->reader = NULL;
	link->is_asked = false;
	link->logs_in = false;
	link->has_answer = false;
	link->reply_bytes = 0;
}

static void
fail(struct sentinel_link *link, const char *why)
{
	char text[192];

	(void)snprintf(text, sizeof text, "%s", why);
	link_close(link);
	sentinel_failed(link, text);
}

/* ---- the answer ---- */

/* A name or an address, as it may be looked up. */
static bool
is_host(struct slice text)
{
	if (text.len == 0 || text.len >= sizeof((struct address *)NULL)->host)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		const char c = text.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			(c == '\0' || strchr(".:-_", c) == NULL))
			return false;
	}
	return true;
}

static bool
is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

/* The first two of an array. */
static int
read_address(const redisReply *reply, enum address_kind kind, struct address *address)
{
	uint64_t port;

	if (!is_text(reply->element[0]) || !is_text(reply->element[1]))
		return -1;
	const struct slice host =
		slice_make(reply->element[0]->str, (size_t)reply->element[0]->len);
	const struct slice text =
		slice_make(reply->element[1]->str, (size_t)reply->element[1]->len);

	if (!is_host(host) || parse_uint(text, UINT16_MAX, &port) != 0 || port == 0)
		return -1;
	*address = (struct address){ .kind = kind, .port = (uint16_t)port };
	memcpy(address->host, host.ptr, host.len);
	return 0;
}

int
link_read_address(const redisReply *reply, enum address_kind kind, struct address *address)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != ANSWER_ELEMENTS)
		return -1;
	return read_address(reply, kind, address);
}

int
link_read_replica(const redisReply *reply, enum address_kind kind, struct address *address)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < ANSWER_ELEMENTS)
		return -1;
	return read_address(reply, kind, address);
}

static void
take_address(struct sentinel_link *link, const redisReply *reply)
{
	struct address address;

	if (reply->type == REDIS_REPLY_NIL) {
		fail(link, "it knows no master of this name");
	} else if (link_read_address(reply, link->address->kind, &address) != 0) {
		fail(link, "its answer is no address");
	} else {
		const bool is_news = link->has_answer && !address_is(&link->answer, &address);

		link->is_asked = false;
		link->has_answer = true;
		link->answer = address;
		sentinel_answered(link, is_news);
	}
}

static void
take_reply(struct sentinel_link *link, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		fail(link, reply->str);
	} else if (!link->is_asked) {
		fail(link, "it answered what was not asked");
	} else if (!link->logs_in) {
		take_address(link, reply);
	} else if (reply->type != REDIS_REPLY_STATUS) {
		fail(link, "its answer is none to what was asked");
	} else {
		link->logs_in = false;
	}
}

static void
on_input(void *context, struct slice data)
{
	struct sentinel_link *link = context;
	const struct stream *stream = link->stream;

	link->reply_bytes += data.len;
	if (redisReaderFeed(link->reader, data.ptr, data.len) != REDIS_OK) {
		fail(link, "no memory for its answer");
		return;
	}
	while (link->stream == stream) {
		void *reply = NULL;

		if (redisReaderGetReply(link->reader, &reply) != REDIS_OK) {
			fail(link, "what it sends is not Redis's protocol");
			return;
		}
		if (reply == NULL)
			break;
		link->reply_bytes = link->reader->len - link->reader->pos;
		take_reply(link, reply);
		freeReplyObject(reply);
	}
	if (link->stream == stream && link->reply_bytes > SENTINEL_REPLY_MAX)
		fail(link, "its answer does not end");
}

/* ---- the connection ---- */

/* A tls-port takes what is no TLS for an attack. */
static void
fail_ended(struct sentinel_link *link, int error, const char *why)
{
	const bool was_connected = stream_is_connected(link->stream) || error == ECONNRESET;
	const bool is_mute =
		link->address->kind == ADDRESS_TCP && !link->has_answer && link->reply_bytes == 0;

	fail(link, is_mute && was_connected ? NO_WORD : why);
}

static void dial(struct sentinel_link *link);

/* Whether there is an address left that may lead to an answer; it is the next one's turn then. */
static bool
goes_on(struct sentinel_link *link)
{
	if (link->has_answer || !way_has_more(&link->way))
		return false;
	stream_close(link->stream);
	link->stream = NULL;
	/* What the one before has said of a reply is not the beginning of this one's. */
	redisReaderFree(link->reader);
	link->reader = reader_new(&link->bound, ANSWER_ELEMENTS);
	link->reply_bytes = 0;
	if (link->reader == NULL)
		fail(link, "no memory");
	else
		dial(link);
	return true;
}

static void
on_eof(void *context)
{
	if (!goes_on(context))
		fail_ended(context, 0, "it closed the connection");
}

static void
on_drained(void *context)
{
	(void)context;
}

static void
on_failed(void *context, int error)
{
	struct sentinel_link *link = context;

	if (!goes_on(link))
		fail_ended(link, error, stream_reason(link->stream, error));
}

static const struct stream_handler stream_handler = {
	.input = on_input, .eof = on_eof, .drained = on_drained, .failed = on_failed
};

static int
put(struct sentinel_link *link, int count, const char **texts)
{
	char *command;
	const long long len = redisFormatCommandArgv(&command, count, texts, NULL);

	if (len < 0)
		return -1;
	stream_write(link->stream, slice_make(command, (size_t)len));
	redisFreeCommand(command);
	return 0;
}

static int
put_login(struct sentinel_link *link)
{
	const struct redis_sentinels *sentinels = &link->sentinel->settings->sentinels;
	const char *with_name[] = { "AUTH", sentinels->username, sentinels->password };
	const char *without[] = { "AUTH", sentinels->password };

	if (sentinels->password == NULL)
		return 0;
	link->logs_in = true;
	return sentinels->username != NULL ? put(link, 3, with_name) : put(link, 2, without);
}

static int
put_question(struct sentinel_link *link)
{
	return put(link, 3,
		(const char *[]){ "SENTINEL", "GET-MASTER-ADDR-BY-NAME",
			link->sentinel->settings->sentinels.master });
}

static void
dial(struct sentinel_link *link)
{
	const struct sentinel *sentinel = link->sentinel;
	int error;

	link->stream = redis_dial(sentinel->loop, sentinel->settings, link->address, &link->way,
		&stream_handler, link, &error);
	if (link->stream == NULL) {
		fail(link, strerror(error));
		return;
	}
	stream_resume(link->stream);
	if (put_login(link) != 0 || put_question(link) != 0)
		fail(link, "no memory for the question");
}

static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct sentinel_link *link = context;

	link->lookup = NULL;
	if (error != NULL) {
		fail(link, error);
		return;
	}
	way_set(&link->way, addresses, count);
	dial(link);
}

static void
connect_link(struct sentinel_link *link)
{
	link->reader = reader_new(&link->bound, ANSWER_ELEMENTS);
	if (link->reader == NULL) {
		fail(link, "no memory");
	} else if (way_begin(&link->way, link->address) == 0) {
		dial(link);
	} else {
		link->lookup =
			lookup_start(link->sentinel->resolver, link->address, on_lookup, link);
		if (link->lookup == NULL)
			fail(link, "no memory for the look-up");
	}
}

void
link_ask(struct sentinel_link *link)
{
	if (link->is_asked)
		return;
	link->is_asked = true;
	if (link->stream == NULL)
		connect_link(link);
	else if (put_question(link) != 0)
		fail(link, "no memory for the question");
}
