"""Says in one line what state the container engine is in: ``engine_state.py [SECONDS]``.

answers          it answers, and can enforce every limit that a box needs
lacks A, B       it answers, but cannot enforce these limits
silent           it takes the connection and does not answer within SECONDS (1)
denied           it is there, and this user may not use it
refused          its socket is there, and nobody listens
absent           there is no socket
odd WHAT         it answers something else than an engine would
elsewhere        DOCKER_HOST is not a unix socket: not looked at here, `pybox-kernel doctor` does

Set-up runs this before anything is installed: standard library only, and any Python 3.
"""

import json
import os
import socket
import sys
import time

LIMITS = (("MemoryLimit", "memory"), ("SwapLimit", "swap"), ("CpuCfsQuota", "CPU"), ("PidsLimit", "tasks"))
MOST_BYTES = 1 << 20


def ask(path, seconds):
    """The engine's whole HTTP answer to GET /info. Raises OSError, or socket.timeout after ``seconds``."""
    end = time.monotonic() + seconds
    answer = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(b"GET /info HTTP/1.0\r\nHost: engine\r\n\r\n")
        while len(answer) < MOST_BYTES:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            part = connection.recv(65536)
            if not part:
                break
            answer += part
    return answer


def state(address, seconds):
    if not address.startswith("unix://"):
        return "elsewhere"
    try:
        head, _, body = ask(address[len("unix://") :], seconds).partition(b"\r\n\r\n")
    except (socket.timeout, BlockingIOError):  # noqa: UP041  (Python 3.9). BlockingIOError: its queue is full
        return "silent"
    except PermissionError:
        return "denied"
    except ConnectionRefusedError:
        return "refused"
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        return f"odd {error.strerror}"
    try:
        facts = json.loads(body.decode())
        lacking = [name for key, name in LIMITS if not facts[key]]
    except (ValueError, KeyError, TypeError):
        first_line = head.split(b"\r\n")[0].decode("ascii", "replace")
        return f"odd {first_line[:80] if first_line and first_line.isprintable() else 'bytes'}"
    return "lacks " + ", ".join(lacking) if lacking else "answers"


if __name__ == "__main__":
    print(
        state(
            os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock",
            float(sys.argv[1]) if len(sys.argv) > 1 else 1.0,
        )
    )
