/* What a reload changes, for the log. Private to the room. */
#ifndef WEIR_COMMAND_CHANGES_H
#define WEIR_COMMAND_CHANGES_H

#include "sockets.h"

enum { CHANGES_TEXT_SIZE = 1024 };

/* In few words: "[weir] enforce: no -> yes; +[route x]". What does not fit is counted. Returns
 * `out`.
 */
const char *
changes_text(const struct config *before, const struct config *after, char out[CHANGES_TEXT_SIZE]);

/* Says which keys do not take effect with a reload, and what it takes. */
void
changes_warn(const struct config *first, const struct config *now, const struct sockets *sockets);

#endif
