/*
 * The parts of fcgi_load: what is sent, what comes back, and what is counted. They know nothing of
 * weir's code, so that a mistake made there is not made here as well.
 */
#ifndef FCGI_LOAD_H
#define FCGI_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

enum { NAMES_MAX = 64 };

/* A FastCGI parameter, or a field of an HTTP request. */
struct name_value {
	const char *name, *value;
};

struct plan {
	struct sockaddr_storage address;
	socklen_t address_len;
	bool is_http; /* else FastCGI */
	bool keep; /* FCGI_KEEP_CONN; HTTP connections are always kept */
	const char *path, *host;
	const char *script; /* SCRIPT_FILENAME; NULL: none */
	struct name_value names[NAMES_MAX];
	unsigned name_count;
	uint64_t vary; /* that many different paths and client addresses; 0: one */

	double rate; /* requests a second; 0: closed loop */
	double seconds; /* of an open loop */
	uint64_t clients, requests; /* of a closed loop: connections, requests on each */
	double ramp; /* clients that begin a second; 0: all at once */
	bool stays; /* what has been asked keeps its connection until the end is marked */
	uint64_t connections_max; /* of an open loop */
	double timeout; /* of a request, in seconds */
	bool has_marks; /* lines on standard input begin new phases */
	FILE *each; /* a line for each request, see load_connection.c; NULL: none */
};

int64_t now_us(void);

/* ---- load_request.c ---- */

enum { REQUEST_SIZE = 65536 };

/* Writes request number `n`; returns its length, 0 if it does not fit. */
size_t request_write(const struct plan *plan, uint64_t n, char out[REQUEST_SIZE]);

/* ---- load_answer.c ---- */

enum { HEAD_SIZE = 32768 };

enum answer_state { ANSWER_MORE, ANSWER_DONE, ANSWER_BROKEN };

/* An answer as it comes. */
struct answer {
	bool is_http;
	bool has_begun;
	bool in_body;
	int status; /* 0 until the head is whole */
	bool closes; /* the peer will close behind it */
	char head[HEAD_SIZE];
	size_t head_len;

	/* HTTP */
	bool is_chunked, until_close;
	enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER } chunk_state;
	uint64_t left; /* of the body or of a chunk */
	bool line_has_bytes;

	/* FastCGI */
	unsigned char record[8];
	unsigned record_len;
	unsigned content_left, padding_left;
	unsigned char end[8];
	unsigned end_len;
};

void answer_init(struct answer *answer, bool is_http);

/* Takes all of the bytes; what is behind the end of the answer is an error. */
enum answer_state answer_take(struct answer *answer, const char *bytes, size_t len);

/* The peer has closed. */
enum answer_state answer_eof(const struct answer *answer);

/* ---- load_count.c ---- */

enum failure {
	FAILED_CONNECT,
	FAILED_CLOSED, /* before the answer's first byte */
	FAILED_CUT, /* behind it */
	FAILED_TIMEOUT,
	FAILURES
};

struct phase {
	struct phase *next;
	char name[32];
	int64_t began_us;
	uint64_t started;
	uint64_t status[600];
	uint64_t failed[FAILURES];
	uint32_t *latencies; /* of what was answered, in microseconds */
	size_t latency_count, latency_room;
};

struct phase *phase_new(const char *name, int64_t now);
void phase_answered(struct phase *phase, int status, int64_t latency_us);

/* One line of JSON with all phases. */
void phases_print(struct phase *first, int64_t end_us, FILE *out);
void phases_free(struct phase *first);

#endif
