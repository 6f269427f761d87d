/* What a stream tells is written down here; the tests judge it. */
#include "end.h"

#include <stdlib.h>

struct loop *loop;
struct directory directory;

int
end_set_up(void **state)
{
	struct err err;

	(void)state;
	loop = loop_new(&err);
	directory_make(&directory);
	return loop == NULL ? -1 : 0;
}

int
end_tear_down(void **state)
{
	(void)state;
	loop_free(loop);
	directory_remove(&directory);
	return 0;
}

/* Byte `at` of what is sent in these tests. */
static char
pattern_byte(uint64_t at)
{
	return (char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

void
end_fill(char *out, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		out[i] = pattern_byte(at + i);
}

/* ---- the call backs ---- */

static void
came(struct end *end, enum call call)
{
	end->called_after_close = end->called_after_close || end->stream == NULL;
	end->called_within = end->called_within || end->within;
	end->calls |= (unsigned)call;
	end->count++;
	if ((end->close_in & (unsigned)call) != 0) {
		stream_close(end->stream);
		end->stream = NULL;
	}
	loop_stop(loop);
}

static void
on_input(void *context, struct slice data)
{
	struct end *end = context;

	for (size_t i = 0; i < data.len; i++)
		end->is_out_of_order =
			end->is_out_of_order || data.ptr[i] != pattern_byte(end->got + i);
	end->got += data.len;
	came(end, CALL_INPUT);
}

static void
on_eof(void *context)
{
	struct end *end = context;

	end->eofs++;
	came(end, CALL_EOF);
}

static void
on_drained(void *context)
{
	struct end *end = context;

	end->drains++;
	came(end, CALL_DRAINED);
	if (end->stream != NULL && end->on_drained != NULL)
		end->on_drained(end);
}

static void
on_finished(void *context)
{
	struct end *end = context;

	end->finishes++;
	came(end, CALL_FINISHED);
}

static void
on_connected(void *context)
{
	came(context, CALL_CONNECTED);
}

static void
on_failed(void *context, int error)
{
	struct end *end = context;

	end->error = error;
	came(end, CALL_FAILED);
}

static void
on_expired(void *context)
{
	came(context, CALL_EXPIRED);
}

const struct stream_handler end_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.finished = on_finished,
	.connected = on_connected,
	.failed = on_failed,
	.expired = on_expired };

void
end_open(struct end *end, int fd)
{
	*end = (struct end){ 0 };
	end->stream = stream_new(loop, fd, &end_handler, end);
	assert_non_null(end->stream);
	stream_resume(end->stream);
}

void
end_close(struct end *end)
{
	stream_close(end->stream);
	end->stream = NULL;
	run_loop_once(loop);
	assert_false(end->called_after_close);
	assert_false(end->called_within);
	assert_false(end->is_out_of_order);
}

void
end_write(struct end *end, size_t len, uint64_t at, size_t head_len)
{
	char *bytes = malloc(len + 1);

	assert_non_null(bytes);
	end_fill(bytes, len, at);
	end->within = true;
	if (head_len == 0)
		stream_write(end->stream, slice_make(bytes, len));
	else
		stream_write_pair(end->stream, slice_make(bytes, head_len),
			slice_make(bytes + head_len, len - head_len));
	end->within = false;
	free(bytes);
}

struct pair
end_narrow_pair(enum pair_kind kind)
{
	const struct pair pair = pair_open(kind);

	socket_limit_buffers(pair.ours, 65536);
	socket_limit_buffers(pair.theirs, 65536);
	return pair;
}

/* ---- reading peers ---- */

static void *
read_all(void *context)
{
	struct reader *reader = context;
	char *bytes = malloc(65536);
	uint64_t random = 21;
	ssize_t n = 1;

	while (!reader->may_read)
		(void)poll(NULL, 0, 1);
	while (bytes != NULL && n > 0) {
		n = recv(reader->fd, bytes,
			1 + random_below(&random, reader->is_slow ? 3000 : 65536), 0);
		for (ssize_t i = 0; i < n; i++)
			reader->is_out_of_order = reader->is_out_of_order ||
				bytes[i] != pattern_byte(reader->got + (uint64_t)i);
		reader->got += n > 0 ? (uint64_t)n : 0;
	}
	free(bytes);
	return NULL;
}

void
reader_start(struct reader *reader, int fd, bool at_once)
{
	*reader = (struct reader){ .fd = fd, .may_read = at_once };
	assert_int_equal(pthread_create(&reader->thread, NULL, read_all, reader), 0);
}

uint64_t
reader_wait(struct reader *reader)
{
	reader->may_read = true;
	assert_int_equal(pthread_join(reader->thread, NULL), 0);
	assert_false(reader->is_out_of_order);
	return reader->got;
}
