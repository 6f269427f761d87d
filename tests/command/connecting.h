/* `weir check --connect` with a real server, which the test program has for all its tests. */
#ifndef WEIR_TESTS_COMMAND_CONNECTING_H
#define WEIR_TESTS_COMMAND_CONNECTING_H

#include "../lib/redis_server.h"
#include "serving.h"

extern struct redis_server server;
extern redisContext *direct; /* to it */
extern struct process checker; /* the last check */

int connect_group_setup(void **state);
int connect_group_teardown(void **state);

/* Undoes what a test has made of the server. */
int connect_tear_down(void **state);

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, weir_set_up, connect_tear_down)

/* `server` of [redis] is in line 7; these keys, or what a test has in their place, stand behind. */
#define USER "username = weir\npassword_file = DIR/password\n"

/* The status of a check of this server, or of another one. */
int check(const char *keys);
int check_at(const char *path, const char *keys);

void assert_said(const char *text);
void assert_printed(const char *text);

/* One error, which says this. */
void assert_refused(const char *keys, const char *text);
void assert_good(const char *keys);

#endif
