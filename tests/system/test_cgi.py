#!/usr/bin/python3 -B
"""CGI programs behind lighttpd and nginx, run by weir and, side by side, by fcgiwrap: what fcgiwrap
is known to get wrong it gets wrong here too, or the case would not be the case; weir gets it right.
What fcgiwrap waits for without an end is given up by the client."""

import json
import os
import signal

import weirtest
from weirtest import Case, Lighttpd, Load, Nginx, Weir, Zeros, fcgi, wait_until
from weirtest.client import connect
from weirtest.cgi import CgiWeir, Fcgiwrap, LighttpdCgi, NginxCgi, Programs
from weirtest.process import is_alive

# For a program that is silent for good; all others answer long before.
BACKENDS = """\
[backend usual]
type = cgi
root = {root}
env = NOTES={notes}

[backend hasty]
type = cgi
root = {root}
env = NOTES={notes}
idle_timeout = 300ms

[route hasty]
match = /weir/stops*
backend = hasty

[route default]
match = *
backend = usual
"""

# Of who waits for an answer that never comes.
PATIENCE_S = 1

ANSWER = r"printf 'Content-Type: text/plain\r\n\r\n'; "
NOTE = 'echo $$ > "$NOTES/$QUERY_STRING"; '

IN, OUT = 500000, 300000

PROGRAMS = {
    "hello": ANSWER + "echo hello",
    "duplex": ANSWER + f"head -c {OUT} /dev/zero; exec wc -c",
    "reads-nothing": "exec < /dev/null; " + ANSWER + "echo ok",
    "works-on": ANSWER + "echo ok; exec > /dev/null; " + NOTE + "exec sleep 30",
    # Its child holds the error output until it is told to end.
    "leaves-a-child": '(exec > /dev/null; until test -e "$NOTES/$QUERY_STRING"; '
                      "do sleep 0.05; done) & " + ANSWER + "echo ok",
    "says-nothing": "exit 0",
    "says-no-head": "echo it; echo is no head",
    # Behind its answer it works on, and notes how that went.
    "works-behind": "trap 'echo cut > \"$NOTES/$QUERY_STRING\"; exit' TERM; "
                    "printf 'Content-Length: 3\\r\\n\\r\\nok\\n'; sleep 0.5; "
                    'echo whole > "$NOTES/$QUERY_STRING"',
    "is-killed": "kill -KILL $$",
    "crashes": "kill -SEGV $$",
    "crashes-late": ANSWER + "echo ok; kill -SEGV $$",
    "tells": ANSWER + 'echo "$(readlink /proc/self/fd/3 || echo none) ${SECRET-none} $(pwd)"',
    "waits": ANSWER + "echo first; " + NOTE + "exec sleep 30",
    "goes-on": "trap '' PIPE; exec 2> /dev/null; " + ANSWER + NOTE +
               "while :; do echo line; sleep 0.05; done",
    "is-deaf": "trap '' TERM; " + ANSWER + "echo first; " + NOTE +
               "while :; do sleep 0.1; done",
    "stops": NOTE + "exec sleep 30",
    "stops-midway": ANSWER + "echo first; " + NOTE + "exec sleep 30",
    "complains": "head -c 5000000 /dev/zero | tr '\\0' e >&2; " + ANSWER + "echo ok",
    "answers-in-parts": ANSWER + 'echo first; until test -e "$NOTES/$QUERY_STRING"; '
                                 "do sleep 0.05; done; echo second",
}


def children_of_any_kind(pid):
    """Zombies too."""
    found = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found.update(file.read().split())
    return found


class CgiCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = Programs(cls.place)
        for name, script in PROGRAMS.items():
            cls.programs.write(name, script)

    @classmethod
    def make_weir(cls, name="weir", weir=""):
        return CgiWeir(cls.place, None, BACKENDS.format(
            root=cls.programs.path("weir").rstrip("/"), notes=cls.programs.notes), name=name,
            weir=weir)

    def pid_of(self, note):
        return int(wait_until(lambda: self.programs.note(note), f"{note} is written"))

    def forget(self, pid):
        """For what fcgiwrap leaves running."""
        def kill():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.addCleanup(kill)


