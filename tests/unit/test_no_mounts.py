"""No folder and no socket of this computer is ever in a box: what goes in and comes out are copies."""

from __future__ import annotations

import json

import pytest

from pybox_kernel.policy import STDLIB, policy_for
from pybox_kernel.seal.spec import Identity, container_config
from pybox_kernel.seal.witness import witness_config
from tests.cases import case

IDENTITY = Identity(name="pybox-" + "0" * 32, uid=20000, image_id="sha256:" + "0" * 64, labels={})


@case("eng-selinux", "eng-sock-mount", "mac-mounts", "mac-virtiofs")
@pytest.mark.parametrize("policy", [STDLIB, STDLIB.with_files(), policy_for("data").with_files()])
def test_a_box_has_no_mount_of_this_computer(policy: object) -> None:
    config = container_config(policy, IDENTITY)  # type: ignore[arg-type]
    host = config["HostConfig"]
    assert not any(host.get(name) for name in ("Binds", "Mounts", "VolumesFrom", "Devices", "DeviceRequests"))
    assert not config.get("Volumes")
    assert ".sock" not in json.dumps({**config, "HostConfig": {**host, "SecurityOpt": []}})


@case("eng-sock-mount")
def test_the_witness_has_the_kernels_cgroups_alone_and_no_engines_socket() -> None:
    host = witness_config("sha256:" + "0" * 64, {})["HostConfig"]
    assert host["Binds"] == ["/sys/fs/cgroup:/host-cgroup:ro"]
    assert not host.get("Mounts")
