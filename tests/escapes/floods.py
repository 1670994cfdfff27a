"""Programs that attack in many processes at once."""

from __future__ import annotations

from tests.escapes.running import with_calls

IN_VAIN = """
import os, signal, time

def in_vain(action, *arguments):
    try:
        return action(*arguments)
    except (OSError, ValueError):
        return None

def in_children(count, *actions):
    "Each action for ever in this many processes of its own, as far as there is room for them."
    for action in actions:
        for _ in range(count):
            if in_vain(os.fork) == 0:
                while True:
                    in_vain(action)
"""

EVERYTHING_AT_ONCE = with_calls(
    IN_VAIN
    + """
handle = os.pidfd_open(1)
print("up", flush=True)
in_children(
    3,
    lambda: [os.kill(1, number) for number in range(1, 65)],
    lambda: [signal.pidfd_send_signal(handle, number) for number in range(1, 65)],
    lambda: [libc.sigqueue(1, number, ctypes.c_void_p(7)) for number in range(34, 65)],
    lambda: [errno_of(*call) for call in (
        ("ptrace", 16, 1, 0, 0), ("sched_setscheduler", 1, 5, bytes(4)), ("setpriority", 0, 1, 19),
        ("prlimit64", 1, 7, bytes(16), 0), ("sched_setaffinity", 1, 8, bytes([1]) + bytes(7)))],
    lambda: [os.write(1, b"x" * 65536), os.write(2, b"y" * 65536)],
    lambda: display("x" * 20000),
    lambda: os.fork() or os._exit(0),
)
while True: pass
"""
)
