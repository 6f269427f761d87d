/* The handler runs on the loop's thread; what it has seen is looked at under a lock. */
#include "rig.h"

#include "weir/counter.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct rig_request {
	struct rig *rig;
	struct front_request *front;
	struct rig_request *next;
	const char *mode;
	uint64_t len, sum, left;
};

struct front_settings
rig_settings(void)
{
	return (struct front_settings){ .max_connections = 1000,
		.told_connections = 4000,
		.told_requests = 77,
		.max_head = 256 * 1024,
		.max_params = 1000,
		.head_timeout_us = 60 * INT64_C(1000000),
		.body_timeout_us = 60 * INT64_C(1000000) };
}

/* ---- what is seen ---- */

static void
note(struct rig *rig, unsigned *counter)
{
	(void)pthread_mutex_lock(&rig->lock);
	(*counter)++;
	(void)pthread_mutex_unlock(&rig->lock);
}

struct rig_seen
rig_look(struct rig *rig)
{
	(void)pthread_mutex_lock(&rig->lock);
	const struct rig_seen seen = rig->seen;

	(void)pthread_mutex_unlock(&rig->lock);
	return seen;
}

static void
set_open(struct rig *rig, int change)
{
	(void)pthread_mutex_lock(&rig->lock);
	rig->seen.open = (unsigned)((int)rig->seen.open + change);
	(void)pthread_mutex_unlock(&rig->lock);
}

/* ---- requests ---- */

static const char *
param(const struct front_request *front, const char *name)
{
	const size_t len = strlen(name);

	for (char *const *entry = front_env(front); *entry != NULL; entry++) {
		if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
			return *entry + len + 1;
	}
	return "";
}

static void
forget(struct rig_request *request)
{
	struct rig_request **at = &request->rig->open;

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	set_open(request->rig, -1);
	free(request);
}

static void
answer(struct rig_request *request, struct slice body)
{
	struct front_request *front = request->front;

	forget(request);
	front_answer(front, SLICE("Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n"), body);
}

static void
answer_sum(struct rig_request *request)
{
	char text[100];
	const int n = snprintf(text, sizeof text, "%llu %llu", (unsigned long long)request->len,
		(unsigned long long)request->sum);

	answer(request, slice_make(text, (size_t)n));
}

static void
answer_dump(struct rig_request *request)
{
	struct front_request *front = request->front;
	struct buf body;

	bytes_init(&body);
	for (char *const *entry = front_env(front); *entry != NULL; entry++) {
		bytes_add(&body, slice_of(*entry));
		bytes_add(&body, SLICE("\n"));
	}
	bytes_add(&body, SLICE("--\n"));
	bytes_add(&body, front_params(front));
	answer(request, buf_slice(&body));
	buf_release(&body);
}

static void
send_more(struct rig_request *request)
{
	static const char zeros[10000];
	struct front_request *front = request->front;

	while (request->left > 0 && !front_is_full(front)) {
		const struct slice piece =
			slice_first(slice_make(zeros, sizeof zeros), request->left);

		front_send(front, piece);
		request->left -= piece.len;
	}
	if (request->left > 0)
		return;
	forget(request);
	front_end(front, 0);
}

static char *
zeros_of(size_t len)
{
	char *zeros = calloc(1, len);

	if (zeros == NULL)
		abort();
	return zeros;
}

static void
flood(struct rig_request *request)
{
	const size_t len = (size_t)request->left;
	char *zeros = zeros_of(len);

	answer(request, slice_make(zeros, len));
	free(zeros);
}

static void
begin_both(struct rig_request *request)
{
	struct front_request *front = request->front;
	const size_t len = (size_t)request->left;
	char *zeros = zeros_of(len);

	front_send(front, SLICE("Status: 200 OK\r\n\r\n"));
	front_send(front, slice_make(zeros, len));
	free(zeros);
	front_want_body(front);
}

