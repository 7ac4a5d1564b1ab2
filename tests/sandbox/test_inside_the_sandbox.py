"""The parts that need no engine: archives, orders, output, globs, errors."""

from __future__ import annotations

import io
import subprocess
import tarfile

import pytest
from sandbox_jobs import tar

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import HostTrouble, path_error, translate
from astra_async.testing.sandbox.execution import Clipped, Command, Output
from astra_async.testing.sandbox.hardened import Fitness, hardened, profile
from astra_async.testing.sandbox.job import upload_archive
from astra_async.testing.sandbox.keeper import SCRIPT
from astra_async.testing.sandbox.resultfiles import inside_project, matches
from astra_async.types import Limits
from waiting import PATIENCE_S, cpu_within

# --- the upload -------------------------------------------------------------------------------------


def run_as(uid: int, gid: int) -> Fitness:
    return Fitness(uid=uid, gid=gid, home="")


def uploaded(archive: bytes, user: tuple[int, int] = (1000, 1000)) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(upload_archive(archive, run_as(*user)))) as found:
        return found.getmembers()


@pytest.mark.parametrize("user", [(1000, 1000), (4321, 1), (0o7777777, 5), (2**31, 2**32 - 2)])
def test_every_entry_of_the_project_belongs_to_the_runs_user(user: tuple[int, int]) -> None:
    archive = tar({"a": b"1", "b/c": b"2" * 1000}, links={"l": "a"}, folders=("d",))
    entries = {entry.name: entry for entry in uploaded(archive, user)}
    hosts = entries.pop("etc/hosts")
    assert (hosts.uid, hosts.gid) == (0, 0)
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {user}
    root = "projects/challenge"
    assert set(entries) == {root, *(f"{root}/{name}" for name in ("a", "b", "b/c", "l", "d"))}
    assert entries[f"{root}/l"].linkname == "a"
    assert entries[f"{root}/b/c"].size == 1000


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("length", [5, 79, 80, 81, 82, 100, 101, 300])
def test_names_of_any_length_arrive_whole(form: int, length: int) -> None:
    name = ("folder/" * 60)[: length - 5] + "f.txt"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=form) as archive:
        for each in (name, "plain.txt"):
            entry = tarfile.TarInfo(each)
            entry.size = 3
            try:
                archive.addfile(entry, io.BytesIO(b"abc"))
            except ValueError:  # USTAR ends at 256
                assert form == tarfile.USTAR_FORMAT
    whole = upload_archive(packed.getvalue(), run_as(7, 8))
    with tarfile.open(fileobj=io.BytesIO(whole)) as found:
        files = {entry.name: found.extractfile(entry) for entry in found if entry.isreg()}
        names = {each.removeprefix("projects/challenge/") for each in files}
        assert names >= {"plain.txt"} | ({name} if length < 256 or form != tarfile.USTAR_FORMAT else set())
        assert all(
            file is not None and file.read() == b"abc" for each, file in files.items() if "plain" in each
        )


def test_a_file_whose_content_looks_like_a_header_is_not_touched() -> None:
    inner = tar({"x": b"y"})
    whole = upload_archive(tar({"inner.tar": inner}), run_as(5, 5))
    with tarfile.open(fileobj=io.BytesIO(whole)) as found:
        file = found.extractfile("projects/challenge/inner.tar")
        assert file is not None
        assert file.read() == inner


def test_a_cut_archive_is_refused() -> None:
    with pytest.raises(ValueError, match="cut off"):
        upload_archive(tar({"a": b"x" * 2000})[:1024], run_as(1, 1))


def test_an_upload_of_a_thousand_files_costs_milliseconds() -> None:
    archive = tar({f"src/{number}.js": b"x" * 100 for number in range(1000)})
    with cpu_within(0.2):
        upload_archive(archive, run_as(1, 1))


# --- the first process and the command -----------------------------------------------------------------


def test_the_first_process_answers_each_line_and_ends_with_its_input() -> None:
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", "9"], input=b"1\n2\n", capture_output=True, check=False
    )
    first, second = done.stdout.splitlines()
    assert [field.isdigit() for field in first.split()] == [True] * 4
    assert second.split()[0] == b"2"
    assert done.stderr == b""


