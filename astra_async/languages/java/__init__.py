"""Java, with partial support for Kotlin, Groovy and Scala."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.java.lookup import SOURCES, TypeLookup
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
    wrapped,
)
from astra_async.languages.needs import Part, Toolchain, script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tree_sitter import Node

    from astra_async.languages.needs import Commands


_GRAMMAR = Grammar(
    module="tree_sitter_java",
    literals={
        "decimal_integer_literal": "number", "decimal_floating_point_literal": "float",
        "string_literal": "text",
        "character_literal": "character", "true": "truth", "false": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "field_access", "array_access", "binary_expression", "lambda_expression", "method_reference",
        "ternary_expression", "class_literal", "method_invocation", "object_creation_expression",
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "enhanced_for_statement", "while_statement", "do_statement",
        "try_statement", "switch_expression", "ternary_expression", "lambda_expression", "catch_clause",
    }),
    declarations={"variable_declarator": ("name", "value")},
)  # fmt: skip
_OPPOSITES = both_ways({
    "assertEquals": "assertNotEquals", "assertTrue": "assertFalse", "assertNull": "assertNotNull",
    "assertSame": "assertNotSame", "isEqualTo": "isNotEqualTo", "isTrue": "isFalse", "isNull": "isNotNull",
    "isEmpty": "isNotEmpty", "contains": "doesNotContain", "isSameAs": "isNotSameAs", "isIn": "isNotIn",
    "isPositive": "isNotPositive", "isZero": "isNotZero", "exists": "doesNotExist",
}) | {"isPresent": "isEmpty"}  # fmt: skip
_FLUENT_EQUALITIES = {"isEqualTo", "containsExactly", "hasSize", "containsExactlyInAnyOrder", "hasToString"}
_HAMCREST_EQUALITIES = {"is", "equalTo", "hasSize", "contains"}
_COLLECTIONS = re.compile(r"(?:List|Set|Map|Arrays|Optional|Stream)\.(?:of|asList|entry)")
_IMPORTED = r"import\s+static\s+([\w.]*Assert\w*)\.(?:{name}|\*)\s*;"
_RUNS_ALL = {"assertAll", "assertDoesNotThrow"}
_MESSAGE_LAST = 2  # in JUnit 5 and TestNG, the compared values come before the message
_TEST_ANNOTATION = re.compile(r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest)\b")
_DISPLAY_NAME = re.compile(r'@DisplayName\(\s*"((?:[^"\\]|\\.)*)"')


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Java files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    text = file.source.decode(errors="replace")
    for node in walk(file.root):
        body, name = part(node, "body"), text_of(part(node, "name"))
        if node.type != "method_declaration" or body is None:
            continue
        modifiers = next((text_of(each) for each in node.named_children if each.type == "modifiers"), "")
        is_old = name.startswith("test") and "TestCase" in text
        if is_old or _TEST_ANNOTATION.search(modifiers):
            yield FoundTest(
                file=file,
                title="" if _DISPLAY_NAME.search(modifiers) else name,  # reports may use either name
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner, text)),
                always_runs=_always_runs,
            )


def _assertion(node: Node, text: str) -> Iterator[Assertion]:
    name, given = part(node, "name"), arguments(node)
    if node.type != "method_invocation" or (not given and text_of(name) not in _OPPOSITES):
        return
    called, on = text_of(name), part(node, "object")
    if called == "assertThat":
        if len(given) > 1:  # Hamcrest
            yield Assertion(
                node, wrapped(given[-1], "org.hamcrest.CoreMatchers.not({})"), _matched(given[-1])
            )
    elif called.startswith("assert"):
        # A static import may import this assertion only, so its opposite needs the class name.
        found = re.search(_IMPORTED.replace("{name}", called), text) if on is None else None
        operands = given[: len(given) if len(given) <= _MESSAGE_LAST else 3] if "Equals" in called else ()
        sides = tuple(side for operand in operands for side in _expected(operand))
        if called in {"assertEquals", "assertArrayEquals", "assertIterableEquals"} or not sides:
            yield Assertion(node, renamed(name, _OPPOSITES, f"{found[1]}." if found else ""), sides)
    elif on is not None and text_of(on).startswith(("assertThat", "Assertions.assertThat")):
        operands = given if called in _FLUENT_EQUALITIES else ()
        negation = renamed(name, _OPPOSITES) if "assertThat" in text_of(part(on, "name")) else None
        yield Assertion(node, negation, tuple(side for operand in operands for side in _expected(operand)))
    elif called == "value" and "jsonPath" in text_of(on):
        yield Assertion(node, None, given)


def _matched(matcher: Node) -> tuple[Node, ...]:
    """Return the operands of a Hamcrest equality matcher."""
    is_equality = text_of(part(matcher, "name")) in _HAMCREST_EQUALITIES
    return tuple(side for each in arguments(matcher) for side in _expected(each)) if is_equality else ()


def _expected(operand: Node) -> Iterator[Node]:
    """Yield an operand, or the elements of a literal collection such as `List.of(1, 2)`."""
    called = f"{text_of(part(operand, 'object'))}.{text_of(part(operand, 'name'))}"
    if operand.type == "method_invocation" and _COLLECTIONS.fullmatch(called):
        for each in arguments(operand):
            yield from _expected(each)
    else:
        yield operand


def _always_runs(node: Node) -> bool:
    """Return True for the functions passed to `assertAll` and `assertDoesNotThrow`."""
    call = node.parent.parent if node.type == "lambda_expression" and node.parent is not None else None
    return text_of(part(call, "name")) in _RUNS_ALL


_JUNIT = ("junit4", "junit5", "libhamcrest-java")
# Slim Debian images lack the folder of the manual pages, in which Java packages create links.
_MANUAL = "RUN mkdir -p /usr/share/man/man1\n"
PLAIN = Toolchain(label="java", packages=frozenset({"openjdk-17-jdk-headless", *_JUNIT}), dockerfile=_MANUAL)
MAVEN = Toolchain(
    label="maven",
    packages=frozenset({"openjdk-17-jdk-headless", "maven"}),
    dockerfile=_MANUAL,
    environment={"JAVA_HOME": "/usr/lib/jvm/default-java"},
    setup='ln -sfn "$(dirname "$(dirname "$(readlink -f /usr/bin/javac)")")" /usr/lib/jvm/default-java\n',
)
_SPRING = frozenset({
    "libspring-web-servlet-java", "libspring-test-java", "libjackson2-databind-java", "libservlet-api-java",
    "libcommons-logging-java",
})  # fmt: skip
_NAMES_SPRING = re.compile(
    rb"import (?:static )?org\.springframework\.|<groupId>org\.springframework</groupId>"
)


def find_java(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """Return the part of a folder with a pom.xml, or of plain root sources; Gradle is not supported."""
    prefix = f"{folder}/" if folder else ""
    pom = files.get(f"{prefix}pom.xml")
    if pom is not None:
        poms = {
            path: content
            for path, content in files.items()
            if path.startswith(prefix) and path.endswith("pom.xml") and "target" not in path.split("/")
        }
        return Part(
            language="java",
            label="spring" if b"spring-boot" in pom else "maven",
            toolchain=_with_libraries(MAVEN, poms.values()),
            files=poms,
            install=script("java/maven.sh", FOLDER=folder or ".", JUNIT=_junit(pom)),
            notes=(f"{prefix}pom.xml: Debian's Maven 3.8 and Java 17",),
        )
    gradle = any(f"{prefix}{name}" in files for name in ("build.gradle", "build.gradle.kts"))
    sources = [content for path, content in files.items() if path.endswith(".java")]
    if folder or gradle or "java" not in commands.languages or not sources:
        return None
    return Part(
        language="java",
        label="java",
        toolchain=_with_libraries(PLAIN, sources),
        notes=("plain Java: Debian's Java 17",),
    )


def _with_libraries(toolchain: Toolchain, texts: Iterable[bytes]) -> Toolchain:
    """Add Debian's Spring Framework 4.3 if a source imports Spring or a pom names it."""
    if not any(_NAMES_SPRING.search(text) for text in texts):
        return toolchain
    return replace(toolchain, label=f"{toolchain.label}-spring", packages=toolchain.packages | _SPRING)


