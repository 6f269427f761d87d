/*
 * A gate on a loop of its own thread, with a configuration as an operator writes it: in front of it
 * a raw client, behind it fake applications, and a memory store of its own. In the configuration,
 * DIR stands for the test's directory; the gate listens on a unix socket there.
 */
#ifndef WEIR_TESTS_GATE_RIG_H
#define WEIR_TESTS_GATE_RIG_H

#include "../lib/directory.h"
#include "../lib/fake_app.h"
#include "../lib/fcgi_client.h"
#include "../lib/loop_thread.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"
#include "weir/gate.h"

struct rig {
	struct directory directory;
	struct loop_thread thread;
	struct memory *memory;
	struct report *report;
	struct gate_commons *commons;
	struct gate_shared shared;
	struct gate *gate;
	int listening;
	bool by_mod_fcgid; /* set before rig_open */
	unsigned threads; /* the same; 0: one */
	pthread_mutex_t lock;
	char log[65536]; /* lines since rig_open, cut when it is full */
	size_t log_len;
	unsigned empty, cut;
};

/* Once in the program. */
int rig_start(void);

/* Fails the test, with what was said, if the configuration is refused. */
void rig_open(struct rig *rig, const char *ini);

/* And nothing is left behind: no request, no connection, no exchange. */
void rig_close(struct rig *rig);

/* The next requests are served by this. */
void rig_reload(struct rig *rig, const char *ini);

void rig_stop(struct rig *rig);
void rig_cut(struct rig *rig);

int rig_connect(const struct rig *rig);

/* An application at DIR/NAME. */
struct fake_app *rig_app(const struct rig *rig, const char *name, app_script *script);

/* A request on a new connection; the answer is to be released. Parameters beside REQUEST_METHOD,
 * REQUEST_URI and REMOTE_ADDR may be NULL. */
void rig_ask(struct rig *rig, struct answer *answer, const char *method, const char *uri,
	const char *const *more);

/* The status alone. */
unsigned rig_status(struct rig *rig, const char *method, const char *uri, const char *const *more);

/* How many requests of a route have come to this. */
int64_t rig_outcome(const char *route, const char *outcome);
int64_t rig_decisions(const char *limit, const char *result);
int64_t rig_rejections(const char *limit, const char *policy, const char *result);
int64_t rig_backend_failures(const char *backend, const char *reason);

/* Requests under way in the gate and at backend "app"; connections. */
int64_t rig_in_flight(void);
int64_t rig_at_backend(void);
int64_t rig_connections(void);

/* How many log lines have this text. */
unsigned rig_logged(struct rig *rig, const char *text);

#endif
