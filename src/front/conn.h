/*
 * One connection from a web server and the request on it. Private to the room.
 *
 *     IDLE --BEGIN--> HEAD --empty PARAMS--> BUSY --front_end--> IDLE, SKIP or LINGER
 *                      '----refused----> LINGER
 *
 *     IDLE    kept, the body read to its end
 *     SKIP    kept, the rest of the body is read on; then IDLE, at the next BEGIN at the latest
 *     LINGER  all others: our side shut, theirs read to its end
 *
 * conn_go is the one function that changes the state.
 */
#ifndef WEIR_FRONT_CONN_H
#define WEIR_FRONT_CONN_H

#include "weir/buf.h"
#include "weir/counter.h"
#include "weir/fcgi.h"
#include "weir/front.h"
#include "weir/stream.h"

enum conn_state { CONN_IDLE, CONN_HEAD, CONN_BUSY, CONN_SKIP, CONN_LINGER };

struct front_request {
	uint16_t id;
	enum front_role role;
	bool keep;
	struct buf params;
	struct arena arena;
	char **env;
	void *owner;
	bool body_wanted, body_ended, body_end_told;
	uint64_t body_seen, body_length; /* body_length: CONTENT_LENGTH, UINT64_MAX if not known */
	bool has_answered; /* some STDOUT was sent */
	uint32_t error_text_sent;
};

/* Why a connection or a request was refused; a label of weir_protocol_errors_total. */
enum front_fault {
	FAULT_NOT_FASTCGI,
	FAULT_ORDER, /* a record where it has no place */
	FAULT_LENGTH, /* a record of a length that its type cannot have */
	FAULT_BAD_PARAMS,
	FAULT_HEAD_TOO_LARGE,
	FRONT_FAULTS
};

struct conn_list {
	struct front_conn *first, **end;
	unsigned count;
};

struct front_conn {
	struct front *front;
	struct front_conn *next, **at; /* in one of the front's lists */
	struct conn_list *list;
	void *listener;
	struct stream *stream;
	struct fcgi_reader reader;
	enum conn_state state;
	struct front_request request;
	uint8_t begin[8]; /* the body of BEGIN_REQUEST as it comes */
	unsigned begin_len;
	struct buf manage; /* the content of a management record */
	struct buf held; /* input that cannot be taken yet: a body that nobody wants, a pipelined
			    request */
	struct deferred take_held;
	bool pipelined; /* the reader stands in the BEGIN_REQUEST that follows the current request
			 */
	bool peer_ended;
	uint64_t discarded; /* bytes, in SKIP and LINGER */
	int64_t discard_until_us;
};

struct front {
	struct loop *loop;
	struct front_settings settings;
	const struct front_handler *handler;
	void *context;
	struct head_parser *parser;
	struct front_listener *listeners;
	struct conn_list idle, active;
	counter_cell faults[FRONT_FAULTS];
	bool stopping, accepting;
	struct deferred empty;
};

static inline struct front_conn *
conn_of(const struct front_request *request)
{
	return (struct front_conn *)((uintptr_t)request - offsetof(struct front_conn, request));
}

/* ---- front.c ---- */

/* Takes it out of the list that it is in and appends it to `list`, or to none if that is NULL. */
void front_move(struct front_conn *conn, struct conn_list *list);

/* ---- conn.c ---- */

/* Takes the descriptor, also when it fails. */
int conn_open(struct front *front, int fd, void *listener) WEIR_MUST_CHECK;

/* Closes and frees. The request's owner must have been told. */
void conn_close(struct front_conn *conn);

void conn_go(struct front_conn *conn, enum conn_state state);

/* In SKIP and LINGER: `len` bytes were read and forgotten. False: it is enough. */
bool conn_discard(struct front_conn *conn, size_t len);

/* The request's owner is told that nobody waits for it any more. */
void conn_lose_request(struct front_conn *conn, enum front_gone why);

/* The end of the body that has come is told, once it is wanted. */
void conn_tell_body_end(struct front_conn *conn);

/* The body's deadline, set anew or taken away as the request stands. */
void conn_set_body_deadline(struct front_conn *conn);

/* ---- records.c: what the web server sends ---- */

/* Takes input as far as the state allows and holds the rest. False: the connection has been closed.
 */
bool conn_take(struct front_conn *conn, struct slice input);

/* ---- answer.c ---- */

/* Answers in band that the head cannot be served, and lingers. */
void conn_refuse(struct front_conn *conn, unsigned status, const char *reason, const char *why);

/* ---- head.c: libfcgi ---- */

struct head_parser;

struct head_parser *head_parser_new(struct err *err) WEIR_MUST_CHECK;
void head_parser_free(struct head_parser *parser);

enum head_result { HEAD_SOUND, HEAD_BAD, HEAD_TOO_LARGE };

/* Checks request->params and fills request->env. err says what is wrong. */
enum head_result head_parse(struct head_parser *parser, struct front_request *request,
	uint64_t max_params, struct err *err) WEIR_MUST_CHECK;

/* CONTENT_LENGTH; UINT64_MAX if there is none. -1: err says why it cannot be. */
int head_content_length(
	const struct front_request *request, uint64_t *length, struct err *err) WEIR_MUST_CHECK;

/* Whether mod_fcgid started this process and sent the request. */
bool head_is_from_mod_fcgid(const struct front_request *request);

/* ---- manage.c ---- */

/* Answers a management record (id 0). */
void manage_answer(struct front_conn *conn, uint8_t type, struct slice content);

#endif
