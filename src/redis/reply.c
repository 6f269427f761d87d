/*
 * Replies. Their shape is checked here, whole, before anything is believed: a server that answers
 * something else, or a stream of replies that has slipped by one, must not admit or reject anyone.
 */
#include "redis_private.h"

enum { STATUS_LATE = -1, STATUS_MAX = 3 };

/* Of a server's clock: the year 2255. What is beyond could not be reckoned with. */
#define CLOCK_MAX_US (INT64_C(1) << 53)

/* The server cannot serve anybody now; another connection, or later, may do. */
static const char *const unusable[] = { "READONLY", "MASTERDOWN", "LOADING", "CLUSTERDOWN", "OOM",
	"NOREPLICAS", "MISCONF", "BUSY", "NOAUTH", "WRONGPASS", "NOPERM", "TRYAGAIN",
	/* Redis 7.2 and 7.0 of a right that is missing within a script. */
	"ACL failure", "can't run this command" };

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

bool
reply_is_of_cluster(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
		slice_has_prefix(slice_make(reply->str, (size_t)reply->len), SLICE("MOVED "));
}

static enum reply_kind
absurd(struct err *err)
{
	(void)err_set(err, "its answer has the wrong shape");
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

/* Of a bucket that another configuration wrote, a debt may be beyond ours. Both are of a hundred
 * years at the most, and a second is forgiven to clocks. */
#define WAIT_MAX_US (2 * DURATION_MAX_US + US_PER_S)

/* Whether a policy's part may be so, given what the request costs: where it is violated there is no
 * room for it, where nothing was spent there is still room, and where it was spent it is owed. */
static bool
is_plausible(const struct outcome *outcome, const struct decision *decision, uint64_t cost)
{
	const uint64_t burst = outcome->policy->burst;

	if (outcome->violated)
		return outcome->remaining < cost;
	if (outcome->reset_us > outcome->policy->capacity_us)
		return false;
	if (decision->verdict == VERDICT_REJECTED)
		return outcome->remaining >= cost;
	return outcome->shadow || (cost <= burst && outcome->remaining <= burst - cost);
}

/* ---- lua/decide.lua: a debt for each policy ---- */

static int
read_debts(const redisReply *reply, const struct check *check, struct decision *decision)
{
	size_t at = 2;

	for (unsigned i = 0; i < check->count; i++) {
		const struct check_item *item = &check->items[i];

		for (unsigned j = 0; j < item->limit->policy_count; j++) {
			if (at >= (size_t)reply->elements)
				return -1;
			const int64_t number = reply->element[at++]->integer;

			if (number < -WAIT_MAX_US || number > WAIT_MAX_US)
				return -1;
			struct outcome *outcome = &decision->outcomes[decision->count++];

			outcome_set(outcome, item, &item->limit->policies[j],
				number < 0 ? -1 - number : number, check->cost, number < 0);
			if (!is_plausible(outcome, decision, check->cost))
				return -1;
		}
	}
	return at == (size_t)reply->elements ? 0 : -1;
}

/* ---- lua/engine.lua: three numbers for each policy ---- */

struct numbers {
	int64_t used, wait_us, reset_us; /* used is -1 - what it is, if violated */
};

#define USED_MAX (INT64_C(1) << 53)

static struct numbers
numbers_at(const redisReply *reply, size_t at)
{
	return (struct numbers){ reply->element[at]->integer, reply->element[at + 1]->integer,
		reply->element[at + 2]->integer };
}

/* Something is used if and only if there is a time at which it no longer is, and no wait is longer
 * than that. */
static bool
are_waits_plausible(const struct numbers *numbers, int64_t used)
{
	const int64_t wait_us = numbers->wait_us, reset_us = numbers->reset_us;

	if (used == 0)
		return wait_us <= 0 && reset_us == 0;
	return wait_us != 0 && wait_us <= reset_us && reset_us <= WAIT_MAX_US;
}

/* As is_plausible() of debts: with `cost` more it is too much, or is not, or was not. */
static bool
are_plausible(const struct numbers *numbers, const struct policy *policy, uint64_t cost, bool spent)
{
	const bool violated = numbers->used < 0;
	const int64_t used = violated ? -1 - numbers->used : numbers->used;
	const uint64_t burst = policy->burst, tokens = (uint64_t)used;

	if (used > USED_MAX || !are_waits_plausible(numbers, used))
		return false;
	if (violated && cost > burst)
		return numbers->wait_us == -1;
	if (numbers->wait_us < 0 || cost > burst)
		return false;
	if (violated)
		return tokens > burst - cost;
	return spent ? tokens >= cost && tokens <= burst : tokens <= burst - cost;
}

/* Whether the limit's policies that may reject all admit. */
static bool
item_admits(const redisReply *reply, size_t at, const struct limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (!limit->policies[i].shadow && numbers_at(reply, at + 3 * (size_t)i).used < 0)
			return false;
	}
	return true;
}

