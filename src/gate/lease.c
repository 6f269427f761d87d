/*
 * Leases: the places of concurrent policies that requests hold. Taken by the decision, renewed when
 * half of their time is over, given back when the request ends in whatever way. What cannot be
 * given back, since the store is away or the process was killed, ends with its time.
 *
 * Most requests end long before half of their lease is over, so the list is in no order and the
 * timer goes through it when the first of those that were once in it is due.
 */
#include "gate_private.h"

#define LEASE_NUMBERS (UINT64_C(1) << 53)

uint64_t
lease_draw(void)
{
	uint64_t number;

	do {
		hash_random(&number, sizeof number);
		number %= LEASE_NUMBERS;
	} while (number == 0);
	return number;
}

/* Half of the shortest. */
static int64_t
renewal_us(const struct gate_request *request)
{
	int64_t shortest = INT64_MAX;

	for (unsigned i = 0; i < request->check.count; i++) {
		const struct limit *limit = request->check.items[i].limit;

		for (unsigned j = 0; j < limit->policy_count; j++) {
			const struct policy *policy = &limit->policies[j];

			if (policy->algorithm == POLICY_CONCURRENT && policy->lease_us < shortest)
				shortest = policy->lease_us;
		}
	}
	return shortest / 2;
}

void
lease_hold(struct gate_request *request, struct store *store)
{
	struct gate *gate = request->gate;
	const int64_t now = loop_now_us(gate->loop);

	if (request->check.lease == 0)
		return;
	request->lease_store = store;
	request->lease_next = gate->leases;
	request->lease_at = &gate->leases;
	if (gate->leases != NULL)
		gate->leases->lease_at = &request->lease_next;
	gate->leases = request;
	counter_add(COUNT_LEASES, 1);
	request->renew_at_us = now + renewal_us(request);
	if (!timer_is_set(gate->renewal) || request->renew_at_us < gate->renew_at_us) {
		gate->renew_at_us = request->renew_at_us;
		timer_set(gate->renewal, gate->renew_at_us);
	}
}

static void
release(const struct gate_request *request, struct store *store)
{
	for (unsigned i = 0; i < request->check.count; i++) {
		if (request->check.items[i].limit->has_leases)
			store_release(store, &request->check.items[i], request->check.lease);
	}
}

/* Where nothing but places is counted, the bucket goes with the last one. */
static bool
has_only_leases(const struct limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].algorithm != POLICY_CONCURRENT)
			return false;
	}
	return true;
}

void
lease_end(struct gate_request *request)
{
	struct store *store = request->lease_store;

	if (store == NULL)
		return;
	request->lease_store = NULL;
	*request->lease_at = request->lease_next;
	if (request->lease_next != NULL)
		request->lease_next->lease_at = request->lease_at;
	counter_add(COUNT_LEASES, -1);
	release(request, store);
	for (unsigned i = 0; i < request->check.count; i++) {
		if (has_only_leases(request->check.items[i].limit))
			bounds_forget(request, i);
	}
}

void
lease_give_up(struct gate_request *request, struct store *store)
{
	if (request->check.lease == 0)
		return;
	release(request, store);
	/* Or it stands there. */
	for (unsigned i = 0; i < request->check.count; i++) {
		struct check_item item = request->check.items[i];

		if (!item.limit->has_leases || item.overflow.len == 0)
			continue;
		item.key = item.overflow;
		store_release(store, &item, request->check.lease);
	}
}

static void
renew(struct gate_request *request, int64_t now_us)
{
	const int64_t half = renewal_us(request);

	for (unsigned i = 0; i < request->check.count; i++) {
		if (!request->check.items[i].limit->has_leases)
			continue;
		store_renew(request->lease_store, &request->check.items[i], request->check.lease);
		bounds_keep(request, i, now_us + 2 * half);
	}
	request->renew_at_us = now_us + half;
}

void
lease_on_renewal(void *context)
{
	struct gate *gate = context;
	const int64_t now = loop_now_us(gate->loop);

	gate->renew_at_us = INT64_MAX;
	for (struct gate_request *request = gate->leases; request != NULL;
		request = request->lease_next) {
		if (request->renew_at_us <= now)
			renew(request, now);
		if (request->renew_at_us < gate->renew_at_us)
			gate->renew_at_us = request->renew_at_us;
	}
	if (gate->leases != NULL)
		timer_set(gate->renewal, gate->renew_at_us);
}
