/* Comparing the decisions of two stores. */
#include "agree.h"

#include "../unit.h"

static bool
outcomes_agree(const struct outcome *a, const struct outcome *b)
{
	return a->limit == b->limit && a->policy == b->policy && a->violated == b->violated &&
		a->shadow == b->shadow && a->remaining == b->remaining &&
		a->retry_us == b->retry_us && a->more_us == b->more_us &&
		a->reset_us == b->reset_us;
}

bool
decisions_agree(const struct decision *a, const struct decision *b)
{
	bool agree = a->verdict == b->verdict && a->now_us == b->now_us &&
		a->clamped == b->clamped && a->overflowed == b->overflowed && a->count == b->count;

	for (unsigned i = 0; agree && i < a->count; i++)
		agree = outcomes_agree(&a->outcomes[i], &b->outcomes[i]);
	return agree;
}

void
print_decision(const char *who, const struct decision *decision)
{
	print_error("%s: verdict %d (why %d), clamped %d, now %lld\n", who, decision->verdict,
		decision->why, decision->clamped, (long long)decision->now_us);
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *o = &decision->outcomes[i];

		print_error(
			"  %s %lld/%lld%s: remaining %llu, retry %lld, more %lld, reset %lld%s\n",
			o->policy->name, (long long)o->policy->interval_us,
			(long long)o->policy->capacity_us, o->shadow ? " shadow" : "",
			(unsigned long long)o->remaining, (long long)o->retry_us,
			(long long)o->more_us, (long long)o->reset_us,
			o->violated ? " violated" : "");
	}
}
