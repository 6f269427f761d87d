/*
 * Patterns on paths and values. A plain pattern fits the path itself and all below it, as Apache's
 * <Location> does: what follows the script's name (PATH_INFO) must not lead around its limit. A
 * value has nothing below it, and is fitted as a whole.
 *
 * Regular expressions are PCRE2's with a limit on the steps of a match, since what they are held
 * against is the client's to choose and the loop must not stand still for it. PCRE2's own limit
 * begins anew with each character that a match could start at, so a long subject multiplies it.
 * Callouts, which PCRE2 puts before each item of the expression, count all of a match.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "pattern.h"

#include <pcre2.h>

enum {
	REGEX_HEAP_KIB = 4096,
	REGEX_SUBJECT_MAX = 16384, /* the servers of the field stop at 8 KiB */
	CHARACTERS_OF_A_STEP = 16, /* that are passed without a decision */
	STEPS_OF_A_CALL = 8
};

static int
compile_regex(struct pattern *pattern, struct err *err)
{
	/* A path has no lines: `/index.php/%0a` runs the script, and must not lead around its
	 * limit. */
	const uint32_t options = (pattern->config->nocase ? PCRE2_CASELESS : 0) |
		PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_AUTO_CALLOUT;
	PCRE2_SIZE at;
	PCRE2_UCHAR text[128];
	int code;

	pattern->regex = pcre2_compile(
		(PCRE2_SPTR)pattern->text.ptr, pattern->text.len, options, &code, &at, NULL);
	if (pattern->regex != NULL)
		return 0;
	(void)pcre2_get_error_message(code, text, sizeof text);
	return err_set(err, "the regular expression \"%s\" is wrong at its character %zu: %s",
		pattern->config->text, (size_t)at + 1, (const char *)text);
}

int
pattern_init(struct pattern *pattern, const struct config_pattern *config, struct err *err)
{
	*pattern = (struct pattern){ .config = config, .text = slice_of(config->text) };
	return config->kind == PATTERN_REGEX ? compile_regex(pattern, err) : 0;
}

void
pattern_release(struct pattern *pattern)
{
	if (pattern->regex != NULL)
		pcre2_code_free(pattern->regex);
}

static bool
same(char a, char b, bool nocase)
{
	return a == b || (nocase && slice_is_nocase(slice_make(&a, 1), slice_make(&b, 1)));
}

static bool
has_prefix(struct slice path, struct slice prefix, bool nocase)
{
	const struct slice first = slice_make(path.ptr, prefix.len);

	if (path.len < prefix.len)
		return false;
	return nocase ? slice_is_nocase(first, prefix) : slice_is(first, prefix);
}

/* At the end of the pattern: the path ends too, or goes on below. */
static bool
is_at_border(struct slice pattern, struct slice path, size_t at)
{
	return at == path.len || path.ptr[at] == '/' ||
		(pattern.len > 0 && pattern.ptr[pattern.len - 1] == '/') ||
		(pattern.len > 0 && pattern.ptr[pattern.len - 1] == '*');
}

static bool
fits_below(const struct pattern *pattern, struct slice path)
{
	return has_prefix(path, pattern->text, pattern->config->nocase) &&
		is_at_border(pattern->text, path, pattern->text.len);
}

/* Goes back to the last star only, which is enough for `*`: at most pattern times path steps. */
static bool
fits_glob(const struct pattern *pattern, struct slice path, bool is_value)
{
	const struct slice text = pattern->text;
	size_t p = 0, at = 0, star = text.len, star_at = 0;

	for (;;) {
		if (p == text.len &&
			(is_value ? at == path.len || text.ptr[p - 1] == '*'
				  : is_at_border(text, path, at)))
			return true;
		if (p < text.len && text.ptr[p] == '*') {
			star = p++;
			star_at = at;
		} else if (p < text.len && at < path.len &&
			same(text.ptr[p], path.ptr[at], pattern->config->nocase)) {
			p++;
			at++;
		} else if (star < text.len && star_at < path.len) {
			p = star + 1;
			at = ++star_at;
		} else {
			return false;
		}
	}
}

struct spending {
	unsigned left;
	size_t at; /* in the subject, at the last callout */
};

static int
spend(pcre2_callout_block *block, void *data)
{
	struct spending *spending = data;
	const size_t at = block->current_position;
	const size_t moved = at > spending->at ? at - spending->at : spending->at - at;
	const size_t cost = 1 + moved / CHARACTERS_OF_A_STEP;

	spending->at = at;
	spending->left -= cost < spending->left ? (unsigned)cost : spending->left;
	return spending->left == 0 ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static enum pattern_result
match_regex(const struct pattern *pattern, struct slice subject, unsigned *steps)
{
	struct spending spending = { .left = *steps };
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	int result = PCRE2_ERROR_NOMEMORY;

	if (context != NULL && data != NULL && subject.len <= REGEX_SUBJECT_MAX &&
		spending.left > STEPS_OF_A_CALL) {
		spending.left -= STEPS_OF_A_CALL;
		(void)pcre2_set_callout(context, spend, &spending);
		(void)pcre2_set_match_limit(context, PATTERN_STEPS_MAX);
		(void)pcre2_set_heap_limit(context, REGEX_HEAP_KIB);
		result = pcre2_match(
			pattern->regex, (PCRE2_SPTR)subject.ptr, subject.len, 0, 0, data, context);
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(context);
	*steps = spending.left;
	if (result >= 0)
		return PATTERN_FITS;
	return result == PCRE2_ERROR_NOMATCH ? PATTERN_DIFFERS : PATTERN_LIMIT;
}

/* GET takes HEAD with it, as in Apache's <Limit>: most applications do the same work for it. */
static bool
has_method(const char *methods, struct slice method)
{
	const bool is_head = slice_is(method, SLICE("HEAD"));
	struct slice rest = slice_of(methods), one;

	while (slice_split(&rest, '|', &one)) {
		if (slice_is(one, method) || (is_head && slice_is(one, SLICE("GET"))))
			return true;
	}
	return false;
}

static bool
is_same(const struct pattern *pattern, struct slice text)
{
	return text.len == pattern->text.len &&
		has_prefix(text, pattern->text, pattern->config->nocase);
}

enum pattern_result
pattern_match(const struct pattern *pattern, struct slice method, struct slice path)
{
	const struct config_pattern *config = pattern->config;
	unsigned steps = PATTERN_STEPS_MAX;
	bool fits = false;

	if (config->methods != NULL && !has_method(config->methods, method))
		return PATTERN_DIFFERS;
	switch (config->kind) {
	case PATTERN_BELOW:
		fits = fits_below(pattern, path);
		break;
	case PATTERN_EXACT:
		fits = is_same(pattern, path);
		break;
	case PATTERN_GLOB:
		fits = fits_glob(pattern, path, false);
		break;
	case PATTERN_REGEX:
		return match_regex(pattern, path, &steps);
	}
	return fits ? PATTERN_FITS : PATTERN_DIFFERS;
}

enum pattern_result
pattern_match_value(const struct pattern *pattern, struct slice value, unsigned *steps)
{
	bool fits = false;

	switch (pattern->config->kind) {
	case PATTERN_BELOW: /* is for paths only */
	case PATTERN_EXACT:
		fits = is_same(pattern, value);
		break;
	case PATTERN_GLOB:
		fits = fits_glob(pattern, value, true);
		break;
	case PATTERN_REGEX:
		return match_regex(pattern, value, steps);
	}
	return fits ? PATTERN_FITS : PATTERN_DIFFERS;
}
