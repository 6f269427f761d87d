"""A FastCGI client that can also do wrong: stop in the middle, wait, say things in pieces."""

import struct

from weirtest.client import connect

BEGIN_REQUEST, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR = range(1, 8)
RESPONDER, AUTHORIZER = 1, 2
KEEP_CONN = 1


def record(kind, content=b"", request_id=1):
    return struct.pack("!BBHHBx", 1, kind, request_id, len(content), 0) + content


def begin(role=RESPONDER, keep=False):
    return record(BEGIN_REQUEST, struct.pack("!HB5x", role, KEEP_CONN if keep else 0))


def pairs(params):
    def length(text):
        return bytes([len(text)]) if len(text) < 128 else struct.pack("!I", len(text) | 1 << 31)

    out = b""
    for name, value in params.items():
        name, value = name.encode(), value.encode()
        out += length(name) + length(value) + name + value
    return out


def usual_params(path="/index.php", documents=None, **more):
    """As a web server would send them for a GET."""
    params = {
        "REQUEST_METHOD": "GET", "REQUEST_URI": path, "SCRIPT_NAME": path, "QUERY_STRING": "",
        "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.1", "SERVER_SOFTWARE": "test",
        "REMOTE_ADDR": "192.0.2.1", "HTTP_HOST": "localhost", "CONTENT_LENGTH": "",
    }
    if documents is not None:
        params["SCRIPT_FILENAME"] = documents + path
        params["DOCUMENT_ROOT"] = documents
    params.update(more)
    return params


def request(params, role=RESPONDER, keep=False, body=b""):
    """A whole request."""
    out = begin(role, keep) + record(PARAMS, pairs(params)) + record(PARAMS)
    for at in range(0, len(body), 65535):
        out += record(STDIN, body[at:at + 65535])
    return out + record(STDIN) if role == RESPONDER else out


class Reply:
    def __init__(self):
        self._pieces = {STDOUT: [], STDERR: []}
        self.app_status = None      # None: END_REQUEST has not come

    def take(self, kind, content):
        if kind == END_REQUEST:
            self.app_status = struct.unpack("!I", content[:4])[0]
        elif kind in self._pieces:
            self._pieces[kind].append(content)

    @property
    def stdout(self):
        return b"".join(self._pieces[STDOUT])

    @property
    def stderr(self):
        return b"".join(self._pieces[STDERR])

    @property
    def is_whole(self):
        return self.app_status is not None

    @property
    def status(self):
        head = self.stdout.partition(b"\r\n\r\n")[0].decode("latin-1")
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "status":
                return int(value.split()[0])
        return 200 if head else 0

    @property
    def body(self):
        return self.stdout.partition(b"\r\n\r\n")[2]


class Connection:
    def __init__(self, path, timeout=30):
        self.peer = connect(path, timeout)
        self._data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.peer.close()

    def send(self, data):
        self.peer.sendall(data)

    def _read_record(self):
        """None at the end of what comes."""
        while True:
            if len(self._data) >= 8:
                _, kind, _, length, padding = struct.unpack("!BBHHBx", self._data[:8])
                if len(self._data) >= 8 + length + padding:
                    content = bytes(self._data[8:8 + length])
                    del self._data[:8 + length + padding]
                    return kind, content
            try:
                data = self.peer.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._data += data

    def reply(self):
        """Reads to END_REQUEST, or to the end of the connection."""
        reply = Reply()
        while not reply.is_whole:
            got = self._read_record()
            if got is None:
                break
            reply.take(*got)
        return reply

    def ask(self, params, **how):
        self.send(request(params, **how))
        return self.reply()


def ask(path, params, **how):
    """One request on a connection of its own."""
    with Connection(path) as connection:
        return connection.ask(params, **how)
