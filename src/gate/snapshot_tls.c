/* The certificates that [redis] names. They are read with the configuration, so `weir check` tells
 * what is wrong with them, and a reload takes what has been put in their place. */
#include "snapshot_private.h"

#include "weir/tls.h"

#include <stdio.h>

static bool
has_tls(const struct config *config)
{
	if (!config->has_redis)
		return false;
	if (config->redis_sentinel_count > 0)
		return config->redis_sentinels[0].kind == ADDRESS_TLS;
	if (config->redis_cluster_count > 0)
		return config->redis_cluster[0].kind == ADDRESS_TLS;
	return config->redis_server.kind == ADDRESS_TLS;
}

static struct tls *
refuse(struct tls *tls, const struct config *config, const char *key, const struct err *err,
	struct diagnostics *diagnostics)
{
	char where[32];

	(void)snprintf(where, sizeof where, "[redis] %s", key);
	diagnostics_add(diagnostics, SEVERITY_ERROR, config_place(config, "redis", "", key, 0),
		where, "%s", err->text);
	tls_free(tls);
	return NULL;
}

struct tls *
snapshot_tls(const struct config *config, struct diagnostics *diagnostics)
{
	struct err err;

	if (!has_tls(config))
		return NULL;
	struct tls *tls = tls_new(&err);

	if (tls == NULL || tls_trust(tls, config->redis_tls_ca, &err) != 0)
		return refuse(tls, config, "tls_ca", &err, diagnostics);
	if (config->redis_tls_cert == NULL)
		return tls;
	if (tls_show(tls, config->redis_tls_cert, &err) != 0)
		return refuse(tls, config, "tls_cert", &err, diagnostics);
	if (tls_show_key(tls, config->redis_tls_key, &err) != 0)
		return refuse(tls, config, "tls_key", &err, diagnostics);
	return tls;
}
