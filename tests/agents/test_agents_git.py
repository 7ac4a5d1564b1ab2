"""Agents find a repository with their project, and installed agents bring git and rg."""

from __future__ import annotations

import secrets
import subprocess
from typing import TYPE_CHECKING

import pytest
from agent_stands import OneSample
from scripted import Scripted, calls_of
from test_agent_runs import FILES, agent, at_work, base, in_shell, left

from astra_async.agents.installing import SHELL, KnownAgent, install
from astra_async.testing.sandbox.engine import Engine
from astra_async.types.agents import AgentSettings

if TYPE_CHECKING:
    from pathlib import Path


LOOK = r"""
ask
{
  git ls-files | sed 's/^/file /'
  git status --porcelain --ignored
  /bin/sh -lc 'git --version; rg --version | sed -n 1p; grep :1000: /etc/passwd'
} >found 2>&1
"""


@pytest.mark.docker
async def test_an_agent_has_tools_and_one_commit_with_all_of_its_project(tmp_path: Path) -> None:
    name = f"tiny-{secrets.token_hex(4)}"
    empty = KnownAgent(settings=AgentSettings(name=name, version="1", speaks="chat", command="true"))
    files = {**FILES, ".gitignore": b"*.dat\n", "kept.dat": b"x\n"}
    async with await Engine.open() as engine:
        volume = (await install(engine, empty, progress=print)).volume
        try:
            async with at_work(agent(LOOK, volume=volume), tmp_path, files=files) as (_, ask):
                done = await ask(OneSample(tmp_path))
        finally:
            await engine.remove_volume(volume)
    found = left(done)["files"]["found"].splitlines()
    shown = [".gitignore", "kept.dat", "logo.png", "src/app.js", "src/same.js", "tests/visible.js"]
    assert [line for line in found if line.startswith("file ")] == [f"file {path}" for path in shown]
    status, git, rg, account = found[len(shown) :]
    assert status == "?? found"
    assert git.startswith("git version")
    assert rg.startswith("ripgrep")
    assert account.startswith("user1000:x:1000:1000::/")
    assert account.endswith("/bash")


@pytest.mark.docker
async def test_the_built_in_agent_finds_a_repository_if_the_image_has_git(tmp_path: Path) -> None:
    image = f"with-git-{secrets.token_hex(4)}"
    git = r"#!/bin/sh\n[ $1 != init ] || mkdir .git\n"
    made = f"FROM {await base()}\nRUN printf '{git}' >/usr/bin/git && chmod 755 /usr/bin/git\n"
    subprocess.run(["docker", "build", "-q", "-t", image, "-"], input=made.encode(), check=True)
    try:
        pool = Scripted(in_shell("ls -d .git"))
        async with at_work(SHELL, tmp_path, image=image) as (_, ask):
            await ask(OneSample.of(calls_of(tmp_path, pool)))
    finally:
        subprocess.run(["docker", "rmi", "-f", image], check=True, capture_output=True)
    dialogue = pool.asked[1].dialogue
    assert dialogue
    assert dialogue.messages[-1].results[0].text == "(exit code 0)\n.git\n"
