/*
 * weir serve: a daemon in the foreground. The main thread has the signals, the metrics and the
 * configuration; workers serve.
 *
 *     starting --> serving --TERM, INT, USR1--> draining --all empty, or drain is over--> gone
 *                   |   ^
 *                   '---' HUP: the configuration is read anew; a wrong one changes nothing
 */
#include "command.h"
#include "notify.h"
#include "process.h"
#include "sockets.h"
#include "worker.h"

#include "weir/breaker.h"
#include "weir/clock.h"
#include "weir/http_server.h"
#include "weir/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, TICK_US = 1000000 };

struct serve {
	const char *file;
	struct loop *loop;
	struct snapshot *first; /* what needs a restart to change is as it says */
	struct snapshot *current;
	struct sockets sockets;
	struct log_sink *log;
	struct memory *memory;
	struct report *report;
	struct breaker *breaker; /* to be looked at only; NULL without [redis] */
	struct http_server *metrics;
	struct socket_file metrics_file;
	struct gate_shared shared;
	struct worker *workers[WORKERS_MAX];
	unsigned worker_count, empty_count;
	struct timer *tick, *drain;
	bool draining;
	counter_cell reloads[2]; /* refused, done */
};

/* ---- metrics ---- */

static int64_t
read_breaker(void *context)
{
	struct serve *serve = context;

	return serve->breaker != NULL && breaker_is_open(serve->breaker) ? 1 : 0;
}

static void
health(struct serve *serve, struct http_answer *answer)
{
	const char *text = "ok\n";

	answer->status = 200;
	if (serve->draining) {
		answer->status = 503;
		text = "stopping\n";
	} else if (read_breaker(serve) != 0) {
		text = "degraded: Redis cannot be used, routes do what their store_down says\n";
	}
	if (buf_append(&answer->body, text, strlen(text)) != 0)
		answer->status = 500;
}

static void
on_http(void *context, const char *path, struct http_answer *answer)
{
	struct serve *serve = context;

	if (strcmp(path, "/healthz") == 0) {
		health(serve, answer);
	} else if (strcmp(path, "/metrics") == 0) {
		answer->content_type = REPORT_METRICS_TYPE;
		answer->status = report_metrics(serve->report, &answer->body) == 0 ? 200 : 500;
	}
}

static int
open_metrics(struct serve *serve, struct err *err)
{
	const struct config *config = serve->first->config;
	const struct socket_owner owner = { .mode = 0660 };

	if (!config->has_metrics)
		return 0;
	const int fd = socket_listen(&config->metrics, &owner, &serve->metrics_file, err);

	/* Of several processes that a web server starts the first has it. */
	if (fd < 0 && serve->sockets.is_spawned) {
		log_debug(
			"Another process has the metrics address.", LOG_TEXT("reason", err->text));
		return 0;
	}
	if (fd < 0)
		return err_prefix(err, "metrics");
	serve->metrics = http_server_new(serve->loop, fd, on_http, serve, err);
	return serve->metrics == NULL ? -1 : 0;
}

/* ---- reload ---- */

static int
attach_breaker(struct serve *serve, struct err *err)
{
	const struct config *config = serve->current->config;
	char target[ADDRESS_TEXT_SIZE];

	breaker_free(serve->breaker);
	serve->breaker = NULL;
	if (!config->has_redis)
		return 0;
	serve->breaker = breaker_attach(memory_area(serve->memory), MEMORY_AREA_SIZE,
		slice_of(address_text(&config->redis_server, target)));
	return serve->breaker == NULL ? err_set(err, "no memory for the breaker") : 0;
}

