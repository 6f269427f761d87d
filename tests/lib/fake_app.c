/*
 * A thread accepts, and one for each connection runs the script. The lock is for what the test
 * looks at and for descriptors, which fake_app_stop shuts down under their readers.
 */
#include "fake_app.h"

#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct app_thread {
	struct app_conn conn;
	pthread_t thread;
	app_script *script;
};

struct fake_app {
	int listening;
	pthread_t thread;
	pthread_mutex_t lock;
	app_script *script;
	void *context;
	struct app_conn *conns; /* newest first; freed when the application stops */
	struct app_seen seen;
	struct buf params; /* the last request's */
	bool stopping;
};

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "the fake application: %s\n", what);
	abort();
}

static void
lock(struct fake_app *app)
{
	(void)pthread_mutex_lock(&app->lock);
}

static void
unlock(struct fake_app *app)
{
	(void)pthread_mutex_unlock(&app->lock);
}

/* ---- threads ---- */

static void *
run_script(void *context)
{
	struct app_thread *thread = context;
	struct app_conn *conn = &thread->conn;
	struct fake_app *app = conn->app;

	thread->script(conn);
	lock(app);
	(void)close(conn->fd);
	conn->fd = -1;
	app->seen.ended++;
	unlock(app);
	return NULL;
}

static void
start_script(struct fake_app *app, int fd)
{
	struct app_thread *thread = calloc(1, sizeof *thread);

	require(thread != NULL, "no memory");
	socket_limit_time(fd);
	bytes_init(&thread->conn.params);
	thread->conn.app = app;
	thread->conn.fd = fd;
	thread->conn.context = app->context;
	lock(app);
	thread->script = app->script;
	thread->conn.number = app->seen.accepted++;
	thread->conn.next = app->conns;
	app->conns = &thread->conn;
	require(pthread_create(&thread->thread, NULL, run_script, thread) == 0, "no thread");
	unlock(app);
}

static void *
accept_all(void *context)
{
	struct fake_app *app = context;

	for (;;) {
		const int fd = accept4(app->listening, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			start_script(app, fd);
			continue;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return NULL;
	}
}

struct fake_app *
fake_app_start(int listening, app_script *script, void *context)
{
	struct fake_app *app = calloc(1, sizeof *app);

	require(app != NULL, "no memory");
	app->listening = listening;
	app->script = script;
	app->context = context;
	bytes_init(&app->params);
	(void)pthread_mutex_init(&app->lock, NULL);
	require(pthread_create(&app->thread, NULL, accept_all, app) == 0, "no thread");
	return app;
}

void
fake_app_stop(struct fake_app *app)
{
	if (app == NULL)
		return;
	(void)shutdown(app->listening, SHUT_RDWR);
	(void)pthread_join(app->thread, NULL);
	(void)close(app->listening);
	lock(app);
	app->stopping = true;
	for (struct app_conn *conn = app->conns; conn != NULL; conn = conn->next) {
		if (conn->fd >= 0)
			(void)shutdown(conn->fd, SHUT_RDWR);
	}
	unlock(app);
	while (app->conns != NULL) {
		/* The connection is the thread's first member. */
		struct app_thread *thread = (struct app_thread *)(void *)app->conns;

		app->conns = thread->conn.next;
		(void)pthread_join(thread->thread, NULL);
		buf_release(&thread->conn.params);
		free(thread);
	}
	buf_release(&app->params);
	(void)pthread_mutex_destroy(&app->lock);
	free(app);
}

void
fake_app_set_script(struct fake_app *app, app_script *script)
{
	lock(app);
	app->script = script;
	unlock(app);
}

/* ---- looking ---- */

struct app_seen
fake_app_look(struct fake_app *app)
{
	lock(app);
	const struct app_seen seen = app->seen;

	unlock(app);
	return seen;
}

/* What the connection has seen of its request. */
static void
show(struct app_conn *conn)
{
	struct fake_app *app = conn->app;

	lock(app);
	app->seen.role = conn->seen.role;
	app->seen.flags = conn->seen.flags;
	app->seen.pairs_whole = conn->seen.pairs_whole;
	app->seen.body_ended = conn->seen.body_ended;
	app->seen.body_len = conn->seen.body_len;
	app->seen.body_sum = conn->seen.body_sum;
	unlock(app);
}

void
fake_app_copy_params(struct fake_app *app, struct buf *out)
{
	bytes_init(out);
	lock(app);
	bytes_add(out, buf_slice(&app->params));
	unlock(app);
}

static size_t
next_length(struct slice *pairs)
{
	const uint8_t *at = (const uint8_t *)pairs->ptr;
	const bool is_long = pairs->len > 0 && at[0] >= 0x80;
	const size_t size = is_long ? 4 : 1;

	if (pairs->len < size) {
		*pairs = slice_make("", 0);
		return SIZE_MAX;
	}
	*pairs = slice_skip(*pairs, size);
	return is_long
		? (size_t)(at[0] & 0x7f) << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3]
		: at[0];
}

