/*
 * A worker's thread. The main thread reaches it only by posting to its loop; what the worker has to
 * tell is posted back.
 */
#include "worker.h"

#include "weir/counter.h"
#include "weir/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct worker {
	struct worker_settings settings;
	struct loop *loop;
	struct gate *gate;
	pthread_t thread;
	unsigned cut;

	/* Until the thread has said how its start went. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum { WORKER_STARTING, WORKER_RUNNING, WORKER_FAILED } state;
	struct err err;
};

struct worker_order {
	struct worker *worker;
	struct snapshot *snapshot;
};

static int
open_gate(struct worker *worker, struct err *err)
{
	const struct worker_settings *settings = &worker->settings;

	if (counter_thread_start(err) != 0)
		return -1;
	worker->gate = gate_new(worker->loop, settings->shared, settings->snapshot, err);
	if (worker->gate == NULL)
		return -1;
	for (unsigned i = 0; i < settings->socket_count; i++) {
		if (gate_listen(worker->gate, settings->sockets[i], settings->backends[i], err) !=
			0)
			return -1;
	}
	return 0;
}

static void *
run(void *context)
{
	struct worker *worker = context;
	struct err err = { "" };
	const int result = open_gate(worker, &err);

	(void)pthread_mutex_lock(&worker->lock);
	worker->state = result == 0 ? WORKER_RUNNING : WORKER_FAILED;
	worker->err = err;
	(void)pthread_cond_signal(&worker->changed);
	(void)pthread_mutex_unlock(&worker->lock);
	if (result == 0)
		loop_run(worker->loop);
	if (worker->gate != NULL)
		worker->cut = gate_cut(worker->gate);
	gate_free(worker->gate);
	return NULL;
}

static int
start_thread(struct worker *worker)
{
	sigset_t all, before;

	/* Signals are the main loop's. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGBUS); /* of which the thread itself is told (memory_file.c) */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&worker->thread, NULL, run, worker);

	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static void
destroy(struct worker *worker)
{
	loop_free(worker->loop);
	(void)pthread_mutex_destroy(&worker->lock);
	(void)pthread_cond_destroy(&worker->changed);
	free(worker);
}

struct worker *
worker_start(const struct worker_settings *settings, struct err *err)
{
	struct worker *worker = calloc(1, sizeof *worker);

	if (worker == NULL) {
		(void)err_set(err, "no memory for a thread");
		return NULL;
	}
	worker->settings = *settings;
	(void)pthread_mutex_init(&worker->lock, NULL);
	(void)pthread_cond_init(&worker->changed, NULL);
	worker->loop = loop_new(err);
	const int error = worker->loop == NULL ? -1 : start_thread(worker);

	if (error != 0) {
		if (error > 0)
			(void)err_set(err, "a thread cannot be started: %s", strerror(error));
		destroy(worker);
		return NULL;
	}
	(void)pthread_mutex_lock(&worker->lock);
	while (worker->state == WORKER_STARTING)
		(void)pthread_cond_wait(&worker->changed, &worker->lock);
	(void)pthread_mutex_unlock(&worker->lock);
	if (worker->state == WORKER_RUNNING)
		return worker;
	*err = worker->err;
	(void)pthread_join(worker->thread, NULL);
	destroy(worker);
	return NULL;
}

static void
use(void *context)
{
	struct worker_order *order = context;
	struct err err;

	if (gate_use(order->worker->gate, order->snapshot, &err) != 0)
		log_error("A thread keeps the old configuration.", LOG_TEXT("reason", err.text));
	snapshot_release(order->snapshot);
	free(order);
}

void
worker_use(struct worker *worker, struct snapshot *snapshot)
{
	struct worker_order *order = malloc(sizeof *order);

	snapshot_hold(snapshot);
	if (order != NULL)
		*order = (struct worker_order){ worker, snapshot };
	if (order != NULL && loop_post(worker->loop, use, order) == 0)
		return;
	log_error("A thread keeps the old configuration.", LOG_TEXT("reason", "no memory"));
	snapshot_release(snapshot);
	free(order);
}

static void
on_empty(void *context)
{
	struct worker *worker = context;

	/* If it cannot be told, the drain's deadline ends us. */
	if (loop_post(worker->settings.main_loop, worker->settings.empty,
		    worker->settings.context) != 0)
		log_error("The end of a thread's requests could not be told.");
}

static void
stop(void *context)
{
	struct worker *worker = context;

	gate_stop(worker->gate, worker->settings.rest, on_empty, worker);
}

void
worker_stop(struct worker *worker)
{
	if (loop_post(worker->loop, stop, worker) != 0)
		log_error("A thread could not be told to stop.");
}

static void
leave(void *context)
{
	struct worker *worker = context;

	loop_stop(worker->loop);
}

unsigned
worker_end(struct worker *worker)
{
	while (loop_post(worker->loop, leave, worker) != 0)
		log_error("A thread could not be told to end; trying again.");
	(void)pthread_join(worker->thread, NULL);
	const unsigned cut = worker->cut;

	destroy(worker);
	return cut;
}
