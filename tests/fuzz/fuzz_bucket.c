/* Stored state of any words is decided on, changed and packed again: no loop without an end, no
 * number out of its range. */
#include "../lib/limits.h"
#include "weir/decision.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input begins with one of them; then come a cost and a lease. */
static const char *const forms[][4] = {
	{ "5/1m name p", "5/1m sliding-window name p", "5/1m sliding-log name p", NULL },
	{ "900000000000000/36525d sliding-window name p", "concurrent 3 lease 10s name p", NULL },
	{ "5/day calendar name p", "1000/1d sliding-log name p", "5/1s name q shadow", NULL },
	{ "concurrent 1000 lease 36525d name p", "9/month calendar name p", NULL },
};

enum { FORMS = sizeof forms / sizeof forms[0], HEAD = 3 };

static const struct limit *
limit_of(uint8_t number)
{
	static struct made_limit made[FORMS];

	if (made[number % FORMS].limit.policy_count == 0)
		made_limit_init(&made[number % FORMS], "l", forms[number % FORMS]);
	return &made[number % FORMS].limit;
}

static void
check_outcomes(const struct decision *decision)
{
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		assert(outcome->remaining <= outcome->policy->burst);
		assert(outcome->more_us >= 0 && outcome->reset_us >= 0);
		assert(outcome->violated == (outcome->retry_us != 0) && outcome->retry_us >= -1);
	}
}

static size_t
decide_once(const struct check *check, int64_t *words, size_t count, int64_t *out)
{
	const struct limit *limit = check->items[0].limit;
	int64_t *room = malloc(bucket_room(limit, count) * sizeof room[0]);
	struct decision decision;
	struct bucket bucket;

	if (room == NULL)
		abort();
	bucket_unpack(&bucket, words, count);
	bucket.room = room;
	decide(check, &bucket, IN_2026_US, &decision);
	check_outcomes(&decision);
	bucket_renew(&bucket, limit, check->lease, IN_2026_US);
	bucket_release(&bucket, limit, check->lease / 2);
	(void)bucket_worthless_at(&bucket, IN_2026_US);
	const size_t packed = bucket_pack(&bucket, out);

	assert(packed <= bucket_grown(limit, count));
	free(room);
	return packed;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int64_t words[BUCKET_PACKED_MAX], once[BUCKET_PACKED_MAX], twice[BUCKET_PACKED_MAX];
	size_t count = size < HEAD ? 0 : (size - HEAD) / sizeof words[0];

	if (size < HEAD)
		return 0;
	if (count > BUCKET_PACKED_MAX)
		count = BUCKET_PACKED_MAX;
	memcpy(words, data + HEAD, count * sizeof words[0]);
	const struct check check = {
		.items = { { .limit = limit_of(data[0]) } },
		.count = 1,
		.cost = 1 + data[1],
		.lease = 1 + data[2],
	};

	count = decide_once(&check, words, count, once);
	(void)decide_once(&check, once, count, twice);
	return 0;
}
