"""Java projects: Maven, Spring on Maven, and plain javac with Debian's JUnit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.needs import Part, Toolchain, script

if TYPE_CHECKING:
    from collections.abc import Mapping

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
            toolchain=MAVEN,
            files=poms,
            install=script("java/maven.sh", FOLDER=folder or ".", JUNIT=_junit(pom)),
            notes=(f"{prefix}pom.xml: Debian's Maven 3.8 and Java 17",),
        )
    gradle = any(f"{prefix}{name}" in files for name in ("build.gradle", "build.gradle.kts"))
    if folder or gradle or "java" not in commands.languages or not any(p.endswith(".java") for p in files):
        return None
    return Part(
        language="java",
        label="java",
        toolchain=PLAIN,
        notes=("plain Java: Debian's Java 17",),
    )


def _junit(pom: bytes) -> str:
    """The test framework that a pom names; Spring Boot brings JUnit 5 since its version 2.4."""
    if b"org.testng" in pom:
        return "testng"
    if b"jupiter" in pom:
        return "5"
    boot = re.search(rb"spring-boot-starter-parent</artifactId>\s*<version>(\d+)\.(\d+)", pom)
    return "5" if boot and (int(boot[1]), int(boot[2])) >= (2, 4) else "4"
