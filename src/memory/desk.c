/*
 * Buckets between the stripe and the decision. Most have few words; for more than that memory is
 * taken, so that nobody's stack must hold the longest logs.
 */
#include "desk.h"

#include <stdlib.h>

int
desk_open(
	struct desk *desk, const struct check_item *items, const struct work *works, unsigned count)
{
	size_t need = 0, longest = 0;

	for (unsigned i = 0; i < count; i++) {
		const size_t len =
			works[i].head == NULL ? 0 : works[i].head->len / sizeof desk->words[0];
		const size_t grown = bucket_grown(items[i].limit, len);

		need += len + 1 + bucket_room(items[i].limit, len);
		longest = grown > longest ? grown : longest;
	}
	desk->words = desk->few;
	if (need + longest > DESK_WORDS_FEW)
		desk->words = malloc((need + longest) * sizeof desk->words[0]);
	if (desk->words == NULL)
		return -1;
	desk->packed = desk->words + need;
	desk->used = 0;
	return 0;
}

void
desk_close(struct desk *desk)
{
	if (desk->words != desk->few)
		free(desk->words);
}

/* A length that is no whole number of words has a rest; there is room for it. */
void
desk_load(struct desk *desk, const struct work *work, const struct limit *limit,
	struct bucket *bucket)
{
	int64_t *words = desk->words + desk->used;
	size_t count = 0;

	if (work->head != NULL)
		count = stripe_read(&work->view, work->head, (uint8_t *)words) / sizeof words[0];
	bucket_unpack(bucket, words, count);
	bucket->room = words + count + 1;
	desk->used += count + 1 + bucket_room(limit, count);
}

void
desk_save(const struct desk *desk, const struct work *work, const struct bucket *bucket,
	int64_t now_us)
{
	const size_t count = bucket_pack(bucket, desk->packed);
	unsigned evicted = 0;

	stripe_write(&work->view, &work->key, (const uint8_t *)desk->packed,
		count * sizeof desk->packed[0], bucket_worthless_at(bucket, now_us), now_us,
		&evicted);
	if (evicted > 0)
		counter_add(COUNT_MEMORY_EVICTED, evicted);
}
