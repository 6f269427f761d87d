/* Response heads, in two pieces: what is read must be written in a form that reads back as the
 * same. */
#include "weir/cgi_head.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum cgi_head_result
read_two(struct cgi_head_reader *reader, struct slice first, struct slice second,
	struct cgi_head *head)
{
	struct err err;
	enum cgi_head_result result = cgi_head_read(reader, &first, head, &err);

	return result == CGI_HEAD_MORE ? cgi_head_read(reader, &second, head, &err) : result;
}

static void
read_back(const struct cgi_head *head)
{
	struct arena arena;
	struct cgi_head_reader reader;
	struct cgi_head again;
	struct buf out;

	buf_init(&out, 2 * CGI_HEAD_MAX);
	arena_init(&arena, 1024 * 1024);
	cgi_head_reader_init(&reader, &arena);
	if (cgi_head_write(head, (struct slice){ NULL, 0 }, &out) == 0 && out.len <= CGI_HEAD_MAX) {
		const enum cgi_head_result result =
			read_two(&reader, buf_slice(&out), (struct slice){ NULL, 0 }, &again);

		assert(result == CGI_HEAD_DONE && again.status == head->status);
		assert(again.content_length == head->content_length);
	}
	cgi_head_reader_release(&reader);
	arena_release(&arena);
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t cut = size == 0 ? 0 : data[0] % size;
	struct arena arena;
	struct cgi_head_reader reader;
	struct cgi_head head;

	arena_init(&arena, 1024 * 1024);
	cgi_head_reader_init(&reader, &arena);
	if (read_two(&reader, slice_make(data, cut), slice_make(data + cut, size - cut), &head) ==
		CGI_HEAD_DONE)
		read_back(&head);
	cgi_head_reader_release(&reader);
	arena_release(&arena);
	return 0;
}
