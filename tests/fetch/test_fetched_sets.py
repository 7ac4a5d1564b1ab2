"""`astra fetch` and `--problems hf:...` as a user calls them; servers play the hub, a CDN and S3."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hub_server import NAME, Elsewhere, HubServer

from astra_async.cli import main
from astra_async.problems.fetched_folder import read_lock
from s3_server import s3_server
from waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOKEN = "hf_validSecretToken0123456789"
CSV = "project_questions.csv"


def zipped(text: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(zipfile.ZipInfo("hackerrank.yml"), "configuration: {scoring: {command: npm test}}")
        archive.writestr(zipfile.ZipInfo("a.js"), text)
    return data.getvalue()


def table(places: dict[str, str], header: str = "question_id,problem_statement,project_url") -> bytes:
    return "\n".join([header, *(f"{name},Write {name}.,{place}" for name, place in places.items())]).encode()


@dataclass
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING_FACE", "ASTRA_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("ASTRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def astra(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["astra", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capfd.readouterr()
        return Said(stopped.value.code if isinstance(stopped.value.code, int) else 0, out, err)

    return call


def three(hub: HubServer, **changed: bytes) -> str:
    """A revision of three problems, whose archives lie beside the CSV."""
    names = ("one", "two", "three")
    files = {f"zips/{name}.zip": changed.get(name, zipped(name)) for name in names}
    return hub.repository.push({CSV: table({name: f"zips/{name}.zip" for name in names}), **files})


def new_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another machine: nothing fetched before is known."""
    monkeypatch.setenv("ASTRA_CACHE", str(tmp_path / f"cache{time.monotonic_ns()}"))


# --- a set is fetched and pinned --------------------------------------------------------------------


def test_a_set_is_fetched_pinned_and_shown(tmp_path: Path, hub: HubServer, astra: Any) -> None:
    revision = three(hub)
    hub.repository.licence = "cc-by-4.0"
    said = astra("fetch", f"hf:{NAME}")
    assert said.code == 0, said.err
    assert "licence: cc-by-4.0" in said.out
    assert "Project questions" in said.out  # Table 1: it ends with `astra problems`
    assert revision in said.out
    lock = read_lock(tmp_path / "questions")
    assert lock is not None
    assert (lock.revision, lock.complete, len(lock.files)) == (revision, True, 3)
    assert sorted(path.name for path in (tmp_path / "questions").iterdir() if path.name[0] != ".") == [
        "fetch.lock.json",
        "project_questions.csv",
        "projects",
    ]
    assert (tmp_path / "questions/projects/two.zip").read_bytes() == zipped("two")


