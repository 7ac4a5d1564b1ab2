"""Go.

A package is a folder, and the standard library is never looked up in a project, so no file can shadow another
package. Tests belong to the package that they test. A source of the package can therefore redefine Go's
predeclared names (`len`, `error`) for the tests; `UniverseLookup` refuses such declarations.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.go.mutate import read_tests
from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.mutations import at_top, closing, masked
from astra_async.languages.needs import CACHE, Part, Toolchain
from astra_async.languages.project_files import split

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from astra_async.languages.needs import Commands
    from astra_async.languages.project_files import Pristine


_VALUES_AND_TYPES = (
    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    " string uint uint8 uint16 uint32 uint64 uintptr true false iota nil"
)
_FUNCTIONS = (  # counted only where called, because fields and variables may have these names
    "append cap clear close complex copy delete imag len make max min new panic print println real recover"
)
_CALLED = frozenset(f"{each}(" for each in (*_VALUES_AND_TYPES.split(), *_FUNCTIONS.split()))
_UNIVERSE = _CALLED | frozenset(_VALUES_AND_TYPES.split())
_NAMES = r"\w+(?:\s*,\s*\w+)*"
_BEGIN = r"(?<![^\n;(])[ \t\r]*"  # start of a top-level declaration, or of an entry in a group
_DECLARATION = re.compile(
    rf"{_BEGIN}(?:func\s+(?P<function>\w+)\s*[(\[]|(?:type|var|const)\s*(?:\(|(?<=\s)(?P<names>{_NAMES})))"
)
# A line continues if its last token does not end a statement (Go's semicolon rule).
_GOES_ON = re.compile(r"(?<=[^\w)\]}(;\s])\s*\n")
_GROUPED = re.compile(_BEGIN + rf"(?P<names>{_NAMES})")
_WORD = re.compile(r"(?<![.\w])[a-z]\w*")
_USE = re.compile(r"(?<![.\w])[a-z]\w*+(?:[ \t]*+\()?")
SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,10}'", re.DOTALL)


class UniverseLookup:
    """Predeclared Go names that tests of a folder use; new declarations of them are refused."""

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        self._used: dict[str, set[str]] = {}  # predeclared names used by the tests, by folder
        for path in project.protected:
            if path.endswith("_test.go"):
                uses = _USE.findall(masked(project.texts[path], SKIPPED))
                used = {re.sub(r"[ \t]", "", each) for each in uses} & _UNIVERSE
                words = {each.removesuffix("(") for each in used}
                self._used.setdefault(split(path)[0], set()).update(words)

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`."""
        folder, _stem, suffix = split(path)
        used = self._used.get(folder, set()) if suffix == "go" else set()
        new = (_declared(text) if used else set()) - _declared(self._texts.get(path, ""))
        return INSTALLED if used & new else None


def _declared(text: str) -> set[str]:
    """Return the names declared at package level; methods and fields are not restricted."""
    code = _GOES_ON.sub(" ", masked(text, SKIPPED))
    names: set[str] = set()
    for found in at_top(code, 0, len(code), _DECLARATION):
        names.add(found["function"] or "")
        names.update(_WORD.findall(found["names"] or ""))
        if found[0].endswith("(") and not found["function"]:
            for each in at_top(code, found.end(), closing(code, found.end() - 1), _GROUPED):
                names.update(_WORD.findall(each["names"]))
    return names


_MODULES = "/opt/go/mod"
_TOOLCHAIN = Toolchain(
    label="go",
    packages=frozenset({"golang-go"}),
    # Root installs and user 1000 tests, with different HOMEs, so shared folders must be outside HOME.
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
    """Return the part of a folder with a go.mod, or None."""
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
        # A module without dependencies needs no installation.
        install=_INSTALL.format(folder=shlex.quote(folder or ".")) if b"require" in module else "",
        warms=True,  # caches the compiled standard library
        notes=(f"{prefix}go.mod: Debian's Go 1.19",),
    )


# Only `go test` compiles such a file, whatever its content.
_TEST = re.compile(r"_test\.go$")

GO = Language(
    name="go",
    suffixes=frozenset({"go"}),
    images=Images(find=find_go, calls=re.compile(r"(?<![\w./-])go(?![\w./-])"), signs=("go.mod",)),
    tools=Tools(
        programs=(ProjectTool("go", r"\bgo test\b|\bgo vet\b|\bgotestsum\b", runs_tests=True),),
        reads=(
            Reads(BUILD, "go", "any", r"go\.(?:mod|sum|work|work\.sum)"),
            # If this file exists, Go loads dependencies only from vendor/.
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
    compiled=r"\.(?:syso|a|o)$",  # go links such files if they are in the source folder
    unbuilt=r"\[(?:build|setup) failed\]|^# \S{1,200} \[\S{1,200}\.test\]$",
    mutate=read_tests,
)
