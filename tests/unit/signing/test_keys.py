"""The key that receipts are signed with: made once, for one user alone, and refused where others could have had it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pybox_kernel.doctor import of_key
from pybox_kernel.errors import OptionError, SetupError
from pybox_kernel.signing.keys import MOST_KEYS, SigningKeys, fingerprint, in_groups, new_private, read_public

WHAT = b"what is signed"


def signed(keys: SigningKeys) -> tuple[str, bytes]:
    found = keys.sign(WHAT)
    assert found is not None, keys.problem
    return found


def test_it_is_made_once_for_this_user_alone(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path / "home")
    assert keys.ring().keys == {}
    name, signature = signed(keys)
    assert keys.private_file.stat().st_mode & 0o777 == 0o600
    assert keys.private_file.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(file.name for file in keys.private_file.parent.iterdir()) == ["lock", "receipts.pem"]
    again = SigningKeys(tmp_path / "home")
    assert signed(again) == (name, signature)
    assert list(of_key(tmp_path / "home")) == []
    assert again.ring().verify(name, signature, WHAT)
    assert not again.ring().verify(name, signature, WHAT + b"!")
    assert not again.ring().verify("0" * 32, signature, WHAT)


def test_kernels_that_start_at_once_make_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = {name for name, _ in pool.map(lambda _: signed(SigningKeys(tmp_path)), range(32))}
    assert len(names) == 1


def test_processes_that_start_at_once_make_one(tmp_path: Path) -> None:
    code = "import sys; from pybox_kernel.signing.keys import SigningKeys as K\n"
    code += "from pathlib import Path; print(K(Path(sys.argv[1])).sign(b'')[0])"
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in started}) == 1


def test_a_new_key_takes_its_place_also_in_a_kernel_that_runs_and_the_old_one_still_checks(tmp_path: Path) -> None:
    keys, running = SigningKeys(tmp_path), SigningKeys(tmp_path)
    old = signed(running)
    assert keys.rotate()
    new = signed(running)
    assert new[0] != old[0]
    ring = keys.ring()
    assert (ring.current, list(ring.keys)) == (new[0], [new[0], old[0]])
    assert ring.verify(*old, WHAT)
    assert ring.verify(*new, WHAT)
    assert keys.rotate()
    assert list(keys.ring().keys)[1:] == [new[0], old[0]], "the last one first"
    texts = [file.read_bytes() for file in keys.private_file.parent.iterdir()]
    assert sum(b"PRIVATE" in text for text in texts) == 1


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o611])
def test_one_that_others_could_have_read_is_not_used_and_not_kept(mode: int, tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    old = signed(keys)[0]
    keys.private_file.chmod(mode)
    assert keys.sign(WHAT) is None
    assert "open to others" in str(keys.problem)
    [finding] = of_key(tmp_path)
    assert (finding.state, "open to others" in finding.found) == ("warning", True)
    with pytest.raises(SetupError, match="open to others"):
        keys.ring()
    assert not keys.rotate()
    assert old not in keys.ring().keys
    assert signed(keys)[0] != old


def test_what_is_in_a_folder_that_others_can_change_proves_nothing(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    signed(keys)
    tmp_path.chmod(0o777)
    with pytest.raises(SetupError, match="others may change"):
        keys.ring()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_one_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    signed(keys)
    os.chown(keys.private_file, 12345, -1)
    assert keys.sign(WHAT) is None
    assert "not a file of yours" in str(keys.problem)


def test_what_is_no_file_is_not_used(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path / "home")
    signed(keys)
    elsewhere = keys.private_file.rename(tmp_path / "elsewhere.pem")
    keys.private_file.symlink_to(elsewhere)
    assert SigningKeys(tmp_path / "home").sign(WHAT) is None
    keys.private_file.unlink()
    os.mkfifo(keys.private_file, 0o600)
    assert SigningKeys(tmp_path / "home").sign(WHAT) is None


@pytest.mark.parametrize("data", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_said_and_nothing_of_it_is_shown(data: bytes, tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    signed(keys)
    keys.private_file.write_bytes(data)
    fresh = SigningKeys(tmp_path)
    assert fresh.sign(WHAT) is None
    assert "is not a key that receipts are signed with" in str(fresh.problem)
    assert "AAAA" not in str(fresh.problem)


def test_earlier_keys_that_are_none_are_said_and_with_them_gone_all_is_well(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    name, signature = signed(keys)
    earlier = tmp_path / "keys" / "earlier.pub"
    earlier.write_bytes(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    for use in (keys.ring, keys.public, keys.rotate):
        with pytest.raises(SetupError, match=r"earlier\.pub has something in it that is no key"):
            use()
    assert signed(keys) == (name, signature)
    earlier.unlink()
    assert keys.rotate()
    assert keys.ring().verify(name, signature, WHAT)


def test_a_home_that_cannot_hold_it_is_said_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("")
    keys = SigningKeys(tmp_path)
    assert keys.sign(WHAT) is None
    assert "cannot keep its records" in str(keys.problem)
    (tmp_path / "keys").unlink()
    signed(keys)
    assert keys.problem is None


def test_its_public_half_can_be_taken_elsewhere(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    old = signed(keys)
    keys.rotate()
    new = signed(keys)
    public = tmp_path / "ada.pub"
    public.write_bytes(b"Ada's keys\n" + b"".join(keys.public()))
    ring = read_public(public)
    assert (ring.current, set(ring.keys)) == (new[0], {new[0], old[0]})
    assert ring.verify(*old, WHAT)
    assert b"PRIVATE" not in public.read_bytes()
    assert fingerprint(ring.keys[new[0]]) == new[0]
    assert in_groups(new[0]).replace(" ", "") == new[0]


def pem(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI me",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        pem(ec.generate_private_key(ec.SECP256R1()).public_key()),
        pem(rsa.generate_private_key(65537, 1024).public_key()),
        new_private(),
        b"x" * (1 << 20),
        b"-----BEGIN PUBLIC KEY-----" * 1000,
    ],
    ids=["nothing", "ssh", "no key", "another curve", "RSA", "private", "large", "beginnings"],
)
def test_what_is_no_public_key_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pub").write_bytes(data)
    with pytest.raises(OptionError, match="no public key for receipts"):
        read_public(tmp_path / "x.pub")


def test_no_number_of_keys_is_too_many(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    for _ in range(3):
        keys.rotate()
    (tmp_path / "x.pub").write_bytes(b"".join(keys.public()) * MOST_KEYS)
    assert len(read_public(tmp_path / "x.pub").keys) == 3


def test_a_public_key_is_no_pipe_and_no_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.pub")
    for name in ("x.pub", ".", "missing.pub"):
        with pytest.raises(OptionError):
            read_public(tmp_path / name)
