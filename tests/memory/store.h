/* Asking the store in memory. It answers at once. In a child process, too, where an assertion would
 * go on with the parent's tests: so what is no test's subject ends the process. */
#ifndef WEIR_TESTS_MEMORY_STORE_H
#define WEIR_TESTS_MEMORY_STORE_H

#include "../lib/limits.h"
#include "../unit.h"
#include "weir/memory.h"

#include <stdio.h>

static inline void
memory_require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s\n", what);
	abort();
}

struct memory_asked {
	struct check check;
	unsigned answers;
	struct decision decision;
};

static inline void
memory_answer(struct check *check, const struct decision *decision)
{
	struct memory_asked *asked = (struct memory_asked *)check;

	asked->answers++;
	asked->decision = *decision;
}

/* The bucket `key` of the limit; more limits may be added to the check. */
static inline struct memory_asked
memory_question(const struct made_limit *made, const char *key, uint64_t cost, int64_t now_us)
{
	return (struct memory_asked){ .check = {
					      .items = { { .limit = &made->limit,
						      .key = slice_of(key) } },
					      .count = 1,
					      .cost = cost,
					      .now_us = now_us,
					      .done = memory_answer,
				      } };
}

static inline struct decision
memory_ask(struct memory *memory, struct memory_asked *asked)
{
	store_decide(memory_store(memory), &asked->check);
	memory_require(asked->answers == 1, "the store did not answer once");
	asked->answers = 0;
	return asked->decision;
}

static inline struct decision
memory_decide(struct memory *memory, const struct made_limit *made, const char *key, uint64_t cost,
	int64_t now_us)
{
	struct memory_asked asked = memory_question(made, key, cost, now_us);

	return memory_ask(memory, &asked);
}

/* Tokens left, of the limit's first policy. Spends nothing. */
static inline uint64_t
memory_remaining(
	struct memory *memory, const struct made_limit *made, const char *key, int64_t now_us)
{
	const struct decision decision =
		memory_decide(memory, made, key, UINT64_C(1000000000000000), now_us);

	memory_require(decision.verdict == VERDICT_REJECTED, "the store did not decide");
	return decision.outcomes[0].remaining;
}

static inline struct memory *
memory_open_size(const char *path, uint64_t size)
{
	struct err err;
	struct memory *memory = memory_open(path, &size, &err);

	memory_require(memory != NULL, err.text);
	return memory;
}

#endif
