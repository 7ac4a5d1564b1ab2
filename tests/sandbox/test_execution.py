from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import tar

from astra_async.errors import ImageError
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_jobs import Run

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("leaves_no_container")]
MB = 1024**2


@pytest.mark.first
def test_a_command_that_succeeds_hands_back_its_report_and_output(run: Run) -> None:
    done = run("echo out; echo err >&2; echo '<testsuite/>' > unit.xml", "unit.xml")
    assert (done.exit_code, done.timed_out, done.out_of_memory, done.failed_limit) == (0, False, False, None)
    assert done.reports == {"unit.xml": b"<testsuite/>\n"}
    assert done.report_problems == ()
    assert sorted(done.output.split()) == ["err", "out"]
    assert done.stdout == "out\n"
    assert done.output_bytes == 8
    assert done.image_id.startswith("sha256:")
    assert 0 < done.duration_s < 300


@pytest.mark.parametrize("code", [1, 7, 124, 125, 126, 255])
def test_the_commands_exit_code_is_kept(run: Run, code: int) -> None:
    assert run(f"exit {code}").exit_code == code


def test_bash_runs_the_command_in_the_project(run: Run) -> None:
    done = run('pwd; arr=(x y); [[ ${#arr[@]} == 2 ]] && cat a.txt; echo "it\'s" "$0"')
    assert done.stdout == "/projects/challenge\na\nit's bash\n"


@pytest.mark.first
def test_a_command_that_the_engine_still_starts_is_neither_late_nor_frozen(run: Run) -> None:
    # The engine takes a tenth of a second to make a process; one that is frozen meanwhile could not be ended.
    for _ in range(5):
        done = run("echo begun > unit.xml; sleep 300", "unit.xml", limits=Limits(timeout_s=0.01))
        assert done.timed_out


def test_the_command_is_data_and_no_part_of_the_script(run: Run) -> None:
    assert (
        run("""echo "$(echo '"; exit 9; "')" '$status' `echo 1`; # \\""").stdout == '"; exit 9; " $status 1\n'
    )


def test_a_command_that_kills_itself_is_its_own_doing(run: Run) -> None:
    done = run("kill -9 $$")
    assert done.exit_code == 137
    assert not done.timed_out
    assert "Killed" in done.output


def test_the_command_cannot_kill_process_one(run: Run) -> None:
    assert run("bash -c 'kill -9 1; kill -TERM 1; kill -INT 1; kill -ABRT 1'; exit 3").exit_code == 3


def test_a_command_that_kills_all_it_may_is_its_own_doing(run: Run) -> None:
    done = run("sleep 300 & echo r > unit.xml; kill -9 -1; sleep 300", "unit.xml")
    assert (done.exit_code, done.timed_out, done.reports) == (137, False, {"unit.xml": b"r\n"})


def test_a_command_that_signals_its_group_ends_as_it_would_alone(run: Run) -> None:
    done = run("trap 'kill 0' EXIT; sleep 300 & echo r > unit.xml; exit 4", "unit.xml")
    assert done.reports == {"unit.xml": b"r\n"}
    assert done.exit_code == 128 + 15
    assert done.duration_s < 250


def test_orphans_are_collected(run: Run) -> None:
    spawn = 'for i in $(seq 200); do bash -c "true & exit" ; done; '
    look = 'grep -q "^State:.*zombie" /proc/[0-9]*/status'
    wait = f"for i in $(seq 100); do {look} || {{ echo none; break; }}; sleep 0.2; done"
    assert run(spawn + wait, limits=Limits(processes=64)).stdout == "none\n"


def test_processes_left_behind_end_with_the_command(run: Run) -> None:
    done = run("sleep 300 & disown; echo done")
    assert (done.exit_code, done.output) == (0, "done\n")
    assert done.duration_s < 250


# --- limits -----------------------------------------------------------------------------------------


def test_a_command_that_takes_too_long_is_killed_and_says_so(run: Run) -> None:
    done = run("trap '' TERM INT; echo begun; sleep 300", limits=Limits(timeout_s=4.0))
    assert done.timed_out
    assert done.output == "begun\n"
    assert 4.0 <= done.duration_s < 250


def test_what_was_reported_before_the_time_ran_out_is_read(run: Run) -> None:
    done = run("echo early > unit.xml; sleep 300", "unit.xml", limits=Limits(timeout_s=4.0))
    assert done.timed_out
    assert done.reports == {"unit.xml": b"early\n"}


