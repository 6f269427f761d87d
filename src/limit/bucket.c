/*
 * Buckets as stores keep them: fields with their form, packed into one run of words, and which
 * fields stay in them. The shape of what is stored is checked, and every word of it, so that a
 * damaged file costs counts and nothing else: no loop that does not end, no sum beyond an integer.
 */
#include "bucket.h"

#include "algorithms.h"

enum { FORM_WORDS = 3 }; /* of a packed field, in front of its state */

static struct bucket_field *
find_tag(struct bucket *bucket, uint32_t tag)
{
	for (unsigned i = 0; i < bucket->count; i++) {
		if (bucket->fields[i].tag == tag)
			return &bucket->fields[i];
	}
	return NULL;
}

struct bucket_field *
bucket_find(struct bucket *bucket, const struct policy *policy)
{
	struct bucket_field *field = find_tag(bucket, policy->tag);

	return field != NULL && field->algorithm == policy->algorithm ? field : NULL;
}

/* ---- packed ---- */

/* The shape, which says where the next one begins. */
static bool
is_field(const struct bucket_field *field)
{
	if (field->algorithm >= ALGORITHMS || field->interval_us < 1 ||
		field->interval_us > DURATION_MAX_US || field->capacity_us < 1 ||
		field->capacity_us > DURATION_MAX_US)
		return false;
	const struct algorithm *algorithm = algorithms[field->algorithm];

	return field->count > 0 && field->count % algorithm->record_words == 0 &&
		field->count <= algorithm->record_words * algorithm->records_max;
}

static bool
is_sound(const struct bucket_field *field)
{
	const struct algorithm *algorithm = algorithms[field->algorithm];

	for (unsigned i = 0; i < field->count; i++) {
		/* What is negative is then beyond it too. */
		if ((uint64_t)field->words[i] >= WORD_LIMIT)
			return false;
	}
	return algorithm->is_sound == NULL || algorithm->is_sound(field);
}

void
bucket_unpack(struct bucket *bucket, int64_t *words, size_t count)
{
	bucket->count = 0;
	bucket->changed = false;
	while (count > FORM_WORDS && bucket->count < BUCKET_FIELDS_MAX) {
		const uint64_t first = (uint64_t)words[0];
		const struct bucket_field field = {
			.tag = (uint32_t)first,
			.algorithm = (uint16_t)(first >> 48),
			.count = (uint16_t)(first >> 32),
			.interval_us = words[1],
			.capacity_us = words[2],
			.words = words + FORM_WORDS,
		};

		if (!is_field(&field) || field.count > count - FORM_WORDS)
			return;
		/* Of one tag there is one: what makes room for another relies on it. */
		if (is_sound(&field) && find_tag(bucket, field.tag) == NULL)
			bucket->fields[bucket->count++] = field;
		words += FORM_WORDS + field.count;
		count -= FORM_WORDS + field.count;
	}
}

size_t
bucket_pack(const struct bucket *bucket, int64_t *out)
{
	const int64_t *begin = out;

	for (unsigned i = 0; i < bucket->count; i++) {
		const struct bucket_field *field = &bucket->fields[i];

		out[0] = (int64_t)((uint64_t)field->algorithm << 48 | (uint64_t)field->count << 32 |
			field->tag);
		out[1] = field->interval_us;
		out[2] = field->capacity_us;
		memcpy(out + FORM_WORDS, field->words, field->count * sizeof field->words[0]);
		out += FORM_WORDS + field->count;
	}
	return (size_t)(out - begin);
}

/* A state that is read in another form may be longer than one of our own. */
size_t
bucket_room(const struct limit *limit, size_t packed)
{
	return limit->words + packed;
}

size_t
bucket_grown(const struct limit *limit, size_t packed)
{
	const size_t grown = packed + limit->words + limit->policy_count * FORM_WORDS;

	return grown < BUCKET_PACKED_MAX ? grown : BUCKET_PACKED_MAX;
}

int64_t
bucket_worthless_at(const struct bucket *bucket, int64_t now_us)
{
	int64_t latest_us = 0;

	for (unsigned i = 0; i < bucket->count; i++) {
		const struct bucket_field *field = &bucket->fields[i];
		const int64_t at_us = algorithms[field->algorithm]->worthless_at(field, now_us);

		if (at_us > latest_us)
			latest_us = at_us;
	}
	return latest_us;
}

/* ---- which fields stay ---- */

static bool
has_policy(const struct limit *limit, uint32_t tag)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].tag == tag)
			return true;
	}
	return false;
}

static void
remove_field(struct bucket *bucket, unsigned i)
{
	bucket->count--;
	memmove(&bucket->fields[i], &bucket->fields[i + 1],
		(bucket->count - i) * sizeof bucket->fields[0]);
}

void
bucket_drop_worthless(struct bucket *bucket, int64_t now_us)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < bucket->count; i++) {
		const struct bucket_field *field = &bucket->fields[i];

		if (algorithms[field->algorithm]->worthless_at(field, now_us) > now_us)
			bucket->fields[kept++] = *field;
	}
	bucket->count = kept;
}

void
bucket_drop_empty(struct bucket *bucket)
{
	for (unsigned i = bucket->count; i-- > 0;) {
		if (bucket->fields[i].count == 0)
			remove_field(bucket, i);
	}
}

void
bucket_put(struct bucket *bucket, const struct limit *limit, const struct bucket_field *field)
{
	struct bucket_field *place = find_tag(bucket, field->tag);
	unsigned i = 0;

	bucket->changed = true;
	if (place != NULL) {
		*place = *field;
		return;
	}
	if (bucket->count == BUCKET_FIELDS_MAX) {
		while (has_policy(limit, bucket->fields[i].tag))
			i++;
		remove_field(bucket, i);
	}
	bucket->fields[bucket->count++] = *field;
}

static unsigned
words_of(const struct bucket *bucket)
{
	unsigned words = 0;

	for (unsigned i = 0; i < bucket->count; i++)
		words += bucket->fields[i].count;
	return words;
}

/* Those of others give way first, then what a policy has kept since it was larger and has not been
 * spent on since. What is left fits. */
void
bucket_trim(struct bucket *bucket, const struct limit *limit)
{
	for (unsigned i = 0; i < bucket->count && words_of(bucket) > BUCKET_WORDS_MAX;) {
		if (has_policy(limit, bucket->fields[i].tag))
			i++;
		else
			remove_field(bucket, i);
	}
	for (unsigned i = 0; i < limit->policy_count && words_of(bucket) > BUCKET_WORDS_MAX; i++) {
		const struct policy *policy = &limit->policies[i];
		const struct bucket_field *field = bucket_find(bucket, policy);

		if (field != NULL && field->count > algorithm_words(policy))
			remove_field(bucket, (unsigned)(field - bucket->fields));
	}
}
