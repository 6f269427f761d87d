"""Real applications, as Debian has them, behind web servers that are set up by the files of
tests/system/apps. Those are written for a host of their own; here all that is not of a package
stands below the test's directory.

Each web server has two addresses: at one it asks the applications through weir, at the other by
itself."""

import os
import pwd
import re
import shutil
import socket
import subprocess

from weirtest.apache import _Apache
from weirtest.cgi import _Text
from weirtest.client import ask
from weirtest.front import Front
from weirtest.lighttpd import _Lighttpd
from weirtest.place import SOURCE, worker_user
from weirtest.process import Server, wait_until
from weirtest.weir import Weir

THROUGH, DIRECT = "127.0.0.1", "127.0.0.2"

FOLDERS = ("etc/awstats", "etc/dokuwiki", "run/weir", "run/lighttpd", "srv/git", "srv/maps",
           "var/lib/awstats", "var/log/web")
WIKI_FOLDERS = ("attic", "cache", "index", "locks", "log", "media", "media_attic", "media_meta",
                "meta", "pages", "tmp")

# The file of the recipes, and where it belongs.
FILES = (("cgitrc", "etc/cgitrc"), ("gitweb.conf", "etc/gitweb.conf"),
         ("mapserver.conf", "etc/mapserver.conf"), ("square.map", "srv/maps/square.map"),
         ("awstats.conf", "etc/awstats/awstats.conf"),
         ("dokuwiki-place.php", "etc/dokuwiki-place.php"),
         ("dokuwiki.php", "etc/dokuwiki/local.protected.php"))


class Failed(AssertionError):
    """A command did."""


class Host:
    """The files of the applications."""

    def __init__(self, place):
        self.place = place
        for folder in FOLDERS + tuple("var/lib/dokuwiki/data/" + name for name in WIKI_FOLDERS):
            os.makedirs(place.sub(folder))
        for name, target in FILES:
            self.write(target, self.recipe(name))
        self.write("var/lib/dokuwiki/data/pages/start.txt", "====== Weir ======\n\nA [[wiki]].\n")
        self._give_away()

    def recipe(self, name):
        with open(os.path.join(SOURCE, "tests", "system", "apps", name), encoding="utf-8") as file:
            return re.sub(r"(?<![\w./-])/(?=(?:etc|run|srv|var)/)", self.place.path + "/",
                          file.read())

    def write(self, target, text):
        path = self.place.sub(target)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        return path

    def _give_away(self):
        """To the user that the applications run as."""
        user = worker_user()
        if user is None:
            return
        user = pwd.getpwnam(user)
        for top in ("run", "srv", "var"):
            for folder, _, files in os.walk(self.place.sub(top)):
                for name in ["."] + files:
                    os.chown(os.path.join(folder, name), user.pw_uid, user.pw_gid)

    def run(self, *command, **environment):
        """As the applications' user; returns what was written."""
        user, home = worker_user(), self.place.sub("tmp")
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=home, user=user, group=user,
            extra_groups=None if user is None else [],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": home, **environment})
        if done.returncode != 0:
            raise Failed(f"{command} ended with {done.returncode}: {done.stdout.decode()}")
        return done.stdout


class Spawned(Server):
    """What spawn-fcgi starts: a FastCGI program with the socket that weir asks."""

    starts_as_root = False

    def __init__(self, place, name, *program, **environment):
        super().__init__(place, name)
        self.socket = place.sub("run", name + ".sock")
        self._program, self._environment = program, environment

    def command(self):
        return ["spawn-fcgi", "-n", "-s", self.socket, "-M", "0666", "--", *self._program]

    def environment(self):
        return {**super().environment(), **self._environment}

    def is_ready(self):
        with socket.socket(socket.AF_UNIX) as peer:
            return peer.connect_ex(self.socket) == 0


class AppsWeir(Weir):
    """With weir.ini of the recipes."""

    def __init__(self, host, name="weir"):
        # pylint: disable=super-init-not-called,non-parent-init-called
        Server.__init__(self, host.place, name)
        self.metrics_socket = host.place.sub("run", "weir", "metrics.sock")
        self._text = host.recipe("weir.ini")
        self.limit_nobody()

    def limit_nobody(self):
        self._write(re.sub(r"(?m)^limit +=.*\n", "", self._text))

    def limit(self, policy):
        """All limits are this one; those of a route stay apart from those of another."""
        self._write(re.sub(r"(?m)^policy +=.*$", f"policy = {policy}", self._text))

    def take_over(self):
        done = self.metrics().get("weir_reloads_total", result="done")
        self.reload()
        wait_until(lambda: self.metrics().get("weir_reloads_total", result="done") > done,
                   "the configuration is taken over")

    def _write(self, text):
        self.config = self.place.write("weir.ini", text)


