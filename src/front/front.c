/*
 * The front of one thread: its listeners and its connections.
 *
 * Idle connections stand in a list of their own, the longest idle first. When max_connections is
 * reached the longest idle one makes room; when none is idle, new ones wait in the kernel's backlog
 * until one ends. Stopping is no exception: what waits then is taken as room comes about.
 *
 * One on which a request waits unread is about to be busy, and makes no room. When there are only
 * such, there are a few connections too many, EXCESS_MAX at the most, and for each turn in which
 * one becomes idle then, one goes.
 */
#include "conn.h"

#include "weir/listener.h"
#include "weir/socket.h"
#include "weir/units.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { ACCEPT_BATCH = 16, LOOKS_MAX = 64, EXCESS_MAX = 64, RESERVE_MAX = 64 };

struct front_listener {
	struct front_listener *next;
	struct front *front;
	struct listener *listener;
	int fd;
	void *tag;
};

static const char *const fault_names[FRONT_FAULTS] = { "not_fastcgi", "order", "length",
	"bad_params", "head_too_large", "short_body" };

/* The last of the descriptors that the process may have are for requests: for backends, programs
 * and Redis. New ones are the lowest that are free, so a high number tells that few are. */
static int
plenty(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	const int all = (int)limit.rlim_cur;

	return all - (all / 4 < RESERVE_MAX ? all / 4 : RESERVE_MAX);
}

/* 0 stands for the usual. */
static void
take_settings(struct front *front, const struct front_settings *given)
{
	struct front_settings *settings = &front->settings;

	front->plenty = plenty();
	*settings = *given;
	if (settings->send_timeout_us == 0)
		settings->send_timeout_us = FRONT_SEND_TIMEOUT_US;
	if (settings->linger_timeout_us == 0)
		settings->linger_timeout_us = FRONT_LINGER_TIMEOUT_US;
	if (settings->linger_total_us == 0)
		settings->linger_total_us = FRONT_LINGER_TOTAL_US;
	if (settings->linger_bytes == 0)
		settings->linger_bytes = FRONT_LINGER_BYTES;
	if (settings->stop_grace_us == 0)
		settings->stop_grace_us = FRONT_STOP_GRACE_US;
}

static void shrink(void *context);

static void
list_init(struct conn_list *list)
{
	*list = (struct conn_list){ NULL, &list->first, 0 };
}

struct front *
front_new(struct loop *loop, const struct front_settings *settings,
	const struct front_handler *handler, void *context, struct err *err)
{
	struct front *front = calloc(1, sizeof *front);

	if (front == NULL) {
		(void)err_set(err, "no memory for the front");
		return NULL;
	}
	front->loop = loop;
	take_settings(front, settings);
	front->handler = handler;
	front->context = context;
	front->accepting = true;
	front->shrink.run = shrink;
	front->shrink.context = front;
	front->send_log = (struct log_throttle){ .period_us = 60 * US_PER_S, .burst = 1 };
	front->shortage_log = front->send_log;
	list_init(&front->idle);
	list_init(&front->active);
	for (unsigned i = 0; i < FRONT_FAULTS; i++) {
		const struct slice name = slice_of(fault_names[i]);

		front->faults[i] = counter_find(COUNT_PROTOCOL_ERRORS, &name);
	}
	front->parser = head_parser_new(err);
	if (front->parser == NULL) {
		free(front);
		return NULL;
	}
	return front;
}

static void
drop_listeners(struct front *front)
{
	while (front->listeners != NULL) {
		struct front_listener *listener = front->listeners;

		front->listeners = listener->next;
		listener_free(listener->listener);
		free(listener);
	}
}

void
front_free(struct front *front)
{
	if (front == NULL)
		return;
	assert(front->idle.first == NULL && front->active.first == NULL);
	loop_undefer(front->loop, &front->empty);
	loop_undefer(front->loop, &front->shrink);
	drop_listeners(front);
	head_parser_free(front->parser);
	free(front);
}

void
front_configure(struct front *front, const struct front_settings *settings)
{
	take_settings(front, settings);
}

static void
set_accepting(struct front *front, bool accepting)
{
	if (front->accepting == accepting)
		return;
	front->accepting = accepting;
	for (struct front_listener *listener = front->listeners; listener != NULL;
		listener = listener->next) {
		if (accepting)
			listener_resume(listener->listener);
		else
			listener_pause(listener->listener);
	}
}

static uint64_t
connections(const struct front *front)
{
	return (uint64_t)front->idle.count + front->active.count;
}

/* As long as there is room, or a connection can be made to go. */
static bool
may_accept(const struct front *front)
{
	const uint64_t most = front->settings.max_connections;

	return connections(front) < most ||
		(front->idle.first != NULL && connections(front) - most < EXCESS_MAX);
}

void
front_note_shortage(struct front *front, const char *what)
{
	uint64_t held;

	counter_add(COUNT_SHORTAGES, 1);
	if (log_throttle_pass(&front->shortage_log, loop_now_us(front->loop), &held))
		log_error("Memory or descriptors are short; a request could not be taken.",
			LOG_TEXT("reason", what), LOG_KEPT_BACK(held));
}

