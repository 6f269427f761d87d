"""A server's process: started so that it cannot outlive the test, asked until it answers, stopped
by its id."""

import contextlib
import ctypes
import os
import resource
import signal
import socket
import subprocess
import time

from weirtest.place import worker_user

PR_SET_PDEATHSIG = 1
READY_S = 20
PAUSE_S = 0.01

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl

os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"

_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))


def wait_until(holds, what, seconds=10):
    """Asks `holds` until it returns something true, and returns that. An OSError is a no."""
    until = time.monotonic() + seconds
    last = None
    while True:
        try:
            answer = holds()
            if answer:
                return answer
        except OSError as error:
            last = error
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}" +
                                 (f" ({last})" if last is not None else ""))
        time.sleep(PAUSE_S)


def die_with_parent(number=signal.SIGKILL):
    """In a child, before it becomes another program: the kernel ends it should the test die."""
    _prctl(PR_SET_PDEATHSIG, int(number))


def free_port(count=1):
    """The first of so many in a row."""
    while True:
        with contextlib.ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in range(count)]
            probes[0].bind(("127.0.0.1", 0))
            first = probes[0].getsockname()[1]
            try:
                for number in range(1, count):
                    probes[number].bind(("127.0.0.1", first + number))
            except (OSError, OverflowError):
                continue
            return first


def children_of(pid):
    """The ids of a process's children, from /proc."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != b"Z":
            found.append(int(name))
    return found


def descendants_of(pid):
    found = children_of(pid)
    for child in list(found):
        found += descendants_of(child)
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[0] != b"Z"
    except OSError:
        return False


class Server:
    """One of the real servers. Subclasses say how it is started and how it is asked."""

    # What the kernel sends should the test die. A master process needs one that it can pass on to
    # its workers.
    death_signal = signal.SIGTERM
    stop_s = 15

    def __init__(self, place, name):
        self.place = place
        self.name = name
        self.process = None
        self.exit_status = None

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ, LC_ALL="C")

    # Whether the process is root's even if root runs the test: it then changes user itself.
    starts_as_root = True

    def start(self):
        self.begin()
        try:
            wait_until(self._ready_or_dead, f"{self.name} answers", READY_S)
        except BaseException:
            self.kill()
            raise
        return self

    def begin(self):
        """Starts without waiting."""
        user = None if self.starts_as_root else worker_user()
        with open(self.place.log(self.name), "ab") as log:
            # pylint: disable=subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.place.path, env=self.environment(), start_new_session=True,
                preexec_fn=lambda: die_with_parent(self.death_signal), user=user, group=user,
                extra_groups=None if user is None else [])
        self.exit_status = None

    def _ready_or_dead(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n"
                                 + self.place.read_log(self.name)[-2000:])
        return self.is_ready()

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=None):
        """Waits for its end; returns the exit status (negative: a signal)."""
        try:
            self.exit_status = self.process.wait(self.stop_s if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end") from None
        return self.exit_status

    def stop(self):
        """Ends it as an administrator would; whatever is left of its session is killed."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            self.wait()
        try:
            self.after_stop()
        finally:
            self._kill_session()
            self.process = None

    def after_stop(self):
        """What must hold when it has ended by itself."""

    def kill(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._kill_session()
        self.process = None

    def _kill_session(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
