/*
 * The head of a CGI or FastCGI response (RFC 3875 section 6), read and brought into the one form
 * that every web server understands: `Status: NNN Reason` first, one field a line, no folding,
 * nothing that could be taken for another field. What the servers make of other forms is in no
 * standard and differs between them.
 *
 * Taken: LF and CRLF as line ends; a status line `HTTP/1.1 200 OK` in place of Status
 * (non-parsed-header programs); blanks before the colon; folded lines, which are joined by one
 * space; interim responses (1xx), which are dropped together with their fields. A bare CR ends no
 * line: no web server takes it for one, and a program that lets a client's CR through must not be
 * made to send one more field.
 *
 * Removed: Status (several: the first valid one counts), what is between two neighbours (RFC 9110
 * section 7.6.1: Connection, Keep-Alive, Proxy-Connection, TE, Trailer; not Upgrade, which a 426
 * needs), Transfer-Encoding (reported as `chunked`), Content-Length that is no number or was there
 * before, and lines that are no field: no colon, a name that is no token (RFC 9110 section 5.6.2),
 * a value with a control character other than tab. A missing status is 200, or 302 with a Location
 * field. A missing reason is filled in.
 *
 * Bad, so 502: not one valid field or status; more than CGI_HEAD_MAX bytes, interim responses
 * counted in; more than CGI_FIELDS_MAX fields; only invalid Status fields; Content-Length fields
 * that differ, or one together with Transfer-Encoding; a transfer coding other than chunked. A head
 * without its blank line is bad too, but only the caller sees the output end.
 */
#ifndef WEIR_CGI_HEAD_H
#define WEIR_CGI_HEAD_H

#include "weir/arena.h"
#include "weir/buf.h"
#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

enum { CGI_HEAD_MAX = 65536, CGI_FIELDS_MAX = 512 };

struct cgi_field {
	struct slice name, value;
	bool removed; /* by cgi_head_remove */
};

struct cgi_head {
	unsigned status; /* 200 to 599 */
	struct slice reason; /* not empty */
	struct cgi_field *fields;
	unsigned field_count;
	int64_t content_length; /* -1: not given */
	bool chunked; /* the body is in chunks (RFC 9112 section 7.1) and must be decoded */
	unsigned dropped; /* lines left out because they were malformed */
};

struct cgi_head_reader {
	struct arena *arena; /* takes the fields; the head is valid as long as it and the last input
				are */
	struct buf bytes; /* gathered only if the head does not come in one piece */
	size_t taken; /* bytes of the head so far, and of the interim ones before it */
};

enum cgi_head_result {
	CGI_HEAD_MORE, /* all input was taken; more is needed */
	CGI_HEAD_DONE, /* *head is filled; *input is what follows the blank line */
	CGI_HEAD_BAD, /* err says why; nothing more can be read */
};

void cgi_head_reader_init(struct cgi_head_reader *reader, struct arena *arena);
void cgi_head_reader_release(struct cgi_head_reader *reader);

/* The slices in *head point into *input, the reader or the arena: use them before the next call and
 * before the input goes. */
enum cgi_head_result cgi_head_read(struct cgi_head_reader *reader, struct slice *input,
	struct cgi_head *head, struct err *err) WEIR_MUST_CHECK;

/* The first field of that name, case ignored; NULL if there is none. */
struct cgi_field *cgi_head_find(const struct cgi_head *head, struct slice name);

/* Takes every field of that name out. Returns how many there were. */
unsigned cgi_head_remove(struct cgi_head *head, struct slice name);

/*
 * Appends the head in its normal form, `extra` (whole lines with CRLF, or empty) after its fields,
 * and the blank line. -1 if the buffer is full; it is then as before.
 */
int
cgi_head_write(const struct cgi_head *head, struct slice extra, struct buf *out) WEIR_MUST_CHECK;

/* The phrase of a status in IANA's registry ("Too Many Requests"), or one for its class ("Client
 * Error"). */
const char *cgi_reason(unsigned status);

#endif
