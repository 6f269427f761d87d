/* Replies as they come over the wire, read for a check. */
#ifndef WEIR_TESTS_REDIS_READING_H
#define WEIR_TESTS_REDIS_READING_H

#include "../../src/redis/redis_private.h"
#include "../lib/limits.h"
#include "../unit.h"

#include <stdio.h>

/* From the bytes that come over the wire. NULL: they are no whole reply. */
static inline redisReply *
reply_of(struct slice bytes)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	assert_non_null(reader);
	if (redisReaderFeed(reader, bytes.ptr, bytes.len) != REDIS_OK ||
		redisReaderGetReply(reader, &reply) != REDIS_OK)
		reply = NULL;
	redisReaderFree(reader);
	return reply;
}

struct read {
	enum reply_kind kind;
	struct decision decision;
	int64_t now_us;
	struct err err;
};

static inline struct read
read_for(const struct check *asked, struct slice bytes)
{
	struct read read = { .now_us = -1 };
	redisReply *reply = reply_of(bytes);

	assert_row(reply != NULL, "no reply: %.*s", (int)bytes.len, bytes.ptr);
	read.kind = reply_read(reply, asked, &read.decision, &read.now_us, &read.err);
	freeReplyObject(reply);
	return read;
}

/* An array of integers, as the script returns it. */
#define ARRAY_MAX 40

static inline struct slice
array_of(char out[ARRAY_MAX * 24], const int64_t *numbers, size_t count)
{
	size_t len = (size_t)snprintf(out, ARRAY_MAX * 24, "*%zu\r\n", count);

	assert_in_range(count, 0, ARRAY_MAX - 1);
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(
			out + len, ARRAY_MAX * 24 - len, ":%lld\r\n", (long long)numbers[i]);
	return slice_make(out, len);
}

struct mutants {
	const struct check *check;
	unsigned decisions;
};

/* Nothing that is made of a mutant may lead a request, or the reader of its outcome, astray. */
static inline void
read_mutant(void *context, struct slice bytes)
{
	struct mutants *mutants = context;
	struct read read = { .now_us = -1 };
	redisReply *reply = reply_of(bytes);

	if (reply == NULL)
		return;
	read.kind = reply_read(reply, mutants->check, &read.decision, &read.now_us, &read.err);
	(void)reply_status(reply, &read.err);
	freeReplyObject(reply);
	if (read.kind != REPLY_DECISION)
		return;
	mutants->decisions++;
	assert_true(read.now_us >= 0);
	assert_int_equal(read.decision.count,
		mutants->check->items[0].limit->policy_count +
			mutants->check->items[1].limit->policy_count);
	assert_true((read.decision.verdict == VERDICT_REJECTED) ==
		(decision_violated(&read.decision) != NULL));
	assert_true(decision_retry_after_s(&read.decision) >= 0);
	for (unsigned i = 0; i < read.decision.count; i++) {
		const struct outcome *outcome = &read.decision.outcomes[i];

		assert_true(outcome->remaining <= outcome->policy->burst);
		assert_true(outcome->more_us >= 0 && outcome->reset_us >= 0);
		assert_true(outcome->violated ? outcome->retry_us > 0 : outcome->retry_us == 0);
	}
}

/* Of a check of two limits. How many of the mutants are decisions. */
static inline unsigned
read_mutations(const struct check *check, const char *reply)
{
	struct mutants mutants = { check, 0 };

	each_mutation(slice_of(reply), read_mutant, &mutants);
	return mutants.decisions;
}

#endif
