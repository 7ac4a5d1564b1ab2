"""A server that plays the Hugging Face hub as its own client knows it, and a host beside it."""

from __future__ import annotations

import asyncio
import hashlib
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from threaded_server import ThreadedServer

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "owner/questions"


@dataclass
class Repository:
    """One data set: `revisions` holds the files of each, the last one is the newest."""

    revisions: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    licence: str = ""
    gated: str | bool = False
    private: bool = False
    readers: frozenset[str] = frozenset()

    def push(self, files: Mapping[str, bytes]) -> str:
        """A new revision; returns its name."""
        sha = hashlib.sha1(b"".join([str(len(self.revisions)).encode(), *files.values()])).hexdigest()
        self.revisions[sha] = files
        return sha

    @property
    def newest(self) -> str:
        return list(self.revisions)[-1]


class _WebServer(ThreadedServer):
    """Attributes: `asked` holds (path, Authorization) of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.url = ""
        self.asked: list[tuple[str, str]] = []

    async def listen(self) -> asyncio.Server:
        runner = web.ServerRunner(web.Server(self._serve), shutdown_timeout=0.01)
        await runner.setup()
        assert runner.server is not None
        listening = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        return listening

    @abstractmethod
    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse: ...


class HubServer(_WebServer):
    """Attributes: `moved_to` is where files lie (a CDN); `troubles` are the next statuses for files."""

    def __init__(self) -> None:
        super().__init__()
        self.sets: dict[str, Repository] = {NAME: Repository()}
        self.plain: dict[str, bytes] = {}
        self.moved_to = ""
        self.troubles: list[int] = []
        self.seconds = 0.0

    @property
    def repository(self) -> Repository:
        return self.sets[NAME]

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        if request.path in self.plain:
            return await self._file(self.plain[request.path])
        return await self._of_a_set(request)

    async def _of_a_set(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if parts[0] == "api":
            name, revision = "/".join(parts[2:4]), parts[5] if len(parts) > 5 else None
        else:
            name, revision = "/".join(parts[1:3]), parts[4] if len(parts) > 4 else None
        repository = self.sets.get(name)
        refused = self._refused(request, repository)
        if refused is not None or repository is None:
            return refused or _refusal(401, "RepoNotFound")
        revision = repository.newest if revision in (None, "main") else revision
        if revision not in repository.revisions:
            return _refusal(404, "RevisionNotFound")
        if parts[0] == "api":
            return web.json_response(_about(name, repository, revision))
        content = repository.revisions[revision].get("/".join(parts[5:]))
        if content is None:
            return _refusal(404, "EntryNotFound")
        if self.moved_to:
            return web.Response(status=302, headers={"Location": self.moved_to + request.path})
        return await self._file(content)

    async def _file(self, content: bytes) -> web.StreamResponse:
        if self.troubles:
            return web.Response(status=self.troubles.pop(0), headers={"Retry-After": "0"})
        await asyncio.sleep(self.seconds)
        return web.Response(body=content, headers={"ETag": f'"{hashlib.sha256(content).hexdigest()}"'})

    def _refused(self, request: web.BaseRequest, repository: Repository | None) -> web.Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and not token.startswith("hf_valid"):
            return web.Response(
                status=401, headers={"X-Error-Message": "Invalid credentials in Authorization header"}
            )
        if repository is None or (repository.private and token not in repository.readers):
            return _refusal(401 if not token else 404, "RepoNotFound")
        is_file = not request.path.startswith("/api/")
        if is_file and repository.gated and token not in repository.readers:
            return _refusal(403 if token else 401, "GatedRepo")
        return None


class Elsewhere(_WebServer):
    """A host of its own (a CDN, S3) that serves files by path and notes who sent what."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self.files = dict(files)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        if request.path not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[request.path])


def _about(name: str, repository: Repository, revision: str) -> dict[str, object]:
    card = {"license": repository.licence} if repository.licence else {}
    return {
        "id": name,
        "sha": revision,
        "gated": repository.gated,
        "private": repository.private,
        "cardData": card,
        "tags": ["region:us"],
        "siblings": [{"rfilename": path} for path in repository.revisions[revision]],
    }


def _refusal(status: int, code: str) -> web.Response:
    return web.Response(status=status, headers={"X-Error-Code": code, "X-Error-Message": code})