class _AppsFront(Front):
    def ask(self, path, *args, through=THROUGH, **how):
        return ask((through, self.port), path, *args, **how)

    def url(self, path, through=THROUGH):
        return f"http://{through}:{self.port}{path}"


LIGHTTPD = """\
server.modules = ( "mod_alias", "mod_setenv", "mod_cgi", "mod_fastcgi", "mod_staticfile" )
server.document-root = "{documents}"
server.upload-dirs = ( "{tmp}" )
server.bind = "{through}"
server.port = {port}
server.max-keep-alive-requests = 65535
mimetype.assign = ( ".txt" => "text/plain" )
$SERVER["socket"] == "{through}:{port}" {{ include "{weir}" }}
$SERVER["socket"] == "{direct}:{port}" {{ include "{before}" }}
"""


class AppsLighttpd(_AppsFront, _Lighttpd):
    def __init__(self, host, name="lighttpd"):
        place = host.place
        super().__init__(place, name)
        self.config = place.write(name + ".conf", LIGHTTPD.format(
            documents=place.documents, tmp=place.sub("tmp"), port=self.port, through=THROUGH,
            direct=DIRECT,
            weir=place.write("lighttpd-weir.conf", host.recipe("lighttpd.conf")),
            before=place.write("lighttpd-before.conf", host.recipe("lighttpd-before.conf"))))


APACHE = """\
Listen {direct}:{port}
ScriptSock "{run}/cgid.sock"
LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
CustomLog "{log}" combined
<Directory "/usr">
	AllowOverride None
	Require all granted
	Options ExecCGI FollowSymLinks
</Directory>
<VirtualHost {through}:{port}>
	ServerName localhost
	Include "{weir}"
</VirtualHost>
<VirtualHost {direct}:{port}>
	ServerName localhost
	Include "{before}"
</VirtualHost>
"""


class AppsApache(_AppsFront, _Apache):
    def __init__(self, host, name="apache"):
        place = host.place
        super().__init__(place, name)
        self.config = self._configure(
            ("alias", "cgid", "proxy", "proxy_fcgi"), _Text(""), APACHE.format(
                direct=DIRECT, through=THROUGH, port=self.port, run=place.sub("run"),
                log=place.sub("var", "log", "web", "access.log"),
                weir=place.write("apache-after.conf", host.recipe("apache.conf")),
                before=place.write("apache-before.conf", host.recipe("apache-before.conf"))))


class Repository:
    """srv/git/demo.git, whose only commit is old enough to look as old in a month."""

    def __init__(self, host):
        self._host = host
        self.path = host.place.sub("srv", "git", "demo.git")
        self._work = host.place.sub("tmp", "work")
        then = "2020-01-01T12:00:00Z"
        self._git("init", "-q", "-b", "main", self._work)
        self._commit("the first commit", b"A file.\n", GIT_COMMITTER_DATE=then,
                     GIT_AUTHOR_DATE=then)
        self._git("clone", "-q", "--bare", self._work, self.path)
        self._git("-C", self.path, "config", "http.receivepack", "true")
        self.head = self._git("-C", self.path, "rev-parse", "main").strip()

    def _git(self, *words, **environment):
        return self._host.run("git", "-c", "user.name=Tester", "-c",
                              "user.email=tester@example.test", "-c", "core.compression=0",
                              *words, GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0",
                              **environment)

    def _commit(self, subject, content, **environment):
        with open(os.path.join(self._work, "file"), "wb") as file:
            file.write(content)
        self._git("-C", self._work, "add", "file")
        self._git("-C", self._work, "commit", "-q", "-m", subject, **environment)

    def push(self, url, branch, content, buffer):
        """A commit with a file of this content, to a branch that is new. What is more than `buffer`
        goes in chunks."""
        self._commit(branch, content)
        self._git("-C", self._work, "-c", f"http.postBuffer={buffer}", "push", "-q", url,
                  "HEAD:refs/heads/" + branch)

    def clone(self, url, branch):
        """Returns the file's content."""
        target = self._host.place.sub("tmp", "clone-" + branch)
        self._git("clone", "-q", "-b", branch, "--single-branch", "--depth", "1", url, target)
        with open(os.path.join(target, "file"), "rb") as file:
            content = file.read()
        shutil.rmtree(target)
        return content

    def forget(self, branch):
        self._git("-C", self.path, "update-ref", "-d", "refs/heads/" + branch)
        self._git("-C", self._work, "reset", "-q", "--hard", self.head.decode())
