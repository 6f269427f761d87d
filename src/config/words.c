/* A limit in words: who is counted, how much is admitted, and for whom it is otherwise. */
#include "nets.h"
#include "values.h"
#include "words.h"

/* ---- who is counted ---- */

static void
print_address(const struct config_identity_part *part, FILE *out)
{
	const bool has_4 = part->prefix_4 < 32, has_6 = part->prefix_6 < 128;

	(void)fputs(has_4 ? "client network" : "client address", out);
	if (has_4 && has_6)
		(void)fprintf(out, " (IPv4 by /%u, IPv6 by /%u)", part->prefix_4, part->prefix_6);
	else if (has_4)
		(void)fprintf(out, " (IPv4 by /%u)", part->prefix_4);
	else if (has_6)
		(void)fprintf(out, " (IPv6 by /%u)", part->prefix_6);
}

static void
print_part(const struct config_identity_part *part, FILE *out)
{
	const char *known = part->known ? "known " : "";

	switch (part->source) {
	case IDENTITY_IP:
		print_address(part, out);
		break;
	case IDENTITY_USER:
		(void)fprintf(out, "%suser", known);
		break;
	case IDENTITY_HEADER:
		(void)fprintf(out, "%svalue of %s", known, part->name);
		break;
	case IDENTITY_COOKIE:
		(void)fprintf(out, "%svalue of cookie %s", known, part->name);
		break;
	case IDENTITY_PARAM:
		(void)fprintf(out, "%svalue of parameter %s", known, part->name);
		break;
	case IDENTITY_ENV:
		(void)fprintf(out, "%svalue of variable %s", known, part->name);
		break;
	case IDENTITY_HOST:
		(void)fputs("host", out);
		break;
	case IDENTITY_PATH:
		(void)fputs("path", out);
		break;
	case IDENTITY_BACKEND:
		(void)fputs("backend", out);
		break;
	case IDENTITY_ROUTE:
		(void)fputs("route", out);
		break;
	case IDENTITY_ALL:
		(void)fputs("all others together", out);
		break;
	}
}

static void
print_identity(const struct config_identity *identity, FILE *out)
{
	for (unsigned i = 0; i < identity->part_count; i++) {
		if (i > 0)
			(void)fputs(" and ", out);
		print_part(&identity->parts[i], out);
	}
}

static void
print_who(const struct config_limit *limit, FILE *out)
{
	const char *it = limit->identity_count > 1 ? "any of them" : "it";

	if (limit->identities[0].parts[0].source == IDENTITY_ALL) {
		(void)fputs("all clients together", out);
		return;
	}
	(void)fputs("per ", out);
	for (unsigned i = 0; i < limit->identity_count; i++) {
		if (i > 0)
			(void)fputs(", else ", out);
		print_identity(&limit->identities[i], out);
	}
	switch (limit->on_missing) {
	case ON_MISSING_UNSET:
		break;
	case ON_MISSING_SKIP:
		(void)fprintf(out, ", without %s not limited", it);
		break;
	case ON_MISSING_REJECT:
		(void)fprintf(out, ", without %s rejected", it);
		break;
	case ON_MISSING_SHARE:
		(void)fprintf(out, ", all without %s together", it);
		break;
	}
}

/* ---- how much ---- */

/* One policy, or a line for each of several behind `several`, and the end of the line. */
static void
print_policies(const struct config *config, const struct config_policy *policies, unsigned count,
	const char *several, const char *indent, FILE *out)
{
	if (count == 1) {
		(void)fputs(": ", out);
		words_policy(config, &policies[0], out);
	} else {
		(void)fputs(several, out);
	}
	(void)fputc('\n', out);
	for (unsigned i = 0; count > 1 && i < count; i++) {
		(void)fprintf(out, "%s%s: ", indent, policies[i].name);
		words_policy(config, &policies[i], out);
		(void)fputc('\n', out);
	}
}

/* ---- for whom it is otherwise ---- */

/* A network or a user alone is named; other values may be secrets. */
static bool
print_single(const struct config_for *list, FILE *out)
{
	char text[NET_TEXT_SIZE];

	if (list->source == IDENTITY_IP) {
		(void)fprintf(out, " %s", net_text(&list->nets[0], text));
		return true;
	}
	if (list->source != IDENTITY_USER || list->values[0].is_sha256)
		return false;
	(void)fprintf(out, " %.*s", (int)list->values[0].len, list->values[0].text);
	return true;
}

/* "header X-API-Key (500 values)", over all lists of that source. */
static void
print_source(const struct config_override *override, unsigned first, FILE *out)
{
	const struct config_for *list = &override->fors[first], *any = list;
	unsigned long long count = 0;
	char text[SOURCE_TEXT_SIZE];

	for (unsigned i = first; i < override->for_count; i++) {
		if (!for_is_same_source(&override->fors[i], list))
			continue;
		const unsigned n = override->fors[i].value_count + override->fors[i].net_count;

		any = n > 0 ? &override->fors[i] : any;
		count += n;
	}
	(void)fputs(source_text(list->source, list->name, text), out);
	if (count == 1 && print_single(any, out))
		return;
	(void)fprintf(out, " (%llu %s%s)", count, list->source == IDENTITY_IP ? "network" : "value",
		count == 1 ? "" : "s");
}

static void
print_override(const struct config *config, const struct config_override *override, FILE *out)
{
	(void)fprintf(out, "    override %s: ", override->name);
	for (unsigned i = 0; i < override->for_count; i++) {
		unsigned before = 0;

		while (before < i &&
			!for_is_same_source(&override->fors[before], &override->fors[i]))
			before++;
		if (before < i)
			continue;
		if (i > 0)
			(void)fputs(", ", out);
		print_source(override, i, out);
	}
	if (override->exempt || override->block) {
		(void)fprintf(out, ": %s\n", override->exempt ? "not counted" : "answered 403");
		return;
	}
	if (override->policy_count == 0) {
		(void)fputs(": as the limit says\n", out);
		return;
	}
	if (override->policy_count == 1 && override->limit->policy_count > 1)
		(void)fprintf(out, ", instead of %s", override->policies[0].name);
	print_policies(config, override->policies, override->policy_count,
		", instead of:", "        ", out);
}

void
config_limit_words(const struct config *config, const struct config_limit *limit, FILE *out)
{
	(void)fprintf(out, "limit %s%s: ", limit->name, limit->enforce ? "" : " (not enforced)");
	print_who(limit, out);
	print_policies(config, limit->policies, limit->policy_count, ", each of:", "    ", out);
	if (limit->local_cap != NULL) {
		(void)fputs("    in each process, before the store is asked: ", out);
		words_policy(config, limit->local_cap, out);
		(void)fputc('\n', out);
	}
	for (unsigned i = 0; i < limit->override_count; i++)
		print_override(config, limit->overrides[i], out);
}
