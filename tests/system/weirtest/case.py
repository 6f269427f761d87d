"""unittest with what these tests need beyond: a line with its duration for each test, the servers'
logs where one has failed, several attempts where a busy machine can spoil a measurement."""

import fcntl
import functools
import os
import shutil
import sys
import tempfile
import time
import unittest

from weirtest import phpfpm, redis
from weirtest.place import BUILD, Place, is_sanitized
from weirtest.process import wait_until


class TooSlow(AssertionError):
    """A measurement that another attempt may put right."""


def attempts(count):
    """Repeats a test as long as it is only too slow."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for number in range(1, count + 1):
                try:
                    return test(self)
                except TooSlow as error:
                    self.say(f"attempt {number} of {count}: {error}")
                    if number == count:
                        raise
                self.renew()
        return run
    return decorate


class Case(unittest.TestCase):
    needs = ()          # programs, besides Redis's and php-fpm
    place = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        for program in (redis.PROGRAM, phpfpm.program(), *cls.needs):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed")
        cls.place = Place()
        cls.addClassCleanup(cls._close_place)

    @classmethod
    def _close_place(cls):
        complaints = cls.place.complaints()
        if complaints:
            cls.place.print_logs(sys.stderr)
        if "WEIR_TEST_KEEP" in os.environ:
            print(f"kept: {cls.place.path}", file=sys.stderr)
        else:
            cls.place.close()
        if complaints:
            raise AssertionError("a sanitizer complains:\n" + "\n".join(complaints))

    def renew(self):
        """Before a further attempt; a class that has something to put back does it here."""

    @classmethod
    def start_for_class(cls, server):
        server.start()
        cls.addClassCleanup(server.stop)
        return server

    def start(self, server):
        server.start()
        self.addCleanup(server.stop)
        return server

    def run_load(self, load):
        """A load that is ended with the test, whatever happens."""
        self.addCleanup(load.kill)
        return load

    def assert_logged(self, weir, count, *words):
        """So many lines with all of these words, and no more. The log is written behind."""
        try:
            wait_until(lambda: len(weir.log_lines(*words)) >= count, "it is logged", 2)
        except AssertionError:
            pass
        self.assertEqual(len(weir.log_lines(*words)), count, words)

    def say(self, text):
        """A measured number, shown always."""
        print(f"    {type(self).__name__}.{self._testMethodName}: {text}", file=sys.stderr,
              flush=True)

    def assert_fast(self, measured_us, allowed_us, what):
        """Shown always, held only for a program that was built to be fast."""
        self.say(f"{what}: {measured_us} us (allowed {allowed_us})")
        if measured_us > allowed_us and not is_sanitized():
            raise TooSlow(f"{what}: {measured_us} us > {allowed_us} us")

    def assert_small(self, measured_kib, allowed_kib, what):
        """Likewise of memory: a sanitizer keeps what was freed."""
        self.say(f"{what}: {measured_kib} KiB (allowed {allowed_kib})")
        if not is_sanitized():
            self.assertLessEqual(measured_kib, allowed_kib)


class _Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()

    def _line(self, word, test):
        name = f"{type(test).__name__}.{getattr(test, '_testMethodName', test)}"
        spent = time.monotonic() - getattr(self, "_started", time.monotonic())
        self.stream.writeln(f"{word:7} {spent:6.2f} s  {name}")
        self.stream.flush()

    def _logs(self, test):
        place = getattr(test, "place", None)
        if place is not None and os.path.isdir(place.path):
            place.print_logs(self.stream)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._line("FAILED", test)
        self._logs(test)

    def addError(self, test, err):
        super().addError(test, err)
        self._line("ERROR", test)
        self._logs(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line("skipped", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._line("FAILED", test)
            self._logs(test)


class _Runner(unittest.TextTestRunner):
    resultclass = _Result

    def __init__(self, **options):
        options["verbosity"] = 0
        super().__init__(**options)


def main(alone=False):
    """Runs the file's tests, beside those of other files unless they want to be `alone`: what is
    measured would be spoilt. WEIR_TEST_NO_SKIP makes a missing program a failure."""
    lock_path = os.path.join(BUILD if os.access(BUILD, os.W_OK) else tempfile.gettempdir(),
                             "system-tests.lock")
    with open(lock_path, "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        program = unittest.main(module="__main__", testRunner=_Runner, exit=False)
    if "WEIR_TEST_NO_SKIP" in os.environ and program.result.skipped:
        sys.exit("tests were skipped")
    sys.exit(not program.result.wasSuccessful())
