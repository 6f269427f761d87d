/*
 * What web servers make of an answer to a question. A web server that only asks (an authorizer, or
 * a route whose backend is of type none) does not pass an answer on as it is, and each has its own
 * way: what differs stands in the table, and nowhere else. Which row it is says the request itself,
 * unless the route's `front` does. A responder with a backend behind it has no quirks of this kind.
 *
 *                 what is no 2xx becomes     its fields    its body
 *     lighttpd    itself, Status first       pass          passes
 *     mod_fcgid   401                        pass          is Apache's page
 *     mod_authnz  itself                     pass          8192 bytes, in one record with the head
 *     nginx       500, but for 401 and 403   by name       is nginx's page
 *
 * Apache's two modules ask alike. In doubt it is the one that takes a status: to mod_fcgid a 429 is
 * a 401, while mod_authnz lets everybody pass whom mod_fcgid's answer is given.
 *
 * So mod_fcgid is told to let pass, with a variable that a RewriteRule turns into the status, and
 * nginx is told 403, with a field that its error_page turns into the status.
 */
#include "gate_private.h"

#include <stdint.h>

enum { AUTHNZ_BODY_MAX = 8192 };

static const struct quirks plain = { .telling = TELL_STATUS, .body_max = SIZE_MAX };

static const struct {
	enum asking_front front;
	struct slice software; /* SERVER_SOFTWARE begins with it */
	enum front_role role;
	bool by_mod_fcgid; /* it started weir: how Apache's two modules differ */
	struct quirks quirks;
} rows[] = {
	{ ASKING_LIGHTTPD, { "lighttpd", 8 }, FRONT_AUTHORIZER, false,
		{ TELL_STATUS, SIZE_MAX, false } },
	{ ASKING_MOD_FCGID, { "Apache", 6 }, FRONT_AUTHORIZER, true, { TELL_VARIABLE, 0, false } },
	{ ASKING_MOD_AUTHNZ, { "Apache", 6 }, FRONT_AUTHORIZER, false,
		{ TELL_STATUS, AUTHNZ_BODY_MAX, true } },
	{ ASKING_NGINX, { "nginx", 5 }, FRONT_RESPONDER, false, { TELL_FORBIDDEN, 0, false } },
};

static const struct quirks *
quirks_of(enum asking_front front)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].front == front)
			return &rows[i].quirks;
	}
	return &plain;
}

static bool
only_asks(const struct gate_request *request)
{
	return front_role_of(request->front) == FRONT_AUTHORIZER ||
		request->plant->pools[request->backend] == NULL;
}

const struct quirks *
quirks_for(const struct gate_request *request)
{
	const enum asking_front front = request->route->config->front;

	if (!only_asks(request))
		return &plain;
	if (front != ASKING_AUTO)
		return quirks_of(front);
	const struct slice software = view_param(&request->view, "SERVER_SOFTWARE");

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].role == front_role_of(request->front) &&
			(!rows[i].by_mod_fcgid || request->gate->shared.by_mod_fcgid) &&
			slice_has_prefix(software, rows[i].software))
			return &rows[i].quirks;
	}
	return &plain;
}
