/*
 * An inquiry's connection: look-up, connect, one question at a time, and the end.
 *
 *     looked up --> connecting --> asked <--> answered --> ended
 *         |              |           |                      ^
 *         '--------------'-----------'----------------------'
 *
 * A server is no more trusted here than by the store: an answer has a greatest size, and whatever
 * it is, the next question is put only if the connection is in step.
 */
#include "inquiry_private.h"

#include "weir/clock.h"
#include "weir/hash.h"
#include "weir/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORTEST_US (2 * US_PER_S)

static void
close_all(struct inquiry *inquiry)
{
	if (inquiry->lookup != NULL)
		lookup_cancel(inquiry->lookup);
	inquiry->lookup = NULL;
	stream_close(inquiry->stream);
	inquiry->stream = NULL;
	if (inquiry->reader != NULL)
		redisReaderFree(inquiry->reader);
	inquiry->reader = NULL;
	timer_cancel(inquiry->deadline_timer);
}

static void
on_end(void *context)
{
	struct inquiry *inquiry = context;

	inquiry->done(inquiry->context, &inquiry->report);
}

static void
end(struct inquiry *inquiry, enum inquiry_end how, const char *reason)
{
	if (inquiry->has_ended)
		return;
	inquiry->has_ended = true;
	inquiry->report.end = how;
	if (reason != inquiry->report.reason)
		(void)snprintf(inquiry->report.reason, sizeof inquiry->report.reason, "%s", reason);
	close_all(inquiry);
	loop_defer(inquiry->loop, &inquiry->ending);
}

/* ---- questions and answers ---- */

static void
put(struct inquiry *inquiry, enum inquiry_question question)
{
	struct args args = { .count = 0 };
	char *command;

	question_put(inquiry, question, &args);
	const long long len = redisFormatCommandArgv(&command, args.count, args.at, args.len);

	if (len < 0) {
		end(inquiry, INQUIRY_LOST, "no memory for a question");
		return;
	}
	inquiry->asked = question;
	inquiry->report.was_asked[question] = true;
	inquiry->bound.elements_max = question == INQUIRY_SLOTS ? SLOTS : INQUIRY_ELEMENTS_MAX;
	inquiry->bound.sum_max = SLOTS_ELEMENTS_MAX;
	inquiry->bound.sum = 0;
	inquiry->sent_us = clock_monotonic_us();
	stream_write(inquiry->stream, slice_make(command, (size_t)len));
	redisFreeCommand(command);
}

/* The question or the next one that is due. */
static void
ask_from(struct inquiry *inquiry, unsigned question)
{
	while (question < INQUIRY_QUESTIONS &&
		!question_is_due(inquiry, (enum inquiry_question)question))
		question++;
	if (question < INQUIRY_QUESTIONS)
		put(inquiry, (enum inquiry_question)question);
	else
		end(inquiry, INQUIRY_ANSWERED, "");
}

static void
take_reply(struct inquiry *inquiry, const redisReply *reply)
{
	const enum inquiry_question question = inquiry->asked;

	question_take(inquiry, question, reply);
	if (question == INQUIRY_EVALSHA && inquiry->tries < INQUIRY_TRIES)
		ask_from(inquiry, question);
	else
		ask_from(inquiry, question + 1U);
}

static void
on_input(void *context, struct slice data)
{
	struct inquiry *inquiry = context;
	const size_t max = inquiry->asked == INQUIRY_SLOTS ? SLOTS_REPLY_MAX : REPLY_MAX;
	void *reply = NULL;

	if (!inquiry->has_heard)
		timer_set(inquiry->deadline_timer, inquiry->end_us);
	inquiry->has_heard = true;
	inquiry->reply_bytes += data.len;
	if (redisReaderFeed(inquiry->reader, data.ptr, data.len) != REDIS_OK) {
		end(inquiry, INQUIRY_LOST, "no memory for its answer");
	} else if (redisReaderGetReply(inquiry->reader, &reply) != REDIS_OK) {
		end(inquiry, INQUIRY_LOST, NOT_REDIS);
	} else if (reply == NULL && inquiry->reply_bytes > max) {
		end(inquiry, INQUIRY_LOST, "its answer does not end");
	} else if (reply != NULL && inquiry->reader->len > inquiry->reader->pos) {
		end(inquiry, INQUIRY_LOST, "it answered what was not asked");
	} else if (reply != NULL) {
		inquiry->reply_bytes = 0;
		take_reply(inquiry, reply);
	}
	if (reply != NULL)
		freeReplyObject(reply);
}

/* ---- the connection ---- */

static void dial(struct inquiry *inquiry);

/* Of several addresses, that one's which says most: who listens on one of IPv4 and IPv6 alone
 * refuses on the other. */
static void
keep_reason(struct inquiry *inquiry, enum inquiry_end how, int error, const char *reason)
{
	if (inquiry->report.reason[0] != '\0' && error == ECONNREFUSED)
		return;
	inquiry->report.end = how;
	inquiry->report.error = error;
	(void)snprintf(inquiry->report.reason, sizeof inquiry->report.reason, "%s", reason);
}

/* An address that has not said a word leads to the next one, if there is one. */
static void
lose(struct inquiry *inquiry, enum inquiry_end how, int error, const char *reason)
{
	if (inquiry->has_heard) {
		end(inquiry, how, reason);
		return;
	}
	keep_reason(inquiry, how, error, reason);
	stream_close(inquiry->stream);
	inquiry->stream = NULL;
	if (way_has_more(&inquiry->way))
		dial(inquiry);
	else
		end(inquiry, inquiry->report.end, inquiry->report.reason);
}

