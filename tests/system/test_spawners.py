#!/usr/bin/python3 -B
"""Who starts weir besides web servers: spawn-fcgi, multiwatch with several processes behind one
socket, and systemd's socket activation. And a web server that starts the application behind weir."""

import os
import re
import shlex
import signal
import stat
import threading

import weirtest
from weirtest import Case, LighttpdPhpCgi, PhpFpm, Weir, fcgi, wait_until
from weirtest.front import Snippet
from weirtest.place import SOURCE, worker_user
from weirtest.process import Server, descendants_of, free_port, is_alive

ROUTES = """\
[limit ten]
policy = 10/1d

[route limited]
match = /limited.php
limit = ten

[route default]
match = *
"""


class Started(Server):
    """By a command line that another program begins with."""

    starts_as_root = True
    death_signal = signal.SIGTERM

    def __init__(self, place, name, words, where):
        super().__init__(place, name)
        self._words, self._where = words, where

    def command(self):
        return self._words

    def is_ready(self):
        params = fcgi.usual_params("/index.php", self.place.documents)
        return fcgi.ask(self._where, params).status == 200

    def weirs(self):
        return descendants_of(self.pid)


class SpawnerTests(Case):
    needs = ("multiwatch", "spawn-fcgi")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def make(self):
        return Weir(self.place, self.php, ROUTES, spawned=True, name=self._testMethodName)

    def multiwatch(self, weir):
        """The command of etc/weir-multiwatch.service."""
        snippet = Snippet("weir-multiwatch.service")
        snippet.put("/usr/bin/weir serve --config /etc/weir/multiwatch.ini",
                    " ".join(weir.command()))
        snippet.put("/run/weir-multiwatch/weir.sock", weir.socket)
        if worker_user() is None:
            snippet.put(" -u www-data -g www-data", "")
        line = re.search(r"^ExecStart=(.*)$", snippet.text, re.M).group(1)
        return self.start(Started(self.place, "multiwatch-" + weir.name, shlex.split(line),
                                  weir.socket))

    def ask(self, weir, path, **more):
        return fcgi.ask(weir.socket, fcgi.usual_params(path, self.place.documents, **more))

    # ---- multiwatch ----

    def test_processes_behind_one_socket_share_all_counts(self):
        weir = self.make()
        front = self.multiwatch(weir)
        wait_until(lambda: len(front.weirs()) == 4, "four run")
        self.assertEqual(stat.S_IMODE(os.stat(weir.socket).st_mode), 0o660)
        seen = [self.ask(weir, "/limited.php").status for _ in range(30)]
        self.assertEqual(seen, 10 * [200] + 20 * [429])
        self.assertEqual(front.exit_status, None)

    def test_one_that_is_killed_is_replaced_and_costs_no_count(self):
        weir = self.make()
        front = self.multiwatch(weir)
        seen = [self.ask(weir, "/limited.php").status for _ in range(6)]
        before = wait_until(lambda: len(front.weirs()) == 4 and front.weirs(), "four run")
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(front.weirs()) == 4 and before[0] not in front.weirs(),
                   "another one runs")
        seen += [self.ask(weir, "/limited.php").status for _ in range(10)]
        self.assertEqual(seen, 10 * [200] + 6 * [429])

    def test_end_lets_requests_end(self):
        """multiwatch says SIGUSR1 first, and what it was told itself with the second signal."""
        for second in (False, True):
            with self.subTest(second=second):
                weir = Weir(self.place, self.php, ROUTES, spawned=True,
                            name=f"{self._testMethodName}-{second}")
                front = self.multiwatch(weir)
                weirs = wait_until(lambda: len(front.weirs()) == 4 and front.weirs(), "four run")
                replies = []
                thread = threading.Thread(target=lambda: replies.append(
                    self.ask(weir, "/sleep.php", QUERY_STRING="ms=700")))
                thread.start()
                wait_until(lambda: len(php_busy(self.php)) > 0, "the request is at php-fpm")
                front.signal(signal.SIGTERM)
                if second:
                    front.signal(signal.SIGTERM)
                self.assertEqual(front.wait(7), 0)
                thread.join()
                self.assertEqual([reply.status for reply in replies], [200])
                wait_until(lambda: not any(is_alive(pid) for pid in weirs), "none is left")

    # ---- spawn-fcgi alone, and systemd ----

    def test_spawn_fcgi(self):
        weir = self.make()
        self.start(Started(self.place, "spawn", ["spawn-fcgi", "-n", "-s", weir.socket, "--",
                                                 *weir.command()], weir.socket))
        self.assertEqual(self.ask(weir, "/index.php").body, b"hello GET\n")

    def test_spawn_fcgi_on_a_port(self):
        weir, port = self.make(), free_port()
        self.start(Started(self.place, "spawn-port", [
            "spawn-fcgi", "-n", "-a", "127.0.0.1", "-p", str(port), "--", *weir.command()], port))

    def test_systemd_socket(self):
        """As contrib/systemd/weir.socket has it."""
        with open(os.path.join(SOURCE, "contrib", "systemd", "weir.socket.in"),
                  encoding="utf-8") as file:
            self.assertIn("\nListenStream=/run/weir/weir.sock\n", file.read())
        weir = self.make()
        self.start(Started(self.place, weir.name, [
            "systemd-socket-activate", "--listen=" + weir.socket, *weir.command()], weir.socket))
        self.assertEqual(self.ask(weir, "/index.php").body, b"hello GET\n")
        self.assert_logged(weir, 1, "Serving.", weir.socket)


class LighttpdStartsPhpCgi(Case):
    """etc/lighttpd-weir-php-cgi.conf"""

    needs = ("lighttpd", "php-cgi")

    def setUp(self):
        super().setUp()
        port = free_port(4)
        backend = "[backend php]\n" + "".join(f"server = tcp:127.0.0.1:{port + i}\n"
                                              for i in range(4))
        self.weir = self.start(Weir(self.place, None, backend + ROUTES, name=self._testMethodName))
        self.front = self.start(LighttpdPhpCgi(self.place, self.weir.socket, port))

    def ask_until_admitted(self):
        """A php-cgi that has just been started may not listen yet."""
        wait_until(lambda: self.front.ask("/index.php").status == 200, "php-cgi answers")

    def test_all_goes_through_weir(self):
        self.ask_until_admitted()
        seen = [self.front.ask("/limited.php").status for _ in range(12)]
        self.assertEqual(seen, 10 * [200] + 2 * [429])

    def test_the_method_of_the_condition_is_no_way_past_weir(self):
        self.ask_until_admitted()
        before = self.weir.metrics().total("weir_requests_total")
        self.assertGreaterEqual(self.front.ask("/limited.php", method="NONE").status, 400)
        self.assertEqual(self.weir.metrics().total("weir_requests_total"), before)

    def test_one_that_is_killed_is_started_again(self):
        self.ask_until_admitted()
        first = set(self.front.weirs())
        self.assertEqual(len(first), 4)
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(self.front.weirs()) - first) == 4, "others run")
        self.ask_until_admitted()


def php_busy(php):
    """The children of php-fpm that have a connection."""
    return [pid for pid in descendants_of(php.pid)
            if sum(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
                   for fd in os.listdir(f"/proc/{pid}/fd")) > 1]


if __name__ == "__main__":
    weirtest.main()