def test_a_flood_of_output_is_counted_and_kept_at_both_ends(run: Run) -> None:
    limits = Limits(output_bytes=64 * 1024, timeout_s=600.0)
    done = run("echo first; head -c 200000000 /dev/zero; echo last", limits=limits)
    assert done.exit_code == 0
    assert done.output_bytes == 200_000_000 + len("first\nlast\n")
    assert len(done.output.encode()) < 70 * 1024
    assert done.output.startswith("first\n")
    assert done.output.endswith("last\n")
    left_out = done.output_bytes - 64 * 1024
    assert f"[... {left_out} bytes of output left out ...]" in done.output


@pytest.mark.first
def test_endless_output_ends_with_the_time(run: Run) -> None:
    done = run("yes", limits=Limits(timeout_s=4.0))
    assert done.timed_out
    assert done.output_bytes > MB
    assert done.duration_s < 250


def test_output_that_is_no_text_is_shown_all_the_same(run: Run) -> None:
    assert run(r"printf 'a\xff\xfeb'").output == "a\ufffd\ufffdb"


@pytest.mark.first
def test_the_memory_limit_is_reported(run: Run) -> None:
    done = run("head -c 400m /dev/zero | tail", limits=Limits(memory_bytes=64 * MB))
    assert done.out_of_memory
    assert not done.timed_out


def test_memory_that_hides_in_tmp_counts(run: Run) -> None:
    done = run("head -c 400m /dev/zero > /tmp/x", limits=Limits(memory_bytes=64 * MB, tmp_bytes=1024 * MB))
    assert done.out_of_memory


def test_a_full_tmp_is_the_commands_own_error(run: Run) -> None:
    done = run("head -c 20m /dev/zero > /tmp/x || exit 5", limits=Limits(tmp_bytes=8 * MB))
    assert done.exit_code == 5
    assert "No space left on device" in done.output


@pytest.mark.first
def test_a_fork_bomb_is_contained(run: Run) -> None:
    done = run(":(){ :|:& };: 2>/dev/null; sleep 1; exit 6", limits=Limits(processes=64, timeout_s=8.0))
    assert done.exit_code in {6, 254} or done.timed_out


def test_a_file_cannot_grow_past_its_limit(run: Run) -> None:
    done = run("head -c 10G /dev/zero > big; wc -c < big", limits=Limits(file_bytes=16 * MB))
    assert done.stdout == f"{16 * MB}\n"
    assert done.failed_limit is None


def test_a_full_disk_is_the_commands_own_error(run: Run) -> None:
    write = "for i in 1 2 3 4 5 6; do head -c 16m /dev/zero > f$i || exit 5; done"
    done = run(write, limits=Limits(disk_bytes=64 * MB))
    assert (done.exit_code, done.failed_limit) == (5, None)
    assert "No space left on device" in done.output


def test_folders_deeper_than_any_path_hide_no_report_and_harm_nobody(run: Run) -> None:
    deep = 'echo r > unit.xml; p=$(printf "d%.0s" $(seq 200)); for i in $(seq 25); do mkdir $p; cd $p; done'
    done = run(deep, "**/unit.xml")
    assert (done.exit_code, done.reports) == (0, {"unit.xml": b"r\n"})


def test_what_stays_in_the_containers_layer_is_watched(run: Run, made: Callable[[str], str]) -> None:
    write = "cd /opt/a,b; while :; do : $((i++)); head -c 16m /dev/zero > f$i; sleep 0.05; done"
    done = run(write, image=made("no-layer"), limits=Limits(disk_bytes=64 * MB, timeout_s=600.0))
    assert done.failed_limit == "disk"
    assert done.disk_watched
    assert not done.timed_out


def test_hiding_how_much_is_in_the_containers_layer_is_stopped(run: Run, made: Callable[[str], str]) -> None:
    deep = 'p=$(printf "d%.0s" $(seq 200)); for i in $(seq 25); do mkdir $p; cd $p; done'
    done = run(f"cd /opt/a,b; {deep}; sleep 60", image=made("no-layer"), limits=Limits(timeout_s=50.0))
    assert done.failed_limit == "disk"


# --- reports ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ("mkfifo unit.xml", "is a FIFO"),
        ("ln -s /etc/passwd unit.xml", "is a symbolic link"),
        ("ln -s unit.xml unit.xml", "cannot be reached (too many links)"),
        ("cp a.txt b.txt; ln b.txt unit.xml; head -c 100000000 /dev/zero > b.txt", "has 100000000 bytes"),
        ("mkdir unit.xml", "is a folder"),
        ("head -c 100000000 /dev/zero > unit.xml", "has 100000000 bytes"),
        ("truncate -s 1000000000 unit.xml", "has 1000000000 bytes"),
    ],
)
def test_only_a_regular_file_of_bearable_size_is_a_report(run: Run, plant: str, said: str) -> None:
    done = run(plant, "unit.xml")
    assert done.exit_code == 0
    assert done.reports == {}
    assert len(done.report_problems) == 1
    assert done.report_problems[0].startswith(f"unit.xml: {said}")


