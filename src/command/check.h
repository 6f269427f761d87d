/* What `weir check` prints of a sound configuration besides its limits and routes, and whom it
 * connects to besides Redis. Private to the room. */
#ifndef WEIR_COMMAND_CHECK_H
#define WEIR_COMMAND_CHECK_H

#include "weir/config.h"

/* check_words.c: where the counters live, whose word about an address is believed, and what else is
 * true of all requests; a line each, on standard output. */
void check_words(const struct config *config);

/* Whom nobody has connected to, if there is any. */
void check_words_unseen(const struct config *config);

/* check_backends.c: connects to each server of each backend and hangs up. What cannot be reached
 * now is a warning. */
void check_backends(const struct config *config, struct diagnostics *diagnostics);

#endif
