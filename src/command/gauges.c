/* What no event counts: it is looked at when somebody asks for the metrics. */
#include "serve.h"

bool
serve_breaker_is_open(const struct serve *serve)
{
	return serve->breaker != NULL && breaker_is_open(serve->breaker);
}

static int64_t
read_breaker(void *context)
{
	return serve_breaker_is_open(context) ? 1 : 0;
}

static int64_t
read_memory_used(void *context)
{
	const struct serve *serve = context;

	return (int64_t)memory_used(serve->memory);
}

static int64_t
read_memory_room(void *context)
{
	const struct serve *serve = context;

	return (int64_t)memory_room(serve->memory);
}

int
serve_add_gauges(struct serve *serve, struct err *err)
{
	static const struct {
		const char *name, *help;
		report_gauge_fn *read;
	} gauges[] = {
		{ "weir_breaker_open",
			"1 while Redis is not asked because it failed; shared by the processes of "
			"the host that use it alike. Of a cluster: 1 while this process does not "
			"ask one of its masters.",
			read_breaker },
		{ "weir_memory_used_bytes",
			"What the memory store's live counters take, of all processes that share "
			"it; of a file above 16 MB estimated from a part.",
			read_memory_used },
		{ "weir_memory_size_bytes",
			"What the memory store has for counters; beyond it those that would end "
			"first are dropped.",
			read_memory_room },
	};

	for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
		if (report_add_gauge(serve->report, gauges[i].name, gauges[i].help, gauges[i].read,
			    serve) != 0)
			return err_set(err, "too many gauges");
	}
	return 0;
}
