/* Several servers, each with an application or none, and a pool of them. */
#ifndef WEIR_TESTS_BACKEND_SERVERS_H
#define WEIR_TESTS_BACKEND_SERVERS_H

#include "talk.h"

enum { SERVERS = 3 };

extern struct fake_app *apps[SERVERS]; /* NULL: none, so connections are refused */
extern struct backend_pool *pool; /* the test's; released behind it */
extern char names[SERVERS][ADDRESS_TEXT_SIZE]; /* unix:... */

int servers_set_up(void **state);
int servers_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, servers_set_up, servers_tear_down)

const char *path_of(size_t i);
void start_app(size_t i, app_script *script);
void stop_app(size_t i);

/* All of them, NULL behind the last. */
const char *const *all_names(void);

/* Answers; reads the request and waits. */
app_script answers, waits;

/* A request without a body, to its end. */
enum exchange_result once(void);

#endif
