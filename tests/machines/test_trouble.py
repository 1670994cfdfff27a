"""What goes wrong with the private machine: told as it is, with nothing left over, and the next start is clean."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pybox_kernel.boxes.journal import Journal
from pybox_kernel.docker_engine.engine import DockerEngine
from pybox_kernel.engine_choice import Wish, choose
from pybox_kernel.errors import EngineTimeout, SetupError, VMMissing
from pybox_kernel.file_lock import file_lock
from pybox_kernel.machine_commands import show
from pybox_kernel.machines import control, hardware, monitor, packages, qemu
from pybox_kernel.machines.machine import MachineFacts
from pybox_kernel.machines.qemu import QemuMachine
from pybox_kernel.running.transcript import Display
from pybox_kernel.safe_display.text import SafeText
from pybox_kernel.sessions import machine as session_machine
from pybox_kernel.sessions.session import RunResult, Session

pytestmark = pytest.mark.engine


class Begun:
    """Tells when a program runs."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def started(self, deadline_seconds: float) -> None:
        self.event.set()

    def output(self, stream: str, text: SafeText) -> None:
        return None

    def display(self, display: Display) -> None:
        return None


def while_it_runs(machine: QemuMachine, home: Path, act: Callable[[], None], seconds: int = 20) -> RunResult:
    """Acts while a program runs in the machine; how its run ended."""
    begun, results = Begun(), []
    with Session(Journal(home), wish=Wish("vm")) as session:
        source = f"import time\ntime.sleep({seconds})"
        target = lambda: results.append(session.run(source, deadline_seconds=25, watcher=begun))  # noqa: E731
        thread = threading.Thread(target=target)
        thread.start()
        assert begun.event.wait(120)
        act()
        thread.join(120)
        assert not thread.is_alive()
    return results[0]


def test_a_machine_killed_during_a_run_is_told_as_it_is_and_starts_anew(machine: QemuMachine, home: Path) -> None:
    result = while_it_runs(machine, home, lambda: monitor.kill(machine.run / "qmp.sock"))
    receipt = result.receipt
    assert not receipt.ok
    assert receipt.observed.end.how not in ("exited", "deadline")
    assert receipt.observed.box.removed is not True
    assert receipt.unknown
    assert machine.status().state == "stopped"
    facts = session_machine.start_machine(print)
    assert facts.state == "running"
    with Session(Journal(home), wish=Wish("vm")) as session:
        assert session.run("print(1)").receipt.ok


def test_of_a_box_that_was_lost_the_runs_own_cgroup_has_the_final_counts(machine: QemuMachine, home: Path) -> None:
    """The engine kills all of it, its own part included, so that nobody was there to have the counters read."""

    def kill() -> None:
        engine = DockerEngine(machine.endpoint)
        for box in engine.containers(labels=["org.pybox.uid"]):
            engine.kill(box.id)
        engine.close()

    receipt = while_it_runs(machine, home, kill).receipt
    assert receipt.observed.end.how == "box_lost"
    assert receipt.observed.box.removed is True
    assert receipt.observed.meters.final
    assert receipt.observed.meters.memory_peak_bytes
    assert receipt.observed.meters.cpu_seconds is not None
    assert "cpu_throttled_periods" in {item.what for item in receipt.unknown}


