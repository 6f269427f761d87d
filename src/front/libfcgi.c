/*
 * The one place that knows libfcgi. It parses heads, and it is given nothing else: it blocks, reads
 * ahead, lingers on close, aborts on absurd lengths and when memory is out, and reports success for
 * heads that were cut short. So a head comes here when it is whole and was checked pair by pair
 * (head.c), and is handed over in its canonical form (BEGIN_REQUEST, PARAMS, empty PARAMS) in a
 * memory file, where nothing can be waited for. What an earlier, longer head has left in the file
 * stands behind the empty PARAMS, where libfcgi stops.
 *
 * The fields below envp of FCGX_Request are public in the header but not meant for use. Their
 * layout is the same from 2.4.2 to 2.4.7, the newest; what we rely on is asserted below.
 */
#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <fcgiapp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(sizeof(((FCGX_Request *)NULL)->ipcFd) == sizeof(int), "ipcFd holds a descriptor");
static_assert(offsetof(FCGX_Request, ipcFd) < offsetof(FCGX_Request, keepConnection) &&
		offsetof(FCGX_Request, keepConnection) < offsetof(FCGX_Request, detached),
	"the layout of FCGX_Request that weir knows");

enum { HEAD_ID = 1, HEAD_FILE_FIRST = 65536 };

/* A buffer of 8 KiB for each direction, the lists, and rounding. */
enum { LIBFCGI_BASE = 65536, LIBFCGI_PER_PAIR = 32 };

struct head_parser {
	int file; /* a memfd; -1: there is none, or libfcgi closed the last one */
	char *mapped;
	size_t size;
};

int
front_start(struct err *err)
{
	return FCGX_Init() == 0 ? 0 : err_set(err, "libfcgi cannot be initialised");
}

struct head_parser *
head_parser_new(struct err *err)
{
	struct head_parser *parser = calloc(1, sizeof *parser);

	if (parser == NULL) {
		(void)err_set(err, "no memory for the head parser");
		return NULL;
	}
	parser->file = -1;
	return parser;
}

static void
forget_file(struct head_parser *parser)
{
	if (parser->mapped != NULL)
		(void)munmap(parser->mapped, parser->size);
	parser->mapped = NULL;
	parser->file = -1;
}

void
head_parser_free(struct head_parser *parser)
{
	if (parser == NULL)
		return;
	if (parser->file >= 0)
		(void)close(parser->file);
	forget_file(parser);
	free(parser);
}

/* A file of at least `need` bytes, mapped. It only grows, up to what max_head makes of it. */
static int
open_file(struct head_parser *parser, size_t need, struct err *err)
{
	size_t size = HEAD_FILE_FIRST;

	if (parser->file >= 0 && need <= parser->size)
		return 0;
	while (size < need)
		size *= 2;
	if (parser->file >= 0)
		(void)close(parser->file);
	forget_file(parser);
	const int file = memfd_create("weir-head", MFD_CLOEXEC);
	void *mapped = MAP_FAILED;

	if (file >= 0 && ftruncate(file, (off_t)size) == 0)
		mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED) {
		(void)err_set(err, "the memory file for heads: %s", strerror(errno));
		if (file >= 0)
			(void)close(file);
		return -1;
	}
	*parser = (struct head_parser){ file, mapped, size };
	return 0;
}

static char *
put_record(char *at, uint8_t type, struct slice content)
{
	fcgi_put_head((uint8_t *)at, type, HEAD_ID, (uint16_t)content.len, 0);
	if (content.len > 0)
		memcpy(at + FCGI_HEADER_LEN, content.ptr, content.len);
	return at + FCGI_HEADER_LEN + content.len;
}

static int
write_canonical(struct head_parser *parser, const struct front_request *request, struct err *err)
{
	struct slice pairs = buf_slice(&request->params);
	const size_t records = pairs.len / FCGI_CONTENT_MAX + 1;

	if (open_file(parser, pairs.len + (records + 3) * FCGI_HEADER_LEN, err) != 0)
		return -1;
	char *at = parser->mapped;

	fcgi_put_begin((uint8_t *)at, HEAD_ID,
		request->role == FRONT_RESPONDER ? FCGI_RESPONDER : FCGI_AUTHORIZER,
		FCGI_KEEP_CONN);
	at += 16;
	while (pairs.len > 0) {
		const struct slice content = slice_first(pairs, FCGI_CONTENT_MAX);

		at = put_record(at, FCGI_PARAMS, content);
		pairs = slice_skip(pairs, content.len);
	}
	(void)put_record(at, FCGI_PARAMS, pairs);
	if (lseek(parser->file, 0, SEEK_SET) != 0)
		return err_set(err, "the memory file for heads: %s", strerror(errno));
	return 0;
}

/* libfcgi ends the process when an allocation fails. So what it will need is asked for before. */
static bool
has_memory(size_t pairs_len, size_t count)
{
	const size_t need = LIBFCGI_BASE + 2 * pairs_len + LIBFCGI_PER_PAIR * count;
	void *volatile probe = malloc(need); /* volatile: or the compiler leaves both calls out */
	const bool has = probe != NULL;

	free(probe);
	return has;
}

/* Without its first entry, FCGI_ROLE, which libfcgi made up. */
static enum head_result
copy_env(struct front_request *request, char *const *envp, struct err *err)
{
	size_t count = 0, bytes = 0;

	while (envp[count] != NULL)
		count++;
	if (count > 0) {
		envp++;
		count--;
	}
	for (size_t i = 0; i < count; i++)
		bytes += strlen(envp[i]) + 1;
	request->env = arena_alloc(&request->arena, (count + 1) * sizeof *request->env);
	char *at = arena_alloc(&request->arena, bytes);

	if (request->env == NULL || at == NULL) {
		(void)err_set(err, "no memory for the head");
		return HEAD_SHORTAGE;
	}
	for (size_t i = 0; i < count; i++) {
		request->env[i] = at;
		at = stpcpy(at, envp[i]) + 1;
	}
	request->env[count] = NULL;
	return HEAD_SOUND;
}

enum head_result
libfcgi_read(int *file, struct front_request *request, struct err *err)
{
	enum head_result result = HEAD_BAD;
	FCGX_Request head;

	(void)FCGX_InitRequest(&head, -1, FCGI_FAIL_ACCEPT_ON_INTR);
	head.ipcFd = *file;
	head.keepConnection = 1; /* or FCGX_Accept_r closes the file before it reads */
	head.detached = 1; /* or an error lingers for two seconds in close */
	if (FCGX_Accept_r(&head) != 0) {
		*file = -1;
		(void)err_set(err, "libfcgi refuses the parameters");
		return HEAD_BAD;
	}
	/* Success is also reported for a head that was cut short. */
	if (FCGX_GetError(head.in) != 0)
		(void)err_set(err, "libfcgi read the parameters only in part");
	else
		result = copy_env(request, head.envp, err);
	head.ipcFd = -1;
	FCGX_Free(&head, 0);
	return result;
}

enum head_result
libfcgi_parse(
	struct head_parser *parser, struct front_request *request, size_t count, struct err *err)
{
	if (!has_memory(request->params.len, count)) {
		(void)err_set(err, "no memory for libfcgi");
		return HEAD_SHORTAGE;
	}
	if (write_canonical(parser, request, err) != 0)
		return HEAD_SHORTAGE;
	const enum head_result result = libfcgi_read(&parser->file, request, err);

	if (parser->file < 0)
		forget_file(parser);
	return result;
}
