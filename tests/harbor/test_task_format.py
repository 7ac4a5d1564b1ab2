"""Task folders are parsed as Harbor parses them; invalid and unsupported ones are named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astra_async.errors import ProblemsError
from astra_async.harbor.environment import agent_image
from astra_async.harbor.task import is_task_folder, parse_config, read_task, read_tasks, without_canary

TASKS = Path(__file__).parents[1] / "data" / "harbor" / "tasks"
SCRIPT = Path(__file__).parents[2] / "scripts" / "real-servers"
HARBOR = """
import json, sys, warnings
warnings.simplefilter("ignore")
from harbor.models.task.config import TaskConfig
for path in sys.argv[1:]:
    print(TaskConfig.model_validate_toml(open(path).read()).model_dump_json())
"""


@dataclass(frozen=True, kw_only=True)
class OddTask:
    """Changes to the task hello-world."""

    toml: str = ""
    files: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        shutil.copytree(TASKS / "hello-world", folder)
        if self.toml:
            (folder / "task.toml").write_text(self.toml)
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for path in self.removed:
            (folder / path).unlink()
        return folder


def test_all_values_of_a_task_are_read() -> None:
    task = read_task(TASKS / "custom-user")
    assert task.instruction == "Create /home/worker/report as the user worker.\n"
    assert (task.agent_network, task.verifier_network) == ("no-network", "no-network")
    assert (task.config.agent.user, task.config.verifier.user) == ("worker", "root")
    assert task.config.environment.env == {"REPORT_NAME": "${ASTRA_TEST_REPORT:-report}"}
    assert (task.has_dockerfile, task.has_solution, task.is_separate) == (True, True, False)
    separate = read_task(TASKS / "separate-verifier")
    assert separate.is_separate
    assert [(each.source, each.exclude) for each in separate.artifacts] == [("/app/out", ["*.tmp"])]


@pytest.mark.parametrize(
    ("toml", "left_out"), [("", {}), ("[verifier]\nenvironment_mode = 'separate'\n", {"task": "compose"})]
)
def test_a_compose_file_in_tests_is_data_of_a_shared_verifier(
    tmp_path: Path, toml: str, left_out: dict[str, str]
) -> None:
    OddTask(toml=toml, files={"tests/docker-compose.yml": "# data\n"}).write(tmp_path / "task")
    assert read_tasks(tmp_path).left_out == left_out


def test_old_keys_are_converted() -> None:
    environment = read_task(TASKS / "several-rewards").config.environment
    assert (environment.network_mode, environment.memory_mb, environment.storage_mb) == ("public", 1024, 2048)


def test_a_folder_is_read_in_the_order_of_names_and_a_task_alone() -> None:
    found = read_tasks(TASKS)
    assert len(found.tasks) == 13
    assert [task.id for task in found.tasks] == sorted(task.id for task in found.tasks)
    assert found.summary == ""
    assert [task.id for task in read_tasks(TASKS / "service").tasks] == ["service"]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (OddTask(files={"environment/docker-compose.yaml": "services: {}\n"}), "compose"),
        (OddTask(toml='[[steps]]\nname = "one"\n'), "steps"),
        (OddTask(toml="[environment]\ngpus = 1\n"), "gpu"),
        (OddTask(toml="[environment]\ntpu = {type = 'v4', topology = '2x2'}\n"), "tpu"),
        (OddTask(toml="[environment]\nos = 'Windows'\n"), "windows"),
        (OddTask(toml="[[environment.mcp_servers]]\nname = 'a'\n"), "mcp"),
        (OddTask(toml="[environment]\nskills_dir = '/skills'\n"), "skills"),
        (OddTask(toml="[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.b']\n"), "allowlist"),
        (OddTask(removed=("environment/Dockerfile",)), "no image"),
    ],
)
def test_unsupported_tasks_are_left_out_by_name(tmp_path: Path, odd: OddTask, reason: str) -> None:
    OddTask().write(tmp_path / "plain")
    odd.write(tmp_path / "odd")
    found = read_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["plain"]
    assert found.left_out == {"odd": reason}
    assert found.summary == f"1 of 2 tasks are left out: {reason} 1"


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (OddTask(toml="a = ["), "invalid TOML"),
        (
            OddTask(toml="[agent]\ntimeout_sec = 'long'\n"),
            r"Expected `float \| null`, got `str`.*timeout_sec",
        ),
        (OddTask(toml="[agent]\ntimeout_sec = nan\n"), r"Expected `float` > 0.*agent.timeout_sec"),
        (OddTask(toml="[agent]\ntimeout_sec = inf\n"), r"Expected `float` <= 1.*agent.timeout_sec"),
        (OddTask(toml="[environment]\nmemory_mb = 0\n"), r"Expected `int` >= 1.*memory_mb"),
        (OddTask(toml="[environment]\nmemory = 'much'\n"), "memory = 'much' is not a size such as '2G'"),
        (OddTask(toml="[environment]\nnetwork_mode = 'some'\n"), "Invalid enum value 'some'"),
        (
            OddTask(toml="[verifier]\nenvironment_mode = 'shared'\n[verifier.environment]\ncpus = 1\n"),
            "environment_mode = 'separate'",
        ),
        (OddTask(toml="artifacts = ['/app/../../etc/passwd']\n"), r"artifacts\[0\]|matching regex"),
        (OddTask(toml="artifacts = [{source = '..'}]\n"), "matching regex"),
        (OddTask(toml="[environment]\nworkdir = '../etc'\n"), "matching regex.*workdir"),
        (OddTask(toml="[environment]\ndocker_image = '--privileged ; rm -rf /'\n"), "matching regex"),
        (OddTask(files={"instruction.md": " \n"}), "instruction is empty"),
        (OddTask(removed=("tests/test.sh",)), "tests/test.sh is missing"),
        (OddTask(removed=("instruction.md",)), "instruction.md: No such file"),
    ],
)
def test_an_invalid_task_is_one_line_with_file_and_key(tmp_path: Path, odd: OddTask, message: str) -> None:
    with pytest.raises(ProblemsError, match=message) as raised:
        read_tasks(odd.write(tmp_path / "odd"))
    assert str(tmp_path / "odd") in str(raised.value)


def test_a_task_file_that_is_a_fifo_or_a_folder_blocks_nothing(tmp_path: Path) -> None:
    OddTask().write(tmp_path / "plain")
    for name in ("fifo", "folder"):
        path = OddTask(removed=("task.toml",)).write(tmp_path / name) / "task.toml"
        os.mkfifo(path) if name == "fifo" else path.mkdir()
        with pytest.raises(ProblemsError, match="not a regular file"):
            read_tasks(path.parent)
    assert len(read_tasks(tmp_path).left_out) == 2


def test_unknown_keys_of_used_tables_are_named(tmp_path: Path) -> None:
    toml = """
        [metadata]
        anything = 1
        [agent]
        timeout_secs = 3
        [environment]
        memory = "2G"
        gpu_types = ["T4"]
        env = {ANY = "x"}
        healthcheck = {command = "true", retry = 3}
        [verifier.environment]
        cpu = 1
        """
    (warning,) = read_task(OddTask(toml=toml).write(tmp_path / "odd")).warnings
    assert warning.endswith(": agent.timeout_secs, environment.healthcheck.retry, verifier.environment.cpu")


def test_a_folder_of_old_tasks_gets_the_command_that_converts_them(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "task.yaml").write_text("instruction: x\n")
    assert is_task_folder(tmp_path)
    with pytest.raises(ProblemsError, match="harbor tasks migrate"):
        read_tasks(tmp_path)


def test_an_invalid_task_of_a_folder_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    OddTask().write(tmp_path / "plain")
    OddTask(toml="a = [").write(tmp_path / "odd")
    found = read_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["plain"]
    assert found.left_out["odd"].startswith(f"invalid: {tmp_path}/odd/task.toml: invalid TOML")
    assert found.summary == "1 of 2 tasks are left out: invalid 1"


def test_a_link_to_a_file_of_the_task_is_a_copy_of_it(tmp_path: Path) -> None:
    linked, copied = (OddTask().write(tmp_path / name / "task") for name in ("linked", "copied"))
    (linked / "tests" / "again").symlink_to("../solution/solve.sh")
    shutil.copy(copied / "solution" / "solve.sh", copied / "tests" / "again")
    assert read_task(linked).sha256 == read_task(copied).sha256


def test_links_and_old_formats_are_refused(tmp_path: Path) -> None:
    folder = OddTask().write(tmp_path / "linked")
    (folder / "tests" / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(ProblemsError, match="only contain regular files"):
        read_task(folder)
    for target in ("loop", "../../linked/tests", "/etc", "missing"):
        (folder / "tests" / "passwd").unlink()
        (folder / "tests" / "passwd").symlink_to(target if target != "loop" else "passwd")
        with pytest.raises(ProblemsError, match="only contain regular files"):
            read_task(folder)
    old = tmp_path / "old" / "task"
    old.mkdir(parents=True)
    (old / "task.yaml").write_text("instruction: do\n")
    with pytest.raises(ProblemsError, match=r"task\.yaml is the old format"):
        read_tasks(tmp_path / "old")


def test_any_file_changes_the_hash_and_only_the_context_changes_the_image(tmp_path: Path) -> None:
    folder = OddTask().write(tmp_path / "hello")
    before = read_task(folder)
    image = agent_image(before)[0]
    (folder / "tests" / "test.sh").write_text("exit 1\n")
    after = read_task(folder)
    assert after.sha256 != before.sha256
    assert agent_image(after)[0] == image
    (folder / "environment" / "Dockerfile").write_text("FROM scratch\n")
    assert agent_image(read_task(folder))[0] != image


def test_leading_canary_lines_are_removed() -> None:
    text = "<!-- harbor-canary GUID x -->\n# canary y\n\n\nDo it.\n# canary stays\n"
    assert without_canary(text) == "Do it.\n# canary stays\n"
    assert without_canary("Do it.") == "Do it."


@pytest.mark.long
@pytest.mark.installs("harbor")
def test_harbors_own_models_read_the_same_values() -> None:
    paths = [task.folder / "task.toml" for task in read_tasks(TASKS).tasks]
    done = subprocess.run(
        [SCRIPT, "harbor", "-c", HARBOR, *paths], capture_output=True, text=True, timeout=600, check=False
    )
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip(f"harbor cannot be downloaded: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    for path, line in zip(paths, done.stdout.splitlines(), strict=True):
        ours = msgspec.to_builtins(parse_config(path.read_bytes(), str(path)))
        assert _common(ours, json.loads(line)) == []


def _common(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Return the places of task.toml's values that differ; only fields that both have are compared."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        shared = ours.keys() & theirs.keys()
        return [
            each for name in sorted(shared) for each in _common(ours[name], theirs[name], f"{place}.{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [each for at, (one, other) in pairs for each in _common(one, other, f"{place}[{at}]")]
    is_default = ours is None and theirs in ("public", None, [], {})  # our defaults are in properties
    return [] if is_default or ours == theirs else [f"{place}: {ours!r} and {theirs!r}"]
