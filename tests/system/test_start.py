#!/usr/bin/python3 -B
"""How weir starts: where its sockets come from, and what it says when there are none."""

import os
import socket
import stat
import subprocess

import weirtest
from weirtest import Case, PhpFpm, Weir, fcgi, process
from weirtest.place import SOURCE

ROUTES = "[route default]\nmatch = *\n"


class StartTests(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def run_weir(self, *arguments):
        """To its end, with nothing on standard input."""
        return subprocess.run([self.place.weir, *arguments], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=20, check=False)

    def spawn(self, config, **how):
        """Until the test ends; what it says goes to the log that the test prints if it fails."""
        with open(self.place.log("spawned-" + self._testMethodName), "ab") as log:
            child = subprocess.Popen([self.place.weir, "serve", "--config", config], stderr=log,
                                     stdout=log, **how)
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)
        return child

    def listen(self, name):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.place.socket(name))
        listener.listen(16)
        return listener

    def assert_serves(self, path):
        reply = fcgi.ask(path, fcgi.usual_params("/index.php", self.place.documents))
        self.assertEqual((reply.status, reply.body), (200, b"hello GET\n"))

    # ---- words ----

    def test_version_and_help(self):
        for argument, word in (("--version", "weir "), ("--help", "weir serve [FILE]")):
            done = self.run_weir(argument)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(word, done.stdout)

    def test_usage_errors(self):
        for arguments in ((), ("dance",), ("serve", "--fast"), ("serve", "--config"),
                          ("check", "one", "two")):
            with self.subTest(arguments=arguments):
                done = self.run_weir(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("weir", done.stderr)

    def test_nothing_to_serve_on(self):
        weir = Weir(self.place, self.php, ROUTES, spawned=True, name="nowhere")
        done = self.run_weir("serve", "--config", weir.config)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no socket was inherited", done.stderr)

    def test_every_error_is_said_with_its_place(self):
        weir = Weir(self.place, self.php, "[limit a]\npolicy = x\n[rout b]\n" + ROUTES,
                    name="wrong")
        for arguments in (("serve", "--config", weir.config), ("check", weir.config)):
            done = self.run_weir(*arguments)
            self.assertEqual(done.returncode, 1)
            with open(weir.config, encoding="utf-8") as file:
                lines = file.read().splitlines()
            for text in ("policy = x", "[rout b]"):
                self.assertIn(f"{weir.config}:{lines.index(text) + 1}:", done.stderr)

    def test_sample_is_good(self):
        with open(os.path.join(SOURCE, "etc", "weir.ini"), encoding="utf-8") as file:
            sample = file.read()
        # The directory of an installed weir may not be there.
        config = self.place.write("sample.ini", sample.replace("/run/weir", self.place.path))
        done = self.run_weir("check", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("60 at once, then 10 a second", done.stdout)

    # ---- sockets ----

    def test_socket_has_its_mode_whatever_the_umask(self):
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        weir = self.start(Weir(self.place, self.php, ROUTES, name="mode"))
        self.assertEqual(stat.S_IMODE(os.stat(weir.socket).st_mode), 0o660)

    def test_stale_socket_is_replaced_and_a_live_one_is_not(self):
        weir = Weir(self.place, self.php, ROUTES, name="stale").start()
        weir.kill()
        self.assertTrue(stat.S_ISSOCK(os.stat(weir.socket).st_mode))
        self.start(weir)
        self.assert_serves(weir.socket)
        done = self.run_weir("serve", "--config", weir.config)
        self.assertEqual(done.returncode, 1)
        self.assertIn(weir.socket, done.stderr)
        self.assert_serves(weir.socket)

    def test_loopback_port(self):
        port = process.free_port()
        weir = self.start(Weir(self.place, self.php, ROUTES, name="port",
                               weir=f"listen = tcp:127.0.0.1:{port}"))
        self.assert_serves(port)
        self.assert_serves(weir.socket)

    def test_inherited_as_standard_input(self):
        """As from lighttpd, mod_fcgid and spawn-fcgi."""
        weir = Weir(self.place, self.php, ROUTES, spawned=True, name="fd0")
        self.spawn(weir.config, stdin=self.listen("fd0"))
        self.assert_serves(weir.socket)

    def test_inherited_from_systemd(self):
        weir = Weir(self.place, self.php, ROUTES, name="systemd")
        listener = self.listen("systemd")

        def as_systemd_does():
            process.die_with_parent()
            os.dup2(listener.fileno(), 3)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))

        # The process's own id must be in its environment, so the environment is made in the child.
        with open(self.place.log("systemd"), "ab") as log:
            pid = os.fork()
            if pid == 0:
                as_systemd_does()
                os.dup2(log.fileno(), 2)
                os.execv(self.place.weir, [self.place.weir, "serve", "--config", weir.config])
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, 15)
        self.assert_serves(weir.socket)
        self.assert_logged(weir, 1, "`listen` is ignored")


if __name__ == "__main__":
    weirtest.main()
