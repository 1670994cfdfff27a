"""PID 1 of a box: it keeps the deadline, bounds the output, and reports what it finds. Trusted; standard library only.

It speaks frames with the supervisor over its own stdin and stdout: one type byte, a four-byte big-endian length, the
payload. The program never holds either end: its streams are pipes to the warden.

    to the supervisor    R ready: what the box looks like from inside (JSON);    O E  first part of stdout, stderr
                           and after Q, what of that may have changed
                         v V  an event of the program: a part, the last part     o e  last part of stdout, stderr
                         P the files are in their place                          X    ended (JSON)
                         k a part of what is carried to later cells              w    a part of the values asked for
                         D d  a file: its name and size (JSON), its bytes        T    the account of its files (JSON)
                         F the warden failed (text)
    from the supervisor  I i  a file: name, size, files to come (JSON); bytes    A    bytes taken so far
                         N a part of what goes into the program before its source (``parcels``)
                         G go: the deadline in seconds, as ASCII digits          C    the source; the clock starts
                         S stop                                                  L    release: exit now
                         B after X: the files, or their number (JSON)            Q    look again, before the source

Out of reach of the program, which runs under the same uid: not dumpable (no ptrace, /proc/1/mem or /proc/1/fd), every
signal blocked (what cannot be blocked does not reach PID 1 from inside its own namespace), the scheduling and limit
calls on another process refused by the seccomp profile, and a program that is always nicer than the warden.

It never waits for a write. At most WINDOW bytes are under way unanswered, so a supervisor that has stopped reading
leaves nothing stuck in the engine, and the deadline is looked at in every turn.

Arguments: kept bytes a stream, seconds to wait for the release, seconds to wait for the program, then the program's
environment as NAME=VALUE.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))  # -I leaves the program's own folder out

from channel import CHUNK, LARGEST_FRAME, MOST_WAITING, Channel, SupervisorLost  # type: ignore[import-not-found]
from examine import look_at_rest, look_inside  # type: ignore[import-not-found]
from files import FilesIn, FilesOut  # type: ignore[import-not-found]
from parcels import RECORD, SOURCE  # type: ignore[import-not-found]
from spawn import spawn  # type: ignore[import-not-found]
from streams import HEADER, PARCELS, Events, Kept  # type: ignore[import-not-found]

RUNNER_READY_SECONDS = 60.0
REAP_SECONDS = 2.0

PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4
SFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC

LOST_SUPERVISOR, FAILED = 70, 71
KILLED = 128 + 9


class Warden:
    def __init__(
        self,
        kept: int,
        release_seconds: float,
        waiting_seconds: float,
        environment: dict[str, str],
        descriptors: list[int],
    ) -> None:
        self.descriptors = descriptors
        self.release_seconds = release_seconds
        self.waiting_seconds = waiting_seconds
        self.environment = environment
        self.channel = Channel()
        self.files = FilesIn()
        self.asked: dict[str, int] | None = None
        self.end_told = False
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.children = self.open_child_signals()
        self.runner = 0
        self.runner_status: int | None = None
        self.source = bytearray()
        self.source_pipe = -1
        self.streams: dict[int, tuple[bytes, bytes, Kept]] = {}
        self.kept = kept
        self.finished: dict[bytes, Kept] = {}
        self.events = Events(-1)
        self.runner_ready = False
        self.deadline_seconds: float | None = None
        self.started: float | None = None
        self.how: str | None = None
        self.released = False
        self.ran_seconds = 0.0
        self.all_reaped = False

    def open_child_signals(self) -> int:
        """All signals blocked, SIGCHLD readable as a descriptor; nothing of this process readable by another."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        mask = ctypes.c_ulong(1 << (signal.SIGCHLD - 1))
        descriptor = int(self.libc.signalfd(-1, ctypes.byref((ctypes.c_ulong * 16)(mask.value)), SFD_NONBLOCK_CLOEXEC))
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), "signalfd")
        return descriptor

    # The runner

    def start_runner(self) -> None:
        self.runner, out, err, events, self.source_pipe = spawn(self.environment)
        self.streams = {out: (b"O", b"o", Kept(out, self.kept)), err: (b"E", b"e", Kept(err, self.kept))}
        self.events = Events(events)

    def reap(self) -> bool:
        try:
            os.read(self.children, 4096)  # once: the program can send signals as fast as they are read
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.runner:
                self.runner_status = status

    def end_program(self, how: str) -> None:
        """Kills every process in the box but this one. ``kill(-1)`` is one pass under the kernel's task list lock,
        and a fork under way with a fatal signal pending fails, so nothing is left to fork again."""
        if self.how is None:
            self.how = how
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass

    # The channel

    def obey(self, kind: bytes, payload: bytes) -> None:
        if kind == b"G" and self.deadline_seconds is None:
            self.deadline_seconds = float(payload)
        elif kind == b"I" and self.started is None:
            self.files.begin(payload)
            self.tell_placed()
        elif kind == b"i" and self.started is None:
            self.files.add(payload)
            self.tell_placed()
        elif kind == b"N" and self.started is None:
            if self.how is None:
                self.source += payload
        elif kind == b"C" and self.started is None and self.deadline_seconds is not None and not self.files.open:
            self.started = time.monotonic()
            self.source += RECORD.pack(SOURCE, len(payload)) + payload
        elif kind == b"Q" and self.started is None:
            self.channel.send(b"R", json.dumps(look_at_rest(self.runner)).encode())
        elif kind == b"S":
            self.end_program("stopped")
        elif kind == b"B" and self.end_told:
            self.asked = json.loads(payload)
        elif kind == b"L":
            self.released = True
        else:
            raise ValueError("an unexpected frame %r from the supervisor" % kind)

    def tell_placed(self) -> None:
        if not self.files.open:
            self.channel.send(b"P", b"")

    # The turns

    def turn(self, until: float) -> None:
        """Waits for something to do, at most until ``until``, and does one bounded part of each thing."""
        poll = select.poll()
        # Before the program has come the runner takes whatever it is given, so this waits for no one else.
        if self.started is not None or len(self.source) < MOST_WAITING:
            poll.register(0, select.POLLIN)
        poll.register(self.children, select.POLLIN)
        if self.channel.can_write:
            poll.register(1, select.POLLOUT)
        if self.source_pipe >= 0 and self.source:
            poll.register(self.source_pipe, select.POLLOUT)
        for descriptor in self.streams:
            poll.register(descriptor, select.POLLIN)
        if self.events.descriptor >= 0 and not self.channel.is_full:
            poll.register(self.events.descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, (until - time.monotonic()) * 1000)):
            if descriptor == 0:
                for kind, payload in self.channel.receive():
                    self.obey(kind, payload)
            elif descriptor == self.source_pipe:
                self.feed_source()
            elif descriptor in self.streams:
                self.drain_stream(descriptor)
            elif descriptor == self.events.descriptor:
                self.drain_events()
        self.channel.flush()

    def feed_source(self) -> None:
        try:
            del self.source[: os.write(self.source_pipe, self.source)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.source.clear()
        if not self.source and self.started is not None:
            os.close(self.source_pipe)
            self.source_pipe = -1

    def drain_stream(self, descriptor: int) -> bool:
        live, _, kept = self.streams[descriptor]
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            del self.streams[descriptor]
            os.close(descriptor)
            self.finished[live] = kept
            return False
        head = kept.take(data)
        if head:
            self.channel.send(live, head)
        return True

    def drain_events(self) -> bool:
        try:
            data = os.read(self.events.descriptor, LARGEST_FRAME)
        except BlockingIOError:
            return False
        if not data:
            os.close(self.events.descriptor)
            self.events.descriptor = -1
            return False
        for event in self.events.take(data):
            if event[:1] in PARCELS:
                self.channel.send_parcel(event)
            elif event[:1] != b"r":
                self.channel.send_event(event)
            elif self.started is None:
                self.runner_ready = True
        return True

    def run(self) -> int:
        """The whole life of a box; the exit status that its engine is to record."""
        report = look_inside(self.libc, self.descriptors)
        if self.libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
        report["dumpable"] = self.libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
        self.start_runner()
        limit = time.monotonic() + RUNNER_READY_SECONDS
        while not self.runner_ready:
            self.idle_turn(limit)
            if time.monotonic() > limit:
                raise RuntimeError("the runner did not get ready")
        report["rest"] = look_at_rest(self.runner)
        self.channel.send(b"R", json.dumps(report).encode())
        limit = time.monotonic() + self.waiting_seconds
        while self.started is None and self.how is None:
            self.idle_turn(limit)
            if self.started is None and time.monotonic() > limit:
                raise SupervisorLost  # an engine that was killed leaves its boxes, with a stdin that does not end
        self.await_runner()
        self.await_all()
        self.tell_the_end()
        limit = time.monotonic() + self.release_seconds
        while not self.released and time.monotonic() < limit:
            self.turn(limit)
            if self.asked is not None:
                self.take_files_out(self.asked)
                self.asked = None
                limit = time.monotonic() + self.release_seconds
        return self.exit_status()

    def idle_turn(self, until: float) -> None:
        self.turn(until)
        self.reap()
        # A turn can bring the whole program, and a throttled warden be slower than the program is.
        if self.runner_status is not None and self.how is None and self.started is None:
            raise RuntimeError("the runner ended before the program came (status %d)" % self.runner_status)

    def await_runner(self) -> None:
        """Until the program's own process is dead: by itself, at the deadline, or stopped."""
        began = time.monotonic() if self.started is None else self.started
        limit = began + (self.deadline_seconds or 0.0)
        while self.runner_status is None:
            if time.monotonic() >= limit:
                self.end_program("deadline")
                limit = time.monotonic() + REAP_SECONDS
            self.turn(limit)
            self.reap()
        self.ran_seconds = time.monotonic() - began

    def await_all(self) -> None:
        """Until everything that the program left behind is dead, and what it wrote is read."""
        self.end_program("exited")
        limit = time.monotonic() + REAP_SECONDS
        while time.monotonic() < limit:
            if not self.reap():
                self.all_reaped = True
                break
            select.select([self.children], [], [], 0.05)
        for descriptor in list(self.streams):
            while self.drain_stream(descriptor):
                pass
        while self.events.descriptor >= 0 and self.drain_events():
            pass

    def tell_the_end(self) -> None:
        assert self.runner_status is not None
        streams = {}
        kept = {**self.finished, **{live: kept for live, _, kept in self.streams.values()}}
        for name, live, last in (("stdout", b"O", b"o"), ("stderr", b"E", b"e")):
            rest = kept[live].rest()
            for start in range(0, len(rest), CHUNK):
                self.channel.send(last, rest[start : start + CHUNK])
            sent = kept[live].sent
            streams[name] = {"bytes": kept[live].total, "kept": sent + len(rest), "head": sent}
        code, killer = status_parts(self.runner_status)
        ended = {
            "how": self.how,
            "code": code,
            "signal": killer,
            "ran_ms": round(self.ran_seconds * 1000, 3),
            "completed": self.events.completed,
            "streams": streams,
            "events_dropped": self.events.dropped,
            "events_dropped_bytes": self.events.dropped_bytes,
            "events_garbled": self.events.broken,
            "carried_dropped": self.events.cut[b"k"],
            "values_dropped": self.events.cut[b"w"],
            "all_reaped": self.all_reaped,
        }
        self.channel.send(b"X", json.dumps(ended).encode())
        self.end_told = True

    def take_files_out(self, asked: dict[str, int]) -> None:
        """One part is on its way at a time: what has been read and not sent is one buffer."""
        until = time.monotonic() + asked["seconds"]
        for kind, payload in FilesOut(asked, self.files.prints, until).frames():
            self.channel.send(kind, payload)
            while self.channel.outgoing and time.monotonic() < until:
                self.turn(until)

    def exit_status(self) -> int:
        assert self.runner_status is not None
        if self.how in ("deadline", "stopped"):
            return KILLED
        code, killer = status_parts(self.runner_status)
        return code if code is not None else 128 + (killer or 0)


def status_parts(status: int) -> tuple[int | None, int | None]:
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def main() -> None:
    kept, release, waiting, *pairs = sys.argv[1:]
    environment = dict(pair.split("=", 1) for pair in pairs)
    # 0, 1, 2 and the one that lists them: anything more is a descriptor that the runtime leaked into the box.
    descriptors = sorted(int(n) for n in os.listdir("/proc/self/fd"))
    try:
        status = Warden(int(kept), float(release), float(waiting), environment, descriptors).run()
    except SupervisorLost:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = LOST_SUPERVISOR
    except BaseException as error:  # whatever it is, it is the warden's fault and never the program's exit
        text = ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")[:2000]
        try:
            os.write(1, HEADER.pack(b"F", len(text)) + text)
            os.write(2, text)
        except OSError:
            pass
        status = FAILED
    os._exit(status)


if __name__ == "__main__":
    main()
