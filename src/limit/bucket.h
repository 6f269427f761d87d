/* What decisions do with buckets. Private to the room. */
#ifndef WEIR_LIMIT_BUCKET_H
#define WEIR_LIMIT_BUCKET_H

#include "weir/decision.h"

/* The policy's field; NULL if there is none. */
struct bucket_field *bucket_find(struct bucket *bucket, const struct policy *policy);

/* Leaves out what says nothing. */
void bucket_drop_worthless(struct bucket *bucket, int64_t now_us);

/* Stores a field of one of the limit's policies. Room there always is: the fields of policies no
 * longer known give way, the first one first. */
void bucket_put(struct bucket *bucket, const struct limit *limit, const struct bucket_field *field);

/* Makes it fit BUCKET_WORDS_MAX, after the last put. */
void bucket_trim(struct bucket *bucket, const struct limit *limit);

/* Takes out the fields that a limit's leases were all given back of. */
void bucket_drop_empty(struct bucket *bucket);

#endif
