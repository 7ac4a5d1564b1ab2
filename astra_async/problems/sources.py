"""Parse the name of a remote problem set: an alias, a Hugging Face Hub data set, or a URL.

astra-v1                                  an alias, see NAMED
hf:OWNER/NAME[@REVISION][/FILE.csv]       a Hub data set; `hf://datasets/...` is equivalent
https://host/path/problems.csv            any CSV; the URL of a Hub data set's page means the data set
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


# Text files may contain line ends, tabs, form feeds and the DOS end-of-file mark; other controls are binary.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_MOST_NOT_ASCII = 0.3  # share of the characters; Western languages have about 5 %


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, and its encoding if that is not UTF-8."""

    text: str
    encoding: str = ""


def source_text(content: bytes) -> SourceText | None:
    """Decode a file; return None if it is binary.

    The encoding is UTF-8, UTF-16 with a byte-order mark, or windows-1252 (a superset of Latin-1). Text in
    another 8-bit encoding is decoded as windows-1252 if it is mostly ASCII, so callers have to tell the user
    which encoding was assumed.
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
    """Return a text file's content encoded as UTF-8; return binary content unchanged."""
    found = source_text(content)
    return found.text.encode() if found and found.encoding else content


# The paper's questions, as published on the Hub.
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
    """A Hub data set; the default revision is the newest, the default file is the only CSV."""

    name: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf:{self.name}{revision}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebCsv:
    """A CSV at a URL; `str` omits a signature in the URL."""

    url: str

    def __str__(self) -> str:
        return public_url(self.url)


Source = HubSet | WebCsv


def parse_source(text: str, endpoint: str) -> Source | None:
    """Parse the name of a remote problem set; return None if the text looks like a path.

    Args:
        text: the value of `--problems` or the argument of `astra fetch`.
        endpoint: the Hub's URL; a data set's page below it means the data set.

    Raises:
        UsageError: the text begins with `hf:` but is malformed.
    """
    text = NAMED.get(text.strip(), text.strip())
    if text.lower().startswith(("https://", "http://")):
        return _from_web(text, endpoint)
    if not text.startswith("hf:"):
        return None
    found = _HUB.fullmatch(text)
    if not found or ".." in (found["file"] or "").split("/"):
        raise UsageError(f"{text[:200]} is malformed; write hf:OWNER/NAME[@REVISION][/FILE.csv]")
    return HubSet(name=found["name"], revision=found["revision"], file=found["file"])


def short_name(text: str, source: Source) -> str:
    """Return the default folder name for a fetched set."""
    if text.strip() in NAMED:
        return text.strip()
    if isinstance(source, HubSet):
        return source.name.partition("/")[2]
    stem = unquote(urlsplit(source.url).path).rstrip("/").rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-") or "problems"


def folder_of(url: str) -> str:
    """Return the URL that relative locations in a CSV at `url` are resolved against."""
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rpartition("/")[0], query="", fragment="").geturl()


def resolve_url(endpoint: str, hub_set: HubSet) -> str:
    """Return the download URL of a data set's file at its revision."""
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
