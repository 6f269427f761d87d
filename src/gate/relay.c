/*
 * An admitted request on its way to the application and back. Each side is held when the other is
 * full, so nothing is gathered here: what a slow client does not take, the application waits with,
 * and the other way round.
 */
#include "gate_private.h"

#include "weir/headers.h"
#include "weir/log.h"

#include <string.h>

/* ---- from the application ---- */

/* Whether the application tells limits of its own, in whatever dialect. */
static bool
tells_limits(const struct cgi_head *head)
{
	for (unsigned i = 0; header_names[i] != NULL; i++) {
		if (cgi_head_find(head, slice_of(header_names[i])) != NULL)
			return true;
	}
	return false;
}

/* The fields of ours that go out with the head. Never both: a client could only guess which of two
 * limits counts. */
static struct slice
choose_fields(struct gate_request *request, struct cgi_head *head)
{
	const struct slice fields = answer_fields(request);

	if (fields.len == 0 || !tells_limits(head))
		return fields;
	if (request->route->config->own_headers == OWN_HEADERS_KEEP)
		return (struct slice){ NULL, 0 };
	for (unsigned i = 0; header_names[i] != NULL; i++)
		(void)cgi_head_remove(head, slice_of(header_names[i]));
	return fields;
}

static bool
is_head(const struct gate_request *request)
{
	return slice_is(request->view.method, SLICE("HEAD"));
}

/* A client reads no body then, and would take one for the next answer (RFC 9110 sections 6.4.1,
 * 15.3.5, 15.3.6 and 15.4.5). Nor may the first two tell a length (8.6). */
static bool
has_no_body(const struct gate_request *request, struct cgi_head *head)
{
	if (head->status == 204 || head->status == 205) {
		(void)cgi_head_remove(head, SLICE("Content-Length"));
		return true;
	}
	return head->status == 304 || is_head(request);
}

/* Where the web server sends a file of its own in the place of the body, what is said of that file
 * need not be true of what comes. */
static bool
leads_to_file(const struct cgi_head *head)
{
	static const char *const names[] = { "X-Sendfile", "X-Sendfile2", "X-LIGHTTPD-send-file",
		"X-Accel-Redirect", "X-Reproxy-URL" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (cgi_head_find(head, slice_of(names[i])) != NULL)
			return true;
	}
	return false;
}

static bool
on_head(void *context, struct cgi_head *head)
{
	struct gate_request *request = context;
	struct buf *out = &request->gate->head;
	const struct slice fields = choose_fields(request, head);
	const bool without_body = has_no_body(request, head);

	buf_consume(out, out->len);
	/* The head came within its maximum, and the normal form is hardly longer: memory is out. */
	if (cgi_head_write(head, fields, out) != 0)
		return false;
	front_send(request->front, buf_slice(out));
	request->head_sent = true;
	if (without_body)
		exchange_end_with_head(request->exchange, is_head(request));
	/* What it says is not what comes. */
	if (without_body || leads_to_file(head))
		head->content_length = -1;
	if (head->content_length > 0)
		front_promise_length(request->front);
	return true;
}

static void
on_data(void *context, struct slice body)
{
	struct gate_request *request = context;

	front_send(request->front, body);
	if (front_is_full(request->front))
		exchange_hold(request->exchange);
}

static void
on_error_text(void *context, struct slice text)
{
	struct gate_request *request = context;

	front_send_error_text(request->front, text);
}

static void
on_backend_drained(void *context)
{
	struct gate_request *request = context;

	if (request->upload != NULL)
		upload_go_on(request);
	else
		front_want_body(request->front);
}

static const char improper[] = "A backend did not answer a request properly.";

/* What the client is told, and the log. */
static const struct {
	unsigned status;
	const char *detail;
	int64_t retry_after_s;
	const char *message;
} failures[EXCHANGE_RESULTS] = {
	[EXCHANGE_BUSY] = { 503, GATE_BUSY_DETAIL, GATE_BUSY_RETRY_S,
		"A backend has no room for a request." },
	[EXCHANGE_REFUSED] = { 502, "The application cannot be reached.", 0,
		"A backend cannot be reached." },
	[EXCHANGE_TIMEOUT] = { 504, "The application took too long to answer.", 0,
		"A backend took too long." },
	[EXCHANGE_CLOSED] = { 502, "The application gave no answer.", 0, improper },
	[EXCHANGE_BAD_HEAD] = { 502, "The application gave an answer that is none.", 0, improper },
	[EXCHANGE_TRUNCATED] = { 502, "The application gave no answer.", 0, improper },
	[EXCHANGE_SHORT] = { 502, "The application gave no answer.", 0, improper },
	[EXCHANGE_SURPLUS] = { 502, "The application gave an answer that is none.", 0, improper },
	[EXCHANGE_NOT_FOUND] = { 404, "There is no such program.", 0, "A program is not there." },
	[EXCHANGE_FORBIDDEN] = { 403, "This program is not to be used.", 0,
		"A program may not be started." },
	[EXCHANGE_TOO_LARGE] = { 431,
		"The request has more in its head than the application can take.", 0,
		"A request's head is too large for a backend." },
	/* Not 503: what was asked for is done, and who comes again would have it done twice. */
	[EXCHANGE_UNTAKEN] = { 502, "The application's answer cannot be passed on.", 0,
		"There is no memory for the answer of a backend." },
};

