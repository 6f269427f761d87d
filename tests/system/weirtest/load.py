"""fcgi_load as an object: started, told of phases, ended, and asked what it saw."""

import json
import os
import subprocess
import threading
import time
from typing import NamedTuple

from weirtest import process
from weirtest.place import BUILD

PROGRAM = os.path.join(BUILD, "tests", "tools", "fcgi_load")


class Phase:
    """What was asked in one span of time. Latencies are in microseconds."""

    def __init__(self, parts):
        self.parts = parts
        self.status = {int(code): count for code, count in parts["status"].items()}
        self.failed = {how: count for how, count in parts["failed"].items() if count}
        self.started = parts["started"]
        self.p50, self.p99, self.p999, self.max = (parts[name] for name in
                                                   ("p50", "p99", "p999", "max"))

    def __str__(self):
        return (f"{self.parts['name']}: {self.started} in {self.parts['seconds']:.1f} s, "
                f"{self.status}{' failed ' + str(self.failed) if self.failed else ''}, "
                f"p50 {self.p50} p99 {self.p99} p99.9 {self.p999} max {self.max} us")


class Request(NamedTuple):
    """One of a load. Times are of time.monotonic(), in seconds; status 0: it failed."""
    began: float
    ended: float
    status: int


class Load:
    def __init__(self, address, *, marks=False, keep=False, stay=False, params=None, **options):
        """`address`: a port (HTTP) or a socket's path (FastCGI). Options are fcgi_load's:
        rate=500, seconds=3, or clients=20, requests=20, ramp=10; path, host, script, vary, timeout; each=a
        file that requests() reads when the load has ended."""
        self._each = options.get("each")
        command = [PROGRAM]
        if isinstance(address, int):
            command += ["--http"]
        for name, value in options.items():
            command += ["--for" if name == "seconds" else "--" + name, str(value)]
        for name, value in (params or {}).items():
            command += ["--set", f"{name}={value}"]
        command += ["--marks"] if marks else []
        command += ["--keep"] if keep else []
        command += ["--stay"] if stay else []
        command += [f"tcp:127.0.0.1:{address}" if isinstance(address, int) else f"unix:{address}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=process.die_with_parent)
        self.phases = []

    def mark(self, name):
        """From now on requests belong to a phase of that name."""
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != name + "\n":
            raise AssertionError("fcgi_load has ended")

    def go_on(self, seconds):
        """Lets it run for so long: a span to measure, not a wait for something."""
        time.sleep(seconds)
        if self._process.poll() is not None:
            raise AssertionError("fcgi_load has ended")

    def finish(self, seconds=60):
        """Waits for the end of its plan; returns the phases."""
        # Not communicate(): what readline has read ahead would be lost.
        watchdog = threading.Timer(seconds, self._process.kill)
        watchdog.start()
        out = self._process.stdout.read()
        watchdog.cancel()
        self._process.wait()
        self.kill()
        if self._process.returncode != 0:
            raise AssertionError(f"fcgi_load ended with {self._process.returncode}")
        self.phases = [Phase(parts) for parts in json.loads(out)["phases"]]
        return self.phases

    def requests(self):
        """All of them, in the order of their ends."""
        with open(self._each, encoding="ascii") as file:
            parts = [[int(part) for part in line.split()] for line in file]
        return [Request(due / 1e6, (due + took) / 1e6, status) for due, took, status in parts]

    def end(self):
        """Lets no further request begin, and waits for those under way."""
        self.mark("end")
        return self.finish()

    def kill(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait()
