/*
 * Scenarios: what the manual promises about limits, told as a story of requests and answers. Each
 * file is held against the memory store and against a real Redis, and both must give what it says.
 *
 *     [limit page]                            first the configuration, as in weir.ini(5); a backend
 *     policy = 5/1m                           of type none is added
 *
 *     [route default]
 *     match   = *
 *     limit   = page
 *     headers = x-ratelimit
 *
 *     start 2026-02-28T23:59:59Z              if it matters
 *
 *     at 0s                                   since the start; or a date like the one above
 *     request GET / from 192.0.2.1, 5 times
 *     	Host: example.org                      header fields, indented
 *     expect 4 times 200
 *     expect 200, remaining 0
 *     	X-RateLimit-Remaining: 0               a whole line of the answer's head
 *     	no RateLimit                           a field that is not there
 *
 *     at 1s
 *     request GET / from 192.0.2.1
 *     expect 429 by page 1m, retry-after 11
 *
 *     at 1m 30s 500ms                         time does not go back
 *
 * `#` begins a line that is a comment. Every request has its `expect` lines, and these speak of all
 * of it: what would have been rejected, but was let pass, is said as `would-reject`.
 *
 *     request METHOD TARGET from ADDRESS
 *         user NAME              authenticated by the web server; `claimed-user NAME`: only said
 *         script PATH            SCRIPT_NAME, else it is the path
 *         env NAME=VALUE         another FastCGI parameter
 *         shard K                the shard that it meets; else they take turns, from 0
 *         as NAME                for `end`
 *         N times
 *     expect [N times] STATUS
 *         by LIMIT POLICY        violated; all of them are named, or none
 *         retry-after N | N to M | none
 *         remaining N            the least of all policies that reject; or of one:
 *         remaining N of LIMIT POLICY
 *         would-reject [by LIMIT POLICY]...
 *     end NAME                   the request is over and gives its lease back. Only after `start
 *                                now`, since Redis does that by its own clock
 *     reload                     followed by a configuration in place of the one before
 *     file /etc/weir/NAME        followed by its lines, indented; before a configuration that says
 *                                @/etc/weir/NAME
 *     app                        followed by the fields of its answers, indented; before a
 *                                configuration with `backend = app`
 *     redis only                 first of all: the scenario is not for the memory store
 *           holds N keys         at this time; they expire by the scenario's clock
 *           empty                an operator has emptied it
 *           away                 it was killed, and stays away
 *
 * A request that takes a lease and is admitted stays under way until its end, or that of all.
 */
#ifndef WEIR_TESTS_SCENARIOS_SCENARIO_H
#define WEIR_TESTS_SCENARIOS_SCENARIO_H

#include "world.h"

/* A file being played. */
struct play {
	struct world *world;
	const char *file;
	struct err *err;
	struct slice rest; /* behind the current line */
	struct slice text; /* the current line, trimmed */
	unsigned line;
	bool indented;
	int64_t start_us, now_us;
	bool is_now, has_configuration;
	bool is_over; /* it is not for this store */
	unsigned requests;
	struct question question;
	unsigned question_line, left; /* answers to the question that nothing was expected of yet */
	struct held *held;
};

/* The next line that is neither blank nor a comment. False: there is none. */
bool play_next(struct play *play);

/* The next one, only if it is indented. */
bool play_next_indented(struct play *play);

/* Always -1: what is wrong, with file and line. */
int play_wrong(struct play *play, const char *format, ...) WEIR_PRINTF(2, 3);

/* The next word of a line; a comma behind it is left out. */
bool play_word(struct slice *rest, struct slice *word);
int play_number(struct play *play, struct slice word, uint64_t *out) WEIR_MUST_CHECK;

/* Asks as often as the current line says, and compares. -1: the answers are others, or the line is
 * wrong. */
int expect(struct play *play, struct slice words) WEIR_MUST_CHECK;

/* The configuration that begins at this line. */
int play_use(struct play *play, unsigned first_line, struct slice text) WEIR_MUST_CHECK;

/* Their statements. */
int play_file(struct play *play, struct slice words) WEIR_MUST_CHECK;
int play_app(struct play *play, struct slice words) WEIR_MUST_CHECK;
int play_redis(struct play *play, struct slice words) WEIR_MUST_CHECK;
int play_request(struct play *play, struct slice words) WEIR_MUST_CHECK;
int play_end(struct play *play, struct slice words) WEIR_MUST_CHECK;

/* A request has been answered; its lease can be ended by the question's name. */
int play_hold(struct play *play, const struct reply *reply) WEIR_MUST_CHECK;

/* All of a file. -1: err says what is wrong with it, or with the answers, at which line. */
int scenario_play(
	struct world *world, const char *file, struct slice text, struct err *err) WEIR_MUST_CHECK;

#endif
