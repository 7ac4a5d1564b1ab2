"""Where a set of problems comes from when it is no file of this machine: a name, the hub, a web address.

astra-v1                                  a name that is known here
hf:OWNER/NAME[@REVISION][/FILE.csv]       a data set of the Hugging Face hub; `hf://datasets/...` too
https://host/path/problems.csv            any CSV; the page of a data set on the hub stands for the set
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from astra_async.errors import UsageError
from astra_async.redaction import public_url

if TYPE_CHECKING:
    from collections.abc import Mapping


# Line ends, tabs and form feeds stand in sources, and the end mark of DOS; other controls in binary files.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_MOST_NOT_ASCII = 0.3  # of the characters; western languages have some 5 %


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, and what it was saved in where that is not UTF-8."""

    text: str
    encoding: str = ""


def source_text(content: bytes) -> SourceText | None:
    """The text of a file; None where it is binary.

    It is UTF-8, UTF-16 with a byte-order mark, or else windows-1252: that of western Windows, which holds
    Latin-1's letters. Other encodings read like the last one where little of the text is not ASCII, so that
    whoever shows it has to say what it was taken for.
    """
    if b"\0" not in content:
        try:
            return SourceText(content.decode())
        except UnicodeDecodeError:
            pass
    is_marked = content.startswith(_UTF_16)
    encoding = "UTF-16" if is_marked else "windows-1252"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    is_guessed_wrong = not is_marked and len(_NOT_ASCII.findall(text)) > _MOST_NOT_ASCII * len(text)
    return None if is_guessed_wrong or _CONTROLS.search(text) else SourceText(text, encoding)


def as_utf8(content: bytes) -> bytes:
    """A file's bytes with its text in UTF-8; those of a binary one as they are."""
    found = source_text(content)
    return found.text.encode() if found and found.encoding else content


# The paper's own questions, as their publisher put them on the hub.
NAMED: Mapping[str, str] = {"astra-v1": "hf:hackerrank/astra-benchmark/project_questions.csv"}

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_HUB = re.compile(
    rf"(?:hf://datasets/|hf:)(?P<name>{_PART}/{_PART})(?:@(?P<revision>[^/@\s]{{1,200}}))?(?:/(?P<file>[^\s].*))?"
)
_PAGE = re.compile(
    rf"/datasets/(?P<name>{_PART}/{_PART})(?:/(?:tree|blob|resolve|raw)/(?P<revision>[^/]+)(?:/(?P<file>.+))?)?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSet:
    """A data set of the hub; without a revision the newest, without a file the one CSV in it."""

    name: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf:{self.name}{revision}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebCsv:
    """A CSV at a web address, which may hold a signature: `str` leaves that out."""

    url: str

    def __str__(self) -> str:
        return public_url(self.url)


Source = HubSet | WebCsv


def parse_source(text: str, endpoint: str) -> Source | None:
    """What a text names that is not on this machine; None for what looks like a path.

    Args:
        text: as typed for `--problems` or `astra fetch`.
        endpoint: the hub's address; pages below it stand for their data set.

    Raises:
        UsageError: meant for the hub, and misspelt.
    """
    text = NAMED.get(text.strip(), text.strip())
    if text.lower().startswith(("https://", "http://")):
        return _from_web(text, endpoint)
    if not text.startswith("hf:"):
        return None
    found = _HUB.fullmatch(text)
    if not found or ".." in (found["file"] or "").split("/"):
        raise UsageError(f"{text[:200]}: write a data set as hf:OWNER/NAME[@REVISION][/FILE.csv]")
    return HubSet(name=found["name"], revision=found["revision"], file=found["file"])


def short_name(text: str, source: Source) -> str:
    """The folder that a set is fetched into when nobody names one."""
    if text.strip() in NAMED:
        return text.strip()
    if isinstance(source, HubSet):
        return source.name.partition("/")[2]
    stem = unquote(urlsplit(source.url).path).rstrip("/").rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-") or "problems"


def folder_of(url: str) -> str:
    """What relative locations in a CSV at this address start from."""
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rpartition("/")[0], query="", fragment="").geturl()


def resolve_url(endpoint: str, hub_set: HubSet) -> str:
    """The address of a set's file at its revision."""
    revision, file = quote(hub_set.revision or "main", safe=""), quote(hub_set.file or "")
    return f"{endpoint}/datasets/{hub_set.name}/resolve/{revision}/{file}"


def _from_web(text: str, endpoint: str) -> Source:
    parts, hub = urlsplit(text), urlsplit(endpoint)
    if (parts.hostname, parts.port) == (hub.hostname, hub.port) and parts.path.startswith(hub.path):
        found = _PAGE.fullmatch(parts.path.removeprefix(hub.path))
        if found:
            file = unquote(found["file"]) if found["file"] else None
            revision = unquote(found["revision"]) if found["revision"] else None
            return HubSet(name=found["name"], revision=revision, file=file)
    return WebCsv(url=text)
