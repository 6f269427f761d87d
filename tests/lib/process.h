/* The program under test, as a process: how it is started, what it says, and how it ends. */
#ifndef WEIR_TESTS_LIB_PROCESS_H
#define WEIR_TESTS_LIB_PROCESS_H

#include "weir/buf.h"

#include <sys/types.h>

struct process_setup {
	const char *const *arguments; /* behind the program's name; NULL behind the last */
	const char *const *environment; /* "NAME=value" beside the test's own; NULL: none */
	int standard_input; /* becomes descriptor 0; 0: /dev/null */
	int listening[4]; /* become descriptors 3 and on, as systemd gives them; 0 behind the last
			   */
	bool for_another; /* LISTEN_PID is another process's */
	bool without_output; /* descriptors 1 and 2 are closed */
};

struct process {
	pid_t pid; /* 0 when it has ended */
	int output_fd, error_fd;
	struct buf output, error; /* what it has said so far */
};

/* The program that WEIR names, or ./weir. */
void process_start(struct process *process, const struct process_setup *setup);

/* Whether it has said this on its standard error by now. */
bool process_said(struct process *process, const char *text);

/* Without waiting for it. */
bool process_has_ended(const struct process *process);

void process_signal(const struct process *process, int signo);

/* Its exit status, or 128 and the signal that ended it. Killed, and 999, if it does not end. */
int process_wait(struct process *process);

/* Kills it if it still runs. */
void process_release(struct process *process);

/* From start to end: its status. */
int process_run(struct process *process, const struct process_setup *setup);

/* What it has said, terminated. */
const char *process_output(struct process *process);
const char *process_error(struct process *process);

#endif