static void
make_room(struct front *front)
{
	struct front_conn *conn = front->idle.first;
	unsigned looked = 0;

	while (conn != NULL && stream_has_input(conn->stream))
		conn = ++looked < LOOKS_MAX ? conn->next : NULL;
	if (conn == NULL)
		return;
	counter_add(COUNT_CONNECTIONS_EVICTED, 1);
	linger_dismiss(conn);
}

static void
shrink(void *context)
{
	struct front *front = context;

	if (connections(front) > front->settings.max_connections)
		make_room(front);
}

static void
on_accept(void *context, int fd)
{
	struct front_listener *listener = context;
	struct front *front = listener->front;

	if (connections(front) >= front->settings.max_connections)
		make_room(front);
	/* One goes for the new one, one more so that they become fewer. */
	for (int i = 0; i < 2 && fd >= front->plenty; i++)
		make_room(front);
	conn_open(front, fd, listener->tag);
}

static void
on_shortage(void *context)
{
	const struct front_listener *listener = context;

	for (int i = 0; i < ACCEPT_BATCH; i++)
		make_room(listener->front);
}

int
front_listen(struct front *front, int fd, void *tag, struct err *err)
{
	struct front_listener *listener = calloc(1, sizeof *listener);

	if (listener == NULL)
		return err_set(err, "no memory for a listener");
	*listener = (struct front_listener){
		.next = front->listeners, .front = front, .fd = fd, .tag = tag
	};
	listener->listener = listener_new(front->loop, fd, ACCEPT_BATCH, on_accept, listener);
	if (listener->listener == NULL) {
		free(listener);
		return err_set(err, "no memory for a listener");
	}
	listener_on_shortage(listener->listener, on_shortage);
	front->listeners = listener;
	return 0;
}

void
front_take(struct front *front, int fd, void *tag)
{
	conn_open(front, fd, tag);
}

static void
tell_if_empty(struct front *front)
{
	if (front->stopping && front->listeners == NULL && front->idle.first == NULL &&
		front->active.first == NULL && front->empty.run != NULL)
		loop_defer(front->loop, &front->empty);
}

void
front_move(struct front_conn *conn, struct conn_list *list)
{
	struct front *front = conn->front;

	if (conn->list != NULL) {
		*conn->at = conn->next;
		if (conn->next != NULL)
			conn->next->at = conn->at;
		else
			conn->list->end = conn->at;
		conn->list->count--;
	}
	conn->list = list;
	if (list != NULL) {
		conn->next = NULL;
		conn->at = list->end;
		*list->end = conn;
		list->end = &conn->next;
		list->count++;
	}
	if (list == &front->idle && connections(front) > front->settings.max_connections)
		loop_defer(front->loop, &front->shrink);
	set_accepting(front, may_accept(front));
	tell_if_empty(front);
}

/* Nothing waits at this listener any more. */
static void
on_none(void *context)
{
	struct front_listener *listener = context, **at;
	struct front *front = listener->front;

	if (front->rest == FRONT_REST_LAST)
		socket_shut(listener->fd);
	for (at = &front->listeners; *at != listener; at = &(*at)->next)
		;
	*at = listener->next;
	listener_free(listener->listener);
	free(listener);
	tell_if_empty(front);
}

/* Connections between two requests go at the deadline, unless one has come by then. What has begun
 * to come may go on. */
static void
end_idle(struct conn_list *list, int64_t at_us)
{
	for (struct front_conn *conn = list->first; conn != NULL; conn = conn->next) {
		if (conn->state == CONN_IDLE && fcgi_reader_is_between(&conn->reader))
			stream_set_deadline(conn->stream, at_us);
		else
			conn_hasten(conn);
	}
}

void
front_stop(struct front *front, enum front_rest rest, deferred_fn *empty, void *context)
{
	front->stopping = true;
	front->rest = rest;
	front->empty.run = empty;
	front->empty.context = context;
	if (rest == FRONT_REST_LEFT)
		drop_listeners(front);
	for (struct front_listener *listener = front->listeners; listener != NULL;
		listener = listener->next)
		listener_take_rest(listener->listener, on_none);
	/* On a kept connection a request may wait unread, and a new one was made for a request. */
	end_idle(&front->idle, loop_now_us(front->loop));
	end_idle(&front->active, loop_now_us(front->loop) + front->settings.stop_grace_us);
	tell_if_empty(front);
}

static unsigned
cut_list(struct conn_list *list)
{
	unsigned cut = 0;

	while (list->first != NULL) {
		struct front_conn *conn = list->first;

		/* An answer that has not left is cut too. */
		cut += conn->state == CONN_BUSY || stream_queued(conn->stream) > 0 ? 1 : 0;
		conn_lose_request(conn, FRONT_GONE_CUT);
		conn_close(conn);
	}
	return cut;
}

unsigned
front_cut_all(struct front *front)
{
	unsigned cut = 0;

	cut += cut_list(&front->idle);
	cut += cut_list(&front->active);
	/* There are descriptors again, if there were none. */
	for (struct front_listener *listener = front->listeners; listener != NULL;
		listener = listener->next) {
		if (front->stopping && front->rest == FRONT_REST_LAST)
			cut += listener_drop_rest(listener->listener);
	}
	drop_listeners(front);
	return cut;
}
