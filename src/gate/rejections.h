/*
 * The rejection cache: what Redis said of buckets that are exhausted, so that a flood on one of
 * them costs Redis a call for each refill, and one a second, and not one for each request. Of one
 * gate, for checks that go to Redis.
 *
 * What is refused is exact. While nothing is given back, what a policy has used only shrinks with
 * time, and every request that anybody makes adds to it; so if a cost was rejected and the policy
 * said that it would not pass for so long, nothing that costs as much passes before. The same is
 * known of a bucket that was just emptied. That time is counted from when the check was sent, which
 * is before Redis decided, and is a second at the most, so that an operator's reset shows. Where
 * something is given back (leases), or nobody knows on which bucket the next request falls (shards,
 * overflow), nothing is kept, nor for what only counts (shadow).
 *
 * The answer is the one that Redis would give, with the times moved on. They are counted from when
 * Redis's answer had come, so that nobody is told to come back too early. Of a token bucket and a
 * calendar quota all is known of any later time and any cost. Of the others Redis is asked about
 * each cost, but of no more than REJECTION_COSTS in a second; who comes with yet another one is
 * told to wait as long as the next larger cost has to, or until the bucket is full. That is never
 * too early, and nobody gains by varying his cost.
 *
 * The table has a fixed size, 3.5 MB, of which only what is used is taken from the system; what
 * finds no place displaces what ends first. Private to the room.
 */
#ifndef WEIR_GATE_REJECTIONS_H
#define WEIR_GATE_REJECTIONS_H

#include "weir/decision.h"
#include "weir/err.h"
#include "weir/hash.h"

struct rejections;

#define REJECTION_MAX_US US_PER_S
enum { REJECTION_COSTS = 3 };

/* NULL: no memory. */
struct rejections *rejections_new(void) WEIR_MUST_CHECK;
void rejections_free(struct rejections *rejections);

/* A bucket under the limit that is in force. `generation` is of the configuration, and no other has
 * it, so a limit's address that is used again means nothing. */
struct rejection_key {
	struct hash_wide bucket;
	uint64_t generation;
	const struct check_item *item;
};

/* Whether what is decided on this item may be kept. */
bool rejections_may_keep(const struct check_item *item);

/*
 * Whether the bucket is known to reject this cost, and what to say of it. Then the outcomes of its
 * policies are added to the decision, which is made one that rejects. The item must be one that may
 * be kept.
 */
bool rejections_find(const struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us, struct decision *decision) WEIR_MUST_CHECK;

/*
 * Keeps what `outcomes` (the limit's, in the order of its policies) say of the item, if they leave
 * no room. sent_us: not later than the check was sent; answered_us: not earlier than its answer
 * came; store_us: the decision's now.
 */
void rejections_keep(struct rejections *rejections, const struct rejection_key *key,
	const struct outcome *outcomes, uint64_t cost, int64_t sent_us, int64_t answered_us,
	int64_t store_us);

/* ---- whose turn it is (rejections_turn.c) ---- */

/*
 * Of a bucket that was exhausted until a moment ago and has, as far as is known, too little left
 * for this cost: the last of those who ask about it, so that others may wait for the answer and
 * need not ask too. NULL: nobody does, or it is no such bucket. Who is set must be unset before he
 * goes; his cost is taken from what is left.
 */
void *rejections_asker(const struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us);
void rejections_set_asker(struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us, void *asker);
void rejections_unset_asker(
	struct rejections *rejections, const struct rejection_key *key, const void *asker);

/* When to ask about it: not before Redis surely has what is waited for, unless others are faster.
 * That is less than one way to Redis and back after what is known has ended. now_us: at once. */
int64_t rejections_ask_at(const struct rejections *rejections, const struct rejection_key *key,
	uint64_t cost, int64_t now_us);

#endif
