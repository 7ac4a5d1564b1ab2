"""Rust.

A module is where its parent says, and a library comes from the manifest: no new file stands in front of
another. Tests inside of sources are kept (`items`); macros that a source declares stand in front of Rust's
own for them, which `lookup` refuses.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.needs import Part, Toolchain
from astra_async.languages.rust.items import TESTS_INSIDE
from astra_async.languages.rust.lookup import MacroLookup
from astra_async.languages.rust.mutate import read_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.languages.needs import Commands


_HOME = "/opt/cargo"
_TOOLCHAIN = Toolchain(
    label="rust",
    packages=frozenset({"cargo", "gcc", "libc6-dev"}),
    environment={"CARGO_HOME": _HOME, "CARGO_INCREMENTAL": "0", "CARGO_TERM_COLOR": "never"},
)
# Cargo reads a manifest only where the sources that it tells of are there.
_INSTALL = """\
cd {folder} || exit 1
for folder in {members}; do
  mkdir -p "$folder/src" && : >"$folder/src/lib.rs" && echo 'fn main() {{}}' >"$folder/src/main.rs"
done
mkdir -p /opt/cargo
CARGO_HOME=/opt/cargo attempt cargo fetch || exit 1
rm -rf Cargo.lock; for folder in {members}; do rm -rf "$folder/src"; done
chmod -R a+rwX /opt/cargo || exit 1
"""
_NEEDS = re.compile(rb"^\s*\[(?:[^\]\n]*\.)?(?:dev-|build-)?dependencies[.\]]", re.MULTILINE)


def find_rust(files: Mapping[str, bytes], folder: str, _: Commands) -> Part | None:
    """The part of a folder with a Cargo.toml, the crates below it included."""
    prefix = f"{folder}/" if folder else ""
    if f"{prefix}Cargo.toml" not in files:
        return None
    names = ("Cargo.toml", "Cargo.lock")
    kept = {
        path: content
        for path, content in files.items()
        if path.startswith(prefix) and path.rpartition("/")[2] in names and "target" not in path.split("/")
    }
    crates = [path.removeprefix(prefix).rpartition("/")[0] or "." for path in kept if path.endswith(".toml")]
    needs_others = any(_NEEDS.search(content) for content in kept.values())
    return Part(
        language="rust",
        label="rust",
        toolchain=_TOOLCHAIN,
        files=kept,
        install=_INSTALL.format(folder=shlex.quote(folder or "."), members=shlex.join(crates))
        if needs_others
        else "mkdir -p /opt/cargo && chmod a+rwX /opt/cargo || exit 1\n",
        environment={"CARGO_NET_OFFLINE": "true"},
        notes=(f"{prefix}Cargo.toml: Debian's Rust 1.63",),
    )


RUST = Language(
    name="rust",
    suffixes=frozenset({"rs"}),
    images=Images(
        find=find_rust, calls=re.compile(r"(?<![\w./-])(?:cargo|rustc)(?![\w./-])"), signs=("Cargo.toml",)
    ),
    tools=Tools(
        programs=(ProjectTool("cargo", r"\bcargo\b", runs_tests=True),),
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
