"""Apache with etc/apache-weir-*.conf."""

from weirtest.front import Front, Snippet, Spawner
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


class ApacheFcgid(Spawner, _Apache):
    """Starts weir itself, one process for each request at a time."""

    def __init__(self, place, command, name="apache"):
        super().__init__(place, name)
        snippet = Snippet("apache-weir-fcgid.conf")
        snippet.put("/usr/bin/weir serve --config /etc/weir/fcgid.ini", " ".join(command))
        snippet.put("/var/www/html", place.documents)
        self.program = command[0]
        self.config = self._configure(
            ("fcgid",), snippet,
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
