/*
 * The front of one thread: its listeners and its connections.
 *
 * Idle connections stand in a list of their own, the longest idle first. When max_connections is
 * reached the longest idle one makes room; when none is idle, new ones wait in the kernel's backlog
 * until one ends.
 */
#include "conn.h"

#include "weir/listener.h"

#include <assert.h>
#include <stdlib.h>

enum { ACCEPT_BATCH = 16 };

struct front_listener {
	struct front_listener *next;
	struct front *front;
	struct listener *listener;
	void *tag;
};

static const char *const fault_names[FRONT_FAULTS] = { "not_fastcgi", "order", "length",
	"bad_params", "head_too_large" };

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
	front->settings = *settings;
	front->handler = handler;
	front->context = context;
	front->accepting = true;
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
	drop_listeners(front);
	head_parser_free(front->parser);
	free(front);
}

void
front_configure(struct front *front, const struct front_settings *settings)
{
	front->settings = *settings;
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

static bool
is_crowded(const struct front *front)
{
	return front->idle.count + front->active.count >= front->settings.max_connections;
}

/* An idle connection goes, but not before its last answer has left. */
static void
dismiss(struct front_conn *conn)
{
	if (stream_queued(conn->stream) > 0)
		conn_go(conn, CONN_LINGER);
	else
		conn_close(conn);
}

static void
make_room(struct front *front)
{
	if (is_crowded(front) && front->idle.first != NULL) {
		counter_add(COUNT_CONNECTIONS_EVICTED, 1);
		dismiss(front->idle.first);
	}
}

static void
on_accept(void *context, int fd)
{
	struct front_listener *listener = context;
	struct front *front = listener->front;

	make_room(front);
	if (conn_open(front, fd, listener->tag) != 0)
		return;
	if (is_crowded(front) && front->idle.first == NULL)
		set_accepting(front, false);
}

int
front_listen(struct front *front, int fd, void *tag, struct err *err)
{
	struct front_listener *listener = calloc(1, sizeof *listener);

	if (listener == NULL)
		return err_set(err, "no memory for a listener");
	*listener = (struct front_listener){ .next = front->listeners, .front = front, .tag = tag };
	listener->listener = listener_new(front->loop, fd, ACCEPT_BATCH, on_accept, listener);
	if (listener->listener == NULL) {
		free(listener);
		return err_set(err, "no memory for a listener");
	}
	front->listeners = listener;
	return 0;
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
	/* Room has come about: a connection has gone, or one can be made to go. */
	if (!front->accepting && !front->stopping &&
		(!is_crowded(front) || front->idle.first != NULL))
		set_accepting(front, true);
	if (front->stopping && front->idle.first == NULL && front->active.first == NULL &&
		front->empty.run != NULL)
		loop_defer(front->loop, &front->empty);
}

void
front_stop(struct front *front, deferred_fn *empty, void *context)
{
	front->stopping = true;
	front->empty.run = empty;
	front->empty.context = context;
	drop_listeners(front);
	while (front->idle.first != NULL)
		dismiss(front->idle.first);
	if (front->active.first == NULL)
		loop_defer(front->loop, &front->empty);
}

unsigned
front_cut_all(struct front *front)
{
	unsigned cut = 0;

	drop_listeners(front);
	while (front->idle.first != NULL)
		conn_close(front->idle.first);
	while (front->active.first != NULL) {
		struct front_conn *conn = front->active.first;

		/* An answer that has not left is cut too. */
		cut += conn->state == CONN_BUSY || stream_queued(conn->stream) > 0 ? 1 : 0;
		conn_lose_request(conn, FRONT_GONE_CUT);
		conn_close(conn);
	}
	return cut;
}
