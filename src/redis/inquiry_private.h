/* An inquiry: the connection (inquiry.c), what is asked (inquiry_questions.c), and what is answered
 * (inquiry_answers.c). */
#ifndef WEIR_INQUIRY_PRIVATE_H
#define WEIR_INQUIRY_PRIVATE_H

#include "cluster_private.h"
#include "sentinel_private.h"

#include "weir/inquiry.h"

enum {
	INQUIRY_ELEMENTS_MAX = 1024, /* of one array, but of the slots of a cluster */
	INQUIRY_TRIES = 5, /* decisions that are measured */
};

struct inquiry {
	struct loop *loop;
	struct redis_settings settings;
	enum inquiry_kind kind;
	inquiry_fn *done;
	void *context;
	int64_t end_us;
	struct timer *deadline_timer; /* of the whole; of one address, while there are more */
	struct deferred ending; /* the call, at the end of the turn */
	bool has_ended;

	struct lookup *lookup;
	struct way way;
	struct stream *stream;
	redisReader *reader;
	struct reader_bound bound;
	size_t reply_bytes; /* read since the last whole reply */
	bool has_heard; /* anything */

	enum inquiry_question asked; /* waits for its answer */
	int64_t sent_us;
	int64_t tries_us[INQUIRY_TRIES];
	unsigned tries;
	char key_room[REDIS_KEY_MAX];
	struct slice key;
	struct inquiry_report report;
};

/* ---- inquiry_questions.c ---- */

/* Whether the question is to be put to this server, by what is known so far. */
bool question_is_due(const struct inquiry *inquiry, enum inquiry_question question);

/* The command, behind what args has. */
void question_put(const struct inquiry *inquiry, enum inquiry_question question, struct args *args);

/* ---- inquiry_answers.c ---- */

/* Takes the answer into the report. */
void
question_take(struct inquiry *inquiry, enum inquiry_question question, const redisReply *reply);

#endif
