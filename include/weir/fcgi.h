/*
 * FastCGI 1.0 on the wire: records and name-value pairs, without any I/O. The constants
 * (FCGI_STDIN, FCGI_RESPONDER and so on) are those of libfcgi's <fastcgi.h>. Section numbers are
 * those of the FastCGI specification 1.0.
 */
#ifndef WEIR_FCGI_H
#define WEIR_FCGI_H

#include "weir/buf.h"
#include "weir/slice.h"

#include <fastcgi.h>
#include <stdint.h>

/* The head of a record (3.3), in host order. */
struct fcgi_record {
	uint8_t type;
	uint16_t id;
	uint16_t len; /* of the content */
	uint8_t padding;
};

/*
 * Takes a stream of records apart, however it was cut. Content is handed out as it comes, so a
 * record is never gathered. Holds no memory.
 */
struct fcgi_reader {
	uint8_t head[FCGI_HEADER_LEN];
	unsigned head_len;
	struct fcgi_record record; /* the current one, once its head was there */
	uint32_t content_left;
	uint32_t padding_left;
	enum { FCGI_READ_HEAD, FCGI_READ_BODY } state;
};

enum fcgi_event {
	FCGI_NEED_MORE, /* the input is used up */
	FCGI_RECORD, /* reader->record is a new record */
	FCGI_CONTENT, /* *content is the next piece of its content, at least one byte */
	FCGI_RECORD_END, /* its content and padding have been read */
	FCGI_BAD, /* no FastCGI 1: the version is not 1. Nothing more can be read. */
};

void fcgi_reader_init(struct fcgi_reader *reader);

/* Consumes from *input up to the next event. *content is a view into *input. */
enum fcgi_event fcgi_read(struct fcgi_reader *reader, struct slice *input, struct slice *content);

/* Whether the reader stands between two records. */
static inline bool
fcgi_reader_is_between(const struct fcgi_reader *reader)
{
	return reader->state == FCGI_READ_HEAD && reader->head_len == 0;
}

/* BEGIN_REQUEST (5.1) and END_REQUEST (5.5) bodies; `content` has 8 bytes. */
struct fcgi_begin {
	uint16_t role;
	uint8_t flags;
};

struct fcgi_end {
	uint32_t app_status;
	uint8_t protocol_status;
};

struct fcgi_begin fcgi_begin_of(const uint8_t content[8]);
struct fcgi_end fcgi_end_of(const uint8_t content[8]);

void fcgi_put_head(
	uint8_t out[FCGI_HEADER_LEN], uint8_t type, uint16_t id, uint16_t len, uint8_t padding);

/* A whole record of head and 8-byte body. */
void fcgi_put_begin(uint8_t out[16], uint16_t id, uint16_t role, uint8_t flags);
void fcgi_put_end(uint8_t out[16], uint16_t id, uint32_t app_status, uint8_t protocol_status);

/*
 * Cuts the next name-value pair (3.4) off *pairs. 1: a pair; 0: the end; -1: lengths that reach
 * beyond the end. Both length forms are taken, the long one for short lengths too.
 */
int fcgi_pair_next(struct slice *pairs, struct slice *name, struct slice *value);

/* Bytes that the pair takes on the wire. */
size_t fcgi_pair_size(size_t name_len, size_t value_len);

/* Appends a pair. -1 if the buffer is full or a length takes more than 31 bits. */
int fcgi_pair_put(struct buf *out, struct slice name, struct slice value) WEIR_MUST_CHECK;

/*
 * The longest content we put into a record of a parameter stream: a multiple of 8 below 65535, so
 * that no peer's sum of content and padding overflows 16 bits (php-fpm's does).
 */
enum { FCGI_CONTENT_MAX = 65528 };

/*
 * Appends `pairs`, which are sound, as PARAMS records with the empty one that ends them. A pair is
 * never split over two records (php-fpm parses each record alone). -1 if a pair is longer than
 * FCGI_CONTENT_MAX or the buffer is full; *out may then hold a part.
 */
int fcgi_params_put(struct buf *out, uint16_t id, struct slice pairs) WEIR_MUST_CHECK;

#endif
