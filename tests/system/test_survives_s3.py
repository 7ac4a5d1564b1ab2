"""The whole program with projects in S3 that are missing, change under it, or come slowly or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from nasty_server import NastyServer, answers
from s3_server import s3_server
from s3_trouble import S3Trouble, cut, expired, trickled, whole
from small_problems import write_problems
from waiting import awaited
from whole_runs import Beside, Run, finished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_trouble import Way

IDS = ("p", "q")
BUCKET = "questions"


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def s3(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the server; the program finds the server and the credentials in the environment."""
    import boto3  # type: ignore[import-untyped]  # it comes with moto, without types

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    client = boto3.client("s3", endpoint_url=moto_url)
    client.create_bucket(Bucket=BUCKET)
    return client


def a_run(folder: Path, server: NastyServer, prefix: str, ids: tuple[str, ...] = IDS) -> Run:
    """The projects are named as objects below a prefix of the bucket; none is uploaded yet."""
    problems = write_problems(folder, ids, "any")
    text = problems.read_text()
    for name in ids:
        text = text.replace(f",{name},bash", f",s3://{BUCKET}/{prefix}/{name}.zip,bash")
    problems.write_text(text)
    options = ("--generate-only",)
    return Run(
        folder=folder,
        problems=problems,
        base_url=server.base_url,
        problem_ids=ids,
        samples=2,
        options=options,
    )


def upload(s3: Any, folder: Path, prefix: str, name: str) -> None:
    archive = shutil.make_archive(str(folder / f"{name}-zipped"), "zip", folder / name)
    s3.upload_file(archive, BUCKET, f"{prefix}/{name}.zip")


def test_a_missing_object_leaves_its_problem_missing_until_it_is_there(tmp_path: Path, s3: Any) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, "missing")
        upload(s3, tmp_path, "missing", "p")
        said = run.finish(code=1)
        assert "2 samples missing: " in said
        assert "missing/q.zip: object not found" in said
        run.check_end(missing=2, of="completions.jsonl")
        assert {line["problem_id"] for line in run.lines("completions.jsonl")} == {"p"}
        upload(s3, tmp_path, "missing", "q")
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}


def test_an_object_that_changed_is_refused_with_the_difference_and_nothing_is_asked(
    tmp_path: Path, s3: Any
) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, "changed")
        for name in IDS:
            upload(s3, tmp_path, "changed", name)
        run.finish()
        (tmp_path / "q" / "README.md").write_text("# Another question\n")
        upload(s3, tmp_path, "changed", "q")
        run.samples = 4
        said = run.finish(code=2)
        assert "problem q has results with other settings (project_sha256: " in said
        errors = [
            line for line in said.splitlines() if not line.endswith("problems are ready")
        ]  # if it took long
        assert len(errors) == 1
        assert server.asked.total() == 4
        shutil.rmtree(tmp_path / "q")
        shutil.unpack_archive(tmp_path / "p-zipped.zip", tmp_path / "q")  # both were the same
        upload(s3, tmp_path, "changed", "q")
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}


def test_a_body_that_comes_slowly_or_is_cut_is_waited_for_and_the_run_completes(
    tmp_path: Path, s3: Any, moto_url: str
) -> None:
    def script(path: str, times: int) -> Way:
        if path.endswith("q.zip"):
            return cut if times < 3 else whole
        return trickled(3.0)

    with NastyServer(lambda _, __: answers()) as server, S3Trouble(moto_url, script) as trouble:
        run = a_run(tmp_path, server, "slow")
        run.environ = {"AWS_ENDPOINT_URL_S3": trouble.url}
        for name in IDS:
            upload(s3, tmp_path, "slow", name)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert sorted(trouble.asked.values()) == [1, 3]


def test_credentials_that_expire_are_one_line_and_fresh_ones_resume(
    tmp_path: Path, s3: Any, moto_url: str
) -> None:
    ids = ("p", "q", "r", "s")
    with (
        NastyServer(lambda _, __: answers()) as server,
        S3Trouble(moto_url, lambda path, _: whole if path.endswith("p.zip") else expired) as trouble,
    ):
        run = a_run(tmp_path, server, "expired", ids)
        run.environ = {"AWS_ENDPOINT_URL_S3": trouble.url, "AWS_SESSION_TOKEN": "old"}
        for name in ids:
            upload(s3, tmp_path, "expired", name)
        said = run.finish(code=1)
        (line,) = [line for line in said.splitlines() if "missing" in line]
        assert line.startswith(f"6 samples missing: s3://{BUCKET}/expired/")
        assert "and 2 more problems: the credentials have expired (ExpiredToken); renew AWS_*" in line
        run.check_end(missing=6, of="completions.jsonl")
        trouble.script = lambda _, __: expired  # now they are over for all that is checked again, too
        recorded = (run.out / "completions.jsonl").read_bytes()
        run.finish(code=1)
        assert (run.out / "completions.jsonl").read_bytes() == recorded
        trouble.script = lambda _, __: whole
        run.environ = {"AWS_ENDPOINT_URL_S3": trouble.url, "AWS_SESSION_TOKEN": "fresh"}
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}


def test_a_signal_while_projects_are_fetched_stops_at_once_and_leaves_nothing(
    tmp_path: Path, s3: Any, moto_url: str
) -> None:
    with (
        NastyServer(lambda _, __: answers()) as server,
        S3Trouble(moto_url, lambda _, __: trickled(120.0)) as trouble,
    ):
        run = a_run(tmp_path, server, "stopped")
        run.environ = {"AWS_ENDPOINT_URL_S3": trouble.url}
        for name in IDS:
            upload(s3, tmp_path, "stopped", name)
        process = run.start()
        awaited(lambda: trouble.asked.total() == 2, "both downloads")
        with Beside() as beside:
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            said = finished(process, 143)
            took_s = time.monotonic() - began
        assert beside.allows(took_s, 2.0)
        assert said.startswith("stopped before the first request; start again with: astra run --problems ")
        assert not run.out.exists()
        assert not server.asked
