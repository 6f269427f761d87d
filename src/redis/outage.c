/*
 * What the log is told of an outage: that it began, why, and that it lasts. Nobody is told when the
 * reason has passed before the next probe. What waiting does not cure is an error, with what may
 * cure it; all else is a warning.
 *
 * What the server holds against us, and not against everybody, is an outage of this process alone:
 * its neighbours may have logged in with the same words before they were changed.
 */
#include "redis_private.h"

#include "weir/inquiry.h"
#include "weir/log.h"

/* By a word of the reason, which is the server's own answer in most cases. */
static const struct {
	const char *word, *remedy;
	bool is_ours;
	const char *as_well; /* NULL: the one word is enough */
} lasting[] = {
	{ "NOAUTH", "the sentinels want a password: sentinel_password_file of [redis]", true,
		NO_SENTINEL },
	{ "WRONGPASS",
		"sentinel_username and sentinel_password_file of [redis] must be those of the "
		"sentinels",
		true, NO_SENTINEL },
	{ "without any password",
		"the sentinels have no password: remove sentinel_password_file of [redis]", true,
		NO_SENTINEL },
	{ "NOPERM", "give the sentinels' user the right +sentinel|get-master-addr-by-name", true,
		NO_SENTINEL },
	{ "unknown command",
		"it is no sentinel but a server: name it with `server` of [redis], or the "
		"sentinels' own port (26379 as a rule)",
		false, NO_SENTINEL },
	{ "WRONGPASS", "username and password_file of [redis] must be those of the server", true,
		NULL },
	{ "invalid password", "password_file of [redis] must hold the server's password", true,
		NULL },
	{ "NOAUTH", "the server wants a password: password_file of [redis]", true, NULL },
	{ "no password is set", "the server has no password: remove password_file of [redis]", true,
		NULL },
	{ "without any password", "the server has no password: remove password_file of [redis]",
		true, NULL },
	{ "NOPERM", "give the user the rights that weir.ini(5) names", true, NULL },
	{ "ACL failure", "give the user the rights that weir.ini(5) names", true, NULL },
	{ "can't run this command", "give the user the rights that weir.ini(5) names", true, NULL },
	{ "DB index", "database of [redis] must be one that the server has", true, NULL },
	/* Others have their connections, and do well. */
	{ "max number of clients",
		"raise the server's maxclients: each thread of each weir has a connection", true,
		NULL },
	{ "OOM", "raise the server's maxmemory", false, NULL },
	{ "READONLY", "it is a replica: let [redis] name the primary", false, NULL },
	{ "MISCONF", "the server cannot save its data: look at its disk and its log", false, NULL },
	{ "unknown command",
		"it is a sentinel (name it with `sentinel` and `master` of [redis]), or has "
		"renamed "
		"EVAL, EVALSHA, SELECT, ROLE or CLUSTER",
		false, NULL },
	{ "does not trust the CA of our client certificate",
		"tls_cert and tls_key of [redis] must be by a CA of the server's tls-ca-cert-file",
		true, NULL },
	{ "want a client certificate", "write tls_cert and tls_key of [redis]", true, NULL },
	{ "wants a client certificate", "write tls_cert and tls_key of [redis]", true, NULL },
	{ "certificate",
		"tls_ca, tls_cert and tls_name of [redis] must fit the server's certificates", true,
		NULL },
	{ "what it sends is not TLS",
		"it is a port without TLS: write tcp: in place of tls:, or name its tls-port",
		false, NULL },
	{ "cluster support disabled",
		"it is no cluster: name the one server with `server` of [redis]", false, NULL },
	{ "MOVED", "it is one of a cluster: name it with `cluster` of [redis], not with `server`",
		false, NULL },
	{ "it knows no master", "master of [redis] must be a name that the sentinels know", false,
		NULL },
	{ NOT_REDIS, "server of [redis] must be the address of a Redis server", false, NULL },
};

/* -1: it may pass. */
static int
lasting_of(const char *why)
{
	for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
		if (strstr(why, lasting[i].word) != NULL &&
			(lasting[i].as_well == NULL || strstr(why, lasting[i].as_well) != NULL))
			return (int)i;
	}
	return -1;
}

const char *
redis_remedy(const char *why)
{
	const int at = lasting_of(why);

	return at < 0 ? NULL : lasting[at].remedy;
}

bool
outage_open(struct redis *redis, const char *why)
{
	const int64_t now = loop_now_us(redis->loop);
	const int at = lasting_of(why);

	if (at >= 0 && lasting[at].is_ours)
		return breaker_open_own(redis->breaker, now);
	const bool is_opened = breaker_open(redis->breaker, now);

	if (is_opened && breaker_tell_full(redis->breaker))
		log_warn("So many servers are away that the processes of this host cannot tell "
			 "each other of all: each has to find out about the rest by itself.",
			LOG_TEXT("server", redis->name));
	return is_opened;
}

void
outage_found(struct redis *redis)
{
	const int64_t now = loop_now_us(redis->loop);

	log_warn("The breaker was found open: Redis is not asked before a probe succeeds.",
		LOG_TEXT("server", redis->name),
		LOG_INT("for_s", breaker_open_for(redis->breaker, now) / US_PER_S),
		LOG_INT("probe_in_ms", (breaker_probe_at(redis->breaker, now) - now) / US_PER_MS));
}

void
outage_tell(struct redis *redis, const char *why)
{
	static const char message[] =
		"Redis cannot be used: the breaker is open, and routes do what their store_down "
		"says.";
	const int64_t now = loop_now_us(redis->loop);
	const int at = lasting_of(why);
	/* What was the master a moment ago says so, and sentinels know better soon. */
	const bool passes = at < 0 || (redis->sentinel != NULL && strstr(why, "READONLY") != NULL);
	const char *remedy = passes ? NULL : lasting[at].remedy;

	if (!breaker_tell(redis->breaker, now, remedy != NULL))
		return;
	const int64_t for_s = breaker_open_for(redis->breaker, now) / US_PER_S;

	if (remedy == NULL)
		log_warn(message, LOG_TEXT("server", redis->name), LOG_TEXT("reason", why),
			LOG_FOR_S(for_s));
	else
		log_error(message, LOG_TEXT("server", redis->name), LOG_TEXT("reason", why),
			LOG_TEXT("remedy", remedy), LOG_FOR_S(for_s));
}
