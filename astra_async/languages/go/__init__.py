"""Go.

A package is a folder, and nothing of the standard library is looked up in a project: no file shadows another.
Tests are part of the package that they test, so that whatever its sources declare stands in front of Go's own
names (`len`, `error`); `lookup` refuses that.
"""

from __future__ import annotations

import re

from astra_async.languages.go.image import find_go
from astra_async.languages.go.lookup import UniverseLookup
from astra_async.languages.go.mutate import read_tests
from astra_async.languages.language import BUILD, Images, Language, Reads, TestFiles, Tool, Tools

# Only `go test` reads such a file, whatever else it holds.
_TEST = re.compile(r"_test\.go$")

GO = Language(
    name="go",
    suffixes=frozenset({"go"}),
    images=Images(find=find_go, calls=re.compile(r"(?<![\w./-])go(?![\w./-])"), signs=("go.mod",)),
    tools=Tools(
        programs=(Tool("go", r"\bgo test\b|\bgo vet\b|\bgotestsum\b", runs_tests=True),),
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
