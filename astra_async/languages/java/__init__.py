"""Java, and near enough Kotlin, Groovy and Scala."""

from __future__ import annotations

import re

from astra_async.languages.java.image import find_java
from astra_async.languages.java.lookup import SOURCES, TypeLookup
from astra_async.languages.java.trial import read_tests
from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools

_TEST_FOLDER = r"^(?=(?:.*/)?src/test/)(?:.*/)?(?:java|kotlin|groovy|scala|resources)/"
_TOOLS = Tools(
    programs=(
        Tool(
            name="junit",
            sign=r"(?<![-=])\bjunit\b(?!\.xml|-reporter)|jupiter|\bmvnw?\b|gradle|surefire",
            runs_tests=True,
            brings=("maven", "gradle"),
        ),
        Tool(name="testng", sign=r"\btestng\b", runs_tests=True),
        Tool(name="maven", sign=r"\bmvnw?\b"),
        Tool(name="gradle", sign=r"gradle"),
        Tool(name="sbt", sign=r"\bsbt\b"),
    ),
    reads=(
        Reads(rule=RUNNER, by="junit", reach="place", names=(r"surefire.*",)),
        Reads(rule=RUNNER, by="junit", reach="any", names=(r"junit-platform\.properties",)),
        Reads(rule=RUNNER, by="testng", reach="place", names=(r"testng.*\.(?:xml|ya?ml)",)),
        Reads(rule=BUILD, by="maven gradle sbt junit", reach="place", names=(
            r"pom\.xml|build\.gradle.*|(?:settings|init)\.gradle.*|gradle\.properties|gradlew.*|mvnw.*",
            r"build\.sbt|lombok\.config",
        )),
        Reads(rule=BUILD, by="gradle", reach="path", names=(
            r"(?:.*/)?buildsrc/.*|gradle/[^/]*\.(?:gradle(?:\.kts)?|toml)",
        )),
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
    trial=read_tests,
)
