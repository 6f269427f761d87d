/*
 * The one place that knows libfcgi. It parses heads, and it is given nothing else: it blocks, reads
 * ahead, lingers on close, aborts on absurd lengths and reports success for heads that were cut
 * short. So a head comes here when it is whole, is checked pair by pair, and is handed over in its
 * canonical form (BEGIN_REQUEST, PARAMS, empty PARAMS) in a memory file, where nothing can be
 * waited for.
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

enum { HEAD_ID = 1, HEAD_FILE_FIRST = 65536 };

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

/*
 * BEGIN_REQUEST, PARAMS, empty PARAMS, and behind them a record of no version, at which libfcgi
 * stops with an error should it ever read so far: what an earlier, longer head has left in the file
 * must not be taken for a part of this one.
 */
static int
write_canonical(struct head_parser *parser, const struct front_request *request, struct err *err)
{
	static const char guard[FCGI_HEADER_LEN];
	struct slice pairs = buf_slice(&request->params);
	const size_t records = pairs.len / FCGI_CONTENT_MAX + 1;

	if (open_file(parser, pairs.len + (records + 4) * FCGI_HEADER_LEN, err) != 0)
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
	at = put_record(at, FCGI_PARAMS, pairs);
	memcpy(at, guard, sizeof guard);
	if (lseek(parser->file, 0, SEEK_SET) != 0)
		return err_set(err, "the memory file for heads: %s", strerror(errno));
	return 0;
}

/* Without its first entry, FCGI_ROLE, which libfcgi made up. */
static int
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

	if (request->env == NULL || at == NULL)
		return err_set(err, "no memory for the head");
	for (size_t i = 0; i < count; i++) {
		request->env[i] = at;
		at = stpcpy(at, envp[i]) + 1;
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
		forget_file(parser); /* libfcgi has closed it */
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
		const char *entry = request->env[i];

		if (strncmp(entry, name.ptr, name.len) == 0 && entry[name.len] == '=')
			value = slice_of(entry + name.len + 1);
	}
	return value;
}

int
head_content_length(const struct front_request *request, uint64_t *length, struct err *err)
{
	*length = UINT64_MAX;
	for (size_t i = 0; request->env[i] != NULL; i++) {
		const struct slice entry = slice_of(request->env[i]),
				   name = SLICE("CONTENT_LENGTH=");
		uint64_t one;

		/* Empty: nginx's way to say that there is none. */
		if (!slice_has_prefix(entry, name) || entry.len == name.len)
			continue;
		if (parse_uint(slice_skip(entry, name.len), INT64_MAX, &one) != 0)
			return err_set(err, "CONTENT_LENGTH is no number");
		if (*length != UINT64_MAX && *length != one)
			return err_set(err, "CONTENT_LENGTH comes twice, with different values");
		*length = one;
	}
	return 0;
}

/* It hands its processes the socket as descriptor 0; Apache's other modules connect. */
bool
head_is_from_mod_fcgid(const struct front_request *request)
{
	return conn_of(request)->front->settings.is_spawned &&
		slice_has_prefix(env_value(request, SLICE("SERVER_SOFTWARE")), SLICE("Apache"));
}
