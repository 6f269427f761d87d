/*
 * One connection from a web server and the request on it. Private to the room.
 *
 *     IDLE --BEGIN--> HEAD --empty PARAMS--> BUSY --front_end--> IDLE, SKIP or LINGER
 *                      '----refused----> LINGER
 *
 *     IDLE    kept, the body read to its end
 *     SKIP    kept, the rest of the body is read on; then IDLE, at the next BEGIN at the latest
 *     LINGER  all others: what is queued leaves, our side is shut, theirs read to its end
 *
 * conn_go is the one function that changes the state.
 */
#ifndef WEIR_FRONT_CONN_H
#define WEIR_FRONT_CONN_H

#include "weir/buf.h"
#include "weir/counter.h"
#include "weir/fcgi.h"
#include "weir/front.h"
#include "weir/log.h"
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
	bool has_promised; /* a Content-Length, see front_promise_length */
	uint32_t error_text_sent;
};

/* Why a connection or a request was refused; a label of weir_protocol_errors_total. */
enum front_fault {
	FAULT_NOT_FASTCGI,
	FAULT_ORDER, /* a record where it has no place */
	FAULT_LENGTH, /* a record of a length that its type cannot have */
	FAULT_BAD_PARAMS,
	FAULT_HEAD_TOO_LARGE,
	FAULT_SHORT_BODY, /* a body that ended before its CONTENT_LENGTH */
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
			    request, what is answered by us while answers are not read */
	bool holding; /* and the stream is paused, unless it looks ahead; `held` may be empty */
	bool looks_ahead; /* what comes is held, and looked at: see ahead.c */
	struct fcgi_reader ahead; /* behind what has been looked at */
	struct deferred take_held;
	bool pipelined; /* the reader stands in the BEGIN_REQUEST that follows the current request
			 */
	bool peer_ended;
	int64_t head_until_us; /* by then a request's head is there; 0: none has begun to come */
	uint64_t discarded; /* bytes, in SKIP and LINGER */
	int64_t discard_until_us; /* 0: not before all that is queued has left */
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
	struct log_throttle send_log, shortage_log;
	int plenty; /* descriptors below this are for idle connections, too */
	bool stopping, accepting;
	enum front_rest rest; /* when stopping */
	struct deferred empty;
	struct deferred shrink; /* there are more than max_connections */
};

static inline struct front_conn *
conn_of(const struct front_request *request)
{
	return (struct front_conn *)((uintptr_t)request - offsetof(struct front_conn, request));
}

/* ---- front.c ---- */

/* Takes it out of the list that it is in and appends it to `list`, or to none if that is NULL. */
void front_move(struct front_conn *conn, struct conn_list *list);

/* Memory or descriptors are out, which is not the peer's doing: counted and logged. */
void front_note_shortage(struct front *front, const char *what);

/* ---- conn.c ---- */

/* Takes the descriptor, and closes it if memory is out. */
void conn_open(struct front *front, int fd, void *listener);

/* Closes and frees. The request's owner must have been told. */
void conn_close(struct front_conn *conn);

void conn_go(struct front_conn *conn, enum conn_state state);

/* The request's owner is told that nobody waits for it any more. */
void conn_lose_request(struct front_conn *conn, enum front_gone why);

/* The end of the body that has come is told, once it is wanted. */
void conn_tell_body_end(struct front_conn *conn);

/* The deadline of a request that is busy, set anew or taken away as it stands: of a body that is
 * waited for, or when one that is held is to be looked behind. */
void conn_set_body_deadline(struct front_conn *conn);

/* While we stop: what has begun to come, but is no request yet, has a second of silence left. */
void conn_hasten(struct front_conn *conn);

/* ---- ahead.c: what comes behind a body that is held ---- */

/* Whether the request may be given up unseen, as something of it is not read. */
bool ahead_may_begin(const struct front_conn *conn);

/* Reads on and looks for FCGI_ABORT_REQUEST and the end. The request may be gone behind it. */
void ahead_begin(struct front_conn *conn);

