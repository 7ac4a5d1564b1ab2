"""Hardened configuration of every container that runs a model's code, including its seccomp profile.

The profile allows the system calls that Docker's default profile allows to a container without capabilities,
except those that tests do not need and an attack may use: io_uring (bypasses this filter), ptrace and similar
calls, file handles, key rings, user namespaces, sockets of rare families. `fallocate` is only allowed without
modes: with KEEP_SIZE a file occupies disk space that neither its size nor a limit on its size shows. No call
may drop a file of the image from the host's page cache, which all containers share: timing reads would reveal
earlier runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from astra_async.testing.sandbox.keeper import HELD, entry_point
from astra_async.testing.sandbox.resultfiles import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Limits


UNPRIVILEGED = (1000, 1000)
_KEEPERS = (65532, 65531)  # unused by images; within the id range of rootless engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """Properties of an image: numeric user and group, HOME, and the folders that tests may write to.

    `empty` are folders that get a tmpfs. `contents` are folders that get a tmpfs volume, each with the
    image's files there (tar entries by name; names of folders end in a slash). `overlaid` are folders that
    get a bounded layer, each with its own tar entry. `layered` is True if the tests may also write to the
    container's layer.
    """

    uid: int
    gid: int
    home: str
    empty: tuple[str, ...] = ()
    contents: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    overlaid: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    layered: bool = True

    @property
    def user(self) -> str:
        """The tests' user and group as `uid:gid`."""
        return f"{self.uid}:{self.gid}"

    @property
    def keeper(self) -> str:
        """User of the first process, always different from the tests' user."""
        return next(f"{each}:{each}" for each in _KEEPERS if each != self.uid)


def unseen() -> Fitness:
    """Return the fitness of an uninspected image: all writes go to the container's layer."""
    return Fitness(uid=UNPRIVILEGED[0], gid=UNPRIVILEGED[1], home="")


_PERMITTED = """
access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3
faccessat faccessat2 fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl
fcntl64 fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64
fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch
inotify_init inotify_init1 inotify_rm_watch ioctl lchown lchown32 lgetxattr link linkat listxattr listxattrat
llistxattr lremovexattr lseek _llseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat newfstatat open
openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
removexattr removexattrat rename renameat renameat2 rmdir sendfile sendfile64 setxattr setxattrat splice stat
stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs tee truncate
truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev

brk get_mempolicy map_shadow_stack membarrier memfd_create mincore mlock mlock2 mlockall
mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect
remap_file_pages

arch_prctl capget capset execve execveat exit exit_group fork get_robust_list get_thread_area getcpu getegid
getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getpriority
getresgid getresgid32 getresuid getresuid32 getrlimit getrusage getsid gettid getuid getuid32 ioprio_get
ioprio_set landlock_add_rule landlock_create_ruleset landlock_restrict_self pidfd_open pidfd_send_signal prctl
prlimit64 rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_thread_area set_tid_address set_tls
setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setpgid setpriority setregid
setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setuid setuid32
sysinfo ugetrlimit uname vfork wait4 waitid waitpid

epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
eventfd2 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake io_cancel io_destroy io_getevents
io_pgetevents io_pgetevents_time64 io_setup io_submit pause pipe pipe2 poll ppoll ppoll_time64 pselect6
pselect6_time64 select _newselect

kill restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack signalfd signalfd4 sigprocmask sigreturn
tgkill tkill

alarm clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64
getitimer getrandom gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun
timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64
timerfd_settime timerfd_settime64 times

accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64
recvmsg send sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair

ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64
mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt
shmget

arm_sync_file_range breakpoint cacheflush riscv_flush_icache swapcontext
"""
_ENOSYS = 38
_EOPNOTSUPP = 95
_EINVAL = 22
_FADV_DONTNEED = 4
_MADV_COLD, _MADV_PAGEOUT = 20, 21
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW... flag of clone(2)
_SOCKET_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, and netlink, which lists interfaces
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_ARCHITECTURES = {"X86_64": ("X86", "X32"), "AARCH64": ("ARM",), "RISCV64": ()}


@cache
def profile() -> str:
    """Return the seccomp profile as JSON for the engine's `seccomp=` security option."""
    rules = [
        {"names": _PERMITTED.split(), "action": "SCMP_ACT_ALLOW"},
        _when("clone", 0, "MASKED_EQ", _NEW_NAMESPACES),
        *(_when("socket", 0, "EQ", family) for family in _SOCKET_FAMILIES),
        *(_when("personality", 0, "EQ", each) for each in _PERSONALITIES),
        _when("fallocate", 1, "EQ", 0),
        _when("fallocate", 1, "NE", 0, error=_EOPNOTSUPP),
        _when("fadvise64", 3, "NE", _FADV_DONTNEED),
        # The kernel may ignore this advice, so the call returns success and does nothing.
        _when("fadvise64", 3, "EQ", _FADV_DONTNEED, error=0),
        _refused("fadvise64_64", "arm_fadvise64_64", error=0),
        _when("madvise", 2, "LT", _MADV_COLD),
        _when("madvise", 2, "GT", _MADV_PAGEOUT),
        *(_when("madvise", 2, "EQ", each, error=_EINVAL) for each in (_MADV_COLD, _MADV_PAGEOUT)),
        # Refused as if the kernel lacked these calls, so that programs fall back to older ones.
        _refused("clone3", "io_uring_enter", "io_uring_register", "io_uring_setup", error=_ENOSYS),
    ]
    architectures = [
        {
            "architecture": f"SCMP_ARCH_{name}",
            "subArchitectures": [f"SCMP_ARCH_{each}" for each in related],
        }
        for name, related in _ARCHITECTURES.items()
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "archMap": architectures, "syscalls": rules})