static bool
same_listens(const struct config *a, const struct config *b)
{
	bool same = a->listen_count == b->listen_count;

	for (unsigned i = 0; same && i < a->listen_count; i++)
		same = address_is(&a->listens[i].address, &b->listens[i].address) &&
			a->listens[i].mode == b->listens[i].mode;
	return same;
}

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void
warn_restart(const struct config *old, const struct config *new)
{
	const struct {
		const char *key;
		bool same;
	} keys[] = {
		{ "[weir] listen", same_listens(old, new) },
		{ "[weir] threads", old->threads == new->threads },
		{ "[weir] log",
			old->log_to == new->log_to &&same_text(old->log_file, new->log_file) },
		{ "[weir] reject_log", same_text(old->reject_log, new->reject_log) },
		{ "[weir] metrics",
			old->has_metrics ==
				new->has_metrics &&address_is(&old->metrics, &new->metrics) },
		{ "[memory] size", old->memory_size == new->memory_size },
		{ "[memory] state", same_text(old->memory_state, new->memory_state) },
	};

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (!keys[i].same)
			log_warn("A changed key takes effect only with a restart.",
				LOG_TEXT("key", keys[i].key));
	}
}

static void
use(struct serve *serve, struct snapshot *snapshot)
{
	struct err err;

	snapshot_release(serve->current);
	serve->current = snapshot;
	warn_restart(serve->first->config, snapshot->config);
	log_configure(snapshot->config->log_level, snapshot->config->log_format);
	for (unsigned i = 0; i < serve->worker_count; i++)
		worker_use(serve->workers[i], snapshot);
	if (attach_breaker(serve, &err) != 0)
		log_error("The breaker's state cannot be shown.", LOG_TEXT("reason", err.text));
}

static void
notify_reloading(void)
{
	char text[96];

	(void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)clock_monotonic_us());
	notify(text);
}

static void
reload(struct serve *serve)
{
	struct diagnostics diagnostics;

	notify_reloading();
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(serve->file, &diagnostics);

	process_log_diagnostics(&diagnostics);
	diagnostics_release(&diagnostics);
	counter_add(serve->reloads[snapshot != NULL ? 1 : 0], 1);
	if (snapshot != NULL) {
		use(serve, snapshot);
		log_info("The configuration was read anew.", LOG_TEXT("file", serve->file));
	} else {
		log_error("The configuration is wrong; the old one stays in use.",
			LOG_TEXT("file", serve->file));
	}
	notify("READY=1");
}

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
drain(struct serve *serve, int signo)
{
	if (serve->draining)
		return;
	serve->draining = true;
	notify("STOPPING=1");
	log_info("Stopping: no new requests; those under way may end.", LOG_INT("signal", signo));
	for (unsigned i = 0; i < serve->worker_count; i++)
		worker_stop(serve->workers[i]);
	sockets_refuse(&serve->sockets);
	timer_set(serve->drain, clock_monotonic_us() + serve->current->config->drain_us);
}

static void
on_signal(void *context, int signo)
{
	struct serve *serve = context;

	if (signo == SIGHUP && !serve->draining)
		reload(serve);
	else if (signo != SIGHUP)
		drain(serve, signo);
}

static void
on_tick(void *context)
{
	struct serve *serve = context;
	const uint64_t dropped =
		log_sink_take_dropped(serve->log) + report_take_dropped(serve->report);

	if (dropped > 0)
		counter_add(COUNT_LOG_DROPPED, (int64_t)dropped);
	timer_set(serve->tick, clock_monotonic_us() + TICK_US);
}

/* ---- the start ---- */

static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGHUP };

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
	serve->report = report_new(config->reject_log, config->log_format, err);
	if (serve->report == NULL || attach_breaker(serve, err) != 0)
		return -1;
	if (report_add_gauge(serve->report, "weir_breaker_open",
		    "1 while Redis is not asked because it failed; shared by the host's processes.",
		    read_breaker, serve) != 0)
		return err_set(err, "too many gauges");
	serve->reloads[0] = counter_find(COUNT_RELOADS, &SLICE("refused"));
	serve->reloads[1] = counter_find(COUNT_RELOADS, &SLICE("done"));
	serve->tick = timer_new(serve->loop, on_tick, serve);
	serve->drain = timer_new(serve->loop, on_drain_over, serve);
	if (serve->tick == NULL || serve->drain == NULL)
		return err_set(err, "no memory for timers");
	return open_metrics(serve, err);
}

