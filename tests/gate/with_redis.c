/* What tests of the gate with a real Redis need. */
#include "with_redis.h"

#include <stdio.h>
#include <stdlib.h>

struct redis_server server;
redisContext *look;

int
with_redis_set_up(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	look = redis_server_connect(&server);
	return 0;
}

int
with_redis_tear_down(void **state)
{
	(void)serve_tear_down(state);
	redisFree(look);
	redis_server_close(&server);
	return 0;
}

const char *
with_redis(const char *before, const char *deadline, const char *ini)
{
	static char text[2048];

	assert_true(snprintf(text, sizeof text, "%s[redis]\nserver = unix:%s\ndeadline = %s\n%s",
			    before, server.address.host, deadline, ini) < (int)sizeof text);
	return text;
}

unsigned long
redis_calls(void)
{
	redisReply *reply = redis_command(look, "INFO commandstats");
	unsigned long sum = 0;

	for (const char *at = reply->str; (at = strstr(at, "cmdstat_eval")) != NULL;) {
		const char *number = strstr(at, "calls=");

		assert_non_null(number);
		sum += strtoul(number + 6, NULL, 10);
		at = number;
	}
	freeReplyObject(reply);
	return sum;
}

void
put_ask(struct buf *out, const char *uri, const char *address)
{
	const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", uri, "REMOTE_ADDR",
		address, NULL };

	put_request(out, &(const struct request_spec){ .params = params, .keep = true });
}
