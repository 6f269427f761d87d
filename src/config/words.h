/* Parts of the sentences that `weir check` prints. */
#ifndef WEIR_CONFIG_WORDS_H
#define WEIR_CONFIG_WORDS_H

#include "weir/config.h"

/* "60 at once, then 10 a second". */
void words_policy(const struct config *config, const struct config_policy *policy, FILE *out);

#endif
