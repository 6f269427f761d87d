/* A script says nothing of itself but what it answers, and the files that it writes. */
#include "programs.h"

#include "weir/fcgi.h"
#include "../lib/fcgi_peer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct config_backend programs;
struct backend_pool *pool;

int
programs_set_up(void **state)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (talk_set_up(state) != 0)
		return -1;
	programs = (struct config_backend){ .name = "app",
		.type = BACKEND_CGI,
		.root = directory.path,
		.max_in_flight = 1000,
		.connect_timeout_us = 1000000,
		.idle_timeout_us = 20000000 };
	pool = talk_pool_of(&programs);
	return 0;
}

int
programs_tear_down(void **state)
{
	backend_pool_release(pool);
	assert_int_equal(talk_in_flight(), 0);
	return talk_tear_down(state);
}

void
programs_renew(void)
{
	backend_pool_release(pool);
	pool = talk_pool_of(&programs);
}

void
program_write(const char *name, const char *script)
{
	char text[4096];

	(void)snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
	directory_write(&directory, name, slice_of(text));
	assert_int_equal(chmod(directory_path(&directory, name).text, 0755), 0);
}

bool
program_start(struct talk *talk, const char *name, const char *const *pairs)
{
	const struct directory_path path = directory_path(&directory, name);
	struct buf params;

	bytes_init(&params);
	put_pairs(&params,
		(const char *const[]){
			"REQUEST_METHOD", "GET", "SCRIPT_FILENAME", path.text, NULL });
	if (pairs != NULL)
		put_pairs(&params, pairs);
	const bool started = talk_start_raw(talk, pool, buf_slice(&params));

	buf_release(&params);
	return started;
}

void
program_run(struct talk *talk, const char *name, const char *const *pairs)
{
	if (!program_start(talk, name, pairs))
		return;
	exchange_body_end(talk->exchange);
	talk_finish(talk);
}

static int
number_in(const char *name)
{
	char *text = directory_read(&directory, name);
	const int number = strchr(text, '\n') == NULL ? 0 : atoi(text);

	free(text);
	run_loop_once(loop);
	return number;
}

int
program_number(const char *name)
{
	assert_soon(number_in(name) != 0);
	return number_in(name);
}

char
program_state(int pid, int *parent)
{
	char path[40], state = '\0';

	run_loop_once(loop);
	*parent = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return '\0';
	if (fscanf(file, "%*d (%*[^)]) %c %d", &state, parent) != 2)
		state = '\0';
	(void)fclose(file);
	return state;
}

/* An orphan is not ours to reap. */
static bool
is_gone(int pid)
{
	int parent;
	const char state = program_state(pid, &parent);

	return state == '\0' || (state == 'Z' && parent != getpid());
}

void
assert_gone(int pid)
{
	assert_soon(is_gone(pid));
}