def _junit(pom: bytes) -> str:
    """Return the test framework that a pom names; Spring Boot includes JUnit 5 since 2.4."""
    if b"org.testng" in pom:
        return "testng"
    if b"jupiter" in pom:
        return "5"
    boot = re.search(rb"spring-boot-starter-parent</artifactId>\s*<version>(\d+)\.(\d+)", pom)
    return "5" if boot and (int(boot[1]), int(boot[2])) >= (2, 4) else "4"


_TEST_FOLDER = r"^(?=(?:.*/)?src/test/)(?:.*/)?(?:java|kotlin|groovy|scala|resources)/"
_TOOLS = Tools(
    programs=(
        ProjectTool(
            "junit",
            r"(?<![-=])\bjunit\b(?!\.xml|-reporter)|jupiter|\bmvnw?\b|gradle|surefire",
            runs_tests=True,
            brings=("maven", "gradle"),
        ),
        ProjectTool("testng", r"\btestng\b", runs_tests=True),
        ProjectTool("maven", r"\bmvnw?\b"),
        ProjectTool("gradle", r"gradle"),
        ProjectTool("sbt", r"\bsbt\b"),
    ),
    reads=(
        Reads(RUNNER, "junit", "place", r"surefire.*"),
        Reads(RUNNER, "junit", "any", r"junit-platform\.properties"),
        Reads(RUNNER, "testng", "place", r"testng.*\.(?:xml|ya?ml)"),
        Reads(BUILD, "maven gradle sbt junit", "place", (
            r"pom\.xml|build\.gradle.*|(?:settings|init)\.gradle.*|gradle\.properties|gradlew.*|mvnw.*"
            r"|build\.sbt|lombok\.config"
        )),
        Reads(BUILD, "gradle", "path", r"(?:.*/)?buildsrc/.*|gradle/[^/]*\.(?:gradle(?:\.kts)?|toml)"),
    ),
    manifests=r"pom\.xml|build\.gradle(?:\.kts)?",
    variables=r"(?:MAVEN|JDK|GRADLE)_\w{0,80}|MAVEN(?:PATH|OPT|LIB|HOME)|JAVA(?:_\w{0,80}|PATH|OPT|LIB|HOME)",
    dependency_folders=frozenset({".m2", ".gradle"}),
)  # fmt: skip

