/* What the dialects share. Private to the room. */
#ifndef WEIR_HEADERS_PRIVATE_H
#define WEIR_HEADERS_PRIVATE_H

#include "weir/headers.h"

/* Appends a dialect's lines; the arguments are those of headers_put. -1: the buffer is full. */
typedef int headers_put_fn(struct buf *out, const struct decision *decision, int64_t retry_after_s);

headers_put_fn headers_put_ratelimit, headers_put_ratelimit_07, headers_put_ratelimit_06;

int headers_put_uint(struct buf *out, uint64_t n) WEIR_MUST_CHECK;

/* The line of one number. */
int headers_put_line(struct buf *out, struct slice name, uint64_t value) WEIR_MUST_CHECK;

/* Until the policy is as if nothing had been asked. */
int64_t headers_reset_us(const struct outcome *outcome);

/* The policy that a rejection is about; NULL: the request was admitted. */
const struct outcome *headers_rejecting(const struct decision *decision);

#endif
