#!/usr/bin/python3 -B
"""Real applications behind weir, unmodified: what a client gets is, to the byte, what it gets
without weir, until a limit bites; and when the limit has let go, everything works again."""

import os
import time
import unittest

import weirtest
from weirtest import Case, PhpFpm, apps
from weirtest.apps import DIRECT, THROUGH

# How a message is framed is the web server's business, and may depend on moments.
FRAMING = {"accept-ranges", "connection", "content-length", "date", "keep-alive",
           "transfer-encoding"}

COOKIE = ("Cookie", "DokuWiki=0123456789abcdef0123456789; DW_other=1")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
MIB = 1024 * 1024
SIZE = int(os.environ.get("WEIR_TEST_PUSH_MIB") or 20) * MIB

TRIES = 5               # for two answers within one second of the application's clock

GET_MAP = ("/mapserv?map={place}/srv/maps/square.map&SERVICE=WMS&VERSION=1.1.1&REQUEST={request}"
           "&LAYERS=square&STYLES=&SRS=EPSG:3857&BBOX=0,0,120,80&WIDTH=120&HEIGHT=80"
           "&FORMAT=image/png")
AWSTATS = "/awstats?config=example&configdir={place}/etc/awstats"

# One of each limit.
PAGES = ("/git/demo.git/info/refs?service=git-upload-pack", "/cgit/demo.git/log/",
         "/dokuwiki/doku.php?id=start", GET_MAP.replace("{request}", "GetMap"), AWSTATS)


def seen(answer):
    fields = [(name, value) for name, value in answer.fields if name.lower() not in FRAMING]
    return answer.status, answer.reason, answer.is_whole, fields, answer.body


