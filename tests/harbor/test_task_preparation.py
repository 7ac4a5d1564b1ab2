from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import ProjectError
from astra_async.harbor.task import read_tasks
from astra_async.harbor.task_preparation import filled, prepare_tasks
from astra_async.prepare import problem_part
from astra_async.running.problem_set import tasks_as_problems
from astra_async.types.task_work import TaskSettings

if TYPE_CHECKING:
    from astra_async.prepare import Prepared

TASKS = Path(__file__).parent.parent / "data" / "harbor" / "tasks"


def prepared(folder: Path, settings: TaskSettings | None = None) -> tuple[Prepared | None, str]:
    """A task made ready, or the reason why it is not."""
    problems = tasks_as_problems(read_tasks(folder)).problems
    ready, failed = prepare_tasks(problems, settings or TaskSettings(), ("shell",))
    return next(iter(ready.values()), None), "".join(map(str, failed.values()))


def changed(tmp_path: Path, text: str) -> Path:
    """A copy of hello-world with more text in task.toml."""
    folder = tmp_path / "hello-world"
    shutil.copytree(TASKS / "hello-world", folder)
    with (folder / "task.toml").open("a") as stream:
        stream.write(text)
    return folder


def test_a_task_becomes_what_its_samples_need() -> None:
    found, why = prepared(TASKS / "custom-user")
    assert (why, found is not None) == ("", True)
    assert found
    assert found.task
    task = found.task
    assert (task.agent.user, task.agent.workdir, task.verifier_user) == ("worker", "/home/worker", "root")
    assert task.agent.environment == {"REPORT_NAME": "report"}
    assert task.verifier_variables == {"OWNER": "worker"}
    assert (task.agent.rights, task.agent.network, task.verifier) == (False, False, None)
    assert found.prompts["shell"].text == found.problem.statement
    assert {path: mode for path, (_, mode) in task.tests.items()} == {"/tests/test.sh": 0o755}
    assert list(task.solution) == ["/solution/solve.sh"]


def test_the_network_takes_consent_which_belongs_to_the_fingerprint() -> None:
    nothing, why = prepared(TASKS / "several-rewards")
    assert nothing is None
    assert "--allow-network" in why
    found, _ = prepared(TASKS / "several-rewards", TaskSettings(allow_network=True))
    assert found
    assert found.task
    assert (found.task.agent.network, found.task.agent.connected) == (True, True)
    part = problem_part(found)
    assert (part["allow_network"], part["allow_root"]) == (True, False)
    assert found.task.agent.memory_bytes == 1024**3


def test_minutes_of_the_command_line_replace_the_time_limit_of_the_task() -> None:
    for settings, seconds in ((TaskSettings(), 3), (TaskSettings(minutes=2.0), 120)):
        found, _ = prepared(TASKS / "agent-timeout", settings)
        assert found
        assert found.task
        assert found.task.agent_s == seconds


def test_the_multiplier_changes_the_limits_of_agent_and_verifier() -> None:
    found, _ = prepared(TASKS / "agent-timeout", TaskSettings(times=2.0))
    assert found
    assert found.task
    assert (found.task.agent_s, found.task.verifier_s) == (6, 1200)
    part = problem_part(found)
    assert (part["agent_s"], part["verifier_s"]) == (6, 1200)


def test_an_own_image_of_the_verifier_has_the_tests_and_its_own_settings(tmp_path: Path) -> None:
    environment = 'docker_image = "x:1"\nnetwork_mode = "no-network"\nenv = { A = "1" }\ncpus = 2'
    found, why = prepared(changed(tmp_path, f"[verifier.environment]\n{environment}"))
    assert found, why
    task = found.task
    assert task
    assert task.verifier
    assert (list(task.images)[1:], task.images["x:1"], dict(task.tests)) == (["x:1"], None, {})
    assert (task.verifier.image, task.verifier.environment, task.verifier.cpus) == ("x:1", {"A": "1"}, 2)
    assert (task.agent.image, task.agent.environment) == ("", {})


def test_tests_with_a_dockerfile_are_built_and_snapshots_are_prepared() -> None:
    found, why = prepared(TASKS / "verifier-image")
    assert found, why
    task = found.task
    assert task
    assert task.verifier
    names = [name.partition(":")[0] for name in task.images]
    assert names == ["astra/task-verifier-image", "astra/task-verifier-image-verifier"]
    assert all(task.images.values())
    assert task.verifier.image == list(task.images)[1]
    assert [each.command for each in task.collecting] == [
        "mkdir -p /app/out && cp /app/state /app/out/snapshot"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[solution]\nenv = { KEY = "${MY_API_KEY}" }', "MY_API_KEY, which may hold a key"),
        ('[solution]\nenv = { A = "${ASTRA_NOT_SET_HERE}" }', "not set: export ASTRA_NOT_SET_HERE=..."),
    ],
)
def test_a_task_that_asks_for_more_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    nothing, said = prepared(changed(tmp_path, text))
    assert nothing is None
    assert why in said


def test_a_key_never_enters_a_container_even_if_its_variable_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    nothing, said = prepared(changed(tmp_path, '[solution]\nenv = { A = "${OPENAI_API_KEY:-none}" }'))
    assert nothing is None
    assert "sk-0123456789" not in said


def test_a_variable_may_be_empty() -> None:
    values = {"A": "${EMPTY}", "B": "${EMPTY:-default}", "C": "<${UNSET:-}>"}
    assert filled(values, {"EMPTY": ""}, "t") == {"A": "", "B": "default", "C": "<>"}
    with pytest.raises(ProjectError, match=r"not set: export UNSET=\.\.\. OTHER=\.\.\.$"):
        filled({"A": "${UNSET}", "B": "${OTHER}${UNSET}"}, {"EMPTY": ""}, "t")
