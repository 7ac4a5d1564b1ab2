"""Prepare /etc of an agent's container: the user's entry in /etc/passwd, and PATH in login shells.

`whoami`, `git` without HOME, Python's `getpwuid` and Node's `os.userInfo` fail for a user without an entry.
Many images have no entry for the tests' user.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.agents.installing import TOOLS
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.execution import Command, run_command

if TYPE_CHECKING:
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.hardened import Fitness
    from astra_async.types import Limits

WITH_TOOLS = f'export PATH="$PATH:{TOOLS}"\n'
PROFILE = "/etc/profile.d/agent-tools.sh"  # /etc/profile resets PATH
_log = logging.getLogger(__name__)
_PREPARE_S = 60.0
# A link at /etc/passwd belongs to another system of accounts.
_PREPARE = f"""
mkdir -p /etc/profile.d && printf %s "$1" >{PROFILE}
[ ! -L /etc/passwd ] || exit 0
text=$(</etc/passwd)
while IFS=: read -r _ _ uid _; do [ "$uid" != "$2" ] || exit 0; done <<<"$text"
printf '%s\\n' "${{text:+$text$'\\n'}}user$2:x:$2:$3::$4:$BASH" >/etc/passwd
"""


async def prepare_etc(engine: Engine, container: str, fitness: Fitness, limits: Limits) -> None:
    """Add the user to /etc/passwd unless it has an entry, and the tools to PATH.

    If the image does not let root write these files, the agent works without them. Raises SandboxError.
    """
    arguments = (str(fitness.uid), str(fitness.gid), fitness.home or "/")
    asked = Command(text=WITH_TOOLS, user="0:0", shell=_PREPARE, arguments=arguments)
    ended = await run_command(engine, container, asked, replace(limits, timeout_s=_PREPARE_S))
    if ended.stopped or ended.exit_code:
        _log.debug("/etc of the agent's container is incomplete: %s", both_ends(ended.output.text()))
