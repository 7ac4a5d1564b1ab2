"""Rust.

A module's path is given by its parent, and libraries come from the manifest, so a new file cannot shadow
another. Tests inside sources are kept (see `items`). Macros declared in a source could shadow Rust's own in
the tests; `MacroLookup` refuses them.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.mutations import (
    Assertion,
    FoundTest,
    Grammar,
    MutableTest,
    TestFile,
    both_ways,
    masked,
    part,
    read_files,
    text_of,
    walk,
)
from astra_async.languages.needs import Part, Toolchain
from astra_async.languages.rust.items import SKIPPED, TESTS_INSIDE, counting, tests_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from astra_async.languages.needs import Commands
    from astra_async.languages.project_files import Pristine


_OWN = "assert|assert_eq|assert_ne|debug_assert|matches|panic|unreachable|todo|unimplemented|vec|format"
_USED = re.compile(rf"\b({_OWN})\s*!")
_DECLARED = re.compile(rf"\bmacro_rules\s*!\s*(?:r#)?({_OWN})\b|\b(no_implicit_prelude)\b")
_USE = re.compile(r"\buse\b[^;]*;?")
# Other macros of Rust share their names with modules and functions.
_IMPORTED = re.compile(rf"(?:\bas\s+(?:r#)?({_OWN})|\b(assert(?:_eq|_ne)?))\s*[;,}}]")


class MacroLookup:
    """Refuses new macros with names that the tests use.

    A file of any name may be a module (`#[path]`, `include!`), so all files are checked. Tests inside sources
    are ignored if they will be dropped.
    """

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        self._used: set[str] = set()
        for path, text in project.texts.items():
            if path.endswith(".rs"):
                tests = text if path in project.protected else tests_in(text)
                self._used.update(_USED.findall(tests))
        self._used |= {"no_implicit_prelude"} if self._used else set()

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`."""
        pristine = self._texts.get(path, "")
        new = (_declared(path, pristine, text) if self._used else set()) - _declared(path, pristine, pristine)
        return INSTALLED if self._used & new else None


def _declared(path: str, pristine: str, text: str) -> set[str]:
    is_rust = path.lower().endswith(".rs")
    counts = counting(pristine, text) if path.endswith(".rs") else text
    code = masked(counts, SKIPPED, nested=True)
    # Prose and other languages have the word `use` too, but without Rust paths.
    uses = (found[0] for found in _USE.finditer(code) if is_rust or "::" in found[0])
    found = [*_DECLARED.findall(code), *(each for use in uses for each in _IMPORTED.findall(use))]
    return {name for names in found for name in names if name}


_GRAMMAR = Grammar(
    module="tree_sitter_rust",
    literals={
        "integer_literal": "number", "float_literal": "float", "string_literal": "text",
        "char_literal": "character",
        "raw_string_literal": "raw text", "boolean_literal": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "call_expression", "field_expression", "index_expression", "binary_expression",
        "closure_expression"}),
    conditional=frozenset({
        "if_expression", "for_expression", "while_expression", "loop_expression", "match_expression",
        "closure_expression", "let_else",
    }),
    declarations={
        "let_declaration": ("pattern", "value"), "const_item": ("name", "value"), "static_item": ("name",
        "value")},
)  # fmt: skip
_OPPOSITES = both_ways({"assert_eq": "assert_ne"})
_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest)\b|#\[test_case\b")
# Identifiers allowed in a literal expected value: `Some(vec!["a".to_string()])`.
_WRITTEN_OUT = re.compile(
    r"(?:Some|Ok|Err|None|vec|String|from|to_string|to_owned|into|to_vec|as_str|Vec|new|Box|Cow|HashMap|BTreeMap"
    r"|HashSet|BTreeSet|[iuf]\d+|usize|isize|_)"
)


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Rust files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        body = part(node, "body")
        if node.type == "function_item" and body is not None and _TEST.search(_attributes(node)):
            yield FoundTest(
                file=file,
                title=text_of(part(node, "name")),
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
                always_runs=_always_runs,
            )


def _attributes(node: Node) -> str:
    found, before = [], node.prev_named_sibling
    while before is not None and before.type in {"attribute_item", "line_comment", "block_comment"}:
        found += [text_of(before)] if before.type == "attribute_item" else []
        before = before.prev_named_sibling
    return "".join(found)


def _assertion(node: Node) -> Iterator[Assertion]:
    macro = part(node, "macro")
    tokens = next((each for each in node.named_children if each.type == "token_tree"), None)
    if node.type != "macro_invocation" or macro is None or tokens is None:
        return
    parts = _split(tokens.children[1:-1])
    if text_of(macro) in _OPPOSITES and len(parts) > 1:
        edit = macro.start_byte, macro.end_byte, _OPPOSITES[text_of(macro)].encode()
        operands = (
            [each for tokens in parts[:2] for each in _expected(tokens)]
            if text_of(macro) == "assert_eq"
            else []
        )
        yield Assertion(node, edit, tuple(operands))
    elif text_of(macro) == "assert" and parts:
        begin, end = parts[0][0].start_byte, parts[0][-1].end_byte
        condition = (node.text or b"")[begin - node.start_byte : end - node.start_byte]
        yield Assertion(node, (begin, end, b"!(" + condition + b")"))


def _split(tokens: Sequence[Node]) -> list[list[Node]]:
    """Return the tokens of each argument."""
    parts: list[list[Node]] = [[]]
    for each in tokens:
        if each.type == ",":
            parts.append([])
        else:
            parts[-1].append(each)
    return [each for each in parts if each]


def _expected(tokens: Sequence[Node]) -> Iterator[Node]:
    """Yield the literals of a literal argument, or its single identifier."""
    if len(tokens) == 1 and tokens[0].type == "identifier":
        yield tokens[0]
        return
    inner = [each for token in tokens for each in walk(token)]
    words = [text_of(each) for each in inner if each.type == "identifier"]
    if all(map(_WRITTEN_OUT.fullmatch, words)):
        yield from (each for each in inner if each.type in _GRAMMAR.literals)


def _always_runs(node: Node) -> bool:
    """Return True for a loop over an array literal."""
    over = part(node, "value") if node.type == "for_expression" else None
    if over is not None and over.type == "reference_expression":
        over = part(over, "value")
    return over is not None and over.type == "array_expression" and bool(over.named_child_count)


_HOME = "/opt/cargo"
_TOOLCHAIN = Toolchain(
    label="rust",
    packages=frozenset({"cargo", "gcc", "libc6-dev"}),
    environment={"CARGO_HOME": _HOME, "CARGO_INCREMENTAL": "0", "CARGO_TERM_COLOR": "never"},
)
# Cargo accepts a manifest only if its source files exist.
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
    """Return the part of a folder with a Cargo.toml, including the crates below it."""
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
        # Integration tests next to a manifest, and modules with a crate's tests.
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
