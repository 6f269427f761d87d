#!/usr/bin/python3 -B
"""weir as a CGI program: started for one request, with the environment and the descriptors that web
servers give. Behind it is a CGI program too. (lighttpd with php-fpm: test_more_fronts.py.)"""

import os
import signal
import socket
import subprocess
import time

import weirtest
from weirtest import ApacheCgi, Case, Weir, fcgi, wait_until
from weirtest.process import is_alive

ROUTES = """\
[backend program]
type    = cgi
program = {program}

[limit two]
policy = 2/1d

[route limited]
match   = */limited
limit   = two
headers = x-ratelimit

[route default]
match = *
"""

# What it does is the query's word.
PROGRAM = """\
#!/usr/bin/python3 -B
import os, sys, time
words = os.environ.get("QUERY_STRING", "").split("&")
out = sys.stdout.buffer
out.write(b"Content-Type: text/plain\\r\\n\\r\\n")
if "early" in words:                    # before it reads its request
    out.write(b"x" * 1000000)
    out.flush()
if "env" in words:
    out.write("\\n".join(sorted(os.environ)).encode())
elif "stay" in words:
    with open(sys.argv[0] + ".pid", "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    out.flush()
    time.sleep(60)
else:
    left, got = int(os.environ.get("CONTENT_LENGTH") or 0), 0
    while left > got:
        piece = sys.stdin.buffer.read1(65536)
        if not piece:
            break
        got += len(piece)
    out.write(("%s %s %d\\n" % (os.environ["REQUEST_METHOD"], os.environ.get("PATH_INFO"), got)).encode())
print("a line for the error log", file=sys.stderr)
"""


