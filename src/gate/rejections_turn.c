/*
 * Whose turn it is to ask Redis about a bucket that was exhausted until a moment ago.
 *
 * An entry stays where it is when it has ended. For a second it tells of whom Redis need not hear:
 * of those who cost more than is left, as long as somebody asks whose answer will tell.
 */
#include "rejections_entry.h"

/* The entry, if it has ended no longer ago than a flood takes to make it known again, and leaves
 * too little for this cost. */
static struct entry *
short_of(const struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us)
{
	struct entry *entry = rejections_entry(rejections, key);

	if (entry == NULL || now_us - entry->until_us >= REJECTION_MAX_US)
		return NULL;
	return cost > entry->left ? entry : NULL;
}

void *
rejections_asker(const struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us)
{
	const struct entry *entry = short_of(rejections, key, cost, now_us);

	return entry == NULL ? NULL : entry->asker;
}

void
rejections_set_asker(struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us, void *asker)
{
	struct entry *entry = rejections_entry(rejections, key);

	if (entry == NULL || now_us - entry->until_us >= REJECTION_MAX_US)
		return;
	entry->left -= cost < entry->left ? cost : entry->left;
	entry->asker = asker;
}

void
rejections_unset_asker(
	struct rejections *rejections, const struct rejection_key *key, const void *asker)
{
	struct entry *entry = rejections_entry(rejections, key);

	if (entry != NULL && entry->asker == asker)
		entry->asker = NULL;
}

/* Where it is still certain that the cost is rejected, only the second is over that this counts. */
int64_t
rejections_ask_at(const struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us)
{
	const struct entry *entry = short_of(rejections, key, cost, now_us);
	int64_t longest = 0;

	if (entry == NULL)
		return now_us;
	for (unsigned i = 0; i < entry->limit->policy_count; i++) {
		if (cost > entry->limit->policies[i].burst)
			return now_us;
		const struct wait wait = part_wait(entry, i, cost, now_us);

		if (wait.least_us > 0 || !wait.is_exact)
			return now_us;
		longest = wait.most_us > longest ? wait.most_us : longest;
	}
	return now_us + longest;
}
