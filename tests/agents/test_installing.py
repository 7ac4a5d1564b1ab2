"""Installing agents into volumes: what is fetched and how, what is found, and half of one is none."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from astra_async.agents.install_failures import install_failure
from astra_async.agents.installing import (
    INSTALLED_AT,
    KNOWN,
    SHELL,
    Installed,
    KnownAgent,
    image_set,
    install,
    installed,
    installed_as,
    known_agent,
    settings_of,
)
from astra_async.errors import ImageError, UsageError
from astra_async.images.base_image import ensure_base
from astra_async.images.build import temporary_container
from astra_async.testing.sandbox.engine import Engine
from astra_async.types.agents import AgentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

HASH = "ab" * 32


class Volumes:
    """An engine that has volumes of certain names and nothing else."""

    def __init__(self, *names: str) -> None:
        self._names = names

    async def volumes(self) -> list[Mapping[str, Any]]:
        return [{"Name": name} for name in self._names]


def settings(*asked: AgentSettings, volumes: tuple[str, ...] = ()) -> dict[str, AgentSettings]:
    return asyncio.run(settings_of(cast("Engine", Volumes(*volumes)), asked))


@pytest.mark.parametrize("known", KNOWN.values(), ids=list(KNOWN))
def test_every_known_agent_is_pinned_and_runs_no_script_of_a_package(known: KnownAgent) -> None:
    version = known.settings.version
    packages = [*known.npm.values(), *known.pip]
    assert any(re.search(rf"[@=]{re.escape(version)}", package) for package in packages)
    files = image_set(known)
    assert ("npm pack --loglevel=error --ignore-scripts" in files["install.sh"]) == bool(known.npm)
    assert ("--only-binary=:all:" in files["install.sh"]) == bool(known.pip)
    assert INSTALLED_AT in known.settings.command
    assert known.settings.speaks
    assert {"{prompt}", "{prompt_file}"} & set(re.findall(r"\{\w+\}", known.settings.command))


def test_no_known_agent_holds_a_key_or_an_address() -> None:
    for known in KNOWN.values():
        said = " ".join([*known.settings.variables.values(), *known.settings.files.values()])
        assert "{token}" in said or "GATEWAY_TOKEN" in said
        assert not re.search(r"https?://|sk-", said)


def test_a_volume_is_known_by_its_name_alone() -> None:
    name = f"astra-agent_claude-code_2.1.330_{HASH}"
    assert installed_as(name) == Installed(volume=name, name="claude-code", version="2.1.330", sha256=HASH)
    for foreign in ("mine", f"astra-agent_x_1_{HASH}0", f"my-astra-agent_x_1_{HASH}", "astra-agent_x_1_"):
        assert installed_as(foreign) is None


def test_another_version_of_a_known_agent_changes_its_packages_and_nothing_else() -> None:
    tested, other = KNOWN["codex"], known_agent("codex@0.171.0")
    assert other is not None
    assert other.settings == replace(tested.settings, version="0.171.0")
    assert other.npm == {"codex": "@openai/codex@0.171.0-linux-{cpu}"}
    aider, gemini = known_agent("aider@0.90.0"), known_agent("gemini-cli@0.62.0")
    assert aider is not None
    assert aider.pip == ("aider-chat==0.90.0",)
    assert gemini is not None
    assert gemini.npm["node"] == KNOWN["gemini-cli"].npm["node"]
    assert known_agent("codex") is known_agent(f"codex@{tested.settings.version}") is tested
    assert known_agent("nobody@1") is None


def test_what_cannot_be_run_is_said_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="--agent nobody: unknown agent; known are shell, "):
        settings(AgentSettings(name="nobody"))
    with pytest.raises(UsageError, match=r"0\.169\.0 is not installed; run `astra agents install codex`"):
        settings(AgentSettings(name="codex"), volumes=(f"astra-agent_codex_0.168.0_{HASH}",))
    with pytest.raises(UsageError, match=r"0\.171\.0 is not installed; run `astra agents install codex@0"):
        settings(AgentSettings(name="codex@0.171.0"), volumes=(f"astra-agent_codex_0.169.0_{HASH}",))
    with pytest.raises(UsageError, match=r"\[\[agents\]\] mine: `speaks` is missing"):
        settings(AgentSettings(name="mine", command="work"))


def test_an_agent_of_ones_own_and_the_one_of_ours_need_no_installing() -> None:
    mine = AgentSettings(name="mine", command="work", speaks="chat")
    assert settings(mine, AgentSettings(name="shell")) == {"mine": mine, "shell": SHELL}


@pytest.mark.docker
async def test_an_installation_is_whole_the_same_each_time_and_found_again() -> None:
    name = f"tiny-{secrets.token_hex(4)}"
    tiny = KnownAgent(
        settings=AgentSettings(name=name, version="7.0.0", speaks="chat", command="true"),
        npm={"number": "is-number@7.0.0"},
    )
    said: list[str] = []

    async with await Engine.open() as engine:
        found = []
        try:
            found.append(await install(engine, tiny, progress=said.append))
            steps = len(said)
            assert await install(engine, tiny, progress=said.append) == found[0]
            assert len(said) == steps
            assert await engine.remove_volume(found[0].volume)
            # What a killed installation leaves: the volume, and not all that belongs there.
            base = await ensure_base(engine, progress=print)
            mount = {"Type": "volume", "Source": found[0].volume, "Target": INSTALLED_AT}
            body = {"Image": base, "Cmd": ["bash"], "HostConfig": {"Mounts": [mount]}}
            async with temporary_container(engine, body):
                pass
            assert found[0] in await installed(engine)
            assert await install(engine, tiny, progress=said.append) == found[0]
            assert len(said) > steps
            assert all(name not in str(each.get("RepoTags")) for each in await engine.images())
        finally:
            for each in found:
                await engine.remove_volume(each.volume)


@pytest.mark.docker
async def test_the_registrys_error_is_the_reason_of_a_failed_installation() -> None:
    wrong = KnownAgent(
        settings=AgentSettings(name=f"tiny-{secrets.token_hex(4)}", version="99.0.0"),
        npm={"number": "is-number@99.0.0"},
    )
    async with await Engine.open() as engine:
        with pytest.raises(ImageError, match=r"^\S+ cannot be installed: No matching version found for is-n"):
            await install(engine, wrong, progress=print)


@pytest.mark.docker
async def test_a_python_of_its_own_runs_where_there_is_none() -> None:
    name = f"tiny-{secrets.token_hex(4)}"
    tiny = KnownAgent(
        settings=AgentSettings(name=name, version="1", speaks="chat", command="true"),
        pip=("markupsafe",),  # with a compiled part
    )
    program = "import ssl, sqlite3, sys, markupsafe._speedups; print(sys.prefix, sys.executable)"

    async def check() -> str:
        async with await Engine.open() as engine:
            found = await install(engine, tiny, progress=print)
            try:
                base = await ensure_base(engine, progress=print)
                mount = {"Type": "volume", "Source": found.volume, "Target": INSTALLED_AT, "ReadOnly": True}
                body = {
                    "Image": base,
                    "Cmd": [f"{INSTALLED_AT}/python/bin/python", "-c", program],
                    "NetworkDisabled": True,
                    "HostConfig": {"Mounts": [mount]},
                }
                async with temporary_container(engine, body) as container:
                    await engine.start(container)
                    await engine.ended(container)
                    return "".join(
                        await engine.docker.containers.container(container).log(stdout=True, stderr=True)
                    )
            finally:
                await engine.remove_volume(found.volume)

    assert (await check()) == f"{INSTALLED_AT}/python {INSTALLED_AT}/python/bin/python\n"


PIP_WITHOUT_NETWORK = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'ProxyError('Cannot connect"
    " to proxy.')': /simple/aider-chat/\nERROR: No matching distribution found for aider-chat==0.86.2\n"
)
NPM = "npm ERR! code {code}\nnpm ERR! {text}\nnpm ERR! A complete log of this run can be found in: /tmp/x\n"


@pytest.mark.parametrize(
    ("output", "reason", "remedy"),
    [
        (PIP_WITHOUT_NETWORK, "ProxyError('Cannot connect to proxy.')", "check the network and HTTPS_PROXY"),
        (
            NPM.format(code="EAI_AGAIN", text="request to https://r/x failed, reason: getaddrinfo r"),
            "request to https://r/x failed, reason: getaddrinfo r",
            "check the network and HTTPS_PROXY",
        ),
        (
            NPM.format(code="ETARGET", text="notarget No matching version found for @openai/codex@9.9.9."),
            "No matching version found for @openai/codex@9.9.9",
            "astra agents list --newest",
        ),
        (
            NPM.format(code="E404", text="404 Not Found - GET https://r/nope - Not found"),
            "404 Not Found - GET https://r/nope",
            "astra agents list --newest",
        ),
        (
            NPM.format(code="ENOSPC", text="nospc ENOSPC: no space left on device, write"),
            "no space left on device",
            "docker system df",
        ),
        ("", "The dependencies cannot be installed (exit code 7): a b", "correct this"),
    ],
)
def test_a_failed_installation_is_one_line_with_reason_and_remedy(
    output: str, reason: str, remedy: str
) -> None:
    error = ImageError("The dependencies cannot be installed (exit code 7):\na\nb", output=output)
    text = install_failure("codex@9.9.9", error)
    assert text.startswith("codex@9.9.9 cannot be installed: ")
    assert text.index(reason) < text.index(remedy) < text.index("astra agents install codex")
    assert "\n" not in text
