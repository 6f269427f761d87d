/* Backends: where admitted requests go, if anywhere. */
#include "sections.h"
#include "validate.h"

static void
check_servers(const struct build *build, const struct section *section,
	const struct config_backend *backend)
{
	const bool has_none = backend->type == BACKEND_NONE || backend->type == BACKEND_CGI;

	if (has_none && backend->server_count > 0)
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			backend->type == BACKEND_NONE
				? "a backend of type none has no server: the web server serves the "
				  "request"
				: "a backend of type cgi has no server: weir starts its program "
				  "itself");
	if (!has_none && backend->server_count == 0 && !section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			"is missing: where do admitted requests go? Write server = "
			"unix:/run/php/php-fpm.sock or tcp:HOST:PORT");
}

static void
check_program(const struct build *build, const struct section *section,
	const struct config_backend *backend)
{
	static const char *const keys[] = { "program", "root", "env" };
	const bool is_given[] = { backend->program != NULL, backend->root != NULL,
		backend->env_count > 0 };

	for (unsigned i = 0; i < 3 && backend->type != BACKEND_CGI; i++) {
		if (is_given[i])
			complain(build, SEVERITY_ERROR, section, keys[i], NULL,
				"is for programs that weir starts; write type = cgi, too, or leave "
				"it out");
	}
	if (backend->type != BACKEND_CGI || section_is_doubtful(build, section))
		return;
	if (backend->program == NULL && backend->root == NULL)
		complain(build, SEVERITY_ERROR, section, "program", NULL,
			"is missing: what is to be started? Write program = "
			"/usr/lib/cgi-bin/NAME, or root = /usr/lib/cgi-bin for any program below "
			"it");
	if (backend->program != NULL && backend->root != NULL)
		complain(build, SEVERITY_ERROR, section, "root", NULL,
			"there is a program already, which all requests go to; leave one of both "
			"out");
}

void
validate_backends(const struct build *build)
{
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		check_servers(build, s, s->object);
		check_program(build, s, s->object);
	}
	if (build->config->backend_count == 0 && !section_kind_is_doubtful(build, SECTION_BACKEND))
		complain_whole(build,
			"there is no backend, where admitted requests go; add:\n"
			"[backend php]\n"
			"server = unix:/run/php/php-fpm.sock");
}