/* A tls-port takes what is no TLS for an attack. */
static void
lose_connected(struct inquiry *inquiry, const char *reason)
{
	const bool is_mute = inquiry->settings.server.kind == ADDRESS_TCP && !inquiry->has_heard;

	lose(inquiry, INQUIRY_LOST, 0, is_mute ? NO_WORD : reason);
}

static void
on_eof(void *context)
{
	lose_connected(context, "it closed the connection");
}

static void
on_drained(void *context)
{
	(void)context;
}

static void
on_failed(void *context, int error)
{
	struct inquiry *inquiry = context;
	char reason[INQUIRY_TEXT_SIZE];

	(void)snprintf(reason, sizeof reason, "%s", stream_reason(inquiry->stream, error));
	if (stream_is_connected(inquiry->stream) || error == ECONNRESET)
		lose_connected(inquiry, reason);
	else
		lose(inquiry, INQUIRY_UNREACHED, error, reason);
}

static const struct stream_handler stream_handler = {
	.input = on_input, .eof = on_eof, .drained = on_drained, .failed = on_failed
};

/* Each address has an equal part of the time that is left. */
static int64_t
part_of_time(const struct inquiry *inquiry)
{
	const int64_t now_us = loop_now_us(inquiry->loop);

	return now_us + (inquiry->end_us - now_us) / (1 + inquiry->way.count - inquiry->way.tried);
}

static void
dial(struct inquiry *inquiry)
{
	int error;

	inquiry->stream = redis_dial(inquiry->loop, &inquiry->settings, &inquiry->settings.server,
		&inquiry->way, &stream_handler, inquiry, &error);
	if (inquiry->stream == NULL) {
		lose(inquiry, INQUIRY_UNREACHED, error, strerror(error));
		return;
	}
	timer_set(inquiry->deadline_timer, part_of_time(inquiry));
	stream_resume(inquiry->stream);
	ask_from(inquiry, 0);
}

static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct inquiry *inquiry = context;

	inquiry->lookup = NULL;
	if (error != NULL) {
		end(inquiry, INQUIRY_UNKNOWN, error);
		return;
	}
	way_set(&inquiry->way, addresses, count);
	dial(inquiry);
}

static void
on_deadline(void *context)
{
	struct inquiry *inquiry = context;

	if (inquiry->lookup != NULL) {
		end(inquiry, INQUIRY_UNKNOWN, "no name server answers");
	} else if (stream_is_connected(inquiry->stream)) {
		lose(inquiry, INQUIRY_LOST, 0, "it is silent");
	} else {
		lose(inquiry, INQUIRY_UNREACHED, ETIMEDOUT,
			inquiry->settings.server.kind == ADDRESS_TLS
				? NO_HANDSHAKE
				: "the connection does not come about");
	}
}

/* A name without a colon is no bucket's, and two who ask at a time do not meet. */
static void
make_key(struct inquiry *inquiry)
{
	char name[INQUIRY_WORD_SIZE];
	uint32_t random;

	hash_random(&random, sizeof random);
	(void)snprintf(name, sizeof name, "check-%08x", (unsigned)random);
	inquiry->key =
		redis_key(inquiry->settings.prefix, false, slice_of(name), inquiry->key_room);
}

static int
begin(struct inquiry *inquiry, struct resolver *resolver, int64_t end_us)
{
	inquiry->deadline_timer = timer_new(inquiry->loop, on_deadline, inquiry);
	inquiry->reader = reader_new(&inquiry->bound, INQUIRY_ELEMENTS_MAX);
	if (inquiry->deadline_timer == NULL || inquiry->reader == NULL)
		return -1;
	inquiry->end_us = end_us;
	timer_set(inquiry->deadline_timer, end_us);
	if (way_begin(&inquiry->way, &inquiry->settings.server) == 0) {
		dial(inquiry);
		return 0;
	}
	inquiry->lookup = lookup_start(resolver, &inquiry->settings.server, on_lookup, inquiry);
	return inquiry->lookup == NULL ? -1 : 0;
}

int64_t
inquiry_end_us(struct loop *loop, int64_t deadline_us)
{
	const int64_t time_us = INQUIRY_DEADLINES * deadline_us;

	return loop_now_us(loop) + (time_us > SHORTEST_US ? time_us : SHORTEST_US);
}

struct inquiry *
inquiry_start(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	enum inquiry_kind kind, int64_t end_us, inquiry_fn *done, void *context)
{
	struct inquiry *inquiry = calloc(1, sizeof *inquiry);

	if (inquiry == NULL)
		return NULL;
	inquiry->loop = loop;
	inquiry->settings = *settings;
	inquiry->kind = kind;
	inquiry->done = done;
	inquiry->context = context;
	inquiry->ending = (struct deferred){ .run = on_end, .context = inquiry };
	make_key(inquiry);
	if (begin(inquiry, resolver, end_us) != 0) {
		inquiry_free(inquiry);
		return NULL;
	}
	return inquiry;
}

void
inquiry_free(struct inquiry *inquiry)
{
	if (inquiry == NULL)
		return;
	if (inquiry->deadline_timer != NULL)
		close_all(inquiry);
	else if (inquiry->reader != NULL)
		redisReaderFree(inquiry->reader);
	timer_free(inquiry->deadline_timer);
	loop_undefer(inquiry->loop, &inquiry->ending);
	free(inquiry);
}
