"""The agents that are known by name, from `catalog.toml` beside this file.

What is not in that table is described by the user, as `[[agents]]` in TOML.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from astra_async.agents.shell import VERSION
from astra_async.types import AgentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALLED_AT = "/opt/agent"
PYTHON = f"{INSTALLED_AT}/python/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent's settings, and the packages that are installed for it."""

    settings: AgentSettings
    npm: Mapping[str, str] = field(default_factory=dict)
    pip: tuple[str, ...] = ()


def _known(
    name: str, *, npm: Mapping[str, str] | None = None, pip: tuple[str, ...] = (), **settings: Any
) -> KnownAgent:
    return KnownAgent(settings=AgentSettings(name=name, **settings), npm=npm or {}, pip=tuple(pip))


SHELL = AgentSettings(name="shell", version=VERSION)  # this program's own: nothing is installed
_TABLES = tomllib.loads(resources.files(__package__).joinpath("catalog.toml").read_text())
KNOWN: Mapping[str, KnownAgent] = {name: _known(name, **table) for name, table in _TABLES.items()}
