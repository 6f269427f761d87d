"""Apache with etc/apache-weir-*.conf."""

from weirtest.client import ask
from weirtest.front import Front, Snippet, Spawner, cgi_program
from weirtest.place import worker_user
from weirtest.process import descendants_of

# What Debian's apache2.conf and mods-enabled say, with all files in the test's directory.
CONFIG = """\
ServerRoot "{root}"
ServerName localhost
DefaultRuntimeDir "{run}"
PidFile "{run}/{name}.pid"
Mutex file:{run} default
ErrorLog "{log}"
LogLevel warn
Listen 127.0.0.1:{port}
{user}
{modules}
ServerLimit 4
ThreadsPerChild 32
MaxRequestWorkers 128
StartServers 1
MaxKeepAliveRequests 0
Timeout 60
DocumentRoot "{documents}"
<Directory "{documents}">
	AllowOverride FileInfo
	Require all granted
</Directory>
{more}
Include "{snippet}"
"""

MODULES = ("mpm_event", "authz_core", "dir", "env", "mime", "setenvif")


class _Apache(Front):
    def _configure(self, modules, snippet, more=""):
        place, user = self.place, worker_user()
        lines = [f"LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so"
                 for module in MODULES + modules]
        mime = place.write("mime.types", "text/plain txt\n")
        return place.write(self.name + ".conf", CONFIG.format(
            root=place.path, run=place.sub("run"), name=self.name, log=place.log(self.name),
            port=self.port, user="" if user is None else f"User {user}\nGroup {user}",
            modules="\n".join(lines), documents=place.documents,
            more=f'TypesConfig "{mime}"\n{more}',
            snippet=place.write(self.name + "-weir.conf", snippet.text)))

    def command(self):
        return ["apache2", "-f", self.config, "-D", "FOREGROUND"]


class ApacheProxy(_Apache):
    def __init__(self, place, socket, name="apache", reuse=True, learns_length=True):
        """`learns_length`: of a body in chunks, before it is passed on."""
        super().__init__(place, name)
        snippet = Snippet("apache-weir-proxy-fcgi.conf").put("/run/weir/weir.sock", socket)
        if not reuse:
            snippet.put("enablereuse=on", "enablereuse=off")
        if not learns_length:
            snippet.put("SetEnv proxy-sendcl 1", "")
        self.config = self._configure(("proxy", "proxy_fcgi"), snippet)


class ApacheProxyPass(_Apache):
    """All that lies below /app/, and PHP by suffix elsewhere."""

    def __init__(self, place, socket, name="apache"):
        super().__init__(place, name)
        snippet = Snippet("apache-weir-proxypass.conf").put("/run/weir/weir.sock", socket)
        snippet.text = Snippet("apache-weir-proxy-fcgi.conf").put(
            "/run/weir/weir.sock", socket).text + snippet.text
        snippet.put("/srv/app/", place.documents + "/")
        self.config = self._configure(("proxy", "proxy_fcgi"), snippet)


class ApacheAuthnz(_Apache):
    """Asks, and serves by itself."""

    def __init__(self, place, port, name="apache"):
        super().__init__(place, name)
        snippet = Snippet("apache-weir-authnz-fcgi.conf")
        snippet.put("fcgi://127.0.0.1:9099/", f"fcgi://127.0.0.1:{port}/")
        snippet.put('<Directory "/var/www/html">', f'<Directory "{place.documents}">')
        self.config = self._configure(("authn_core", "authz_user", "authnz_fcgi"), snippet)


class ApacheFcgid(Spawner, _Apache):
    """Starts weir itself, one process for each request at a time."""

    snippet = "apache-weir-fcgid.conf"
    modules = ("fcgid",)

    def __init__(self, place, command, name="apache"):
        super().__init__(place, name)
        snippet = Snippet(self.snippet)
        snippet.put("/usr/bin/weir serve --config /etc/weir/fcgid.ini", " ".join(command))
        snippet.put("/var/www/html", place.documents)
        self.program = command[0]
        self.config = self._configure(
            self.modules, snippet,
            f'FcgidIPCDir "{place.sub("run")}"\n'
            f'FcgidProcessTableFile "{place.sub("run", name + ".fcgid_shm")}"')

    def weirs(self):
        found = []
        for pid in descendants_of(self.pid):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if file.read().split(b"\0")[0].decode() == self.program:
                        found.append(pid)
            except OSError:
                pass
        return found


class ApacheFcgidAuthorizer(ApacheFcgid):
    """Asks, and serves by itself."""

    snippet = "apache-weir-fcgid-authorizer.conf"
    modules = ("fcgid", "rewrite", "headers")


class ApacheFcgidLogin(ApacheFcgidAuthorizer):
    """The same with another question, and a login before it."""

    modules = ApacheFcgidAuthorizer.modules + ("auth_basic", "authn_core", "authn_file",
                                               "authz_user")

    def __init__(self, place, command, asking):
        self._asking = asking
        super().__init__(place, command)

    def _configure(self, modules, snippet, more=""):
        snippet.put("\tFcgidAccessChecker ", f"\t{self._asking} ")
        return super()._configure(modules, snippet, more)

    def is_ready(self):
        return ask(self.port, "/ready.txt", timeout=5).status == 401


class ApacheCgi(_Apache):
    """Starts weir for each request below /app/, by the line that etc/weir.cgi names."""

    def __init__(self, place, weir, name="apache"):
        super().__init__(place, name)
        snippet = Snippet("weir.cgi")
        alias = next(line for line in snippet.text.splitlines() if "ScriptAlias" in line)
        snippet.text = alias.lstrip("# ").replace("/usr/local/lib/weir.cgi",
                                                  cgi_program(place, weir))
        self.config = self._configure(
            ("alias", "cgid"), snippet, f'ScriptSock "{place.sub("run", name + ".cgid")}"\n'
            f'<Directory "{place.sub("bin")}">\nRequire all granted\n</Directory>')
