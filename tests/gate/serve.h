/* The gate that most tests use, with an application behind it, and what applications do. */
#ifndef WEIR_TESTS_GATE_SERVE_H
#define WEIR_TESTS_GATE_SERVE_H

#include "rig.h"

extern struct rig rig;
extern struct fake_app *app; /* at DIR/app.sock */

void serve(const char *ini, app_script *script);
int serve_tear_down(void **state);

#define TEST(name) cmocka_unit_test_teardown(name, serve_tear_down)

/* Parts of configurations. */
#define APP "[backend app]\nserver = unix:DIR/app.sock\n"
#define ALL "[route all]\nmatch = *\n"
#define ONE_AN_HOUR APP "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"

/* The head of a POST on a new connection, with these parameters more; the body is the test's. */
int begin(bool keep, const char *const *more);

/* A field that is a number, within these bounds. */
void assert_between(struct slice text, long low, long high);

/* ---- scripts ---- */

/* 404 with fields in odd forms and error output, app status 3. */
app_script answers;

/* "served", with X-RateLimit fields of its own. */
app_script answers_with_own_headers;

/* As many bytes as it reads, while it reads. */
app_script echoes;

/* 30 MB. */
app_script floods;

/* Reads the request and waits. */
app_script says_nothing;

#endif