@pytest.mark.parametrize(
    ("plant", "said"),
    [("touch out", "not a directory"), ("ln -s b a; ln -s a b; ln -s a out", "too many links")],
)
def test_a_report_behind_a_spoilt_path_is_a_problem_and_no_trouble(run: Run, plant: str, said: str) -> None:
    assert run(plant, "out/unit.xml").report_problems == (f"out/unit.xml: cannot be reached ({said})",)


def test_a_folder_that_links_out_of_the_project_reads_the_container_and_never_the_host(run: Run) -> None:
    done = run("ln -s /etc out", "out/hostname")
    assert done.reports == {"out/hostname": b"sandbox\n"}


def test_all_reports_together_stay_within_the_limit(run: Run) -> None:
    command = "for i in 1 2 3; do head -c 60000 /dev/zero > $i.xml; done"
    done = run(command, "1.xml", "2.xml", "3.xml", limits=Limits(report_bytes=130_000))
    assert sorted(done.reports) == ["1.xml", "2.xml"]
    assert done.report_problems == ("3.xml: has 60000 bytes, 10000 may be read",)


def test_globs_find_reports_in_folders(run: Run) -> None:
    command = (
        "mkdir -p target/reports/deep; cd target/reports; "
        "echo 1 > TEST-a.xml; echo 2 > b.txt; echo 3 > deep/c.xml"
    )
    found = run(command, "target/reports/TEST-*.xml", "target/**/c.xml")
    assert found.reports == {"target/reports/TEST-a.xml": b"1\n", "target/reports/deep/c.xml": b"3\n"}
    everywhere = run(command, "**/*.xml")
    assert everywhere.reports == found.reports


def test_a_missing_report_is_neither_read_nor_a_problem(run: Run) -> None:
    done = run("true", "unit.xml", "out/*.xml")
    assert (done.reports, done.report_problems) == ({}, ())


def test_a_report_path_outside_the_project_is_not_read(run: Run) -> None:
    done = run("true", "../../etc/passwd", "/etc/passwd", "/projects/challenge/a.txt")
    assert done.reports == {}  # a.txt counts as a stale report and is gone
    assert len(done.report_problems) == 2


def test_stale_reports_of_the_project_are_deleted_and_folders_stay(run: Run) -> None:
    files = tar({"unit.xml": b"stale", "out/old.xml": b"stale", "out/keep.txt": b"kept"})
    done = run("find . -type f | sort; ls -d out", "unit.xml", "out/*.xml", archive=files)
    assert done.stdout == "./out/keep.txt\nout\n"
    assert done.reports == {}


def test_odd_names_of_reports_are_no_shell_text(run: Run) -> None:
    files = tar({"a b.xml": b"stale", "$(touch pwned).xml": b"stale", "-rf": b"stale"})
    done = run("ls -A; echo new > 'a b.xml'", "a b.xml", "$(touch pwned).xml", "-rf", archive=files)
    assert done.stdout == ""
    assert done.reports == {"a b.xml": b"new\n"}


# --- surroundings -----------------------------------------------------------------------------------


def test_the_network_is_off_and_loopback_is_up(run: Run) -> None:
    knock = "for host in 1.1.1.1 localhost 127.0.0.1; do (exec 3<>/dev/tcp/$host/9) 2>&1 | tail -1; done"
    done = run(f"ls /sys/class/net; {knock}")
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == [
        "lo",
        "Network is unreachable",
        "Connection refused",
        "Connection refused",
    ]


def test_home_is_writable_for_the_unprivileged_user(run: Run) -> None:
    done = run('id -u; id -g; echo "$HOME"; echo x > "$HOME/x" && mkdir -p "$HOME/.cache" && echo ok')
    assert done.stdout == "1000\n1000\n/tmp/home\nok\n"


def test_nothing_can_be_gained_from_privileges(run: Run) -> None:
    done = run(
        "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; cat /root/x; echo x > /etc/x"
    )
    assert "NoNewPrivs:\t1" in done.stdout
    assert "Seccomp:\t2" in done.stdout
    assert "CapEff:\t0000000000000000" in done.stdout
    assert "CapBnd:\t0000000000000000" in done.stdout
    assert done.output.count("Permission denied") == 2


def test_the_surroundings_are_pinned(run: Run) -> None:
    done = run(
        'echo "$CI $TZ $LANG $PYTHONHASHSEED $NG_CLI_ANALYTICS $npm_config_offline"; hostname; ulimit -c'
    )
    assert done.stdout == "true UTC C.UTF-8 0 false true\nsandbox\n0\n"


def test_the_jobs_own_environment_is_laid_over(run: Run) -> None:
    done = run(
        'printf "%s|%s" "$ODD" "$TZ"', environment={"ODD": "a 'b' \"c\" $(id)\n`d`", "TZ": "Asia/Kolkata"}
    )
    assert done.stdout == "a 'b' \"c\" $(id)\n`d`|Asia/Kolkata"


