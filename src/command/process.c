/* Descriptors, the time zone, the log. */
#include "process.h"

#include "weir/http_server.h"
#include "weir/log.h"
#include "weir/redis.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { DESCRIPTORS_ASIDE = 64 };

/* Of each thread, and with sentinels one of them as well. */
static uint64_t
redis_connections(const struct config *config)
{
	if (!config->has_redis)
		return 0;
	if (config->redis_cluster_count > 0)
		return config->threads * REDIS_CLUSTER_SERVERS_MAX;
	return config->threads * (config->redis_sentinel_count > 0 ? 2 : 1);
}

/* Between two requests: of each thread one at least. */
static uint64_t
kept_connections(const struct config *config)
{
	uint64_t kept = 0;

	for (unsigned i = 0; i < config->backend_count; i++) {
		const uint64_t keep_idle = config->backends[i]->keep_idle;

		if (keep_idle > 0)
			kept += keep_idle > config->threads ? keep_idle : config->threads;
	}
	return kept;
}

/* Files of bodies that came without their length: beside the connections of their requests. */
static uint64_t
stored_bodies(const struct config *config)
{
	uint64_t stored = 0;

	for (unsigned i = 0; i < config->backend_count; i++) {
		if (config->backends[i]->spool > 0)
			stored += config->backends[i]->max_in_flight;
	}
	return stored < config->max_in_flight ? stored : config->max_in_flight;
}

void
process_raise_limits(const struct config *config)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	/* A request has a connection on either side. */
	const uint64_t need = config->max_connections + config->max_in_flight +
		HTTP_CONNECTIONS_MAX + redis_connections(config) + kept_connections(config) +
		stored_bodies(config) + DESCRIPTORS_ASIDE;

	if (limit.rlim_cur < need)
		log_warn("max_connections, max_in_flight and Redis may need more descriptors than "
			 "the process may open.",
			LOG_INT("limit", limit.rlim_cur), LOG_INT("needed", need));
}

void
process_set_timezone(const struct config *config)
{
	(void)setenv("TZ", config->timezone, 1);
	tzset();
}

struct log_sink *
process_open_log(const struct config *config, struct err *err)
{
	static const enum log_sink_kind kinds[] = { [LOG_TO_STDERR] = LOG_SINK_STDERR,
		[LOG_TO_SYSLOG] = LOG_SINK_SYSLOG,
		[LOG_TO_FILE] = LOG_SINK_FILE };
	struct log_sink *sink = log_sink_open(kinds[config->log_to], config->log_file, err);

	if (sink == NULL)
		return NULL;
	log_configure(config->log_level, config->log_format);
	log_set_sink(log_sink_put, sink);
	return sink;
}

void
process_log_diagnostics(const struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->count; i++) {
		const struct diagnostic *diagnostic = &diagnostics->list[i];
		struct log_field fields[5] = { { 0 } };
		size_t count = 0;

		if (diagnostic->place.file != NULL)
			fields[count++] = LOG_TEXT("file", diagnostic->place.file);
		if (diagnostic->place.line > 0)
			fields[count++] = LOG_INT("line", diagnostic->place.line);
		if (diagnostic->where[0] != '\0')
			fields[count++] = LOG_TEXT("key", diagnostic->where);
		fields[count] = LOG_TEXT("what", diagnostic->text);

		if (diagnostic->severity == SEVERITY_ERROR)
			log_record(LOG_LEVEL_ERROR, "The configuration is wrong.", fields);
		else
			log_record(
				LOG_LEVEL_WARN, "The configuration should be looked at.", fields);
	}
}
