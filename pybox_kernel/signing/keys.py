"""The key that receipts are signed with: made once, kept in PyBox's own folder for this user alone, never elsewhere.

``keys/receipts.pem`` is the private key (PKCS 8), of which only this user may read a byte; ``keys/earlier.pub`` has the
public halves of those before it, so that what they signed can still be checked.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pybox_kernel.boxes.journal import home_folder, home_path, records_in, require_own
from pybox_kernel.errors import OptionError, PyBoxError, SetupError
from pybox_kernel.file_lock import file_lock

if TYPE_CHECKING:  # it takes 50 ms to import
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["KeyRing", "SigningKeys", "fingerprint", "in_groups", "read_public"]

MOST_BYTES: Final = 64 << 10
MOST_KEYS: Final = 100
BLOCK: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----[\sA-Za-z0-9+/=]{1,400}-----END PUBLIC KEY-----")
FOLDER: Final = "keys"
PRIVATE: Final = "receipts.pem"
EARLIER: Final = "earlier.pub"
ROTATE: Final = (
    "Run `chmod 600` on it if nobody else uses this computer; else `pybox-kernel key rotate` makes a new one."
)


class KeyRing(NamedTuple):
    """Public keys by their fingerprint."""

    keys: Mapping[str, Ed25519PublicKey]
    current: str | None
    """That of the key in use; the others are earlier ones."""

    def verify(self, key: str, signature: bytes, data: bytes) -> bool:
        """Whether ``signature`` is of ``data`` by the key with this fingerprint; False for one that is not here."""
        from cryptography.exceptions import InvalidSignature

        public = self.keys.get(key)
        if public is None:
            return False
        try:
            public.verify(signature, data)
        except InvalidSignature:
            return False
        return True


class SigningKeys:
    """The keys of one installation. Thread-safe as far as files are: every change is made under a lock, and a file is
    there whole or not at all."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._loaded: tuple[tuple[int, int], Ed25519PrivateKey, str] | None = None
        self.problem: PyBoxError | None = None
        """Why the last ``prepare`` or ``sign`` could not."""

    @property
    def private_file(self) -> Path:
        return self._folder / PRIVATE

    @property
    def _folder(self) -> Path:
        return (self._home or home_path()) / FOLDER

    def sign(self, data: bytes) -> tuple[str, bytes] | None:
        """The fingerprint of the key, which is made if there is none yet, and the signature. None where there is no
        key that may be used; then ``problem`` says why."""
        self.prepare()
        if self.problem is not None or self._loaded is None:
            return None
        _, private, name = self._loaded
        return name, private.sign(data)

    def prepare(self) -> None:
        """What takes its time at the first ``sign``: makes the key if there is none, and loads it."""
        self.problem = None
        try:
            self._load()
        except PyBoxError as error:
            self.problem = error

    def ring(self) -> KeyRing:
        """The public halves of all keys; empty where there are none yet. Raises SetupError for files that cannot be
        read, or that others could have read or changed."""
        current, earlier = self.public()
        found = ring_of(current + earlier)
        return found if current else KeyRing(found.keys, None)

    def public(self) -> tuple[bytes, bytes]:
        """As PEM: the key in use, if there is one, and the earlier ones, the last of them first. Raises SetupError."""
        current = b""
        require_own(self._folder.parent)
        with records_in(self._folder):
            with suppress(FileNotFoundError):
                current = pem_of(self._read_private()[0].public_key())
            earlier = self._read_earlier()
        return current, earlier

    def create(self) -> None:
        """Makes the key where there is none. Raises SetupError."""
        self._load()

    def rotate(self) -> bool:
        """A new key takes the place of the one in use, whose private half is no more. Whether its public half was kept:
        not where others could have read the key, since then anyone may have signed with it. Raises SetupError."""
        kept = True
        with records_in(self._made_folder()), file_lock(self._folder / "lock"):
            earlier = self._read_earlier()
            try:
                self._write(EARLIER, pem_of(self._read_private()[0].public_key()) + earlier)
            except FileNotFoundError:
                pass
            except SetupError:
                kept = False
            self._write(PRIVATE, new_private())
        return kept

    def _load(self) -> None:
        """The key in use: as it is now, also where another process has made a new one."""
        if self._loaded is not None:
            with suppress(OSError):
                found = self.private_file.lstat()
                if (found.st_ino, found.st_ctime_ns) == self._loaded[0]:
                    return
        with records_in(self._folder):
            try:
                private, mark = self._read_private()
            except FileNotFoundError:
                self._made_folder()
                with file_lock(self._folder / "lock"):
                    if not self.private_file.exists():
                        self._write(PRIVATE, new_private())
                private, mark = self._read_private()
        self._loaded = mark, private, fingerprint(private.public_key())

    def _made_folder(self) -> Path:
        if self._home is None:
            home_folder()
        with records_in(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    def _read_private(self) -> tuple[Ed25519PrivateKey, tuple[int, int]]:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        data, mark = self._read(PRIVATE, secret=True)
        try:
            found = load_pem_private_key(data, None)
        except Exception:  # nothing of it is shown
            found = None
        if not isinstance(found, Ed25519PrivateKey):
            raise SetupError(
                f"{self.private_file} is not a key that receipts are signed with.",
                "Move it away, and the next receipt makes a new one.",
            )
        return found, mark

    def _read_earlier(self) -> bytes:
        """Nothing where there are none. Raises OSError, and SetupError for what is not keys."""
        try:
            data = self._read(EARLIER, secret=False)[0]
        except FileNotFoundError:
            return b""
        try:
            ring_of(data)
        except Exception as error:  # whatever a damaged key does to the library that reads it
            raise SetupError(
                f"{self._folder / EARLIER} has something in it that is no key.",
                "Move it away: what earlier keys signed then counts as not made here.",
            ) from error
        return data

    def _read(self, name: str, *, secret: bool) -> tuple[bytes, tuple[int, int]]:
        """Raises OSError, and SetupError for a file that is not this user's alone."""
        path = self._folder / name
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(file)
            others = 0o077 if secret else 0o022
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise SetupError(f"{path} is not a file of yours.", "Move it away, and a new one is made.")
            if found.st_mode & others:
                raise SetupError(f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):o}).", ROTATE)
            return os.read(file, MOST_BYTES), (found.st_ino, found.st_ctime_ns)
        finally:
            os.close(file)

    def _write(self, name: str, data: bytes) -> None:
        beside = self._folder / f".{name}.{secrets.token_hex(8)}"
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            beside.replace(self._folder / name)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()


