"""uWSGI as an SCGI server, with an application that tells which one answers."""

import os
import socket

from weirtest.client import connect
from weirtest.process import Server

PROGRAM = "uwsgi_python3"

APPLICATION = """\
import os
import time


def application(environ, start_response):
    body = environ["wsgi.input"].read()
    time.sleep(int(environ.get("SLEEP_MS", "0")) / 1000)
    start_response("200 OK", [("Content-Type", "text/plain"),
                              ("X-Server", os.environ["WEIRTEST_NAME"])])
    return [b"%d bytes\\n" % len(body)]
"""


def request(params):
    """Without a body."""
    pairs = {"CONTENT_LENGTH": "0", "SCGI": "1", **params}
    head = b"".join(f"{name}\0{value}\0".encode() for name, value in pairs.items())
    return b"%d:%s," % (len(head), head)


class Uwsgi(Server):
    starts_as_root = False

    def __init__(self, place, name, port=None):
        """`port`: of TCP on this host; else it has a unix socket."""
        super().__init__(place, name)
        self.socket = place.socket(name) if port is None else port
        self.address = f"unix:{self.socket}" if port is None else f"tcp:127.0.0.1:{port}"
        self._application = place.sub("bin", "application.py")
        with open(self._application, "w", encoding="ascii") as file:
            file.write(APPLICATION)
        os.chmod(self._application, 0o644)

    def command(self):
        return [PROGRAM, "--scgi-socket", self.address.partition(":")[2], "--chmod-socket=666",
                "--threads", "8", "--wsgi-file", self._application, "--need-app", "--die-on-term",
                "--disable-logging"]

    def environment(self):
        return dict(super().environment(), WEIRTEST_NAME=self.name)

    def is_ready(self):
        with connect(self.socket) as peer:
            peer.sendall(request({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}))
            return b"0 bytes" in peer.recv(65536, socket.MSG_WAITALL)
