"""CGI programs: fcgiwrap, which weir can stand in for, and web servers that have both."""

import os

from weirtest import fcgi
from weirtest.front import Front
from weirtest.lighttpd import Lighttpd
from weirtest.nginx import CONFIG, Nginx
from weirtest.place import worker_user
from weirtest.process import Server
from weirtest.weir import Weir


class Programs:
    """Scripts below /weir/ and /wrap/, the same in both. What they note of themselves is a file of
    that name, the query's."""

    def __init__(self, place):
        self._place = place
        self.notes = place.sub("notes")
        for side in ("weir", "wrap"):
            os.mkdir(self.path(side))
            os.chmod(self.path(side), 0o755)

    def path(self, side, name=""):
        return os.path.join(self._place.documents, side, name)

    def write(self, name, script, mode=0o755):
        for side in ("weir", "wrap"):
            with open(self.path(side, name), "w", encoding="latin-1") as file:
                file.write(script if script.startswith("#!") else "#!/bin/sh\n" + script + "\n")
            os.chmod(self.path(side, name), mode)

    def link(self, name, target):
        for side in ("weir", "wrap"):
            os.symlink(target, self.path(side, name))

    def note(self, name):
        """What it has written; "" before that."""
        try:
            with open(os.path.join(self.notes, name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return ""
        return text if text.endswith("\n") else ""

    def tell(self, name):
        """Makes a file that a program waits for."""
        with open(os.path.join(self.notes, name), "w", encoding="utf-8") as file:
            file.write("\n")

    def params(self, side, name, **more):
        """As a web server would tell it."""
        return fcgi.usual_params(f"/{side}/{name}", self._place.documents, **more)


class _WithNotes(Server):
    """Its own environment has a secret."""

    def environment(self):
        return {**super().environment(), "SECRET": "ours", "NOTES": self.place.sub("notes")}


class CgiWeir(_WithNotes, Weir):
    pass


class Fcgiwrap(_WithNotes):
    starts_as_root = False

    def __init__(self, place, programs, name="fcgiwrap", processes=32):
        super().__init__(place, name)
        self.socket = place.socket(name)
        self._programs, self._processes = programs, processes

    def command(self):
        return ["fcgiwrap", "-c", str(self._processes), "-s", "unix:" + self.socket]

    def is_ready(self):
        return fcgi.ask(self.socket, self._programs.params("wrap", "hello")).body == b"hello\n"


LIGHTTPD = """\
fastcgi.server = (
	"/weir/" => (( "socket" => "{weir}" )),
	"/wrap/" => (( "socket" => "{wrap}" ))
)
# A client that goes away is seen.
server.stream-response-body = 1
"""


class _Text:
    def __init__(self, text):
        self.text = text


class LighttpdCgi(Lighttpd):
    def __init__(self, place, weir, wrap, name="lighttpd"):
        # pylint: disable=super-init-not-called,non-parent-init-called
        Front.__init__(self, place, name)
        self.config = self._configure(_Text(LIGHTTPD.format(weir=weir.socket, wrap=wrap.socket)))


NGINX = """\
server {{
	listen 127.0.0.1:{port};
	root {documents};
	client_max_body_size 0;
	include {params};
	fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
	fastcgi_buffering off;
	location /weir/ {{ fastcgi_pass unix:{weir}; }}
	location /wrap/ {{ fastcgi_pass unix:{wrap}; }}
}}
"""


class NginxCgi(Nginx):
    def __init__(self, place, weir, wrap, name="nginx"):
        # pylint: disable=super-init-not-called,non-parent-init-called
        Front.__init__(self, place, name)
        user = worker_user()
        site = NGINX.format(port=self.port, documents=place.documents, weir=weir.socket,
                            wrap=wrap.socket, params="/etc/nginx/fastcgi_params")
        self.config = place.write(name + ".conf", CONFIG.format(
            user="" if user is None else f"user {user};", run=place.sub("run"), name=name,
            log=place.log(name), tmp=place.sub("tmp"),
            site=place.write(name + "-site.conf", site)))
