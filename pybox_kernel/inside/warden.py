"""PID 1 of a box: it keeps the deadline, bounds the output, and reports what it finds. Trusted; standard library only.

It speaks frames with the supervisor over its own stdin and stdout: one type byte, a four-byte big-endian length, the
payload. The program never holds either end: its streams are pipes to the warden.

    to the supervisor    R ready: what the box looks like from inside (JSON)     O E  first part of stdout, stderr
                         V one event of the program (type byte, payload)         o e  last part of stdout, stderr
                         X ended (JSON)                                          F    the warden failed (text)
    from the supervisor  G go: the deadline in seconds, as ASCII digits          C    the source; the clock starts
                         S stop                 A bytes taken so far             L    release: exit now

Out of reach of the program, which runs under the same uid: not dumpable (no ptrace, /proc/1/mem or /proc/1/fd), every
signal blocked (what cannot be blocked does not reach PID 1 from inside its own namespace), the scheduling and limit
calls on another process refused by the seccomp profile, and a program that is always nicer than the warden.

It never waits for a write. At most WINDOW bytes are under way unanswered, so a supervisor that has stopped reading
leaves nothing stuck in the engine, and the deadline is looked at in every turn.

Arguments: kept bytes a stream, seconds to wait for the release, then the program's environment as NAME=VALUE.
"""

import ctypes
import errno
import json
import os
import platform
import select
import signal
import struct
import sys
import time

RUNNER = "/usr/local/lib/pybox/runner.py"
HEADER = struct.Struct(">cI")
WINDOW = 65536
LARGEST_FRAME = 65536
CHUNK = 16384
SOURCE_BYTES = 65536
LARGEST_EVENT = 60000
EVENT_BYTES = 262144
RUNNER_READY_SECONDS = 60.0
REAP_SECONDS = 2.0

PR_SET_DUMPABLE = 4
SFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC

LOST_SUPERVISOR = 70
FAILED = 71
KILLED = 128 + 9

# The same tuple stands in pybox_kernel/seccomp.py; a test keeps the two equal.
# Each: name, (number on x86_64, on aarch64), arguments, the errno that PyBox's own profile gives.
PROBES = (
    ("socket(AF_NETLINK)", (41, 198), (16, 3, 0, 0, 0, 0), 1),
    ("socket(2**32 + AF_VSOCK)", (41, 198), (2**32 + 40, 1, 0, 0, 0, 0), 1),
    ("io_uring_setup", (425, 425), (0, 0, 0, 0, 0, 0), 1),
    ("ptrace(PTRACE_PEEKTEXT, 0)", (101, 117), (1, 0, 0, 0, 0, 0), 1),
    ("shmget(size 0)", (29, 194), (0, 0, 0, 0, 0, 0), 1),
    ("sched_setscheduler(no parameters)", (144, 119), (0, 0, 0, 0, 0, 0), 1),
    ("prlimit64(1, RLIMIT_NOFILE)", (302, 261), (1, 7, 0, 0, 0, 0), 1),
    ("prlimit64(RLIMIT_CORE, bad address)", (302, 261), (0, 4, 1, 0, 0, 0), 1),
    ("unshare(nothing)", (272, 97), (0, 0, 0, 0, 0, 0), 1),
    ("clone3(size 0)", (435, 435), (0, 0, 0, 0, 0, 0), 38),
)

# What the box shows of itself, under the names that the outside witness uses for the same files.
OWN_FILES = (
    "status", "limits", "mountinfo", "cgroup", "stat",
    "net/dev", "net/route", "net/if_inet6", "net/ipv6_route", "net/fib_trie",
)  # fmt: skip
OWN_CGROUP_FILES = (
    "memory/memory.limit_in_bytes", "memory/memory.memsw.limit_in_bytes", "pids/pids.max",
    "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us",
    "memory.max", "memory.swap.max", "pids.max", "cpu.max",
)  # fmt: skip


class SupervisorLost(Exception):
    """The supervisor's end of stdin is closed."""


def read_text(path):
    try:
        with open(path, "rb") as file:
            return file.read(32768).decode("utf-8", "replace")
    except OSError as error:
        return {"errno": error.errno}


def try_forbidden_calls(libc):
    libc.syscall.restype = ctypes.c_long
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    found = {}
    for name, numbers, arguments, _wanted in PROBES:
        ctypes.set_errno(0)
        result = libc.syscall(numbers[column], *(ctypes.c_ulong(a % (1 << 64)) for a in arguments))
        found[name] = ctypes.get_errno() if result == -1 else 0
    return found


