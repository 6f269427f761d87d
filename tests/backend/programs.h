/* Real CGI programs, shell scripts in the test's directory, and exchanges with them. */
#ifndef WEIR_TESTS_BACKEND_PROGRAMS_H
#define WEIR_TESTS_BACKEND_PROGRAMS_H

#include "talk.h"

/* Its root is the directory; silence ends after 20 s. Made by programs_set_up. */
extern struct config_backend programs;
extern struct backend_pool *pool;

int programs_set_up(void **state);
int programs_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, programs_set_up, programs_tear_down)

/* The pool anew, after a change of `programs`. */
void programs_renew(void);

/* Behind "#!/bin/sh". */
void program_write(const char *name, const char *script);

/* A request for this program, with these parameters more, which end with NULL; NULL: none. */
bool program_start(struct talk *talk, const char *name, const char *const *pairs);

/* The same without a body, to its end. */
void program_run(struct talk *talk, const char *name, const char *const *pairs);

/* The number in a file of the directory that a program writes, when it is there. */
int program_number(const char *name);

/* The letter of /proc/PID/stat: 'Z' has ended and is not reaped; '\0': it is not there. */
char program_state(int pid, int *parent);

/* The process has gone, soon; reaped, if it was ours. */
void assert_gone(int pid);

#endif