def test_shared_memory_is_large_enough_for_a_browser(run: Run) -> None:
    assert run("df -m --output=size /dev/shm | tail -1").stdout.strip() == "256"


# --- the project ------------------------------------------------------------------------------------


def test_the_project_arrives_with_its_bits_links_and_empty_folders(run: Run) -> None:
    files = tar(
        {"bin/tool": b"#!/bin/sh\necho ran\n", "src/deep/x.txt": b"x"},
        links={"link.txt": "src/deep/x.txt"},
        folders=("output", "logs/empty"),
        executable=("bin/tool",),
    )
    done = run(
        "bin/tool; cat link.txt; ls -d output logs/empty; stat -c %u:%g . src src/deep output logs",
        archive=files,
    )
    assert done.stdout == "ran\nxlogs/empty\noutput\n" + "1000:1000\n" * 5
    written = run("touch new src/new src/deep/new output/new && echo ok", archive=files)
    assert written.stdout == "ok\n"


def test_names_too_long_for_a_plain_header_arrive(run: Run) -> None:
    name = "/".join(["a-rather-long-folder-name"] * 6) + "/äöü-" + "x" * 90 + ".txt"
    done = run(
        "find . -type f -exec cat {} + ; find . -type f | wc -l; find . -not -user 1000",
        archive=tar({name: b"long\n", "b": b"b\n"}),
    )
    assert sorted(done.stdout.split()) == ["2", "b", "long"]


# --- images -----------------------------------------------------------------------------------------


def test_an_images_own_user_runs_and_owns_the_project(run: Run, made: Callable[[str], str]) -> None:
    done = run(
        "id -un; id -u; stat -c %U . a.txt; echo $HOME; touch $HOME/x x && echo ok", image=made("named-user")
    )
    assert done.stdout == "runner\n4321\nrunner\nrunner\n/home/runner\nok\n"


def test_another_name_of_root_is_still_not_root(run: Run, made: Callable[[str], str]) -> None:
    assert run("id -u; stat -c %u a.txt", image=made("named-root")).stdout == "1000\n1000\n"


def test_the_project_is_laid_over_what_the_image_holds(run: Run, made: Callable[[str], str]) -> None:
    files = tar({"a.txt": b"project\n", "out/new.txt": b"new\n"})
    done = run(
        "cat a.txt kept.txt node_modules/near ../node_modules/far out/new.txt",
        archive=files,
        image=made("with-project"),
    )
    assert done.stdout == "project\nkept\nnear\nfar\nnew\n"


@pytest.mark.parametrize("files", [("unit.xml", "out/unit.xml"), ("**/*.xml",)])
def test_stale_reports_of_the_image_are_deleted(
    run: Run, made: Callable[[str], str], files: tuple[str, ...]
) -> None:
    done = run("ls", *files, image=made("with-project"))
    assert done.reports == {}
    assert done.stdout.split() == ["a.txt", "kept.txt", "node_modules", "out"]


def test_a_projects_folder_too_large_to_copy_is_run_in_place(run: Run, made: Callable[[str], str]) -> None:
    done = run("ls; wc -c < large; echo new > unit.xml", "unit.xml", image=made("large-project"))
    assert done.stdout.split() == ["a.txt", "large", "out", str(30 * MB)]
    assert done.reports == {"unit.xml": b"new\n"}


def test_a_stale_report_that_cannot_be_deleted_is_never_scored(run: Run, made: Callable[[str], str]) -> None:
    with pytest.raises(ImageError, match=r"must be deleted.*out/unit\.xml"):
        run("true", "out/unit.xml", image=made("large-project"))


def test_an_image_without_bash_is_named(run: Run, made: Callable[[str], str]) -> None:
    with pytest.raises(ImageError, match="no bash"):
        run("true", image=made("no-bash"))


def test_a_missing_image_is_named_with_the_remedy(run: Run) -> None:
    with pytest.raises(ImageError, match=r"astra-test/nowhere:1 does not exist.*images build"):
        run("true", image="astra-test/nowhere:1")


def test_an_images_entry_point_does_not_run(run: Run, made: Callable[[str], str]) -> None:
    assert run("echo $COLOUR", image=made("entry-point")).stdout == "blue\n"


def test_an_image_that_declares_volumes_leaves_none(run: Run, made: Callable[[str], str]) -> None:
    done = run(
        "cat a.txt; echo r > unit.xml; touch /data/x; ls -d /data", "unit.xml", image=made("with-volume")
    )
    assert done.reports == {"unit.xml": b"r\n"}
    assert done.stdout == "a\n/data\n"