static int
start_workers(struct serve *serve, struct err *err)
{
	const unsigned count = (unsigned)serve->first->config->threads;

	serve->shared = (struct gate_shared){ .memory = serve->memory,
		.report = serve->report,
		.threads = count,
		.is_spawned = serve->sockets.is_spawned };
	const struct worker_settings settings = { .main_loop = serve->loop,
		.shared = &serve->shared,
		.snapshot = serve->first,
		.sockets = serve->sockets.fds,
		.socket_count = serve->sockets.count,
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

static void
say_ready(const struct serve *serve)
{
	const struct config *config = serve->first->config;

	if (serve->sockets.is_inherited && config->listen_count > 0)
		log_info("`listen` is ignored: the sockets were given by who started weir.");
	log_info("Serving.", LOG_TEXT("version", PACKAGE_VERSION), LOG_TEXT("file", serve->file),
		LOG_TEXT("store", config->has_redis ? "redis" : "memory"),
		LOG_INT("sockets", serve->sockets.count), LOG_INT("threads", serve->worker_count),
		LOG_TEXT("enforce", config->enforce ? "yes" : "no"));
	notify("READY=1");
}

static void
end_parts(struct serve *serve)
{
	unsigned cut = 0;

	for (unsigned i = 0; i < serve->worker_count; i++)
		cut += worker_end(serve->workers[i]);
	if (serve->draining)
		log_info("Stopped.", LOG_INT("requests_cut", cut));
	http_server_free(serve->metrics);
	if (serve->metrics != NULL)
		socket_unlink(&serve->first->config->metrics, &serve->metrics_file);
	timer_free(serve->tick);
	timer_free(serve->drain);
	report_free(serve->report);
	breaker_free(serve->breaker);
	memory_close(serve->memory);
	sockets_close(&serve->sockets, serve->first->config);
}

static int
serve_until_stopped(struct serve *serve)
{
	struct err err;
	int status = EXIT_FAILED;

	if (open_parts(serve, &err) != 0 || watch_signals(serve, &err) != 0 ||
		start_workers(serve, &err) != 0) {
		log_error("weir cannot start.", LOG_TEXT("reason", err.text));
	} else {
		say_ready(serve);
		on_tick(serve);
		loop_run(serve->loop);
		status = EXIT_OK;
	}
	end_parts(serve);
	return status;
}

static int
run(struct serve *serve)
{
	struct err err;

	serve->log = process_open_log(serve->first->config, &err);
	if (serve->log == NULL) {
		(void)fprintf(stderr, "weir serve: %s\n", err.text);
		return EXIT_FAILED;
	}
	process_raise_limits(serve->first->config);
	int status = EXIT_FAILED;

	if (sockets_open(&serve->sockets, serve->first->config, &err) != 0)
		log_error("weir cannot start.", LOG_TEXT("reason", err.text));
	else if (serve->sockets.count == 0)
		status = usage_error("serve",
			"there is nothing to serve on: no socket was inherited, and %s has no "
			"`listen` in [weir]",
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
	diagnostics_print(&diagnostics, stderr);
	diagnostics_release(&diagnostics);
	if (serve->first == NULL)
		return -1;
	snapshot_hold(serve->first);
	serve->current = serve->first;
	return 0;
}

static const char *
config_argument(int argc, char **argv)
{
	if (argc == 1)
		return DEFAULT_CONFIG;
	if (argc == 3 && strcmp(argv[1], "--config") == 0)
		return argv[2];
	if (argc == 2 && strncmp(argv[1], "--config=", 9) == 0)
		return argv[1] + 9;
	return NULL;
}

int
command_serve(int argc, char **argv)
{
	struct serve serve = { .file = config_argument(argc, argv) };
	struct err err;
	int status = EXIT_FAILED;

	if (serve.file == NULL)
		return usage_error(
			"serve", "takes --config FILE, or nothing for %s", DEFAULT_CONFIG);
	mask_signals(SIG_BLOCK);
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
