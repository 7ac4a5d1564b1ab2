"""Go projects, with a go.mod."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from astra_async.languages.needs import CACHE, Part, Toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.languages.needs import Commands

_MODULES = "/opt/go/mod"
_TOOLCHAIN = Toolchain(
    label="go",
    packages=frozenset({"golang-go"}),
    # Root installs and user 1000 tests, each with another HOME: what both use lies outside of it.
    environment={
        "CGO_ENABLED": "0",
        "GOCACHE": f"{CACHE}/go",
        "GOFLAGS": "-buildvcs=false",
        "GOMODCACHE": _MODULES,
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
    },
)
_INSTALL = f"""\
mkdir -p {_MODULES} || exit 1
cd {{folder}} && GOPROXY=https://proxy.golang.org attempt go mod download || exit 1
chmod -R a+rX {_MODULES} || exit 1
"""


def find_go(files: Mapping[str, bytes], folder: str, _: Commands) -> Part | None:
    """The part of a folder with a go.mod."""
    prefix = f"{folder}/" if folder else ""
    module = files.get(f"{prefix}go.mod")
    if module is None:
        return None
    kept = {prefix + name: files[prefix + name] for name in ("go.mod", "go.sum") if prefix + name in files}
    return Part(
        language="go",
        label="go",
        toolchain=_TOOLCHAIN,
        files=kept,
        # A module that needs no other one is installed without a network.
        install=_INSTALL.format(folder=shlex.quote(folder or ".")) if b"require" in module else "",
        warms=True,  # what tests compile of the standard library
        notes=(f"{prefix}go.mod: Debian's Go 1.19",),
    )
