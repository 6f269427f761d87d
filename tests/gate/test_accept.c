/* The form that a client likes best (RFC 9110 section 12.5.1). */
#include "../unit.h"

#include "../../src/gate/gate_private.h"

static void
form_is_what_the_client_likes_best(void **state)
{
	static const struct {
		const char *accept;
		enum media media;
	} rows[] = {
		/* Whoever does not care gets text. */
		{ NULL, MEDIA_TEXT },
		{ "", MEDIA_TEXT },
		{ "*/*", MEDIA_TEXT },
		{ "*/*;q=0.1", MEDIA_TEXT },
		{ "image/png", MEDIA_TEXT },
		{ "image/*, audio/ogg;q=0.2", MEDIA_TEXT },
		{ "text/*", MEDIA_TEXT },
		/* The exact ones. */
		{ "text/plain", MEDIA_TEXT },
		{ "text/html", MEDIA_HTML },
		{ "application/xhtml+xml", MEDIA_HTML },
		{ "application/problem+json", MEDIA_PROBLEM },
		{ "application/json", MEDIA_PROBLEM },
		{ "application/*", MEDIA_PROBLEM },
		{ "TEXT/HTML", MEDIA_HTML },
		{ "Application/JSON", MEDIA_PROBLEM },
		/* Browsers and libraries. */
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/"
		  "*;q=0.8",
			MEDIA_HTML },
		{ "application/json, text/plain, */*", MEDIA_PROBLEM },
		{ "application/json, text/javascript, */*; q=0.01", MEDIA_PROBLEM },
		{ "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", MEDIA_HTML },
		/* Quality before exactness, exactness before order. */
		{ "text/html;q=0.5, application/json;q=0.6", MEDIA_PROBLEM },
		{ "text/html;q=0.5, application/json;q=0.4", MEDIA_HTML },
		{ "application/json;q=0.999, text/html;q=1.000", MEDIA_HTML },
		{ "application/json;q=0.001, text/html;q=0.002", MEDIA_HTML },
		{ "*/*, application/json", MEDIA_PROBLEM },
		{ "text/*, text/html", MEDIA_HTML },
		{ "application/*, text/html", MEDIA_HTML },
		{ "text/html, application/json", MEDIA_HTML },
		{ "application/json, text/html", MEDIA_PROBLEM },
		{ "text/html;q=0.3, */*;q=0.9", MEDIA_TEXT },
		/* q=0: not at all. */
		{ "text/html;q=0", MEDIA_TEXT },
		{ "text/html;q=0.000, application/json;q=0.1", MEDIA_PROBLEM },
		{ "application/json;q=0, text/html;q=0", MEDIA_TEXT },
		/* Blanks, other parameters, empty elements. */
		{ " text/html ", MEDIA_HTML },
		{ "text/html ; level=1 ; q=0.7 , application/json ; q=0.8", MEDIA_PROBLEM },
		{ "text/html;charset=utf-8", MEDIA_HTML },
		{ ",,text/html,,", MEDIA_HTML },
		{ "text/html;", MEDIA_HTML },
		{ ";q=1", MEDIA_TEXT },
		{ "text/html;Q=0.1, application/json;q=0.2", MEDIA_PROBLEM },
		/* What is no number is taken for 1. */
		{ "text/html;q=, application/json;q=0.9", MEDIA_HTML },
		{ "text/html;q=2, application/json", MEDIA_HTML },
		{ "text/html;q=x, application/json;q=0.9", MEDIA_HTML },
		/* No media at all. */
		{ "text", MEDIA_TEXT },
		{ "/", MEDIA_TEXT },
		{ "text/htmlx", MEDIA_TEXT },
		{ "xtext/html", MEDIA_TEXT },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(accept_media(slice_of(rows[i].accept)) == rows[i].media, "\"%s\"",
			rows[i].accept == NULL ? "" : rows[i].accept);
}

static void
take_mutant(void *context, struct slice mutant)
{
	const enum media media = accept_media(mutant);

	(void)context;
	assert_in_range(media, MEDIA_TEXT, MEDIA_PROBLEM);
}

static void
any_bytes_have_a_form(void **state)
{
	(void)state;
	each_mutation(SLICE("text/html;q=0.5, */*;q=0.1,a/b;q=1.0"), take_mutant, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_is_what_the_client_likes_best),
		cmocka_unit_test(any_bytes_have_a_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
