"""HAProxy with etc/haproxy-weir.cfg."""

from weirtest.client import ask
from weirtest.front import Front, Snippet

# What Debian's haproxy.cfg says, with all files in the test's directory.
CONFIG = """\
global
	log stderr format raw local0
	maxconn 1000
	nbthread 1

defaults
	log global
	timeout connect 5s
	timeout client 50s
	timeout server 50s

"""


class HAProxy(Front):
    starts_as_root = False

    def __init__(self, place, socket, name="haproxy"):
        super().__init__(place, name)
        snippet = Snippet("haproxy-weir.cfg").put("/run/weir/weir.sock", socket)
        snippet.put("bind :80", f"bind 127.0.0.1:{self.port}")
        snippet.put("/var/www/html", place.documents)
        self.config = place.write(name + ".cfg", CONFIG + snippet.text)

    def command(self):
        return ["haproxy", "-db", "-f", self.config]

    def is_ready(self):
        return ask(self.port, "/index.php", timeout=5).status == 200
