"""What the Linux kernel shows of a sealed box: captured from a real one (6.18, cgroup v1), and for cgroup v2 written as
Documentation/admin-guide/cgroup-v2.rst and Docker's two cgroup drivers have it.
"""

# ruff: noqa: E501 - the kernel's lines are as long as they are

from __future__ import annotations

ID = "3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f"
UID = 46125

STATUS = f"""\
Name:\tpybox-python
Umask:\t0022
State:\tS (sleeping)
Tgid:\t23685
Ngid:\t0
Pid:\t23685
PPid:\t23664
TracerPid:\t0
Uid:\t{UID}\t{UID}\t{UID}\t{UID}
Gid:\t{UID}\t{UID}\t{UID}\t{UID}
FDSize:\t64
Groups:\t{UID}\x20
NStgid:\t23685\t1
NSpid:\t23685\t1
NSpgid:\t23685\t1
NSsid:\t23685\t1
Threads:\t1
SigQ:\t0/96365
SigPnd:\t0000000000000000
ShdPnd:\t0000000000000000
SigBlk:\tfffffffe7ffbfeff
SigIgn:\t0000000001001000
SigCgt:\t0000000000000002
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
Seccomp_filters:\t1
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units    \x20
Max cpu time              unlimited            unlimited            seconds  \x20
Max file size             unlimited            unlimited            bytes    \x20
Max data size             unlimited            unlimited            bytes    \x20
Max stack size            8388608              unlimited            bytes    \x20
Max core file size        1                    1                    bytes    \x20
Max resident set          unlimited            unlimited            bytes    \x20
Max processes             96365                96365                processes\x20
Max open files            128                  128                  files    \x20
Max locked memory         65536                65536                bytes    \x20
Max address space         unlimited            unlimited            bytes    \x20
Max file locks            unlimited            unlimited            locks    \x20
Max pending signals       96365                96365                signals  \x20
Max msgqueue size         0                    0                    bytes    \x20
Max nice priority         0                    0                   \x20
Max realtime priority     0                    0                   \x20
Max realtime timeout      unlimited            unlimited            us       \x20
"""
MOUNTINFO = f"""\
75 50 0:39 / / ro,relatime master:2 - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/u,workdir=/w
76 75 0:42 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
77 75 0:43 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
79 77 0:44 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620,ptmxmode=666
80 75 0:45 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
81 80 0:46 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
82 81 0:29 /docker/{ID} /sys/fs/cgroup/cpu ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpu
83 81 0:30 /docker/{ID} /sys/fs/cgroup/cpuacct ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpuacct
84 81 0:31 /docker/{ID} /sys/fs/cgroup/cpuset ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpuset
85 81 0:32 /docker/{ID} /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,memory
86 81 0:33 /docker/{ID} /sys/fs/cgroup/devices ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,devices
87 81 0:34 /docker/{ID} /sys/fs/cgroup/freezer ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,freezer
88 81 0:35 /docker/{ID} /sys/fs/cgroup/blkio ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,blkio
89 81 0:36 /docker/{ID} /sys/fs/cgroup/pids ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,pids
90 81 0:37 /docker/{ID} /sys/fs/cgroup/systemd ro,nosuid,nodev,noexec,relatime - cgroup systemd rw,name=systemd
91 77 0:41 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
92 75 0:47 / /box rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=8192k,nr_inodes=1024,mode=700,uid={UID},gid={UID}
93 75 0:48 / /tmp rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=8192k,nr_inodes=1024,mode=700,uid={UID},gid={UID}
94 75 254:0 /var/lib/docker/containers/{ID}/resolv.conf /etc/resolv.conf ro,relatime - ext4 /dev/vda rw
95 75 254:0 /var/lib/docker/containers/{ID}/hostname /etc/hostname ro,relatime - ext4 /dev/vda rw
96 75 254:0 /var/lib/docker/containers/{ID}/hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
97 77 0:49 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=1024k,nr_inodes=1024,mode=700,uid={UID},gid={UID}
51 76 0:42 /bus /proc/bus ro,nosuid,nodev,noexec,relatime - proc proc rw
52 76 0:42 /fs /proc/fs ro,nosuid,nodev,noexec,relatime - proc proc rw
53 76 0:42 /irq /proc/irq ro,nosuid,nodev,noexec,relatime - proc proc rw
54 76 0:42 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
55 76 0:50 / /proc/acpi ro,relatime - tmpfs tmpfs ro
56 76 0:43 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
57 76 0:43 /null /proc/timer_list rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
58 80 0:51 / /sys/firmware ro,relatime - tmpfs tmpfs ro
"""
CGROUP = f"""\
9:name=systemd:/docker/{ID}
8:pids:/docker/{ID}
7:blkio:/docker/{ID}
6:freezer:/docker/{ID}
5:devices:/docker/{ID}
4:memory:/docker/{ID}
3:cpuset:/docker/{ID}
2:cpuacct:/docker/{ID}
1:cpu:/docker/{ID}
0::/docker/{ID}
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
"""
NET_ROUTE = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                      \x20
"""
IPV6_ROUTE = """\
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
"""
FIB_TRIE = """\
Main:
  +-- 127.0.0.0/8 2 0 2
     +-- 127.0.0.0/31 1 0 0
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 127.255.255.255
        /32 link BROADCAST
