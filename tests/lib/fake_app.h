/*
 * An application that speaks FastCGI as badly as a test likes. It accepts in a thread of its own
 *and runs a script for each connection in another one, so a script is plain blocking code that
 *reads like the story it tells:
 *
 *	static void
 *	answers_half(struct app_conn *conn)
 *	{
 *		app_read_request(conn);
 *		app_out(conn, SLICE("Status: 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
 *	}
 *
 * When the script returns, the connection is closed.
 */
#ifndef WEIR_TESTS_LIB_FAKE_APP_H
#define WEIR_TESTS_LIB_FAKE_APP_H

#include "fcgi_peer.h"

struct fake_app;

/* What the application has seen; of a request, the last one. */
struct app_seen {
	unsigned accepted, requests, ended; /* connections, whole heads, scripts that have ended */
	unsigned gone; /* times that app_wait_gone has seen its peer go */
	uint16_t role;
	uint8_t flags;
	bool pairs_whole; /* no pair was split over two records */
	bool body_ended;
	uint64_t body_len, body_sum;
};

struct app_conn {
	struct fake_app *app;
	struct app_conn *next;
	int fd;
	unsigned number; /* from 0, in the order that they were accepted */
	uint16_t id;
	struct buf params;
	struct app_seen seen;
	void *context; /* the test's */
};

typedef void app_script(struct app_conn *conn);

/* Takes the listening socket. */
struct fake_app *fake_app_start(int listening, app_script *script, void *context);

/* Ends all connections and threads. NULL is let pass. */
void fake_app_stop(struct fake_app *app);

/* For connections that are accepted from now on. */
void fake_app_set_script(struct fake_app *app, app_script *script);

struct app_seen fake_app_look(struct fake_app *app);

/* How often the last request had this parameter with this value; value NULL: with any. */
unsigned fake_app_params(struct fake_app *app, const char *name, const char *value);

/* The last request's parameters as they came, to be released. */
void fake_app_copy_params(struct fake_app *app, struct buf *out);

/* ---- for scripts; each is false when the peer has gone ---- */

bool app_read_params(struct app_conn *conn);
bool app_read_body(struct app_conn *conn);
bool app_read_request(struct app_conn *conn);

/* One more STDIN record. */
bool app_read_some(struct app_conn *conn);

bool app_out(struct app_conn *conn, struct slice bytes);
bool app_err(struct app_conn *conn, struct slice bytes);
bool app_out_end(struct app_conn *conn);
bool app_end(struct app_conn *conn, uint32_t app_status, uint8_t protocol_status);

/* STDOUT, its end and END_REQUEST. */
bool app_answer(struct app_conn *conn, struct slice bytes);

/* Anything. */
bool app_send(struct app_conn *conn, struct slice bytes);

/* Reads on until the peer closes. */
void app_wait_gone(struct app_conn *conn);

/* Waits `ms`; false if the peer closes before. */
bool app_linger(struct app_conn *conn, int ms);

#endif
