"""Answers that attack what judges them: each ends as a verdict, 0 or its honest worth, never as missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import tar

from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_jobs import Run

pytestmark = [pytest.mark.docker, pytest.mark.first, pytest.mark.usefixtures("leaves_no_container")]
MB = 1024**2
HONEST = "echo honest > unit.xml; "
PERL = (
    "call() { perl -e '($n, @a) = map { $_ + 0 } @ARGV; $r = syscall($n, @a);"
    ' print $r < 0 ? 0 + $! : "done", "\\n"\' $@; }; '
)
EPERM, ENOSYS = "1", "38"


# --- the first process ------------------------------------------------------------------------------


PROBES = r"""
for each in mem environ maps auxv stack syscall io; do cat /proc/1/$each >/dev/null && echo bad $each; done
ls -l /proc/1/fd /proc/1/root/ && echo bad
for each in fd/0 fd/1 fd/2 mem oom_score_adj clear_refs; do
  echo 9 0 1 0 >/proc/1/$each && echo bad $each
done
for n in $(seq 64); do kill -$n 1 && echo bad kill $n; done
renice -n 19 -p 1 && echo bad renice
prlimit --pid 1 --cpu=1 && echo bad prlimit
taskset -p 1 1 >/dev/null && echo bad taskset
chrt -i -p 0 1 && echo bad chrt
tr '\0' ' ' </proc/1/cmdline | grep -c -e unit.xml -e honest
grep ^Uid: /proc/1/status
"""


def test_the_first_process_can_neither_be_read_nor_written_nor_slowed(run: Run) -> None:
    done = run(PROBES + HONEST, "unit.xml")
    assert "bad" not in done.stdout
    assert done.stdout.splitlines() == ["0", "Uid:\t65532\t65532\t65532\t65532"]
    assert done.reports == {"unit.xml": b"honest\n"}


CALLS = {  # numbers of x86-64
    "ptrace, seize": ("101 16902 1 0 0", EPERM),
    "ptrace, trace me": ("101 0 0 0 0", EPERM),
    "process_vm_readv": ("310 1 0 0 0 0 0", EPERM),
    "process_vm_writev": ("311 1 0 0 0 0 0", EPERM),
    "pidfd_getfd": ("438 0 0 0", EPERM),
    "kcmp": ("312 1 1 0 0 0", EPERM),
    "process_madvise": ("440 0 0 0 0 0", EPERM),
    "userfaultfd": ("323 1", EPERM),
    "bpf": ("321 0 0 0", EPERM),
    "perf_event_open": ("298 0 0 0 0 0", EPERM),
    "unshare, user namespace": ("272 268435456", EPERM),
    "setns": ("308 0 0", EPERM),
    "mount": ("165 0 0 0 0 0", EPERM),
    "pivot_root": ("155 0 0", EPERM),
    "add_key": ("248 0 0 0 0 0", EPERM),
    "keyctl": ("250 0 0 0 0 0", EPERM),
    "name_to_handle_at": ("303 0 0 0 0 0", EPERM),
    "open_by_handle_at": ("304 0 0 0", EPERM),
    "memfd_secret": ("447 0", EPERM),
    "quotactl": ("179 0 0 0 0", EPERM),
    "swapon": ("167 0 0", EPERM),
    "reboot": ("169 0 0 0 0", EPERM),
    "init_module": ("175 0 0 0", EPERM),
    "socket, AF_ALG": ("41 38 5 0", EPERM),
    "socket, AF_VSOCK": ("41 40 1 0", EPERM),
    "io_uring_setup": ("425 8 0", ENOSYS),
    "io_uring_enter": ("426 0 0 0 0 0", ENOSYS),
    "clone3": ("435 0 0", ENOSYS),
    "cachestat": ("451 0 0 0 0", EPERM),
    "fadvise64, not needed": ("221 99 0 0 4", "done"),  # it does nothing, not even look for the file
    "fadvise64, will be needed": ("221 99 0 0 3", "9"),
    "madvise, page out": ("28 0 0 21", "22"),
    "madvise, cold": ("28 0 0 20", "22"),
    "madvise, free": ("28 0 0 8", "done"),
}


def test_system_calls_that_no_test_needs_are_refused(run: Run) -> None:
    if run("uname -m").stdout != "x86_64\n":
        pytest.skip("the numbers are those of x86-64")
    done = run(PERL + "; ".join(f"call {numbers}" for numbers, _ in CALLS.values()))
    assert dict(zip(CALLS, done.stdout.split(), strict=True)) == {
        name: code for name, (_, code) in CALLS.items()
    }


# --- the end ------------------------------------------------------------------------------------------

LATER = "sleep 5; while :; do echo forged > unit.xml; done"
LEAVERS = {
    "a child": f"({LATER}) & ",
    "a child without output": f"({LATER}) >/dev/null 2>&1 & ",
    "a session of its own": f"setsid bash -c '{LATER}' >/dev/null 2>&1 & ",
    "a double fork": f"(setsid bash -c '({LATER}) &' >/dev/null 2>&1 &) ; sleep 0.1; ",
    "a child that ignores all signals": f"(trap '' $(seq 64); {LATER}) >/dev/null 2>&1 & ",
    "a child that stops the shell above": (
        f"(kill -STOP $PPID; touch /tmp/stopped; {LATER}) & "
        "until [ -e /tmp/stopped ]; do sleep 0.05; done; kill -CONT $PPID; "
    ),
}


@pytest.mark.parametrize("how", LEAVERS)
def test_nothing_writes_a_report_after_the_command(run: Run, how: str) -> None:
    done = run(HONEST + LEAVERS[how] + "exit 3", "unit.xml", limits=Limits(timeout_s=300.0))
    assert done.reports == {"unit.xml": b"honest\n"}
    assert not done.timed_out


def test_a_command_that_closes_its_output_is_waited_for(run: Run) -> None:
    done = run("exec >&- 2>&-; sleep 3; echo late > unit.xml; exit 9", "unit.xml")
    assert (done.exit_code, done.reports) == (9, {"unit.xml": b"late\n"})


def test_a_command_that_kills_the_shell_above_lasts_seconds_longer_and_not_more(run: Run) -> None:
    runaway = "perl -e 'kill 9, -1; while (1) { open F, \">unit.xml\"; print F ++$n; close F; sleep 1 }'"
    done = run(HONEST + runaway, "unit.xml", limits=Limits(timeout_s=180.0))
    assert int(done.reports["unit.xml"]) < 30
    assert done.duration_s < 170


def test_a_stopped_shell_ends_with_the_time(run: Run) -> None:
    done = run(HONEST + "kill -STOP $PPID -1; sleep 60", "unit.xml", limits=Limits(timeout_s=3.0))
    assert done.timed_out


# --- all there is of something ------------------------------------------------------------------------

SLEEPERS = (
    "for i in $(seq 100); do setsid sleep 300 >/dev/null 2>&1 & done 2>/dev/null; sleep 0.5; kill -9 $PPID"
)
BOMB = 'b() { setsid bash -c "$(declare -f b); b & b" & }; b & b; sleep 2; kill -9 $PPID'


@pytest.mark.parametrize("many", [SLEEPERS, BOMB, "(while :; do :; done) & " * 60 + "kill -9 $PPID"])
def test_processes_that_take_all_places_hide_no_report(run: Run, many: str) -> None:
    done = run(HONEST + many, "unit.xml", limits=Limits(processes=64, timeout_s=40.0))
    assert done.reports == {"unit.xml": b"honest\n"} or done.timed_out


HOGS = {
    "one process": "head -c 400m /dev/zero | tail",
    "files": "head -c 400m /dev/zero > f",
    "files in /dev/shm": "head -c 200m /dev/zero > /dev/shm/f",
    "files, and processes smaller than the first": (
        "for i in $(seq 40); do sleep 300 & done; head -c 400m /dev/zero > f; wait"
    ),
    "a child, and a good end": "bash -c 'head -c 400m /dev/zero | tail'; exit 0",
    "again and again": "while :; do head -c 400m /dev/zero | tail; done",
}


@pytest.mark.parametrize("how", HOGS)
def test_memory_that_runs_out_is_the_tests_own_failure(run: Run, how: str) -> None:
    limits = Limits(memory_bytes=64 * MB, timeout_s=30.0)
    done = run(HONEST + HOGS[how], "unit.xml", limits=limits)
    assert done.out_of_memory


PLACES = {
    "project": ".",
    "/tmp": "/tmp",
    "/var/tmp": "/var/tmp",
    "/run/lock": "/run/lock",
    "/dev/shm": "/dev/shm",
    "HOME": '"$HOME"',
}
FILLERS = {
    "one file": ("head -c 600m /dev/zero > f", "No space left"),
    "a file without a name": ("exec 9> f; rm f; head -c 600m /dev/zero >&9", "No space left"),
    "room without size": ("touch f; fallocate -n -l 600m f", "unsupported|No space left"),
    "room ahead": ("fallocate -l 600m f", "No space left"),
    "a hole dug": ("fallocate -l 4k f; fallocate -p -o 0 -l 4k f", "not supported|unsupported"),
}


@pytest.mark.parametrize("place", [*PLACES, "project with much of the image"])
def test_no_call_takes_more_room_than_the_kernel_allows(
    run: Run, made: Callable[[str], str], image: str, place: str
) -> None:
    commands = (
        f"(cd {PLACES.get(place, '.')} && mkdir t && cd t && {how}; rm -rf ../t) 2>&1 | tail -1"
        for how, _ in FILLERS.values()
    )
    limits = Limits(disk_bytes=64 * MB, tmp_bytes=64 * MB)
    done = run("\n".join(commands), image=image if place in PLACES else made("large-project"), limits=limits)
    for said, (how, expected) in zip(done.stdout.splitlines(), FILLERS.values(), strict=True):
        assert re.search(expected, said), (how, said)
    assert not done.out_of_memory


MAKERS = {
    "folders": "mkdir $_",
    "empty files": 'open F, ">", $_',
    "links": "symlink 'x', $_",
    "second names": 'open F, ">", "a" unless -e "a"; link "a", $_',
    "files that are open and gone": 'open $h{$_}, ">", $_ and unlink $_',
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("much", [False, True])
def test_files_without_content_are_counted_by_the_kernel(
    run: Run, made: Callable[[str], str], image: str, make: str, *, much: bool
) -> None:
    done = run(
        'for at in . /tmp /var/tmp "$HOME"; do mkdir -p $at/d; '
        f"(cd $at/d && perl -e 'for (1..3000) {{ {MAKERS[make]} or die $! }}' 2>&1); rm -rf $at/d; done",
        image=made("large-project") if much else image,
        limits=Limits(disk_bytes=4 * MB, tmp_bytes=4 * MB),
    )
    assert done.stdout.count("No space left on device") == 4


def test_nothing_can_be_written_but_what_the_kernel_bounds(run: Run, made: Callable[[str], str]) -> None:
    search = (
        "find / -xdev '(' -path /proc -o -path /sys ')' -prune -o -writable -not -type l -not -type c -print "
        '| while IFS= read -r path; do [ "$(stat -f -c %T "$path")" = tmpfs ] || echo "$path"; done'
    )
    assert run(search).stdout == ""
    assert run(search, image=made("named-user")).stdout == ""
    assert run(search, image=made("with-project")).stdout == ""


def test_a_full_project_hides_no_report(run: Run) -> None:
    done = run(
        HONEST + "cat /dev/zero > rest; seq 1 9999 | xargs touch",
        "unit.xml",
        limits=Limits(disk_bytes=8 * MB),
    )
    assert done.reports == {"unit.xml": b"honest\n"}


# --- the report -----------------------------------------------------------------------------------------

SPOILERS = {
    "no rights": "chmod 000 unit.xml; chmod 000 .",
    "odd times": "touch -d '1901-01-01' unit.xml; touch -d '2400-01-01' .",
    "a second name": "ln unit.xml second; rm second",
    "extended attributes": 'perl -e \'syscall(188, "unit.xml", "user." . "b" x 200, "c" x 9000, 9000, 0)\'',
    "names that are no text": "touch $'\\xff\\xfe' $'a\\nb' $'\\e[2J'",
    "a socket beside it": "perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un(\"s\")'",
    "loops beside it": "ln -s . loop; ln -s b a; ln -s a b",
    "ten thousand files beside it": "seq 1 10000 | xargs touch",
    "huge holes beside it": "for i in 1 2 3 4; do truncate -s 900m z$i; done",
    "words of our own": "printf '%s\\n' '1 0 1 0' '1 1 9 0' 125 137 'no space left on device' >&2",
}


@pytest.mark.parametrize("pattern", ["unit.xml", "u*.xml"])
@pytest.mark.parametrize("how", SPOILERS)
def test_what_is_done_to_a_report_or_beside_it_makes_no_trouble(run: Run, how: str, pattern: str) -> None:
    if pattern == "u*.xml" and "holes" in how:
        return  # read only in part; see the next test
    done = run(HONEST + SPOILERS[how], pattern)
    assert (done.reports, done.report_problems) == ({"unit.xml": b"honest\n"}, ())


def test_more_than_can_be_searched_is_a_problem_and_no_trouble(run: Run) -> None:
    done = run("for i in 1 2 3; do truncate -s 900m a$i; done; " + HONEST, "*.xml")
    assert done.reports == {}
    assert done.report_problems == ("the project: too large to be searched for result files",)


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        ("perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un(\"unit.xml\")'", None),
        ("mkfifo unit.xml", "is a FIFO"),
        ("ln -s /etc/shadow unit.xml", "is a symbolic link"),
        ("ln -s /proc/self/fd/0 unit.xml", "is a symbolic link"),
        ("mkdir -p unit.xml/a", "is a folder"),
        ("mknod unit.xml c 1 5", None),
        ("rm -rf -- * .[a-z]*", None),
    ],
)
def test_what_stands_in_a_reports_place_is_worth_nothing(run: Run, plant: str, problem: str | None) -> None:
    done = run(plant, "unit.xml")
    assert done.reports == {}
    assert [problem in said for said in done.report_problems if problem] == ([True] if problem else [])


def test_an_image_whose_programs_the_tests_may_destroy(run: Run, made: Callable[[str], str]) -> None:
    destroy = "echo > /usr/lib/x86_64-linux-gnu/libc.so.6; rm -rf /usr/lib /usr/bin /bin /lib /etc; exit 2"
    done = run(HONEST + destroy, "unit.xml", image=made("owned-system"))
    assert done.reports == {"unit.xml": b"honest\n"}


def test_the_same_names_in_the_projects_archive_are_no_reports(run: Run) -> None:
    files = tar(
        {"unit.xml": b"forged", "out/a.xml": b"forged", "out/b.txt": b"kept"}, links={"l.xml": "unit.xml"}
    )
    done = run("find . | sort", "unit.xml", "**/*.xml", archive=files)
    assert done.reports == {}
    assert done.stdout.split() == [".", "./out", "./out/b.txt"]
