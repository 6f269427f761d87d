/*
 * FastCGI records as a peer of weir's makes and reads them. An encoder and a decoder of the tests'
 * own, so that a fault of weir's codec does not hide itself. Writing goes into a buffer, which can
 * then be cut, mutated and sent as a test likes.
 */
#ifndef WEIR_TESTS_LIB_FCGI_PEER_H
#define WEIR_TESTS_LIB_FCGI_PEER_H

#include "weir/buf.h"

#include <fastcgi.h>
#include <stdint.h>

enum { RECORD_MAX = 65535 };

/* A buffer for what a test sends. */
void bytes_init(struct buf *bytes);
void bytes_add(struct buf *bytes, struct slice s);

void put_record(struct buf *out, uint8_t type, uint16_t id, struct slice content, uint8_t padding);
void put_begin(struct buf *out, uint16_t id, uint16_t role, uint8_t flags);
void put_end(struct buf *out, uint16_t id, uint32_t app_status, uint8_t protocol_status);

/* A stream in records of `piece` bytes, without the empty one that ends it. */
void put_stream(struct buf *out, uint8_t type, uint16_t id, struct slice bytes, size_t piece);

/* Lengths below 128 take one byte, the others four. */
void put_pair(struct buf *out, struct slice name, struct slice value);

/* Name, value, name, value ..., NULL. */
void put_pairs(struct buf *out, const char *const *pairs);

struct record {
	uint8_t type;
	uint16_t id;
	uint16_t len;
	uint8_t content[RECORD_MAX];
};

enum got {
	GOT_RECORD,
	GOT_END, /* the other side has shut down or closed, between two records */
	GOT_CUT, /* the same within a record, or a reset */
	GOT_NOTHING, /* for as long as the socket waits */
};

/* Reads one record from a blocking socket. */
enum got read_record(int fd, struct record *record);

#endif
