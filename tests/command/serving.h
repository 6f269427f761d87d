/*
 * `weir serve` as a process, with a configuration in a directory of its own. In the configuration,
 * DIR stands for the directory.
 */
#ifndef WEIR_TESTS_COMMAND_SERVING_H
#define WEIR_TESTS_COMMAND_SERVING_H

#include "../lib/directory.h"
#include "../lib/fake_app.h"
#include "../lib/fcgi_client.h"
#include "../lib/process.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"

extern struct directory directory;
extern struct process process;
extern struct fake_app *app; /* at DIR/app.sock; made by begin_request */
extern struct directory_path go; /* the file that the application waits for */

int weir_set_up(void **state);
int weir_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, weir_set_up, weir_tear_down)

/* Parts of configurations. */
#define STATE "[memory]\nstate = DIR/state\nsize = 1m\n"
#define LISTEN "[weir]\nlisten = unix:DIR/weir.sock mode 0600\n"
#define NONE "[backend none]\ntype = none\n"
#define APP "[backend app]\nserver = unix:DIR/app.sock\n"
#define ALL "[route all]\nmatch = *\n"

void write_config(const char *ini);

/* Starts, and waits until it serves. */
void weir_start(const char *ini);

/* Starts with everything but the arguments in *setup. */
void weir_start_with(const char *ini, struct process_setup *setup);
void assert_serving(void);

/* From start to end: its status. */
int weir_run(const char *ini, struct process_setup *setup);

/* By SIGTERM; fails the test if it did not end in order. */
void weir_stop(void);

/* ---- requests ---- */

extern const char *const params[];

int connect_to(const char *name);

/* The head and the body of a page of DIR/status.sock, until the next one is asked for; "" if nobody
 * answers. */
const char *page(const char *path);

/* Of a request at this socket in the directory; 0 if it is not answered in full. */
unsigned status_at(const char *name);

/* A request on a kept connection that the application works on until the file `go` is there. */
int begin_request(void);

#endif
