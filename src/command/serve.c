/*
 * weir serve: a daemon in the foreground, or a CGI program, which serves one request and ends. The
 * main thread has the signals, the metrics and the configuration; workers serve.
 *
 *     starting --> serving --TERM, INT, USR1--> draining --all empty, or drain is over--> gone
 *                   |   ^
 *                   '---' HUP: the configuration is read anew; a wrong one changes nothing
 */
#include "command.h"
#include "notify.h"
#include "process.h"
#include "serve.h"

#include "weir/clock.h"
#include "weir/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TICK_US = 1000000 };

/* ---- the end ---- */

static void
on_worker_empty(void *context)
{
	struct serve *serve = context;

	if (++serve->empty_count == serve->worker_count)
		loop_stop(serve->loop);
}

static void
on_drain_over(void *context)
{
	struct serve *serve = context;

	loop_stop(serve->loop);
}

static void
drain(struct serve *serve)
{
	serve->draining = true;
	notify("STOPPING=1");
	sockets_refuse(&serve->sockets);
	for (unsigned i = 0; i < serve->worker_count; i++)
		worker_stop(serve->workers[i]);
	timer_set(serve->drain, clock_monotonic_us() + serve->current->config->drain_us);
}

static void
on_signal(void *context, int signo)
{
	struct serve *serve = context;

	if (serve->draining)
		return;
	if (signo == SIGHUP) {
		serve_reload(serve);
		return;
	}
	if (signo == SIGUSR2) {
		log_warn("SIGUSR2 has no meaning for weir: SIGHUP reloads, SIGTERM stops.");
		return;
	}
	/* A web server ends so the CGI programs of clients that have gone. */
	if (!serve->is_cgi)
		log_info("Stopping: no new requests; those under way may end.",
			LOG_INT("signal", signo));
	drain(serve);
}

/* The one request that we were started for has its answer. */
static void
on_cgi_done(void *context)
{
	struct serve *serve = context;

	if (!serve->draining)
		drain(serve);
}

static void
on_tick(void *context)
{
	struct serve *serve = context;
	const uint64_t dropped =
		log_sink_take_dropped(serve->log) + report_take_dropped(serve->report);

	report_tell_kept_back(serve->report);
	serve_look_at_memory(serve);
	if (dropped > 0)
		counter_add(COUNT_LOG_DROPPED, (int64_t)dropped);
	timer_set(serve->tick, clock_monotonic_us() + TICK_US);
}

/* ---- metrics ---- */

static enum health
read_health(void *context)
{
	struct serve *serve = context;

	if (serve->draining)
		return HEALTH_STOPPING;
	return serve_breaker_is_open(serve) ? HEALTH_DEGRADED : HEALTH_OK;
}

static int
open_pages(struct serve *serve, struct err *err)
{
	const struct config *config = serve->first->config;
	const struct pages_settings settings = { .loop = serve->loop,
		.address = &config->metrics,
		.report = serve->report,
		.is_spawned = serve->sockets.is_spawned,
		.health = read_health,
		.context = serve };

	/* A process of a second would only be in the way of one that stays. */
	if (!config->has_metrics || serve->is_cgi)
		return 0;
	serve->pages = pages_open(&settings, err);
	return serve->pages == NULL ? -1 : 0;
}

/* ---- the start ---- */

/* SIGQUIT as to nginx and php-fpm. */
static const int signals[] = { SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP };

/* What comes before there is somebody to take it is kept by the kernel. */
static void
mask_signals(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		(void)sigaddset(&set, signals[i]);
	(void)pthread_sigmask(how, &set, NULL);
}

static int
watch_signals(struct serve *serve, struct err *err)
{
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		if (loop_on_signal(serve->loop, signals[i], on_signal, serve, err) != 0)
			return -1;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	mask_signals(SIG_UNBLOCK);
	return 0;
}

