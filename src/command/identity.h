/* Who is meant by the words of `weir identity`. Private to the room. */
#ifndef WEIR_COMMAND_IDENTITY_H
#define WEIR_COMMAND_IDENTITY_H

#include "weir/arena.h"

enum { QUESTION_ENV_MAX = 32 };

struct question {
	struct arena arena;
	char *env[QUESTION_ENV_MAX + 1]; /* of a request; NULL behind the last */
	unsigned count;
	const char *query, *cookies; /* so far */
	const char *route; /* NULL: not said */
};

/*
 * Adds what the words say: `ip ADDRESS`, `header NAME VALUE` and so on, one behind the other. A
 * value `-` is a line of standard input. -1: they cannot be read so; *wrong gets the source whose
 * value is unsound, and stays as it is if something else is wrong.
 */
int
question_read(struct question *question, int argc, char **argv, const char **wrong) WEIR_MUST_CHECK;

#endif
