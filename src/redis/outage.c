/*
 * What the log is told of an outage: that it began, why, and that it lasts. Nobody is told when the
 * reason has passed before the next probe. What waiting does not cure is an error, with what may
 * cure it; all else is a warning.
 */
#include "redis_private.h"

#include "weir/log.h"

/* By a word of the reason, which is the server's own answer in most cases. */
static const struct {
	const char *word, *remedy;
} lasting[] = {
	{ "WRONGPASS", "username and password_file of [redis] must be those of the server" },
	{ "invalid password", "password_file of [redis] must hold the server's password" },
	{ "NOAUTH", "the server wants a password: password_file of [redis]" },
	{ "no password is set", "the server has no password: remove password_file of [redis]" },
	{ "NOPERM", "give the user the rights that weir.ini(5) names" },
	{ "OOM", "raise the server's maxmemory" },
	{ "READONLY", "it is a replica: let [redis] name the primary" },
	{ "MISCONF", "the server cannot save its data: look at its disk and its log" },
	{ "DB index", "database of [redis] must be one that the server has" },
	{ "unknown command", "it knows no scripts, or has renamed EVAL, EVALSHA or SELECT" },
	{ NOT_REDIS, "server of [redis] must be the address of a Redis server" },
};

/* NULL: it may pass. */
static const char *
remedy_of(const char *why)
{
	for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
		if (strstr(why, lasting[i].word) != NULL)
			return lasting[i].remedy;
	}
	return NULL;
}

void
outage_tell(struct redis *redis, const char *why)
{
	static const char message[] =
		"Redis cannot be used: the breaker is open, and routes do what their store_down "
		"says.";
	const int64_t now = loop_now_us(redis->loop);
	const char *remedy = remedy_of(why);

	if (!breaker_tell(redis->breaker, now, remedy != NULL))
		return;
	const int64_t for_s = breaker_open_for(redis->breaker, now) / US_PER_S;

	if (remedy == NULL)
		log_warn(message, LOG_TEXT("server", redis->name), LOG_TEXT("reason", why),
			LOG_INT("for_s", for_s));
	else
		log_error(message, LOG_TEXT("server", redis->name), LOG_TEXT("reason", why),
			LOG_TEXT("remedy", remedy), LOG_INT("for_s", for_s));
}
