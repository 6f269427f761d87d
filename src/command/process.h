/* What the process as a whole needs before it serves. Private to the room. */
#ifndef WEIR_COMMAND_PROCESS_H
#define WEIR_COMMAND_PROCESS_H

#include "weir/config.h"
#include "weir/log_sink.h"
#include "weir/memory.h"

/* Descriptors up to the hard limit; says so if max_connections does not fit. */
void process_raise_limits(const struct config *config);

/* Makes the zone of calendar quotas that of the process. Before there are threads. */
void process_set_timezone(const struct config *config);

/* Sends the log where the configuration says. */
struct log_sink *process_open_log(const struct config *config, struct err *err) WEIR_MUST_CHECK;

/* The diagnostics as log lines. */
void process_log_diagnostics(const struct diagnostics *diagnostics);

/* ---- state.c ---- */

enum { STATE_PATH_SIZE = sizeof WEIR_RUNDIR + 64 };

/* Where the memory store's file is, or will be; `room` may hold the path. */
const char *process_state_path(const struct config *config, char room[STATE_PATH_SIZE]);

/*
 * The memory store's file: the one that is named; else the configuration's below the run directory,
 * or in /dev/shm for a user who may not write there. A memory of our own only if other users have
 * taken all its names: a web server that starts several of us expects one limit.
 */
struct memory *process_open_memory(const struct config *config, struct err *err) WEIR_MUST_CHECK;

#endif
