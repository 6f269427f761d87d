/*
 * A body of unknown length. Web servers that pass on an upload in chunks as it comes send no
 * CONTENT_LENGTH, and an application that is told none reads no body (RFC 3875 section 4.2; php-fpm
 * answers as if nothing had been sent). So the body is stored until its end is there, and the
 * application hears of the request then, with a length.
 *
 *     nothing --a piece--> stored --the end--> passed on, piece by piece, at its pace
 *        '------------------the end----------> passed on, without a body
 *
 * Only what a policy has admitted comes here: a rejected upload is never stored. What one client
 * can take of the disk is bounded by `spool`, and what all can by `max_in_flight` of the backend
 * beside that.
 */
#include "gate_private.h"
#include "spool.h"

#include "weir/fcgi.h"
#include "weir/log.h"

/* Given on in one turn, so that an application that takes it as fast does not keep others
 * waiting. */
enum { PIECE = 32768, PIECES_A_TURN = 8 };

struct upload {
	struct spool spool;
	struct timer *next_turn;
};

/* ---- what cannot be stored ---- */

static void
refuse_without_length(struct gate_request *request, unsigned status, const char *detail)
{
	struct gate *gate = request->gate;
	uint64_t held;

	if (log_throttle_pass(&gate->length_log, loop_now_us(gate->loop), &held))
		log_warn(status == 411
				? "An upload was answered with 411 because it came without its "
				  "length, and spool of its backend is 0."
				: "An upload was answered with 413 because it came without its "
				  "length, and is longer than spool of its backend.",
			LOG_TEXT("backend",
				request->plant->snapshot->config->backends[request->backend]->name),
			LOG_TEXT("route", request->route->config->name),
			LOG_SLICE("path", request->view.path), LOG_KEPT_BACK(held));
	request->outcome = OUTCOME_NO_LENGTH;
	answer_error(request, status, detail, 0);
}

/* The disk is full, as a rule. Nobody but the operator can help it. */
static void
run_short(struct gate_request *request, const char *why)
{
	struct gate *gate = request->gate;
	uint64_t held;

	counter_add(COUNT_SHORTAGES, 1);
	if (log_throttle_pass(&gate->spool_log, loop_now_us(gate->loop), &held))
		log_error("The body of a request cannot be stored to learn its length.",
			LOG_TEXT("directory", request->plant->snapshot->config->spool_directory),
			LOG_TEXT("reason", why), LOG_KEPT_BACK(held));
	request->outcome = OUTCOME_BUSY;
	answer_error(request, 503, GATE_BUSY_DETAIL, GATE_BUSY_RETRY_S);
}

/* ---- storing ---- */

static void
on_next_turn(void *context)
{
	upload_go_on(context);
}

/* This thread's share; at least one, as of the backend's pool. */
static bool
is_crowded(const struct gate_request *request)
{
	const uint64_t all =
		request->plant->snapshot->config->backends[request->backend]->max_in_flight;
	const uint64_t share = all / request->gate->shared.threads;

	return request->plant->uploads[request->backend] >= (share == 0 ? 1 : share);
}

/* False: it could not, and the request has ended. */
static bool
begin(struct gate_request *request)
{
	const char *directory = request->plant->snapshot->config->spool_directory;
	struct upload *upload = arena_alloc(front_arena(request->front), sizeof *upload);
	struct err err;

	if (is_crowded(request)) {
		relay_fail(request, EXCHANGE_BUSY,
			"max_in_flight is reached by bodies that come without their length");
		return false;
	}
	if (upload == NULL) {
		run_short(request, "no memory");
		return false;
	}
	*upload = (struct upload){ .next_turn =
					   timer_new(request->gate->loop, on_next_turn, request) };
	if (upload->next_turn == NULL || spool_open(&upload->spool, directory, &err) != 0) {
		const bool has_timer = upload->next_turn != NULL;

		timer_free(upload->next_turn);
		run_short(request, has_timer ? err.text : "no memory");
		return false;
	}
	request->upload = upload;
	request->plant->uploads[request->backend]++;
	return true;
}