def _when(name: str, argument: int, operator: str, value: int, *, error: int | None = None) -> dict[str, Any]:
    """Return a rule that allows a call, or refuses it with `error`, if an argument compares true.

    MASKED_EQ is true if none of the bits in `value` are set.
    """
    compared = {"index": argument, "value": value, "op": f"SCMP_CMP_{operator}"}
    permitted = {"names": [name], "action": "SCMP_ACT_ALLOW"}
    return (permitted if error is None else _refused(name, error=error)) | {"args": [compared]}


def _refused(*names: str, error: int) -> dict[str, Any]:
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": error}


HOST_NAME = "sandbox"  # fixed, because some reporters write it into their files
FALLBACK_HOME = "/tmp/home"  # noqa: S108 - a private tmpfs of the container
_PAGE_BYTES = 4096
_LEAST_FILES = 1024
_SHARED_MEMORY_BYTES = 256 * 1024**2  # Chromium crashes with Docker's default of 64 MiB

# Disable watch modes, prompts and telemetry; make time and order the same everywhere.
ENVIRONMENT: Mapping[str, str] = {
    "CI": "true",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "NG_CLI_ANALYTICS": "false",
    "npm_config_offline": "true",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
}


def hardened(
    image_id: str,
    limits: Limits,
    *,
    fitness: Fitness,
    seccomp: bool,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """Return the body of the create request for any command: the container idles, the tests are an exec.

    Folders that the tests may write to get a tmpfs with a limited size and number of files, if the image
    allows that (see `looking`), or else a layer over the image's folder (see `bounded_layers`). The root is
    not read-only, because the engine would refuse uploads, including `/etc/hosts`. AutoRemove is off, because
    it loses the exit status. There is no log driver, because endless output would fill the disk.
    """
    home_variable = [f"HOME={fitness.home}"] if fitness.home else []
    body = confined(image_id, entry_point(limits.timeout_s), limits, keeper=fitness.keeper, labels=labels)
    body |= {
        "Hostname": HOST_NAME,
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()] + home_variable,
        "WorkingDir": PROJECT,
        "Tty": False,
    }
    small, large = tmpfs(limits.tmp_bytes, fitness), tmpfs(limits.disk_bytes, fitness)
    body["HostConfig"]["SecurityOpt"] += [f"seccomp={profile()}"] if seccomp else []
    body["HostConfig"] |= {
        "IpcMode": "private",
        "ShmSize": _SHARED_MEMORY_BYTES,
        "Tmpfs": {
            "/tmp": f"exec,{tmpfs(limits.tmp_bytes)},mode=1777",  # noqa: S108 - a private tmpfs of the container
            **dict.fromkeys(fitness.empty, f"exec,{small}"),
        },
        "Mounts": [volume(path, "tmpfs", large) for path in fitness.contents],
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
        ],
    }
    return body


def confined(
    image_id: str, first_process: list[str], limits: Limits, *, keeper: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body of a create request for a container without network and privileges.

    The container ends when the connection to its first process closes.
    """
    return {
        "Image": image_id,
        "Entrypoint": first_process,
        "Cmd": [],
        "User": keeper,
        "Labels": dict(labels),
        "NetworkDisabled": True,
        **HELD,
        # Process 1 ignores SIGTERM. Without this, stopping the container or the engine would take 10 s.
        "StopSignal": "SIGKILL",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "LogConfig": {"Type": "none", "Config": {}},
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "PidsLimit": limits.processes,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
        },
    }


def tmpfs(size: int, fitness: Fitness | None = None) -> str:
    """Return mount options of a tmpfs with one inode a page; with `fitness`, owned by the tests' user."""
    options = f"nosuid,nodev,size={size},nr_inodes={max(size // _PAGE_BYTES, _LEAST_FILES)}"
    return options if fitness is None else f"{options},mode=755,uid={fitness.uid},gid={fitness.gid}"


def volume(path: str, kind: str, options: str) -> dict[str, Any]:
    """Return a volume mounted by the engine, reachable by archive requests, removed with the container."""
    driver = {"Name": "local", "Options": {"type": kind, "device": kind, "o": options}}
    return {
        "Type": "volume",
        "Target": path,
        "VolumeOptions": {"NoCopy": True, "DriverConfig": driver},
    }