def test_the_papers_questions_have_a_name_and_a_set_without_a_licence_says_so(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    three(hub)
    hub.sets["hackerrank/astra-benchmark"] = hub.repository
    said = astra("fetch", "astra-v1")
    assert said.code == 0, said.err
    assert "licence: none stated by the publisher" in said.out
    assert (tmp_path / "astra-v1/fetch.lock.json").exists()


def test_the_page_of_a_set_stands_for_it_and_a_revision_can_be_named(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    first = three(hub)
    three(hub, one=zipped("newer"))
    assert astra("fetch", f"{hub.url}/datasets/{NAME}/tree/{first}", "--out", "pinned").code == 0
    assert (tmp_path / "pinned/projects/one.zip").read_bytes() == zipped("one")


def test_a_fetched_set_works_from_disk_without_any_server(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    new_cache(monkeypatch, tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    again = astra("fetch", f"hf:{NAME}", "--out", "questions")
    assert again.code == 0, again.err
    for problems in ("questions", f"questions/{CSV}"):
        said = astra("problems", "--problems", problems)
        assert said.code == 0, said.err
        assert "three" in said.out


def test_the_folder_may_be_moved_and_a_damaged_archive_is_told_and_repaired(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    moved = (tmp_path / "questions").rename(tmp_path / "elsewhere")
    (moved / "projects/two.zip").write_bytes(zipped("tampered"))
    said = astra("problems", "--problems", moved)
    assert said.code == 1
    assert "problem two" in said.out
    assert "differs from its pinned hash" in said.out
    assert astra("fetch", f"hf:{NAME}", "--out", moved).code == 0
    assert (moved / "projects/two.zip").read_bytes() == zipped("two")


def test_an_archive_that_has_gone_from_its_folder_is_told_and_brought_back(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    (tmp_path / "questions/projects/two.zip").unlink()
    said = astra("problems", "--problems", "questions")
    assert said.code == 1
    assert "problem two" in said.out
    assert "the file is missing or differs from its pinned hash" in said.out
    assert "unexpected" not in said.out
    assert astra("fetch", f"hf:{NAME}", "--out", "questions").code == 0
    assert (tmp_path / "questions/projects/two.zip").read_bytes() == zipped("two")


def test_a_csv_that_was_edited_in_its_folder_is_told(tmp_path: Path, hub: HubServer, astra: Any) -> None:
    three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    with (tmp_path / "questions" / CSV).open("ab") as file:
        file.write(b"\n")
    said = astra("problems", "--problems", "questions")
    assert said.code == 2
    assert "was changed since it was fetched" in said.err
    assert "copy your version elsewhere" in said.err
    assert astra("fetch", f"hf:{NAME}").code == 0
    assert astra("problems", "--problems", "questions").code == 0


# --- what changes at the source ---------------------------------------------------------------------


def test_a_newer_revision_is_told_and_only_taken_when_asked_for(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    first = three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    second = three(hub, two=zipped("newer"))
    said = astra("fetch", f"hf:{NAME}")
    assert "newer revision" in said.err
    assert second[:12] in said.err
    kept = read_lock(tmp_path / "questions")
    assert kept is not None
    assert kept.revision == first
    said = astra("fetch", f"hf:{NAME}", "--update")
    assert said.code == 0, said.err
    assert "changed since the last fetch: two\n" in said.err
    assert (tmp_path / "questions/projects/two.zip").read_bytes() == zipped("newer")


def test_an_archive_that_its_publisher_changed_is_refused_until_update(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    with Elsewhere({"/a.zip": zipped("1"), "/b.zip": zipped("1")}) as host:
        hub.repository.push({CSV: table({"a": f"{host.url}/a.zip", "b": f"{host.url}/b.zip"})})
        assert astra("fetch", f"hf:{NAME}").code == 0
        host.files["/a.zip"] = zipped("2")
        (tmp_path / "questions/projects/a.zip").unlink()
        said = astra("fetch", f"hf:{NAME}")
        assert said.code == 1
        assert "problem a" in said.err
        assert "its publisher changed it" in said.err
        assert "--update" in said.err
        assert astra("fetch", f"hf:{NAME}", "--update").code == 0
        assert (tmp_path / "questions/projects/a.zip").read_bytes() == zipped("2")


def test_another_set_does_not_go_into_the_same_folder(tmp_path: Path, hub: HubServer, astra: Any) -> None:
    three(hub)
    hub.sets["owner/other"] = hub.repository
    assert astra("fetch", f"hf:{NAME}", "--out", "set").code == 0
    said = astra("fetch", "hf:owner/other", "--out", "set")
    assert said.code == 2
    assert "choose another --out" in said.err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("x")
    said = astra("fetch", f"hf:{NAME}", "--out", "mine")
    assert said.code == 2
    assert "thesis.txt" in said.err


# --- the token --------------------------------------------------------------------------------------


def test_the_token_goes_to_the_hub_and_to_nobody_else(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.repository.private = True
    hub.repository.readers = frozenset({TOKEN})
    with Elsewhere({}) as cdn, Elsewhere({"/b.zip": zipped("b")}) as other:
        revision = hub.repository.push(
            {CSV: table({"a": "zips/a.zip", "b": f"{other.url}/b.zip"}), "zips/a.zip": zipped("a")}
        )
        hub.moved_to = cdn.url
        cdn.files = {
            f"/datasets/{NAME}/resolve/{revision}/{path}": content
            for path, content in hub.repository.revisions[revision].items()
        }
        said = astra("fetch", f"hf:{NAME}")
        assert said.code == 0, said.err
        assert "private: not for others" in said.out
        assert {token for _, token in hub.asked} == {f"Bearer {TOKEN}"}
        assert len(cdn.asked) == 2
        assert {token for _, token in cdn.asked + other.asked} == {""}
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN.encode() not in written
    assert TOKEN not in said.out + said.err


@pytest.mark.parametrize("place", ["HF_TOKEN_PATH", "HF_HOME", "login"])
def test_the_token_of_the_hubs_own_login_is_found(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    path = {
        "HF_TOKEN_PATH": tmp_path / "my token",
        "HF_HOME": tmp_path / "home/token",
        "login": tmp_path / "xdg/huggingface/token",
    }[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TOKEN + "\n")
    if place != "login":
        monkeypatch.setenv(place, str(path if place == "HF_TOKEN_PATH" else path.parent))
    three(hub)
    hub.repository.private = True
    hub.repository.readers = frozenset({TOKEN})
    assert astra("fetch", f"hf:{NAME}").code == 0


def test_a_netrc_of_the_hubs_host_is_not_in_the_tokens_way(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hf_validOther00000000000\n")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    three(hub)
    assert astra("fetch", f"hf:{NAME}").code == 0
    assert {token for _, token in hub.asked} == {f"Bearer {TOKEN}"}


# --- refusals: one line, with the remedy ------------------------------------------------------------


def nobody(hub: HubServer) -> None:
    del hub.sets[NAME]


def private(hub: HubServer) -> None:
    hub.repository.private = True


def gated(hub: HubServer) -> None:
    hub.repository.gated = "manual"


def without_csv(hub: HubServer) -> None:
    hub.repository.push({"README.md": b"nothing"})


def with_three_csvs(hub: HubServer) -> None:
    hub.repository.push({"a.csv": b"x", "b.csv": b"x", "c.csv": b"x"})


def down(hub: HubServer) -> None:
    hub.troubles = [503] * 20


@pytest.mark.parametrize(
    ("trouble", "source", "told"),
    [
        (nobody, f"hf:{NAME}", ("data set does not exist or is private", "HF_TOKEN")),
        (private, f"hf:{NAME}", ("data set does not exist or is private", "HF_TOKEN")),
        (gated, f"hf:{NAME}", ("gated", "accept its terms", "HF_TOKEN")),
        (without_csv, f"hf:{NAME}", ("no CSV in this data set",)),
        (with_three_csvs, f"hf:{NAME}", ("3 CSV files", f"hf:{NAME}/a.csv")),
        (lambda hub: None, f"hf:{NAME}@v9", ("revision does not exist", "omit @REVISION")),
        (lambda hub: None, f"hf:{NAME}/nothing.csv", ("has no such file at this revision",)),
        (lambda hub: None, "hf:not a name", ("hf:OWNER/NAME",)),
        (lambda hub: None, "questions.csv", ("--problems without fetching",)),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line_and_leaves_nothing(
    tmp_path: Path, hub: HubServer, astra: Any, trouble: Any, source: str, told: tuple[str, ...]
) -> None:
    three(hub)
    trouble(hub)
    said = astra("fetch", source)
    assert said.code in (1, 2)
    assert len(said.err.strip().splitlines()) == 1
    assert all(words in said.err for words in told), said.err
    assert not (tmp_path / "questions").exists()


def test_a_token_that_is_not_accepted_is_told(
    hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(hub)
    monkeypatch.setenv("HF_TOKEN", "hf_expired00000000000000")
    said = astra("fetch", f"hf:{NAME}")
    assert said.code == 1
    assert "the token is invalid" in said.err
    assert "hf_expired" not in said.err


def test_a_server_that_is_busy_for_a_moment_is_asked_again(hub: HubServer, astra: Any) -> None:
    three(hub)
    hub.troubles = [429, 500, 503]
    assert astra("fetch", f"hf:{NAME}").code == 0


def test_archives_that_do_not_come_are_named_and_come_with_the_same_command(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    with Elsewhere({"/a.zip": zipped("a"), "/html.zip": b"<html>log in</html>"}) as host:
        places = {name: f"{host.url}/{name}.zip" for name in ("a", "gone", "html")}
        hub.repository.push({CSV: table(places)})
        said = astra("fetch", f"hf:{NAME}")
        assert said.code == 1
        assert "astra: problem gone: " in said.err
        assert "404" in said.err
        assert "astra: problem html: " in said.err
        assert "HTML page, not an archive" in said.err
        assert "2 problems are incomplete" in said.err
        lock = read_lock(tmp_path / "questions")
        assert lock is not None
        assert ([each.problem_id for each in lock.files], lock.complete) == (["a"], False)
        assert "2 of 3 projects are not fetched yet" in astra("problems", "--problems", "questions").out
        host.files |= {"/gone.zip": zipped("g"), "/html.zip": zipped("h")}
        before = len(host.asked)
        assert astra("fetch", f"hf:{NAME}").code == 0
        assert {path for path, _ in host.asked[before:]} == {"/gone.zip", "/html.zip"}


def test_a_header_that_no_alias_fits_names_the_option_and_the_next_call_goes_on(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    header = "Nr,Aufgabe,Ablage"
    hub.repository.push({CSV: table({"a": "zips/a.zip"}, header), "zips/a.zip": zipped("a")})
    said = astra("fetch", f"hf:{NAME}")
    assert said.code == 2
    assert len(said.err.strip().splitlines()) == 1
    assert "columns found: Nr, Aufgabe, Ablage" in said.err
    assert "--column id=COLUMN" in said.err
    columns = ("--column", "id=Nr", "--column", "statement=Aufgabe", "--column", "project=Ablage")
    assert astra("fetch", f"hf:{NAME}", *columns).code == 0
    assert astra("problems", "--problems", "questions").code == 0  # the lock keeps them


def test_a_csv_from_elsewhere_names_no_files_of_this_machine(
    tmp_path: Path, hub: HubServer, astra: Any
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key.pem").write_text("x")
    hub.repository.push({CSV: table({"a": f"file://{tmp_path}/secret"})})
    for words in (("fetch", f"hf:{NAME}"), ("problems", "--problems", f"hf:{NAME}")):
        said = astra(*words)
        assert said.code == 2
        assert "is a local file" in said.err


# --- killed, and two at once ------------------------------------------------------------------------


def test_a_fetch_that_is_killed_goes_on_where_it_was(tmp_path: Path, hub: HubServer, astra: Any) -> None:
    names = [f"p{number}" for number in range(30)]
    files = {f"zips/{name}.zip": zipped(name) for name in names}
    hub.repository.push({CSV: table({name: f"zips/{name}.zip" for name in names}), **files})
    hub.seconds = 0.5
    command = [sys.executable, "-m", "astra_async", "fetch", f"hf:{NAME}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lock_path = tmp_path / "questions/fetch.lock.json"
    try:
        awaited(
            lambda: read_lock(lock_path.parent) if lock_path.exists() else None,
            "eight files",
            until=lambda lock: lock is not None and len(lock.files) >= 8,
        )
        hub.seconds = 600  # what it asks for from now on does not come
        other = astra("fetch", f"hf:{NAME}")
        assert other.code == 2
        assert "another `astra fetch` is filling" in other.err
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    lock = read_lock(lock_path.parent)
    assert lock is not None
    came = {each.problem_id for each in lock.files}
    assert 8 <= len(came) < 30
    assert all((lock_path.parent / each.path).read_bytes() == zipped(each.problem_id) for each in lock.files)
    hub.asked.clear()
    hub.seconds = 0
    said = astra("fetch", f"hf:{NAME}")
    assert said.code == 0, said.err
    asked = {path.rpartition("/")[2].removesuffix(".zip") for path in hub.paths() if path.endswith(".zip")}
    assert not asked & came
    lock = read_lock(lock_path.parent)
    assert lock is not None
    assert (len(lock.files), lock.complete) == (30, True)
    assert {path.name for path in (tmp_path / "questions/projects").iterdir()} == {f"{n}.zip" for n in names}


# --- S3, web addresses, skills ----------------------------------------------------------------------


def test_archives_in_s3_come_with_the_credentials_and_the_endpoint_of_the_settings(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3  # type: ignore[import-untyped]  # it comes with moto, without types

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
    with s3_server() as url:
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        client.create_bucket(Bucket="istreet-proctor")
        client.put_object(Bucket="istreet-proctor", Key="full/1/a.zip", Body=zipped("a"))
        (tmp_path / "s3.toml").write_text(f'[s3]\nendpoint_url = "{url}"\nregion = "us-east-1"\n')
        places = {
            "776090": "https://istreet-proctor.s3.amazonaws.com/full/1/a.zip",
            "2": "s3://istreet-proctor/full/1/none.zip",
        }
        hub.repository.push({CSV: table(places)})
        said = astra("fetch", f"hf:{NAME}", "--config", "s3.toml")
        assert said.code == 1
        assert "problem 2: s3://istreet-proctor/full/1/none.zip: object not found" in said.err
        assert (tmp_path / "questions/projects/776090.zip").read_bytes() == zipped("a")


def test_a_csv_at_a_web_address_is_fetched_or_used_as_it_is(
    tmp_path: Path, hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.plain = {"/sets/mine.csv": table({"a": "zips/a.zip"}), "/sets/zips/a.zip": zipped("a")}
    address = f"{hub.url}/sets/mine.csv?signature=abc123def456"
    said = astra("problems", "--problems", address)
    assert said.code == 0, said.err
    said = astra("fetch", address)
    assert said.code == 0, said.err
    assert "licence: unknown" in said.out
    lock = (tmp_path / "mine/fetch.lock.json").read_text()
    assert "abc123def456" not in lock + said.out + said.err
    hub.plain["/sets/mine.csv"] = b"<!doctype html><title>Log in</title>"
    new_cache(monkeypatch, tmp_path)
    said = astra("problems", "--problems", address)
    assert said.code == 2
    assert "is an HTML page, not a CSV" in said.err


def test_skills_of_a_file_of_their_own_are_added_by_id(tmp_path: Path, hub: HubServer, astra: Any) -> None:
    three(hub)
    (tmp_path / "skills.csv").write_text("id,main skill,sub-skills\none,React,a;b\ntwo,Node,\nnobody,Ruby,\n")
    said = astra("fetch", f"hf:{NAME}", "--skills", "skills.csv")
    assert said.code == 0, said.err
    record = tmp_path / "found.json"
    said = astra("problems", "--problems", "questions", "--json", record)
    found = {each["id"]: each for each in json.loads(record.read_text())["problems"]}
    assert (found["one"]["main_skill"], found["one"]["sub_skills"]) == ("React", ["a", "b"])
    assert found["two"]["main_skill"] == "Node"
    assert found["three"]["main_skill"] == ""
    assert "1 ids are not in the problem set" in said.out
    (tmp_path / "skills.csv").write_text("id,main_skill\nnobody,Ruby\n")
    said = astra("problems", "--problems", "questions", "--skills", "skills.csv")
    assert said.code == 2
    assert "none of its 1 ids" in said.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,main_skill\na,b\n", "no column for id"),
        ("id,colour\na,b\n", "no column main_skill or sub_skills"),
        ("id,main_skill\none,a\none,b\n", "line 3: 'one' appears twice"),
    ],
)
def test_a_mistake_in_the_skills_is_told_before_anything_is_kept(
    tmp_path: Path, hub: HubServer, astra: Any, text: str, told: str
) -> None:
    three(hub)
    (tmp_path / "skills.csv").write_text(text)
    said = astra("fetch", f"hf:{NAME}", "--skills", "skills.csv")
    assert said.code == 2
    assert told in said.err
    assert not (tmp_path / "questions/skills.csv").exists()


def test_with_the_hub_offline_what_was_loaded_before_is_used(
    hub: HubServer, astra: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(hub)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = astra("problems", "--problems", f"hf:{NAME}")
    assert said.code == 1
    assert "unset HF_HUB_OFFLINE" in said.err
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert astra("problems", "--problems", f"hf:{NAME}").code == 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.asked.clear()
    assert astra("problems", "--problems", f"hf:{NAME}").code == 0
    assert not hub.asked
