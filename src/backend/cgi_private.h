/*
 * The CGI runner: a backend that starts a program for each request (RFC 3875). Private to its files
 * and to the pump, for which a program is a connection whose framing is none (framing_cgi.c).
 */
#ifndef WEIR_CGI_PRIVATE_H
#define WEIR_CGI_PRIVATE_H

#include "backend_private.h"

#include <limits.h>
#include <sys/types.h>

/* ---- cgi_program.c ---- */

struct cgi_program {
	char path[PATH_MAX];
	char script[PATH_MAX]; /* SCRIPT_FILENAME; empty: the same */
	/* What the program's own part of the path is, and what is behind it. Views into the
	 * parameters or into `path`; ptr NULL: as the parameters have it. */
	struct slice script_name, path_info;
};

/*
 * Which program a request is for: `program` of the backend (to an interpreter the request's
 * SCRIPT_FILENAME is told, if that is a file), or the one that SCRIPT_FILENAME, or
 * else DOCUMENT_ROOT with SCRIPT_NAME, names below its `root`. EXCHANGE_COMPLETE, or
 * EXCHANGE_NOT_FOUND or EXCHANGE_FORBIDDEN with a reason.
 */
enum exchange_result cgi_program_find(const struct config_backend *config, struct slice params,
	struct cgi_program *program, struct err *why);

/* ---- cgi_proxied.c ---- */

/* The path that a SCRIPT_FILENAME of mod_proxy_fcgi means, perhaps in `room`; any other one as it
 * is. `name`, `info`: SCRIPT_NAME and PATH_INFO. */
struct slice
cgi_proxied_path(struct slice filename, struct slice name, struct slice info, char room[PATH_MAX]);

/* ---- cgi_environment.c ---- */

/* The kernel's own bounds, less what it needs itself: of one string, and of all with their
 * pointers (execve(2)). */
enum {
	CGI_STRING_MAX = 128 * 1024,
	CGI_ENVIRONMENT_MAX = 1024 * 1024,
	CGI_VARIABLES_MAX = 1000 /* ours: more than any web server makes */
};

/*
 * Puts "NAME=VALUE" with a zero byte for each variable of the program's environment: what the
 * administrator gives (`env`), then the request's parameters, then what a program needs of our own
 * environment (PATH, TZ, LANG and LC_*). The first of these three that has a name counts, and of
 * the parameters the last. Never HTTP_PROXY.
 */
enum exchange_result cgi_environment_put(struct buf *out, const struct config_backend *config,
	const struct cgi_program *program, struct slice params, struct err *why);

/* ---- cgi_spawn.c ---- */

/* Theirs and ours of three pipes: standard input, output, error output. Only our ends do not
 * block: programs do not expect it of theirs. */
struct cgi_pipes {
	int theirs[3], ours[3];
};

/* Below 0: errno says why; to be closed in any case. */
int cgi_pipes_open(struct cgi_pipes *pipes) WEIR_MUST_CHECK;
void cgi_pipes_close(struct cgi_pipes *pipes);

/*
 * Starts a program, without arguments, in its own directory, as the leader of a process group, with
 * no signal blocked or ignored and these three descriptors. The kernel kills it when the thread
 * that calls ends, or weir. Returns an errno: then there is no process.
 */
int cgi_spawn(pid_t *pid, const char *path, char **environment, const int fds[3]) WEIR_MUST_CHECK;

/* ---- cgi_process.c ---- */

struct cgi_process;

/*
 * Starts the program of a request in its own directory and process group: standard input and output
 * are the exchange's, its error output goes to the exchange's handler. NULL: *result and `why` say
 * why not.
 */
struct cgi_process *cgi_process_start(struct exchange *exchange, const char *path,
	struct slice environment, enum exchange_result *result, struct err *why) WEIR_MUST_CHECK;

/* The stream to its standard input; NULL when that is closed. */
struct stream *cgi_process_input(const struct cgi_process *process);

/* Its output has ended. Tells the exchange how the program has (answer_program_ended), now or soon:
 * one that runs on is not waited for. */
void cgi_process_await(struct cgi_process *process);

/* The exchange needs it no more. It may run on for as long as `may_run_us`; then, or at once if
 * that is 0, it is asked to end (SIGTERM), and soon after made to (SIGKILL), with all of its group,
 * also if it has ended itself. As long as there is anything to end it counts for max_in_flight. */
void cgi_process_leave(struct cgi_process *process, int64_t may_run_us);

#endif
