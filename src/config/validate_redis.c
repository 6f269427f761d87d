/* [redis]: keys that need one another, and keys that are there for nothing. */
#include "sections.h"
#include "validate.h"

static bool
is_given(const struct build *build, const char *key)
{
	const struct setting *setting = section_own_setting(build->unnamed[SECTION_REDIS], key);

	return setting != NULL && setting->value[0] != '\0';
}

static void
need(const struct build *build, const char *key, const char *other, const char *why)
{
	if (is_given(build, key) && !is_given(build, other))
		complain(build, SEVERITY_ERROR, build->unnamed[SECTION_REDIS], key, NULL,
			"needs %s; %s", other, why);
}

static void
check_needs(const struct build *build)
{
	static const struct {
		const char *key, *other, *why;
	} needs[] = {
		{ "username", "password_file", "Redis takes a name only together with a password" },
		{ "sentinel", "master", "the sentinels are asked for a master by its name" },
		{ "master", "sentinel", "only sentinels know a master by its name" },
		{ "sentinel_username", "sentinel_password_file",
			"a sentinel takes a name only together with a password" },
		{ "sentinel_password_file", "sentinel",
			"the password of Redis itself is password_file" },
		{ "tls_cert", "tls_key", "a certificate is of no use without its key" },
		{ "tls_key", "tls_cert", "a key is of no use without its certificate" },
	};

	for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
		need(build, needs[i].key, needs[i].other, needs[i].why);
}

static void
check_choice(const struct build *build)
{
	static const char *const keys[] = { "server", "sentinel", "cluster" };
	const char *given = NULL;

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (!is_given(build, keys[i]))
			continue;
		if (given != NULL)
			complain(build, SEVERITY_ERROR, build->unnamed[SECTION_REDIS], keys[i],
				NULL, "%s is given too; leave out the one or the other", given);
		given = keys[i];
	}
}

static void
check_database(const struct build *build)
{
	if (build->config->redis_cluster_count > 0 && build->config->redis_database != 0)
		complain(build, SEVERITY_ERROR, build->unnamed[SECTION_REDIS], "database", NULL,
			"a cluster has only database 0; leave it out");
}

static bool
has_tls(const struct config *config)
{
	if (config->redis_sentinel_count > 0)
		return config->redis_sentinels[0].kind == ADDRESS_TLS;
	if (config->redis_cluster_count > 0)
		return config->redis_cluster[0].kind == ADDRESS_TLS;
	return config->redis_server.kind == ADDRESS_TLS;
}

static void
check_tls(const struct build *build)
{
	static const char *const keys[] = { "tls_ca", "tls_cert", "tls_key", "tls_name" };

	if (has_tls(build->config))
		return;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (is_given(build, keys[i]))
			complain(build, SEVERITY_WARNING, build->unnamed[SECTION_REDIS], keys[i],
				NULL, "has no effect: no address is tls:HOST:PORT");
	}
}

void
validate_redis(const struct build *build)
{
	if (!build->config->has_redis || section_is_doubtful(build, build->unnamed[SECTION_REDIS]))
		return;
	check_needs(build);
	check_choice(build);
	check_database(build);
	check_tls(build);
}
