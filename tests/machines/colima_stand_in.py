#!/usr/bin/env python3
"""Stands in for ``colima`` and ``limactl``: does what they do to files, in their formats, and starts nothing.

The formats are those of Colima 0.10 (``config/config.go``, ``environment/vm/lima/limaconfig/config.go``): every field
that is written there is written here. Beside it, ``behaviour.json`` says what it does otherwise than it was asked.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).parent
HOME = Path(os.environ["HOME"])
COLIMA = """\
cpu: {cpu}
disk: {disk}
memory: {memory}
arch: aarch64
runtime: {runtime}
modelRunner: docker
hostname: ""
kubernetes:
  enabled: false
  version: v1.35.0+k3s1
  k3sArgs:
    - --disable=traefik
  port: 0
autoActivate: {activate}
network:
  address: {network_address}
  mode: shared
  interface: en0
  preferredRoute: false
  dns: null
  dnsHosts: {{}}
  hostAddresses: false
  gatewayAddress: 192.168.5.2
forwardAgent: {ssh_agent}
docker: {{}}
vmType: {vm_type}
portForwarder: {port_forwarder}
rosetta: false
binfmt: true
nestedVirtualization: false
mountType: virtiofs
mountInotify: false
cpuType: ""
provision: null
sshConfig: {ssh_config}
sshPort: 0
mounts: {mounts}
diskImage: ""
rootDisk: 20
env: {{}}
"""
LIMA = """\
vmType: {vm_type}
arch: aarch64
images:
    - location: /images/core.raw
      arch: aarch64
cpus: {cpu}
memory: {memory}GiB
disk: 20GiB
additionalDisks:
    - name: colima-{profile}
      format: false
{lima_mounts}mountType: virtiofs
ssh:
    localPort: 0
    loadDotSSHPubKeys: false
    forwardAgent: {ssh_agent}
containerd:
    system: false
    user: false
dns: []
firmware:
    legacyBIOS: false
hostResolver:
    enabled: true
    hosts:
        host.docker.internal: host.lima.internal
portForwards:
    - guestSocket: /var/run/docker.sock
      hostSocket: {home}/.colima/{profile}/docker.sock
      proto: tcp
    - guestIP: 0.0.0.0
      guestPortRange: [1, 65535]
      proto: any
      ignore: {ignore}
provision:
    - mode: system
      script: echo provisioning
"""
DEFAULTS = {
    "cpu": "2", "memory": "2", "disk": "100", "runtime": "docker", "activate": "true", "network-address": "false",
    "ssh-agent": "false", "vm-type": "qemu", "port-forwarder": "ssh", "ssh-config": "true", "mount": "",
}  # fmt: skip


def options(arguments: list[str]) -> dict[str, str]:
    found = {}
    while arguments:
        name, equals, value = arguments.pop(0).removeprefix("--").partition("=")
        found[name] = value if equals else arguments.pop(0)
    return found


def start(asked: dict[str, str], behaviour: dict[str, str]) -> None:
    unknown = asked.keys() - DEFAULTS.keys() - {"profile"}
    if unknown:
        sys.exit(f"Error: unknown flag: --{sorted(unknown)[0]}")
    profile = asked["profile"]
    found = {name.replace("-", "_"): value for name, value in {**DEFAULTS, **asked, **behaviour}.items()}
    shared = f"\n  - location: {HOME}\n    writable: true"
    none = found["mount"] == "none"
    found["mounts"] = "null" if none else "[]" if not found["mount"] else shared
    found["lima_mounts"] = "" if none else f"mounts:\n    - location: {HOME}\n      writable: true\n"
    found["ignore"] = "true" if found["port_forwarder"] == "none" else "false"
    found["home"] = str(HOME)
    folder, instance = HOME / ".colima" / profile, HOME / ".colima" / "_lima" / f"colima-{profile}"
    for each in (folder, instance):
        each.mkdir(parents=True, exist_ok=True)
    (folder / "colima.yaml").write_text(COLIMA.format(**found))
    (instance / "colima.yaml").write_text(COLIMA.format(**found))
    (instance / "lima.yaml").write_text(LIMA.format(**found))


def main() -> None:
    called = {"command": Path(sys.argv[0]).name, "arguments": sys.argv[1:], "environment": dict(os.environ)}
    with (HERE / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(called) + "\n")
    behaviour = json.loads((HERE / "behaviour.json").read_text())
    word, arguments = sys.argv[1], sys.argv[2:]
    if behaviour.pop("hangs", "") == word:
        time.sleep(60)
    if behaviour.pop("floods", "") == word:
        while True:
            os.write(1, b"x" * 65536)
    if behaviour.pop("fails", "") == word:
        sys.exit("INFO[0000] starting colima\nFATA[0001] error starting vm: exit status 1")
    boot_id = behaviour.pop("boot_id", "")
    if word == "start":
        start(options(arguments), behaviour)
    elif word == "ssh":
        if "date" in arguments:
            print(f"{time.time() + 3:.9f}")
        else:
            print(f"{boot_id}\n6.8.0-64-generic")


main()
