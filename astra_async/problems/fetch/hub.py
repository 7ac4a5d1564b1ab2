"""The Hugging Face hub: its own variables, its token and to whom that is sent, what it says of a data set.

`HF_ENDPOINT` is its address (or a mirror's), `HF_TOKEN` a token, else the file that `hf auth login` writes;
`HF_HUB_OFFLINE` keeps us from asking it. Its client library brings 30 packages for what are two GET requests
here, and would load files past the bounds, the cache and the retries of this package.
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
    """Which hub is asked, and with what token (never shown); with `offline` it is not asked at all."""

    endpoint: str = _PUBLIC
    token: str = field(default="", repr=False)
    offline: bool = False

    def is_at(self, url: str) -> bool:
        """Whether an address is the hub's own: scheme, host and port are equal."""
        return _origin(url) == _origin(self.endpoint)

    def middleware(self) -> ClientMiddlewareType:
        """Adds the token to requests to the hub itself, looked at one by one.

        Invariant: what a redirect leads to is a request of its own, so that no other host gets the token;
        neither does the hub itself over a plain connection to another machine.
        """

        async def with_token(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
            if self.token and self.is_at(str(request.url)) and _is_private(str(request.url)):
                request.headers["Authorization"] = f"Bearer {self.token}"
            return await handler(request)

        return with_token


@dataclass(frozen=True, slots=True, kw_only=True)
class HubInfo:
    """What the hub says of a data set: `licence` is '' where its publisher states none."""

    revision: str
    licence: str
    gated: bool
    private: bool
    files: tuple[str, ...]


def hub_of(environ: Mapping[str, str]) -> Hub:
    """The hub as its own variables describe it. Raises ConfigError for an HF_ENDPOINT that is no address."""
    endpoint = (environ.get("HF_ENDPOINT") or _PUBLIC).rstrip("/")
    if not is_http_url(endpoint):
        raise ConfigError("HF_ENDPOINT: an http:// or https:// URL without user and password is expected")
    token = "".join((environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or "").split())
    token = token or _stored_token(environ)
    register_secret(token)
    offline = environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    return Hub(endpoint=endpoint, token=token, offline=offline)


def info_url(endpoint: str, hub_set: HubSet) -> str:
    """Where the hub tells of a data set, at a revision if one is named."""
    at = f"/revision/{quote(hub_set.revision, safe='')}" if hub_set.revision else ""
    return f"{endpoint}/api/datasets/{hub_set.name}{at}"


def read_info(value: Any, where: str) -> HubInfo:
    """The hub's description of a data set. Raises SourceError for what is none."""
    revision = value.get("sha") if isinstance(value, dict) else None
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise SourceError("the answer is no description of a data set; check HF_ENDPOINT", where=where)
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
    """The file of the set that holds its problems. Raises SourceError naming what there is."""
    if hub_set.file:
        return hub_set.file
    found = [name for name in info.files if name.lower().endswith((".csv", ".tsv"))]
    usual = [name for name in _PREFERRED if name in found]
    if len(found) == 1 or usual:
        return (usual or found)[0]
    if not found:
        raise SourceError("it holds no CSV of problems; name another data set", where=f"hf:{hub_set.name}")
    names = ", ".join(name[:60] for name in found[:10]) + (" ..." if len(found) > 10 else "")  # noqa: PLR2004
    raise SourceError(
        f"it holds {len(found)} CSV files ({names}); name one: hf:{hub_set.name}/{found[0]}",
        where=f"hf:{hub_set.name}",
    )


def refusal(status: int, headers: Mapping[str, str]) -> str:
    """What the hub means by refusing, by the codes that it sends; '' when the answer is not the hub's."""
    code = headers.get("X-Error-Code", "")
    if "Invalid credentials" in headers.get("X-Error-Message", ""):
        return "the token is not accepted; renew HF_TOKEN (or `hf auth login`), or unset it for a public set"
    if "disabled" in headers.get("X-Error-Message", ""):
        return "the hub has disabled this data set"
    return {
        "GatedRepo": "the data set is gated: accept its terms on its page, logged in, and set HF_TOKEN to a"
        " token of that account",
        "RepoNotFound": "there is no such data set, or it is private: check the name, or set HF_TOKEN to a"
        " token of an account that may read it",
        "RevisionNotFound": "there is no such revision; leave @REVISION out for the newest",
        "EntryNotFound": "there is no such file in the data set at this revision; check its name",
    }.get(code, "") or (f"the hub says {code[:60]}" if code and status >= 400 else "")  # noqa: PLR2004 - HTTP


def _stored_token(environ: Mapping[str, str]) -> str:
    """The token that the hub's own login has stored, where its own client looks for it."""
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
    """Whether nobody on the way can read along."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in {"localhost", "127.0.0.1", "::1"}
