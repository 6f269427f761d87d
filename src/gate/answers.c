/*
 * The answers that we make ourselves: Status first, nothing that a cache may keep, and a body in
 * the form that the client asked for, or the route's own. Who is told to come back is told when, in
 * whole seconds, never early.
 */
#include "gate_private.h"

#include "weir/hash.h"
#include "weir/headers.h"
#include "weir/units.h"

#include <stdio.h>

/* Of a head: 32 lines of the route's, and ours. Of a body: every name of CHECK_POLICIES_MAX. */
enum { HEAD_MAX = 65536, BODY_MAX = 16384 };

#define PROBLEM_TYPES "https://iana.org/assignments/http-problem-types#"

struct page {
	unsigned status;
	const char *problem; /* a type of RFC 9457, or NULL */
	const char *detail; /* a sentence */
	const char *reason; /* of a problem: a word for programs, or NULL */
	int64_t retry_after_s;
	const struct decision *decision; /* NULL: no policy is named */
	const struct config_route *route; /* NULL: nothing of the route's */
	enum media media;
	const struct quirks *quirks; /* NULL: of a request of which nothing is known */
	bool is_admission; /* what the web server serves itself must not get a type or age of ours
			    */
	bool without_body; /* for HEAD */
	struct slice fields; /* rate-limit lines */
};

/* Whether the route has a body of its own for this. */
static bool
is_own(const struct page *page)
{
	return page->route != NULL && page->route->reject_page.ptr != NULL && page->status == 429 &&
		(page->quirks == NULL || page->route->reject_page.len <= page->quirks->body_max);
}

/* ---- bodies ---- */

static int
put_violated(struct buf *out, const struct decision *decision)
{
	bool is_first = true;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->violated || outcome->shadow)
			continue;
		if (buf_printf(out, "%s", is_first ? ",\"violated-policies\":[" : ",") != 0 ||
			headers_put_name(out, outcome) != 0)
			return -1;
		is_first = false;
	}
	return is_first ? 0 : buf_append(out, "]", 1);
}

/* RFC 9457, with the members of the RateLimit draft (headers.h). All that stands in it is ours, and
 * is printable ASCII. */
static int
put_problem(struct buf *out, const struct page *page)
{
	const char *type = page->problem == NULL ? "about:blank" : page->problem;

	if (buf_printf(out, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\"",
		    type, cgi_reason(page->status), page->status, page->detail) != 0)
		return -1;
	if (page->reason != NULL && buf_printf(out, ",\"reason\":\"%s\"", page->reason) != 0)
		return -1;
	if (page->decision != NULL && put_violated(out, page->decision) != 0)
		return -1;
	return buf_append(out, "}\n", 2);
}

static int
put_html(struct buf *out, const struct page *page)
{
	const char *reason = cgi_reason(page->status);

	return buf_printf(out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%u "
		"%s</title></head>\n"
		"<body><h1>%s</h1><p>%s</p></body></html>\n",
		page->status, reason, reason, page->detail);
}

static int
put_body(struct buf *out, const struct page *page)
{
	switch (page->media) {
	case MEDIA_TEXT:
		return buf_printf(out, "%s\n", page->detail);
	case MEDIA_HTML:
		return put_html(out, page);
	case MEDIA_PROBLEM:
		return put_problem(out, page);
	}
	return -1;
}

/* ---- heads ---- */

static const char *
type_of(const struct page *page)
{
	static const char *const types[] = { [MEDIA_TEXT] = "text/plain; charset=utf-8",
		[MEDIA_HTML] = "text/html; charset=utf-8",
		[MEDIA_PROBLEM] = "application/problem+json" };

	return is_own(page) ? page->route->reject_page_type : types[page->media];
}

static int
put_route_lines(struct buf *out, const struct page *page)
{
	if (page->route == NULL || page->status < 400)
		return 0;
	for (unsigned i = 0; i < page->route->reject_header_count; i++) {
		if (buf_printf(out, "%s\r\n", page->route->reject_headers[i]) != 0)
			return -1;
	}
	return 0;
}

static int
put_status(struct buf *out, const struct page *page)
{
	const enum telling telling =
		page->quirks == NULL || page->status == 200 ? TELL_STATUS : page->quirks->telling;

	switch (telling) {
	case TELL_STATUS:
		return buf_printf(out, "Status: %u %s\r\n", page->status, cgi_reason(page->status));
	case TELL_VARIABLE:
		return buf_printf(
			out, "Status: 200 OK\r\nVariable-WEIR_STATUS: %u\r\n", page->status);
	case TELL_FORBIDDEN:
		return buf_printf(
			out, "Status: 403 Forbidden\r\nWeir-Status: %u\r\n", page->status);
	}
	return -1;
}

/* Whether the web server passes a body on. What it makes one of itself has its own type and length.
 */
static bool
has_body(const struct page *page)
{
	return !page->is_admission && (page->quirks == NULL || page->quirks->body_max > 0);
}

