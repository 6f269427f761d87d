/* Parameters that are longer than a FastCGI record takes. */
#include "single.h"

#include <string.h>

enum { LONGEST = 65528 };

/* A pair of `len` bytes on the wire; its name's length in four bytes, though one would do. */
static void
put_long(struct buf *out, size_t len, bool is_minimal)
{
	static char text[200000];
	const size_t value = len - (is_minimal ? 9 : 12);
	const uint8_t four = 0x80;

	memset(text, 'x', sizeof text);
	if (is_minimal) {
		put_pair(out, SLICE("LONG"), slice_make(text, value));
		return;
	}
	const uint8_t lengths[] = { four, 0, 0, 4, (uint8_t)(four | value >> 24),
		(uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value };

	bytes_add(out, slice_make(lengths, sizeof lengths));
	bytes_add(out, SLICE("LONG"));
	bytes_add(out, slice_make(text, value));
}

static void
pair_that_fits_no_record_is_too_large(void **state)
{
	(void)state;
	serve(answers);
	for (size_t len = LONGEST - 3; len <= LONGEST + 3; len++) {
		for (unsigned minimal = 0; minimal < 2; minimal++) {
			struct buf params;
			struct talk talk;

			bytes_init(&params);
			put_pair(&params, SLICE("A"), SLICE("b"));
			put_long(&params, len, minimal != 0);
			put_pair(&params, SLICE("C"), SLICE("d"));
			if (talk_start_raw(&talk, pool, buf_slice(&params))) {
				talk_feed(&talk);
				talk_finish(&talk);
			}
			assert_row(talk.result ==
					(len <= LONGEST ? EXCHANGE_COMPLETE : EXCHANGE_TOO_LARGE),
				"%zu bytes: %s", len, talk.why);
			if (talk.result == EXCHANGE_COMPLETE)
				assert_true(fake_app_look(app).pairs_whole);
			talk_release(&talk);
			buf_release(&params);
		}
	}
	assert_int_equal(talk_in_flight(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_that_fits_no_record_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