Local:
  +-- 127.0.0.0/8 2 0 2
     +-- 127.0.0.0/31 1 0 0
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 127.255.255.255
        /32 link BROADCAST
"""

V1 = {
    "status": STATUS,
    "limits": LIMITS,
    "mountinfo": MOUNTINFO,
    "cgroup": CGROUP,
    "net/dev": NET_DEV,
    "net/route": NET_ROUTE,
    "net/if_inet6": "",
    "net/ipv6_route": IPV6_ROUTE,
    "net/fib_trie": FIB_TRIE,
    "cgroup:memory/memory.limit_in_bytes": "134217728\n",
    "cgroup:memory/memory.memsw.limit_in_bytes": "134217728\n",
    "cgroup:pids/pids.max": "32\n",
    "cgroup:cpu/cpu.cfs_quota_us": "50000\n",
    "cgroup:cpu/cpu.cfs_period_us": "100000\n",
    "cgroup:memory/memory.max_usage_in_bytes": "11767808\n",
    "cgroup:memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "cgroup:pids/pids.peak": "5\n",
    "cgroup:pids/pids.events": "max 0\n",
    "cgroup:cpuacct/cpuacct.usage": "55906142\n",
    "cgroup:cpu/cpu.stat": "nr_periods 2\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\nburst_time 0\n",
}

V2_CGROUP = f"0::/docker/{ID}\n"
V2_SYSTEMD_CGROUP = f"0::/system.slice/docker-{ID}.scope\n"
V2_CGROUP_MOUNT = "81 80 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"
V2 = {
    **{name: text for name, text in V1.items() if not name.startswith("cgroup")},
    "mountinfo": "".join(line for line in MOUNTINFO.splitlines(keepends=True) if " /sys/fs/cgroup" not in line)
    + V2_CGROUP_MOUNT,
    "cgroup": V2_CGROUP,
    "cgroup:memory.max": "134217728\n",
    "cgroup:memory.swap.max": "0\n",
    "cgroup:pids.max": "32\n",
    "cgroup:cpu.max": "50000 100000\n",
    "cgroup:memory.peak": "11767808\n",
    "cgroup:memory.events": "low 0\nhigh 0\nmax 4\noom 1\noom_kill 1\noom_group_kill 0\n",
    "cgroup:pids.peak": "5\n",
    "cgroup:pids.events": "max 2\n",
    "cgroup:cpu.stat": "usage_usec 55906\nuser_usec 40000\nsystem_usec 15906\nnr_periods 2\nnr_throttled 1\nthrottled_usec 900\n",
}
