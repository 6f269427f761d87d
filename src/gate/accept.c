/*
 * Accept. Among what a client names, the highest quality counts, then the more exact range, then
 * the earlier one. Ranges that take anything mean text: git, curl and most libraries send them, and
 * show the answer as it is.
 */
#include "gate_private.h"

#include <stdlib.h>

static const struct {
	struct slice range;
	enum media media;
	unsigned exactness;
} ranges[] = {
	{ { "text/plain", 10 }, MEDIA_TEXT, 3 },
	{ { "text/html", 9 }, MEDIA_HTML, 3 },
	{ { "application/xhtml+xml", 21 }, MEDIA_HTML, 3 },
	{ { "application/problem+json", 24 }, MEDIA_PROBLEM, 3 },
	{ { "application/json", 16 }, MEDIA_PROBLEM, 3 },
	{ { "text/*", 6 }, MEDIA_TEXT, 2 },
	{ { "application/*", 13 }, MEDIA_PROBLEM, 2 },
	{ { "*/*", 3 }, MEDIA_TEXT, 1 },
};

/* qvalue in thousandths (section 12.4.2); 1000 if it is not given or is none. */
static unsigned
quality(struct slice parameters)
{
	struct slice one;

	while (slice_split(&parameters, ';', &one)) {
		if (one.len < 3 || (one.ptr[0] | 0x20) != 'q' || one.ptr[1] != '=')
			continue;
		unsigned thousandths = one.ptr[2] == '0' ? 0 : 1000;

		for (size_t i = 4, unit = 100; thousandths < 1000 && i < one.len && unit > 0;
			i++, unit /= 10) {
			if (one.ptr[i] >= '0' && one.ptr[i] <= '9')
				thousandths += (unsigned)((one.ptr[i] - '0') * (int)unit);
		}
		return thousandths;
	}
	return 1000;
}

enum media
accept_media(struct slice accept)
{
	enum media best = MEDIA_TEXT;
	unsigned best_rank = 0;
	struct slice element;

	while (slice_split(&accept, ',', &element)) {
		const struct slice range =
			slice_trim(slice_first(element, slice_find(element, ';')));
		const unsigned q = quality(slice_skip(element, slice_find(element, ';')));

		for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
			const unsigned rank = q * 10 + ranges[i].exactness;

			if (q > 0 && rank > best_rank && slice_is_nocase(range, ranges[i].range)) {
				best_rank = rank;
				best = ranges[i].media;
			}
		}
	}
	return best;
}
