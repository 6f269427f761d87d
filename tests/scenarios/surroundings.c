/*
 * What a scenario has around it: configurations, the files that they name, an application, and what
 * becomes of Redis.
 */
#include "scenario.h"

#include <stdio.h>

/* Where a scenario has its files. They are made in the world's directory. */
#define ETC "/etc/weir/"

/* With its lines where they stand in the scenario, so that what is said of them is right. */
int
play_use(struct play *play, unsigned first_line, struct slice text)
{
	const char *slash = strrchr(play->file, '/');
	char path[256], sections[SECTIONS_MAX];
	struct err err;

	(void)snprintf(path, sizeof path, "%s/%s", play->world->directory,
		slash == NULL ? play->file : slash + 1);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	for (unsigned line = 1; line < first_line; line++)
		(void)fputc('\n', out);
	for (size_t i = 0; i < text.len; i++) {
		const struct slice rest = slice_skip(text, i);

		if (slice_has_prefix(rest, SLICE("@" ETC))) {
			(void)fprintf(out, "@%s/", play->world->directory);
			i += sizeof "@" ETC - 2;
		} else {
			(void)fputc(text.ptr[i], out);
		}
	}
	(void)fputs(world_sections(play->world, sections), out);
	assert_int_equal(fclose(out), 0);
	play->has_configuration = true;
	return world_use(play->world, path, &err) == 0 ? 0 : err_set(play->err, "%s", err.text);
}

int
play_file(struct play *play, struct slice words)
{
	const struct slice etc = SLICE(ETC);
	char path[256];

	if (!slice_has_prefix(words, etc) ||
		slice_find(slice_skip(words, etc.len), '/') < words.len - etc.len)
		return play_wrong(play, "a file is one of " ETC);
	(void)snprintf(path, sizeof path, "%s/%.*s", play->world->directory,
		(int)(words.len - etc.len), words.ptr + etc.len);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	while (play_next_indented(play))
		(void)fprintf(out, "%.*s\n", (int)play->text.len, play->text.ptr);
	assert_int_equal(fclose(out), 0);
	return 0;
}

int
play_app(struct play *play, struct slice words)
{
	struct buf fields;

	if (words.len > 0 || play->world->app != NULL)
		return play_wrong(play, "an application stands alone, and there is one");
	buf_init(&fields, 4096);
	while (play_next_indented(play)) {
		assert_int_equal(buf_append(&fields, play->text.ptr, play->text.len), 0);
		assert_int_equal(buf_append(&fields, "\r\n", 2), 0);
	}
	world_start_app(play->world, buf_slice(&fields));
	buf_release(&fields);
	return 0;
}

/* "redis holds 3 keys" */
static int
look_at_keys(struct play *play, struct slice words)
{
	struct slice word;
	uint64_t wanted;

	if (!play_word(&words, &word) || play_number(play, word, &wanted) != 0)
		return play_wrong(play, "how many keys does Redis hold?");
	const long long keys = world_keys(play->world, play->now_us);

	return keys == (long long)wanted ? 0 : play_wrong(play, "Redis holds %lld keys", keys);
}

int
play_redis(struct play *play, struct slice words)
{
	struct slice word = { NULL, 0 };

	(void)play_word(&words, &word);
	if (slice_is(word, SLICE("only"))) {
		play->is_over = play->world->server == NULL;
		return play->requests == 0 ? 0 : play_wrong(play, "this comes before all else");
	}
	if (play->world->direct == NULL)
		return play_wrong(play, "there is no Redis; \"redis only\" comes before all else");
	if (slice_is(word, SLICE("holds")))
		return look_at_keys(play, words);
	if (slice_is(word, SLICE("empty")))
		world_empty(play->world);
	else if (slice_is(word, SLICE("away")))
		world_lose_redis(play->world);
	else
		return play_wrong(play, "redis what?");
	return 0;
}
