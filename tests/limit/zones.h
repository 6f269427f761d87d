/* Living in a time zone. */
#ifndef WEIR_TESTS_LIMIT_ZONES_H
#define WEIR_TESTS_LIMIT_ZONES_H

#include "../unit.h"
#include "weir/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void
live_in(const char *zone)
{
	assert_int_equal(setenv("TZ", zone, 1), 0);
	tzset();
}

/* "2026-03-29 22:00", UTC. */
static inline int64_t
utc(const char *text)
{
	struct tm tm = { 0 };
	int year, month;

	assert_int_equal(
		sscanf(text, "%d-%d-%d %d:%d", &year, &month, &tm.tm_mday, &tm.tm_hour, &tm.tm_min),
		5);
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	return (int64_t)timegm(&tm) * US_PER_S;
}

/* Some that are known for what they do. */
static const char *const zones[] = { "UTC", "Europe/Berlin", "Europe/London", "America/New_York",
	"America/Havana", "America/Santiago", "America/Sao_Paulo", "America/St_Johns",
	"Asia/Beirut", "Asia/Kathmandu", "Africa/Cairo", "Africa/Casablanca", "Australia/Lord_Howe",
	"Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll", "no/such zone" };

#endif
