/* Sending and judging; what the handler does is in rig.c. */
#include "ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct rig rig;
uint16_t tcp_port;

static int tcp_listening = -1;

const char *const dump[] = { "REQUEST_METHOD", "GET", NULL };
const char *const reads_body[] = { "REQUEST_METHOD", "POST", "MODE", "body", "CONTENT_LENGTH",
	"100000", NULL };
const char *const waits[] = { "REQUEST_METHOD", "POST", "MODE", "wait", NULL };
const char *const usual[] = { "REQUEST_METHOD", "POST", "MODE", "body", "X", "y", "CONTENT_LENGTH",
	"3", NULL };

int
ask_set_up(void **state)
{
	const struct front_settings settings = rig_settings();

	(void)state;
	rig_open(&rig, &settings);
	return 0;
}

int
ask_tear_down(void **state)
{
	(void)state;
	rig_close(&rig);
	if (tcp_listening >= 0)
		(void)close(tcp_listening);
	tcp_listening = -1;
	return 0;
}

static void
listen_on_tcp(void *context)
{
	struct err err;

	(void)context;
	if (front_listen(rig.front, tcp_listening, &rig.listening, &err) != 0)
		abort();
}

void
ask_listen_on_tcp(int buffers)
{
	tcp_listening = tcp_listen(10, &tcp_port);
	(void)fcntl(tcp_listening, F_SETFL, O_NONBLOCK);
	/* For the connections that are accepted there. */
	socket_limit_buffers(tcp_listening, buffers);
	loop_thread_call(&rig.thread, listen_on_tcp, NULL);
}

void
ask_anew(const struct front_settings *settings)
{
	rig_close(&rig);
	rig_open(&rig, settings);
}

void
ask(struct answer *answer, struct slice bytes)
{
	const int fd = rig_connect(&rig);

	(void)socket_send(fd, bytes);
	answer_read(answer, fd, 1);
	(void)close(fd);
}

void
ask_begin(int fd, bool keep, const char *const *params)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_head(&bytes, &(const struct request_spec){ .params = params, .keep = keep });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
}

void
ask_whole(int fd, const char *const *params, bool keep)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = params, .keep = keep });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
}

void
ask_allow(unsigned connections)
{
	struct front_settings settings = rig_settings();

	settings.max_connections = connections;
	rig_configure(&rig, &settings);
}

void
put_usual(struct buf *out)
{
	put_request(out, &(const struct request_spec){ .params = usual, .body = SLICE("abc") });
}

void
assert_usual_body(const struct answer *answer)
{
	const unsigned sum = ('a' * 31 + 'b') * 31 + 'c';
	char expected[40];

	(void)snprintf(expected, sizeof expected, "3 %u", sum);
	assert_slice(answer_body(answer), slice_of(expected));
}

void
assert_usual_answer(const struct answer *answer)
{
	assert_true(answer_is_whole(answer));
	assert_int_equal(answer_status(answer), 200);
	assert_usual_body(answer);
}

void
assert_answered(int fd, unsigned status)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), status);
	answer_release(&answer);
}

void
assert_answer_of(int fd, size_t len)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 200);
	assert_true(len == 0 || answer_body(&answer).len == len);
	answer_release(&answer);
}

void
assert_ended(int fd)
{
	static struct record record;

	assert_int_equal(read_record(fd, &record), GOT_END);
}

void
assert_goes_on(int fd)
{
	struct answer answer;

	answer_to(&answer, fd,
		&(const struct request_spec){
			.params = usual, .body = SLICE("abc"), .keep = true });
	assert_usual_answer(&answer);
	answer_release(&answer);
}
