/* What weir stores in Redis, checked from outside. */
#ifndef WEIR_TESTS_REDIS_VALUES_H
#define WEIR_TESTS_REDIS_VALUES_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

/* Whether the text is a bucket's value, as lua/decide.lua and the files of lua/algorithms say. */
bool value_is_well_formed(const char *text);

/* That the key, if it is there, has a well-formed value and a life that ends. Returns whether it
 * is. */
bool assert_value_is_sound(redisContext *redis, const char *prefix, const char *key);

#endif
