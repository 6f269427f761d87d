/* An inquiry put to a made-up server, and what it reports. */
#ifndef WEIR_TESTS_REDIS_ASKING_H
#define WEIR_TESTS_REDIS_ASKING_H

#include "../lib/run_loop.h"
#include "said.h"
#include "weir/hash.h"
#include "weir/inquiry.h"

static struct fake fake;
static struct inquiry_report report;
static unsigned reports;
static const char *password; /* of the next inquiry */

static inline void
on_report(void *context, const struct inquiry_report *given)
{
	report = *given;
	reports++;
	loop_stop(context);
}

static inline void
ask_at(const struct address *server, enum inquiry_kind kind)
{
	const struct redis_settings settings = { .server = *server,
		.sentinels = { .master = "main" },
		.password = password,
		.prefix = "weir:",
		.deadline_us = 1000 };
	struct err err;

	assert_int_equal(hash_start(&err), 0);
	struct loop *loop = loop_new(&err);

	assert_non_null(loop);
	struct resolver *resolver = resolver_new(loop, &err);

	assert_non_null(resolver);
	reports = 0;
	struct inquiry *inquiry = inquiry_start(loop, resolver, &settings, kind,
		inquiry_end_us(loop, settings.deadline_us), on_report, loop);

	assert_non_null(inquiry);
	run_loop_until(loop, reports > 0);
	assert_int_equal(reports, 1);
	inquiry_free(inquiry);
	resolver_free(resolver);
	loop_free(loop);
}

static inline void
ask_as(fake_fn *serve, enum inquiry_kind kind)
{
	fake_open(&fake, serve);
	ask_at(&fake.address, kind);
	fake_close(&fake);
}

static inline void
ask(fake_fn *serve)
{
	ask_as(serve, INQUIRY_ALONE);
}

#endif
