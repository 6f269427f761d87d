/*
 * What comes back. Of an answer only its status and its end are of interest: END_REQUEST, or where
 * HTTP/1.1 says that a message ends (RFC 9112 section 6). Bytes behind the end were not asked for
 * and make the answer a broken one.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FCGI_END = 3, FCGI_STDOUT = 6, FCGI_STDERR = 7 };

void
answer_init(struct answer *answer, bool is_http)
{
	const size_t head = offsetof(struct answer, head);

	/* The head's room is left as it is: clearing it would cost more than the answer. */
	memset(answer, 0, head);
	memset((char *)answer + head + HEAD_SIZE, 0, sizeof *answer - head - HEAD_SIZE);
	answer->is_http = is_http;
	answer->head[0] = '\0';
}

/* The value of a field in the gathered head, or NULL. */
static const char *
field(const char *head, const char *name)
{
	const size_t len = strlen(name);

	for (const char *line = head; line != NULL && *line != '\0';) {
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	return NULL;
}

static bool
has_word(const char *value, const char *word)
{
	return value != NULL && strncasecmp(value, word, strlen(word)) == 0;
}

static bool
http_head_complete(struct answer *answer)
{
	const char *length = field(answer->head, "Content-Length");

	if (strncmp(answer->head, "HTTP/1.", 7) != 0)
		return false;
	answer->status = atoi(answer->head + 9);
	answer->closes = has_word(field(answer->head, "Connection"), "close");
	answer->is_chunked = has_word(field(answer->head, "Transfer-Encoding"), "chunked");
	answer->left = length == NULL ? 0 : strtoull(length, NULL, 10);
	if (answer->status == 204 || answer->status == 304)
		answer->left = 0;
	else
		answer->until_close = !answer->is_chunked && length == NULL;
	return answer->status >= 200 && answer->status < 600;
}

static bool
fastcgi_head_complete(struct answer *answer)
{
	const char *status = field(answer->head, "Status");

	answer->status = status == NULL ? 200 : atoi(status);
	return answer->status >= 200 && answer->status < 600;
}

/* Gathers the head up to its blank line. Returns how many bytes it took; 0 with *bad: it is none.
 */
static size_t
take_head(struct answer *answer, const char *bytes, size_t len, bool *bad)
{
	for (size_t i = 0; i < len; i++) {
		if (answer->head_len + 1 == HEAD_SIZE) {
			*bad = true;
			return 0;
		}
		answer->head[answer->head_len++] = bytes[i];
		if (bytes[i] != '\n' || answer->head_len < 2)
			continue;
		const char *end = answer->head + answer->head_len;

		if (end[-2] != '\n' && (answer->head_len < 3 || end[-2] != '\r' || end[-3] != '\n'))
			continue;
		answer->head[answer->head_len] = '\0';
		answer->in_body = true;
		*bad = answer->is_http ? !http_head_complete(answer)
				       : !fastcgi_head_complete(answer);
		return i + 1;
	}
	return len;
}

/* ---- HTTP ---- */

/* A byte of the lines between chunks. */
static bool
take_chunk_byte(struct answer *answer, char c)
{
	switch (answer->chunk_state) {
	case CHUNK_SIZE:
		if (c == '\n') {
			const uint64_t size = strtoull(answer->head, NULL, 16);

			answer->left = size;
			answer->chunk_state = size > 0 ? CHUNK_DATA : CHUNK_TRAILER;
			answer->head_len = 0;
			answer->line_has_bytes = false;
		} else if (answer->head_len < 32) {
			answer->head[answer->head_len++] = c;
			answer->head[answer->head_len] = '\0';
		}
		return false;
	case CHUNK_END:
		if (c == '\n') {
			answer->chunk_state = CHUNK_SIZE;
			answer->head_len = 0;
		}
		return false;
	case CHUNK_TRAILER:
		if (c == '\n') {
			const bool is_blank = !answer->line_has_bytes;

			answer->line_has_bytes = false;
			return is_blank;
		}
		answer->line_has_bytes = answer->line_has_bytes || c != '\r';
		return false;
	case CHUNK_DATA:
		return false;
	}
	return false;
}

static enum answer_state
take_chunks(struct answer *answer, const char *bytes, size_t len)
{
	while (len > 0) {
		if (answer->chunk_state == CHUNK_DATA) {
			const size_t piece = answer->left < len ? (size_t)answer->left : len;

			answer->left -= piece;
			bytes += piece;
			len -= piece;
			if (answer->left == 0)
				answer->chunk_state = CHUNK_END;
			continue;
		}
		len--;
		if (take_chunk_byte(answer, *bytes++))
			return len == 0 ? ANSWER_DONE : ANSWER_BROKEN;
	}
	return ANSWER_MORE;
}

static enum answer_state
take_http(struct answer *answer, const char *bytes, size_t len)
{
	bool bad = false;

	if (!answer->in_body) {
		const size_t taken = take_head(answer, bytes, len, &bad);

		if (bad)
			return ANSWER_BROKEN;
		bytes += taken;
		len -= taken;
		if (answer->in_body)
			answer->head_len = 0;
	}
	if (!answer->in_body || answer->until_close)
		return ANSWER_MORE;
	if (answer->is_chunked)
		return take_chunks(answer, bytes, len);
	if (len > answer->left)
		return ANSWER_BROKEN;
	answer->left -= len;
	return answer->left == 0 ? ANSWER_DONE : ANSWER_MORE;
}

/* ---- FastCGI ---- */

static bool
take_content(struct answer *answer, const char *bytes, size_t len)
{
	bool bad = false;

	if (answer->record[1] == FCGI_STDOUT && !answer->in_body)
		(void)take_head(answer, bytes, len, &bad);
	else if (answer->record[1] == FCGI_END && len <= sizeof answer->end - answer->end_len) {
		memcpy(answer->end + answer->end_len, bytes, len);
		answer->end_len += (unsigned)len;
	} else if (answer->record[1] == FCGI_END) {
		bad = true;
	}
	return !bad;
}

static size_t
at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Takes a record's next bytes; returns how many, 0 if it is none. */
static size_t
take_record(struct answer *answer, const char *bytes, size_t len)
{
	if (answer->record_len < sizeof answer->record) {
		const size_t piece = at_most(sizeof answer->record - answer->record_len, len);

		memcpy(answer->record + answer->record_len, bytes, piece);
		answer->record_len += (unsigned)piece;
		answer->content_left = (unsigned)answer->record[4] << 8 | answer->record[5];
		answer->padding_left = answer->record[6];
		const int type = answer->record[1];
		const bool is_known =
			type == FCGI_END || type == FCGI_STDOUT || type == FCGI_STDERR;

		return answer->record_len == sizeof answer->record &&
				(answer->record[0] != 1 || !is_known)
			? 0
			: piece;
	}
	if (answer->content_left > 0) {
		const size_t piece = at_most(answer->content_left, len);

		answer->content_left -= (unsigned)piece;
		return take_content(answer, bytes, piece) ? piece : 0;
	}
	const size_t piece = at_most(answer->padding_left, len);

	answer->padding_left -= (unsigned)piece;
	return piece;
}

static enum answer_state
take_fastcgi(struct answer *answer, const char *bytes, size_t len)
{
	while (len > 0) {
		const size_t taken = take_record(answer, bytes, len);

		if (taken == 0)
			return ANSWER_BROKEN;
		bytes += taken;
		len -= taken;
		if (answer->record_len < sizeof answer->record || answer->content_left > 0 ||
			answer->padding_left > 0)
			continue;
		answer->record_len = 0;
		if (answer->record[1] == FCGI_END)
			return len == 0 && answer->in_body && answer->end_len == 8 ? ANSWER_DONE
										   : ANSWER_BROKEN;
	}
	return ANSWER_MORE;
}

enum answer_state
answer_take(struct answer *answer, const char *bytes, size_t len)
{
	answer->has_begun = true;
	return answer->is_http ? take_http(answer, bytes, len) : take_fastcgi(answer, bytes, len);
}

enum answer_state
answer_eof(const struct answer *answer)
{
	return answer->is_http && answer->in_body && answer->until_close ? ANSWER_DONE
									 : ANSWER_BROKEN;
}
