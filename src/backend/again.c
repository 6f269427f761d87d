/*
 * A request that may be made once more. Only one on a kept connection may: the server can have
 * closed that just before, or say that it takes no other request there, and neither is a reason to
 * answer 502. And only as long as it is certain that the application has not begun with it, since
 * what it does may not bear being done twice.
 */
#include "backend_private.h"

/* What was sent before it need not be kept any more. */
void
exchange_is_seen(struct exchange *exchange)
{
	if (!exchange->may_ask_again)
		return;
	exchange->may_ask_again = false;
	buf_release(&exchange->early);
}

/* Had the kernel taken a byte, nobody could say what the server has done since: not even a GET is
 * asked again then. */
bool
exchange_is_unseen(const struct exchange *exchange)
{
	return exchange->may_ask_again && stream_taken(exchange->stream) == exchange->taken_before;
}

void
exchange_ask_again(struct exchange *exchange)
{
	stream_close(exchange->stream);
	exchange->stream = NULL;
	exchange->may_ask_again = false;
	exchange->state = EXCHANGE_WAITING;
	exchange->pool->framing->start(exchange);
	exchange->connect_until_us =
		loop_now_us(exchange->pool->loop) + exchange->pool->connect_timeout_us;
	exchange_connect(exchange);
}