void
upload_take(struct gate_request *request, struct slice data)
{
	const uint64_t most = request->plant->snapshot->config->backends[request->backend]->spool;
	struct err err;

	if (most == 0) {
		refuse_without_length(request, 411,
			"A body is taken only with its Content-Length: the application would not "
			"read it.");
		return;
	}
	if (request->upload == NULL && !begin(request))
		return;
	if (data.len > most - request->upload->spool.len)
		refuse_without_length(request, 413,
			"A body as large as this is taken only with its Content-Length.");
	else if (spool_put(&request->upload->spool, data, &err) != 0)
		run_short(request, err.text);
}

void
upload_release(struct gate_request *request)
{
	if (request->upload == NULL)
		return;
	request->plant->uploads[request->backend]--;
	timer_free(request->upload->next_turn);
	spool_close(&request->upload->spool);
	request->upload = NULL;
}

/* ---- passing on ---- */

/* What says that there is no length. */
static bool
is_replaced(struct slice name)
{
	return slice_is(name, SLICE("CONTENT_LENGTH")) ||
		slice_is(name, SLICE("HTTP_TRANSFER_ENCODING"));
}

/* The request's parameters, with a length. */
static int
put_params(struct buf *out, struct slice params, uint64_t length)
{
	struct slice name, value;
	char digits[24];

	while (fcgi_pair_next(&params, &name, &value) > 0) {
		if (!is_replaced(name) && fcgi_pair_put(out, name, value) != 0)
			return -1;
	}
	const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)length);

	return fcgi_pair_put(out, SLICE("CONTENT_LENGTH"), slice_make(digits, (size_t)n));
}

static bool
pass_on_with_length(struct gate_request *request, uint64_t length)
{
	const struct slice params = front_params(request->front);
	struct buf changed;
	bool passed = false;

	buf_init(&changed, params.len + 64);
	if (put_params(&changed, params, length) == 0)
		passed = relay_pass_on(request, buf_slice(&changed));
	else
		run_short(request, "no memory");
	buf_release(&changed);
	return passed;
}

/* Apache and nginx say that it comes in chunks, Caddy that its length is -1. */
static bool
speaks_of_body(const struct gate_request *request)
{
	return view_param(&request->view, "HTTP_TRANSFER_ENCODING").len > 0 ||
		view_param(&request->view, "CONTENT_LENGTH").len > 0;
}

void
upload_end(struct gate_request *request)
{
	struct upload *upload = request->upload;

	/* Of a request that speaks of no body, none is made up. */
	if (upload == NULL) {
		if (speaks_of_body(request) ? pass_on_with_length(request, 0)
					    : relay_pass_on(request, front_params(request->front)))
			exchange_body_end(request->exchange);
		return;
	}
	if (pass_on_with_length(request, upload->spool.len))
		upload_go_on(request);
}

/* The application waits for what does not come. */
static void
give_up(struct gate_request *request, const char *why)
{
	struct front_request *front = request->front;

	exchange_cancel(request->exchange);
	request->exchange = NULL;
	if (!request->head_sent) {
		run_short(request, why);
		return;
	}
	request->outcome = OUTCOME_BUSY;
	request_close(request);
	front_cut(front);
}

void
upload_go_on(struct gate_request *request)
{
	struct upload *upload = request->upload;
	char room[PIECE];
	struct slice piece;
	struct err err;

	for (unsigned i = 0; i < PIECES_A_TURN; i++) {
		if (exchange_is_full(request->exchange))
			return;
		if (spool_next(&upload->spool, room, sizeof room, &piece, &err) != 0) {
			give_up(request, err.text);
			return;
		}
		if (piece.len == 0) {
			upload_release(request);
			exchange_body_end(request->exchange);
			return;
		}
		exchange_body(request->exchange, piece);
	}
	timer_set(upload->next_turn, loop_now_us(request->gate->loop));
}