static int
read_item(const redisReply *reply, size_t at, const struct check *check,
	const struct check_item *item, struct decision *decision)
{
	const bool admitted = decision->verdict == VERDICT_ADMITTED;
	const bool admits = item_admits(reply, at, item->limit);

	for (unsigned i = 0; i < item->limit->policy_count; i++, at += 3) {
		const struct policy *policy = &item->limit->policies[i];
		const struct numbers numbers = numbers_at(reply, at);
		const uint64_t cost = policy->algorithm == POLICY_CONCURRENT ? 1 : check->cost;

		if (!are_plausible(&numbers, policy, cost, admitted && (policy->shadow || admits)))
			return -1;
		outcome_set_numbers(&decision->outcomes[decision->count++], item, policy,
			numbers.used, numbers.wait_us, numbers.reset_us);
	}
	return 0;
}

/* A bit for each limit that had a second key to be decided on. */
static int
read_overflowed(const redisReply *reply, const struct check *check, struct decision *decision)
{
	const long long bits = reply->element[2]->integer;
	long long possible = 0;

	for (unsigned i = 0; i < check->count && i < CHECK_LIMITS_MAX; i++)
		possible |= (check->items[i].overflow.len > 0 ? 1LL : 0) << i;
	if (bits < 0 || (bits & ~possible) != 0)
		return -1;
	decision->overflowed = (unsigned)bits;
	return 0;
}

static int
read_items(const redisReply *reply, const struct check *check, struct decision *decision)
{
	size_t at = 3;

	for (unsigned i = 0; i < check->count; i++)
		at += 3 * (size_t)check->items[i].limit->policy_count;
	if (at != (size_t)reply->elements || read_overflowed(reply, check, decision) != 0)
		return -1;
	at = 3;
	for (unsigned i = 0; i < check->count; i++) {
		if (read_item(reply, at, check, &check->items[i], decision) != 0)
			return -1;
		at += 3 * (size_t)check->items[i].limit->policy_count;
	}
	return 0;
}

/* ---- both ---- */

static unsigned
policies_of(const struct check *check)
{
	unsigned count = 0;

	for (unsigned i = 0; i < check->count; i++)
		count += check->items[i].limit->policy_count;
	return count;
}

static int
read_outcomes(const redisReply *reply, const struct check *check, struct decision *decision)
{
	/* Nobody is admitted who only looks. */
	if (check->lease == LEASE_LOOK)
		return decision->verdict == VERDICT_REJECTED ? read_items(reply, check, decision)
							     : -1;
	/* What lua/decide.lua leaves to the engine is answered as that does, and that is longer. */
	const bool has_debts = script_of(check) == SCRIPT_DECIDE &&
		(size_t)reply->elements == 2 + (size_t)policies_of(check);

	if ((has_debts ? read_debts : read_items)(reply, check, decision) != 0)
		return -1;
	/* Rejected by somebody, or admitted by all. */
	return (decision_violated(decision) != NULL) == (decision->verdict == VERDICT_REJECTED)
		? 0
		: -1;
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
	if (*now_us < 0 || *now_us > CLOCK_MAX_US || status < STATUS_LATE || status > STATUS_MAX)
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
	if (check->lease == LEASE_PEEK)
		return reply->elements == 2 ? REPLY_DECISION : absurd(err);
	return read_outcomes(reply, check, decision) == 0 ? REPLY_DECISION : absurd(err);
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

/* https://redis.io/commands/role: an array that begins with the role in a word. */
enum reply_kind
reply_role(const redisReply *reply, struct err *err)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return reply_status(reply, err);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
		reply->element[0]->type != REDIS_REPLY_STRING)
		return absurd(err);
	const struct slice role =
		slice_make(reply->element[0]->str, (size_t)reply->element[0]->len);

	if (slice_is(role, SLICE("master")))
		return REPLY_DECISION;
	(void)err_set(err, "it is no master but \"%.*s\"", (int)(role.len < 40 ? role.len : 40),
		role.ptr);
	return REPLY_UNUSABLE;
}

/* https://redis.io/commands/hello: names and values in turn. */
bool
reply_tells_replica(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return false;
	for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2) {
		const redisReply *name = reply->element[i], *value = reply->element[i + 1];

		if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING &&
			strcmp(name->str, "role") == 0)
			return strcmp(value->str, "replica") == 0 ||
				strcmp(value->str, "slave") == 0;
	}
	return false;
}
