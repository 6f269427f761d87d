"""lighttpd with etc/lighttpd-weir*.conf."""

from weirtest.front import Front, Snippet, Spawner, cgi_program
from weirtest.process import children_of

# What Debian's lighttpd.conf and 10-fastcgi.conf say, with all files in the test's directory.
CONFIG = """\
server.modules = ( "mod_fastcgi", "mod_staticfile" )
server.document-root = "{documents}"
server.upload-dirs = ( "{tmp}" )
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 65535
index-file.names = ( "index.php", "index.html" )
static-file.exclude-extensions = ( ".php" )
mimetype.assign = ( ".txt" => "text/plain" )
include "{snippet}"
"""


class _Lighttpd(Front):
    # One process, so with server.username it would lose the kernel's signal at the test's death.
    starts_as_root = False

    def _configure(self, snippet):
        place = self.place
        return place.write(self.name + ".conf", CONFIG.format(
            documents=place.documents, tmp=place.sub("tmp"),
            port=self.port, snippet=place.write(self.name + "-weir.conf", snippet.text)))

    def command(self):
        return ["lighttpd", "-D", "-f", self.config]


class Lighttpd(_Lighttpd):
    def __init__(self, place, socket, name="lighttpd", streams=1):
        super().__init__(place, name)
        snippet = Snippet("lighttpd-weir.conf").put("/run/weir/weir.sock", socket)
        snippet.put("server.stream-response-body = 1", f"server.stream-response-body = {streams}")
        self.config = self._configure(snippet)


class LighttpdSpawn(Spawner, _Lighttpd):
    """Starts weir itself, with several processes behind one configuration."""

    def __init__(self, place, weir, name="lighttpd", processes=4):
        super().__init__(place, name)
        snippet = Snippet("lighttpd-weir-spawn.conf")
        snippet.put("/usr/bin/weir serve --config /etc/weir/lighttpd.ini",
                    " ".join(weir.command()))
        snippet.put("/run/lighttpd/weir.sock", place.socket(name + "-weir"))
        snippet.put('"max-procs" => 1', f'"max-procs" => {processes}')
        self.config = self._configure(snippet)

    def weirs(self):
        return children_of(self.pid)


class LighttpdPhpCgi(Spawner, _Lighttpd):
    """Starts php-cgi itself, on a port that weir asks."""

    def __init__(self, place, socket, php_port, name="lighttpd"):
        super().__init__(place, name)
        snippet = Snippet("lighttpd-weir-php-cgi.conf").put("/run/weir/weir.sock", socket)
        snippet.put('"port" => 9009', f'"port" => {php_port}')
        self.config = self._configure(snippet)

    def weirs(self):
        """The php-cgi, here."""
        return children_of(self.pid)


class LighttpdCgi(_Lighttpd):
    """Starts weir for each request."""

    def __init__(self, place, weir, name="lighttpd"):
        super().__init__(place, name)
        self.config = self._configure(Snippet("lighttpd-weir-cgi.conf").put(
            "/usr/local/lib/weir.cgi", cgi_program(place, weir)))


class LighttpdAuthorizer(_Lighttpd):
    def __init__(self, place, weir_socket, php_socket, name="lighttpd"):
        super().__init__(place, name)
        snippet = Snippet("lighttpd-weir-authorizer.conf")
        snippet.put("/run/weir/weir.sock", weir_socket)
        snippet.put("/run/php/php-fpm.sock", php_socket)
        self.config = self._configure(snippet)