def test_the_first_process_ends_by_itself_when_nobody_asks() -> None:
    with subprocess.Popen(["bash", "-c", SCRIPT, "bash", "1"], stdin=subprocess.PIPE) as process:
        assert process.wait(timeout=PATIENCE_S) is not None


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A B", "A\n", "Ä"])
def test_only_a_name_is_a_variable(name: str) -> None:
    with pytest.raises(SandboxError, match="name of an environment variable"):
        Command(text="true", user="1", environment={name: "x"})


@pytest.mark.parametrize("command", ["x" * 200_000, "a\0b"])
def test_a_command_that_no_process_could_get_is_refused(command: str) -> None:
    with pytest.raises(SandboxError, match="128 KiB"):
        Command(text=command, user="1")


# --- output -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 3, 10, 64, 1000])
@pytest.mark.parametrize("total", [0, 1, 9, 10, 11, 100, 1000])
def test_output_keeps_head_and_tail_however_it_arrives(total: int, piece: int) -> None:
    whole = bytes(97 + number % 26 for number in range(total))
    clipped = Clipped(10)
    for at in range(0, total, piece):
        clipped.feed(whole[at : at + piece])
    text = clipped.text()
    assert clipped.total == total
    if total <= 10:
        assert text == whole.decode()
    else:
        assert (
            text
            == f"{whole[:5].decode()}\n[... {total - 10} bytes of output left out ...]\n{whole[-5:].decode()}"
        )


def test_output_of_any_size_stays_in_bounded_memory() -> None:
    clipped = Clipped(1000)
    for _ in range(10_000):
        clipped.feed(b"x" * 997)
    assert len(clipped._head) + len(clipped._tail) <= 3000


def test_standard_output_is_kept_apart() -> None:
    output = Output(1000)
    output.feed(2, b"error\n")
    output.feed(1, b"out\n")
    assert (output.stdout.text(), output.text()) == ("out\n", "error\nout\n")


def test_a_line_of_one_stream_is_not_torn_by_the_other() -> None:
    output = Output(1000)
    for stream, piece in ((2, b"grep: "), (1, b"took 1 s\npid"), (2, b"a.txt: gone\n"), (1, b" 7\n...")):
        output.feed(stream, piece)
    output.feed(2, b"cut")
    output.feed(3, b"")
    assert output.text() == "took 1 s\ngrep: a.txt: gone\npid 7\n...\ncut"
    assert output.text() == output.text()
    assert output.total == len("took 1 s\ngrep: a.txt: gone\npid 7\n...cut")


def test_an_endless_line_waits_in_bounded_memory_and_is_told() -> None:
    output = Output(10**6)
    for _ in range(100):
        output.feed(1, b"x" * 5000)
        assert sum(map(len, output._begun.values())) <= 70_000
    output.feed(2, b"error\n")
    assert output.text().replace("x", "") == "error\n"
    assert output.text().count("x") == 500_000


# --- result files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("unit.xml", "*.xml", True),
        ("a/unit.xml", "*.xml", False),
        ("a/unit.xml", "**/*.xml", True),
        ("unit.xml", "**/*.xml", True),
        ("a/b/c/unit.xml", "a/**/unit.xml", True),
        ("a/unit.xml", "a/**/unit.xml", True),
        ("a/b/c", "a/**", True),
        ("target/TEST-x.xml", "target/TEST-?.xml", True),
        ("target/TEST-x.xml", "target/TEST-[ab].xml", False),
        ("A.xml", "a.xml", False),
    ],
)
def test_globs_match_as_in_bash(path: str, glob: str, expected: bool) -> None:  # noqa: FBT001 - parametrised
    assert matches(path.split("/"), glob.split("/")) is expected


def test_a_glob_with_many_double_stars_ends_soon() -> None:
    with cpu_within(1):
        assert not matches(["a"] * 60, ["**", "a*"] * 20 + ["b"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("unit.xml", "unit.xml"),
        ("./out//unit.xml", "out/unit.xml"),
        ("/projects/challenge/out/unit.xml", "out/unit.xml"),
        ("../unit.xml", None),
        ("a/../../b", None),
        ("/etc/passwd", None),
        ("/projects/challenge", None),
        ("", None),
        (".", None),
    ],
)
def test_result_files_lie_inside_the_project(given: str, expected: str | None) -> None:
    assert inside_project(given) == expected


