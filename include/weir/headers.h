/*
 * The rate-limit fields of a response, one serialiser for each dialect.
 *
 *   x-ratelimit        X-RateLimit-Limit, -Remaining, and -Reset in seconds from now
 *   x-ratelimit-epoch  the same, Reset in seconds since 1970
 *   ratelimit          RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11
 *                      (23 May 2026): structured fields (RFC 9651). Revision 12 is of November
 *                      2026; its text could not be had
 *   ratelimit-07       RateLimit-Policy and RateLimit of its revision 07
 *   ratelimit-06       RateLimit-Policy, RateLimit-Limit, -Remaining and -Reset of revision 06
 *
 * x-ratelimit speaks of one policy: on an admitted answer of that with the longest window, so that
 * it stays the same from answer to answer; on a rejection of the violated one. 06 and 07 have one
 * too, but theirs must be the one closest to its limit. ratelimit lists all policies, but on a
 * rejection only the state of the violated ones, since no window that it tells may end behind
 * Retry-After (revision 11 section 6). What does not reject is never told.
 *
 * Numbers: the quota is the bucket's burst, so what remains is never more than it, and its window
 * the time in which that much comes, in whole seconds rounded up: `10/1s burst 60` is 60 in 6
 * seconds, the same rate. Where burst and count are one, that is the window as configured. A
 * calendar month has 31 days here; when it ends is told by Reset and `t`. `concurrent` has a quota
 * and no window: x-ratelimit shows it only if there is no other policy or it is the violated one,
 * Reset is then 1, as Retry-After is; the policies of 06 and 07 leave it out.
 */
#ifndef WEIR_HEADERS_H
#define WEIR_HEADERS_H

#include "weir/buf.h"
#include "weir/decision.h"

/*
 * Appends whole lines. `dialects` are header_dialect bits. `retry_after_s` is what the answer says
 * in Retry-After, 0 if it does not: 06 and 07 say the same. Nothing if the decision has nothing to
 * tell. -1: the buffer is full; it is then as before.
 */
int headers_put(struct buf *out, unsigned dialects, const struct decision *decision,
	int64_t retry_after_s) WEIR_MUST_CHECK;

/*
 * A policy's name as clients see it, in quotes: LIMIT, or LIMIT-POLICY where several policies of
 * the limit reject. Sound as a string of RFC 9651 and of JSON, whatever the name. -1: the buffer is
 * full, perhaps with a part of it.
 */
int headers_put_name(struct buf *out, const struct outcome *outcome) WEIR_MUST_CHECK;

/* The names that headers_put may write in any dialect, for taking them out of an application's
 * answer; NULL behind the last. */
extern const char *const header_names[];

#endif
