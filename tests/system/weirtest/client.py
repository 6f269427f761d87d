"""An HTTP/1.1 client that reads while it writes, as browsers and curl do: an answer that comes
before the body has been sent is seen, and the rest of the body is then not sent. http.client
does not do that, and says little of an answer that is cut short."""

import hashlib
import select
import socket
import time

READ_SIZE = 256 * 1024


class Zeros:
    """A body of that many zero bytes which takes no memory."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


class Answer:
    def __init__(self):
        self.status = 0
        self.reason = ""
        self.fields = []
        self.is_whole = False
        self.body = b""
        self.length = 0
        self.sent = 0
        self._hash = hashlib.sha256()

    def take(self, data, keep):
        self._hash.update(data)
        self.length += len(data)
        if keep:
            self.body += data

    @property
    def sha256(self):
        return self._hash.hexdigest()

    @property
    def text(self):
        return self.body.decode()

    def all(self, name):
        return [value for known, value in self.fields if known.lower() == name.lower()]

    def __getitem__(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.length} bytes, whole: {self.is_whole}>"


class _Reader:
    """The answer's side: head, then a body by length, in chunks, or to the end."""

    def __init__(self, method, keep_body):
        self.answer = Answer()
        self._method = method
        self._keep = keep_body
        self._data = b""
        self._left = None        # of the body or the chunk; None: the head is not whole
        self._chunked = False
        self._to_end = False

    def feed(self, data):
        self._data += data
        while not self.answer.is_whole and self._step():
            pass

    def eof(self):
        if self._to_end:
            self.answer.is_whole = True

    def _step(self):
        if self._left is None:
            return self._head()
        if self._chunked and self._left == 0:
            return self._chunk_size()
        if not self._data:
            return False
        piece = self._data if self._to_end else self._data[:self._left]
        self._data = self._data[len(piece):]
        self.answer.take(piece, self._keep)
        if not self._to_end:
            self._left -= len(piece)
            self.answer.is_whole = self._left == 0 and not self._chunked
        return True

    def _head(self):
        head, blank, rest = self._data.partition(b"\r\n\r\n")
        if not blank:
            return False
        lines = head.decode("latin-1").split("\r\n")
        version, status, reason = (lines[0] + "  ").split(" ", 2)
        if not version.startswith("HTTP/1."):
            raise AssertionError(f"no HTTP answer: {lines[0]!r}")
        self._data = rest
        if status.startswith("1"):
            return True
        self.answer.status = int(status)
        self.answer.reason = reason.strip()
        self.answer.fields = [(name, value.strip()) for name, _, value in
                              (line.partition(":") for line in lines[1:])]
        self._frame()
        return True

    def _frame(self):
        answer = self.answer
        length = answer["Content-Length"]
        if self._method == "HEAD" or answer.status in (204, 304):
            self._left = 0
            answer.is_whole = True
        elif (answer["Transfer-Encoding"] or "").lower() == "chunked":
            self._left = 0
            self._chunked = True
        elif length is not None:
            self._left = int(length)
            answer.is_whole = self._left == 0
        else:
            self._left = 0
            self._to_end = True

    def _chunk_size(self):
        if self._data.startswith(b"\r\n") and self.answer.length > 0:
            self._data = self._data[2:]
        line, end, rest = self._data.partition(b"\r\n")
        if not end:
            return False
        size = int(line.split(b";")[0], 16)
        if size == 0:
            # No server here sends trailers.
            if len(rest) < 2:
                return False
            self.answer.is_whole = True
        self._left = size
        self._data = rest
        return True


def _pieces(body, chunked):
    """The body as memory to send, framed in chunks if it is to go without a length."""
    if isinstance(body, Zeros):
        block = memoryview(bytes(READ_SIZE))
        whole = (block[:min(READ_SIZE, body.length - at)] for at in
                 range(0, body.length, READ_SIZE))
    else:
        view = memoryview(body)
        whole = (view[at:at + READ_SIZE] for at in range(0, len(body), READ_SIZE))
    for piece in whole:
        if chunked:
            yield memoryview(b"%x\r\n" % len(piece))
        yield piece
        if chunked:
            yield memoryview(b"\r\n")
    if chunked:
        yield memoryview(b"0\r\n\r\n")


def connect(address, timeout=30):
    """To a port of this host, a pair of an address and a port, or a unix socket's path."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    if isinstance(address, int):
        address = ("127.0.0.1", address)
    peer = socket.socket(family, socket.SOCK_STREAM)
    peer.settimeout(timeout)
    try:
        peer.connect(address)
    except BaseException:
        peer.close()
        raise
    return peer


def _head(method, path, fields, body, chunked):
    names = [name.lower() for name, _ in fields]
    lines = [f"{method} {path} HTTP/1.1"]
    if "host" not in names:
        lines.append("Host: localhost")
    lines += [f"{name}: {value}" for name, value in fields]
    lines.append("Connection: close")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class _Exchange:
    def __init__(self, peer, reader, out):
        self.peer = peer
        self.reader = reader
        self.out = out
        self.piece = next(out)
        self.peer.setblocking(False)

    def write(self):
        try:
            sent = self.peer.send(self.piece)
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            # What the server has said before is still there to be read.
            self.piece = None
            return
        self.reader.answer.sent += sent
        self.piece = self.piece[sent:]
        if not self.piece:
            self.piece = next(self.out, None)

    def read(self):
        """False: there is no more."""
        try:
            data = self.peer.recv(READ_SIZE)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        if not data:
            self.reader.eof()
            return False
        self.reader.feed(data)
        return not self.reader.answer.is_whole


def ask(address, path, method="GET", fields=(), body=None, chunked=False, keep_body=True,
        stop_after=None, timeout=60):
    """One request on a connection of its own. `stop_after`: goes away after so many bytes of the
    answer's body. An answer that did not come to its end has is_whole false; if nothing came, its
    status is 0."""
    reader = _Reader(method, keep_body)
    until = time.monotonic() + timeout
    with connect(address, timeout) as peer:
        def out():
            yield memoryview(_head(method, path, fields, body, chunked))
            if body is not None:
                yield from _pieces(body, chunked)

        exchange = _Exchange(peer, reader, out())
        poll = select.poll()
        going = True
        while going:
            events = select.POLLIN | (select.POLLOUT if exchange.piece is not None else 0)
            poll.register(peer, events)
            ready = poll.poll(max(0, until - time.monotonic()) * 1000)
            if not ready:
                raise TimeoutError(f"{method} {path}: no end within {timeout} s, so far "
                                   f"{reader.answer!r}")
            if ready[0][1] & ~select.POLLOUT:
                going = exchange.read()
            if going and exchange.piece is not None and ready[0][1] & select.POLLOUT:
                exchange.write()
            if stop_after is not None and reader.answer.length >= stop_after:
                going = False
    return reader.answer
