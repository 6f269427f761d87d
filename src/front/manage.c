/*
 * Management records (FastCGI 1.0 section 4): FCGI_GET_VALUES and types that we do not know.
 * Answered here, since libfcgi overflows its stack on repeated names.
 */
#include "conn.h"

#include <stdio.h>

static uint64_t
max_conns(const struct front *front)
{
	return front->settings.told_connections;
}

static uint64_t
max_reqs(const struct front *front)
{
	return front->settings.told_requests;
}

static uint64_t
mpxs_conns(const struct front *front)
{
	(void)front;
	return 0;
}

enum { VALUES = 3 };

static const struct {
	struct slice name;
	uint64_t (*value)(const struct front *front);
} values[VALUES] = {
	{ { FCGI_MAX_CONNS, sizeof FCGI_MAX_CONNS - 1 }, max_conns },
	{ { FCGI_MAX_REQS, sizeof FCGI_MAX_REQS - 1 }, max_reqs },
	{ { FCGI_MPXS_CONNS, sizeof FCGI_MPXS_CONNS - 1 }, mpxs_conns },
};

/* Names that we do not know are left out (4.1); each is answered once, however often it was asked.
 */
static void
answer_values(struct front_conn *conn, struct slice content)
{
	struct buf pairs;
	struct slice name, ignored;
	unsigned asked = 0;
	uint8_t head[FCGI_HEADER_LEN];

	buf_init(&pairs, 512);
	while (fcgi_pair_next(&content, &name, &ignored) > 0) {
		for (unsigned i = 0; i < VALUES; i++) {
			if ((asked & 1U << i) != 0 || !slice_is(name, values[i].name))
				continue;
			char text[24];
			const int n = snprintf(text, sizeof text, "%llu",
				(unsigned long long)values[i].value(conn->front));

			asked |= 1U << i;
			if (fcgi_pair_put(&pairs, name, slice_make(text, (size_t)n)) != 0)
				break;
		}
	}
	fcgi_put_head(head, FCGI_GET_VALUES_RESULT, FCGI_NULL_REQUEST_ID, (uint16_t)pairs.len, 0);
	stream_write_pair(conn->stream, slice_make(head, sizeof head), buf_slice(&pairs));
	buf_release(&pairs);
}

static void
answer_unknown(struct front_conn *conn, uint8_t type)
{
	uint8_t record[FCGI_HEADER_LEN + 8] = { 0 };

	fcgi_put_head(record, FCGI_UNKNOWN_TYPE, FCGI_NULL_REQUEST_ID, 8, 0);
	record[FCGI_HEADER_LEN] = type;
	stream_write(conn->stream, slice_make(record, sizeof record));
}

void
manage_answer(struct front_conn *conn, uint8_t type, struct slice content)
{
	if (type == FCGI_GET_VALUES)
		answer_values(conn, content);
	else
		answer_unknown(conn, type);
}
