"""PHP, with PHPUnit."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    PROTECTED,
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
    arguments,
    both_ways,
    part,
    read_files,
    renamed,
    text_of,
    walk,
)
from astra_async.languages.needs import Part, Toolchain
from astra_async.languages.project_files import read_table, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tree_sitter import Node

    from astra_async.languages.needs import Commands
    from astra_async.languages.project_files import Pristine


_LABEL = r"[\w\x80-\U0010ffff]+"
_BEGIN = re.compile(r"<\?(?:(?i:php)\b|=)?")
_CODE = re.compile(
    r"(?P<blank>\?>|(?://|#(?!\[))(?:(?!\?>)[^\r\n])*|/\*.*?(?:\*/|\Z))"
    r"|(?P<text>'(?:[^'\\]|\\.)*(?:'|\Z)"
    rf"|(?P<opened>[\"`]|<<<[ \t]*(?P<quote>[\"']?)(?P<label>{_LABEL})(?P=quote)(?=[\r\n])))"
    r"|[{}]",
    re.DOTALL,
)
_TEXT = re.compile(rf"\\.|[\"`]|\{{(?=\$)|\$\{{|(?<=[\r\n])[ \t]*(?P<label>{_LABEL})", re.DOTALL)
_ENDS = {"{": "}", "?>": "<?"}
_SEEN = re.compile(r"[^\r\n]")


def only_code(text: str) -> str:
    """Replace comments and non-PHP text with blanks, and strings with `_`; line ends are kept."""
    pieces: list[str] = []
    # Stack of end markers of the current context and those around it: `}` for code inside code or a string, a
    # quote or heredoc label (`'label` without interpolation) for a string, `<?` for non-PHP text, "" for the
    # outermost code.
    at, ends = 0, ["", "<?"]
    while found := _reading(ends[-1]).search(text, at):
        here, before = found[0], text[at : found.start()]
        at = found.end()
        if ends[-1] == "<?":
            pieces.append(_filled(before + here, " "))
            ends.pop()
        elif ends[-1] in {"", "}"}:
            pieces += [before, _filled(here, " " if found["blank"] else "_" if found["text"] else "")]
            if here == ends[-1]:
                ends.pop()
            elif found["opened"]:
                ends.append(found["quote"].replace('"', "") + found["label"] if found["label"] else here)
            elif here in _ENDS:
                ends.append(_ENDS[here])
        else:
            pieces.append(_filled(before + here, "_"))
            if here[-1] == "{" and ends[-1][0] != "'":
                pieces[-1] = pieces[-1][:-1] + "{"
                ends.append("}")
            elif (found["label"] or here) == ends[-1].removeprefix("'"):
                ends.pop()
    return "".join([*pieces, _filled(text[at:], {"": "", "}": "", "<?": " "}.get(ends[-1], "_"))])


def _reading(end: str) -> re.Pattern[str]:
    return _BEGIN if end == "<?" else _CODE if end in {"", "}"} else _TEXT


def _filled(text: str, filler: str) -> str:
    return _SEEN.sub(filler, text) if filler else text


_PIECE = re.compile(
    r"\bnamespace(?:\s+(?P<namespace>[\w\\]+)|\s*\{)"
    r"|(?<![:>$\\\w])(?:class|interface|trait|enum)\s+(?P<type>\w+)|\bfunction\s+&?\s*(?P<function>\w+)\s*\(",
    re.IGNORECASE,
)
# First namespace segments of test frameworks.
_TESTING = frozenset({"phpunit", "sebastianbergmann", "pest", "codeception", "mockery", "prophecy"})
_ALIAS = re.compile(r"\bclass_alias\s*\(", re.IGNORECASE)
_TESTING_NAME = re.compile(rf"[^;]{{0,500}}['\"]\\*(?:{'|'.join(sorted(_TESTING))})\b", re.IGNORECASE)
# PHPUnit and its dependencies, assumed if the content of the image is unknown.
_USUAL = re.compile(
    r"(?:phpunit|sebastianbergmann|phario|deepcopy|doctrine|theseer|prophecy)/", re.IGNORECASE
)


class ClassLookup:
    """The classes and namespaces in one project's protected files."""

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        php = {path: text for path, text in project.texts.items() if path.endswith(".php")}
        sources = {path: _declared(only_code(text)) for path, text in php.items()}
        self._types = {name for path in project.protected & sources.keys() for name in sources[path][0]}
        ours = {space for path in sources.keys() - project.protected for space in sources[path][2]}
        theirs = {space for path in project.protected & sources.keys() for space in sources[path][2]}
        self._tests_alone = theirs - ours - {""}

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`."""
        if not path.lower().endswith((".php", ".inc", ".phtml")):
            return None
        code = only_code(text)
        types, functions, spaces = _declared(code)
        known = _declared(only_code(self._texts.get(path, "")))[0]
        is_found_first = _USUAL.match(path) if held is None else _is_found_as(path, held)
        is_testing = any(space.partition("\\")[0] in _TESTING for space in spaces)
        if is_testing or _is_alias_made(code, text) or (is_found_first and path not in self._texts):
            return INSTALLED
        if (types - known) & self._types or any(each[0] in self._tests_alone for each in functions):
            return PROTECTED
        return None


def _is_found_as(path: str, held: Collection[str]) -> bool:
    """Return True if a file is found by an include-path name, relative to its folder or one above."""
    parts = path.split("/")
    return any("/".join(parts[at:]) in held for at in range(max(1, len(parts) - 1)))


def _is_alias_made(code: str, text: str) -> bool:
    """Return True if `class_alias` is called with a literal class name of a test framework."""
    return any(_TESTING_NAME.match(text, found.end()) for found in _ALIAS.finditer(code))


def _declared(code: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]], set[str]]:
    """Return types and functions with their namespaces, and all namespaces, in lower case as PHP compares."""
    types, functions, spaces, space = set(), set(), set(), ""
    for found in _PIECE.finditer(code):
        if found["type"]:
            types.add((space, found["type"].lower()))
        elif found["function"]:
            functions.add((space, found["function"].lower()))
        else:
            space = (found["namespace"] or "").lower().strip("\\")
            spaces.add(space)
    return types, functions, spaces or {""}


_GRAMMAR = Grammar(
    module="tree_sitter_php",
    function="language_php",
    literals={
        "integer": "number", "float": "float", "string": "text", "encapsed_string": "quoted text",
        "boolean": "truth",
    },
    names=frozenset({"variable_name"}),
    opaque=frozenset({
        "function_call_expression", "member_call_expression", "scoped_call_expression",
        "member_access_expression",
        "object_creation_expression", "subscript_expression", "binary_expression", "anonymous_function",
        "arrow_function", "conditional_expression", "class_constant_access_expression",
    }),
    conditional=frozenset({
        "if_statement", "foreach_statement", "for_statement", "while_statement", "do_statement",
        "try_statement",
        "switch_statement", "match_expression", "anonymous_function", "arrow_function",
        "conditional_expression",
    }),
    declarations={"assignment_expression": ("left", "right")},
)  # fmt: skip
_OPPOSITES = both_ways({
    "assertSame": "assertNotSame", "assertEquals": "assertNotEquals", "assertTrue": "assertNotTrue",
    "assertFalse": "assertNotFalse", "assertNull": "assertNotNull", "assertCount": "assertNotCount",
    "assertEmpty": "assertNotEmpty", "assertContains": "assertNotContains",
    "assertArrayHasKey": "assertArrayNotHasKey", "assertInstanceOf": "assertNotInstanceOf",
    "assertStringContainsString": "assertStringNotContainsString",
    "assertGreaterThan": "assertLessThanOrEqual", "assertLessThan": "assertGreaterThanOrEqual",
})  # fmt: skip
_EQUALITIES = {
    "assertSame",
    "assertEquals",
    "assertCount",
    "assertEqualsCanonicalizing",
    "assertJsonStringEqualsJsonString",
}
_TEST = re.compile(r"#\[\s*(?:\w+\\)*Test\b|@test\b")


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of PHP files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        name, body = text_of(part(node, "name")), part(node, "body")
        if node.type != "method_declaration" or body is None:
            continue
        before = node.prev_named_sibling
        doc = text_of(before) if before is not None and before.type == "comment" else ""
        if name.startswith("test") or _TEST.search(doc + text_of(part(node, "attributes"))):
            found = tuple(each for inner in walk(body) for each in _assertion(inner))
            yield FoundTest(file=file, title=name, body=body, assertions=found)


def _assertion(node: Node) -> Iterator[Assertion]:
    name = part(node, "name")
    if node.type in {"member_call_expression", "scoped_call_expression"} and text_of(name).startswith(
        "assert"
    ):
        given = [each.named_children[-1] for each in arguments(node) if each.named_children]
        operands = tuple(given[:2]) if text_of(name) in _EQUALITIES else ()
        yield Assertion(node, renamed(name, _OPPOSITES), operands)


_PACKAGES = frozenset({"php-cli", "phpunit"})
_COMPOSER = frozenset({"composer", "git", "unzip"})
_INSTALL = """\
cd {folder} || exit 1
export COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_HOME=/root/.composer
attempt composer install --no-scripts --no-interaction || exit 1
"""
_EXTENSIONS = {
    "pdo_sqlite": "php-sqlite3", "sqlite3": "php-sqlite3", "curl": "php-curl", "intl": "php-intl",
    "mbstring": "php-mbstring", "dom": "php-xml", "simplexml": "php-xml", "bcmath": "php-bcmath",
    "gd": "php-gd", "zip": "php-zip",
}  # fmt: skip
_OWN = re.compile(r"php|phpunit/phpunit|(?:ext|lib)-[\w-]+")


def find_php(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """Return the part of a folder with a composer.json, or of plain sources at the root."""
    prefix = f"{folder}/" if folder else ""
    package = read_table(files.get(f"{prefix}composer.json"))
    if package is None:
        is_plain = not folder and "php" in commands.languages and any(path.endswith(".php") for path in files)
        if not is_plain:
            return None
    wanted = {*table((package or {}).get("require")), *table((package or {}).get("require-dev"))}
    extensions = {_EXTENSIONS.get(str(name).removeprefix("ext-")) for name in wanted} - {None}
    others = {name for name in wanted if not _OWN.fullmatch(str(name))}
    names = ("composer.json", "composer.lock")
    kept = {prefix + name: files[prefix + name] for name in names if others and prefix + name in files}
    label = "-".join(["php", *(["composer"] if others else []), *sorted(filter(None, extensions))])
    return Part(
        language="php",
        label="php",
        toolchain=Toolchain(
            label=label.replace("-php-", "-"),
            packages=_PACKAGES | (_COMPOSER if others else frozenset()) | {str(each) for each in extensions},
        ),
        files=kept,
        install=_INSTALL.format(folder=shlex.quote(folder or ".")) if others else "",
        notes=(f"{prefix}composer.json: Debian's PHP 8.2 and PHPUnit 9.5" if package else "plain PHP",),
    )


PHP = Language(
    name="php",
    suffixes=frozenset({"php"}),
    images=Images(
        find=find_php,
        calls=re.compile(r"(?<![\w./-])(?:php|phpunit|composer|pest|vendor/bin/\w+)(?![\w./-])"),
        signs=("composer.json",),
        holds="php/installed.sh",
    ),
    tools=Tools(
        programs=(
            ProjectTool(
                "phpunit",
                r"\bphpunit\b|\bpest\b|\bcodecept|\bparatest\b",
                runs_tests=True,
                brings=("composer", "php"),
            ),
            ProjectTool("composer", r"\bcomposer\b"),
            ProjectTool("php", r"\bphp\b"),
        ),
        reads=(
            Reads(RUNNER, "phpunit", "place", r"phpunit.*|codeception.*|behat\..*|pest\.php"),
            Reads(RUNNER, "php", "any", r"php(?:-cli)?\.ini|\.user\.ini"),
            Reads(BUILD, "phpunit composer", "place", r"composer\.(?:json|lock)"),
            Reads(BUILD, "phpunit composer", "path", r"(?:.*/)?vendor/.*"),
        ),
        manifests=r"composer\.json",
        everyday=r"composer\.json|phpunit.*\.php",
        settings=r"bootstrap|printerFile|extensionsDirectory|cacheDirectory|autoload|file",
        variables=r"(?:PHPUNIT|PHP|COMPOSER|XDEBUG)_\w{0,80}|PHPRC",
    ),
    tests=TestFiles(
        paths=re.compile(r"[a-z0-9](?:Tests?|Cest)\.php$"),
        content=(re.compile(r"extends\s+(?:\\?\w+\\)*TestCase\b"),),
    ),
    lookup=ClassLookup,
    loaded="word",
    compiled=r"\.phar$",
    unbuilt=r"PHP (?:Parse|Fatal) error",
    mutate=read_tests,
)  # fmt: skip