class Apps(Case):
    needs = ("apache2", "fcgiwrap", "git", "lighttpd", "multiwatch", "php-cgi", "spawn-fcgi",
             "/usr/lib/cgi-bin/awstats.pl", "/usr/lib/cgi-bin/mapserv", "/usr/lib/cgit/cgit.cgi",
             "/usr/lib/git-core/git-http-backend", "/usr/share/gitweb/gitweb.cgi")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for path in ("/usr/share/dokuwiki/doku.php", "/usr/share/perl5/CGI/Fast.pm"):
            if not os.path.exists(path):
                raise unittest.SkipTest(f"{path} is not there")
        cls.host = apps.Host(cls.place)
        cls.repository = apps.Repository(cls.host)
        cls.start_applications()
        cls.weir = cls.start_for_class(apps.AppsWeir(cls.host))
        cls.fronts = [cls.start_for_class(front(cls.host))
                      for front in (apps.AppsLighttpd, apps.AppsApache)]
        cls.read_logs()

    @classmethod
    def start_applications(cls):
        place = cls.place
        # multiwatch takes a program that ends within its -t for a broken one; gitweb means it.
        prepend = place.sub("etc", "dokuwiki-place.php")
        cls.start_for_class(PhpFpm(place, name="php-fpm", children=2, prepend=prepend))
        for program in (
                apps.Spawned(place, "php-cgi", "/usr/bin/php-cgi", "-d",
                             "auto_prepend_file=" + prepend, PHP_FCGI_CHILDREN="2"),
                apps.Spawned(place, "gitweb", "/usr/bin/multiwatch", "-s", "TERM", "-t", "1",
                             "-f", "2", "--", "/usr/share/gitweb/gitweb.cgi", "--fastcgi"),
                apps.Spawned(place, "mapserver", "/usr/bin/multiwatch", "-s", "TERM",
                             "-f", "2", "--", "/usr/lib/cgi-bin/mapserv",
                             MAPSERVER_CONFIG_FILE=place.sub("etc", "mapserver.conf")),
                apps.Spawned(place, "fcgiwrap", "/usr/sbin/fcgiwrap", "-c", "2")):
            cls.start_for_class(program)

    @classmethod
    def read_logs(cls):
        """AWStats has read the log that Apache has written."""
        for number in range(30):
            cls.fronts[1].ask(f"/ready.txt?{number}", fields=[("User-Agent", f"weirtest/{number}")])
        cls.host.run("/usr/lib/cgi-bin/awstats.pl", "-config=example", "-update",
                     "-configdir=" + cls.place.sub("etc", "awstats"))

    def ask(self, front, path, method="GET", **how):
        return front.ask(path.replace("{place}", self.place.path), method, **how)

    def assert_same(self, path, status, *proofs, method="GET", **how):
        """By each web server the same with weir as without, and what one expects."""
        how.setdefault("fields", []).append(("Host", "example.test"))
        for front in self.fronts:
            with self.subTest(front=front.name, path=path):
                for _ in range(TRIES):
                    through, direct = (seen(self.ask(front, path, method, through=address, **how))
                                       for address in (THROUGH, DIRECT))
                    if through == direct:
                        break
                self.assertEqual(through, direct)
                self.assertEqual((through[0], through[2]), (status, True), through)
                for proof in proofs:
                    self.assertIn(proof, through[4])

    # ---- the same ----

    def test_git(self):
        self.assert_same("/git/demo.git/info/refs?service=git-upload-pack", 200,
                         self.repository.head)
        self.assert_same("/git/demo.git/HEAD", 200, b"ref: refs/heads/main\n")
        self.assert_same("/git/none.git/info/refs", 404)
        self.assert_same("/git/demo.git/git-upload-pack", 200, b"refs/heads/main", method="POST",
                         fields=[("Content-Type", "application/x-git-upload-pack-request"),
                                 ("Git-Protocol", "version=2")],
                         body=b"0014command=ls-refs\n0000")

    def test_cgit(self):
        self.assert_same("/cgit/", 200, b"demo.git")
        self.assert_same("/cgit/demo.git/log/", 200, b"the first commit")
        self.assert_same("/cgit/demo.git/commit/", 200, b"the first commit", method="GET")
        self.assert_same("/cgit/demo.git/snapshot/demo-main.tar.gz", 200, b"\x1f\x8b")
        self.assert_same("/cgit/demo.git/log/", 200, method="HEAD")
        self.assert_same("/cgit/none.git/", 404, b"No repositories found")

    def test_gitweb(self):
        self.assert_same("/gitweb?p=demo.git;a=summary", 200, b"the first commit")
        self.assert_same("/gitweb?p=demo.git;a=snapshot;h=main;sf=tgz", 200, b"\x1f\x8b")
        # Behind each of these the process ends.
        for _ in range(3):
            self.assert_same("/gitweb?p=none.git;a=summary", 404)

    def test_dokuwiki(self):
        for front in self.fronts:
            for address in (THROUGH, DIRECT):
                self.ask(front, "/dokuwiki/doku.php?id=start", through=address, fields=[COOKIE])
        self.assert_same("/dokuwiki/doku.php?id=start", 200, b"<title>start [", fields=[COOKIE])
        self.assert_same("/dokuwiki/doku.php?id=wiki&do=edit", 200, b"<textarea", fields=[COOKIE])
        self.assert_same("/dokuwiki/lib/exe/css.php?t=dokuwiki", 200, b"{")
        self.assert_same("/dokuwiki/lib/exe/ajax.php", 200, b"Nothing was found", method="POST",
                         fields=[COOKIE, FORM], body=b"call=linkwiz&q=nowhere")
        self.assert_same("/dokuwiki/doku.php?id=start", 200, method="HEAD", fields=[COOKIE])
        self.assert_same("/dokuwiki/none.php", 404)

    def test_mapserver(self):
        self.assert_same(GET_MAP.replace("{request}", "GetMap"), 200, b"\x89PNG")
        self.assert_same(GET_MAP.replace("{request}", "GetCapabilities"), 200, b"A square")

    def test_awstats(self):
        self.assert_same(AWSTATS, 200, b"Statistics for example")
        self.assert_same(AWSTATS + "&framename=mainright", 200, b"/ready.txt")

    # ---- bodies ----

    def test_git_push_and_clone(self):
        """What was pushed through weir is there without it, and the other way round."""
        for front in self.fronts:
            for buffer, how in ((65536, "chunked"), (2 * SIZE, "plain")):
                with self.subTest(front=front.name, how=how):
                    self.push_and_clone(front, buffer, f"{front.name}-{how}")

    def push_and_clone(self, front, buffer, branch):
        content = os.urandom(SIZE)
        started = time.monotonic()
        self.repository.push(front.url("/git/demo.git"), branch, content, buffer)
        pushed = time.monotonic()
        for address in (THROUGH, DIRECT):
            self.assertEqual(self.repository.clone(front.url("/git/demo.git", address), branch),
                             content)
        self.say(f"{SIZE // MIB} MiB {branch}: pushed in {pushed - started:.1f} s, cloned twice in "
                 f"{time.monotonic() - pushed:.1f} s")
        self.repository.forget(branch)

    # ---- limits ----

    def test_limits(self):
        self.weir.limit("2/4s")
        self.weir.take_over()
        self.addCleanup(self.weir.take_over)
        self.addCleanup(self.weir.limit_nobody)
        rejected = {path: self.exhaust(path) for path in PAGES}
        # All fronts and both of what reads histories are counted together, each application apart.
        for front in self.fronts:
            for path in (*PAGES, "/gitweb?p=demo.git;a=summary"):
                answer = self.ask(front, path)
                self.assertEqual((answer.status, answer.is_whole), (429, True), path)
                self.assertEqual(self.ask(front, path, through=DIRECT).status, 200)
            with self.assertRaisesRegex(apps.Failed, "returned error: 429"):
                self.repository.clone(front.url("/git/demo.git"), "main")
        self.assert_works_again(rejected)

    def exhaust(self, path):
        """Returns when it will work again."""
        for number in range(TRIES * len(self.fronts)):
            front = self.fronts[number % len(self.fronts)]
            answer = self.ask(front, path)
            if number < 2:
                self.assertEqual(answer.status, 200, path)
            if answer.status == 429:
                return time.monotonic() + int(answer["Retry-After"])
        raise AssertionError(f"{path} is not limited")

    def assert_works_again(self, rejected):
        time.sleep(max(0, max(rejected.values()) - time.monotonic()))
        for number, path in enumerate(PAGES[1:]):
            answer = self.ask(self.fronts[number % len(self.fronts)], path)
            self.assertEqual((answer.status, answer.is_whole), (200, True), path)
        self.assertEqual(self.repository.clone(self.fronts[0].url("/git/demo.git"), "main"),
                         b"A file.\n")


if __name__ == "__main__":
    weirtest.main()
