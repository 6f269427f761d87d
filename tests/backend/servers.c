/* Unix sockets in the test's directory. */
#include "servers.h"

struct fake_app *apps[SERVERS];
struct backend_pool *pool;
char names[SERVERS][ADDRESS_TEXT_SIZE];

int
servers_set_up(void **state)
{
	memset(apps, 0, sizeof apps);
	pool = NULL;
	if (talk_set_up(state) != 0)
		return -1;
	for (size_t i = 0; i < SERVERS; i++) {
		const char file[] = { 's', (char)('0' + i), '\0' };
		const struct address address = directory_socket(&directory, file);

		(void)address_text(&address, names[i]);
	}
	return 0;
}

int
servers_tear_down(void **state)
{
	backend_pool_release(pool);
	for (size_t i = 0; i < SERVERS; i++)
		fake_app_stop(apps[i]);
	assert_int_equal(talk_in_flight(), 0);
	return talk_tear_down(state);
}

const char *
path_of(size_t i)
{
	return names[i] + sizeof "unix:" - 1;
}

void
answers(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE("X: y\r\n\r\n"));
}

void
waits(struct app_conn *conn)
{
	if (app_read_request(conn))
		app_wait_gone(conn);
}

void
start_app(size_t i, app_script *script)
{
	apps[i] = fake_app_start(unix_listen(path_of(i), 100), script, NULL);
}

void
stop_app(size_t i)
{
	fake_app_stop(apps[i]);
	apps[i] = NULL;
}

const char *const *
all_names(void)
{
	static const char *const list[] = { names[0], names[1], names[2], NULL };

	return list;
}

enum exchange_result
once(void)
{
	struct talk talk;

	talk_once(&talk, pool);
	talk_release(&talk);
	return talk.result;
}
