"""Caddy with etc/Caddyfile-weir."""

from weirtest.front import Front, Snippet

CONFIG = """\
{{
	admin off
	auto_https off
}}
import {snippet}
"""


class Caddy(Front):
    starts_as_root = False

    def __init__(self, place, socket, name="caddy"):
        super().__init__(place, name)
        snippet = Snippet("Caddyfile-weir").put("unix//run/weir/weir.sock", "unix/" + socket)
        snippet.put(":80 {", f":{self.port} {{\n\tbind 127.0.0.1")
        snippet.put("/var/www/html", place.documents)
        self.config = place.write(name + ".conf", CONFIG.format(
            snippet=place.write(name + "-site.conf", snippet.text)))

    def environment(self):
        # Where it keeps what it would write to the user's home.
        return dict(super().environment(), HOME=self.place.sub("tmp"),
                    XDG_DATA_HOME=self.place.sub("tmp"), XDG_CONFIG_HOME=self.place.sub("tmp"))

    def command(self):
        return ["caddy", "run", "--config", self.config, "--adapter", "caddyfile"]
