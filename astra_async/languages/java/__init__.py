"""Java, and near enough Kotlin, Groovy and Scala."""

from __future__ import annotations

import re

from astra_async.languages.java.image import find_java
from astra_async.languages.java.lookup import SOURCES, TypeLookup
from astra_async.languages.java.mutate import read_tests
from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools

_TEST_FOLDER = r"^(?=(?:.*/)?src/test/)(?:.*/)?(?:java|kotlin|groovy|scala|resources)/"
_TOOLS = Tools(
    programs=(
        Tool(
            "junit",
            r"(?<![-=])\bjunit\b(?!\.xml|-reporter)|jupiter|\bmvnw?\b|gradle|surefire",
            runs_tests=True,
            brings=("maven", "gradle"),
        ),
        Tool("testng", r"\btestng\b", runs_tests=True),
        Tool("maven", r"\bmvnw?\b"),
        Tool("gradle", r"gradle"),
        Tool("sbt", r"\bsbt\b"),
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