def test_a_lost_connection_is_told_and_mended_without_a_new_start(
    machine: QemuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = machine.status()
    control.disconnect(machine.run)
    assert machine.status().state == "unreachable"
    assert "connection" in machine.status().remark
    with monkeypatch.context() as changed:
        changed.setattr(packages, "there", lambda program: program != "ssh")
        with pytest.raises(SetupError, match="openssh-client"):
            machine.start(print)
    assert machine.alive()
    assert machine.start(print).boot_id == before.boot_id
    engine = DockerEngine(machine.endpoint)
    engine.facts()
    engine.close()


def test_a_halted_machine_is_ended_all_the_same(machine: QemuMachine) -> None:
    pid = monitor.owner(machine.run / "qmp.sock")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert machine.clock() is None
    assert machine.stop()
    assert not machine.alive()
    assert not machine.run.exists()
    assert not machine.stop()


def test_sockets_that_a_dead_machine_left_are_no_obstacle(made: QemuMachine) -> None:
    made.stop()
    made.run.mkdir(mode=0o700)
    for name in ("docker.sock", "ssh.sock", "qmp.sock", "ctl"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(made.run / name))
    (made.run / "state.json").write_text("{}")
    assert made.status().state == "stopped"
    assert made.start(print).state == "running"


def test_a_machine_that_was_halted_for_a_while_is_usable_and_tells_its_clock(machine: QemuMachine, home: Path) -> None:
    pid = monitor.owner(machine.run / "qmp.sock")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    os.kill(pid, signal.SIGCONT)
    clock = machine.clock()
    assert clock is not None
    assert clock.within_seconds < 2.5
    with Session(Journal(home), wish=Wish("vm")) as session:
        assert session.run("print(1)").receipt.ok


def test_an_engine_that_starts_anew_in_the_machine_ends_the_run_and_takes_the_next(
    machine: QemuMachine, home: Path
) -> None:
    def restart() -> None:
        command = ["ssh", "-F", "none", "-S", "ctl", "pybox", "kill -KILL $(pidof dockerd)"]
        subprocess.run(command, cwd=machine.run, env=control.environment(machine.run), check=True, capture_output=True)

    result = while_it_runs(machine, home, restart)
    assert not result.receipt.ok
    assert session_machine.start_machine(print).state == "running"
    with Session(Journal(home), wish=Wish("vm")) as session:
        assert session.run("print(1)").receipt.ok


def test_a_full_disk_in_the_machine_is_told_with_what_to_do_and_the_next_start_has_room(
    machine: QemuMachine, home: Path
) -> None:
    fill = "cd /var/lib/docker; fallocate -l $(( $(stat -f -c '%a * %S' .) )) full; cat /dev/zero > rest; df . >&2"
    command = ["ssh", "-F", "none", "-S", "ctl", "pybox", fill]
    told = subprocess.run(command, cwd=machine.run, env=control.environment(machine.run), capture_output=True)
    with Session(Journal(home), wish=Wish("vm")) as session:
        receipt = session.run("print(1)").receipt
    problem = receipt.problem
    assert problem is not None, told.stderr
    assert (problem.code, receipt.observed.end.how) == ("engine_refused", "not_started")
    assert "no space left on device" in problem.message
    assert "`pybox-kernel vm stop`, then `pybox-kernel vm start`" in problem.advice
    engine = DockerEngine(machine.endpoint)
    assert engine.containers(labels=["org.pybox.uid"]) == []
    engine.close()
    assert machine.stop()
    session_machine.start_machine(print)
    with Session(Journal(home), wish=Wish("vm")) as session:
        assert session.run("print(1)").receipt.ok


def test_a_machine_that_was_never_made_is_told_with_the_next_step(tmp_path: Path) -> None:
    machine = QemuMachine(tmp_path / "vm")
    assert machine.status().state == "not made"
    with pytest.raises(SetupError, match="pybox-kernel vm build"):
        machine.start(print)
    assert not machine.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_is_being_made_is_not_one_to_be_made(tmp_path: Path) -> None:
    machine = QemuMachine(tmp_path / "vm")
    with file_lock(tmp_path / "vm.lock"):
        assert machine.status().remark == "it is being made"
    assert "pybox-kernel vm build" in machine.status().remark


def test_one_whose_start_was_broken_off_is_not_passed_over_for_a_weaker_engine(tmp_path: Path) -> None:
    machine = QemuMachine(tmp_path / "vm")
    machine.folder.mkdir(mode=0o700)
    (machine.folder / "disk.json").write_text("{}")
    with file_lock(machine.folder / "lock"):  # as its QEMU holds it
        with file_lock(tmp_path / "vm.lock"):
            assert (machine.status().state, machine.status().remark) == ("stopped", "it is starting, or being ended")
        assert (machine.status().state, machine.status().remark) == ("unreachable", "its start was broken off")
        with pytest.raises(VMMissing, match="broken off"):
            choose(Wish(), lambda: machine, {})
    assert machine.status().state == "stopped"


def test_who_waits_for_another_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "SOON_SECONDS", 0.01)
    machine = QemuMachine(tmp_path / "vm")
    machine.folder.mkdir(mode=0o700)
    said: queue.Queue[str] = queue.Queue()
    waiting = threading.Thread(target=lambda: machine.stop(said.put))
    with file_lock(tmp_path / "vm.lock"):
        waiting.start()
        assert said.get(timeout=60).startswith("Waiting: another command")
    waiting.join(60)
    assert not waiting.is_alive()
    assert said.empty()


