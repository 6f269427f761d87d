/*
 * Replies. Their shape is checked here, whole, before anything is believed: a server that answers
 * something else, or a stream of replies that has slipped by one, must not admit or reject anyone.
 */
#include "redis_private.h"

enum { STATUS_LATE = -1, STATUS_MAX = 3 };

/* The server cannot serve anybody now; another connection, or later, may do. */
static const char *const unusable[] = { "READONLY", "MASTERDOWN", "LOADING", "CLUSTERDOWN", "OOM",
	"NOREPLICAS", "MISCONF", "BUSY", "NOAUTH", "WRONGPASS", "NOPERM", "TRYAGAIN" };

static enum reply_kind
read_error(const redisReply *reply, struct err *err)
{
	const struct slice text = slice_make(reply->str, (size_t)reply->len);

	(void)err_set(err, "%.*s", (int)(text.len < 300 ? text.len : 300), text.ptr);
	if (slice_has_prefix(text, SLICE("NOSCRIPT")))
		return REPLY_NOSCRIPT;
	/* Servers before Redis 7 wrap what went wrong inside a script, so the word may stand
	 * anywhere. */
	for (size_t i = 0; i < sizeof unusable / sizeof unusable[0]; i++) {
		if (strstr(err->text, unusable[i]) != NULL)
			return REPLY_UNUSABLE;
	}
	/* Redis before 6 has no word for a wrong password or a missing one. */
	if (strstr(err->text, "invalid password") != NULL ||
		strstr(err->text, "no password is set") != NULL)
		return REPLY_UNUSABLE;
	return REPLY_ERROR;
}

static enum reply_kind
absurd(struct err *err)
{
	(void)err_set(err, "a reply of the wrong shape");
	return REPLY_ABSURD;
}

static bool
is_numbers(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return false;
	for (size_t i = 0; i < (size_t)reply->elements; i++) {
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			return false;
	}
	return true;
}

/* A debt of more than a hundred years, or a negative one, is none of ours. */
static int
read_debt(int64_t number, struct outcome *outcome, const struct check *check, unsigned item,
	unsigned policy)
{
	const struct limit *limit = check->items[item].limit;
	const bool violated = number < 0;
	const int64_t debt = violated ? -1 - number : number;

	if (number == INT64_MIN || debt > DURATION_MAX_US + US_PER_S)
		return -1;
	outcome_set(outcome, &check->items[item], &limit->policies[policy], debt, check->cost,
		violated);
	return 0;
}

static int
read_debts(const redisReply *reply, const struct check *check, struct decision *decision)
{
	size_t at = 2;

	for (unsigned item = 0; item < check->count; item++) {
		for (unsigned policy = 0; policy < check->items[item].limit->policy_count;
			policy++) {
			if (at >= (size_t)reply->elements)
				return -1;
			if (read_debt(reply->element[at++]->integer,
				    &decision->outcomes[decision->count++], check, item,
				    policy) != 0)
				return -1;
		}
	}
	return at == (size_t)reply->elements ? 0 : -1;
}

enum reply_kind
reply_read(const redisReply *reply, const struct check *check, struct decision *decision,
	int64_t *now_us, struct err *err)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return read_error(reply, err);
	if (!is_numbers(reply) || reply->elements < 2)
		return absurd(err);
	const long long status = reply->element[0]->integer;

	*now_us = reply->element[1]->integer;
	if (*now_us < 0 || status < STATUS_LATE || status > STATUS_MAX)
		return absurd(err);
	if (status == STATUS_LATE)
		return reply->elements == 2 ? REPLY_LATE : absurd(err);
	/* The check is over, or it was a probe: there is nobody to tell the rest. */
	if (check == NULL)
		return REPLY_DECISION;
	*decision = (struct decision){
		.verdict = (status & 1) != 0 ? VERDICT_ADMITTED : VERDICT_REJECTED,
		.clamped = (status & 2) != 0,
		.now_us = *now_us,
	};
	return read_debts(reply, check, decision) == 0 ? REPLY_DECISION : absurd(err);
}

enum reply_kind
reply_status(const redisReply *reply, struct err *err)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return read_error(reply, err) == REPLY_NOSCRIPT ? REPLY_ABSURD : REPLY_UNUSABLE;
	if (reply->type == REDIS_REPLY_STATUS &&
		slice_is(slice_make(reply->str, (size_t)reply->len), SLICE("OK")))
		return REPLY_DECISION;
	return absurd(err);
}
