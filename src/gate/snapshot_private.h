/* What the files of a snapshot share. */
#ifndef WEIR_SNAPSHOT_PRIVATE_H
#define WEIR_SNAPSHOT_PRIVATE_H

#include "weir/snapshot.h"

/* For the connections to Redis; NULL: they are without, or it cannot be, which is said. */
struct tls *snapshot_tls(const struct config *config, struct diagnostics *diagnostics);

#endif