class SideBySide(CgiCase):
    needs = ("fcgiwrap", "lighttpd", "nginx")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weir = cls.start_for_class(cls.make_weir())
        wrap = cls.start_for_class(Fcgiwrap(cls.place, cls.programs))
        cls.fronts = [cls.start_for_class(front(cls.place, cls.weir, wrap))
                      for front in (LighttpdCgi, NginxCgi)]

    def assert_ok(self, answer, body=b"ok\n"):
        self.assertEqual((answer.status, answer.body, answer.is_whole), (200, body, True))

    def assert_no_end(self, front, path, **how):
        with self.assertRaises(TimeoutError):
            front.ask(path, timeout=PATIENCE_S, **how)

    def test_a_program_may_write_before_it_reads(self):
        lighttpd = self.fronts[0]       # nginx sends no more of a body once it has seen a head
        answer = lighttpd.ask("/weir/duplex", "POST", body=Zeros(IN))
        self.assertEqual((answer.status, answer.body[OUT:]), (200, b"%d\n" % IN))
        self.assert_no_end(lighttpd, "/wrap/duplex", method="POST", body=Zeros(IN))

    def test_a_body_may_be_left_unread(self):
        for front in self.fronts:
            self.assert_ok(front.ask("/weir/reads-nothing", "POST", body=Zeros(IN)))
            answer = front.ask("/wrap/reads-nothing", "POST", body=Zeros(IN))
            self.assertEqual(answer.status, 502)

    def test_an_answer_ends_with_the_output(self):
        for front in self.fronts:
            note = front.name + "-works-on"
            self.assert_ok(front.ask("/weir/works-on?" + note))
            pid = self.pid_of(note)
            self.assertTrue(is_alive(pid))
            self.forget(pid)

    def test_an_answer_does_not_wait_for_who_holds_the_error_output(self):
        for front in self.fronts:
            note = front.name + "-go"
            self.assert_ok(front.ask("/weir/leaves-a-child?" + note))
            self.assert_no_end(front, "/wrap/leaves-a-child?" + note)
            self.programs.tell(note)

    def test_what_cannot_be_started_is_told(self):
        self.programs.write("no-interpreter", "#!/not/there\n")
        self.programs.write("no-format", "#!\177ELF garbage\n")
        self.programs.write("not-executable", "exit 0", 0o644)
        for front in self.fronts:
            for name, status in (("no-interpreter", 502), ("no-format", 502),
                                 ("not-executable", 403), ("not-there", 404)):
                self.assertEqual(front.ask("/weir/" + name).status, status, name)

    def test_what_is_no_answer_is_a_502(self):
        for front in self.fronts:
            for name in ("says-nothing", "says-no-head", "is-killed"):
                self.assertEqual(front.ask("/weir/" + name).status, 502, name)

    def test_a_program_has_nothing_of_its_runner(self):
        for front in self.fronts:
            self.assert_ok(front.ask("/weir/tells"),
                           f"none none {self.programs.path('weir').rstrip('/')}\n".encode())
            self.assertRegex(front.ask("/wrap/tells").text, r"^socket:\S+ ours ")

    def test_a_program_ends_with_its_client(self):
        for front in self.fronts:
            notes = {side: f"{front.name}-{side}" for side in ("wrap", "weir")}
            for side, note in notes.items():
                with connect(front.port) as client:
                    client.sendall(f"GET /{side}/goes-on?{note} HTTP/1.0\r\n\r\n".encode())
                    self.forget(self.pid_of(note))
            wait_until(lambda n=notes: not is_alive(self.pid_of(n["weir"])),
                       "weir ends the program")
            self.assertTrue(is_alive(self.pid_of(notes["wrap"])))

    def test_a_silent_program_is_ended(self):
        for front in self.fronts:
            for name in ("stops", "stops-midway"):
                notes = {side: f"{front.name}-{side}-{name}" for side in ("wrap", "weir")}
                self.assert_no_end(front, f"/wrap/{name}?{notes['wrap']}")
                answer = front.ask(f"/weir/{name}?{notes['weir']}")
                self.assertEqual(answer.status, 504 if name == "stops" else 200)
                for note in notes.values():
                    self.forget(self.pid_of(note))
                wait_until(lambda n=notes: not is_alive(self.pid_of(n["weir"])),
                           "weir ends the program")
                self.assertTrue(is_alive(self.pid_of(notes["wrap"])))

    def test_a_link_leads_to_no_program_outside(self):
        self.programs.link("way-out", os.path.join(self.place.path, "outside"))
        with open(os.path.join(self.place.path, "outside"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + PROGRAMS["hello"])
        os.chmod(file.name, 0o755)
        for front in self.fronts:
            self.assertEqual(front.ask("/weir/way-out").status, 403)
            self.assertEqual(front.ask("/wrap/way-out").status, 200)

    def test_error_output_fills_no_log(self):
        for front in self.fronts:
            self.assert_ok(front.ask("/weir/complains"))
            self.assertIn("eeee", self.place.read_log(front.name))
            self.assertLess(len(self.place.read_log(front.name)), 500000)


class Alone(CgiCase):
    """What no web server can be made to ask for, and weir's own end."""

    def test_what_no_program_can_be_told_is_a_431(self):
        weir = self.start(self.make_weir())
        longest = 131072 - len("HTTP_X=") - 1       # of what the kernel takes, with its zero byte
        for length, status in ((100000, 200), (longest, 200), (longest + 1, 431)):
            params = fcgi.pairs(self.programs.params("weir", "hello", HTTP_X="x" * length))
            with fcgi.Connection(weir.socket) as connection:
                connection.send(fcgi.begin() + b"".join(
                    fcgi.record(fcgi.PARAMS, params[at:at + 50000])
                    for at in range(0, len(params), 50000)) + fcgi.record(fcgi.PARAMS))
                connection.send(fcgi.record(fcgi.STDIN))
                self.assertEqual(connection.reply().status, status, length)

    def test_dots_lead_to_no_program_outside(self):
        weir = self.start(self.make_weir())
        for path in ("../wrap/hello", "x/../../wrap/hello", "../../../../../../bin/true"):
            reply = fcgi.ask(weir.socket, self.programs.params("weir", path))
            self.assertEqual(reply.status, 400, path)

    def test_an_answer_comes_as_it_is_made(self):
        weir = self.start(self.make_weir())
        with fcgi.Connection(weir.socket) as connection:
            connection.send(fcgi.request(
                self.programs.params("weir", "answers-in-parts", QUERY_STRING="parts")))
            seen = b""
            while b"first\n" not in seen:
                seen += connection.peer.recv(65536)
            self.assertNotIn(b"second", seen)
            self.programs.tell("parts")
            self.assertIn(b"second", connection.reply().stdout)

    def test_nothing_is_left_of_a_thousand_on_four_threads(self):
        weir = self.start(self.make_weir(weir="threads = 4"))

        def descriptors():
            """Of the kinds that a program costs."""
            fds = f"/proc/{weir.pid}/fd"
            kinds = [os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)]
            return sum("pipe:" in kind or "pidfd" in kind for kind in kinds)

        def run(requests):
            load = self.run_load(Load(
                weir.socket, clients=20, requests=requests, path="/weir/hello",
                script=self.programs.path("weir", "hello")))
            phases = load.finish()
            self.assertEqual(sum(phase.status.get(200, 0) for phase in phases), 20 * requests)
            wait_until(lambda: not children_of_any_kind(weir.pid), "all are reaped")

        run(1)
        before = descriptors()
        run(50)
        wait_until(lambda: descriptors() <= before, "all is closed")

    def test_a_crash_is_logged(self):
        for name, status, whole, signo in (("is-killed", 502, True, 9), ("crashes", 502, True, 11),
                                           ("crashes-late", 200, False, 11)):
            weir = self.start(self.make_weir(name="weir-" + name))
            reply = fcgi.ask(weir.socket, self.programs.params("weir", name))
            self.assertEqual((reply.status, reply.is_whole), (status, whole))
            self.assert_logged(weir, 1, "A program was ended by a signal.", f"signal={signo}")

    def test_what_weir_ends_is_no_crash(self):
        weir = self.start(self.make_weir())
        for name in ("stops", "goes-on", "is-deaf"):
            with fcgi.Connection(weir.socket) as connection:
                connection.send(fcgi.request(self.programs.params(
                    "weir", name, QUERY_STRING="ended-" + name)))
                pid = self.pid_of("ended-" + name)
            wait_until(lambda p=pid: not is_alive(p), "weir ends the program")
        self.assert_logged(weir, 0, "A program was ended by a signal.")

    def test_work_behind_a_whole_answer_is_not_cut(self):
        """nginx closes a connection that it keeps as soon as it has Content-Length bytes."""
        weir = self.start(self.make_weir())
        with fcgi.Connection(weir.socket) as connection:
            connection.send(fcgi.request(self.programs.params(
                "weir", "works-behind", QUERY_STRING="behind")))
            seen = b""
            while b"ok\n" not in seen:
                seen += connection.peer.recv(65536)
        self.assertEqual(wait_until(lambda: self.programs.note("behind"), "it is noted"), "whole\n")
        metrics = weir.metrics()
        self.assertEqual(metrics.total("weir_client_gone_total"), 0)
        self.assertEqual(metrics.total("weir_requests_total", outcome="admitted"), 1)

    def test_a_weir_that_is_killed_leaves_no_program(self):
        weir = self.make_weir(weir="threads = 2").start()
        connections = [fcgi.Connection(weir.socket) for _ in range(6)]
        try:
            for number, connection in enumerate(connections):
                connection.send(fcgi.request(self.programs.params(
                    "weir", "waits" if number % 2 == 0 else "is-deaf",
                    QUERY_STRING=f"killed-{number}")))
            pids = [self.pid_of(f"killed-{number}") for number in range(len(connections))]
            for pid in pids:
                self.forget(pid)
            weir.kill()
            for pid in pids:
                wait_until(lambda p=pid: not is_alive(p), "the program ends with weir")
        finally:
            weir.kill()
            for connection in connections:
                connection.close()