def test_what_kvm_did_is_tried_again_in_another_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boot, tries = tmp_path / "boot_id", []
    boot.write_text("first")
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(hardware, "BOOT_ID", boot)
    monkeypatch.setattr(hardware, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(hardware, "tried", lambda folder: tries.append(folder) or "it did not boot within 10 s")
    assert hardware.choose(tmp_path).accelerator == "tcg"
    assert "did not boot" in hardware.choose(tmp_path).remark
    assert len(tries) == 1
    boot.write_text("second")
    hardware.choose(tmp_path)
    assert len(tries) == 2


def test_what_does_not_run_is_told_with_how_to_start_it(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = MachineFacts("qemu", "vm", "stopped", "unix:///run/docker.sock")
    show(stopped)
    assert capsys.readouterr().out.endswith("pybox-kernel vm start\n")
    show(stopped._replace(remark="it is starting, or being ended"))
    assert "vm start" not in capsys.readouterr().out


def test_of_one_that_runs_no_more_is_shown_than_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    running = MachineFacts("qemu", "vm", "running", "unix:///run/docker.sock", "tcg", kernel="6.12")
    show(running)
    shown = capsys.readouterr().out
    assert "It has" not in shown
    assert shown.endswith("The machine's clock could not be read.\n")
    show(running._replace(memory_mib=1536, processors=1, network_devices=0))
    assert "It has 1,536 MB of memory, 1 processor, no network device.\n" in capsys.readouterr().out


def test_a_socket_path_that_is_too_long_is_refused_before_anything_starts(tmp_path: Path) -> None:
    machine = QemuMachine(tmp_path / ("x" * 90) / "vm")
    machine.folder.mkdir(parents=True)
    (machine.folder / "disk.json").write_text("{}")
    with pytest.raises(SetupError, match="path"):
        machine.start(print)
    assert not machine.run.exists()


def test_what_is_missing_is_told_by_the_names_of_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "there", lambda program: program != "socat")
    machine = QemuMachine(tmp_path / "vm")
    machine.folder.mkdir()
    (machine.folder / "disk.json").write_text("{}")
    with pytest.raises(SetupError, match="apt-get install --no-install-recommends socat"):
        machine.start(print)


def test_a_program_that_is_not_there_is_a_connection_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(control.Lost, match="ssh"):
        control.connect(tmp_path, 1, lambda: True)
    with pytest.raises(control.Lost):
        control.look_inside(tmp_path, 1)


@pytest.mark.parametrize(
    ("said", "answers"),
    [(b"HTTP/1.1 200 OK\r\n", True), (b"HTTP/1.1 500 no\r\n", False), (b"x", False), (b"", False)],
)
def test_an_engine_that_says_something_else_or_never_comes_to_its_end_is_none(
    said: bytes, answers: bool, tmp_path: Path
) -> None:
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError), listener.accept()[0] as near:
            near.recv(4096)
            near.sendall(said)
            while said == b"x" and not over.wait(0.05):
                near.sendall(said)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "docker.sock"))
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        began = time.monotonic()
        assert control.engine_answers(tmp_path / "docker.sock", 0.5) is answers
        assert time.monotonic() - began < 5
        over.set()
        server.join()
    assert not control.engine_answers(tmp_path / "none.sock", 0.5)


def test_a_kernel_that_does_not_boot_is_an_error_and_nothing_of_it_is_left(made: QemuMachine, tmp_path: Path) -> None:
    machine = QemuMachine(tmp_path / "vm")
    machine.folder.mkdir()
    for name in ("disk.json", "disk.img", "kernel", "initrd", "key"):
        (machine.folder / name).write_bytes((made.folder / "disk.json").read_bytes())
    with pytest.raises(EngineTimeout, match="could not be started"):
        machine.start(print)
    assert not machine.alive()
    assert not machine.run.exists()


def test_where_this_computers_memory_does_not_do_it_is_told_in_qemus_words(tmp_path: Path) -> None:
    if missing := packages.missing_to_run():
        pytest.skip(f"the private machine needs packages that this computer lacks: {', '.join(missing)}")
    folder = tmp_path / "vm"
    folder.mkdir(mode=0o700)
    for name in ("disk.json", "disk.img", "kernel", "initrd", "key"):
        (folder / name).write_bytes(b"none" * 1024)
    program = "import pathlib, sys\nfrom pybox_kernel.machines.qemu import QemuMachine\n"
    program += "QemuMachine(pathlib.Path(sys.argv[1])).start(print)"
    line = ["prlimit", "--as=1200000000", sys.executable, "-c", program, str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert "could not be started" in done.stderr
    assert "Cannot allocate memory" in done.stderr
    assert not QemuMachine(folder).alive()
    assert not (folder / "run").exists()
