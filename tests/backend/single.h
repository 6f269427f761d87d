/* One application behind one pool of its own, and exchanges with it. */
#ifndef WEIR_TESTS_BACKEND_SINGLE_H
#define WEIR_TESTS_BACKEND_SINGLE_H

#include "talk.h"

/* The pool is made by single_set_up, the application by the first `serve`. */
extern struct fake_app *app;
extern struct backend_pool *pool;

int single_set_up(void **state);
int single_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, single_set_up, single_tear_down)

/* What the application does with the next connections. The context is that of the first call. */
void serve(app_script *script);
void serve_with_context(app_script *script, void *context);

/* The pool anew, with another timeout. */
void use_idle_timeout(int64_t idle_timeout_us);

/* Reads the request and answers. */
app_script answers;

#define USUAL_ANSWER "Content-Type: text/plain\r\nX-A: 1\r\n\r\nhello\n"

/* That it came. */
void assert_usual(const struct talk *talk);

/* Answers 100 MB. */
app_script floods;

/* A request without a body; its result. */
void assert_result(app_script *script, enum exchange_result expected);

#endif