static int
open_parts(struct serve *serve, struct err *err)
{
	const struct config *config = serve->first->config;

	serve->memory = process_open_memory(config, err);
	if (serve->memory == NULL)
		return -1;
	serve_handle_bus_errors(serve);
	serve->report = report_new(config->reject_log, config->log_format, err);
	serve->commons = gate_commons_new(err);
	if (serve->report == NULL || serve->commons == NULL ||
		serve_attach_breaker(serve, err) != 0)
		return -1;
	if (serve_add_gauges(serve, err) != 0)
		return -1;
	serve->reloads[0] = counter_find(COUNT_RELOADS, &SLICE("refused"));
	serve->reloads[1] = counter_find(COUNT_RELOADS, &SLICE("done"));
	serve->tick = timer_new(serve->loop, on_tick, serve);
	serve->drain = timer_new(serve->loop, on_drain_over, serve);
	if (serve->tick == NULL || serve->drain == NULL)
		return err_set(err, "no memory for timers");
	return open_pages(serve, err);
}

static int
start_workers(struct serve *serve, struct err *err)
{
	const unsigned count = serve->is_cgi ? 1 : (unsigned)serve->first->config->threads;
	int connection = -1;

	if (serve->is_cgi) {
		serve->cgi = cgi_start(serve->loop, on_cgi_done, serve, &connection, err);
		if (serve->cgi == NULL)
			return -1;
	}

	serve->shared = (struct gate_shared){ .memory = serve->memory,
		.report = serve->report,
		.commons = serve->commons,
		.threads = count,
		.by_mod_fcgid = serve->sockets.by_mod_fcgid };
	const struct worker_settings settings = { .main_loop = serve->loop,
		.shared = &serve->shared,
		.snapshot = serve->first,
		.sockets = serve->sockets.fds,
		.backends = serve->sockets.backends,
		.socket_count = serve->sockets.count,
		.connection = connection,
		.rest = sockets_rest(&serve->sockets),
		.empty = on_worker_empty,
		.context = serve };

	while (serve->worker_count < count && serve->worker_count < WORKERS_MAX) {
		serve->workers[serve->worker_count] = worker_start(&settings, err);
		if (serve->workers[serve->worker_count] == NULL)
			return -1;
		serve->worker_count++;
	}
	return 0;
}

enum { STORE_TEXT_SIZE = ADDRESS_TEXT_SIZE + 16 };

static const char *
store_text(const struct config *config, char out[STORE_TEXT_SIZE])
{
	char first[ADDRESS_TEXT_SIZE];

	if (!config->has_redis)
		return "memory";
	if (config->redis_cluster_count > 0) {
		(void)snprintf(out, STORE_TEXT_SIZE, "cluster of %s",
			address_text(&config->redis_cluster[0], first));
		return out;
	}
	if (config->redis_sentinel_count == 0)
		return address_text(&config->redis_server, out);
	(void)snprintf(out, STORE_TEXT_SIZE, "%s of sentinels", config->redis_master);
	return out;
}

static void
say_ready(const struct serve *serve)
{
	const struct config *config = serve->first->config;
	const struct sockets *sockets = &serve->sockets;
	const struct config_backend *backend;
	char listen[SOCKETS_TEXT_SIZE], metrics[ADDRESS_TEXT_SIZE], store[STORE_TEXT_SIZE];

	if (sockets->is_inherited && config_listen_at(config, 0, &backend) != NULL)
		log_info("`listen` is ignored: the sockets were given by who started weir.",
			LOG_TEXT("given_by", sockets->given_by));
	log_info("Serving.", LOG_TEXT("version", PACKAGE_VERSION), LOG_TEXT("file", serve->file),
		LOG_TEXT("listen", sockets_text(sockets, listen)),
		LOG_TEXT("store", store_text(config, store)),
		LOG_TEXT("metrics",
			config->has_metrics ? address_text(&config->metrics, metrics) : "none"),
		LOG_INT("sockets", sockets->count), LOG_INT("threads", serve->worker_count),
		LOG_TEXT("enforce", config->enforce ? "yes" : "no"));
	notify("READY=1");
}

/* Also on standard error, where whoever starts weir looks first. */
static void
cannot_start(const struct serve *serve, const struct err *err)
{
	log_error("weir cannot start.", LOG_TEXT("reason", err->text));
	if (serve->is_cgi)
		cgi_answer_error(500, "Internal Server Error");
	if (serve->first->config->log_to != LOG_TO_STDERR)
		(void)fprintf(stderr, "weir serve: cannot start: %s\n", err->text);
}

