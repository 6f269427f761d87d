/*
 * The memory store's file, under a running weir. It is looked at each second, and told once what
 * has become of it. If it was cut short, or its disk fails, the kernel sends SIGBUS to whoever
 * needs what is missing: then nothing can be decided any more, and the process ends with a
 * sentence, so that who started it starts it anew, with a new file.
 *
 * The handler's words are made ready before, in static memory, since it may call next to nothing.
 */
#include "command.h"
#include "serve.h"

#include "weir/log.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { WORDS_SIZE = 512 };

static struct {
	struct slice bytes; /* of the memory */
	char words[WORDS_SIZE];
	size_t len;
} last;

/* What is not the memory's is a bug, and ends the process as it always would. */
static void
on_bus_error(int signo, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr, from = (uintptr_t)last.bytes.ptr;

	(void)context;
	if (at - from >= last.bytes.len) {
		(void)signal(signo, SIG_DFL);
		return;
	}
	(void)!write(STDERR_FILENO, last.words, last.len);
	_exit(EXIT_FAILED);
}

void
serve_handle_bus_errors(const struct serve *serve)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	const char *path = memory_path(serve->memory);

	if (path == NULL)
		return;
	last.bytes = memory_bytes(serve->memory);
	const int n = snprintf(last.words, sizeof last.words,
		"weir serve: the memory store's file %s was cut short, or its disk has failed; "
		"weir ends, and makes a new one when it is started anew\n",
		path);

	last.len = (size_t)n < sizeof last.words ? (size_t)n : sizeof last.words - 1;
	(void)sigaction(SIGBUS, &action, NULL);
}

void
serve_look_at_memory(struct serve *serve)
{
	static const char *const sentences[MEMORY_FILES] = {
		[MEMORY_FILE_SAME] = "The memory store's file is there again.",
		[MEMORY_FILE_GONE] =
			"The memory store's file was removed: weir goes on with what it had, but a "
			"process that starts from now on counts anew; start all of them anew.",
		[MEMORY_FILE_REPLACED] =
			"The memory store's file was replaced: weir goes on with the former one, "
			"and a process that starts from now on has the other; start all of them "
			"anew.",
		[MEMORY_FILE_CUT] = "The memory store's file was cut short: weir ends as soon as "
				    "it needs what is missing.",
	};
	const enum memory_file now = memory_look(serve->memory);

	if (now == serve->memory_file)
		return;
	serve->memory_file = now;
	if (now == MEMORY_FILE_SAME)
		log_info(sentences[now], LOG_TEXT("file", memory_path(serve->memory)));
	else
		log_error(sentences[now], LOG_TEXT("file", memory_path(serve->memory)));
}
