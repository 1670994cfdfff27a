"""The profile as a value: names that exist, rules that cannot be walked round, calls that must be missing."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybox_kernel.inside import examine
from pybox_kernel.seal import seccomp

TABLE = [line.split("\t") for line in (Path(__file__).parent.parent / "syscalls.tsv").read_text().splitlines()[3:]]
NUMBERS = {
    "amd64": {name: int(number) for name, number, _ in TABLE if number != "-"},
    "arm64": {name: int(number) for name, _, number in TABLE if number != "-"},
}
REFUSED = """
    ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise process_mrelease kcmp userfaultfd
    keyctl add_key request_key bpf perf_event_open io_uring_setup io_uring_enter io_uring_register seccomp
    unshare setns mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount
    mount_setattr listmount statmount open_by_handle_at name_to_handle_at fanotify_init fanotify_mark
    sched_setscheduler sched_setparam sched_setattr ioprio_set setrlimit personality
    shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl semget semop semtimedop semctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    syslog acct quotactl quotactl_fd swapon swapoff kexec_load kexec_file_load reboot
    init_module finit_module delete_module iopl ioperm modify_ldt vhangup nfsservctl lookup_dcookie
    setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset
    sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime
    splice tee vmsplice sync syncfs mincore cachestat memfd_secret
