/* The application is started late, so that a test may have none. */
#include "single.h"

struct fake_app *app;
struct backend_pool *pool;

int
single_set_up(void **state)
{
	if (talk_set_up(state) != 0)
		return -1;
	app = NULL;
	pool = talk_pool_of_one();
	return 0;
}

int
single_tear_down(void **state)
{
	backend_pool_release(pool);
	fake_app_stop(app);
	assert_int_equal(talk_in_flight(), 0);
	return talk_tear_down(state);
}

void
serve_with_context(app_script *script, void *context)
{
	if (app == NULL)
		app = fake_app_start(
			unix_listen(directory_path(&directory, "s").text, 100), script, context);
	else
		fake_app_set_script(app, script);
}

void
serve(app_script *script)
{
	serve_with_context(script, NULL);
}

void
use_idle_timeout(int64_t idle_timeout_us)
{
	const struct address address = directory_socket(&directory, "s");
	char text[ADDRESS_TEXT_SIZE];

	backend_pool_release(pool);
	pool = talk_pool_with(
		(const char *const[]){ address_text(&address, text), NULL }, 0, 0, idle_timeout_us);
}

void
assert_result(app_script *script, enum exchange_result expected)
{
	struct talk talk;

	serve(script);
	talk_once(&talk, pool);
	assert_row(talk.result == expected, "%s: %s", exchange_result_names[talk.result], talk.why);
	assert_true((talk.why[0] == '\0') == (expected == EXCHANGE_COMPLETE));
	if (expected != EXCHANGE_COMPLETE)
		assert_row(strstr(talk.why, directory.path) != NULL, "%s", talk.why);
	talk_release(&talk);
}

void
answers(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

void
assert_usual(const struct talk *talk)
{
	assert_row(talk->result == EXCHANGE_COMPLETE, "%s", talk->why);
	assert_int_equal(talk->status, 200);
	assert_string_equal(talk->fields, "Content-Type: text/plain\nX-A: 1\n");
	assert_slice(buf_slice(&talk->body), SLICE("hello\n"));
}

void
floods(struct app_conn *conn)
{
	static char zeros[100000];

	if (!app_read_request(conn) || !app_out(conn, SLICE("X: y\r\n\r\n")))
		return;
	for (unsigned i = 0; i < 1000; i++) {
		if (!app_out(conn, slice_make(zeros, sizeof zeros)))
			return;
	}
	(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}
