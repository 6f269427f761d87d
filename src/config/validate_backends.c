/* Backends: where admitted requests go, if anywhere. */
#include "sections.h"
#include "validate.h"

static void
check_servers(const struct build *build, const struct section *section,
	const struct config_backend *backend)
{
	if (backend->type == BACKEND_NONE && backend->server_count > 0)
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			"a backend of type none has no server: the web server serves the request");
	if (backend->type != BACKEND_NONE && backend->server_count == 0 &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			"is missing: where do admitted requests go? Write server = "
			"unix:/run/php/php-fpm.sock or tcp:HOST:PORT");
}

void
validate_backends(const struct build *build)
{
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s))
		check_servers(build, s, s->object);
	if (build->config->backend_count == 0 && !section_kind_is_doubtful(build, SECTION_BACKEND))
		complain_whole(build,
			"there is no backend, where admitted requests go; add:\n"
			"[backend php]\n"
			"server = unix:/run/php/php-fpm.sock");
}
