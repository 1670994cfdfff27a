"""Foreign exceptions cross here and nowhere else: of the SDK, requests, urllib3 and the system, into EngineErrors."""

from __future__ import annotations

import errno
import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import docker.errors
import requests
import requests.exceptions
import urllib3.exceptions

from pybox_kernel.engine import Place
from pybox_kernel.engine_choice import emptying, mending, starting
from pybox_kernel.errors import EngineDenied, EngineError, EngineMissing, EngineNotFound, EngineRefused, EngineTimeout

__all__ = ["DOCTOR", "translated"]

DOCTOR: Final = "Run `pybox-kernel doctor` to see what is wrong."


@contextmanager
def translated(place: Place, doing: str) -> Iterator[None]:
    """Foreign exceptions of the SDK, requests, urllib3 and the system become EngineErrors, here and nowhere else."""
    address = place.address
    try:
        yield
    except EngineError:
        raise
    except docker.errors.NotFound as error:
        raise EngineNotFound(
            f"The engine knows nothing of it when asked to {doing}: {explained(error)}.", DOCTOR
        ) from error
    except docker.errors.APIError as error:
        why = explained(error)
        advice = emptying(place) if "no space left on device" in why.lower() else DOCTOR
        raise EngineRefused(f"The engine at {address} refused to {doing}: {why}.", advice) from error
    except (requests.exceptions.Timeout, TimeoutError, urllib3.exceptions.TimeoutError) as error:
        raise EngineTimeout(
            f"The engine at {address} did not answer in time when asked to {doing}.", mending(place)
        ) from error
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        docker.errors.StreamParseError,
        urllib3.exceptions.HTTPError,
        http.client.HTTPException,
        OSError,
        ValueError,
    ) as error:
        raise from_cause(place, doing, error) from error
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        message = f"The engine at {address} gave an answer of another form than an engine's when asked to {doing}."
        raise EngineError(message, DOCTOR) from error


def from_cause(place: Place, doing: str, error: BaseException) -> EngineError:
    """The EngineError for what lies at the bottom of a chain of wrapped exceptions."""
    address = place.address
    seen: list[BaseException] = []
    pending: list[object] = [error]
    while pending and len(seen) < 50:
        item = pending.pop()
        if not isinstance(item, BaseException) or item in seen:
            continue
        seen.append(item)
        pending += [item.__cause__, item.__context__, *item.args, getattr(item, "reason", None)]
    numbers = {item.errno for item in seen if isinstance(item, OSError)}
    if any(isinstance(item, (TimeoutError, requests.exceptions.Timeout)) for item in seen):
        return EngineTimeout(f"The engine at {address} did not answer in time when asked to {doing}.", mending(place))
    path = address.removeprefix("unix://")
    if errno.EACCES in numbers or errno.EPERM in numbers:
        return EngineDenied(
            f"This user may not use the container engine at {address}.",
            "Join the group that owns it (`sudo usermod -aG docker $USER`), then log out and in again.",
        )
    if errno.ENOENT in numbers:
        if place.vm is not None:
            return EngineMissing(f"PyBox's virtual machine has ended: there is no {path}.", starting(place))
        return EngineMissing(
            f"No container engine was found: there is no {path}.",
            "Install one (`apt-get install docker.io`) and start it, or name another (--engine, DOCKER_HOST).",
        )
    if errno.ECONNREFUSED in numbers:
        return EngineMissing(f"Nothing answers at {path}: the container engine is not running.", starting(place))
    return EngineError(f"The engine at {address} broke off when asked to {doing}: {explained(error)}.", DOCTOR)


def explained(error: BaseException) -> str:
    text = getattr(error, "explanation", None) or str(error) or type(error).__name__
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return " ".join(str(text).split())[:400].rstrip(".")
