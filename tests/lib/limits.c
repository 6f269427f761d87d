/* Limits for tests. What goes wrong here is no test's fault, so it ends the program. */
#include "limits.h"

#include "weir/hash.h"

#include <stdlib.h>

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s\n", what);
	abort();
}

static void
parse(struct made_limit *made, unsigned i, const char *text)
{
	struct config_policy *policy = &made->policies[i];
	struct slice rest = slice_of(text), word, argument;
	struct err err;

	(void)slice_split(&rest, ' ', &word);
	require(parse_rate(word, &policy->rate, &err) == 0, err.text);
	policy->burst = policy->rate.count;
	policy->name = policy->rate.window;
	while (slice_split(&rest, ' ', &word)) {
		require(slice_split(&rest, ' ', &argument), text);
		if (slice_is(word, SLICE("burst"))) {
			require(parse_uint(argument, UINT64_MAX, &policy->burst) == 0, text);
		} else {
			require(slice_is(word, SLICE("name")), text);
			(void)snprintf(made->names[i], sizeof made->names[i], "%.*s",
				(int)argument.len, argument.ptr);
			policy->name = made->names[i];
		}
	}
}

void
made_limit_init(struct made_limit *made, const char *name, const char *const *policies)
{
	struct diagnostics diagnostics;
	struct err err;
	unsigned count = 0;

	require(hash_start(&err) == 0, err.text);
	memset(made, 0, sizeof *made);
	for (; policies[count] != NULL; count++) {
		require(count < LIMIT_POLICIES_MAX, "a limit of too many policies");
		parse(made, count, policies[count]);
	}
	made->config = (struct config_limit){
		.name = name, .policies = made->policies, .policy_count = count, .enforce = true
	};
	diagnostics_init(&diagnostics);
	limit_init(&made->limit, &made->config, &diagnostics);
	if (diagnostics.errors > 0)
		diagnostics_print(&diagnostics, stderr);
	require(diagnostics.errors == 0, "the limit was refused");
	diagnostics_release(&diagnostics);
}