JAVA = Language(
    name="java",
    suffixes=SOURCES,
    images=Images(
        find=find_java,
        calls=re.compile(r"(?<![\w.-])(?:mvnw?|javac?|gradlew?)(?![\w-])"),
        signs=("pom.xml",),
        holds="java/installed.sh",
    ),
    tools=_TOOLS,
    tests=TestFiles(
        paths=re.compile(
            _TEST_FOLDER
            # Such a file name, unless it is below src/main.
            + r"|^(?!(?:.*/)?src/(?:.*/)?main/)(?:.*/)?"
            r"(?:[^/]*(?:Tests?|TestCase|IT|Spec)\.(?:java|kt|groovy|scala)|Test[A-Z]\w*\.(?:java|kt))$"
        ),
        content=(
            re.compile(
                r"@(?:Test|ParameterizedTest|RepeatedTest)\b"
                r"|import (?:static )?org\.(?:junit|testng)"
            ),
        ),
        alone=re.compile(_TEST_FOLDER),
    ),
    lookup=TypeLookup,
    loaded="word",
    arguments=re.compile(r"(?:[\w$.+][\w$.+-]*/)*[\w$.+][\w$.+-]*"),  # safe paths in javac's @files
    compiled=r"\.(?:class|jar|war|ear)$",
    plugins=re.compile(
        r"(?:^|/)meta-inf/(?:spring|maven/|.*\.sf$)|(?:^|/)mockito-extensions/", re.IGNORECASE
    ),
    unbuilt=r"COMPILATION ERROR|Compilation failure|cannot find symbol|BUILD FAILURE",
    mutate=read_tests,
)
