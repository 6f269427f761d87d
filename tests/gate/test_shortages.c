/* Memory that is out at the worst moment, and what must not be done while requests are served. */
#include "../../src/gate/gate_private.h"
#include "serve.h"

#include <stdatomic.h>

/* In the place of others (the linker's --wrap). */
enum media __wrap_accept_media(struct slice accept);
enum media __real_accept_media(struct slice accept);
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);
int __wrap_cgi_head_write(const struct cgi_head *head, struct slice more, struct buf *out);
int __real_cgi_head_write(const struct cgi_head *head, struct slice more, struct buf *out);
counter_cell __wrap_counter_find(enum counter_family family, const struct slice *values);
counter_cell __real_counter_find(enum counter_family family, const struct slice *values);

static _Atomic unsigned fail_at; /* which allocation behind the choice of a page; 0: none */
static _Thread_local unsigned until_failure;
static _Atomic bool no_heads;
static _Atomic bool is_serving; /* counters are not looked for by the gate's thread */
static _Atomic unsigned finds;
static pthread_t main_thread;

/* The last thing that is done before a page is put together. */
enum media
__wrap_accept_media(struct slice accept)
{
	until_failure = fail_at;
	return __real_accept_media(accept);
}

void *
__wrap_malloc(size_t size)
{
	if (until_failure > 0 && --until_failure == 0)
		return NULL;
	return __real_malloc(size);
}

int
__wrap_cgi_head_write(const struct cgi_head *head, struct slice more, struct buf *out)
{
	return no_heads ? -1 : __real_cgi_head_write(head, more, out);
}

counter_cell
__wrap_counter_find(enum counter_family family, const struct slice *values)
{
	if (is_serving && pthread_equal(pthread_self(), main_thread) == 0)
		finds++;
	return __real_counter_find(family, values);
}

/* First the body finds no room, then the head. */
static void
without_memory_the_status_and_when_to_come_back_are_told(void **state)
{
	static const char *const more[] = { "HTTP_ACCEPT", "application/json", NULL };

	(void)state;
	serve("[weir]\nmax_in_flight = 1000\n" ONE_AN_HOUR, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	for (unsigned i = 1; i <= 2; i++) {
		struct answer answer;

		fail_at = i;
		rig_ask(&rig, &answer, "GET", "/", more);
		fail_at = 0;
		assert_true(answer_is_whole(&answer));
		assert_int_equal(answer_status(&answer), 429);
		assert_between(answer_field(&answer, "Retry-After"), 3590, 3600);
		assert_slice(answer_field(&answer, "Content-Length"), SLICE("0"));
		assert_slice(answer_field(&answer, "Cache-Control"), SLICE("no-store"));
		assert_int_equal(answer_body(&answer).len, 0);
		answer_release(&answer);
	}
}

static void
answer_whose_head_cannot_be_written_is_502_at_once(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP ALL, floods);
	const int64_t failures = rig_backend_failures("app", "untaken"),
		      outcomes = rig_outcome("all", "backend_failed");

	no_heads = true;
	rig_ask(&rig, &answer, "GET", "/", NULL);
	no_heads = false;
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 502);
	/* What was asked for is done: nobody shall do it again. */
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	answer_release(&answer);
	assert_int_equal(rig_backend_failures("app", "untaken") - failures, 1);
	assert_int_equal(rig_outcome("all", "backend_failed") - outcomes, 1);
	assert_int_equal(rig_logged(&rig, "no memory for the answer of a backend"), 1);
	/* The 30 MB behind it are not read. */
	assert_within_s(fake_app_look(app).ended == 1, 1);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
}

/* It takes a lock that the metrics page holds for as long as it is made. */
static void
reload_looks_for_no_counters_on_a_thread_that_serves(void **state)
{
	(void)state;
	serve(ONE_AN_HOUR, answers);
	finds = 0;
	is_serving = true;
	rig_reload(&rig,
		"[redis]\nserver = unix:DIR/nobody.sock\n[backend other]\nserver = "
		"unix:DIR/app.sock\n" ONE_AN_HOUR
		"backend = other\n[limit new]\npolicy = 1/1h\nlocal_cap = 1/1s\n");
	is_serving = false;
	assert_int_equal(finds, 0);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_memory_the_status_and_when_to_come_back_are_told),
		TEST(answer_whose_head_cannot_be_written_is_502_at_once),
		TEST(reload_looks_for_no_counters_on_a_thread_that_serves),
	};

	main_thread = pthread_self();
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