def new_private() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def pem_of(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(b"PyBox key v1\0" + key.public_bytes_raw()).hexdigest()[:32]


def in_groups(name: str) -> str:
    """A fingerprint, to be read and compared."""
    return " ".join(name[place : place + 4] for place in range(0, len(name), 4))


def ring_of(data: bytes) -> KeyRing:
    """The keys in PEM blocks, the first of them in use. Raises ValueError for a block that holds none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    keys: dict[str, Ed25519PublicKey] = {}
    for block in BLOCK.findall(data)[:MOST_KEYS]:
        key = load_pem_public_key(block)
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("a key of another kind")
        keys.setdefault(fingerprint(key), key)
    return KeyRing(keys, next(iter(keys), None))


def read_public(path: Path) -> KeyRing:
    """What ``pybox-kernel key export`` wrote, on whatever computer. Raises OptionError."""
    advice = "Name a file that `pybox-kernel key export` wrote."
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = os.read(file, MOST_BYTES + 1) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}.", advice) from error
    try:
        ring = ring_of(data) if len(data) <= MOST_BYTES else None
    except Exception:  # whatever a stranger's key does to the library that reads it
        ring = None
    if ring is None or not ring.keys:
        raise OptionError(f"{path} has no public key for receipts in it.", advice)
    return ring