static int
put_head(struct buf *out, const struct page *page, size_t body_len)
{
	if (put_status(out, page) != 0)
		return -1;
	if (has_body(page) &&
		buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", type_of(page),
			body_len) != 0)
		return -1;
	if (!page->is_admission && buf_printf(out, "Cache-Control: no-store\r\n") != 0)
		return -1;
	if (page->retry_after_s > 0 &&
		buf_printf(out, "Retry-After: %lld\r\n", (long long)page->retry_after_s) != 0)
		return -1;
	if (buf_append_slice(out, page->fields) != 0 || put_route_lines(out, page) != 0)
		return -1;
	return buf_append(out, "\r\n", 2);
}

/* Without memory for more, what counts is told: the status, and when to come back. */
static void
send_bare(struct front_request *front, const struct page *page)
{
	char again[48] = "", head[256];

	if (page->retry_after_s > 0)
		(void)snprintf(again, sizeof again, "Retry-After: %lld\r\n",
			(long long)page->retry_after_s);
	const int n = snprintf(head, sizeof head,
		"Status: %u %s\r\nContent-Length: 0\r\nCache-Control: no-store\r\n%s\r\n",
		page->status, cgi_reason(page->status), again);

	front_answer(front, slice_make(head, (size_t)n), (struct slice){ NULL, 0 });
}

/* Ends the front's request. */
static void
send_page(struct front_request *front, const struct page *page)
{
	struct slice body = { NULL, 0 };
	struct buf head, made;
	int result = 0;

	buf_init(&head, HEAD_MAX);
	buf_init(&made, BODY_MAX);
	if (is_own(page)) {
		body = page->route->reject_page;
	} else {
		result = put_body(&made, page);
		body = buf_slice(&made);
	}
	if (result == 0)
		result = put_head(&head, page, body.len);
	if (page->without_body || !has_body(page))
		body = (struct slice){ NULL, 0 };
	if (result == 0 && page->quirks != NULL && page->quirks->wants_one_record) {
		result = buf_append_slice(&head, body);
		body = (struct slice){ NULL, 0 };
	}
	if (result == 0)
		front_answer(front, buf_slice(&head), body);
	else
		send_bare(front, page);
	buf_release(&head);
	buf_release(&made);
}

/* ---- answers to requests ---- */

static struct slice
put_fields(struct gate_request *request, unsigned dialects, int64_t retry_after_s)
{
	struct buf *scratch = &request->gate->scratch;

	buf_consume(scratch, scratch->len);
	/* Without fields the answer is still right; without an answer it is not. */
	if (headers_put(scratch, dialects, &request->decision, retry_after_s) != 0)
		return (struct slice){ NULL, 0 };
	return buf_slice(scratch);
}

struct slice
answer_fields(struct gate_request *request)
{
	/* What is only counted is nothing that a client must heed. */
	if (!request->has_decision || !request->plant->snapshot->config->enforce)
		return (struct slice){ NULL, 0 };
	return put_fields(request, request->route->config->headers, 0);
}

/* The page's pointers are good until the end of the turn, as the request's plant is. */
static void
send_answer(struct gate_request *request, struct page *page)
{
	struct front_request *front = request->front;

	page->route = request->route->config;
	page->quirks = quirks_for(request);
	page->media = accept_media(request->view.accept);
	page->without_body = slice_is(request->view.method, SLICE("HEAD"));
	request_close(request);
	send_page(front, page);
}

void
answer_admitted(struct gate_request *request)
{
	struct page page = { .status = 200, .detail = "Admitted." };

	page.is_admission = front_role_of(request->front) == FRONT_AUTHORIZER;
	page.fields = answer_fields(request);
	send_answer(request, &page);
}

/* Up to so much later, in whole seconds, each as likely as the other. */
static int64_t
jittered(int64_t wait_s, unsigned percent)
{
	const uint64_t most = (uint64_t)wait_s * percent / 100;
	uint64_t number;

	if (most == 0)
		return wait_s;
	hash_random(&number, sizeof number);
	return wait_s + (int64_t)(number % (most + 1));
}

void
answer_rejected(struct gate_request *request)
{
	const struct config_route *route = request->route->config;
	const int64_t wait =
		jittered(decision_retry_after_s(&request->decision), route->retry_jitter_percent);
	char detail[128], words[WAIT_TEXT_SIZE];
	struct page page = { .status = 429,
		.problem = PROBLEM_TYPES "quota-exceeded",
		.detail = detail,
		.retry_after_s = wait,
		.decision = &request->decision };

	if (wait > 0) {
		(void)snprintf(detail, sizeof detail, "Too many requests. Try again in %s.",
			wait_text(wait, words));
	} else {
		page.detail = "This request costs more than its limit ever admits.";
		page.reason = "cost-exceeds-burst";
	}
	page.fields = put_fields(
		request, route->headers == 0 ? HEADERS_X_RATELIMIT : route->headers, wait);
	send_answer(request, &page);
}

void
answer_error(
	struct gate_request *request, unsigned status, const char *detail, int64_t retry_after_s)
{
	struct page page = { .status = status,
		.problem = status == 503 ? PROBLEM_TYPES "temporary-reduced-capacity" : NULL,
		.detail = detail,
		.retry_after_s = retry_after_s };

	send_answer(request, &page);
}

void
answer_bare(struct front_request *front, unsigned status, const char *detail, int64_t retry_after_s)
{
	send_page(front,
		&(const struct page){ .status = status,
			.detail = detail,
			.retry_after_s = retry_after_s,
			.without_body = front_is_head(front),
			.media = MEDIA_TEXT });
}
