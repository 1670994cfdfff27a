"""An engine of the tests' own, as another computer has one: it may be killed, and knows nothing of this computer's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import docker

from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import DEFAULT_ADDRESS
from pybox_kernel.errors import EngineError

START_SECONDS = 20.0


class PrivateEngine:
    """A dockerd with all of its files in a folder of its own, and no network; it starts a containerd of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/engine.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # In a network namespace of its own: with --bridge=none an engine removes the docker0 that it finds, and this
        # computer's engine would be without.
        command = ["unshare", "--net", "dockerd", f"--host={self.address}", f"--pidfile={self.folder}/pid"]
        command += [f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec"]
        settings = self.folder / "daemon.json"
        settings.touch()
        if not settings.stat().st_size:
            settings.write_text("{}")
        command += [
            f"--config-file={settings}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-masq=false",
            "--ip-forward=false",
        ]
        (self.folder / "pid").unlink(missing_ok=True)
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PATH": path})
        limit = time.monotonic() + START_SECONDS
        while not self.answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < limit, "the engine did not start"
            time.sleep(0.05)

    def answers(self) -> bool:
        engine = DockerEngine(self.address)
        try:
            return bool(engine.facts().version)
        except EngineError:
            return False
        finally:
            engine.close()

    def load(self, image_id: str) -> None:
        """Copies an image of this computer's engine into it."""
        here, there = (docker.APIClient(base_url=url, version="1.41") for url in (DEFAULT_ADDRESS, self.address))
        with closing(here), closing(there):
            for _ in there.load_image(here.get_image(image_id)):
                pass

    def use_runtime(self, name: str, path: str) -> None:
        """Makes ``name``, which is the program at ``path``, the runtime of containers that ask for none."""
        known = {} if name == "runc" else {name: {"path": path}}
        settings = {"default-runtime": name, "runtimes": known}
        (self.folder / "daemon.json").write_text(json.dumps(settings))
        self.send(signal.SIGHUP)
        limit = time.monotonic() + START_SECONDS
        with closing(docker.APIClient(base_url=self.address, version="1.41")) as there:
            while there.info()["DefaultRuntime"] != name:
                assert time.monotonic() < limit, "the engine did not take its new settings"
                time.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> None:
        assert self.process is not None
        self.process.wait(30)

    def end(self) -> None:
        """In order: an engine that was killed is started again first, to end what it had started."""
        assert self.process is not None
        self.send(signal.SIGCONT)
        if self.process.poll() is not None:
            self.start()
        self.send(signal.SIGTERM)
        self.wait()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", line.split()[1]], check=True)