"""

HIGH_BITS = st.integers(0, 2**32 - 1).map(lambda high: high << 32)
INTS = st.integers(0, 2**32 - 1)


def verdict(call: str, *arguments: int, architecture: str = "amd64") -> int:
    """The errno that the profile gives a call, 0 if it is let through: what libseccomp makes of it."""
    profile = seccomp.profile()
    registers = [*arguments, 0, 0, 0, 0, 0, 0]
    for rule in profile["syscalls"]:
        here = architecture in rule.get("includes", {}).get("arches", [architecture])
        holds = all(registers[c["index"]] & c["value"] == c["valueTwo"] for c in rule.get("args", []))
        if here and holds and call in rule["names"]:
            return 0 if rule["action"] == "SCMP_ACT_ALLOW" else int(rule["errnoRet"])
    return int(profile["defaultErrnoRet"])


def names(architecture: str) -> list[str]:
    rules = seccomp.profile()["syscalls"]
    here = [rule for rule in rules if architecture in rule.get("includes", {}).get("arches", [architecture])]
    return [name for rule in here for name in rule["names"]]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_every_name_is_a_system_call_of_the_architecture_it_is_listed_for(architecture: str) -> None:
    assert set(names(architecture)) - set(NUMBERS[architecture]) == set()


def test_the_legacy_names_are_unknown_to_arm64() -> None:
    assert set(seccomp.LEGACY_CALLS.split()) & set(NUMBERS["arm64"]) == set()


@pytest.mark.parametrize("call", REFUSED.split())
def test_the_call_exists_and_is_not_listed(call: str) -> None:
    assert call in NUMBERS["amd64"]
    assert call not in names("amd64")
    assert call not in names("arm64")


def test_what_is_not_listed_gets_eperm() -> None:
    assert seccomp.profile()["defaultAction"] == "SCMP_ACT_ERRNO"
    assert seccomp.profile()["defaultErrnoRet"] == 1


def test_only_the_native_architecture_is_let_in() -> None:
    assert seccomp.profile()["archMap"] == [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
    ]


def test_no_call_has_a_rule_without_conditions_beside_one_with() -> None:
    rules = seccomp.profile()["syscalls"]
    free = [name for rule in rules if "args" not in rule for name in rule["names"]]
    bound = {name for rule in rules if "args" in rule for name in rule["names"]}
    assert len(free) == len(set(free))
    assert bound & set(free) == set()


def test_every_rule_allows_except_the_one_for_clone3() -> None:
    others = [rule for rule in seccomp.profile()["syscalls"] if rule["action"] != "SCMP_ACT_ALLOW"]
    assert others == [{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]


def test_every_comparison_is_under_a_mask_and_can_hold() -> None:
    for rule in seccomp.profile()["syscalls"]:
        indexes = [condition["index"] for condition in rule.get("args", [])]
        assert len(indexes) == len(set(indexes)), "engines read two conditions on one argument as 'either'"
        for condition in rule.get("args", []):
            assert condition["op"] == "SCMP_CMP_MASKED_EQ"
            assert condition["valueTwo"] & ~condition["value"] == 0


@given(family=INTS, high=HIGH_BITS, kind=st.integers(0, 15), protocol=st.integers(0, 300))
def test_sockets_are_unix_tcp_and_udp_whatever_the_high_bits(family: int, high: int, kind: int, protocol: int) -> None:
    internet = family in (2, 10) and (kind, protocol) in ((1, 0), (1, 6), (2, 0), (2, 17))
    assert (verdict("socket", high | family, high | kind, high | protocol) == 0) == (family == 1 or internet)
    assert (verdict("socketpair", high | family, high | kind, high | protocol) == 0) == (family == 1)


@pytest.mark.parametrize("family", [1, 2, 10])
@pytest.mark.parametrize(("kind", "protocol"), [(1, 0), (1, 6), (2, 0), (2, 17), (0x80801, 0)])
def test_the_sockets_that_programs_use_are_allowed(family: int, kind: int, protocol: int) -> None:
    assert verdict("socket", family, kind, protocol) == 0


@given(pid=INTS, high=HIGH_BITS, limit=INTS, new=st.integers(0, 2**64 - 1))
def test_limits_are_set_on_oneself_only_and_never_the_core_limit(pid: int, high: int, limit: int, new: int) -> None:
    allowed = pid == 0 and (new == 0 or (limit < 16 and limit != 4))
    assert (verdict("prlimit64", high | pid, high | limit, new) == 0) == allowed


@pytest.mark.parametrize("limit", range(16))
def test_every_limit_can_be_read_and_all_but_core_set(limit: int) -> None:
    assert verdict("prlimit64", 0, limit, 0) == 0
    assert verdict("prlimit64", 0, limit, 4096) == (1 if limit == 4 else 0)


@given(which=st.integers(0, 2), who=INTS, high=HIGH_BITS)
def test_priority_and_processors_are_chosen_for_oneself_only(which: int, who: int, high: int) -> None:
    assert (verdict("setpriority", high | which, high | who) == 0) == (which == 0 and who == 0)
    assert (verdict("sched_setaffinity", high | who) == 0) == (who == 0)


@given(flags=st.integers(0, 2**64 - 1))
def test_clone_makes_no_namespace(flags: int) -> None:
    new = 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000
    assert (verdict("clone", flags) == 0) == (flags & new == 0)


@pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
def test_clone_is_refused_for_each_kind_of_namespace(bit: int) -> None:
    assert verdict("clone", 1 << bit | 17) == 1
    assert verdict("clone", 0x3D0F00) == 0, "what pthread_create asks for"


def test_the_ten_probes_are_forbidden_calls_with_the_errno_they_say() -> None:
    assert len(seccomp.PROBES) == len({name for name, _, _, _ in seccomp.PROBES}) == 10
    for name, (x86_64, aarch64), arguments, wanted in seccomp.PROBES:
        call = name.split("(")[0]
        assert (x86_64, aarch64) == (NUMBERS["amd64"][call], NUMBERS["arm64"][call])
        assert verdict(call, *arguments) == verdict(call, *arguments, architecture="arm64") == wanted


def test_no_probe_is_newer_than_clone3() -> None:
    # runc gives ENOSYS, not EPERM, to calls above the newest in the profile that its libseccomp knows.
    assert max(max(numbers) for _, numbers, _, _ in seccomp.PROBES) <= NUMBERS["amd64"]["clone3"]


def test_the_warden_tries_the_same_ten() -> None:
    assert examine.PROBES == seccomp.PROBES


def test_the_text_given_to_engines_is_the_profile_and_the_hash_is_of_that_text() -> None:
    assert json.loads(seccomp.PROFILE_JSON) == seccomp.profile()
    assert hashlib.sha256(seccomp.PROFILE_JSON.encode("ascii")).hexdigest() == seccomp.PROFILE_SHA256
    assert json.dumps(seccomp.profile(), sort_keys=True, separators=(",", ":")) == seccomp.PROFILE_JSON


def test_a_profile_that_was_changed_by_its_reader_changes_no_other() -> None:
    seccomp.profile()["syscalls"][0]["names"].append("ptrace")
    assert "ptrace" not in names("amd64")
