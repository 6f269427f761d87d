/*
 * The rate-limit fields of a response, one serialiser for each dialect.
 *
 *   x-ratelimit        X-RateLimit-Limit, -Remaining, and -Reset in seconds from now
 *   x-ratelimit-epoch  the same, Reset in seconds since 1970
 *
 * On an admitted answer they speak of the policy with the longest window, so that they stay the
 * same from answer to answer; on a rejection, of the violated one. Limits that do not reject are
 * not told.
 */
#ifndef WEIR_HEADERS_H
#define WEIR_HEADERS_H

#include "weir/buf.h"
#include "weir/decision.h"

/* Appends whole lines. `dialects` are header_dialect bits. Nothing if the decision has nothing to
 * tell. -1: the buffer is full. */
int
headers_put(struct buf *out, unsigned dialects, const struct decision *decision) WEIR_MUST_CHECK;

/* The names that headers_put may write, for taking them out of an application's answer; NULL behind
 * the last. */
extern const char *const header_names[];

#endif
