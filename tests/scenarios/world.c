/*
 * The world of a scenario: what a worker of weir has, without its process, and a web server's side
 * of one connection. Nothing of what the gate does is done here.
 */
#include "world.h"

#include "../lib/fcgi_client.h"
#include "../lib/sockets.h"
#include "weir/clock.h"
#include "weir/units.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WORLD_MAX = 64 * 1024 * 1024 };

/* ---- opening ---- */

static void
socket_path(const struct world *world, char out[256])
{
	(void)snprintf(out, 256, "%s/weir.sock", world->directory);
}

void
world_open(struct world *world, const char *directory, struct redis_server *server)
{
	char path[256];
	struct err err;

	memset(world, 0, sizeof *world);
	world->directory = directory;
	world->connection = -1;
	arena_init(&world->arena, WORLD_MAX);
	socket_path(world, path);
	world->listening = unix_listen(path, 1000);
	(void)fcntl(world->listening, F_SETFL, O_NONBLOCK);
	world->shared = (struct gate_shared){
		.memory = memory_open_private(MEMORY_SIZE_MIN, &err),
		.report = report_new(NULL, LOG_FORMAT_TEXT, &err),
		.commons = gate_commons_new(&err),
		.threads = 1,
	};
	assert_true(world->shared.memory != NULL && world->shared.report != NULL &&
		world->shared.commons != NULL);
	world->server = server;
	if (server != NULL) {
		world->direct = redis_server_connect(server);
		world_empty(world);
	}
	loop_thread_start(&world->thread);
	seam_open();
}

static void
close_gate(void *context)
{
	struct world *world = context;

	if (world->gate == NULL)
		return;
	(void)gate_cut(world->gate);
	gate_free(world->gate);
}

void
world_close(struct world *world)
{
	loop_thread_call(&world->thread, close_gate, world);
	loop_thread_stop(&world->thread);
	fake_app_stop(world->app);
	seam_close();
	if (world->connection >= 0)
		(void)close(world->connection);
	(void)close(world->listening);
	gate_commons_free(world->shared.commons);
	report_free(world->shared.report);
	memory_close(world->shared.memory);
	if (world->direct != NULL)
		redisFree(world->direct);
	else if (world->server != NULL)
		redis_server_start(world->server, NULL);
	for (unsigned i = 0; i < world->snapshot_count; i++)
		snapshot_release(world->snapshots[i]);
	arena_release(&world->arena);
}

/* ---- the application ---- */

static void
answer_as_told(struct app_conn *conn)
{
	const struct world *world = conn->context;

	while (app_read_request(conn)) {
		if (!app_answer(conn, slice_of(world->app_answer)))
			return;
	}
}

void
world_start_app(struct world *world, struct slice fields)
{
	char path[256], answer[4200];

	(void)snprintf(path, sizeof path, "%s/app.sock", world->directory);
	(void)snprintf(
		answer, sizeof answer, "Status: 200 OK\r\n%.*s\r\n", (int)fields.len, fields.ptr);
	world->app_answer = arena_text(&world->arena, slice_of(answer));
	assert_non_null(world->app_answer);
	world->app = fake_app_start(unix_listen(path, 100), answer_as_told, world);
}

/* ---- configurations ---- */

const char *
world_sections(const struct world *world, char out[SECTIONS_MAX])
{
	int len = snprintf(out, SECTIONS_MAX, "\n[backend scenario]\ntype = none\n");

	if (world->server != NULL)
		len += snprintf(out + len, SECTIONS_MAX - (size_t)len,
			"\n[redis]\nserver = unix:%s\n", world->server->address.host);
	if (world->app != NULL)
		len += snprintf(out + len, SECTIONS_MAX - (size_t)len,
			"\n[backend app]\nserver = unix:%s/app.sock\n", world->directory);
	assert_true(len < SECTIONS_MAX);
	return out;
}

static void
set_first_error(const struct diagnostics *diagnostics, struct err *err)
{
	for (size_t i = 0; i < diagnostics->count; i++) {
		const struct diagnostic *said = &diagnostics->list[i];
		const char *slash =
			said->place.file == NULL ? NULL : strrchr(said->place.file, '/');

		if (said->severity != SEVERITY_ERROR)
			continue;
		(void)err_set(err, "%s:%u: %s%s%s", slash == NULL ? "" : slash + 1,
			said->place.line, said->where, said->where[0] == '\0' ? "" : ": ",
			said->text);
		return;
	}
}

static struct snapshot *
current(const struct world *world)
{
	return world->snapshots[world->snapshot_count - 1];
}