class AsCgi(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.place.sub("bin", "program")
        with open(cls.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        os.chmod(cls.program, 0o755)

    def setUp(self):
        # Each test counts by itself.
        self.weir = Weir(self.place, None, ROUTES.format(program=self.program),
                         spawned=True, name=self._testMethodName)

    def environment(self, path="/x", query="", method="GET", **more):
        return dict(PATH="/usr/bin:/bin", GATEWAY_INTERFACE="CGI/1.1", REQUEST_METHOD=method,
                    SERVER_PROTOCOL="HTTP/1.1", SERVER_NAME="localhost", SERVER_PORT="80",
                    SCRIPT_NAME=path, REQUEST_URI=path + ("?" + query if query else ""),
                    QUERY_STRING=query, REMOTE_ADDR="127.0.0.1", **more)

    def run_cgi(self, *args, command=None, stdin=subprocess.DEVNULL, body=None, **how):
        if body is not None:
            how.setdefault("CONTENT_LENGTH", str(len(body)))
            stdin = None
        return subprocess.run(command or self.weir.command(), env=self.environment(*args, **how),
                              input=body, stdin=stdin, capture_output=True, timeout=30, check=False)

    @staticmethod
    def split(done):
        head, body = done.stdout.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        return lines[0], dict(line.split(": ", 1) for line in lines), body

    def assert_answers(self, done, body, status="Status: 200 OK"):
        self.assertEqual((done.returncode, self.split(done)[0]), (0, status), done.stderr)
        self.assertEqual(self.split(done)[2], body)

    # ---- one request ----

    def test_get(self):
        done = self.run_cgi()
        self.assert_answers(done, b"GET None 0\n")
        self.assertEqual(done.stderr, b"a line for the error log\n")

    def test_bodies(self):
        for length in (0, 1, 65536, 3000000):
            self.assert_answers(self.run_cgi(method="POST", body=b"b" * length),
                                b"POST None %d\n" % length)

    def test_body_from_a_file(self):
        """lighttpd hands over a file; what stands in it behind the length is no part of it."""
        path = self.place.sub("tmp", "body")
        with open(path, "wb") as file:
            file.write(bytes(200000))
        with open(path, "rb") as file:
            self.assert_answers(self.run_cgi(method="POST", stdin=file, CONTENT_LENGTH="100000"),
                                b"POST None 100000\n")

    def test_body_without_its_length(self):
        """Apache passes on what came in chunks; to others a request without a length has no body."""
        with subprocess.Popen(["/bin/echo", "six by"], stdout=subprocess.PIPE) as source:
            self.assert_answers(self.run_cgi(method="POST", stdin=source.stdout,
                                             HTTP_TRANSFER_ENCODING="chunked"), b"POST None 7\n")
        ours, theirs = os.pipe()
        self.addCleanup(os.close, theirs)
        with open(ours, "rb") as silent:
            self.assert_answers(self.run_cgi(stdin=silent), b"GET None 0\n")

    def test_body_that_breaks_off(self):
        done = self.run_cgi(method="POST", body=b"x" * 10, CONTENT_LENGTH="20")
        self.assertEqual(self.split(done)[0], "Status: 400 Bad Request")

    def test_answer_before_the_body(self):
        done = self.run_cgi(query="early", method="POST", body=bytes(1000000))
        self.assert_answers(done, b"x" * 1000000 + b"POST None 1000000\n")

    def test_variables(self):
        """Nothing but the request's reaches the program, least of all Proxy."""
        done = self.run_cgi(query="env", HTTP_PROXY="evil.test:80", HTTP_X="1",
                            PWD="/", SHLVL="1")
        names = self.split(done)[2].decode().split("\n")
        for name in ("HTTP_X", "GATEWAY_INTERFACE", "REMOTE_ADDR"):
            self.assertIn(name, names)
        for name in ("HTTP_PROXY", "PWD", "SHLVL"):
            self.assertNotIn(name, names)

    def test_counts_are_those_of_all(self):
        done = [self.run_cgi("/limited") for _ in range(3)]
        self.assertEqual([self.split(one)[0] for one in done],
                         2 * ["Status: 200 OK"] + ["Status: 429 Too Many Requests"])
        self.assertEqual([self.split(one)[1]["X-RateLimit-Remaining"] for one in done],
                         ["1", "0", "0"])
        self.assertGreater(int(self.split(done[2])[1]["Retry-After"]), 43100)
        self.assertEqual(done[2].stderr.count(b"\n"), 1)
        self.assertIn(b"Rejected.", done[2].stderr)

    def test_rejected_upload_that_nobody_reads(self):
        """The web server gets its answer while it still writes."""
        for _ in range(2):
            self.run_cgi("/limited")
        done = self.run_cgi("/limited", method="POST", body=bytes(5000000))
        self.assert_answers(done, self.split(done)[2], "Status: 429 Too Many Requests")

    def test_configuration_that_is_wrong(self):
        with open(self.weir.config, "a", encoding="utf-8") as file:
            file.write("nonsense = 1\n")
        done = self.run_cgi()
        self.assertEqual((done.returncode, self.split(done)[0]),
                         (1, "Status: 500 Internal Server Error"))
        self.assertIn(b"nonsense", done.stderr)

    # ---- its end ----

    def begin(self, query):
        pid = self.program + ".pid"
        if os.path.exists(pid):
            os.unlink(pid)
        process = subprocess.Popen(self.weir.command(), env=self.environment(query=query),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def read_pid():
            with open(pid, encoding="utf-8") as file:
                return int(file.read() or 0)

        return process, wait_until(read_pid, "the program runs")

    def test_client_that_goes_away(self):
        process, program = self.begin("stay")
        process.stdout.close()
        since = time.monotonic()
        wait_until(lambda: not is_alive(program), "the program has ended", 5)
        self.assertEqual(process.wait(10), 1)
        self.say(f"ended after {time.monotonic() - since:.2f} s")

    def test_killed_by_the_web_server(self):
        """Twice, as mod_cgi does; and the program does not outlive it."""
        process, program = self.begin("stay")
        process.stdout.close()
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
        process.wait(10)
        wait_until(lambda: not is_alive(program), "the program has ended", 5)

    # ---- when it is one ----

    def test_inherited_socket_matters_more(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.place.socket("listening"))
        listener.listen(16)
        log = open(self.place.log("listening"), "ab")
        self.addCleanup(log.close)
        child = subprocess.Popen(self.weir.command(), stdin=listener, stdout=log, stderr=log,
                                 env=self.environment())
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)
        reply = fcgi.ask(self.place.socket("listening"), fcgi.usual_params("/x"))
        self.assertEqual(reply.status, 200)

    def test_no_program_without_a_request(self):
        done = subprocess.run(self.weir.command(), env={"GATEWAY_INTERFACE": "CGI/1.1"},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, b""))

    def test_clients_give_no_arguments(self):
        """A query without "=" becomes arguments (RFC 3875 section 4.4)."""
        secret = self.place.write("secret", "word\n")
        for query, arguments in (
                ("check+" + secret, ["check", secret]),
                ("--version", ["--version"]),
                ("%63heck+--connect+" + secret, ["check", "--connect", secret]),
                ("identity+a%3bb", ["identity", "a\\;b"]),
                # Apache's two backslashes for one, and as they came.
                ("a%5C%5Cb", ["a\\\\\\\\b"]),
                ("a%5C%5Cb", ["a\\\\b"]),
                ("%5Ca%5C;", ["\\\\a\\\\\\;"]),
                # An argument ends at a zero byte, and lists of them at some length.
                ("check%00+" + secret, ["check", secret]),
                ("check+" + secret + "%00.txt", ["check", secret]),
                ("%63heck%00--connect+" + secret, ["check", secret]),
                ("check+" + secret + "+more+words", ["check", secret]),
                ("--help%00", ["--help"]),
                ("+--version", ["--version"]),
                ("++--version", ["", "", "--version"]),
                ("check%20" + secret, ["check", secret])):
            with self.subTest(query=query):
                done = self.run_cgi(query=query, command=[self.place.weir, *arguments])
                self.assertEqual(self.split(done)[0], "Status: 500 Internal Server Error")
                self.assertNotIn(b"word", done.stdout)
                self.assertNotIn(b"word", done.stderr)
        config = self.weir.config
        for query in ("serve+--config+", "serve%00+--config+", "%73erve+--config%00+",
                      "serve%00x+--config+x+", "+serve+--config+", "serve%20--config+"):
            done = self.run_cgi(query=query + config, command=self.weir.command())
            self.assertEqual((done.returncode, self.split(done)[0]),
                             (2, "Status: 400 Bad Request"), query)
        # An operator's, whatever the query is; and lighttpd adds the script's path to ours.
        self.assert_answers(self.run_cgi(query="serve"), b"GET None 0\n")
        done = self.run_cgi(command=[self.place.weir, "check", config])
        self.assertIn(b"2 at once", done.stdout)
        script = self.place.documents + "/index.php"
        done = self.run_cgi(command=[self.place.weir, script], SCRIPT_FILENAME=script)
        self.assertEqual(self.split(done)[0], "Status: 500 Internal Server Error")
        self.assertIn(b"weir.ini", done.stderr)


class OfApache(Case):
    """By mod_cgid, whose standard output is a socket."""

    needs = ("apache2",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program = cls.place.sub("bin", "program")
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        os.chmod(program, 0o755)
        cls.weir = Weir(cls.place, None, ROUTES.format(program=program),
                        spawned=True)
        cls.front = cls.start_for_class(ApacheCgi(cls.place, cls.weir))

    def test_requests(self):
        self.assertEqual(self.front.ask("/app/a/b").text, "GET /a/b 0\n")
        body = bytes(3000000)
        self.assertEqual(self.front.ask("/app/a", "POST", body=body).text, "POST /a 3000000\n")
        self.assertEqual(self.front.ask("/app/a", "POST", body=body, chunked=True).text,
                         "POST /a 3000000\n")

    def test_rejection(self):
        answers = [self.front.ask("/app/limited", "POST", body=bytes(3000000)) for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assertGreater(int(answers[2]["Retry-After"]), 43100)
        self.assertTrue(answers[2].is_whole)


if __name__ == "__main__":
    weirtest.main()