/* What comes while `holding`, behind what is held. Without memory the connection is closed. */
void ahead_take(struct front_conn *conn, struct slice input);

/* ---- linger.c: what nobody wants any more ---- */

/* SKIP and LINGER are entered. */
void linger_skip(struct front_conn *conn);
void linger_begin(struct front_conn *conn);

/* All that was queued has left, and our side is shut. */
void linger_on_finished(struct front_conn *conn);

/* `len` bytes were read and forgotten. False: it is enough. */
bool linger_discard(struct front_conn *conn, size_t len);

/* Whether what comes is discarded for too long. */
bool linger_is_over(const struct front_conn *conn);

/* An idle connection goes, but not before its last answer has left. */
void linger_dismiss(struct front_conn *conn);

/* ---- records.c: what the web server sends ---- */

/* Takes input as far as the state allows and holds the rest. False: the connection has been closed.
 */
bool conn_take(struct front_conn *conn, struct slice input);

/* Whether what stands at the reader cannot be taken yet. */
bool conn_must_hold(const struct front_conn *conn);

/* Appends to what is held. False: there is no memory, and the connection has been closed. */
bool conn_keep(struct front_conn *conn, struct slice input);

/* ---- request.c: what the records of a request mean ---- */

void request_begin(struct front_conn *conn);
void request_params(struct front_conn *conn, struct slice content);
void request_head_complete(struct front_conn *conn);
void request_stdin(struct front_conn *conn, struct slice content);
void request_body_complete(struct front_conn *conn);
void request_abort(struct front_conn *conn);

/* ---- answer.c ---- */

/* What the front refuses by itself. */
enum front_refusal {
	REFUSAL_BAD_HEAD, /* 400 */
	REFUSAL_SHORT_BODY, /* 400 */
	REFUSAL_BODY_TIMEOUT, /* 408 */
	REFUSAL_LARGE_HEAD, /* 431 */
	REFUSAL_SHORTAGE, /* 503 */
	FRONT_REFUSALS
};

/* Answers in band that the request cannot be served, and lingers. If an answer has begun it is cut
 * instead. */
void conn_refuse(struct front_conn *conn, enum front_refusal refusal, const char *why);

/* ---- head.c ---- */

struct head_parser;

enum head_result {
	HEAD_SOUND,
	HEAD_BAD,
	HEAD_TOO_LARGE,
	HEAD_SHORTAGE, /* memory or descriptors are out: not the peer's doing */
};

/* Checks request->params, where one CONTENT_LENGTH is left if there are several that agree, and
 * fills request->env and request->body_length. err says what is wrong. */
enum head_result head_parse(struct head_parser *parser, struct front_request *request,
	uint64_t max_params, struct err *err) WEIR_MUST_CHECK;

/* -1: there are two clients' addresses, and err says so. */
int head_check_address(const struct front_request *request, struct err *err) WEIR_MUST_CHECK;

/* Whether mod_fcgid started this process and sent the request. */
bool head_is_from_mod_fcgid(const struct front_request *request);

/* It connects. */
bool head_is_from_mod_proxy_fcgi(const struct front_request *request);

/* ---- libfcgi.c ---- */

struct head_parser *head_parser_new(struct err *err) WEIR_MUST_CHECK;
void head_parser_free(struct head_parser *parser);

/* Fills request->env from its sound parameters, `count` pairs. */
enum head_result libfcgi_parse(struct head_parser *parser, struct front_request *request,
	size_t count, struct err *err) WEIR_MUST_CHECK;

/* The same from a file that holds the records of a head; one that does not end there is HEAD_BAD.
 * *file is -1 afterwards if libfcgi has closed it. */
enum head_result
libfcgi_read(int *file, struct front_request *request, struct err *err) WEIR_MUST_CHECK;

/* ---- manage.c ---- */

/* Answers a management record (id 0). */
void manage_answer(struct front_conn *conn, uint8_t type, struct slice content);

#endif
