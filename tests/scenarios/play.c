/*
 * A scenario's lines, one after another: each statement is done as soon as it is read. Nothing is
 * guessed: a word that is not known, a request of which nothing is expected, and time that goes
 * back are errors of the file.
 */
#include "scenario.h"

#include "weir/clock.h"

#include <stdio.h>
#include <time.h>

/* ---- lines ---- */

bool
play_next(struct play *play)
{
	while (play->rest.len > 0) {
		const size_t len = slice_find(play->rest, '\n');
		const struct slice whole = slice_first(play->rest, len);

		play->rest = slice_skip(play->rest, len + (len < play->rest.len));
		play->line++;
		play->text = slice_trim(whole);
		play->indented =
			play->text.len > 0 && (whole.ptr[0] == '\t' || whole.ptr[0] == ' ');
		if (play->text.len > 0 && play->text.ptr[0] != '#')
			return true;
	}
	return false;
}

bool
play_next_indented(struct play *play)
{
	const struct play before = *play;

	if (play_next(play) && play->indented)
		return true;
	*play = before;
	return false;
}

int
play_wrong(struct play *play, const char *format, ...)
{
	char text[400];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof text, format, list);
	va_end(list);
	return err_set(play->err, "%s:%u: %s", play->file, play->line, text);
}

bool
play_word(struct slice *rest, struct slice *word)
{
	*rest = slice_trim(*rest);
	if (rest->len == 0)
		return false;
	*word = slice_first(*rest, slice_find(*rest, ' '));
	*rest = slice_skip(*rest, word->len);
	if (word->len > 1 && word->ptr[word->len - 1] == ',')
		word->len--;
	return true;
}

int
play_number(struct play *play, struct slice word, uint64_t *out)
{
	if (parse_uint(word, UINT64_MAX, out) == 0)
		return 0;
	return play_wrong(play, "\"%.*s\" is no number", (int)word.len, word.ptr);
}

/* ---- time ---- */

/* 2026-02-28T23:59:59Z */
static bool
parse_date(struct slice word, int64_t *out_us)
{
	struct tm tm = { 0 };
	char text[21];

	if (word.len != sizeof text - 1)
		return false;
	memcpy(text, word.ptr, word.len);
	text[word.len] = '\0';
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	if (end == NULL || *end != '\0')
		return false;
	*out_us = (int64_t)timegm(&tm) * US_PER_S;
	return true;
}

static int
do_start(struct play *play, struct slice words)
{
	if (play->requests > 0 || play->now_us != play->start_us)
		return play_wrong(play, "the start comes before all else");
	play->is_now = slice_is(words, SLICE("now"));
	if (play->is_now)
		play->start_us = clock_wall_us();
	else if (!parse_date(words, &play->start_us))
		return play_wrong(
			play, "a start is a date such as 2026-02-28T23:59:59Z, or \"now\"");
	play->now_us = play->start_us;
	return 0;
}

static int
do_at(struct play *play, struct slice words)
{
	int64_t at = play->start_us, part;
	struct slice word;
	struct err err;

	if (!parse_date(words, &at)) {
		if (words.len == 0)
			return play_wrong(play, "at what time?");
		while (play_word(&words, &word)) {
			if (slice_is(word, SLICE("0s")))
				continue;
			if (parse_duration(word, &part, &err) != 0)
				return play_wrong(play, "%s", err.text);
			at += part;
		}
	}
	if (at < play->now_us)
		return play_wrong(play, "time goes back");
	play->now_us = at;
	return 0;
}

/* ---- configurations ---- */

static const char *const statements[] = { "start", "at", "request", "expect", "end", "reload",
	"file", "app", "redis" };

/* A key of a configuration may be called as a statement is. */
static bool
is_statement(struct slice text)
{
	struct slice word, second;

	if (!play_word(&text, &word) || (play_word(&text, &second) && slice_is(second, SLICE("="))))
		return false;
	for (size_t i = 0; i < LENGTH_OF(statements); i++) {
		if (slice_is(word, slice_of(statements[i])))
			return true;
	}
	return false;
}

/* From the current line to the next statement. */
static int
read_configuration(struct play *play)
{
	const char *from = play->text.ptr;
	const unsigned first_line = play->line;
	struct play before = *play;

	while (play_next(play) && !is_statement(play->text))
		before = *play;
	*play = before;
	return play_use(play, first_line, slice_make(from, (size_t)(play->rest.ptr - from)));
}

static int
do_reload(struct play *play, struct slice words)
{
	if (words.len > 0)
		return play_wrong(play, "a reload stands alone, and the configuration behind it");
	if (!play->has_configuration)
		return play_wrong(play, "there is no configuration before");
	if (!play_next(play) || play->text.ptr[0] != '[')
		return play_wrong(play, "behind a reload comes a configuration");
	return read_configuration(play);
}

/* ---- the file ---- */

static int
do_statement(struct play *play)
{
	static int (*const does[])(struct play * play, struct slice words) = { do_start, do_at,
		play_request, expect, play_end, do_reload, play_file, play_app, play_redis };
	struct slice words = play->text, word = { NULL, 0 };

	if (play->indented)
		return play_wrong(play, "what does this line belong to?");
	if (play->text.ptr[0] == '[' && !play->has_configuration)
		return read_configuration(play);
	(void)play_word(&words, &word);
	for (size_t i = 0; i < LENGTH_OF(statements); i++) {
		if (!slice_is(word, slice_of(statements[i])))
			continue;
		if (play->left > 0 && does[i] != expect)
			return play_wrong(play,
				"nothing is expected of %u of the requests of line %u", play->left,
				play->question_line);
		return does[i](play, slice_trim(words));
	}
	return play_wrong(play, "\"%.*s\" is no statement", (int)word.len, word.ptr);
}

int
scenario_play(struct world *world, const char *file, struct slice text, struct err *err)
{
	struct play play = { .world = world, .file = file, .err = err, .rest = text };

	(void)parse_date(SLICE("2026-01-01T00:00:00Z"), &play.start_us);
	play.now_us = play.start_us;
	while (!play.is_over && play_next(&play)) {
		if (do_statement(&play) != 0)
			return -1;
	}
	if (play.is_over)
		return 0;
	if (play.left > 0)
		return play_wrong(&play, "nothing is expected of %u of the requests of line %u",
			play.left, play.question_line);
	return play.requests > 0 ? 0 : play_wrong(&play, "there is no request in it");
}
