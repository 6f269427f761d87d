/*
 * What a decision means: counters, lines in the log, and whether the request is passed on or
 * answered. What is only counted (enforce = no of [weir] or of a limit, shadow of a policy) is told
 * as what would have been rejected.
 */
#include "gate_private.h"

#include "weir/log.h"

static struct slice
client_text(const struct gate_request *request, char out[IP_TEXT_SIZE])
{
	return request->view.has_ip ? slice_of(ip_text(request->view.ip, out))
				    : view_param(&request->view, "REMOTE_ADDR");
}

/* The item of the check; the outcome may be one of local_cap, whose limit is not the item's. */
static unsigned
item_of(const struct gate_request *request, const struct outcome *outcome)
{
	unsigned i = 0;

	while (i + 1 < request->check.count &&
		!slice_is(slice_of(request->check.items[i].limit->name),
			slice_of(outcome->limit->name)))
		i++;
	return i;
}

static void
report(const struct gate_request *request, const struct outcome *outcome, int64_t retry_after_s,
	bool is_enforced)
{
	const unsigned item = item_of(request, outcome);
	const char *override = request->items[item].override;
	char client[IP_TEXT_SIZE];

	report_rejected(request->gate->shared.report,
		&(const struct report_rejection){
			.client = client_text(request, client),
			.route = slice_of(request->route->config->name),
			.method = request->view.method,
			.path = request->view.path,
			.identity = request->check.items[item].key,
			.override = slice_of(override == NULL ? "" : override),
			.cost = request->check.cost,
			.outcome = outcome,
			.retry_after_s = retry_after_s,
			.is_enforced = is_enforced,
		});
}

void
settle_block(struct gate_request *request, const struct config_override *override, bool is_enforced)
{
	char client[IP_TEXT_SIZE];

	report_blocked(request->gate->shared.report,
		&(const struct report_block){
			.client = client_text(request, client),
			.route = slice_of(request->route->config->name),
			.limit = slice_of(override->limit->name),
			.override = slice_of(override->name),
			.method = request->view.method,
			.path = request->view.path,
			.is_enforced = is_enforced,
		});
}

void
settle_refused(struct gate_request *request, const char *reason, unsigned status,
	const struct limit *limit, bool is_enforced)
{
	char client[IP_TEXT_SIZE];

	report_refused(request->gate->shared.report,
		&(const struct report_refusal){
			.client = client_text(request, client),
			.route = slice_of(request->route->config->name),
			.limit = slice_of(limit == NULL ? "" : limit->name),
			.reason = reason,
			.status = status,
			.method = request->view.method,
			.path = request->view.path,
			.is_enforced = is_enforced,
		});
}

/* ---- by limit ---- */

/* What a limit's policies came to. */
struct part {
	const struct limit *limit;
	const struct outcome *violated; /* the first that rejects */
	const struct outcome *shadow; /* the first that would have */
};

/* The outcomes of one limit, from *at on; *at is moved behind them. */
static struct part
next_part(const struct decision *decision, unsigned *at)
{
	struct part part = { .limit = decision->outcomes[*at].limit };

	for (; *at < decision->count && decision->outcomes[*at].limit == part.limit; (*at)++) {
		const struct outcome *outcome = &decision->outcomes[*at];

		if (outcome->violated && !outcome->shadow && part.violated == NULL)
			part.violated = outcome;
		if (outcome->violated && outcome->shadow && part.shadow == NULL)
			part.shadow = outcome;
	}
	return part;
}

/* Rejected, would be, or spent. A limit that was spared because another one rejected is not
 * counted. */
static void
count_parts(const struct decision *decision, bool enforce)
{
	for (unsigned at = 0; at < decision->count;) {
		const struct part part = next_part(decision, &at);

		if (part.violated != NULL)
			counter_add(
				part.limit->results[enforce ? LIMIT_REJECTED : LIMIT_WOULD_REJECT],
				1);
		else if (part.shadow != NULL)
			counter_add(part.limit->results[LIMIT_WOULD_REJECT], 1);
		else if (decision->verdict == VERDICT_ADMITTED)
			counter_add(part.limit->results[LIMIT_ADMITTED], 1);
	}
}

/* Each that rejects, or would, and not only the one that is told. */
static void
count_policies(const struct decision *decision, bool enforce)
{
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (outcome->violated)
			counter_add(outcome->policy->rejections[enforce && !outcome->shadow], 1);
	}
}

static void
report_shadows(struct gate_request *request, const struct decision *decision)
{
	for (unsigned at = 0; at < decision->count;) {
		const struct part part = next_part(decision, &at);

		if (part.shadow == NULL)
			continue;
		report(request, part.shadow, outcome_retry_after_s(part.shadow), false);
		request_would(request, OUTCOME_WOULD_REJECT);
	}
}

void
settle_shadows(struct gate_request *request, const struct decision *decision)
{
	for (unsigned at = 0; at < decision->count;) {
		const struct part part = next_part(decision, &at);

		if (part.shadow != NULL)
			counter_add(part.limit->results[LIMIT_WOULD_REJECT], 1);
	}
	count_policies(decision, false);
	report_shadows(request, decision);
}

/* ---- the request ---- */

static void
settle_rejected(struct gate_request *request)
{
	const bool enforce = request->plant->snapshot->config->enforce;

	report(request, decision_violated(&request->decision),
		decision_retry_after_s(&request->decision), enforce);
	if (enforce) {
		request->outcome = OUTCOME_REJECTED;
		answer_rejected(request);
		return;
	}
	request_pass(request, OUTCOME_WOULD_REJECT);
}

void
settle(struct gate_request *request, const struct decision *decision)
{
	const bool enforce = request->plant->snapshot->config->enforce;

	request->decision = *decision;
	request->has_decision = true;
	if (decision->clamped)
		counter_add(COUNT_CLOCK_CLAMPED, 1);
	count_parts(decision, enforce);
	count_policies(decision, enforce);
	report_shadows(request, decision);
	if (decision->verdict == VERDICT_REJECTED)
		settle_rejected(request);
	else
		request_pass(request, OUTCOME_ADMITTED);
}
