"""Hugging Face Hub: settings from the environment, authentication, and data set descriptions.

`HF_ENDPOINT` is the Hub's URL, or that of a mirror. `HF_TOKEN` is the token; the default is the file that
`hf auth login` writes. `HF_HUB_OFFLINE` disables requests. The `huggingface_hub` library is not used: it
brings 30 packages for two GET requests, and bypasses this package's limits, cache and retries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from astra_async.errors import ConfigError, SourceError
from astra_async.redaction import register_secret
from astra_async.types.declarations import is_http_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

    from astra_async.problems.sources import HubSet

_PUBLIC = "https://huggingface.co"
_PREFERRED = ("project_questions.csv", "problems.csv", "questions.csv")
_REVISION = re.compile(r"[0-9a-f]{7,64}")
_MOST_CODE_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Connection settings of the Hub; the token is never shown, `offline` disables requests."""

    endpoint: str = _PUBLIC
    token: str = field(default="", repr=False)
    offline: bool = False

    def is_at(self, url: str) -> bool:
        """Return True if a URL has the Hub's scheme, host and port."""
        return _origin(url) == _origin(self.endpoint)

    def middleware(self) -> ClientMiddlewareType:
        """Return middleware that adds the token to requests to the Hub.

        Invariant: each redirect is checked as a separate request, so no other host receives the token.
        The Hub receives it only over https or on the local machine.
        """

        async def with_token(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
            if self.token and self.is_at(str(request.url)) and _is_private(str(request.url)):
                request.headers["Authorization"] = f"Bearer {self.token}"
            return await handler(request)

        return with_token


@dataclass(frozen=True, slots=True, kw_only=True)
class HubInfo:
    """The Hub's description of a data set; `licence` is '' if the publisher states none."""

    revision: str
    licence: str
    gated: bool
    private: bool
    files: tuple[str, ...]


def hub_of(environ: Mapping[str, str]) -> Hub:
    """Read the Hub's settings from the environment. Raises ConfigError for an invalid HF_ENDPOINT."""
    endpoint = (environ.get("HF_ENDPOINT") or _PUBLIC).rstrip("/")
    if not is_http_url(endpoint):
        raise ConfigError("HF_ENDPOINT is invalid; use an http:// or https:// URL without user and password")
    token = "".join((environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or "").split())
    token = token or _stored_token(environ)
    register_secret(token)
    offline = environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    return Hub(endpoint=endpoint, token=token, offline=offline)


def info_url(endpoint: str, hub_set: HubSet) -> str:
    """Return the API URL that describes a data set, at its revision if one is given."""
    at = f"/revision/{quote(hub_set.revision, safe='')}" if hub_set.revision else ""
    return f"{endpoint}/api/datasets/{hub_set.name}{at}"


def read_info(value: Any, where: str) -> HubInfo:
    """Parse the Hub's description of a data set. Raises SourceError if it is malformed."""
    revision = value.get("sha") if isinstance(value, dict) else None
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise SourceError("the response does not describe a data set; check HF_ENDPOINT", where=where)
    siblings = value.get("siblings") or []
    names = [each.get("rfilename") for each in siblings if isinstance(each, dict)]
    return HubInfo(
        revision=revision,
        licence=_licence(value),
        gated=value.get("gated") not in (False, None),
        private=value.get("private") is True,
        files=tuple(name for name in names if isinstance(name, str)),
    )


def choose_csv(hub_set: HubSet, info: HubInfo) -> str:
    """Return the data set's problems CSV. Raises SourceError listing the candidates if it is ambiguous."""
    if hub_set.file:
        return hub_set.file
    found = [name for name in info.files if name.lower().endswith((".csv", ".tsv"))]
    usual = [name for name in _PREFERRED if name in found]
    if len(found) == 1 or usual:
        return (usual or found)[0]
    if not found:
        raise SourceError("no CSV in this data set; name another data set", where=f"hf:{hub_set.name}")
    names = ", ".join(name[:60] for name in found[:10]) + (" ..." if len(found) > 10 else "")  # noqa: PLR2004
    raise SourceError(
        f"the data set has {len(found)} CSV files ({names}); name one: hf:{hub_set.name}/{found[0]}",
        where=f"hf:{hub_set.name}",
    )


def refusal(status: int, headers: Mapping[str, str]) -> str:
    """Return the reason and remedy for the Hub's error code; '' if the response is not from the Hub."""
    code = headers.get("X-Error-Code", "")
    if "Invalid credentials" in headers.get("X-Error-Message", ""):
        return "the token is invalid; renew HF_TOKEN (or `hf auth login`), or unset it for a public set"
    if "disabled" in headers.get("X-Error-Message", ""):
        return "the hub has disabled this data set"
    return {
        "GatedRepo": "the data set is gated; log in, accept its terms on its page, and set HF_TOKEN to a"
        " token of that account",
        "RepoNotFound": "the data set does not exist or is private; check the name, or set HF_TOKEN to a"
        " token of an account that may read it",
        "RevisionNotFound": "the revision does not exist; omit @REVISION for the newest",
        "EntryNotFound": "the data set has no such file at this revision; check its name",
    }.get(code, "") or (f"the Hub responded {code[:60]}" if code and status >= 400 else "")  # noqa: PLR2004 - HTTP


def _stored_token(environ: Mapping[str, str]) -> str:
    """Return the token stored by `hf auth login`; search the paths that huggingface_hub uses."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~") / ".cache")
    home = environ.get("HF_HOME") or str(Path(cache) / "huggingface")
    path = Path(environ.get("HF_TOKEN_PATH") or Path(home) / "token").expanduser()
    try:
        return "".join(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError, RuntimeError):
        return ""


def _licence(value: Mapping[str, Any]) -> str:
    card = value.get("cardData")
    stated = card.get("license_name") or card.get("license") if isinstance(card, dict) else None
    if isinstance(stated, list):
        stated = ", ".join(map(str, stated))
    tags = value.get("tags") if isinstance(value.get("tags"), list) else []
    tagged = next((str(tag) for tag in tags or () if str(tag).startswith("license:")), "")
    return str(stated or tagged.removeprefix("license:"))[:_MOST_CODE_POINTS]


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _is_private(url: str) -> bool:
    """Return True if the URL uses https or is on the local machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in {"localhost", "127.0.0.1", "::1"}
