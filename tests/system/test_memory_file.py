#!/usr/bin/python3 -B
"""The memory store's file, removed, replaced, cut or written over under a weir that serves."""

import os
import signal

import weirtest
from weirtest import Case, Weir, fcgi, wait_until
from weirtest.process import is_alive

ROUTES = """\
[limit some]
identity = user
on_missing = skip
policy = 3/1d

[backend none]
type = none

[route default]
match = *
limit = some
backend = none
"""


class MemoryFileTests(Case):
    def setUp(self):
        self.weir = self.begin_weir("weir-" + self._testMethodName)

    def begin_weir(self, name, state=None):
        weir = Weir(self.place, None, ROUTES, name=name)
        if state is not None:
            weir.state = state
            weir.configure(ROUTES)
        return self.start(weir)

    def ask(self, weir, user="alice"):
        return fcgi.ask(weir.socket, fcgi.usual_params("/x", self.place.documents, REMOTE_USER=user,
                                                       AUTH_TYPE="Basic")).status

    def ask_until_it_ends(self, weir):
        """Users are spread over all of the file."""
        for number in range(2000):
            try:
                self.ask(weir, f"user{number}")
            except (OSError, AssertionError, EOFError):
                break
            if not is_alive(weir.pid):
                break

    def test_cut_short_it_ends_with_a_sentence_and_starts_anew(self):
        for size in (0, 5, 4096, 500000):
            self.assertEqual(self.ask(self.weir), 200)
            os.truncate(self.weir.state, size)
            self.ask_until_it_ends(self.weir)
            self.assertEqual(self.weir.wait(), 1)
            self.weir.start()
            self.assertEqual([self.ask(self.weir) for _ in range(4)], [200, 200, 200, 429])
            self.weir.stop()
            self.weir.start()
            self.assertEqual(self.ask(self.weir, "bob"), 200)
            os.unlink(self.weir.state)
            self.weir.stop()
            self.weir.start()
        self.assert_logged(self.weir, 4, self.weir.state, "was cut short", "weir ends")

    def test_removed_or_replaced_it_is_told_and_still_counts(self):
        self.assertEqual([self.ask(self.weir) for _ in range(3)], [200, 200, 200])
        os.rename(self.weir.state, self.weir.state + ".old")
        wait_until(lambda: self.weir.log_lines("error:", "was removed", self.weir.state),
                   "it is told")
        other = self.begin_weir("other", self.weir.state)
        wait_until(lambda: self.weir.log_lines("error:", "was replaced", self.weir.state),
                   "it is told")
        self.assertEqual([self.ask(weir) for weir in (self.weir, other)], [429, 200])
        os.rename(self.weir.state + ".old", self.weir.state)
        wait_until(lambda: self.weir.log_lines("is there again"), "it is told")
        self.assertEqual(self.ask(self.weir), 429)
        self.assert_logged(self.weir, 3, "The memory store's file")

    def test_written_over_it_goes_on(self):
        for number, text in enumerate((b"\0", b"\xff", b"\x5a\x01")):
            weir = self.begin_weir(f"over{number}")
            self.assertEqual(self.ask(weir), 200)
            size = os.stat(weir.state).st_size
            with open(weir.state, "r+b", buffering=0) as file:
                file.write(text * (size // len(text)))
            for user in range(200):
                self.assertIn(self.ask(weir, f"user{user}"), (200, 429, 503))
            self.assertTrue(is_alive(weir.pid))
            weir.signal(signal.SIGTERM)
            self.assertEqual(weir.wait(), 0)


if __name__ == "__main__":
    weirtest.main()
