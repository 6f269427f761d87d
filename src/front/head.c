/*
 * The one place that knows libfcgi. It parses heads, and it is given nothing else: it blocks, reads
 * ahead, lingers on close, aborts on absurd lengths and reports success for heads that were cut
 * short. So a head comes here when it is whole, is checked pair by pair, and is handed over in its
 * canonical form (BEGIN_REQUEST, PARAMS, empty PARAMS) in a memory file, where the end of data is a
 * read of 0 and never a wait.
 *
 * The fields below envp of FCGX_Request are public in the header but not meant for use. Their
 * layout is the same from 2.4.2 to 2.4.7, the newest; what we rely on is asserted below.
 */
#include "conn.h"

#include "weir/units.h"

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

enum { HEAD_ID = 1, HEAD_FILE_MAX = 16 * 1024 * 1024 };

struct head_parser {
	int file; /* a memfd; -1: libfcgi closed the last one */
	struct buf bytes;
};

int
front_start(struct err *err)
{
	return FCGX_Init() == 0 ? 0 : err_set(err, "libfcgi cannot be initialised");
}

struct head_parser *
head_parser_new(struct err *err)
{
	struct head_parser *parser = malloc(sizeof *parser);

	if (parser == NULL) {
		(void)err_set(err, "no memory for the head parser");
		return NULL;
	}
	parser->file = -1;
	buf_init(&parser->bytes, HEAD_FILE_MAX);
	return parser;
}

void
head_parser_free(struct head_parser *parser)
{
	if (parser == NULL)
		return;
	if (parser->file >= 0)
		(void)close(parser->file);
	buf_release(&parser->bytes);
	free(parser);
}

/* What envp cannot carry, and no web server sends. */
static int
check_pair(struct slice name, struct slice value, struct err *err)
{
	if (slice_find(name, '\0') != name.len || slice_find(value, '\0') != value.len)
		return err_set(err, "a parameter holds a NUL byte");
	if (slice_find(name, '=') != name.len)
		return err_set(err, "a parameter's name holds an equals sign");
	return 0;
}

static enum head_result
check_pairs(struct slice pairs, uint64_t max_params, struct err *err)
{
	struct slice name, value;
	uint64_t count = 0;
	int result;

	while ((result = fcgi_pair_next(&pairs, &name, &value)) > 0) {
		if (check_pair(name, value, err) != 0)
			return HEAD_BAD;
		if (fcgi_pair_size(name.len, value.len) > FCGI_CONTENT_MAX) {
			(void)err_set(err, "a parameter is longer than %d bytes", FCGI_CONTENT_MAX);
			return HEAD_TOO_LARGE;
		}
		if (++count > max_params) {
			(void)err_set(err, "there are more than %llu parameters (max_params)",
				(unsigned long long)max_params);
			return HEAD_TOO_LARGE;
		}
	}
	if (result < 0) {
		(void)err_set(err, "a parameter's length reaches beyond the end of the parameters");
		return HEAD_BAD;
	}
	return HEAD_SOUND;
}

static int
write_canonical(struct head_parser *parser, const struct front_request *request, struct err *err)
{
	uint8_t begin[16];

	buf_consume(&parser->bytes, parser->bytes.len);
	fcgi_put_begin(begin, HEAD_ID,
		request->role == FRONT_RESPONDER ? FCGI_RESPONDER : FCGI_AUTHORIZER,
		FCGI_KEEP_CONN);
	if (buf_append(&parser->bytes, begin, sizeof begin) != 0 ||
		fcgi_params_put(&parser->bytes, HEAD_ID, buf_slice(&request->params)) != 0)
		return err_set(err, "no memory for the head");
	const struct slice bytes = buf_slice(&parser->bytes);

	if (parser->file < 0)
		parser->file = memfd_create("weir-head", MFD_CLOEXEC);
	if (parser->file < 0)
		return err_set(err, "memfd_create: %s", strerror(errno));
	if (ftruncate(parser->file, 0) != 0 ||
		pwrite(parser->file, bytes.ptr, bytes.len, 0) != (ssize_t)bytes.len ||
		lseek(parser->file, 0, SEEK_SET) != 0)
		return err_set(err, "the memory file: %s", strerror(errno));
	return 0;
}

/* Without its first entry, FCGI_ROLE, which libfcgi made up. */
static int
copy_env(struct front_request *request, char *const *envp, struct err *err)
{
	size_t count = 0;

	while (envp[count] != NULL)
		count++;
	if (count > 0) {
		envp++;
		count--;
	}
	request->env = arena_alloc(&request->arena, (count + 1) * sizeof *request->env);
	if (request->env == NULL)
		return err_set(err, "no memory for the head");
	for (size_t i = 0; i < count; i++) {
		request->env[i] = arena_text(&request->arena, slice_of(envp[i]));
		if (request->env[i] == NULL)
			return err_set(err, "no memory for the head");
	}
	request->env[count] = NULL;
	return 0;
}

static int
run_libfcgi(struct head_parser *parser, struct front_request *request, struct err *err)
{
	FCGX_Request head;

	(void)FCGX_InitRequest(&head, -1, FCGI_FAIL_ACCEPT_ON_INTR);
	head.ipcFd = parser->file;
	head.keepConnection = 1; /* or FCGX_Accept_r closes the file before it reads */
	head.detached = 1; /* or an error lingers for two seconds in close */
	if (FCGX_Accept_r(&head) != 0) {
		parser->file = -1; /* closed by libfcgi */
		return err_set(err, "libfcgi refuses the parameters");
	}
	/* Success is also reported for a head that was cut short. */
	int result = FCGX_GetError(head.in) == 0
		? 0
		: err_set(err, "libfcgi read the parameters only in part");

	if (result == 0)
		result = copy_env(request, head.envp, err);
	head.ipcFd = -1;
	FCGX_Free(&head, 0);
	return result;
}

enum head_result
head_parse(struct head_parser *parser, struct front_request *request, uint64_t max_params,
	struct err *err)
{
	const enum head_result checked = check_pairs(buf_slice(&request->params), max_params, err);

	if (checked != HEAD_SOUND)
		return checked;
	if (write_canonical(parser, request, err) != 0 || run_libfcgi(parser, request, err) != 0)
		return HEAD_BAD;
	return HEAD_SOUND;
}

/* The last of that name, as in an environment that was filled in this order. */
static struct slice
env_value(const struct front_request *request, struct slice name)
{
	struct slice value = { NULL, 0 };

	for (size_t i = 0; request->env[i] != NULL; i++) {
		const struct slice entry = slice_of(request->env[i]);

		if (slice_has_prefix(entry, name) && entry.len > name.len &&
			entry.ptr[name.len] == '=')
			value = slice_skip(entry, name.len + 1);
	}
	return value;
}

uint64_t
head_content_length(const struct front_request *request)
{
	uint64_t length;

	if (parse_uint(env_value(request, SLICE("CONTENT_LENGTH")), INT64_MAX, &length) != 0)
		return UINT64_MAX;
	return length;
}

/* It hands its processes the socket as descriptor 0; Apache's other modules connect. */
bool
head_is_from_mod_fcgid(const struct front_request *request)
{
	return conn_of(request)->front->settings.is_spawned &&
		slice_has_prefix(env_value(request, SLICE("SERVER_SOFTWARE")), SLICE("Apache"));
}
