/* The two clocks. Both in microseconds; neither is ever asked twice for one decision. */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC: for deadlines and timers of this host. Never steps. */
int64_t clock_monotonic_us(void);

/* CLOCK_REALTIME since 1970: for the memory store, whose state outlives a process, and for the log.
 */
int64_t clock_wall_us(void);

#endif