class PhpOfAProgram(Case):
    """An interpreter as the one program of a backend, as lighttpd's cgi.assign has it."""

    needs = ("lighttpd", "nginx", "php-cgi")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weir = cls.start_for_class(Weir(cls.place, None, (
            "[backend php]\ntype = cgi\nprogram = /usr/bin/php-cgi\n"
            "[route default]\nmatch = *\n")))

    def test_it_runs_the_script_that_was_asked_for(self):
        for front in (Lighttpd(self.place, self.weir.socket), Nginx(self.place, self.weir.socket)):
            self.start(front)
            self.assertEqual(front.ask("/index.php").text, "hello GET\n")
            seen = json.loads(front.ask("/server.php/a/b?x=1").text)
            self.assertEqual(
                (seen["SCRIPT_FILENAME"], seen["PATH_INFO"], seen["QUERY_STRING"]),
                (self.place.documents + "/server.php", "/a/b", "x=1"))
            self.assertEqual(front.ask("/not-there.php").status, 404)


class ProgramBelowAPath(CgiCase):
    """As etc/nginx-weir.conf says of git-http-backend."""

    needs = ("nginx",)

    def test_it_is_told_the_rest_of_the_path(self):
        self.programs.write("paths", ANSWER + 'echo "$SCRIPT_NAME $PATH_INFO $SCRIPT_FILENAME"')
        program = self.programs.path("weir", "paths")
        weir = self.start(Weir(self.place, None, (
            f"[backend git]\ntype = cgi\nprogram = {program}\n[route default]\nmatch = *\n")))
        front = self.start(Nginx(self.place, weir.socket, git=True))
        self.assertEqual(front.ask("/git/repo.git/info/refs?service=x").text,
                         f"/git /repo.git/info/refs {program}\n")


if __name__ == "__main__":
    weirtest.main()