/* Cuts a pair off; false at the end, or where what is left is no whole pair. */
static bool
next_pair(struct slice *pairs, struct slice *name, struct slice *value)
{
	struct slice rest = *pairs;
	const size_t name_len = next_length(&rest), value_len = next_length(&rest);

	if (name_len > rest.len || value_len > rest.len - name_len)
		return false;
	*name = slice_first(rest, name_len);
	*value = slice_first(slice_skip(rest, name_len), value_len);
	*pairs = slice_skip(rest, name_len + value_len);
	return true;
}

unsigned
fake_app_params(struct fake_app *app, const char *name, const char *value)
{
	struct slice pairs, one_name, one_value;
	unsigned count = 0;

	lock(app);
	pairs = buf_slice(&app->params);
	while (next_pair(&pairs, &one_name, &one_value)) {
		if (slice_is(one_name, slice_of(name)) &&
			(value == NULL || slice_is(one_value, slice_of(value))))
			count++;
	}
	unlock(app);
	return count;
}

/* ---- reading ---- */

static struct record *
scratch_record(void)
{
	static _Thread_local struct record record;

	return &record;
}

static void
take_params(struct app_conn *conn, const struct record *record)
{
	struct slice pairs = slice_make(record->content, record->len), name, value;

	bytes_add(&conn->params, pairs);
	while (next_pair(&pairs, &name, &value))
		;
	conn->seen.pairs_whole = conn->seen.pairs_whole && pairs.len == 0;
}

static void
keep_params(struct app_conn *conn)
{
	struct fake_app *app = conn->app;

	lock(app);
	buf_consume(&app->params, app->params.len);
	bytes_add(&app->params, buf_slice(&conn->params));
	app->seen.requests++;
	unlock(app);
	show(conn);
}

bool
app_read_params(struct app_conn *conn)
{
	struct record *record = scratch_record();

	conn->seen.pairs_whole = true;
	while (read_record(conn->fd, record) == GOT_RECORD) {
		if (record->type == FCGI_BEGIN_REQUEST && record->len == 8) {
			conn->id = record->id;
			conn->seen.role = (uint16_t)(record->content[0] << 8 | record->content[1]);
			conn->seen.flags = record->content[2];
		} else if (record->type == FCGI_PARAMS && record->len > 0) {
			take_params(conn, record);
		} else if (record->type == FCGI_PARAMS) {
			keep_params(conn);
			return true;
		}
	}
	return false;
}

bool
app_read_some(struct app_conn *conn)
{
	struct record *record = scratch_record();

	if (read_record(conn->fd, record) != GOT_RECORD || record->type != FCGI_STDIN)
		return false;
	for (size_t i = 0; i < record->len; i++)
		conn->seen.body_sum = conn->seen.body_sum * 31 + record->content[i];
	conn->seen.body_len += record->len;
	conn->seen.body_ended = record->len == 0;
	show(conn);
	return true;
}

bool
app_read_body(struct app_conn *conn)
{
	while (!conn->seen.body_ended) {
		if (!app_read_some(conn))
			return false;
	}
	return true;
}

bool
app_read_request(struct app_conn *conn)
{
	return app_read_params(conn) && app_read_body(conn);
}

/* ---- writing ---- */

bool
app_send(struct app_conn *conn, struct slice bytes)
{
	return socket_send(conn->fd, bytes);
}

static bool
send_stream(struct app_conn *conn, uint8_t type, struct slice bytes)
{
	struct buf records;

	bytes_init(&records);
	put_stream(&records, type, conn->id, bytes, 32768);
	const bool sent = app_send(conn, buf_slice(&records));

	buf_release(&records);
	return sent;
}

bool
app_out(struct app_conn *conn, struct slice bytes)
{
	return send_stream(conn, FCGI_STDOUT, bytes);
}

bool
app_err(struct app_conn *conn, struct slice bytes)
{
	return send_stream(conn, FCGI_STDERR, bytes);
}

bool
app_out_end(struct app_conn *conn)
{
	const char record[8] = { 1, FCGI_STDOUT, (char)(conn->id >> 8), (char)conn->id };

	return app_send(conn, slice_make(record, sizeof record));
}

bool
app_end(struct app_conn *conn, uint32_t app_status, uint8_t protocol_status)
{
	struct buf record;

	bytes_init(&record);
	put_end(&record, conn->id, app_status, protocol_status);
	const bool sent = app_send(conn, buf_slice(&record));

	buf_release(&record);
	return sent;
}

bool
app_answer(struct app_conn *conn, struct slice bytes)
{
	return app_out(conn, bytes) && app_out_end(conn) && app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

/* ---- waiting ---- */

void
app_wait_gone(struct app_conn *conn)
{
	struct fake_app *app = conn->app;
	char scratch[4096];
	ssize_t n;

	do {
		n = recv(conn->fd, scratch, sizeof scratch, 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	lock(app);
	/* Not if it is we who have ended it, nor if the wait was too long. */
	if (!app->stopping && (n == 0 || errno != EAGAIN))
		app->seen.gone++;
	unlock(app);
}

bool
app_linger(struct app_conn *conn, int ms)
{
	struct pollfd state = { .fd = conn->fd, .events = POLLRDHUP };

	return poll(&state, 1, ms) == 0;
}
