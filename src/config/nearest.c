/*
 * Nearest words, by the number of letters to insert, delete, replace or swap with a neighbour
 * (optimal string alignment), whatever the case. A word that contains the other (`timeout`,
 * `idle_timeout`) is nearer than the farthest that is still taken.
 */
#include "nearest.h"

#include <stdio.h>
#include <strings.h>

enum { WORD_MAX = 64, FARTHEST = 3, CONTAINED_MIN = 4 };

void
nearest_init(struct nearest *nearest, struct slice text)
{
	const unsigned farthest = text.len <= 3 ? 1 : text.len <= 6 ? 2 : FARTHEST;

	*nearest = (struct nearest){ .text = text, .farthest = farthest, .distance = farthest + 1 };
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static unsigned
least(unsigned a, unsigned b, unsigned c)
{
	const unsigned d = a < b ? a : b;

	return c < d ? c : d;
}

static unsigned
distance_of(struct slice a, struct slice b)
{
	unsigned rows[3][WORD_MAX + 1]; /* the row before the last, the last, this one; in turns */

	for (size_t j = 0; j <= b.len; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.len; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *last = rows[(i - 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b.len; j++) {
			const char c = lower(a.ptr[i - 1]), d = lower(b.ptr[j - 1]);

			row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + (c != d));
			if (i > 1 && j > 1 && c == lower(b.ptr[j - 2]) &&
				d == lower(a.ptr[i - 2]) && rows[(i - 2) % 3][j - 2] + 1 < row[j])
				row[j] = rows[(i - 2) % 3][j - 2] + 1;
		}
	}
	return rows[a.len % 3][b.len];
}

static bool
contains(struct slice whole, struct slice part)
{
	if (part.len < CONTAINED_MIN)
		return false;
	for (size_t i = 0; part.len <= whole.len - i; i++) {
		if (slice_is_nocase(slice_make(whole.ptr + i, part.len), part))
			return true;
		if (i == whole.len)
			break;
	}
	return false;
}

void
nearest_offer(struct nearest *nearest, const char *word)
{
	const struct slice other = slice_of(word);

	if (nearest->text.len > WORD_MAX || other.len > WORD_MAX)
		return;
	unsigned distance = distance_of(nearest->text, other);

	if (distance >= nearest->farthest &&
		(contains(other, nearest->text) || contains(nearest->text, other)))
		distance = nearest->farthest - 1;
	if (distance < nearest->distance) {
		nearest->distance = distance;
		nearest->best = word;
	}
}

const char *
nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE])
{
	out[0] = '\0';
	if (nearest->best != NULL)
		(void)snprintf(out, NEAREST_HINT_SIZE, "; did you mean \"%s\"?", nearest->best);
	return out;
}
