"""Go.

A package is a folder, and nothing of the standard library is looked up in a project: no file shadows another.
Tests are part of the package that they test, so that whatever its sources declare stands in front of Go's own
names (`len`, `error`); `lookup` refuses that.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.go.lookup import UniverseLookup
from astra_async.languages.go.mutate import read_tests
from astra_async.languages.language import BUILD, Images, Language, ProjectTool, Reads, TestFiles, Tools
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


# Only `go test` reads such a file, whatever else it holds.
_TEST = re.compile(r"_test\.go$")

GO = Language(
    name="go",
    suffixes=frozenset({"go"}),
    images=Images(find=find_go, calls=re.compile(r"(?<![\w./-])go(?![\w./-])"), signs=("go.mod",)),
    tools=Tools(
        programs=(ProjectTool("go", r"\bgo test\b|\bgo vet\b|\bgotestsum\b", runs_tests=True),),
        reads=(
            Reads(BUILD, "go", "any", r"go\.(?:mod|sum|work|work\.sum)"),
            # With it, packages are taken from there and from nowhere else.
            Reads(BUILD, "go", "path", r"(?:.*/)?vendor/modules\.txt"),
        ),
        manifests=r"go\.mod",
        variables=r"GO(?:FLAGS|PROXY|ROOT|PATH|ENV|TOOLCHAIN|WORK|EXPERIMENT|OS|ARCH|TMPDIR|DEBUG|CACHE|MODCACHE)|CGO_\w{0,80}",
    ),
    tests=TestFiles(
        paths=_TEST,
        certain=_TEST,
        content=(re.compile(r"^func (?:Test|Benchmark|Fuzz|Example)\w*\(", re.MULTILINE),),
        alone=_TEST,
        folders=frozenset({"testdata"}),
    ),
    lookup=UniverseLookup,
    loaded="never",
    compiled=r"\.(?:syso|a|o)$",  # go links what lies beside the sources
    unbuilt=r"\[(?:build|setup) failed\]|^# \S{1,200} \[\S{1,200}\.test\]$",
    mutate=read_tests,
)
