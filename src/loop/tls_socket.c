/* How OpenSSL reaches a stream's socket. Its own way writes with write(), which raises SIGPIPE for
 * a peer that has gone. */
#include "tls_private.h"

#include <errno.h>
#include <sys/socket.h>

static int
put(BIO *bio, const char *bytes, int len)
{
	const struct tls_socket *socket = BIO_get_data(bio);
	const ssize_t n = send(socket->fd, bytes, (size_t)len, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return (int)n;
}

static int
get(BIO *bio, char *out, int size)
{
	struct tls_socket *socket = BIO_get_data(bio);
	const ssize_t n = recv(socket->fd, out, (size_t)size, 0);

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	if (n == 0)
		socket->is_at_end = true;
	return (int)n;
}

static long
control(BIO *bio, int what, long number, void *pointer)
{
	const struct tls_socket *socket = BIO_get_data(bio);

	(void)number, (void)pointer;
	if (what == BIO_CTRL_EOF)
		return socket != NULL && socket->is_at_end;
	return what == BIO_CTRL_FLUSH;
}

BIO_METHOD *
tls_socket_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir socket");

	if (method == NULL)
		return NULL;
	(void)BIO_meth_set_write(method, put);
	(void)BIO_meth_set_read(method, get);
	(void)BIO_meth_set_ctrl(method, control);
	return method;
}