def try_to_write(directory):
    path = directory + "/.pybox-probe"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        return error.errno
    os.unlink(path)
    return 0


def room(path):
    try:
        found = os.statvfs(path)
    except OSError as error:
        return {"errno": error.errno}
    return {"bytes": found.f_blocks * found.f_frsize, "inodes": found.f_files}


def look_inside(libc, descriptors):
    """What the box looks like from inside, before any byte of the program has arrived."""
    files = {name: read_text("/proc/self/" + name) for name in OWN_FILES}
    files.update({"cgroup:" + name: read_text("/sys/fs/cgroup/" + name) for name in OWN_CGROUP_FILES})
    interfaces = {}
    for name in sorted(os.listdir("/sys/class/net"))[:64]:
        interfaces[name] = read_text("/sys/class/net/" + name + "/flags")
    return {
        "files": files,
        "interfaces": interfaces,
        "calls": try_forbidden_calls(libc),
        "write": {place: try_to_write(place) for place in ("/", "/etc", "/dev", "/usr/local/lib/pybox", "/box", "/tmp")},
        "room": {place: room(place) for place in ("/box", "/tmp", "/dev/shm")},
        "descriptors": descriptors,
        "devices": sorted(os.listdir("/dev"))[:64],
        "boot_id": read_text("/proc/sys/kernel/random/boot_id"),
        "python": platform.python_version(),
    }


class Kept:
    """The first and the last part of one stream; the middle is counted and dropped, on character boundaries."""

    def __init__(self, descriptor, kept):
        self.descriptor = descriptor
        self.head_room = kept // 2
        self.tail_room = kept - self.head_room
        self.tail = bytearray()
        self.total = 0
        self.sent = 0
        self.head_full = False

    def take(self, data):
        """The part of ``data`` that belongs to the head and can be sent on now."""
        self.total += len(data)
        head = b""
        if not self.head_full:
            head = data[: self.head_room - self.sent]
            if len(head) < len(data):
                self.head_full = True
                head = head[: len(head) - partial_character(head)]
            self.sent += len(head)
            data = data[len(head) :]
        self.tail += data
        if len(self.tail) > self.tail_room:
            del self.tail[: len(self.tail) - self.tail_room]
        return head

    def rest(self):
        """The last part; where something before it was dropped it begins with a whole character."""
        start = 0
        if self.total > self.sent + len(self.tail):
            while start < min(3, len(self.tail)) and self.tail[start] & 0xC0 == 0x80:
                start += 1
        return bytes(self.tail[start:])


def partial_character(data):
    """How many bytes at the end of ``data`` begin a UTF-8 character without finishing it: 0 to 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if needs > back else 0
    return 0


class Events:
    """The program's third pipe: frames like the warden's own. Its word only; what breaks the form is dropped."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.buffer = bytearray()
        self.skip = 0
        self.garbled = False
        self.total = 0
        self.dropped = 0
        self.dropped_bytes = 0
        self.completed = False

    def take(self, data):
        """Whole events within bounds, ready to send on."""
        if self.garbled:
            return []
        self.buffer += data
        ready = []
        while True:
            if self.skip:
                gone = min(self.skip, len(self.buffer))
                del self.buffer[:gone]
                self.skip -= gone
                if self.skip:
                    return ready
            if len(self.buffer) < HEADER.size:
                return ready
            kind, length = HEADER.unpack_from(self.buffer)
            if kind not in (b"r", b"c", b"d", b"x"):
                self.garbled = True
                self.buffer.clear()
                return ready
            over = length > LARGEST_EVENT or (kind == b"d" and self.total + length > EVENT_BYTES)
            if over:
                del self.buffer[: HEADER.size]
                self.skip = length
                self.dropped += 1
                self.dropped_bytes += length
                continue
            if len(self.buffer) < HEADER.size + length:
                return ready
            payload = bytes(self.buffer[HEADER.size : HEADER.size + length])
            del self.buffer[: HEADER.size + length]
            if kind == b"c":
                self.completed = True
            else:
                self.total += length
                if kind == b"x" and self.total > EVENT_BYTES + 2 * LARGEST_EVENT:
                    self.dropped += 1
                    continue
                ready.append(kind + payload)