static void
use(void *context)
{
	struct world *world = context;
	struct err err;

	if (world->gate != NULL) {
		assert_int_equal(gate_use(world->gate, current(world), &err), 0);
		return;
	}
	world->gate = gate_new(world->thread.loop, &world->shared, current(world), &err);
	assert_non_null(world->gate);
	assert_int_equal(gate_listen(world->gate, world->listening, NULL, &err), 0);
}

int
world_use(struct world *world, const char *file, struct err *err)
{
	struct diagnostics diagnostics;

	if (world->snapshot_count == CONFIGURATIONS_MAX)
		return err_set(err, "more than %d configurations", CONFIGURATIONS_MAX);
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(file, &diagnostics);

	if (snapshot == NULL)
		set_first_error(&diagnostics, err);
	diagnostics_release(&diagnostics);
	if (snapshot == NULL)
		return -1;
	world->snapshots[world->snapshot_count++] = snapshot;
	assert_int_equal(setenv("TZ", snapshot->config->timezone, 1), 0);
	tzset();
	loop_thread_call(&world->thread, use, world);
	return 0;
}

/* ---- asking ---- */

/* Nothing comes between two requests but its end. */
static bool
is_closed(int connection)
{
	struct pollfd pollfd = { .fd = connection, .events = POLLIN };

	return poll(&pollfd, 1, 0) != 0;
}

static void
send_question(struct world *world, const struct question *question)
{
	char path[256];
	struct buf bytes;

	if (world->connection >= 0 && is_closed(world->connection)) {
		(void)close(world->connection);
		world->connection = -1;
	}
	if (world->connection < 0) {
		socket_path(world, path);
		world->connection = unix_connect(path);
	}
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = question->env, .keep = true });
	assert_true(socket_send(world->connection, buf_slice(&bytes)));
	buf_release(&bytes);
}

/* Until there is an answer, or the request is held. True: it is held. */
static bool
wait_for_answer(const struct world *world)
{
	struct pollfd pollfd = { .fd = world->connection, .events = POLLIN };

	while (poll(&pollfd, 1, 1) == 0) {
		if (seam_look().held != NULL)
			return true;
	}
	return false;
}

static void
nothing(void *context)
{
	(void)context;
}

static void
read_answer(struct world *world, struct reply *reply)
{
	struct answer answer;
	uint64_t wait;

	answer_read(&answer, world->connection, 1);
	assert_true(answer_is_whole(&answer));
	reply->status = answer_status(&answer);
	const struct slice body = answer_body(&answer), all = buf_slice(&answer.out);
	const char *fields = arena_text(&world->arena, slice_first(all, all.len - body.len));

	assert_non_null(fields);
	reply->fields = slice_of(fields);
	if (parse_uint(answer_field(&answer, "Retry-After"), INT64_MAX, &wait) == 0)
		reply->retry_after_s = (int64_t)wait;
	answer_release(&answer);
	/* What wrote it has gone on to the request's end when this has come back. */
	loop_thread_call(&world->thread, nothing, NULL);
}

static void
keep_under_way(struct world *world, struct reply *reply, void *held)
{
	struct under_way *under_way = arena_alloc(&world->arena, sizeof *under_way);

	assert_non_null(under_way);
	*under_way = (struct under_way){ held, world->connection };
	world->connection = -1;
	reply->status = 200;
	reply->under_way = under_way;
}

void
world_ask(struct world *world, const struct question *question, struct reply *reply)
{
	memset(reply, 0, sizeof *reply);
	seam_set_now(question->now_us);
	world_expire(world, question->now_us);
	seam_begin(question->shard == SHARD_BY_TURNS ? world->turn++ : (unsigned)question->shard);
	send_question(world, question);
	if (!wait_for_answer(world))
		read_answer(world, reply);
	const struct seen seen = seam_look();

	if (seen.held != NULL)
		keep_under_way(world, reply, seen.held);
	reply->enforced = current(world)->config->enforce;
	reply->would_reject = seen.would;
	if (seen.has_decision)
		reply->decision = seen.decision;
	world_note_keys(world, &seen);
}

void
world_end(struct world *world, struct under_way *request)
{
	struct answer answer;

	if (request->held == NULL)
		return;
	loop_thread_call(&world->thread, seam_let_go, request->held);
	request->held = NULL;
	answer_read(&answer, request->connection, 1);
	assert_int_equal(answer_status(&answer), 200);
	answer_release(&answer);
	(void)close(request->connection);
}
