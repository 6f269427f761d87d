/* Arguments are gathered as words of a command. */
#include "run_engine.h"

#include "../lib/redis_server.h"
#include "../unit.h"
#include "lua_scripts.h"

#include <stdio.h>

enum { WORDS_MAX = 16 + 6 * LIMIT_POLICIES_MAX, NUMBER_SIZE = 24 };

struct words {
	int count;
	const char *at[WORDS_MAX];
	char numbers[WORDS_MAX][NUMBER_SIZE];
};

static void
add(struct words *words, const char *word)
{
	assert_in_range(words->count, 0, WORDS_MAX - 1);
	words->at[words->count++] = word;
}

static void
add_number(struct words *words, int64_t n)
{
	char *text = words->numbers[words->count];

	(void)snprintf(text, NUMBER_SIZE, "%lld", (long long)n);
	add(words, text);
}

static void
add_policy(struct words *words, const struct policy *policy, int64_t gateway_us)
{
	int64_t ends[3];

	add(words, algorithms[policy->algorithm]->name);
	add_number(words, policy->shadow ? -(int64_t)policy->burst : (int64_t)policy->burst);
	add_number(words, policy->interval_us);
	if (policy->algorithm != POLICY_CALENDAR)
		return;
	calendar_ends(policy->period, gateway_us, ends);
	for (size_t i = 0; i < LENGTH_OF(ends); i++)
		add_number(words, ends[i]);
}

struct engine_reply
engine_run(redisContext *redis, const struct engine_call *call)
{
	struct words words = { .count = 0 };
	struct engine_reply result = { .count = 0 };

	add(&words, "EVAL");
	add(&words, lua_engine.text);
	add(&words, "1");
	add(&words, call->key);
	add_number(&words, -call->now_us);
	add_number(&words, call->cost);
	add_number(&words, (int64_t)call->lease);
	add_number(&words, call->limit->policy_count);
	add(&words, "1");
	add(&words, call->limit->signature);
	for (unsigned i = 0; i < call->limit->policy_count; i++)
		add_policy(&words, &call->limit->policies[i], call->now_us + call->skew_us);
	redisReply *reply = redisCommandArgv(redis, words.count, words.at, NULL);

	assert_non_null(reply);
	assert_row(reply->type == REDIS_REPLY_ARRAY && reply->elements <= ENGINE_NUMBERS_MAX, "%s",
		reply->str == NULL ? "no array" : reply->str);
	for (; result.count < reply->elements; result.count++)
		result.numbers[result.count] = reply->element[result.count]->integer;
	freeReplyObject(reply);
	(void)redis_number(redis, "PERSIST %s", call->key);
	return result;
}
