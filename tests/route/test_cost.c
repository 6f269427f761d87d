/* What a request counts for. */
#include "routing.h"

static struct arena arena;

static int
setup(void **state)
{
	arena_init(&arena, ARENA_MAX);
	return load_setup(state);
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return load_teardown(state);
}

static uint64_t
cost_by(const char *cost, const char *const *env)
{
	char sections[256];
	struct view view;

	(void)snprintf(sections, sizeof sections, "[route first]\nmatch = /x\ncost = %s\n", cost);
	struct config *config = configured(sections);

	assert_int_equal(view_of(&view, env, &arena), 0);
	const uint64_t n = cost_of(&config->routes[0]->cost, &view);

	config_free(config);
	return n;
}

static void
a_cost_is_what_the_request_says_between_one_and_the_most(void **state)
{
	static const struct {
		const char *cost, *env[2];
		uint64_t is;
	} rows[] = {
		{ "1", { "QUERY_STRING=n=5" }, 1 },
		{ "7", { "QUERY_STRING=n=5" }, 7 },
		{ "param n max 100", { "QUERY_STRING=n=5" }, 5 },
		{ "param n max 100", { "QUERY_STRING=m=5" }, 1 },
		{ "param n max 100", { "QUERY_STRING=" }, 1 },
		{ "param n max 100", { "QUERY_STRING=N=5" }, 1 },
		{ "param n max 100", { "QUERY_STRING=n=0" }, 1 },
		{ "param n max 100", { "QUERY_STRING=n=1" }, 1 },
		{ "param n max 100", { "QUERY_STRING=n=100" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=101" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=007" }, 7 },
		{ "param n max 100", { "QUERY_STRING=n=%35" }, 5 },
		{ "param n max 100", { "QUERY_STRING=%6e=5" }, 5 },
		{ "param n max 100", { "QUERY_STRING=n=18446744073709551615" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=18446744073709551617" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=99999999999999999999999999999" }, 100 },
		/* Anything else may be a large number to somebody. */
		{ "param n max 100", { "QUERY_STRING=n=" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=-5" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=%2b5" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=+5" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=5+" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=1e3" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=1.5" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=0x10" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=NaN" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=5%00" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=%zz" }, 100 },
		{ "param n max 100", { "QUERY_STRING=n=\xd9\xa5" }, 100 },
		/* The greatest of several. */
		{ "param n max 100", { "QUERY_STRING=n=5&n=9&n=2" }, 9 },
		{ "param n max 100", { "QUERY_STRING=n=1&n=x&n=1" }, 100 },
		{ "param n max 1", { "QUERY_STRING=n=50" }, 1 },
		/* However it is spelled. */
		{ "param n max 100", { "QUERY_STRING=n=1&%20n=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=+n=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=n%00x=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=n[]=50&n=1" }, 50 },
		{ "param n max 100", { "QUERY_STRING=n%5Ba%5D[b]=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=x;n=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=n=5;page=2" }, 5 },
		{ "param n max 100", { "QUERY_STRING=n=1;n=50" }, 50 },
		{ "param n max 100", { "QUERY_STRING=nx=50&xn=50&n.=50" }, 1 },
		/* In any case, if that is said. */
		{ "param Width nocase max 100", { "QUERY_STRING=width=50" }, 50 },
		{ "param Width nocase max 100", { "QUERY_STRING=WIDTH=50" }, 50 },
		{ "param width nocase max 100", { "QUERY_STRING=wIdTh=1&WIDTH=7&width=5" }, 7 },
		{ "param width nocase max 100", { "QUERY_STRING=%57idth[]=50" }, 50 },
		{ "param width nocase", { "QUERY_STRING=a;WIDTH=50" }, 50 },
		{ "param width nocase max 100", { "QUERY_STRING=widths=50&idth=50" }, 1 },
		{ "header X-Cost max 50", { "HTTP_X_COST=20" }, 20 },
		{ "header X-Cost max 50", { "HTTP_X_COST=" }, 1 },
		{ "header X-Cost max 50", { "OTHER=1" }, 1 },
		{ "header X-Cost max 50", { "HTTP_X_COST=20, 30" }, 50 },
		{ "header X-Cost max 50", { "HTTP_X_COST=7", "HTTP_X_COST=3" }, 7 },
		{ "header X-Cost max 50", { "HTTP_X_COST=7", "HTTP_X_COST=" }, 7 },
		{ "header X-Cost max 50", { "HTTP_X_COST= 20" }, 50 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const uint64_t n = cost_by(rows[i].cost,
			(const char *const[]){
				"REQUEST_URI=/", rows[i].env[0], rows[i].env[1], NULL });

		assert_row(n == rows[i].is, "%s, %s: %llu", rows[i].cost, rows[i].env[0],
			(unsigned long long)n);
	}
}

#define cost_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cost_test(a_cost_is_what_the_request_says_between_one_and_the_most),
	};

	return cmocka_run_group_tests_name("route/cost", tests, NULL, NULL);
}
