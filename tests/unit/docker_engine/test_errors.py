"""Foreign exceptions cross in one translator: every class that the SDK, requests and urllib3 have, by name.

When one of them adds a class that is not mapped, a test here fails.
"""

from __future__ import annotations

import errno
import http.client
import inspect
import json
import socket
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import docker.errors
import pytest
import requests.exceptions
import urllib3.exceptions

from pybox_kernel.docker_engine.errors import translated
from pybox_kernel.engine import Place
from pybox_kernel.errors import (
    EngineDenied,
    EngineError,
    EngineMissing,
    EngineNotFound,
    EngineRefused,
    EngineTimeout,
)

ADDRESS = "unix:///run/some.sock"
PLACE = Place(ADDRESS, "container engine", "the usual one")
TIMEOUTS = (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError)


def classes() -> Iterator[type[Exception]]:
    """Every exception class that the three modules name; warnings are not raised here."""
    modules: tuple[ModuleType, ...] = (docker.errors, requests.exceptions, urllib3.exceptions)
    found = {value for module in modules for value in vars(module).values() if inspect.isclass(value)}
    for kind in sorted(found, key=lambda kind: f"{kind.__module__}.{kind.__name__}"):
        if issubclass(kind, Exception) and not issubclass(kind, Warning):
            yield kind


def instance(kind: type[Exception]) -> Exception:
    """One of the class, made with as many plain arguments as it wants."""
    special: dict[type[Exception], Any] = {
        urllib3.exceptions.IncompleteRead: lambda: urllib3.exceptions.IncompleteRead(1, 2),
        http.client.IncompleteRead: lambda: http.client.IncompleteRead(b"", 2),
        urllib3.exceptions.HeaderParsingError: lambda: urllib3.exceptions.HeaderParsingError([], b""),
        docker.errors.ContainerError: lambda: docker.errors.ContainerError("c", 1, "x", "i", "e"),
        urllib3.exceptions.InvalidChunkLength: lambda: urllib3.exceptions.InvalidChunkLength(
            SimpleNamespace(tell=lambda: 0, length_remaining=1),  # type: ignore[arg-type]
            b"x",
        ),
        json.JSONDecodeError: lambda: json.JSONDecodeError("x", "", 0),
        requests.exceptions.JSONDecodeError: lambda: requests.exceptions.JSONDecodeError("x", "", 0),
        urllib3.exceptions.NameResolutionError: lambda: urllib3.exceptions.NameResolutionError(
            "h",
            None,  # type: ignore[arg-type]
            socket.gaierror(-2, "x"),
        ),
    }
    if kind in special:
        return special[kind]()  # type: ignore[no-any-return]
    for count in range(6):
        try:
            return kind(*["x"] * count)
        except (TypeError, AttributeError):
            continue
    raise AssertionError(f"no {kind} could be made")


def crossed(error: BaseException) -> EngineError:
    with pytest.raises(EngineError) as caught, translated(PLACE, "make a box"):
        raise error
    assert caught.value.advice
    assert "make a box" in caught.value.message or ADDRESS.removeprefix("unix://") in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_exception_of_the_libraries_becomes_an_engine_error(kind: type[Exception]) -> None:
    found = crossed(instance(kind))
    if issubclass(kind, docker.errors.NotFound):
        assert type(found) is EngineNotFound
    elif issubclass(kind, docker.errors.APIError):
        assert type(found) is EngineRefused
    elif issubclass(kind, TIMEOUTS):
        assert type(found) is EngineTimeout
    else:
        assert type(found) is EngineError


def test_the_three_libraries_are_seen_whole() -> None:
    """That the walk above finds them, in case their modules change form."""
    found = set(classes())
    assert {docker.errors.APIError, docker.errors.StreamParseError, requests.exceptions.ReadTimeout} <= found
    assert {urllib3.exceptions.ProtocolError, urllib3.exceptions.MaxRetryError} <= found
    assert len(found) > 60


SYSTEM = [
    (errno.ENOENT, EngineMissing, "No container engine was found: there is no /run/some.sock."),
    (errno.ECONNREFUSED, EngineMissing, "Nothing answers at /run/some.sock: the container engine is not running."),
    (errno.EACCES, EngineDenied, "This user may not use the container engine at unix:///run/some.sock."),
    (errno.EPERM, EngineDenied, "This user may not use the container engine at unix:///run/some.sock."),
    (errno.ETIMEDOUT, EngineTimeout, "did not answer in time when asked to make a box"),
    (errno.ECONNRESET, EngineError, "broke off when asked to make a box"),
    (errno.EPIPE, EngineError, "broke off when asked to make a box"),
    (errno.EMFILE, EngineError, "broke off when asked to make a box"),
]


def wrapped(error: OSError) -> list[Exception]:
    """The ways in which a system's error comes out of the SDK."""
    protocol = urllib3.exceptions.ProtocolError("Connection aborted.", error)
    retried = urllib3.exceptions.MaxRetryError(None, "/x", error)  # type: ignore[arg-type]
    version = docker.errors.DockerException(f"Error while fetching server API version: {error}")
    version.__cause__ = requests.exceptions.ConnectionError(protocol)
    return [
        error,
        protocol,
        requests.exceptions.ConnectionError(protocol),
        requests.exceptions.ConnectionError(retried),
        version,
    ]


@pytest.mark.parametrize(("number", "kind", "message"), SYSTEM, ids=lambda value: str(value)[:20])
def test_what_lies_at_the_bottom_decides(number: int, kind: type[EngineError], message: str) -> None:
    for error in wrapped(OSError(number, "x")):
        found = crossed(error)
        assert type(found) is kind
        assert message in found.message


@pytest.mark.parametrize("error", [TimeoutError("timed out"), requests.exceptions.ReadTimeout("x")])
def test_a_timeout_below_is_a_timeout(error: Exception) -> None:
    version = docker.errors.DockerException("Error while fetching server API version")
    version.__cause__ = error
    assert type(crossed(version)) is EngineTimeout
    assert (
        type(crossed(requests.exceptions.ConnectionError(urllib3.exceptions.ProtocolError("x", error))))
        is EngineTimeout
    )


@pytest.mark.parametrize(
    "error",
    [
        *(KeyError("Id"), TypeError("no dict"), AttributeError("get"), ValueError("x")),
        *(json.JSONDecodeError("x", "", 0), RecursionError()),
    ],
)
def test_an_answer_in_another_form_is_an_engine_error(error: Exception) -> None:
    assert type(crossed(error)) is EngineError


def test_the_engines_own_words_are_kept_short_and_on_one_line() -> None:
    response = requests.Response()
    response.status_code = 409
    error = docker.errors.APIError("x", response=response, explanation="Conflict:\n\tthe name is taken." + "." * 900)
    found = crossed(error)
    assert found.message.startswith(f"The engine at {ADDRESS} refused to make a box: Conflict: the name is taken")
    assert len(found.message) < 500
    assert "\n" not in found.message


def test_an_engine_error_passes_as_it_is() -> None:
    own = EngineMissing("a", "b")
    assert crossed_as_it_is(own) is own


def crossed_as_it_is(error: EngineError) -> EngineError:
    with pytest.raises(EngineError) as caught, translated(PLACE, "make a box"):
        raise error
    return caught.value


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError(), AssertionError("bug")])
def test_what_is_not_the_engines_passes_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)), translated(PLACE, "make a box"):
        raise error


def test_a_chain_that_goes_round_ends() -> None:
    first, second = docker.errors.DockerException("a"), docker.errors.DockerException("b")
    first.__cause__, second.__cause__ = second, first
    assert type(crossed(first)) is EngineError