class Warden:
    def __init__(self, kept, release_seconds, environment, descriptors):
        self.descriptors = descriptors
        self.release_seconds = release_seconds
        self.environment = environment
        self.outgoing = bytearray()
        self.offered = 0
        self.acknowledged = 0
        self.incoming = bytearray()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.children = self.open_child_signals()
        self.runner = 0
        self.runner_status = None
        self.source = bytearray()
        self.source_pipe = -1
        self.streams = {}
        self.kept = kept
        self.finished = {}
        self.events = None
        self.runner_ready = False
        self.deadline_seconds = None
        self.started = None
        self.how = None
        self.released = False

    def open_child_signals(self):
        """All signals blocked, SIGCHLD readable as a descriptor; nothing of this process readable by another."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        mask = ctypes.c_ulong(1 << (signal.SIGCHLD - 1))
        descriptor = self.libc.signalfd(-1, ctypes.byref((ctypes.c_ulong * 16)(mask.value)), SFD_NONBLOCK_CLOEXEC)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), "signalfd")
        return descriptor

    # The runner

    def start_runner(self):
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        event_read, event_write = os.pipe()
        source_read, source_write = os.pipe()
        self.runner = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", RUNNER],
            self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out_write, 1),
                (os.POSIX_SPAWN_DUP2, err_write, 2),
                (os.POSIX_SPAWN_DUP2, event_write, 103),
                (os.POSIX_SPAWN_DUP2, source_read, 104),
                (os.POSIX_SPAWN_DUP2, 103, 3),
                (os.POSIX_SPAWN_DUP2, 104, 4),
                (os.POSIX_SPAWN_CLOSE, 103),
                (os.POSIX_SPAWN_CLOSE, 104),
            ],
            setsigmask=[],
            setsigdef=[s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)],
        )
        for descriptor in (out_write, err_write, event_write, source_read):
            os.close(descriptor)
        for descriptor in (0, 1, out_read, err_read, event_read, source_write):
            os.set_blocking(descriptor, False)
        self.source_pipe = source_write
        self.streams = {out_read: (b"O", b"o", Kept(out_read, self.kept)), err_read: (b"E", b"e", Kept(err_read, self.kept))}
        self.events = Events(event_read)

    def reap(self):
        try:
            while os.read(self.children, 4096):
                pass
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

    def end_program(self, how):
        """Kills every process in the box but this one. ``kill(-1)`` is one pass under the kernel's task list lock,
        and a fork under way with a fatal signal pending fails, so nothing is left to fork again."""
        if self.how is None:
            self.how = how
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass

    # The channel

    def send(self, kind, payload):
        self.outgoing += HEADER.pack(kind, len(payload)) + payload

    def window(self):
        return WINDOW - (self.offered - self.acknowledged)

    def flush(self):
        while self.outgoing and self.window() > 0:
            try:
                sent = os.write(1, bytes(self.outgoing[: min(CHUNK, self.window())]))
            except BlockingIOError:
                return
            except BrokenPipeError:
                raise SupervisorLost from None
            self.offered += sent
            del self.outgoing[:sent]

    def receive(self):
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise SupervisorLost
        self.incoming += data
        while len(self.incoming) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.incoming)
            if length > LARGEST_FRAME:
                raise ValueError("a frame of %d bytes from the supervisor" % length)
            if len(self.incoming) < HEADER.size + length:
                return
            payload = bytes(self.incoming[HEADER.size : HEADER.size + length])
            del self.incoming[: HEADER.size + length]
            self.obey(kind, payload)

    def obey(self, kind, payload):
        if kind == b"A":
            self.acknowledged = min(self.offered, int(payload))
        elif kind == b"G" and self.deadline_seconds is None:
            self.deadline_seconds = float(payload)
        elif kind == b"C" and self.started is None and self.deadline_seconds is not None:
            self.started = time.monotonic()
            self.source += payload
        elif kind == b"S":
            self.end_program("stopped")
        elif kind == b"L":
            self.released = True
        else:
            raise ValueError("an unexpected frame %r from the supervisor" % kind)

    # The turns

    def turn(self, until):
        """Waits for something to do, at most until ``until``, and does one bounded part of each thing."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.children, select.POLLIN)
        if self.outgoing and self.window() > 0:
            poll.register(1, select.POLLOUT)
        if self.source_pipe >= 0 and self.source:
            poll.register(self.source_pipe, select.POLLOUT)
        for descriptor in self.streams:
            poll.register(descriptor, select.POLLIN)
        if self.events.descriptor >= 0:
            poll.register(self.events.descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, (until - time.monotonic()) * 1000)):
            if descriptor == 0:
                self.receive()
            elif descriptor == self.source_pipe:
                self.feed_source()
            elif descriptor in self.streams:
                self.drain_stream(descriptor)
            elif descriptor == self.events.descriptor:
                self.drain_events()
        self.flush()

    def feed_source(self):
        try:
            del self.source[: os.write(self.source_pipe, self.source)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.source.clear()
        if not self.source:
            os.close(self.source_pipe)
            self.source_pipe = -1

    def drain_stream(self, descriptor):
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
            self.send(live, head)
        return True

    def drain_events(self):
        try:
            data = os.read(self.events.descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            os.close(self.events.descriptor)
            self.events.descriptor = -1
            return False
        for event in self.events.take(data):
            if event[:1] != b"r":
                self.send(b"V", event)
            elif self.started is None:
                self.runner_ready = True
        return True

    def run(self):
        report = look_inside(self.libc, self.descriptors)
        if self.libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
        self.start_runner()
        limit = time.monotonic() + RUNNER_READY_SECONDS
        while not self.runner_ready:
            self.turn(limit)
            self.reap()
            if self.runner_status is not None or time.monotonic() > limit:
                raise RuntimeError("the runner did not get ready (status %r)" % self.runner_status)
        report["dumpable"] = self.libc.prctl(3, 0, 0, 0, 0)
        self.send(b"R", json.dumps(report).encode())
        while self.started is None and self.how is None and not self.released:
            self.turn(time.monotonic() + 3600.0)
            self.reap()
            if self.runner_status is not None:
                raise RuntimeError("the runner ended before the program came (status %r)" % self.runner_status)
        if self.started is None:
            self.end_program("stopped")
            self.started = time.monotonic()
            self.deadline_seconds = 0.0
        deadline = self.started + self.deadline_seconds
        while self.runner_status is None:
            if time.monotonic() >= deadline:
                self.end_program("deadline")
                deadline = time.monotonic() + REAP_SECONDS
            self.turn(deadline)
            self.reap()
        return self.close_down(time.monotonic() - self.started)

    def close_down(self, ran_seconds):
        self.end_program("exited")
        limit = time.monotonic() + REAP_SECONDS
        gone = False
        while not gone and time.monotonic() < limit:
            gone = not self.reap()
            if not gone:
                select.select([self.children], [], [], 0.05)
        for descriptor in list(self.streams):
            while self.drain_stream(descriptor):
                pass
        while self.events.descriptor >= 0 and self.drain_events():
            pass
        streams = {}
        for name, live, last in (("stdout", b"O", b"o"), ("stderr", b"E", b"e")):
            kept = self.finished.get(live) or next(k for l, _, k in self.streams.values() if l == live)
            rest = kept.rest()
            for start in range(0, len(rest), CHUNK):
                self.send(last, rest[start : start + CHUNK])
            streams[name] = {"bytes": kept.total, "kept": kept.sent + len(rest), "head": kept.sent}
        code, killer = status_parts(self.runner_status)
        ended = {
            "how": self.how,
            "code": code,
            "signal": killer,
            "ran_ms": round(ran_seconds * 1000, 3),
            "completed": self.events.completed,
            "streams": streams,
            "events_dropped": self.events.dropped,
            "events_dropped_bytes": self.events.dropped_bytes,
            "events_garbled": self.events.garbled,
            "all_reaped": gone,
        }
        self.send(b"X", json.dumps(ended).encode())
        limit = time.monotonic() + self.release_seconds
        while not self.released and time.monotonic() < limit:
            self.turn(limit)
        if self.how in ("deadline", "stopped"):
            return KILLED
        return code if killer is None else 128 + killer


def status_parts(status):
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def main():
    kept, release, *pairs = sys.argv[1:]
    environment = dict(pair.split("=", 1) for pair in pairs)
    # 0, 1, 2 and the one that lists them: anything more is a descriptor that the runtime leaked into the box.
    descriptors = sorted(int(n) for n in os.listdir("/proc/self/fd"))
    try:
        status = Warden(int(kept), float(release), environment, descriptors).run()
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
