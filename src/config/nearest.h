/* "did you mean": the nearest of some words. Offer them one after the other, then look at `best`.
 */
#ifndef WEIR_CONFIG_NEAREST_H
#define WEIR_CONFIG_NEAREST_H

#include "weir/slice.h"

struct nearest {
	struct slice text;
	const char *best; /* NULL: nothing is near enough to be meant */
	unsigned farthest; /* that is still taken */
	unsigned distance; /* of the best; beyond farthest as long as there is none */
};

void nearest_init(struct nearest *nearest, struct slice text);
void nearest_offer(struct nearest *nearest, const char *word);

enum { NEAREST_HINT_SIZE = 112 };

/* `; did you mean "page"?`, or "" if nothing is near. Returns `out`. */
const char *nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE]);

#endif
