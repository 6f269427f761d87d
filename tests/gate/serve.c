/* What more than one test of the gate needs. */
#include "serve.h"

#include <stdlib.h>

struct rig rig;
struct fake_app *app;

void
serve(const char *ini, app_script *script)
{
	rig_open(&rig, ini);
	app = rig_app(&rig, "app.sock", script);
}

int
serve_tear_down(void **state)
{
	(void)state;
	rig_close(&rig);
	fake_app_stop(app);
	app = NULL;
	return 0;
}

int
begin(bool keep, const char *const *more)
{
	const char *params[32] = { "REQUEST_METHOD", "POST", "REQUEST_URI", "/", "REMOTE_ADDR",
		"192.0.2.1" };
	const int fd = rig_connect(&rig);
	struct buf bytes;
	size_t count = 6;

	while (more != NULL && *more != NULL && count < 31)
		params[count++] = *more++;
	bytes_init(&bytes);
	put_head(&bytes, &(const struct request_spec){ .params = params, .keep = keep });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
	return fd;
}

void
assert_between(struct slice text, long low, long high)
{
	char digits[24] = "";

	assert_true(text.len > 0 && text.len < sizeof digits);
	memcpy(digits, text.ptr, text.len);
	assert_int_equal(strspn(digits, "0123456789"), text.len);
	assert_in_range(strtol(digits, NULL, 10), low, high);
}

/* ---- scripts ---- */

void
answers_with_own_headers(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn,
			SLICE("Content-Type: text/plain\r\nX-RateLimit-Limit: 7\r\n"
			      "x-ratelimit-remaining: 6\r\nX-RateLimit-Other: 5\r\n\r\nserved"));
}

void
answers(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	(void)app_err(conn, SLICE("PHP Warning: something"));
	(void)app_out(conn,
		SLICE("Set-Cookie: a=1\nX-Powered-By : PHP\nSet-Cookie: b=2\nStatus: 404\n"
		      "Connection: close\nContent-Length: 5\n\nhel"));
	(void)app_out(conn, SLICE("lo"));
	(void)app_out_end(conn);
	(void)app_end(conn, 3, FCGI_REQUEST_COMPLETE);
}

void
echoes(struct app_conn *conn)
{
	static const char zeros[32768];

	if (!app_read_params(conn) || !app_out(conn, SLICE("X: y\r\n\r\n")))
		return;
	while (!conn->seen.body_ended) {
		const uint64_t before = conn->seen.body_len;

		if (!app_read_some(conn))
			return;
		(void)app_out(conn, slice_make(zeros, conn->seen.body_len - before));
	}
	(void)app_out_end(conn);
	(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

void
floods(struct app_conn *conn)
{
	static const char zeros[100000];

	if (!app_read_request(conn) || !app_out(conn, SLICE("X: y\r\n\r\n")))
		return;
	for (unsigned i = 0; i < 300; i++) {
		if (!app_out(conn, slice_make(zeros, sizeof zeros)))
			return;
	}
	(void)app_answer(conn, SLICE("end"));
}

void
says_nothing(struct app_conn *conn)
{
	if (app_read_request(conn))
		app_wait_gone(conn);
}