static void
send_error_text(struct rig_request *request)
{
	static const char text[] = "0123456789abcdef";

	for (uint64_t left = request->left; left > 0;) {
		const struct slice piece = slice_first(slice_make(text, 16), left);

		front_send_error_text(request->front, piece);
		left -= piece.len;
	}
	answer(request, SLICE("told"));
}

static void
begin(struct rig_request *request)
{
	struct front_request *front = request->front;
	const char *mode = request->mode;

	if (strcmp(mode, "wait") == 0)
		return;
	if (strcmp(mode, "body") == 0 || strcmp(mode, "hold") == 0 || strcmp(mode, "early") == 0) {
		front_want_body(front);
	} else if (strcmp(mode, "both") == 0) {
		begin_both(request);
	} else if (strcmp(mode, "big") == 0) {
		front_send(front, SLICE("Status: 200 OK\r\n\r\n"));
		send_more(request);
	} else if (strcmp(mode, "flood") == 0) {
		flood(request);
	} else if (strcmp(mode, "stderr") == 0) {
		send_error_text(request);
	} else if (strcmp(mode, "end") == 0) {
		forget(request);
		front_end(front, 7);
	} else if (strcmp(mode, "cut") == 0) {
		forget(request);
		front_send(front, SLICE("Status: 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
		front_cut(front);
	} else {
		answer_dump(request);
	}
}

static void
on_request(void *context, struct front_request *front, void *listener)
{
	struct rig *rig = context;
	struct rig_request *request = calloc(1, sizeof *request);

	if (request == NULL || listener != &rig->listening)
		abort();
	*request = (struct rig_request){ .rig = rig,
		.front = front,
		.next = rig->open,
		.mode = param(front, "MODE"),
		.left = strtoull(param(front, "SIZE"), NULL, 10) };
	rig->open = request;
	note(rig, &rig->seen.requests);
	set_open(rig, 1);
	front_set_owner(front, request);
	begin(request);
}

static void
on_body(struct front_request *front, struct slice data)
{
	struct rig_request *request = front_owner(front);

	if (request == NULL || data.len == 0)
		abort();
	(void)pthread_mutex_lock(&request->rig->lock);
	request->rig->seen.pieces++;
	request->rig->seen.body_bytes += data.len;
	(void)pthread_mutex_unlock(&request->rig->lock);
	request->len += data.len;
	for (size_t i = 0; i < data.len; i++)
		request->sum = request->sum * 31 + (uint8_t)data.ptr[i];
	if (strcmp(request->mode, "early") == 0)
		answer_sum(request);
	else if (strcmp(request->mode, "hold") == 0)
		front_hold_body(front);
}

static void
on_body_end(struct front_request *front)
{
	struct rig_request *request = front_owner(front);

	if (request == NULL)
		abort();
	note(request->rig, &request->rig->seen.body_ends);
	if (strcmp(request->mode, "both") == 0) {
		forget(request);
		front_end(front, 0);
		return;
	}
	answer_sum(request);
}

static void
on_drained(struct front_request *front)
{
	struct rig_request *request = front_owner(front);

	if (request == NULL)
		abort();
	note(request->rig, &request->rig->seen.drains);
	if (strcmp(request->mode, "big") == 0)
		send_more(request);
}

static void
on_gone(struct front_request *front, enum front_gone why)
{
	struct rig_request *request = front_owner(front);
	struct rig *rig;

	if (request == NULL)
		abort();
	rig = request->rig;
	switch (why) {
	case FRONT_GONE_PEER:
		note(rig, &rig->seen.gone_peer);
		break;
	case FRONT_GONE_BODY_TIMEOUT:
		note(rig, &rig->seen.gone_timeout);
		break;
	case FRONT_GONE_CUT:
		note(rig, &rig->seen.gone_cut);
		break;
	}
	forget(request);
}

static const struct front_handler handler = { .request = on_request,
	.body = on_body,
	.body_end = on_body_end,
	.drained = on_drained,
	.gone = on_gone };

/* ---- the rig ---- */

struct opening {
	struct rig *rig;
	const struct front_settings *settings;
};

static void
open_front(void *context)
{
	const struct opening *opening = context;
	struct rig *rig = opening->rig;
	struct err err;

	rig->front = front_new(rig->thread.loop, opening->settings, &handler, rig, &err);
	if (rig->front == NULL ||
		front_listen(rig->front, rig->listening, &rig->listening, &err) != 0)
		abort();
}

void
rig_open(struct rig *rig, const struct front_settings *settings)
{
	struct opening opening = { rig, settings };

	memset(rig, 0, sizeof *rig);
	(void)pthread_mutex_init(&rig->lock, NULL);
	directory_make(&rig->directory);
	rig->listening = unix_listen(directory_path(&rig->directory, "s").text, 2000);
	(void)fcntl(rig->listening, F_SETFL, O_NONBLOCK);
	loop_thread_start(&rig->thread);
	loop_thread_call(&rig->thread, open_front, &opening);
}

static void
configure(void *context)
{
	const struct opening *opening = context;

	front_configure(opening->rig->front, opening->settings);
}

void
rig_configure(struct rig *rig, const struct front_settings *settings)
{
	struct opening opening = { rig, settings };

	loop_thread_call(&rig->thread, configure, &opening);
}

static void
cut_all(void *context)
{
	struct rig *rig = context;

	rig->cut = front_cut_all(rig->front);
}

static void
close_front(void *context)
{
	struct rig *rig = context;

	(void)front_cut_all(rig->front);
	front_free(rig->front);
}

void
rig_close(struct rig *rig)
{
	loop_thread_call(&rig->thread, close_front, rig);
	loop_thread_stop(&rig->thread);
	(void)close(rig->listening);
	directory_remove(&rig->directory);
	assert_null(rig->open);
	assert_int_equal(rig_look(rig).open, 0);
	assert_int_equal(rig_connections(), 0);
	(void)pthread_mutex_destroy(&rig->lock);
}

int
rig_connect(const struct rig *rig)
{
	return unix_connect(directory_path(&rig->directory, "s").text);
}

static void
want_body(void *context)
{
	struct rig *rig = context;

	if (rig->open != NULL)
		front_want_body(rig->open->front);
}

void
rig_want_body(struct rig *rig)
{
	loop_thread_call(&rig->thread, want_body, rig);
}

static void
answer_newest(void *context)
{
	struct rig *rig = context;

	if (rig->open != NULL)
		answer(rig->open, SLICE("answered"));
}

void
rig_answer(struct rig *rig)
{
	loop_thread_call(&rig->thread, answer_newest, rig);
}

void
rig_on_empty(void *context)
{
	struct rig *rig = context;

	note(rig, &rig->seen.empty);
}

static void
stop(void *context)
{
	struct rig *rig = context;

	front_stop(rig->front, rig->rest, rig_on_empty, rig);
}

void
rig_stop(struct rig *rig)
{
	loop_thread_call(&rig->thread, stop, rig);
}

void
rig_cut_all(struct rig *rig)
{
	loop_thread_call(&rig->thread, cut_all, rig);
}

int64_t
rig_connections(void)
{
	return counter_sum(COUNT_CONNECTIONS);
}

int64_t
rig_faults(const char *reason)
{
	const struct slice name = slice_of(reason);

	return counter_sum(counter_find(COUNT_PROTOCOL_ERRORS, &name));
}

void
assert_rig_serves(struct rig *rig)
{
	const int fd = rig_connect(rig);
	struct answer given;

	answer_to(&given, fd,
		&(const struct request_spec){
			.params = (const char *const[]){ "REQUEST_METHOD", "GET", NULL } });
	assert_true(answer_is_whole(&given));
	assert_int_equal(answer_status(&given), 200);
	answer_release(&given);
	(void)close(fd);
}
