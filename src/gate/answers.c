/*
 * The answers that we make ourselves: Status first, nothing that a cache may keep, and a body in
 * the form that the client asked for. Who is told to come back is told when, in whole seconds,
 * never early.
 */
#include "gate_private.h"

#include "weir/headers.h"
#include "weir/units.h"

#include <stdio.h>

enum { SCRATCH_REST = 16384, BODY_SIZE = 2048 };

struct page {
	unsigned status;
	const char *problem; /* a type of RFC 9457, or NULL */
	const char *detail; /* a sentence */
	int64_t retry_after_s;
	const struct decision *decision; /* NULL: no policy is named */
};

/* As clients see a policy: LIMIT, or LIMIT-POLICY where a limit has several. */
static int
put_policy_name(struct buf *out, const struct outcome *outcome)
{
	if (outcome->limit->policy_count == 1)
		return buf_printf(out, "\"%s\"", outcome->limit->name);
	return buf_printf(out, "\"%s-%s\"", outcome->limit->name, outcome->policy->name);
}

static int
put_violated(struct buf *out, const struct decision *decision)
{
	const char *separator = ",\"violated-policies\":[";
	int result = 0;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->violated || outcome->shadow)
			continue;
		result |= buf_printf(out, "%s", separator) | put_policy_name(out, outcome);
		separator = ",";
	}
	return separator[1] == '\0' ? result | buf_printf(out, "]") : result;
}

/* RFC 9457, with the members of the RateLimit draft. All that stands in it is ours, and is
 * printable ASCII. */
static int
put_problem(struct buf *out, const struct page *page)
{
	int result =
		buf_printf(out, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\"",
			page->problem == NULL ? "about:blank" : page->problem,
			cgi_reason(page->status), page->status, page->detail);

	if (page->decision != NULL)
		result |= put_violated(out, page->decision);
	return result | buf_printf(out, "}\n");
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
put_body(struct buf *out, const struct page *page, enum media media)
{
	switch (media) {
	case MEDIA_TEXT:
		return buf_printf(out, "%s\n", page->detail);
	case MEDIA_HTML:
		return put_html(out, page);
	case MEDIA_PROBLEM:
		return put_problem(out, page);
	}
	return -1;
}

static int
put_head(struct buf *out, const struct page *page, enum media media, size_t body_len)
{
	static const char *const types[] = { "text/plain; charset=utf-8",
		"text/html; charset=utf-8", "application/problem+json" };
	int result = buf_printf(out,
		"Status: %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
		"no-store\r\n",
		page->status, cgi_reason(page->status), types[media], body_len);

	if (page->retry_after_s > 0)
		result |= buf_printf(out, "Retry-After: %lld\r\n", (long long)page->retry_after_s);
	return result;
}

/* Ends the front's request. `extra`: whole lines; `with_body` is false for HEAD. */
static void
send_page(struct front_request *front, const struct page *page, enum media media, bool with_body,
	struct slice extra)
{
	struct buf head, body;
	int result;

	buf_init(&head, SCRATCH_REST);
	buf_init(&body, BODY_SIZE);
	result = put_body(&body, page, media);
	result |= put_head(&head, page, media, body.len);
	result |= buf_append_slice(&head, extra) | buf_append(&head, "\r\n", 2);
	if (result == 0)
		front_answer(front, buf_slice(&head),
			with_body ? buf_slice(&body) : (struct slice){ NULL, 0 });
	else
		front_cut(front); /* memory is out: nothing can be said */
	buf_release(&head);
	buf_release(&body);
}

struct slice
answer_fields(struct gate_request *request)
{
	struct buf *scratch = &request->gate->scratch;
	unsigned dialects = request->route->config->headers;

	buf_consume(scratch, scratch->len);
	if (request->has_decision && request->decision.verdict == VERDICT_REJECTED && dialects == 0)
		dialects = HEADERS_X_RATELIMIT;
	if (request->has_decision && headers_put(scratch, dialects, &request->decision) != 0)
		buf_consume(scratch, scratch->len);
	return buf_slice(scratch);
}

static void
send_answer(struct gate_request *request, const struct page *page)
{
	struct buf *scratch = &request->gate->scratch;
	struct front_request *front = request->front;
	const bool with_body = !slice_is(request->view.method, SLICE("HEAD"));
	const enum media media = accept_media(request->view.accept);
	const struct config_route *route = request->route->config;

	(void)answer_fields(request);
	for (unsigned i = 0; i < route->reject_header_count && page->status >= 400; i++) {
		if (buf_printf(scratch, "%s\r\n", route->reject_headers[i]) != 0)
			break;
	}
	request_close(request);
	send_page(front, page, media, with_body, buf_slice(scratch));
}

void
answer_admitted(struct gate_request *request)
{
	send_answer(request, &(const struct page){ .status = 200, .detail = "Admitted." });
}

void
answer_rejected(struct gate_request *request)
{
	const int64_t wait = decision_retry_after_s(&request->decision);
	char detail[128];

	if (wait > 0)
		(void)snprintf(detail, sizeof detail,
			"Too many requests. Try again in %lld second%s.", (long long)wait,
			wait == 1 ? "" : "s");
	else
		(void)snprintf(detail, sizeof detail,
			"This request costs more than its limit ever admits.");
	send_answer(request,
		&(const struct page){ .status = 429,
			.problem = "https://iana.org/assignments/http-problem-types#quota-exceeded",
			.detail = detail,
			.retry_after_s = wait,
			.decision = &request->decision });
}

void
answer_error(
	struct gate_request *request, unsigned status, const char *detail, int64_t retry_after_s)
{
	request->has_decision = false;
	send_answer(request,
		&(const struct page){ .status = status,
			.problem = status == 503 ? "https://iana.org/assignments/"
						   "http-problem-types#temporary-reduced-capacity"
						 : NULL,
			.detail = detail,
			.retry_after_s = retry_after_s });
}

void
answer_bare(struct front_request *front, unsigned status, const char *detail, int64_t retry_after_s)
{
	send_page(front,
		&(const struct page){
			.status = status, .detail = detail, .retry_after_s = retry_after_s },
		MEDIA_TEXT, true, (struct slice){ NULL, 0 });
}
