/* Backends: where admitted requests go, if anywhere. */
#include "sections.h"
#include "validate.h"

/* NULL: [weir]. */
static const struct section *
backend_section(const struct build *build, const struct config_backend *backend)
{
	if (backend == NULL)
		return build->unnamed[SECTION_WEIR];
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		if (s->object == backend)
			return s;
	}
	return NULL;
}

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
check_keep_idle(const struct build *build, const struct section *section,
	const struct config_backend *backend)
{
	if (backend->keep_idle > 0 && backend->type != BACKEND_FASTCGI)
		complain(build, SEVERITY_ERROR, section, "keep_idle", NULL,
			"is for backends of type fastcgi: no other connection serves two requests; "
			"leave it out");
	else if (backend->keep_idle > 0 && backend->keep_idle < build->config->threads)
		complain(build, SEVERITY_WARNING, section, "keep_idle", NULL,
			"each of %u threads keeps one at least, so %u are kept",
			(unsigned)build->config->threads, (unsigned)build->config->threads);
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

static void
check_listen_count(const struct build *build)
{
	const struct config_backend *backend;
	const struct config_listen *listen =
		config_listen_at(build->config, CONFIG_LISTENS_MAX, &backend);

	if (listen != NULL)
		complain(build, SEVERITY_ERROR, backend_section(build, backend), "listen",
			&listen->place, "weir listens at %d places at the most",
			CONFIG_LISTENS_MAX);
}

void
validate_backends(const struct build *build)
{
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		check_servers(build, s, s->object);
		check_program(build, s, s->object);
		check_keep_idle(build, s, s->object);
	}
	check_listen_count(build);
	if (build->config->backend_count == 0 && !section_kind_is_doubtful(build, SECTION_BACKEND))
		complain_whole(build,
			"there is no backend, where admitted requests go; add:\n"
			"[backend php]\n"
			"server = unix:/run/php/php-fpm.sock");
}
