"""Rust.

A module is where its parent says, and a library comes from the manifest: no new file stands in front of
another. Tests inside of sources are kept (`items`); macros that a source declares stand in front of Rust's
own for them, which `lookup` refuses.
"""

from __future__ import annotations

import re

from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools
from astra_async.languages.rust.image import find_rust
from astra_async.languages.rust.items import TESTS_INSIDE
from astra_async.languages.rust.lookup import MacroLookup
from astra_async.languages.rust.mutate import read_tests

RUST = Language(
    name="rust",
    suffixes=frozenset({"rs"}),
    images=Images(
        find=find_rust, calls=re.compile(r"(?<![\w./-])(?:cargo|rustc)(?![\w./-])"), signs=("Cargo.toml",)
    ),
    tools=Tools(
        programs=(Tool("cargo", r"\bcargo\b", runs_tests=True),),
        reads=(
            Reads(BUILD, "cargo", "any", r"cargo\.(?:toml|lock)"),
            Reads(BUILD, "cargo", "place", r"build\.rs|rust-toolchain(?:\.toml)?"),
            Reads(BUILD, "cargo", "any", r"clippy\.toml|rustfmt\.toml"),
            Reads(RUNNER, "cargo", "path", r"(?:.*/)?\.config/nextest\.toml"),
        ),
        manifests=r"cargo\.toml",
        settings=r"build|path|harness",
        everyday=r"build\.rs",
        variables=r"(?:CARGO|RUST|RUSTC|RUSTUP|RUSTDOC)_\w{0,80}|RUSTFLAGS|RUSTC|RUSTDOCFLAGS",
        dependency_folders=frozenset({".cargo"}),
    ),
    tests=TestFiles(
        # Next to a manifest; and modules that hold a crate's tests.
        paths=re.compile(r"(?:^|/)tests/.+\.rs$|(?:^|/)(?:tests?|[^/]*_tests?|test_[^/]*)\.rs$"),
        certain=re.compile(r"(?:^|/)tests/.+\.rs$|(?:^|/)(?:tests?|[^/]*_tests?)\.rs$"),
        content=(re.compile(r"^\s*#!\[cfg\(test\)\]", re.MULTILINE),),
    ),
    lookup=MacroLookup,
    merge=TESTS_INSIDE,
    loaded="word",
    compiled=r"\.(?:rlib|rmeta|a|o)$|(?:^|/)target/(?:debug|release)/",
    unbuilt=r"error\[E\d{4}\]|error: could not compile",
    mutate=read_tests,
)
