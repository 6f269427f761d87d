/*
 * Numbers with units as people write them: 150ms, 64k, 10/1m. Every parser takes the whole slice or
 * refuses it, leaves *out alone when it refuses, and never wraps. Durations are whole microseconds.
 */
#ifndef WEIR_UNITS_H
#define WEIR_UNITS_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)
#define US_PER_DAY (86400 * US_PER_S)

/* Rounded up, of what is not negative. */
static inline int64_t
seconds_up(int64_t us)
{
	return (us + US_PER_S - 1) / US_PER_S;
}

/* A hundred years: the longest duration that is accepted anywhere. */
#define DURATION_MAX_US (36525 * US_PER_DAY)

/* Decimal digits only: no sign, no blank, no 0x. 0 to `max`. */
int parse_uint(struct slice text, uint64_t max, uint64_t *out) WEIR_MUST_CHECK;

/* A number and one of us ms s m h d, e.g. "150ms"; 1us to 100 years. err gets the reason. */
int parse_duration(struct slice text, int64_t *out_us, struct err *err) WEIR_MUST_CHECK;

/* A number, then nothing or one of k m g (powers of 1024). err gets the reason. */
int parse_size(struct slice text, uint64_t *out_bytes, struct err *err) WEIR_MUST_CHECK;

struct rate {
	uint64_t count; /* 1 to 10^15 - 1 */
	int64_t window_us; /* 1ms to 100 years */
	char window[24]; /* as a policy's default name: "1s", "10m"; a bare unit gets its 1 */
};

/* COUNT/WINDOW, e.g. "10/s" "100/1m" "5/10s"; the window in whole ms s m h d. err gets the reason.
 */
int parse_rate(struct slice text, struct rate *out, struct err *err) WEIR_MUST_CHECK;

enum { UINT_TEXT_SIZE = 21 };

/* Decimal, with a terminator. Returns the length. For hot paths; elsewhere printf will do. */
size_t uint_text(uint64_t n, char out[UINT_TEXT_SIZE]);

enum { DURATION_TEXT_SIZE = 48 };

/* In words for people, two units at the most: "12 s", "28 min 48 s", "1.5 ms". Returns `out`. */
const char *duration_text(int64_t us, char out[DURATION_TEXT_SIZE]);

#endif