static void
end_parts(struct serve *serve)
{
	unsigned cut = 0;

	for (unsigned i = 0; i < serve->worker_count; i++)
		cut += worker_end(serve->workers[i]);
	if (serve->draining && !serve->is_cgi)
		log_info("Stopped.", LOG_INT("requests_cut", cut));
	pages_close(serve->pages);
	timer_free(serve->tick);
	timer_free(serve->drain);
	gate_commons_free(serve->commons);
	report_free(serve->report);
	breaker_free(serve->breaker);
	memory_close(serve->memory);
	sockets_close(&serve->sockets, serve->first->config);
}

static int
end_cgi(struct cgi *cgi)
{
	if (cgi_is_over(cgi))
		return cgi_end(cgi) ? EXIT_OK : EXIT_FAILED;
	/* Its thread waits for a web server that takes nothing, and ends with the process. */
	_exit(EXIT_FAILED);
}

static int
serve_until_stopped(struct serve *serve)
{
	struct err err;
	int status = EXIT_FAILED;

	if (open_parts(serve, &err) != 0 || watch_signals(serve, &err) != 0 ||
		start_workers(serve, &err) != 0) {
		cannot_start(serve, &err);
	} else {
		if (!serve->is_cgi)
			say_ready(serve);
		on_tick(serve);
		loop_run(serve->loop);
		status = EXIT_OK;
	}
	end_parts(serve);
	return serve->cgi == NULL ? status : end_cgi(serve->cgi);
}

static int
run(struct serve *serve)
{
	struct err err;

	process_set_timezone(serve->first->config);
	serve->log = process_open_log(serve->first->config, &err);
	if (serve->log == NULL) {
		(void)fprintf(stderr, "weir serve: %s\n", err.text);
		return EXIT_FAILED;
	}
	process_raise_limits(serve->first->config);
	int status = EXIT_FAILED;

	if (serve->is_cgi)
		status = serve_until_stopped(serve);
	else if (sockets_open(&serve->sockets, serve->first->config, &err) != 0)
		cannot_start(serve, &err);
	else if (serve->sockets.count == 0)
		status = usage_error("serve",
			"there is nothing to serve on: no socket was inherited, and %s has no "
			"`listen`",
			serve->file);
	else
		status = serve_until_stopped(serve);
	log_set_sink(NULL, NULL);
	log_sink_close(serve->log);
	return status;
}

static int
load(struct serve *serve)
{
	struct diagnostics diagnostics;

	diagnostics_init(&diagnostics);
	serve->first = snapshot_load(serve->file, &diagnostics);
	/* Warnings with every request would fill the web server's error log. */
	if (!serve->is_cgi || serve->first == NULL)
		diagnostics_print(&diagnostics, stderr);
	diagnostics_release(&diagnostics);
	if (serve->first == NULL) {
		if (serve->is_cgi)
			cgi_answer_error(500, "Internal Server Error");
		return -1;
	}
	snapshot_hold(serve->first);
	serve->current = serve->first;
	return 0;
}

int
command_serve(int argc, char **argv)
{
	struct serve serve = { .file = config_argument(argc, argv) };
	struct err err;
	int status = EXIT_FAILED;

	if (serve.file == NULL)
		return usage_error("serve",
			"takes one file (also as --config FILE), or none for %s", DEFAULT_CONFIG);
	serve.is_cgi = cgi_is_asked() && !sockets_are_inherited();
	mask_signals(SIG_BLOCK);
	/* A file that may not grow (ulimit -f) is an error of its write, and no end. */
	(void)signal(SIGXFSZ, SIG_IGN);
	/* libfcgi installs signal handlers of its own, so it comes before ours. */
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0 || front_start(&err) != 0 ||
		(serve.loop = loop_new(&err)) == NULL) {
		(void)fprintf(stderr, "weir serve: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (load(&serve) == 0)
		status = run(&serve);
	snapshot_release(serve.current);
	snapshot_release(serve.first);
	loop_free(serve.loop);
	return status;
}
