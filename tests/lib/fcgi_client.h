/*
 * A web server's side, raw: what it sends is bytes, and what comes back is taken apart record by
 * record. Made for one request at a time, as all web servers do it.
 */
#ifndef WEIR_TESTS_LIB_FCGI_CLIENT_H
#define WEIR_TESTS_LIB_FCGI_CLIENT_H

#include "fcgi_peer.h"

struct request_spec {
	const char *const *params; /* name, value ..., NULL; or NULL */
	struct slice body;
	uint16_t id; /* 0: 1 */
	uint16_t role; /* 0: FCGI_RESPONDER */
	bool keep; /* FCGI_KEEP_CONN */
};

/* BEGIN_REQUEST and the parameters with their end. */
void put_head(struct buf *out, const struct request_spec *spec);

/* So much of the body of request 1, zeros, and its end. False if it is not taken. */
bool send_body(int fd, size_t len, bool with_end);

/* The whole request, as nginx would send it. An authorizer gets no STDIN. */
void put_request(struct buf *out, const struct request_spec *spec);

struct answer {
	struct buf out, err; /* FCGI_STDOUT, FCGI_STDERR */
	bool out_ended, ended; /* by an empty record; by END_REQUEST */
	uint32_t app_status;
	uint8_t protocol_status;
	uint8_t reserved[3];
	unsigned strays; /* records of other ids or of types that have no place there */
	enum got got; /* GOT_RECORD: up to END_REQUEST */
};

/* Reads up to END_REQUEST, or to the end of the connection. */
void answer_read(struct answer *answer, int fd, uint16_t id);
void answer_release(struct answer *answer);

/* Sends a request and reads its answer on a connection that is open. */
void answer_to(struct answer *answer, int fd, const struct request_spec *spec);

/* Of "Status: NNN Reason", if that is the first line; else 0. */
unsigned answer_status(const struct answer *answer);

/* A field's value, the name's case ignored; ptr NULL if it is not there. */
struct slice answer_field(const struct answer *answer, const char *name);

/* How many fields there are of that name. */
unsigned answer_field_count(const struct answer *answer, const char *name);

struct slice answer_body(const struct answer *answer);

/* Whether all is there: STDOUT and its end, END_REQUEST with REQUEST_COMPLETE, nothing else. */
bool answer_is_whole(const struct answer *answer);

#endif
