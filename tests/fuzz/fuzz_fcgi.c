/* Records: the same events however the bytes are cut; parameters: what is read can be written
 * again. */
#include "weir/fcgi.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sum over everything that is told, with pieces of content run together. */
static uint64_t
digest(const uint8_t *data, size_t size, size_t step)
{
	struct fcgi_reader reader;
	uint64_t sum = 14695981039346656037U;

	fcgi_reader_init(&reader);
	for (size_t at = 0; at < size; at += step) {
		struct slice input = slice_make(data + at, size - at < step ? size - at : step),
			     content;

		for (;;) {
			const enum fcgi_event event = fcgi_read(&reader, &input, &content);

			if (event == FCGI_NEED_MORE)
				break;
			if (event == FCGI_BAD)
				return sum;
			if (event != FCGI_CONTENT)
				sum = (sum ^ (uint64_t)event) * 1099511628211U;
			for (size_t i = 0; event == FCGI_CONTENT && i < content.len; i++)
				sum = (sum ^ (uint8_t)content.ptr[i]) * 1099511628211U;
		}
	}
	return sum;
}

static void
pairs(struct slice rest)
{
	struct slice name, value;
	struct buf out;

	buf_init(&out, 1024 * 1024);
	while (fcgi_pair_next(&rest, &name, &value) > 0) {
		const size_t before = out.len;

		if (fcgi_pair_put(&out, name, value) != 0)
			break;
		assert(out.len - before == fcgi_pair_size(name.len, value.len));
	}
	struct buf records;

	buf_init(&records, 2 * 1024 * 1024);
	if (fcgi_params_put(&records, 1, buf_slice(&out)) != 0)
		assert(out.len > FCGI_CONTENT_MAX);
	buf_release(&records);
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t whole = digest(data, size, size == 0 ? 1 : size);

	assert(digest(data, size, 1) == whole && digest(data, size, 7) == whole);
	pairs(slice_make(data, size));
	return 0;
}
