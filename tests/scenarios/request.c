/*
 * Requests of a scenario: made from their line and their header fields as the parameters that a web
 * server sends, asked when something is expected of them, and ended by name.
 */
#include "scenario.h"

#include "weir/url_path.h"

#include <stdio.h>

enum { TIMES_MAX = 100000 };

struct held {
	struct held *next;
	struct slice name;
	struct under_way *request;
};

static int add_param(struct play *play, const char *format, ...) WEIR_PRINTF(2, 3);

static int
add_param(struct play *play, const char *format, ...)
{
	struct question *question = &play->question;
	char text[4096];
	va_list list;

	va_start(list, format);
	const int len = vsnprintf(text, sizeof text, format, list);

	va_end(list);
	if (len < 0 || (size_t)len >= sizeof text || question->params == QUESTION_PARAMS_MAX)
		return play_wrong(play, "the request is too large");
	char *name = arena_text(&play->world->arena, slice_of(text));

	assert_non_null(name);
	char *value = strchr(name, '=');

	if (value == NULL)
		return play_wrong(play, "a parameter is NAME=VALUE");
	*value = '\0';
	question->env[2 * question->params] = name;
	question->env[2 * question->params + 1] = value + 1;
	question->env[2 * ++question->params] = NULL;
	return 0;
}

static int
add_field(struct play *play)
{
	const size_t colon = slice_find(play->text, ':');
	const struct slice name = slice_first(play->text, colon);
	char param[128];

	if (colon == 0 || colon == play->text.len || slice_find(name, ' ') != colon ||
		colon >= sizeof param)
		return play_wrong(play, "a header field is \"Name: value\"");
	for (size_t i = 0; i < colon; i++) {
		const char c = name.ptr[i];

		param[i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	}
	const struct slice value = slice_trim(slice_skip(play->text, colon + 1));

	return add_param(play, "HTTP_%.*s=%.*s", (int)colon, param, (int)value.len, value.ptr);
}

static int
add_target(struct play *play, struct slice method, struct slice target, struct slice address)
{
	const size_t mark = slice_find(target, '?');
	const struct slice query = slice_skip(target, mark + (mark < target.len));
	struct slice script = slice_first(target, mark);
	char path[4096];
	size_t len;
	struct err err;

	/* As web servers resolve it. */
	if (target.len < sizeof path && url_path_normal(target, path, &len, &err) == 0)
		script = slice_make(path, len);
	return add_param(play, "REQUEST_METHOD=%.*s", (int)method.len, method.ptr) != 0 ||
			add_param(play, "REQUEST_URI=%.*s", (int)target.len, target.ptr) != 0 ||
			add_param(play, "QUERY_STRING=%.*s", (int)query.len, query.ptr) != 0 ||
			add_param(play, "SCRIPT_NAME=%.*s", (int)script.len, script.ptr) != 0 ||
			add_param(play, "REMOTE_ADDR=%.*s", (int)address.len, address.ptr) != 0
		? -1
		: 0;
}

/* One option of a request; its first word has been read. */
static int
add_option(struct play *play, struct slice word, struct slice *rest)
{
	struct slice value;
	uint64_t number;

	if (!play_word(rest, &value))
		return play_wrong(play, "\"%.*s\" of what?", (int)word.len, word.ptr);
	if (slice_is(value, SLICE("times"))) {
		if (play_number(play, word, &number) != 0)
			return -1;
		play->left = (unsigned)number;
		return number >= 1 && number <= TIMES_MAX
			? 0
			: play_wrong(play, "from 1 to %d times", TIMES_MAX);
	}
	if (slice_is(word, SLICE("user")))
		return add_param(play, "AUTH_TYPE=Basic") != 0
			? -1
			: add_param(play, "REMOTE_USER=%.*s", (int)value.len, value.ptr);
	if (slice_is(word, SLICE("claimed-user")))
		return add_param(play, "REMOTE_USER=%.*s", (int)value.len, value.ptr);
	if (slice_is(word, SLICE("script")))
		return add_param(play, "SCRIPT_NAME=%.*s", (int)value.len, value.ptr);
	if (slice_is(word, SLICE("env")))
		return add_param(play, "%.*s", (int)value.len, value.ptr);
	if (slice_is(word, SLICE("as"))) {
		play->question.name = value;
		return 0;
	}
	if (!slice_is(word, SLICE("shard")))
		return play_wrong(
			play, "\"%.*s\" is no word of a request", (int)word.len, word.ptr);
	if (play_number(play, value, &number) != 0)
		return -1;
	play->question.shard = (int)(number % POLICY_SHARDS_MAX);
	return 0;
}

int
play_request(struct play *play, struct slice words)
{
	struct slice method, target, from, address, word;

	if (!play->has_configuration)
		return play_wrong(play, "there is no configuration yet");
	play->question = (struct question){ .shard = SHARD_BY_TURNS, .now_us = play->now_us };
	play->question_line = play->line;
	play->left = 1;
	play->requests++;
	if (!play_word(&words, &method) || !play_word(&words, &target) ||
		!play_word(&words, &from) || !slice_is(from, SLICE("from")) ||
		!play_word(&words, &address))
		return play_wrong(play, "a request is \"request METHOD TARGET from ADDRESS\"");
	if (add_target(play, method, target, address) != 0)
		return -1;
	while (play_word(&words, &word)) {
		if (add_option(play, word, &words) != 0)
			return -1;
	}
	while (play_next_indented(play)) {
		if (add_field(play) != 0)
			return -1;
	}
	return 0;
}

int
play_hold(struct play *play, const struct reply *reply)
{
	struct held *held;

	if (play->question.name.len == 0)
		return 0;
	if (reply->under_way == NULL)
		return play_wrong(play, "no limit of the request is concurrent: it has no end");
	held = arena_alloc(&play->world->arena, sizeof *held);
	assert_non_null(held);
	*held = (struct held){ play->held, play->question.name, reply->under_way };
	play->held = held;
	return 0;
}

int
play_end(struct play *play, struct slice words)
{
	if (!play->is_now)
		return play_wrong(play, "requests can end only after \"start now\"");
	for (struct held *held = play->held; held != NULL; held = held->next) {
		if (!slice_is(held->name, words))
			continue;
		world_end(play->world, held->request);
		return 0;
	}
	return play_wrong(play, "there is no request of this name");
}
