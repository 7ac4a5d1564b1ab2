"""Java, and near enough Kotlin, Groovy and Scala."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.java.lookup import SOURCES, TypeLookup
from astra_async.languages.java.mutate import read_tests
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
from astra_async.languages.needs import Part, Toolchain, script

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.languages.needs import Commands


_JUNIT = ("junit4", "junit5", "libhamcrest-java")
# A slim Debian leaves the manual out, but Java's packages want to link their pages in its folder.
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
    """The part of a folder with a pom.xml; at the root also one of plain sources. Gradle is not known."""
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
    """The toolchain with Debian's Spring Framework 4.3, if a source imports it or a pom names it."""
    if not any(_NAMES_SPRING.search(text) for text in texts):
        return toolchain
    return replace(toolchain, label=f"{toolchain.label}-spring", packages=toolchain.packages | _SPRING)


def _junit(pom: bytes) -> str:
    """The test framework that a pom names; Spring Boot brings JUnit 5 since its version 2.4."""
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
            # Of such a name, and not below src/main.
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
    arguments=re.compile(r"(?:[\w$.+][\w$.+-]*/)*[\w$.+][\w$.+-]*"),  # javac reads what @files name
    compiled=r"\.(?:class|jar|war|ear)$",
    plugins=re.compile(
        r"(?:^|/)meta-inf/(?:spring|maven/|.*\.sf$)|(?:^|/)mockito-extensions/", re.IGNORECASE
    ),
    unbuilt=r"COMPILATION ERROR|Compilation failure|cannot find symbol|BUILD FAILURE",
    mutate=read_tests,
)
