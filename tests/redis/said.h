/* A fake server that answers what it is told to, command by command, as a good server otherwise. */
#ifndef WEIR_TESTS_REDIS_SAID_H
#define WEIR_TESTS_REDIS_SAID_H

#include "fake.h"

/* Where `command` is NULL, to all others; `answer` NULL: what a good server says. */
struct said {
	const char *command, *answer;
};

/* The list, up to a NULL command; set before the server is started. */
extern const struct said *said_list;

/* Before each answer. */
extern int said_delay_ms;

#define SAID(...) (said_list = (const struct said[]){ __VA_ARGS__, { NULL, NULL } })

void answers_as_said(struct fake_peer *peer);

#endif
