/* Everything is recorded; nothing is judged here. */
#include "talk.h"

#include "weir/counter.h"
#include "weir/hash.h"

#include <stdio.h>

struct loop *loop;
struct resolver *resolver;
struct directory directory;
enum backend_type talk_type;

int
talk_set_up(void **state)
{
	static bool started;
	struct err err;

	(void)state;
	if (!started && (hash_start(&err) != 0 || counter_thread_start(&err) != 0))
		return -1;
	started = true;
	talk_type = BACKEND_FASTCGI;
	directory_make(&directory);
	loop = loop_new(&err);
	resolver = loop == NULL ? NULL : resolver_new(loop, &err);
	return resolver == NULL ? -1 : 0;
}

int
talk_tear_down(void **state)
{
	(void)state;
	resolver_free(resolver);
	loop_free(loop);
	directory_remove(&directory);
	return 0;
}

/* ---- what the exchange tells ---- */

static void
came(struct talk *talk)
{
	talk->is_late = talk->is_late || talk->exchange == NULL;
	loop_stop(loop);
}

static bool
on_head(void *context, struct cgi_head *head)
{
	struct talk *talk = context;
	size_t len = 0;

	talk->heads++;
	talk->status = head->status;
	talk->content_length = head->content_length;
	for (unsigned i = 0; i < head->field_count; i++) {
		const struct cgi_field *field = &head->fields[i];
		const size_t room = sizeof talk->fields - len;
		const int n =
			snprintf(talk->fields + len, room, "%.*s: %.*s\n", (int)field->name.len,
				field->name.ptr, (int)field->value.len, field->value.ptr);

		len += (size_t)n < room ? (size_t)n : 0;
	}
	came(talk);
	if (talk->wants_no_body)
		exchange_end_with_head(talk->exchange, talk->is_head);
	return !talk->refuses_head;
}

static void
on_data(void *context, struct slice body)
{
	struct talk *talk = context;

	if (talk->body.len < 1024 * 1024)
		bytes_add(&talk->body, body);
	talk->body_len += body.len;
	for (size_t i = 0; i < body.len; i++)
		talk->body_sum = talk->body_sum * 31 + (uint8_t)body.ptr[i];
	if (talk->hold_after > 0 && talk->body_len >= talk->hold_after) {
		exchange_hold(talk->exchange);
		talk->hold_after = 0;
	}
	came(talk);
}

static void
on_error_text(void *context, struct slice text)
{
	struct talk *talk = context;

	for (size_t i = 0; i < text.len && talk->error_len + i < sizeof talk->error_start - 1; i++)
		talk->error_start[talk->error_len + i] = text.ptr[i];
	talk->error_len += text.len;
	came(talk);
}

static void
on_drained(void *context)
{
	struct talk *talk = context;

	talk->drains++;
	came(talk);
	talk_feed(talk);
}

static void
on_end(void *context, enum exchange_result result, uint32_t app_status, const char *why)
{
	struct talk *talk = context;

	came(talk);
	talk->exchange = NULL;
	talk->ended = true;
	talk->result = result;
	talk->app_status = app_status;
	(void)snprintf(talk->why, sizeof talk->why, "%s", why);
}

static const struct exchange_handler handler = { .head = on_head,
	.data = on_data,
	.error_text = on_error_text,
	.drained = on_drained,
	.end = on_end };

/* ---- what the test does ---- */

struct backend_pool *
talk_pool_of(const struct config_backend *config)
{
	const struct slice name = SLICE("app");
	struct err err = { "" };
	struct backend_pool *pool = backend_pool_new(
		loop, resolver, config, 1, counter_find(COUNT_BACKEND_IN_FLIGHT, &name), &err);

	assert_row(pool != NULL, "%s", err.text);
	return pool;
}

struct backend_pool *
talk_pool_with(const char *const *servers, uint64_t max_in_flight, int64_t connect_timeout_us,
	int64_t idle_timeout_us)
{
	struct address addresses[64];
	struct config_backend config = {
		.name = "app",
		.type = talk_type,
		.servers = addresses,
		.max_in_flight = max_in_flight == 0 ? 1000 : max_in_flight,
		.connect_timeout_us = connect_timeout_us == 0 ? 1000000 : connect_timeout_us,
		.idle_timeout_us = idle_timeout_us == 0 ? 20000000 : idle_timeout_us,
	};
	struct err err = { "" };

	while (servers[config.server_count] != NULL) {
		const struct slice text = slice_of(servers[config.server_count]);

		assert_row(address_parse(text, &addresses[config.server_count], &err) == 0, "%s",
			err.text);
		config.server_count++;
	}
	return talk_pool_of(&config);
}

struct backend_pool *
talk_pool(const char *const *servers)
{
	return talk_pool_with(servers, 0, 0, 0);
}

struct backend_pool *
talk_pool_of_one(void)
{
	const struct address address = directory_socket(&directory, "s");
	char text[ADDRESS_TEXT_SIZE];

	return talk_pool((const char *const[]){ address_text(&address, text), NULL });
}

bool
talk_start_raw(struct talk *talk, struct backend_pool *pool, struct slice params)
{
	struct err why = { "" };

	*talk = (struct talk){ .content_length = -2 };
	bytes_init(&talk->body);
	talk->exchange = exchange_start(pool, params, &handler, talk, &talk->result, &why);
	if (talk->exchange != NULL)
		return true;
	talk->ended = true;
	(void)snprintf(talk->why, sizeof talk->why, "%s", why.text);
	return false;
}

bool
talk_start(struct talk *talk, struct backend_pool *pool, const char *const *pairs)
{
	static const char *const usual[] = { "REQUEST_METHOD", "GET", "SCRIPT_NAME", "/x", NULL };
	struct buf params;

	bytes_init(&params);
	put_pairs(&params, pairs == NULL ? usual : pairs);
	const bool started = talk_start_raw(talk, pool, buf_slice(&params));

	buf_release(&params);
	return started;
}

void
talk_feed(struct talk *talk)
{
	static const char zeros[50000];

	while (talk->exchange != NULL && talk->to_send > 0 && !exchange_is_full(talk->exchange)) {
		const struct slice piece =
			slice_first(slice_make(zeros, sizeof zeros), talk->to_send);

		talk->to_send -= piece.len;
		exchange_body(talk->exchange, piece);
	}
	if (talk->exchange != NULL && talk->to_send == 0 && !talk->fed) {
		talk->fed = true;
		exchange_body_end(talk->exchange);
	}
}

void
talk_finish(struct talk *talk)
{
	run_loop_until(loop, talk->ended);
	assert_false(talk->is_late);
	assert_true(talk->heads <= 1);
}

void
talk_cancel(struct talk *talk)
{
	exchange_cancel(talk->exchange);
	talk->exchange = NULL;
}

void
talk_release(struct talk *talk)
{
	assert_false(talk->is_late);
	buf_release(&talk->body);
}

void
talk_once(struct talk *talk, struct backend_pool *pool)
{
	if (!talk_start(talk, pool, NULL))
		return;
	talk_feed(talk);
	talk_finish(talk);
}

int64_t
talk_in_flight(void)
{
	const struct slice name = SLICE("app");

	return counter_sum(counter_find(COUNT_BACKEND_IN_FLIGHT, &name));
}