static void
tell_failure(const struct gate_request *request, enum exchange_result result, const char *why)
{
	const struct snapshot *snapshot = request->plant->snapshot;
	const unsigned backend = request->backend;
	uint64_t held;

	counter_add(snapshot->backend_failures[backend * EXCHANGE_RESULTS + result], 1);
	if (report_may_tell_failure(request->gate->shared.report, &held))
		log_warn(failures[result].message,
			LOG_TEXT("backend", snapshot->config->backends[backend]->name),
			LOG_TEXT("result", exchange_result_names[result]), LOG_TEXT("reason", why),
			LOG_SLICE("method", request->view.method),
			LOG_SLICE("path", request->view.path), LOG_KEPT_BACK(held));
}

void
relay_fail(struct gate_request *request, enum exchange_result result, const char *why)
{
	tell_failure(request, result, why);
	request->outcome = result == EXCHANGE_BUSY ? OUTCOME_BUSY : OUTCOME_BACKEND_FAILED;
	if (!request->head_sent) {
		answer_error(request, failures[result].status, failures[result].detail,
			failures[result].retry_after_s);
		return;
	}
	struct front_request *front = request->front;

	request_close(request);
	front_cut(front);
}

/* As the application has ended it, where the web server lets the client see that. */
static void
end_short(struct gate_request *request, uint32_t app_status, const char *why)
{
	struct front_request *front = request->front;

	tell_failure(request, EXCHANGE_SHORT, why);
	request->outcome = OUTCOME_BACKEND_FAILED;
	request_close(request);
	front_end_short(front, app_status);
}

static void
on_end(void *context, enum exchange_result result, uint32_t app_status, const char *why)
{
	struct gate_request *request = context;
	struct front_request *front = request->front;

	request->exchange = NULL;
	if (result == EXCHANGE_SHORT) {
		end_short(request, app_status, why);
		return;
	}
	if (result != EXCHANGE_COMPLETE && result != EXCHANGE_SURPLUS) {
		relay_fail(request, result, why);
		return;
	}
	/* The client has its whole answer. */
	if (result == EXCHANGE_SURPLUS)
		tell_failure(request, result, why);
	request_close(request);
	front_end(front, app_status);
}

static const struct exchange_handler exchange_handler = { .head = on_head,
	.data = on_data,
	.error_text = on_error_text,
	.drained = on_backend_drained,
	.end = on_end };

/* ---- from the web server ---- */

static void
after_body(struct gate_request *request)
{
	if (exchange_is_full(request->exchange))
		front_hold_body(request->front);
}

void
relay_on_body(struct front_request *front, struct slice data)
{
	struct gate_request *request = front_owner(front);

	if (request->exchange == NULL) {
		upload_take(request, data);
		return;
	}
	exchange_body(request->exchange, data);
	after_body(request);
}

bool
relay_pass_on(struct gate_request *request, struct slice params)
{
	struct backend_pool *pool = request->plant->pools[request->backend];
	enum exchange_result result;
	struct err why;

	request->exchange = exchange_start(pool, params, &exchange_handler, request, &result, &why);
	if (request->exchange != NULL)
		return true;
	relay_fail(request, result, why.text);
	return false;
}

void
relay_on_body_end(struct front_request *front)
{
	struct gate_request *request = front_owner(front);

	if (request->exchange == NULL)
		upload_end(request);
	else
		exchange_body_end(request->exchange);
}

void
relay_on_drained(struct front_request *front)
{
	struct gate_request *request = front_owner(front);

	if (request != NULL && request->exchange != NULL)
		exchange_resume(request->exchange);
}

void
relay_start(struct gate_request *request)
{
	const struct backend_pool *pool = request->plant->pools[request->backend];

	if (pool == NULL || front_role_of(request->front) == FRONT_AUTHORIZER) {
		answer_admitted(request);
		return;
	}
	/* Without a length it hears of the request when the end of the body is there (upload.c). */
	if (!front_knows_length(request->front) ||
		relay_pass_on(request, front_params(request->front)))
		front_want_body(request->front);
}
