"""What runs inside the container: a fixed script that gets its orders over standard input.

A container can so be created before its command is known. Every order travels as data, ended by a
NUL byte; nothing of it is ever part of the script's text.

The script stays process 1 and runs the command in a child. Process 1 collects orphans, and the
kernel lets nobody inside the container kill it: when it died of SIGKILL, that was our time-out, the
memory limit, or somebody outside. A command that kills itself only ends the child; process 1 then
prints the mark that it was given and leaves with the child's status, 137.

Docker's OOMKilled does not say whose memory was short: under cgroup v2, and under v1 where a parent of the
container has a limit, it is set for a host that ran out of memory as well. The container's own cgroup knows:
processes were killed, and its own limit was never reached (v2: `oom` in memory.events; v1: the maximum of its
usage, since newer kernels do not count in memory.failcnt). Process 1 looks there when the command has ended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOST_STARVED = 123  # with the mark: a process was killed for want of memory that was not the container's
STALE_KEPT = 124  # with the mark: a result file of the image could not be deleted
_ARGUMENT_LIMIT = 128 * 1024  # MAX_ARG_STRLEN of Linux: one argument of a process
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

SCRIPT = r"""
starved() {
  local name value limit most kills=0 reached=0 group=/sys/fs/cgroup
  if [ -r "$group/memory.events" ]; then
    while read -r name value; do
      case $name in oom_kill) kills=$value ;; oom) reached=$value ;; esac
    done <"$group/memory.events"
  elif [ -r "$group/memory/memory.oom_control" ]; then
    group=$group/memory
    while read -r name value; do
      case $name in oom_kill) kills=$value ;; esac
    done <"$group/memory.oom_control"
    read -r limit <"$group/memory.limit_in_bytes"
    read -r most <"$group/memory.max_usage_in_bytes"
    [ "$((limit - most))" -gt 4194304 ] || reached=1
  fi
  [ "$kills" -gt 0 ] && [ "$reached" = 0 ]
}
while IFS= read -r -d '' order; do
  case $order in
    M*) mark=${order#M} ;;
    C*) command=${order#C} ;;
    E*) export "${order#E}" ;;
    R*) results+=("${order#R}") ;;
    '') break ;;
  esac
done
[ -n "${command+set}" ] || exit 125
exec </dev/null
[ -d "$HOME" ] || mkdir -p -- "$HOME"
shopt -s globstar nullglob dotglob
for pattern in "${results[@]}"; do
  IFS=
  for path in $pattern; do
    [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; } || continue
    rm -f -- "$path" || { printf '%s' "$mark"; exit 124; }
  done
  unset IFS
done
bash -c "$command"
status=$?
starved && { printf '%s' "$mark"; exit 123; }
[ "$status" = 137 ] && printf '%s' "$mark"
exit "$status"
"""


def orders(
    command: str, *, mark: str, environment: Mapping[str, str], result_files: Iterable[str] = ()
) -> bytes:
    """The orders for SCRIPT. Files that match `result_files` are deleted before the command runs.

    Raises:
        SandboxError: a part is too long for a process argument, or no name of a variable.
    """
    wrong = [name for name in environment if not _NAME.match(name)]
    if wrong:
        raise SandboxError(f"{wrong[0]!r} is no name of an environment variable")
    parts = [
        f"M{mark}",
        f"C{command}",
        *(f"E{name}={value}" for name, value in environment.items()),
        *(f"R{path}" for path in result_files),
    ]
    encoded = [part.encode("utf-8", errors="surrogateescape") for part in parts]
    if any(len(part) >= _ARGUMENT_LIMIT or b"\0" in part for part in encoded):
        raise SandboxError("The test command or its environment is longer than 128 KiB, or holds a NUL byte")
    return b"\0".join([*encoded, b"", b""])
