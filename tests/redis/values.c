/*
 * Values are held against expressions, one for each form of state, and then counted: a signature
 * has as many policies as there are states.
 */
#include "values.h"

#include "../lib/redis_server.h"
#include "../unit.h"

#include <regex.h>
#include <string.h>

#define NUMBER "(0|[1-9][0-9]{0,15})"
#define FORM "[0-9a-f]{8}:[1-9][0-9]{0,15}:[1-9][0-9]{0,15}"
#define PAIRS(a, b, between) a between b "(;" a between b ")*"

/* token-bucket, sliding-window, calendar, sliding-log, concurrent */
#define STATE                                                                                      \
	"([0-9]{16}|" NUMBER "[.]" NUMBER "[.]" NUMBER "|" NUMBER "[.]" NUMBER                     \
	"|" PAIRS(NUMBER, "[1-9][0-9]{0,3}", ":") "|" PAIRS("[0-9]{16}", "[0-9]{16}", "-") ")"

static bool
fits(const char *text, const char *expression)
{
	regex_t regex;

	assert_int_equal(regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB), 0);
	const bool yes = regexec(&regex, text, 0, NULL, 0) == 0;

	regfree(&regex);
	return yes;
}

static size_t
count_of(const char *text, char c)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == c;
	return n;
}

bool
value_is_well_formed(const char *text)
{
	if (fits(text, "^-?[1-9][0-9]{0,5}[0-9]{13}$"))
		return true;
	return fits(text, "^" FORM "( " FORM ")*=" STATE "(," STATE ")*$") &&
		count_of(text, ' ') == count_of(text, ',');
}

bool
assert_value_is_sound(redisContext *redis, const char *prefix, const char *key)
{
	redisReply *reply = redis_command(redis, "GET %s%s", prefix, key);
	const bool is_there = reply->type != REDIS_REPLY_NIL;

	if (is_there) {
		assert_int_equal(reply->type, REDIS_REPLY_STRING);
		assert_row(value_is_well_formed(reply->str), "%s: %s", key, reply->str);
		/* It may have ended since. */
		assert_row(redis_number(redis, "PTTL %s%s", prefix, key) != -1, "%s: %s", key,
			reply->str);
	}
	freeReplyObject(reply);
	return is_there;
}