# --- errors ---------------------------------------------------------------------------------------------


def refusal(status: int, message: str) -> Exception:
    from aiodocker.exceptions import DockerError

    return DockerError(status, message)


@pytest.mark.parametrize(
    ("error", "running", "kind", "said"),
    [
        (ConnectionRefusedError("refused"), False, EngineUnavailable, "start one"),
        (FileNotFoundError("gone"), False, EngineUnavailable, "start one"),
        (ConnectionResetError("reset"), True, ContainerLost, "lost"),
        (refusal(900, "Cannot connect"), False, EngineUnavailable, "start one"),
        (refusal(900, "Cannot connect [Permission denied]"), False, EngineUnavailable, "group docker"),
        (ValueError("no JSON"), False, SandboxError, "invalid response"),
        (refusal(900, "Cannot connect"), True, ContainerLost, "lost"),
        (refusal(404, "No such image: x:1"), False, ImageError, "images build"),
        (refusal(404, "No such container: abc"), True, ContainerLost, "vanished"),
        (refusal(500, "write /x: no space left on device"), True, HostTrouble, "disk is full"),
        (refusal(400, 'exec: "bash": executable file not found in $PATH'), True, ImageError, "no bash"),
        (refusal(409, "conflict"), False, SandboxError, "status 409"),
        (TimeoutError(), True, SandboxError, "overloaded"),
    ],
)
def test_foreign_errors_say_what_they_mean(
    error: Exception,
    running: bool,  # noqa: FBT001 - parametrised
    kind: type[SandboxError],
    said: str,
) -> None:
    translated = translate(error, "act", running=running)
    assert type(translated) is kind
    assert said in str(translated)
    assert "\n" not in str(translated)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("lstat /var/x/merged/a/b: not a directory", "not a directory"),
        ("EvalSymlinksInScope: too many links in /var/x/merged/a", "too many links"),
        ("lstat /a: input/output error", None),
        ("lstat /x/: not a directory/y: input/output error", None),
        ("lstat /x/too many links in /y: input/output error", None),
    ],
)
def test_names_chosen_by_the_code_under_test_do_not_pass_for_path_errors(
    message: str, expected: str | None
) -> None:
    assert path_error(message) == expected


# --- the container ----------------------------------------------------------------------------------------


def test_every_container_is_hardened() -> None:
    fitness = Fitness(uid=1000, gid=1000, home="/tmp/home", empty=("/var/tmp",), contents={"/x": {}})
    config = hardened("sha256:1", Limits(), fitness=fitness, seccomp=True, labels={})
    host = config["HostConfig"]
    assert config["NetworkDisabled"] is True
    assert config["User"] not in {"", "0", "root", "1000", fitness.user}
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true", f"seccomp={profile()}"]
    assert host["Memory"] == host["MemorySwap"] == Limits().memory_bytes
    assert host["PidsLimit"] == 512
    assert host["LogConfig"]["Type"] == "none"
    assert host.keys().isdisjoint({"Binds", "Privileged", "CapAdd", "Devices", "AutoRemove"})
    assert {"size=", "nr_inodes="} <= {
        option.partition("=")[0] + "=" for option in host["Tmpfs"]["/var/tmp"].split(",")
    }
    driver = host["Mounts"][0]["VolumeOptions"]["DriverConfig"]["Options"]
    assert (driver["type"], "size=" in driver["o"], "nr_inodes=" in driver["o"]) == ("tmpfs", True, True)


@pytest.mark.parametrize("uid", [1000, 65532, 65531])
def test_the_first_process_never_runs_as_the_tests_user(uid: int) -> None:
    assert Fitness(uid=uid, gid=uid, home="").keeper.partition(":")[0] != str(uid)


def test_a_wrong_docker_host_is_named_as_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    said = str(translate(ConnectionRefusedError("refused"), "act", running=False))
    assert "correct DOCKER_HOST" in said
    assert "scripts/engine" not in said
