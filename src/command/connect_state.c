/* How the server is: whether it might forget limits, what its clock says, and how long it takes. */
#include "connect.h"

#include "weir/units.h"

#include <inttypes.h>
#include <stdio.h>

enum { FULL_PERCENT = 90 };

#define OFFSET_MAX_US US_PER_S

/* Every key of weir's expires, so a policy for volatile keys evicts it too. */
static void
say_memory(const struct connect_view *view, const struct inquiry_report *report,
	struct connect_said *said)
{
	const uint64_t mib = report->maxmemory >> 20;

	if (report->refusals[INQUIRY_MEMORY][0] != '\0') {
		if (said->no_info)
			return;
		said->no_info = true;
		(void)printf("redis %s: whether it may evict limits when it is full cannot be told "
			     "without the right +info: %s\n",
			view->name, report->refusals[INQUIRY_MEMORY]);
		return;
	}
	if (!report->has_memory || report->maxmemory == 0)
		return;
	if (strcmp(report->policy, "noeviction") != 0) {
		connect_say(view, SEVERITY_WARNING, view->key,
			"when its maxmemory of %" PRIu64 " MiB is full, maxmemory-policy %s evicts "
			"limits, and who was counted there has all tokens anew; write "
			"maxmemory-policy noeviction, or give weir a server of its own",
			mib, report->policy);
		return;
	}
	if (report->used_memory / FULL_PERCENT >= report->maxmemory / 100)
		connect_say(view, SEVERITY_WARNING, view->key,
			"%" PRIu64 " MiB of its maxmemory of %" PRIu64 " MiB are used; when it is "
			"full it refuses to count (OOM), and store_down decides",
			report->used_memory >> 20, mib);
	else
		(void)printf("redis %s: when its maxmemory of %" PRIu64 " MiB is full it refuses "
			     "to count (OOM), and store_down decides\n",
			view->name, mib);
}

static void
say_clock(const struct connect_view *view, const struct inquiry_report *report)
{
	const int64_t us = report->ahead_us < 0 ? -report->ahead_us : report->ahead_us;
	char text[DURATION_TEXT_SIZE];

	if (report->has_clock && us > OFFSET_MAX_US)
		connect_say(view, SEVERITY_WARNING, view->key,
			"its clock is %s %s this host's; limits go by its clock, so calendar "
			"quotas begin anew by it, and X-RateLimit-Reset as a date may look wrong",
			duration_text(us, text), report->ahead_us < 0 ? "behind" : "ahead of");
}

static void
say_round_trip(const struct connect_view *view, const struct inquiry_report *report)
{
	char text[2][DURATION_TEXT_SIZE];

	if (report->round_trip_us > view->settings->deadline_us / 2)
		connect_say(view, SEVERITY_WARNING, "deadline",
			"a decision takes %s there and back, of a deadline of %s: many will miss "
			"it, and store_down decides then; raise it, or use a nearer server",
			duration_text(report->round_trip_us, text[0]),
			duration_text(view->settings->deadline_us, text[1]));
}

void
connect_words_of_state(const struct connect_view *view, const struct inquiry_report *report,
	struct connect_said *said)
{
	char text[DURATION_TEXT_SIZE], master[ADDRESS_TEXT_SIZE];

	(void)printf("redis %s: %s %s", view->name,
		report->name[0] == '\0' ? "a server" : report->name,
		report->version[0] == '\0' ? "of unknown version" : report->version);
	if (view->kind == INQUIRY_SENTINEL) {
		(void)printf(", sentinel%s%s\n",
			report->server_count == 0 ? "" : "; the master is ",
			report->server_count == 0
				? ""
				: address_text(&report->servers[0].address, master));
		return;
	}
	if (report->role[0] != '\0')
		(void)printf(", %s", report->role);
	if (report->round_trip_us > 0)
		(void)printf("; a decision takes %s there and back",
			duration_text(report->round_trip_us, text));
	(void)printf("\n");
	say_memory(view, report, said);
	say_clock(view, report);
	say_round_trip(view, report);
}
