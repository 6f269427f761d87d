/* What one head's lines have said so far; shared by the files that read a response head. */
#ifndef WEIR_WIRE_CGI_PRIVATE_H
#define WEIR_WIRE_CGI_PRIVATE_H

#include "weir/cgi_head.h"

struct cgi_parse {
	struct cgi_head *head; /* fields has room for field_room of them */
	unsigned field_room;
	bool understood; /* at least one line was a field or a status */
	bool bad_status; /* a status was there that is none */
	bool has_location;
};

/* One line, unfolded, without its end and not empty. -1: the head is bad. */
int cgi_parse_field(struct cgi_parse *parse, struct slice line, struct err *err) WEIR_MUST_CHECK;

/* `HTTP/1.1 200 OK`. False if the line is no status line. */
bool cgi_parse_status_line(struct cgi_parse *parse, struct slice line);

/* Behind the last line: fills in what was not said. -1: the head is bad. */
int cgi_parse_end(struct cgi_parse *parse, struct err *err) WEIR_MUST_CHECK;

/* Without blanks at its end. Not slice_trim: a line that begins with a blank is the continuation of
 * nothing and must not become a field. */
static inline struct slice
cgi_trim_end(struct slice s)
{
	while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

#endif
