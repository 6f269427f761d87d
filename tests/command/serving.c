/* The process is watched by what it says on standard error. */
#include "serving.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct directory directory;
struct process process;
struct fake_app *app;
struct directory_path go;

int
weir_set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	go = directory_path(&directory, "go");
	return 0;
}

int
weir_tear_down(void **state)
{
	(void)state;
	process_release(&process);
	fake_app_stop(app);
	app = NULL;
	directory_remove(&directory);
	return 0;
}

void
write_config(const char *ini)
{
	struct buf text;

	bytes_init(&text);
	while (*ini != '\0') {
		const char *dir = strstr(ini, "DIR");
		const size_t len = dir == NULL ? strlen(ini) : (size_t)(dir - ini);

		bytes_add(&text, slice_make(ini, len));
		if (dir != NULL)
			bytes_add(&text, slice_of(directory.path));
		ini += dir == NULL ? len : len + 3;
	}
	directory_write(&directory, "weir.ini", buf_slice(&text));
	buf_release(&text);
}

/* ---- the process ---- */

void
weir_start_with(const char *ini, struct process_setup *setup)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *const arguments[] = { "serve", "--config", file.text, NULL };

	write_config(ini);
	setup->arguments = arguments;
	process_start(&process, setup);
	setup->arguments = NULL;
}

void
assert_serving(void)
{
	assert_soon(process_said(&process, " Serving. ") || process_has_ended(&process));
	assert_row(process_said(&process, " Serving. "), "%s", process_error(&process));
}

void
weir_start(const char *ini)
{
	struct process_setup setup = { 0 };

	weir_start_with(ini, &setup);
	assert_serving();
}

int
weir_run(const char *ini, struct process_setup *setup)
{
	weir_start_with(ini, setup);
	return process_wait(&process);
}

void
weir_stop(void)
{
	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	assert_row(
		process_said(&process, "Stopped. requests_cut=0"), "%s", process_error(&process));
}

/* ---- requests ---- */

const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/", "REMOTE_ADDR",
	"192.0.2.1", NULL };

static unsigned
status_of(int fd)
{
	struct answer answer;

	answer_to(&answer, fd, &(const struct request_spec){ .params = params });
	const unsigned status = answer_is_whole(&answer) ? answer_status(&answer) : 0;

	answer_release(&answer);
	(void)close(fd);
	return status;
}

int
connect_to(const char *name)
{
	return unix_connect(directory_path(&directory, name).text);
}

const char *
page(const char *path)
{
	static char answer[200000];
	const int fd = connect_to("status.sock");
	char request[100];
	size_t len = 0;
	ssize_t n;

	(void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
	assert_true(socket_send(fd, slice_of(request)));
	while ((n = recv(fd, answer + len, sizeof answer - 1 - len, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	(void)close(fd);
	return answer;
}

unsigned
status_at(const char *name)
{
	return status_of(connect_to(name));
}

/* A request that the application works on until DIR/go is there. */
static void
answers_when_told(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	while (access(go.text, F_OK) != 0) {
		if (!app_linger(conn, 1))
			return;
	}
	(void)app_answer(conn, SLICE("Content-Type: text/plain\r\n\r\ndone"));
}

int
begin_request(void)
{
	struct buf bytes;

	app = fake_app_start(unix_listen(directory_path(&directory, "app.sock").text, 10),
		answers_when_told, NULL);
	const int fd = connect_to("weir.sock");

	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = params, .keep = true });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
	assert_soon(fake_app_look(app).requests == 1);
	return fd;
}
