"""Recipes, the record of images, and what a root file system leaves out: no engine is asked anything here."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
import stat
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.errors import OptionError, SetupError
from pybox_kernel.images import plan as images
from pybox_kernel.images import rootfs
from pybox_kernel.images import steps as image_steps
from pybox_kernel.images import store as image_store
from pybox_kernel.images.offers import built_in_offer
from pybox_kernel.images.package_locks import parse_lock
from pybox_kernel.images.recipes import Offer, Pin, Program, Recipe, RegistryBase, current_recipe, program_files
from pybox_kernel.images.store import (
    BaseImage,
    ImageStore,
    Package,
    RecordedImage,
    base_in_use,
    expected_recipe,
    how_to_make,
    require,
)

DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64
REGISTRY = RegistryBase(repository="docker.io/library/python", tag="3.13-slim", digest=DIGEST)
NOBODY = DockerEngine("unix:///nonexistent/pybox-test.sock")
"""An engine that would raise EngineMissing if it were asked anything."""
OFFER = Offer(pins=(Pin(name="humanize", version="4.17.0", hashes=("e" * 64,)),), preload=("humanize",))


def recorded(recipe: Recipe | None = None, name: str = "stdlib") -> RecordedImage:
    recipe = recipe or current_recipe(REGISTRY)
    return RecordedImage(
        name=name,
        id=DIGEST,
        reference=f"pybox:{name}-0123456789ab",
        recipe_sha256=recipe.sha256,
        recipe=recipe,
        base=str(recipe.base),
        base_image=BaseImage(id=OTHER_DIGEST, reference="python@" + DIGEST),
        python="3.13.5",
        architecture="x86_64",
        size_bytes=120_000_000,
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        packages=(Package(name="bash", version="5.2"),),
    )


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "state")


# Recipes


def test_a_recipes_hash_is_of_its_canonical_json() -> None:
    recipe = Recipe(
        format=1, base=REGISTRY, programs=(Program(name="warden.py", sha256="c" * 64),), steps_sha256="d" * 64
    )
    text = (
        '{"base":{"digest":"' + DIGEST + '","kind":"registry","repository":"docker.io/library/python",'
        '"tag":"3.13-slim"},"format":1,"programs":[{"name":"warden.py","sha256":"' + "c" * 64 + '"}],'
        '"steps_sha256":"' + "d" * 64 + '"}'
    )
    assert recipe.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_an_offers_pins_and_what_is_imported_are_in_the_recipes_hash() -> None:
    [pin] = OFFER.pins
    offers = [
        None,
        OFFER,
        Offer(pins=OFFER.pins),
        Offer(pins=(pin.model_copy(update={"version": "4.17.1"}),), preload=OFFER.preload),
        Offer(pins=(pin.model_copy(update={"hashes": ("f" * 64,)}),), preload=OFFER.preload),
        Offer(pins=(pin, Pin(name="other", version="1", hashes=("e" * 64,))), preload=OFFER.preload),
    ]
    hashes = [current_recipe(REGISTRY, offer).sha256 for offer in offers]
    assert len(set(hashes)) == len(hashes)


def test_a_recipes_hash_changes_with_each_part() -> None:
    recipe = current_recipe(REGISTRY)
    debian = rootfs.debian_base("amd64")
    parts: list[dict[str, Any]] = [
        {"base": REGISTRY.model_copy(update={"digest": OTHER_DIGEST})},
        {"base": debian},
        {"base": debian.model_copy(update={"packages": debian.packages[:-1]})},
        {"base": debian.model_copy(update={"left_out": debian.left_out[:-1]})},
        {"base": debian.model_copy(update={"architecture": "arm64"})},
        {"programs": recipe.programs[:-1]},
        {"programs": (*recipe.programs[:-1], Program(name=recipe.programs[-1].name, sha256="0" * 64))},
        {"steps_sha256": "0" * 64},
    ]
    hashes = [recipe.sha256, *(recipe.model_copy(update=part).sha256 for part in parts)]
    assert len(set(hashes)) == len(hashes)


def test_the_in_box_programs_are_the_files_of_inside_and_are_hashed_as_they_are() -> None:
    folder = Path(image_steps.__file__).parent.parent / "inside"
    paths = [path for path in folder.iterdir() if path.suffix == ".py" and path.name != "__init__.py"]
    paths.append(Path(cloudpickle.cloudpickle.__file__))
    assert [file.name for file in program_files()] == sorted(path.name for path in paths)
    assert {"runner.py", "warden.py", "witness.py", "cloudpickle.py"} <= {path.name for path in paths}
    assert {program.name: program.sha256 for program in current_recipe(REGISTRY).programs} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def test_a_registrys_configuration_is_not_built_on_and_debian_files_are() -> None:
    lines = image_steps.dockerfile("registry", "sha256:1", "b").splitlines()
    assert lines[:3] == ["FROM scratch", "LABEL org.pybox.build=b", "COPY --from=sha256:1 / /"]
    assert image_steps.dockerfile("debian", "sha256:1", "b").splitlines()[0] == "FROM sha256:1"


def test_every_instruction_stands_on_its_own_line() -> None:
    lines = image_steps.dockerfile("debian", "sha256:1", "b").splitlines()
    assert [line.split()[0] for line in lines] == ["FROM", "LABEL", "COPY", "RUN", "WORKDIR"]
    assert json.loads(lines[3].removeprefix("RUN "))[-1] == image_steps.FINISH


def test_packages_are_copied_where_there_are_any() -> None:
    lines = image_steps.dockerfile("debian", "sha256:1", "b", offers=True).splitlines()
    assert [line.split()[0] for line in lines] == ["FROM", "LABEL", "COPY", "COPY", "RUN", "WORKDIR"]
    assert lines[3] == f"COPY offer/ {image_steps.OFFER}/"


@pytest.mark.parametrize("script", [image_steps.FINISH, image_steps.LOOK, image_steps.LOOK_BASE, image_steps.TRY])
def test_the_scripts_of_the_build_are_python(script: str) -> None:
    compile(script, "script", "exec")


# The record


def test_nothing_is_recorded_at_first(store: ImageStore) -> None:
    assert store.load() == {}
    assert not store.path.parent.exists()


def test_what_is_recorded_is_read_back_the_same(store: ImageStore) -> None:
    registry, debian = recorded(), recorded(current_recipe(rootfs.debian_base("amd64")), "data")
    store.record(registry)
    store.record(debian)
    assert store.load() == {"stdlib": registry, "data": debian}


def test_a_new_image_takes_the_place_of_the_old_one_of_its_name(store: ImageStore) -> None:
    assert store.record(recorded()) is None
    new = recorded().model_copy(update={"id": OTHER_DIGEST})
    assert store.record(new) == recorded()
    assert store.load() == {"stdlib": new}


def test_the_record_is_for_its_owner_alone_and_leaves_no_other_file(store: ImageStore) -> None:
    store.record(recorded())
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in store.path.parent.iterdir()) == ["images.json", "images.lock"]


def test_processes_that_record_at_the_same_time_lose_nothing(store: ImageStore) -> None:
    names = [f"image-{number}" for number in range(6)]
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=store.record, args=(recorded(name=name),)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sorted(store.load()) == names


def test_a_record_that_cannot_be_written_says_so_and_keeps_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match=r"could not be recorded in .*file/images\.json"):
        ImageStore(tmp_path / "file").record(recorded())


def changed(path: str, value: object) -> bytes:
    """A sound record in which the value at ``path`` is another one, or missing if that is ``...``."""
    document = {"format": "pybox.images/1", "images": [json.loads(recorded().model_dump_json())]}
    *way, last = path.split(".")
    place: Any = document
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document).encode()


def test_the_record_that_the_wrong_ones_are_made_from_is_sound(store: ImageStore) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(changed("format", "pybox.images/1"))
    store.path.chmod(0o600)
    assert store.load() == {"stdlib": recorded()}


WRONG = {
    "empty": b"",
    "not JSON": b"images",
    "cut short": changed("format", "pybox.images/1")[:-20],
    "something after it": changed("format", "pybox.images/1") + b"{}",
    "not UTF-8": changed("images.0.base", "BASE").replace(b"BASE", b"\xff"),
    "a list": b"[]",
    "too large": b" " * (5 * 1024 * 1024),
    "another format": changed("format", "pybox.images/2"),
    "no format": b'{"images": []}',
    "no format of a recipe": changed("images.0.recipe.format", ...),
    "an unknown field": changed("more", 1),
    "an unknown field of an image": changed("images.0.more", 1),
    "an unknown field of a recipe": changed("images.0.recipe.more", 1),
    "an unknown field of a base": changed("images.0.recipe.base.more", 1),
    "an unknown kind of base": changed("images.0.recipe.base.kind", "tape"),
    "no id": changed("images.0.id", ...),
    "an id that is a tag": changed("images.0.id", "pybox:stdlib"),
    "a short id": changed("images.0.id", "sha256:" + "a" * 12),
    "an id with a line end": changed("images.0.id", DIGEST + "\n"),
    "an id in capitals": changed("images.0.id", DIGEST.upper()),
    "an id that is null": changed("images.0.id", None),
    "a base without digest": changed("images.0.recipe.base.digest", ""),
    "a number as text": changed("images.0.size_bytes", "120000000"),
    "a time without zone": changed("images.0.created_at", "2026-01-02T03:04:05"),
    "a name that is a path": changed("images.0.name", "../stdlib"),
    "a hash of another recipe": changed("images.0.recipe_sha256", "0" * 64),
    "a recipe of another hash": changed("images.0.recipe.steps_sha256", "0" * 64),
    "an offer of nothing": changed("images.0.recipe.offer", {"pins": []}),
    "an offer with more": changed("images.0.recipe.offer", {"pins": [], "index": "https://example.org"}),
    "a module that is a path": changed("images.0.recipe.offer", {**OFFER.model_dump(mode="json"), "preload": ["../x"]}),
    "a program that is a path": changed("images.0.recipe.programs.0.name", "../warden.py"),
    "two images of one name": changed("images", [json.loads(recorded().model_dump_json())] * 2),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG.keys())
def test_a_record_that_is_wrong_is_refused_with_what_to_do(store: ImageStore, content: bytes) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    store.path.chmod(0o600)
    with pytest.raises(SetupError) as caught:
        store.load()
    assert str(store.path) in caught.value.message
    assert "`pybox-kernel setup --yes`" in caught.value.advice
    with pytest.raises(SetupError, match="cannot be used"):
        store.record(recorded())
    assert store.path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_record_that_others_can_write_to_is_refused(store: ImageStore, mode: int) -> None:
    store.record(recorded())
    store.path.chmod(mode)
    with pytest.raises(SetupError, match="other users can write to it"):
        store.load()


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to itself"])
def test_a_record_that_is_no_file_is_refused(store: ImageStore, kind: str) -> None:
    store.path.parent.mkdir()
    if kind == "folder":
        store.path.mkdir()
    elif kind == "pipe":
        os.mkfifo(store.path, 0o600)
    else:
        store.path.symlink_to(store.path)
    with pytest.raises(SetupError, match="cannot be used"):
        store.load()


def offering(name: str = "mine", offer: Offer = OFFER) -> RecordedImage:
    return recorded(current_recipe(REGISTRY, offer), name)


def test_the_lock_of_an_image_with_packages_lies_beside_the_record_until_the_image_is_struck(store: ImageStore) -> None:
    store.record(recorded())
    store.record(offering())
    assert parse_lock(store.lock_file("mine").read_bytes()) == OFFER.lock
    assert store.load()["mine"].recipe.offer == OFFER
    store.strike(offering())
    assert store.load() == {"stdlib": recorded()}
    assert not store.lock_file("mine").exists()


def test_an_image_that_was_made_anew_meanwhile_is_not_struck(store: ImageStore) -> None:
    new = offering().model_copy(update={"id": OTHER_DIGEST})
    store.record(new)
    store.strike(offering())
    assert store.load() == {"mine": new}


def test_more_images_than_a_record_takes_are_refused_and_the_record_stays_sound(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.record(recorded())
    monkeypatch.setattr(image_store, "LARGEST_FILE", store.path.stat().st_size + 100)
    with pytest.raises(SetupError, match="too many images") as caught:
        store.record(offering())
    assert "image rm" in caught.value.advice
    assert store.load() == {"stdlib": recorded()}


def test_a_base_is_in_use_as_long_as_an_image_is_on_it(store: ImageStore) -> None:
    store.record(recorded())
    store.record(offering())
    store.strike(offering())
    assert base_in_use(store, recorded().base_image)
    assert not base_in_use(store, BaseImage(id=DIGEST, reference="other"))


# What a run requires


def test_an_image_that_was_never_made_is_not_looked_for_in_the_engine(store: ImageStore) -> None:
    with pytest.raises(SetupError) as caught:
        require(NOBODY, store)
    assert caught.value.message == "The box image 'stdlib' has not been made yet."
    assert caught.value.advice == "Run `pybox-kernel setup --yes`."


def other_versions() -> dict[str, Recipe]:
    recipe = current_recipe(REGISTRY)
    debian = rootfs.debian_base("amd64")
    return {
        "another in-box program": recipe.model_copy(
            update={"programs": (*recipe.programs[:-1], Program(name="witness.py", sha256="0" * 64))}
        ),
        "one in-box program fewer": recipe.model_copy(update={"programs": recipe.programs[:-1]}),
        "other steps": recipe.model_copy(update={"steps_sha256": "0" * 64}),
        "other packages": current_recipe(debian.model_copy(update={"packages": debian.packages[1:]})),
    }


@pytest.mark.parametrize("recipe", other_versions().values(), ids=other_versions().keys())
def test_an_image_of_another_version_is_not_looked_for_in_the_engine(store: ImageStore, recipe: Recipe) -> None:
    store.record(recorded(recipe))
    with pytest.raises(SetupError, match="was made by another version of PyBox") as caught:
        require(NOBODY, store)
    assert caught.value.advice == "Run `pybox-kernel setup --yes`."


def test_an_own_image_is_made_again_from_what_was_recorded_and_data_from_what_this_version_has() -> None:
    assert expected_recipe(offering()) == offering().recipe
    data = built_in_offer("data")
    assert data is not None
    older = Offer(pins=data.pins[1:], preload=data.preload)
    assert expected_recipe(offering("data", older)) == current_recipe(REGISTRY, data)


def test_a_data_image_with_other_packages_than_this_versions_is_refused(store: ImageStore) -> None:
    store.record(offering("data"))
    with pytest.raises(SetupError, match="'data' was made by another version of PyBox") as caught:
        require(NOBODY, store, "data")
    assert caught.value.advice == "Run `pybox-kernel setup --yes --with data`."


@pytest.mark.parametrize(
    ("name", "again", "command"),
    [
        ("stdlib", False, "setup --yes"),
        ("data", False, "setup --yes --with data"),
        ("class", False, "image build class --yes"),
        ("mine", False, "image build mine --from requirements.txt --yes"),
        ("mine", True, "image build mine --yes"),
    ],
)
def test_who_lacks_an_image_is_told_the_command_that_makes_it(name: str, again: bool, command: str) -> None:
    assert f"`pybox-kernel {command}`" in how_to_make(name, again=again)


# What a user may name as base


@pytest.mark.parametrize(
    "name",
    ["", "python:3.13-slim", "python@sha256:" + "a" * 63, "Debian", "--help", "python@md5:" + "a" * 64,
     "a b@" + DIGEST, "python@" + DIGEST + "\n"],
)  # fmt: skip
def test_a_base_without_a_whole_digest_is_refused(store: ImageStore, name: str) -> None:
    with pytest.raises(OptionError, match="has no digest") as caught:
        images.plan(NOBODY, store, base=name)
    assert "NAME@sha256:DIGEST" in caught.value.advice


# What is left out of a root file system


def packed(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def member(name: str, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname, info.mtime, info.uname = mode, kind, link, 1_999_999_999, "somebody"
    return info


@pytest.fixture
def slimmed(tmp_path: Path) -> dict[str, tarfile.TarInfo]:
    base = rootfs.debian_base("amd64")
    source = packed(
        tmp_path / "in.tar",
        [
            (member("./", 0o755, tarfile.DIRTYPE), b""),
            (member("./bin", 0o777, tarfile.SYMTYPE, "usr/bin"), b""),
            (member("./dev/", 0o755, tarfile.DIRTYPE), b""),
            (member("./dev/null", 0o666, tarfile.CHRTYPE), b""),
            (member("./etc/hostname"), b"this-machine"),
            (member("./etc/resolv.conf"), b"nameserver"),
            (member("./etc/apt/sources.list"), b"deb"),
            (member("./tmp/", 0o1777, tarfile.DIRTYPE), b""),
            (member("./usr/bin/python3.11", 0o755), b"program"),
            (member("./usr/bin/python3.11-again", 0o755, tarfile.LNKTYPE, "./usr/bin/python3.11"), b""),
            (member("./usr/bin/su", 0o4755), b"setuid"),
            (member("./usr/bin/dpkg", 0o755), b"dpkg"),
            (member("./usr/lib/x86_64-linux-gnu/gconv/UTF-7.so"), b"gconv"),
            (member("./usr/lib/x86_64-linux-gnu/libc.so.6", 0o755), b"libc"),
            (member("./usr/share/base-passwd/passwd.master"), b"root:*:0:0::/root:/bin/sh\n"),
            (member("./usr/share/base-passwd/group.master"), b"root:*:0:\n"),
            (member("./usr/share/libc-bin/nsswitch.conf"), b"passwd: files\n"),
            (member("./usr/share/doc/bash/copyright"), b"text"),
            (member("./usr/share/locale/de/bash.mo"), b"text"),
            (member("./var/lib/dpkg/status"), b"Package: bash\n"),
            (member("./var/lib/dpkg/status-old"), b""),
            (member("./var/lib/dpkg/info/format"), b"1\n"),
            (member("./var/local/", 0o2775, tarfile.DIRTYPE), b""),
        ],
    )
    rootfs.slim(source, tmp_path / "out.tar", base)
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.extractfile("usr/bin/python3.11-again").read() == b"program"  # type: ignore[union-attr]
        assert tar.extractfile("etc/passwd").read() == b"root:*:0:0::/root:/bin/sh\n"  # type: ignore[union-attr]
        return {info.name: info for info in tar}


def test_what_a_box_does_not_need_is_left_out(slimmed: dict[str, tarfile.TarInfo]) -> None:
    kept = """
        . bin dev tmp etc/passwd etc/group etc/nsswitch.conf usr/bin/awk usr/bin/python usr/bin/which
        usr/bin/su usr/bin/python3.11 usr/bin/python3.11-again usr/lib/x86_64-linux-gnu/libc.so.6 var/lib/dpkg/status
        usr/share/base-passwd/passwd.master usr/share/base-passwd/group.master var/local
        usr/share/libc-bin/nsswitch.conf
    """
    assert sorted(slimmed) == sorted(kept.split())


def test_nothing_is_set_user_id_and_every_time_is_the_same(slimmed: dict[str, tarfile.TarInfo]) -> None:
    assert not [info.name for info in slimmed.values() if info.mode & 0o6000]
    assert slimmed["tmp"].mode == 0o1777
    assert slimmed["usr/bin/su"].mode == 0o755
    assert {info.mtime for info in slimmed.values()} == {rootfs.debian_base("amd64").epoch}
    assert {info.uname for info in slimmed.values()} == {""}
